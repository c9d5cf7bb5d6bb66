/* libFuzzer: hostile GGUF files. */
#include "look.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  look(data, size);
  return 0;
}
