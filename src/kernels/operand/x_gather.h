/* X with its columns in the order in which the weights' are packed (column order): rows begin at multiples of 16
 * bytes, so that no kernel needs another copy. */
#ifndef LPG_KERNELS_X_GATHER_H
#define LPG_KERNELS_X_GATHER_H

#include "../../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out[row][c] = x[row][order[c]] for m rows and the columns of the weights; pitch in elements. */
lpgemm_status_t lpgemm_i_cuda_gather_x(const lpg_device *device, const lpg_packed *packed, int64_t m, const void *x,
                                       lpgemm_dtype_t x_type, int64_t ldx, const int32_t *order, void *out,
                                       int64_t pitch, lpgemm_stream_t stream);
/* Loads the kernels on the current device. */
lpgemm_status_t lpgemm_i_cuda_load_gather_x(void);

#ifdef __cplusplus
}
#endif

#endif
