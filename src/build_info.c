/* What this build contains, in one line. The Makefile writes build_info.h. */
#include "build_info.h"

#include "lpgemm.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define VERSION_TEXT TEXT(LPGEMM_VERSION_MAJOR) "." TEXT(LPGEMM_VERSION_MINOR) "." TEXT(LPGEMM_VERSION_PATCH)

const char *lpgemm_build_info(void) {
  return "lpgemm " VERSION_TEXT " (" LPG_COMMIT "), backends: " LPG_BACKENDS ", CUDA architectures: " LPG_ARCHS
         ", CPU instruction sets: " LPG_ISA ", compiler: " LPG_COMPILER;
}
