/* How a problem of many rows is cut into pieces: plain arithmetic, for C and CUDA.
 *
 * An item is a tile of 128 or 256 rows of weights, dealt out to 8 or 16 warps, by 32, 64 or 128 rows of X (tokens). K
 * is cut into slices of whole blocks of 256 columns; the blocks of threads of a cluster take one slice each of the same
 * item, and add their sums up. Clusters take items in turn, in bands of row tiles, so that those that run at the same
 * time read the same weights and X. */
#ifndef LPG_KERNELS_WIDE_PLAN_H
#define LPG_KERNELS_WIDE_PLAN_H

#include "blocks.h"

enum {
  LPG_WIDE_COPY_WARPS = 4, /* that bring what the others multiply */
  LPG_WIDE_ROWS = 256,     /* of an item, the most */
  LPG_WIDE_TOKENS = 128,   /* of an item, the most */
  LPG_WIDE_BAND = 12,      /* items of a band, of rows */
  LPG_WIDE_STAGE_K = 64,   /* columns of a stage of X */
  LPG_WIDE_MOST_STAGES = 16,
  LPG_WIDE_BARRIER_BYTES = 512
};

/* ---- what a kernel's template and the weights fix ---- */

/* The items that there are kernels for: tokens, and warps that multiply. */
#define LPG_WIDE_ITEMS(item) item(32, 8) item(32, 16) item(64, 8) item(64, 16) item(128, 8)

/* Steps of 16 columns of a stage of weights: whole tiles. */
LPG_FN int lpg_wide_stage_steps(int bits) {
  return lpg_tile_k(bits) < LPG_WIDE_STAGE_K ? 4 : lpg_tile_k(bits) / LPG_STEP_K;
}

/* Row tiles of a warp, and rows of an item. */
LPG_FN int lpg_wide_row_tiles(int tokens) { return tokens == LPG_WIDE_TOKENS ? 2 : 1; }
LPG_FN int lpg_wide_rows(int tokens, int warps) { return lpg_wide_row_tiles(tokens) * warps * LPG_TILE_ROWS; }

/* Steps that share a scale. */
LPG_FN int lpg_wide_granule(int general) { return general ? 1 : 8; }

/* The general form: a warp's table of scales, what they lack, and zeros, for its row tiles and a block of columns. */
LPG_FN int lpg_wide_pairs(int row_tiles) { return row_tiles * (LPG_BLOCK_K / LPG_STEP_K) * 8; }

/* The other: a slot with the scales of an item's rows for a block, as they are packed, and the row exponents. */
enum {
  LPG_WIDE_SCALE_BYTES = LPG_WIDE_ROWS * 2 * 2, /* two groups of 16-bit numbers */
  LPG_WIDE_SLOT_BYTES = LPG_WIDE_SCALE_BYTES + LPG_WIDE_ROWS
};

typedef struct lpg_wide_kind {
  int tokens, warps, bits, rows;
  int general;
  int table_bytes;  /* the decoder's, in shared memory */
  int number_bytes; /* general: a warp's table of scales and zeros */
  int raw_bytes;    /* general: scales, zeros and row exponents of a block, as they are packed */
  int x_stage_bytes, w_stage_bytes;
} lpg_wide_kind;

