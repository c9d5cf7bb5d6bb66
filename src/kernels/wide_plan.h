/* How a problem of many rows is cut into pieces: plain arithmetic, for C and CUDA.
 *
 * An item is a tile of 256 rows of weights by 32, 64 or 128 rows of X (tokens). K is cut into slices of whole blocks of
 * 256 columns; the blocks of threads of a cluster take one slice each of the same item, and add their sums up. Clusters
 * take items in turn, in bands of row tiles, so that those that run at the same time read the same weights and X. */
#ifndef LPG_KERNELS_WIDE_PLAN_H
#define LPG_KERNELS_WIDE_PLAN_H

#include "blocks.h"

enum {
  LPG_WIDE_ROW_TILES = 2, /* of a warp */
  LPG_WIDE_WARPS = 8,     /* that multiply */
  LPG_WIDE_ROWS = LPG_WIDE_ROW_TILES * LPG_WIDE_WARPS * LPG_TILE_ROWS,
  LPG_WIDE_BAND = 12,         /* row tiles of a band */
  LPG_WIDE_STAGE_K = 64,      /* columns of a stage of X */
  LPG_WIDE_PASS_TOKENS = 16,  /* whose sums are exchanged at once */
  LPG_WIDE_SUMS_STRIDE = 260, /* floats; 4 more than rows, so that tokens begin in different banks */
  LPG_WIDE_MOST_STAGES = 16,
  LPG_WIDE_BARRIER_BYTES = 1024
};

/* ---- what a kernel's template and the weights fix ---- */

/* Steps of 16 columns of a stage of weights: whole tiles. */
LPG_FN int lpg_wide_stage_steps(int bits) { return lpg_tile_k(bits) < LPG_WIDE_STAGE_K ? 4 : lpg_tile_k(bits) / LPG_STEP_K; }

/* Steps that share a scale, and blocks of columns whose scales are converted at once. */
LPG_FN int lpg_wide_granule(int general) { return general ? 1 : 8; }
LPG_FN int lpg_wide_chunk(int general) { return general ? 1 : 4; }

/* Pairs of scales of a chunk, for the two row tiles of a warp. */
LPG_FN int lpg_wide_pairs(int general) {
  return lpg_wide_chunk(general) * LPG_WIDE_ROW_TILES * (LPG_BLOCK_K / LPG_STEP_K / lpg_wide_granule(general)) * 8;
}

typedef struct lpg_wide_kind {
  int tokens, bits;
  int table_bytes;  /* the decoder's, in shared memory */
  int number_bytes; /* a warp's table of scales and zeros */
  int raw_bytes;    /* scales, zeros and row exponents of a chunk, as they are packed */
  int x_stage_bytes, w_stage_bytes;
} lpg_wide_kind;

static inline lpg_wide_kind lpg_wide_kind_of(const lpg_plan *weights, int tokens, int general) {
  const int bits = weights->bits, chunk = lpg_wide_chunk(general);
  const int is_codebook = lpg_kind(weights->desc.type) == LPGEMM_KIND_CODEBOOK;
  lpg_wide_kind kind;
  kind.tokens = tokens;
  kind.bits = bits;
  kind.table_bytes = is_codebook ? (1 << 2 * bits) * LPG_LANES * 4 : 0;
  kind.number_bytes = lpg_wide_pairs(general) * (general ? 12 : 4);
  kind.raw_bytes = LPG_WIDE_ROW_TILES * LPG_TILE_ROWS;
  for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++) {
    kind.raw_bytes += LPG_WIDE_ROW_TILES * lpg_chunk_bytes(weights, (lpg_section_id)id, chunk);
  }
  kind.x_stage_bytes = tokens * LPG_WIDE_STAGE_K * 2;
  kind.w_stage_bytes = LPG_WIDE_ROWS * lpg_wide_stage_steps(bits) * LPG_STEP_K / 8 * bits;
  return kind;
}

/* ---- the plan ---- */

