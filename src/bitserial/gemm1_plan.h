/* How integer weights meet integer activations of few bits: plain arithmetic, for C and CUDA.
 *
 * Both are written to images that the tensor cores of sm_90a read from shared memory: rows of 128 bytes, of which
 * 16-byte piece i is at i ^ (row % 8). A stage is 128 bytes of 256 rows of W or of 128 rows of X: 1024
 * columns of one plane of bits, or 128 columns of bytes. With p planes of W and q of X a work tile's sums are
 *
 *     sum over i < p, j < q of 2^(i + j) * (number of columns where plane i of W and plane j of X both have a bit)
 *
 * of which those with the largest i + j come first; between two levels of i + j the sums are doubled, in registers. */
#ifndef LPG_BITSERIAL_GEMM1_PLAN_H
#define LPG_BITSERIAL_GEMM1_PLAN_H

#include "../internal.h"

enum {
  LPG_GEMM1_TILE_N = 256,
  LPG_GEMM1_TILE_M = 128,
  LPG_GEMM1_WARPS = 8, /* that multiply: each 16 rows of X by all rows */
  LPG_GEMM1_BAND = 12, /* row work tiles of a band */
  LPG_GEMM1_W_BYTES = LPG_GEMM1_TILE_N * 128,
  LPG_GEMM1_X_BYTES = LPG_GEMM1_TILE_M * 128,
  LPG_GEMM1_STAGES = 4,
  LPG_GEMM1_SCALES = 3, /* of a row: planes_images.h */
  LPG_GEMM1_SCALES_BYTES = LPG_GEMM1_SCALES * LPG_GEMM1_TILE_N * 4,
  LPG_GEMM1_PITCH = 144, /* bytes of a row of X on its way to Y */
  LPG_GEMM1_OUT_BYTES = LPG_GEMM1_WARPS * 16 * LPG_GEMM1_PITCH,
  LPG_GEMM1_SCALES_AT = 1024,                                          /* behind the barriers */
  LPG_GEMM1_OUT_AT = LPG_GEMM1_SCALES_AT + 2 * LPG_GEMM1_SCALES_BYTES, /* of both groups of four warps */
  LPG_GEMM1_X_AT = (LPG_GEMM1_OUT_AT + LPG_GEMM1_OUT_BYTES + 1023) / 1024 * 1024,
  LPG_GEMM1_W_AT = LPG_GEMM1_X_AT + LPG_GEMM1_STAGES * LPG_GEMM1_X_BYTES,
  LPG_GEMM1_SHARED = LPG_GEMM1_W_AT + LPG_GEMM1_STAGES * LPG_GEMM1_W_BYTES,
  LPG_GEMM1_WORKSPACE = 64 << 20 /* the most, for weights */
};

typedef struct lpg_gemm1_plan {
  int32_t p, q;                          /* planes of W and of X */
  int32_t k_stages;                      /* of a plane's row */
  int32_t n_tiles, chunk_tiles, m_tiles; /* of the matrix and, the most, of a chunk; token_items: of a cluster */
  int32_t cluster, clusters;             /* CTAs of a cluster; clusters that run at once */
} lpg_gemm1_plan;

/* Bytes of a row of X work tile's image and of a row work tile's. */
static inline int64_t lpg_gemm1_x_bytes(const lpg_gemm1_plan *p) {
  return (int64_t)p->q * p->k_stages * LPG_GEMM1_X_BYTES;
}
static inline int64_t lpg_gemm1_w_bytes(const lpg_gemm1_plan *p) {
  return (int64_t)p->p * p->k_stages * LPG_GEMM1_W_BYTES;
}

/* The workspace: images of X, the sums of its rows, images of a chunk of weights, the numbers of their rows. */
static inline int64_t lpg_gemm1_x_total(const lpg_gemm1_plan *p) {
  return (int64_t)p->m_tiles * p->cluster * lpg_gemm1_x_bytes(p);
}
static inline int64_t lpg_gemm1_sums_bytes(const lpg_gemm1_plan *p) {
  return (int64_t)p->m_tiles * p->cluster * LPG_GEMM1_TILE_M * 4;
}
static inline int64_t lpg_gemm1_workspace(const lpg_gemm1_plan *p, int64_t chunk_tiles) {
  return lpg_gemm1_x_total(p) + lpg_gemm1_sums_bytes(p) + chunk_tiles * (lpg_gemm1_w_bytes(p) + LPG_GEMM1_SCALES_BYTES);
}

/* Row work tiles of a chunk, the most that the workspace holds; it does not depend on M. */
static inline int32_t lpg_gemm1_most_tiles(const lpg_gemm1_plan *p) {
  const int64_t most = LPG_GEMM1_WORKSPACE / (lpg_gemm1_w_bytes(p) + LPG_GEMM1_SCALES_BYTES);
  return most < p->n_tiles ? (int32_t)most : p->n_tiles;
}

#endif
