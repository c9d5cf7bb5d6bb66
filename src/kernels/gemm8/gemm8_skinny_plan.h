/* Integer weights by few rows of integer activations (rows of X), multiplied as bytes without any image: plain
 * arithmetic, for C and CUDA.
 *
 * K is cut into parts of K of k blocks, one for each CTA of a cluster, which keeps its slice of
 * X. A work tile is 64 rows of W. Four groups of four warps multiply: `parts` of them share a work tile's slice of K.
 * In a round every group has its part of one work tile; then the cluster adds up what belongs together. X is cut into
 * row of X work tiles of 8, 16, 32 or 64 rows, which other clusters have. */
#ifndef LPG_KERNELS_SKINNY8_PLAN_H
#define LPG_KERNELS_SKINNY8_PLAN_H

#include "../../internal.h"

enum {
  LPG_SKINNY8_TILE_N = 64,
  LPG_SKINNY8_GROUPS = 4,
  LPG_SKINNY8_BLOCK_K = 256,
  LPG_SKINNY8_HEAD_BYTES = 1536 /* sums and scales of rows of X, scales of rows */
};

typedef struct lpg_skinny8_plan {
  int32_t split_k, slice_blocks, parts, part_blocks; /* k blocks of a slice, and of a part of it */
  int32_t m_tiles, clusters, tiles,
      rounds;                 /* clusters, work tiles of rows and rounds: of each of the row of X work tiles */
  int32_t share;              /* rows of a round that a CTA stores */
  int32_t pitch;              /* of the sums of these rows for a row of X, so that rows of X begin in different banks */
  int32_t x_at, shared_bytes; /* in shared memory: where X begins, behind the sums */
} lpg_skinny8_plan;

/* Work tiles that a CTA has at once. */
LPG_FN int32_t lpg_skinny8_each(const lpg_skinny8_plan *p) { return LPG_SKINNY8_GROUPS / p->parts; }

#endif
