/* Matrices as TMA reads them (sm_90 and later). */
#ifndef LPG_KERNELS_TENSOR_MAP_H
#define LPG_KERNELS_TENSOR_MAP_H

#include "../../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The driver's description of a matrix: a parameter of kernels, opaque. */
#ifdef __cplusplus
struct alignas(128) lpg_tensor_map {
  uint64_t words[16];
};
#else
typedef struct lpg_tensor_map lpg_tensor_map;
#endif

/* 1 if it can read the call's X of 16 bits: rows begin at multiples of 16 bytes, less than 2^40 apart. */
static inline int lpg_x_has_map(const lpg_call *call) {
  return (uintptr_t)call->x % 16 == 0 && call->ldx % 8 == 0 && call->ldx < (int64_t)1 << 39;
}

/* Of 16-bit X in boxes of so many columns (128 bytes) by so many rows, which lie in shared memory as tensor cores of
 * sm_90a want them: rows of 128 bytes, of which 16-byte piece i is at i ^ (row % 8). What is beyond X is zero. */
lpgemm_status_t lpgemm_i_cuda_map_x(const lpg_call *call, int columns, int rows, lpg_tensor_map *map);

/* Of the packed weights in boxes of so many vectors of 512 bytes (x = 0, y: the first vector) of so many row tiles (z),
 * one row tile after the other. What is beyond the weights is zero. */
enum { LPG_VECTOR_BYTES = 512 };
lpgemm_status_t lpgemm_i_cuda_map_codes(const lpg_call *call, int vectors, int row_tiles, lpg_tensor_map *map);

#ifdef __cplusplus
}
#endif

#endif
