/* Integer weights by few rows of integer activations (tokens), multiplied as bytes without any image: plain arithmetic,
 * for C and CUDA.
 *
 * K is cut into slices of blocks of 256 columns, one for each block of threads of a cluster, which keeps its slice of
 * X. An item is 64 rows of W. Four groups of four warps multiply: `parts` of them share an item's slice of K. In a
 * round every group has its part of one item; then the cluster adds up what belongs together. X is cut into token items
 * of 8, 16, 32 or 64 rows, which other clusters have. */
#ifndef LPG_BITSERIAL_PLANES_FEW_PLAN_H
#define LPG_BITSERIAL_PLANES_FEW_PLAN_H

#include "../../internal.h"

enum {
  LPG_FEW_ROWS = 64,
  LPG_FEW_GROUPS = 4,
  LPG_FEW_BLOCK_K = 256,
  LPG_FEW_HEAD_BYTES = 1536 /* sums and scales of tokens, scales of rows */
};

typedef struct lpg_few_plan {
  int32_t slices, slice_blocks, parts, part_blocks; /* blocks of columns of a slice, and of a part of it */
  int32_t token_items, clusters, items, rounds;     /* clusters, items of rows and rounds: of each of the token items */
  int32_t share;                                    /* rows of a round that a block of threads stores */
  int32_t pitch;              /* of the sums of these rows for a token, so that tokens begin in different banks */
  int32_t x_at, shared_bytes; /* in shared memory: where X begins, behind the sums */
} lpg_few_plan;

/* Items that a block of threads has at once. */
LPG_FN int32_t lpg_few_each(const lpg_few_plan *p) { return LPG_FEW_GROUPS / p->parts; }

/* Nanoseconds that a block of columns takes when all groups have one: making bytes of words, multiplying, and waiting
 * for words, or as long as it takes to bring them. Token items that run at once read the same words, from L2. */
static inline double lpg_few_block_cost(int bits, int tokens, int32_t token_items) {
  const double copy = 115.0 * bits * (1.0 + 1.0 / token_items);
  const double decode = (bits & (bits - 1)) == 0 ? 510.0 : 880.0; /* fields that are at the same place of every word */
  const double all = decode +
                     (tokens > 32   ? 200.0
                      : tokens > 16 ? 120.0
                      : tokens > 8  ? 70.0
                                    : 0.0) +
                     110.0 * bits / token_items;
  return copy > all ? copy : all;
}

/* Nanoseconds, measured on an H200, 2026-11-22: 1, 2 and 3 bits by 1 and 64 rows, 1k x 1k to 14k x 4k, with each number
 * of slices and parts. */
static inline double lpg_few_cost(const lpg_few_plan *p, int bits, int tokens, int32_t at_once) {
  const double block = lpg_few_block_cost(bits, tokens, p->token_items), sums = 20.0 * tokens;
  const double together = p->slices > 1 ? 300.0 + 50.0 * tokens : 0.0; /* sums go through the cluster */
  const int32_t waves = (p->clusters * p->token_items + at_once - 1) / at_once;
  const double rounds = p->rounds * (p->part_blocks * block + sums + together) + (p->rounds - 1) * 1500.0;
  return 1500.0 + waves * (1600.0 + 4.5 * tokens * p->slice_blocks + rounds);
}

/* The plan for m rows of X in items of `tokens` (8 to 64); 0 if no slice of X is small enough for shared memory. */
static inline int lpg_few_make_plan(const lpg_plan *weights, int64_t m, int tokens, const lpg_device *device,
                                    lpg_few_plan *plan, double *cost) {
  const int32_t blocks = (int32_t)((weights->desc.k + LPG_FEW_BLOCK_K - 1) / LPG_FEW_BLOCK_K);
  int found = 0;
  for (int i = 0; i < LPG_CLUSTER_SIZES; i++) {
    for (int32_t parts = 1; parts <= LPG_FEW_GROUPS; parts *= 2) {
      lpg_few_plan p = LPG_ZERO;
      p.slices = 1 << i;
      p.parts = parts;
      p.slice_blocks = (blocks + p.slices - 1) / p.slices;
      p.part_blocks = (p.slice_blocks + parts - 1) / parts;
      p.items = (int32_t)((weights->desc.n + LPG_FEW_ROWS - 1) / LPG_FEW_ROWS);
      p.token_items = (int32_t)((m + tokens - 1) / tokens);
      const int32_t wanted = (p.items + lpg_few_each(&p) - 1) / lpg_few_each(&p), all = device->clusters[p.slices];
      const int32_t at_once = all > p.token_items ? all / p.token_items : 1; /* of a token item's */
      if (all < 1) continue;
      p.clusters = wanted < at_once ? wanted : at_once;
      p.rounds = p.clusters > 0 ? (wanted + p.clusters - 1) / p.clusters : 0;
      p.share = LPG_FEW_ROWS * lpg_few_each(&p) / p.slices;
      p.pitch = p.share + 4;
      p.x_at = (LPG_FEW_HEAD_BYTES + p.slices * parts * tokens * p.pitch * 4 + 1023) / 1024 * 1024;
      p.shared_bytes = p.x_at + p.slice_blocks * LPG_FEW_BLOCK_K * tokens;
      if (p.shared_bytes > device->shared_memory) continue;
      const double ns = lpg_few_cost(&p, weights->bits, tokens, all);
      if (found && ns >= *cost) continue;
      *cost = ns;
      found = 1;
      *plan = p;
    }
  }
  return found;
}

#endif
