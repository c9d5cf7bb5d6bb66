/* The test program: every suite, in the order in which a defect is easiest to find. */
#include "framework.h"

/* Weak, so that a build without one of the files links; the framework counts the missing suite as a failure. */
#define SUITE(name, backends) void suite_##name(void) __attribute__((weak));

enum {
  CPU = TEST_ON_CPU,
  CUDA = TEST_ON_CUDA,
  BOTH = TEST_ON_CPU | TEST_ON_CUDA,
  NVCC = TEST_ON_CPU | TEST_NEEDS_NVCC
};

#ifdef LPG_EXPERIMENTAL
#define EXPERIMENTS SUITE(lut_gpu, BOTH)
#else
#define EXPERIMENTS
#endif

#ifdef LPG_SIMT
#define GPU_SUITES SUITE(simt, CUDA)
#else
#define GPU_SUITES SUITE(capture, CUDA) SUITE(cublas, CUDA)
#endif

/* On CUDA capturing comes first: it wants kernels that have never run. */
#define SUITES                \
  SUITE(compare, CPU)         \
  SUITE(layouts, CPU)         \
  SUITE(numbers, CPU)         \
  SUITE(bench_clock, CPU)     \
  SUITE(bench_drawn, CPU)     \
  GPU_SUITES                  \
  SUITE(device, CUDA)         \
  SUITE(import_device, CUDA)  \
  SUITE(format, BOTH)         \
  SUITE(pack, BOTH)           \
  SUITE(pieces, BOTH)         \
  SUITE(prepared, CPU)        \
  SUITE(stacks, BOTH)         \
  SUITE(blob, BOTH)           \
  SUITE(quantize, BOTH)       \
  SUITE(files, CPU)           \
  SUITE(files_hostile, CPU)   \
  SUITE(container, CPU)       \
  SUITE(import_at, CPU)       \
  SUITE(import, CPU)          \
  SUITE(import_refusals, CPU) \
  SUITE(import_gguf, BOTH)    \
  SUITE(dispatch, CPU)        \
  SUITE(plan, CPU)            \
  SUITE(gemm_family, BOTH)    \
  SUITE(stripe, BOTH)         \
  SUITE(gemv1, BOTH)          \
  SUITE(gemv1_i8, BOTH)       \
  EXPERIMENTS                 \
  SUITE(dequantisers, NVCC)   \
  SUITE(remember, CPU)        \
  SUITE(codebook, BOTH)       \
  SUITE(misuse, BOTH)         \
  SUITE(log, CPU)             \
  SUITE(supports, BOTH)       \
  SUITE(gemm, BOTH)           \
  SUITE(one_row, CUDA)        \
  SUITE(k_quants, BOTH)       \
  SUITE(rests, CUDA)          \
  SUITE(groups, BOTH)         \
  SUITE(invariant, BOTH)      \
  SUITE(experts, BOTH)        \
  SUITE(experts_layer, BOTH)  \
  SUITE(experts_misuse, BOTH) \
  SUITE(epilogue, BOTH)       \
  SUITE(outputs, BOTH)        \
  SUITE(activations, BOTH)    \
  SUITE(lut, CPU)             \
  SUITE(dot, CPU)             \
  SUITE(gemm1, BOTH)          \
  SUITE(gemm8, BOTH)          \
  SUITE(dequant, BOTH)        \
  SUITE(dropin, BOTH)         \
  SUITE(threads, BOTH)        \
  SUITE(threads_lent, CPU)    \
  SUITE(threads_slices, BOTH) \
  SUITE(cli, CPU)             \
  SUITE(convert, CPU)         \
  SUITE(parallel, CPU)

SUITES

#undef SUITE
#define SUITE(name, backends) {#name, backends, suite_##name},

static const test_suite suites[] = {SUITES};

int main(int argc, char **argv) { return test_main(argc, argv, suites, (int)(sizeof suites / sizeof suites[0])); }