static inline lpg_wide_kind lpg_wide_kind_of(const lpg_plan *weights, int tokens, int warps, int general) {
  const int bits = weights->bits, row_tiles = lpg_wide_row_tiles(tokens);
  const int is_codebook = lpg_kind(weights->desc.type) == LPGEMM_KIND_CODEBOOK;
  lpg_wide_kind kind;
  kind.tokens = tokens;
  kind.warps = warps;
  kind.rows = lpg_wide_rows(tokens, warps);
  kind.bits = bits;
  kind.table_bytes = is_codebook ? (1 << 2 * bits) * LPG_LANES * 4 : 0;
  kind.general = general;
  kind.number_bytes = general ? lpg_wide_pairs(row_tiles) * 12 : 0;
  kind.raw_bytes = general ? row_tiles * LPG_TILE_ROWS : 0;
  for (int id = LPG_SECTION_SCALES; general && id <= LPG_SECTION_SUPER_ZEROS; id++) {
    kind.raw_bytes += row_tiles * lpg_chunk_bytes(weights, (lpg_section_id)id, 1);
  }
  kind.x_stage_bytes = tokens * LPG_WIDE_STAGE_K * 2;
  kind.w_stage_bytes = kind.rows * lpg_wide_stage_steps(bits) * LPG_STEP_K / 8 * bits;
  return kind;
}

/* ---- the plan ---- */

typedef struct lpg_wide_plan {
  int32_t blocks;                 /* of 256 columns */
  int32_t row_items, token_items; /* tiles of rows and of tokens */
  int32_t slices, groups;         /* of K; clusters, of so many blocks of threads */
  lpg_shares slice;               /* blocks of a slice */
  int32_t x_stages, w_stages, slots;
  /* offsets in shared memory */
  int32_t table, factors, sums, scales, warp, warp_bytes, number_bytes, x_ring, w_ring, shared_bytes;
} lpg_wide_plan;

/* Lays out shared memory; 0 if it does not fit. A stage of weights is for several of X where tiles are long. One of X
 * that is free must mean that the weights' next is free as well: see the bound of x_stages. */
static inline int lpg_wide_lay_out(lpg_wide_plan *p, const lpg_wide_kind *kind, int64_t shared_memory) {
  const int each = lpg_wide_stage_steps(kind->bits) * LPG_STEP_K / LPG_WIDE_STAGE_K;
  p->number_bytes = kind->number_bytes;
  p->warp_bytes = lpg_round_up_to(kind->number_bytes + kind->raw_bytes, 128);
  p->table = LPG_WIDE_BARRIER_BYTES;
  p->factors = p->table + kind->table_bytes;
  p->sums = p->factors + 2 * LPG_WIDE_ROWS * 4;
  p->scales = p->sums + 2 * LPG_PASS_TOKENS * (LPG_WIDE_ROWS + 4) * 4;
  p->slots = kind->general ? 0 : 2 + (LPG_WIDE_MOST_STAGES - 2) / (LPG_BLOCK_K / LPG_WIDE_STAGE_K); /* as below */
  p->warp = p->scales + p->slots * LPG_WIDE_SLOT_BYTES;
  p->x_ring = lpg_round_up_to(p->warp + kind->warps * p->warp_bytes, 1024); /* swizzled rows */
  const int64_t room = shared_memory - p->x_ring;
  p->x_stages = 0;
  for (int32_t w_stages = 2; w_stages <= LPG_WIDE_MOST_STAGES; w_stages++) {
    const int64_t left = (room - (int64_t)w_stages * kind->w_stage_bytes) / kind->x_stage_bytes;
    const int32_t bound = 1 + each * (w_stages - 1);
    int32_t x_stages = left < bound ? (int32_t)left : bound;
    if (x_stages > LPG_WIDE_MOST_STAGES) x_stages = LPG_WIDE_MOST_STAGES;
    if (x_stages <= p->x_stages) continue;
    p->x_stages = x_stages;
    p->w_stages = w_stages;
  }
  /* A warp that copies brings every fourth stage; with fewer it could take a stage's next turn but one for its next. */
  if (p->x_stages < LPG_WIDE_COPY_WARPS) return 0;
  p->w_ring = p->x_ring + p->x_stages * kind->x_stage_bytes;
  p->shared_bytes = p->w_ring + p->w_stages * kind->w_stage_bytes;
  return 1;
}

/* Nanoseconds that the plan may take: items in turn, each at the speed of decoding and multiplying (measured on the
 * H200, docs/performance.md) or of its share of the memory. */
