/* Tensor maps: the descriptors by which TMA reads and writes matrices (sm_90 and later). */
#ifndef LPG_KERNELS_TENSOR_MAP_H
#define LPG_KERNELS_TENSOR_MAP_H

#include "../../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The driver's descriptor of a matrix; opaque, a kernel parameter. */
#ifdef __cplusplus
struct alignas(128) lpg_tensor_map {
  uint64_t words[16];
};
#else
typedef struct lpg_tensor_map lpg_tensor_map;
#endif

/* 1 if TMA can read the call's 16-bit X: rows begin at multiples of 16 bytes, less than 2^40 bytes apart. */
static inline int lpg_x_has_map(const lpg_call *call) {
  return (uintptr_t)call->x % 16 == 0 && call->ldx % 8 == 0 && call->ldx < (int64_t)1 << 39;
}

/* Map of 16-bit X with boxes of `columns` k (128 bytes) by `rows` rows, swizzled for wgmma: rows of 128 bytes, 16-byte
 * piece i of a row at i ^ (row % 8). What lies beyond X is zero. */
lpgemm_status_t lpgemm_i_cuda_map_x(const lpg_call *call, int columns, int rows, lpg_tensor_map *map);

/* Map of 16-bit Y, n columns and m rows, with boxes of `columns` columns (128 bytes) by `rows` rows, swizzled as X.
 * Rows begin at multiples of 16 bytes. */
lpgemm_status_t lpgemm_i_cuda_map_y(void *y, int64_t n, int64_t m, int64_t ldy, int columns, int rows,
                                    lpg_tensor_map *map);

/* Map of the packed weights with boxes of `vectors` vectors of 512 bytes (x = 0, y: the first vector) of `row_tiles`
 * row tiles (z), one row tile after the other. What lies beyond the weights is zero. with_experts: the map has a fourth
 * dimension, the expert of the call's stack (0 of one matrix). */
enum { LPG_VECTOR_BYTES = 512 };
lpgemm_status_t lpgemm_i_cuda_map_codes(const lpg_call *call, int vectors, int row_tiles, int with_experts,
                                        lpg_tensor_map *map);

#ifdef __cplusplus
}
#endif

#endif
