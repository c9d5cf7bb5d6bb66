/* Is a timed result right? The bounds are those of LPGEMM_LEVEL_EXACT in the manual. */
#ifndef BENCH_CHECK_H
#define BENCH_CHECK_H

#include "machine.h"
#include "weights.h"

/* A product whose X and Y lie in the machine's memory. */
typedef struct bench_product {
  int64_t m, n, k, ldx; /* Y is dense */
  lpgemm_dtype_t x_type, y_type;
  const void *x, *y;
  const float *x_scale; /* on the host: [m] for ROW, [1] for TENSOR */
  lpgemm_x_scale_t x_scale_mode;
  const bench_weights *weights; /* or, if NULL, dense weights of x_type that were filled from this seed: */
  uint64_t dense_seed;
  int samples; /* how many outputs, about; 0: 4096 */
} bench_product;

/* Compares some outputs, tile edges among them, with fp64 on the host, all cores. *rms_error becomes the
 * Euclidean norm of the differences by that of the outputs. */
bench_error bench_check_samples(const bench_machine *machine, const bench_product *p, double *rms_error);

/* Compares all outputs with those of another kernel, `other`, in memory of the machine. */
bench_error bench_check_all(const bench_machine *machine, const bench_product *p, const void *other);

#endif