static inline double lpg_wide_cost(const lpg_wide_plan *p, const lpg_wide_kind *kind) {
  const int items = p->row_items * p->token_items, rounds = (items + p->groups - 1) / p->groups;
  const int blocks = p->slice.each + (p->slice.more > 0);
  const double share = kind->rows / 128.0, read = kind->rows * 32.0 * kind->bits / 30.0;
  const double slower = !kind->general ? 1.0 : kind->tokens == LPG_WIDE_TOKENS ? 2.6 : 1.5;
  const double work = (370.0 + 390.0 * share) * slower + kind->tokens * (3.4 + 6.9 * share);
  return rounds * (blocks * (read > work ? read : work) + 1800.0 + (p->slices > 1 ? 1500.0 : 0.0)) + 2500.0;
}

/* The problem in so many slices; 0 if it has no so many, or the device none that run at once. */
static inline int lpg_wide_slice(const lpg_wide_kind *kind, const lpg_plan *weights, int64_t m,
                                 const lpg_device *device, int slices_log2, lpg_wide_plan *p) {
  const int32_t most = slices_log2 > 0 ? device->clusters[slices_log2] : device->units;
  p->blocks = (int32_t)((weights->k_padded + LPG_BLOCK_K - 1) / LPG_BLOCK_K);
  p->row_items = (int32_t)((weights->desc.n + kind->rows - 1) / kind->rows);
  p->token_items = (int32_t)((m + kind->tokens - 1) / kind->tokens);
  p->slices = 1 << slices_log2;
  if (most <= 0 || (slices_log2 > 0 && p->slices > p->blocks)) return 0;
  const int64_t items = (int64_t)p->row_items * p->token_items;
  if (items > INT32_MAX) return 0;
  p->groups = items < 1 ? 1 : items < most ? (int32_t)items : most;
  p->slice = lpg_shares_of(p->blocks, p->slices);
  return lpg_wide_lay_out(p, kind, device->shared_memory);
}

/* The plan for m rows that takes the least time, and that time; 0 if shared memory does not do. `slices_log2`: -1, or
 * the number of slices is given. */
static inline int lpg_wide_make_plan(const lpg_wide_kind *kind, const lpg_plan *weights, int64_t m,
                                     const lpg_device *device, int slices_log2, lpg_wide_plan *plan, double *cost) {
  int found = 0;
  for (int i = 0; i < LPG_CLUSTER_SIZES; i++) {
    lpg_wide_plan p = LPG_ZERO;
    if ((slices_log2 >= 0 && i != slices_log2) || !lpg_wide_slice(kind, weights, m, device, i, &p)) continue;
    const double ns = lpg_wide_cost(&p, kind);
    if (found && ns >= *cost) continue;
    found = 1;
    *cost = ns;
    *plan = p;
  }
  return found;
}

/* The plan and the item (of LPG_WIDE_ITEMS) that take the least time, and that time; 0 if there is none. */
static inline int lpg_wide_choose(const lpg_plan *weights, int64_t m, int general, const lpg_device *device,
                                  int slices_log2, lpg_wide_plan *plan, int *item, double *cost) {
#define LPG_ITEM(tokens, warps) {tokens, warps},
  static const int items[][2] = {LPG_WIDE_ITEMS(LPG_ITEM)};
#undef LPG_ITEM
  int found = 0;
  for (int i = 0; i < (int)(sizeof items / sizeof items[0]); i++) {
    const lpg_wide_kind kind = lpg_wide_kind_of(weights, items[i][0], items[i][1], general);
    lpg_wide_plan p = LPG_ZERO;
    double ns = 0.0;
    if (!lpg_wide_make_plan(&kind, weights, m, device, slices_log2, &p, &ns) || (found && ns >= *cost)) continue;
    found = 1;
    *plan = p;
    *item = i;
    *cost = ns;
  }
  return found;
}

#endif
