/* The baseline on CUDA: cuBLAS, loaded at run time, never linked. */
#ifndef BENCH_CUBLAS_H
#define BENCH_CUBLAS_H

#include <cuda_runtime_api.h>

#include "common.h"

/* The stream of later products. Fails if cuBLAS is not there. */
bench_error bench_cublas_open(cudaStream_t stream);

/* "13.1.0", "none" if it is not open. */
const char *bench_cublas_version(void);

/* y[m][n] = x[m][k] w[n][k]^T, with 32 MiB of workspace: F16, BF16 and F32 with fp32 sums, I8 with int32 sums and
 * output, E4M3 with fp32 sums (no fast accumulation) and F16 output. */
bench_error bench_cublas_multiply(lpgemm_dtype_t type, int64_t m, int64_t n, int64_t k, const void *w, const void *x,
                                  void *y);

#endif
