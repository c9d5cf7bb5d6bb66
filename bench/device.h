/* The benchmark's own kernels; they work in stream order. `table` is the value of each code of a one-byte type, in
 * device memory; other types do not need it. */
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#include <cuda_runtime_api.h>

#include "machine.h"

#ifdef __cplusplus
extern "C" {
#endif

cudaError_t bench_device_fill(lpgemm_dtype_t type, void *memory, int64_t count, uint64_t seed, cudaStream_t stream);

/* Reads every byte (a multiple of 16) with `ctas` CTAs; sink is 4 bytes that are not written in practice. */
cudaError_t bench_device_read(const void *memory, size_t bytes, unsigned ctas, void *sink, cudaStream_t stream);

/* Copies a multiple of 16 bytes. */
cudaError_t bench_device_copy(void *to, const void *from, size_t bytes, unsigned ctas, cudaStream_t stream);

cudaError_t bench_device_row_norms(lpgemm_dtype_t type, const void *matrix, int64_t rows, int64_t columns, int64_t ld,
                                   const float *table, float *out, cudaStream_t stream);

/* Adds the number of elements that differ too much to *bad. */
cudaError_t bench_device_compare(const bench_comparison *comparison, unsigned long long *bad, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
