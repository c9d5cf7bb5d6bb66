/* How integer weights meet integer activations of few bits: plain arithmetic, for C and CUDA.
 *
 * Both are brought to images that the tensor cores of sm_90a read from shared memory: rows of 128 bytes, of which
 * 16-byte piece i is at i ^ (row % 8). A stage is 128 bytes of 256 rows of W or of 128 rows of X (tokens): 1024 columns
 * of one plane of bits, or 128 columns of bytes. With p planes of W and q of X an item's sums are
 *
 *     sum over i < p, j < q of 2^(i + j) * (number of columns where plane i of W and plane j of X both have a bit)
 *
 * of which those with the largest i + j come first; between two levels of i + j the sums are doubled, in registers. */
#ifndef LPG_BITSERIAL_PLANES_PLAN_H
#define LPG_BITSERIAL_PLANES_PLAN_H

#include "../internal.h"

enum {
  LPG_PLANES_ROWS = 256,
  LPG_PLANES_TOKENS = 128,
  LPG_PLANES_WARPS = 8, /* that multiply: each 16 tokens by all rows */
  LPG_PLANES_BAND = 12, /* row items of a band */
  LPG_PLANES_W_BYTES = LPG_PLANES_ROWS * 128,
  LPG_PLANES_X_BYTES = LPG_PLANES_TOKENS * 128,
  LPG_PLANES_STAGES = 4,
  LPG_PLANES_NUMBERS = 3, /* of a row: planes_images.h */
  LPG_PLANES_NUMBERS_BYTES = LPG_PLANES_NUMBERS * LPG_PLANES_ROWS * 4,
  LPG_PLANES_PITCH = 144, /* bytes of a token on its way to Y */
  LPG_PLANES_OUT_BYTES = LPG_PLANES_WARPS * 16 * LPG_PLANES_PITCH,
  LPG_PLANES_NUMBERS_AT = 1024,                                             /* behind the barriers */
  LPG_PLANES_OUT_AT = LPG_PLANES_NUMBERS_AT + 2 * LPG_PLANES_NUMBERS_BYTES, /* of both groups of four warps */
  LPG_PLANES_X_AT = (LPG_PLANES_OUT_AT + LPG_PLANES_OUT_BYTES + 1023) / 1024 * 1024,
  LPG_PLANES_W_AT = LPG_PLANES_X_AT + LPG_PLANES_STAGES * LPG_PLANES_X_BYTES,
  LPG_PLANES_SHARED = LPG_PLANES_W_AT + LPG_PLANES_STAGES * LPG_PLANES_W_BYTES,
  LPG_PLANES_WORKSPACE = 64 << 20 /* the most, for weights */
};

typedef struct lpg_planes_plan {
  int32_t p, q;                                /* planes; 1 and 1 where codes stay bytes */
  int32_t k_stages;                            /* of a plane's row */
  int32_t row_items, chunk_items, token_items; /* of the matrix and, the most, of a chunk; token_items: of a cluster */
  int32_t cluster, groups;                     /* blocks of a cluster; clusters that run at once */
} lpg_planes_plan;

/* Bytes of a token item's image and of a row item's. */
static inline int64_t lpg_planes_x_bytes(const lpg_planes_plan *p) {
  return (int64_t)p->q * p->k_stages * LPG_PLANES_X_BYTES;
}
static inline int64_t lpg_planes_w_bytes(const lpg_planes_plan *p) {
  return (int64_t)p->p * p->k_stages * LPG_PLANES_W_BYTES;
}

/* The workspace: images of X, the sums of its rows, images of a chunk of weights, the numbers of their rows. */
static inline int64_t lpg_planes_x_total(const lpg_planes_plan *p) {
  return (int64_t)p->token_items * p->cluster * lpg_planes_x_bytes(p);
}
static inline int64_t lpg_planes_sums_bytes(const lpg_planes_plan *p) {
  return (int64_t)p->token_items * p->cluster * LPG_PLANES_TOKENS * 4;
}
static inline int64_t lpg_planes_workspace(const lpg_planes_plan *p, int64_t chunk_items) {
  return lpg_planes_x_total(p) + lpg_planes_sums_bytes(p) +
         chunk_items * (lpg_planes_w_bytes(p) + LPG_PLANES_NUMBERS_BYTES);
}

/* Row items of a chunk, the most that the workspace holds; it does not depend on M. */
static inline int32_t lpg_planes_most_items(const lpg_planes_plan *p) {
  const int64_t most = LPG_PLANES_WORKSPACE / (lpg_planes_w_bytes(p) + LPG_PLANES_NUMBERS_BYTES);
  return most < p->row_items ? (int32_t)most : p->row_items;
}

/* The plan for m rows of X of x_bits bits; bytes: codes stay bytes. 0 if the workspace or shared memory does not do. */
static inline int lpg_planes_make_plan(const lpg_plan *weights, int64_t m, int x_bits, int bytes,
                                       const lpg_device *device, lpg_planes_plan *plan) {
  lpg_planes_plan p = LPG_ZERO;
  const int64_t stage_k = bytes ? 128 : 1024, tokens = (m + LPG_PLANES_TOKENS - 1) / LPG_PLANES_TOKENS;
  p.p = bytes ? 1 : weights->bits;
  p.q = bytes ? 1 : x_bits;
  p.k_stages = (int32_t)((weights->desc.k + stage_k - 1) / stage_k);
  p.row_items = (int32_t)((weights->desc.n + LPG_PLANES_ROWS - 1) / LPG_PLANES_ROWS);
  p.cluster = tokens > 1 && device->clusters[2] > 0 ? 2 : 1;
  p.token_items = (int32_t)((tokens + p.cluster - 1) / p.cluster);
  p.groups = p.cluster == 2 ? device->clusters[2] : device->units > 0 ? device->units : 1;
  const int32_t most = lpg_planes_most_items(&p);
  if (device->shared_memory < LPG_PLANES_SHARED || (p.row_items > 0 && most < 1)) return 0;
  const int32_t chunks = most > 0 ? (p.row_items + most - 1) / most : 1;
  p.chunk_items = (p.row_items + chunks - 1) / chunks;
  *plan = p;
  return 1;
}

#endif
