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

/* Nanoseconds that a k block takes when all groups have one: making bytes of words, multiplying, and waiting
 * for words, or as long as it takes to load them. Token work tiles that run at once read the same words, from L2. */
static inline double lpg_skinny8_block_cost(int bits, int x_rows, int32_t m_tiles) {
  const double copy = 115.0 * bits * (1.0 + 1.0 / m_tiles);
  const double decode = (bits & (bits - 1)) == 0 ? 510.0 : 880.0; /* fields that are at the same place of every word */
  const double all = decode +
                     (x_rows > 32   ? 200.0
                      : x_rows > 16 ? 120.0
                      : x_rows > 8  ? 70.0
                                    : 0.0) +
                     110.0 * bits / m_tiles;
  return copy > all ? copy : all;
}

/* Nanoseconds, measured on an H200, 2026-11-22: 1, 2 and 3 bits by 1 and 64 rows, 1k x 1k to 14k x 4k, with each number
 * of parts of K and parts. */
static inline double lpg_skinny8_cost(const lpg_skinny8_plan *p, int bits, int x_rows, int32_t at_once) {
  const double block = lpg_skinny8_block_cost(bits, x_rows, p->m_tiles), sums = 20.0 * x_rows;
  const double together = p->split_k > 1 ? 300.0 + 50.0 * x_rows : 0.0; /* sums go through the cluster */
  const int32_t waves = (p->clusters * p->m_tiles + at_once - 1) / at_once;
  const double rounds = p->rounds * (p->part_blocks * block + sums + together) + (p->rounds - 1) * 1500.0;
  return 1500.0 + waves * (1600.0 + 4.5 * x_rows * p->slice_blocks + rounds);
}

/* The plan for m rows of X in work tiles of `rows of X` (8 to 64); 0 if no slice of X is small enough for shared
 * memory. */
static inline int lpg_skinny8_make_plan(const lpg_packed *weights, int64_t m, int x_rows, const lpg_device *device,
                                        lpg_skinny8_plan *plan, double *cost) {
  const int32_t blocks = (int32_t)((weights->desc.k + LPG_SKINNY8_BLOCK_K - 1) / LPG_SKINNY8_BLOCK_K);
  int found = 0;
  for (int i = 0; i < LPG_CLUSTER_SIZES; i++) {
    for (int32_t parts = 1; parts <= LPG_SKINNY8_GROUPS; parts *= 2) {
      lpg_skinny8_plan p = LPG_ZERO;
      p.split_k = 1 << i;
      p.parts = parts;
      p.slice_blocks = (blocks + p.split_k - 1) / p.split_k;
      p.part_blocks = (p.slice_blocks + parts - 1) / parts;
      p.tiles = (int32_t)((weights->desc.n + LPG_SKINNY8_TILE_N - 1) / LPG_SKINNY8_TILE_N);
      p.m_tiles = (int32_t)((m + x_rows - 1) / x_rows);
      const int32_t wanted = (p.tiles + lpg_skinny8_each(&p) - 1) / lpg_skinny8_each(&p),
                    all = device->clusters[p.split_k];
      const int32_t at_once = all > p.m_tiles ? all / p.m_tiles : 1; /* of a row of X work tile's */
      if (all < 1) continue;
      p.clusters = wanted < at_once ? wanted : at_once;
      p.rounds = p.clusters > 0 ? (wanted + p.clusters - 1) / p.clusters : 0;
      p.share = LPG_SKINNY8_TILE_N * lpg_skinny8_each(&p) / p.split_k;
      p.pitch = p.share + 4;
      p.x_at = (LPG_SKINNY8_HEAD_BYTES + p.split_k * parts * x_rows * p.pitch * 4 + 1023) / 1024 * 1024;
      p.shared_bytes = p.x_at + p.slice_blocks * LPG_SKINNY8_BLOCK_K * x_rows;
      if (p.shared_bytes > device->shared_memory) continue;
      const double ns = lpg_skinny8_cost(&p, weights->bits, x_rows, all);
      if (found && ns >= *cost) continue;
      *cost = ns;
      found = 1;
      *plan = p;
    }
  }
  return found;
}

#endif
