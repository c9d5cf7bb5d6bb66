/* The CUDA backend: what its files share. C11 hosts see the functions, CUDA C++ also the launch helpers. */
#ifndef LPG_CUDA_H
#define LPG_CUDA_H

#include <cuda_runtime_api.h>

#include "../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- work on device memory, in stream order; arguments are checked. scratch is the handle's. ---- */

/* A blob is begun, gets its column order and then its rows, in any number of pieces, each with its part of the content,
 * and is finished (src/pack/pack.h). All arrays of a source lie in device memory but orders, which lie on the host. A
 * piece of all rows hashes everything, so that finishing writes the header only. */
lpgemm_status_t lpgemm_i_cuda_begin(const lpg_packed *packed, uint8_t *blob, cudaStream_t stream);
lpgemm_status_t lpgemm_i_cuda_pack_rows(const lpg_packed *packed, const lpg_source *source, int64_t first_row,
                                        uint8_t *blob, lpg_content *content, void *scratch, cudaStream_t stream);
lpgemm_status_t lpgemm_i_cuda_finish(const lpg_packed *packed, uint8_t *blob, lpg_content *content, void *scratch,
                                     cudaStream_t stream);
/* The hash of the codes of rows that are in place. */
lpgemm_status_t lpgemm_i_cuda_hash_rows(const lpg_packed *packed, int64_t first_row, int64_t rows, const uint8_t *blob,
                                        lpg_content *content, void *scratch, cudaStream_t stream);
/* Rows of a checkpoint: lpg_backend.import_rows. */
lpgemm_status_t lpgemm_i_cuda_import_rows(lpgemm_handle_t handle, const lpg_packed *packed, const lpg_joined *joined,
                                          int64_t first_row, uint8_t *blob, lpg_content *content, int *done);

/* For quantising: the codes of rows first_row (a multiple of 16) and following, one a byte, into the blob; and, when
 * codes, scales and zeros of all rows are in place and the rest is 0, row exponents, hash and header. */
lpgemm_status_t lpgemm_i_cuda_put_codes(const lpg_packed *packed, const uint8_t *codes, int64_t ld, int64_t first_row,
                                        int64_t rows, uint8_t *blob, cudaStream_t stream);
lpgemm_status_t lpgemm_i_cuda_seal(const lpg_packed *packed, uint8_t *blob, lpg_content *content, void *scratch,
                                   cudaStream_t stream);

lpgemm_status_t lpgemm_i_cuda_quantize(const lpg_packed *packed, lpgemm_quantize_method_t method, const void *w,
                                       lpgemm_dtype_t w_type, int64_t ldw, uint8_t *blob, lpg_content *content,
                                       void *scratch, cudaStream_t stream);
lpgemm_status_t lpgemm_i_cuda_unpack(const lpg_packed *packed, const uint8_t *blob, lpgemm_dtype_t out_type, void *out,
                                     int64_t ldo, cudaStream_t stream);
lpgemm_status_t lpgemm_i_cuda_quantize_activations(const lpg_device *device, int64_t m, int64_t k, const void *x,
                                                   lpgemm_dtype_t x_type, int64_t ldx, lpgemm_dtype_t out_type,
                                                   void *out, int64_t ldo, float *scale, lpgemm_x_scale_t mode,
                                                   cudaStream_t stream);
/* Loads its kernels on the current device, so that the first call may be captured. */
lpgemm_status_t lpgemm_i_cuda_prepare_activations(void);

/* lpg_backend.pair_rows; and of mixtures of experts route, gather_rows and combine. */
lpgemm_status_t lpgemm_i_cuda_pair_rows(const lpg_packed *own, const uint8_t *rows, const lpg_packed *packed, int half,
                                        int64_t output, uint8_t *blob, cudaStream_t stream);
lpgemm_status_t lpgemm_i_cuda_route(const lpg_device *device, const lpg_route *route, cudaStream_t stream);
lpgemm_status_t lpgemm_i_cuda_gather_rows(const lpg_device *device, const lpg_gather *gather, cudaStream_t stream);
lpgemm_status_t lpgemm_i_cuda_combine(const lpg_device *device, const lpg_combine *combine, cudaStream_t stream);
/* Loads their kernels on the current device. shared_memory: the most that a CTA may have. */
lpgemm_status_t lpgemm_i_cuda_load_route(int shared_memory);
lpgemm_status_t lpgemm_i_cuda_load_gather_rows(void);
lpgemm_status_t lpgemm_i_cuda_load_combine(void);

/* Fills lpg_device.clusters for the current device. */
lpgemm_status_t lpgemm_i_cuda_count_clusters(int64_t shared_memory, int32_t clusters[LPG_CLUSTER_MOST + 1]);

#ifdef __cplusplus
}

#include "launch.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Loads a kernel on the current device and lets it use that much dynamic shared memory. */
static inline lpgemm_status_t allow_shared(const void *kernel, size_t shared_bytes) {
  LPG_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes));
  return LPGEMM_SUCCESS;
}

}  // namespace
}  // namespace lpg
#endif

#endif