typedef struct lpg_wide_plan {
  int32_t blocks;                 /* of 256 columns */
  int32_t row_items, token_items; /* tiles of rows and of tokens */
  int32_t slices, groups;         /* of K; clusters, of so many blocks of threads */
  lpg_shares slice;               /* blocks of a slice */
  int32_t x_stages, w_stages;
  /* offsets in shared memory */
  int32_t table, factors, sums, warp, warp_bytes, number_bytes, x_ring, w_ring, shared_bytes;
} lpg_wide_plan;

/* Lays out shared memory; 0 if it does not fit. The rings of X and of weights hold about as many columns. */
static inline int lpg_wide_lay_out(lpg_wide_plan *p, const lpg_wide_kind *kind, int64_t shared_memory) {
  const int w_columns = lpg_wide_stage_steps(kind->bits) * LPG_STEP_K;
  p->number_bytes = kind->number_bytes;
  p->warp_bytes = lpg_round_up_to(kind->number_bytes + kind->raw_bytes, 128);
  p->table = LPG_WIDE_BARRIER_BYTES;
  p->factors = p->table + kind->table_bytes;
  p->sums = p->factors + 2 * LPG_WIDE_ROWS * 4;
  p->warp = p->sums + 2 * LPG_WIDE_PASS_TOKENS * LPG_WIDE_SUMS_STRIDE * 4;
  p->x_ring = lpg_round_up_to(p->warp + LPG_WIDE_WARPS * p->warp_bytes, 1024); /* swizzled rows */
  const int64_t room = shared_memory - p->x_ring;
  const int64_t column_bytes = kind->x_stage_bytes / LPG_WIDE_STAGE_K + kind->w_stage_bytes / w_columns;
  const int64_t w_stages = room / column_bytes / w_columns;
  p->w_stages = w_stages < 2 ? 2 : w_stages > LPG_WIDE_MOST_STAGES ? LPG_WIDE_MOST_STAGES : (int32_t)w_stages;
  const int64_t x_stages = (room - (int64_t)p->w_stages * kind->w_stage_bytes) / kind->x_stage_bytes;
  if (x_stages < 2) return 0;
  p->x_stages = x_stages > LPG_WIDE_MOST_STAGES ? LPG_WIDE_MOST_STAGES : (int32_t)x_stages;
  p->w_ring = p->x_ring + p->x_stages * kind->x_stage_bytes;
  p->shared_bytes = p->w_ring + p->w_stages * kind->w_stage_bytes;
  return 1;
}

/* Nanoseconds that the plan may take: items in turn, each at the speed of the tensor cores, of decoding or of the
 * memory. */
static inline double lpg_wide_cost(const lpg_wide_plan *p, const lpg_wide_kind *kind) {
  const int items = p->row_items * p->token_items, rounds = (items + p->groups - 1) / p->groups;
  const int blocks = p->slice.each + (p->slice.more > 0);
  const double multiply = 19.5 * kind->tokens, decode = 900.0, read = (double)LPG_WIDE_ROWS * 32 * kind->bits / 30.0;
  double block = multiply > decode ? multiply : decode;
  if (read > block) block = read;
  return rounds * (blocks * block + 1500.0 + kind->tokens * 15.0 + (p->slices > 1 ? 1000.0 + kind->tokens * 10.0 : 0)) + 2000.0;
}

/* The problem in so many slices; 0 if it has no so many, or the device none that run at once. */
static inline int lpg_wide_slice(const lpg_wide_kind *kind, const lpg_plan *weights, int64_t m,
                                 const lpg_device *device, int slices_log2, lpg_wide_plan *p) {
  const int32_t most = slices_log2 > 0 ? device->clusters[slices_log2] : device->units;
  p->blocks = (int32_t)((weights->k_padded + LPG_BLOCK_K - 1) / LPG_BLOCK_K);
  p->row_items = (int32_t)((weights->desc.n + LPG_WIDE_ROWS - 1) / LPG_WIDE_ROWS);
  p->token_items = (int32_t)((m + kind->tokens - 1) / kind->tokens);
  p->slices = 1 << slices_log2;
  if (most <= 0 || (slices_log2 > 0 && p->slices > p->blocks)) return 0;
  const int64_t items = (int64_t)p->row_items * p->token_items;
  p->groups = most < items ? most : (int32_t)items;
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

#endif
