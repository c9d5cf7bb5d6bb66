/* The test program: every suite, in the order in which a defect is easiest to find. */
#include "framework.h"

/* Weak, so that a build without one of the files links; the framework counts the missing suite as a failure. */
#define SUITE(name) void suite_##name(void) __attribute__((weak));
#define SUITES       \
  SUITE(compare)     \
  SUITE(layouts)     \
  SUITE(numbers)     \
  SUITE(format)      \
  SUITE(pack)        \
  SUITE(blob)        \
  SUITE(quantize)    \
  SUITE(dispatch)    \
  SUITE(misuse)      \
  SUITE(gemm)        \
  SUITE(epilogue)    \
  SUITE(activations) \
  SUITE(lut)         \
  SUITE(dropin)      \
  SUITE(threads)

SUITES

#undef SUITE
#define SUITE(name) {#name, suite_##name},

static const test_suite suites[] = {SUITES};

int main(int argc, char **argv) { return test_main(argc, argv, suites, (int)(sizeof suites / sizeof suites[0])); }
