/* The baseline on the CPU: OpenBLAS's sgemm, loaded at run time where it is installed. */
#ifndef BENCH_OPENBLAS_H
#define BENCH_OPENBLAS_H

#include "common.h"

void bench_openblas_threads(int threads);

/* y[m][n] = x[m][k] w[n][k]^T; only F32. */
bench_error bench_openblas_multiply(lpgemm_dtype_t type, int64_t m, int64_t n, int64_t k, const void *w, const void *x,
                                    void *y);

#endif
