/* How many rows of X of 8 bits by weights that become bytes are cut into pieces: plain arithmetic, for C and CUDA.
 *
 * An item is 128 or 256 rows of weights by 32 to 256 rows of X (tokens). K is cut into stages, and these into
 * slices, one for each block of threads of a cluster, whose sums are added up. Clusters take items in turn, of which
 * the last may come in halves of their tokens.
 *
 * X is brought to an image first: for every 128 columns all tokens after one another, 128 bytes each, as the tensor
 * cores read them: of every 16 columns in the order of packed weights, and 16-byte piece i at i ^ (token % 8). */
#ifndef LPG_KERNELS_OCTETS_PLAN_H
#define LPG_KERNELS_OCTETS_PLAN_H

#include "../epilogue/sums.h"

enum {
  LPG_OCTETS_ROWS = 256,   /* of an item, the most */
  LPG_OCTETS_TOKENS = 256, /* of an item, the most */
  LPG_OCTETS_WARPS = 8,    /* that multiply, each one row tile or two */
  LPG_OCTETS_COPY_WARPS = 4,
  LPG_OCTETS_BAND = 12, /* items of a band, of rows */
  LPG_OCTETS_X_K = 128, /* columns that stand together in the image */
  LPG_OCTETS_MOST_STAGE_K = 256,
  LPG_OCTETS_MOST_STAGES = 16,
  LPG_OCTETS_BARRIER_BYTES = 256
};

/* The items that there are kernels for: tokens, and row tiles of a warp. */
#define LPG_OCTETS_ITEMS(item) item(32, 1) item(64, 1) item(128, 1) item(32, 2) item(64, 2) item(128, 2) item(256, 1)

/* Columns of a stage: whole tiles. */
LPG_FN int lpg_octets_stage_k(int bits, int tokens, int row_tiles) {
  const int small = tokens < LPG_OCTETS_TOKENS && row_tiles == 1;
  return lpg_tile_k(bits) > LPG_OCTETS_X_K || small ? LPG_OCTETS_MOST_STAGE_K : LPG_OCTETS_X_K;
}

typedef struct lpg_octets_item {
  int tokens, row_tiles;
} lpg_octets_item;

LPG_FN int lpg_octets_rows(int row_tiles) { return row_tiles * LPG_OCTETS_WARPS * LPG_TILE_ROWS; }

/* Whether the last items may come in halves of their tokens: of the largest, 128 rows by 256 tokens or 256 by 128. */
LPG_FN int lpg_octets_has_halves(int tokens, int row_tiles) { return tokens * row_tiles == 256; }

/* Bytes of a stage's scales (2 each) and zeros (1 each): one of each for every row and 128 columns. */
LPG_FN int lpg_octets_numbers_bytes(int rows, int stage_k) { return rows * (stage_k / LPG_OCTETS_X_K) * 3; }

/* The stored code that is 0, where all groups have the same. */
static inline int64_t lpg_octets_zero(const lpgemm_weight_desc_t *d) {
  return (d->zero == LPGEMM_ZERO_CONSTANT ? (int64_t)d->zero_constant : 0) - lpg_integer_offset(d->type);
}

/* Of 4 and 8 bits: whether there are kernels for zeros in the middle of the codes, which are less work. */
LPG_FN int lpg_octets_has_centered(int bits) { return bits == 4 || bits == 8; }

/* What weights become. */
typedef enum lpg_octets_bytes {
  LPG_OCTETS_CENTERED,  /* integers whose zero is the middle of the codes */
  LPG_OCTETS_LESS_ZERO, /* other integers */
  LPG_OCTETS_FLOATS
} lpg_octets_bytes;

/* Which of the kernels a problem is for. */
typedef struct lpg_octets_form {
  int bits;
  int by_e4m3;             /* X and the bytes of weights are e4m3, else int8 */
  int grouped;             /* scales, and zeros, come with the stages: they are not one a row */
  lpg_octets_bytes become; /* where sums of 128 columns become fp32 */
} lpg_octets_form;

static inline lpg_octets_form lpg_octets_form_of(const lpg_plan *weights, lpgemm_dtype_t x_type) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  const int several = weights->group.count > 1, zeros = d->zero == LPGEMM_ZERO_PER_GROUP;
  lpg_octets_form f = {weights->bits, x_type == LPGEMM_E4M3, 0, LPG_OCTETS_LESS_ZERO};
  f.grouped = (several && (d->scale_type != 0 || zeros)) || (f.by_e4m3 && zeros);
  if (lpg_kind(d->type) == LPGEMM_KIND_FLOAT) {
    f.become = LPG_OCTETS_FLOATS;
  } else if (lpg_octets_has_centered(f.bits) && !zeros && lpg_octets_zero(d) == (int64_t)1 << (f.bits - 1)) {
    f.become = LPG_OCTETS_CENTERED;
  }
  return f;
}

/* Whether the sums of 128 columns become fp32, with or without scales: octets_units.cuh. */
LPG_FN int lpg_octets_promotes(lpg_octets_form form) { return form.by_e4m3 || form.grouped; }

/* Which items there are: what fits registers and shared memory, and pays. */
LPG_FN int lpg_octets_has_item(int promotes, int bits, int tokens, int row_tiles) {
  if (!promotes) return tokens < LPG_OCTETS_TOKENS;
  if (tokens == LPG_OCTETS_TOKENS) return lpg_tile_k(bits) <= LPG_OCTETS_X_K;
  return row_tiles == 1 || tokens < 128 || bits == 1 || bits % 2 == 0;
}

typedef struct lpg_octets_plan {
  int32_t k_stages;               /* of a row */
  int32_t row_items, token_items; /* tiles of rows and of tokens */
  int32_t whole;                  /* items; those that are left come in halves, last */
  int32_t slices, groups;         /* blocks of threads of a cluster; clusters */
  lpg_shares part;                /* stages of a slice */
  int32_t stages;                 /* in shared memory */
  int32_t x_bytes, w_bytes;       /* of a stage */
  int32_t numbers_bytes;          /* of a stage, with scales of groups */
  /* offsets in shared memory */
  int32_t factors, sums, x_ring, w_ring, numbers_ring, shared_bytes;
} lpg_octets_plan;

/* Tokens that the image has room for. */
static inline int64_t lpg_octets_tokens(int64_t m) { return (m + 7) / 8 * 8; }

/* What a call makes in its workspace, where it begins: the image, the sums of tokens, and of rows of weights the factor
 * (fp32) and the offset less the zero (int32). There is room to read all of an item. */
typedef struct lpg_octets_workspace {
  int64_t x_sums, factors, offsets, bytes;
} lpg_octets_workspace;

static inline lpg_octets_workspace lpg_octets_workspace_of(const lpg_plan *weights, int64_t m) {
  const int64_t stage_k = LPG_OCTETS_MOST_STAGE_K, tokens = lpg_octets_tokens(m);
  const int64_t rows = (weights->desc.n + LPG_OCTETS_ROWS - 1) / LPG_OCTETS_ROWS * LPG_OCTETS_ROWS;
  lpg_octets_workspace w;
  w.x_sums = (weights->desc.k + stage_k - 1) / stage_k * stage_k * tokens;
  w.factors = w.x_sums + (tokens + LPG_OCTETS_TOKENS) * 4;
  w.offsets = w.factors + rows * 4;
  w.bytes = w.offsets + rows * 4;
  return w;
}

/* Lays out shared memory; 0 if it does not fit. */
static inline int lpg_octets_lay_out(lpg_octets_plan *p, lpg_octets_item item, int64_t shared_memory) {
  p->factors = LPG_OCTETS_BARRIER_BYTES;
  p->sums = p->factors + LPG_OCTETS_ROWS * 4;
  p->x_ring = p->sums;
  if (p->slices == 1) { /* a warp's sums of a few tokens; of slices they lie where the stages were */
    p->x_ring += LPG_OCTETS_WARPS * lpg_sums_bytes(LPG_PASS_TOKENS, item.row_tiles * LPG_TILE_ROWS);
  }
  p->x_ring = lpg_round_up_to(p->x_ring, 1024); /* swizzled rows */
  p->stages = (int32_t)((shared_memory - p->x_ring) / (p->x_bytes + p->w_bytes + p->numbers_bytes));
  if (p->stages > LPG_OCTETS_MOST_STAGES) p->stages = LPG_OCTETS_MOST_STAGES;
  if (p->stages < 2) return 0;
  p->w_ring = p->x_ring + p->stages * p->x_bytes;
  p->numbers_ring = p->w_ring + p->stages * p->w_bytes;
  p->shared_bytes = p->numbers_ring + p->stages * p->numbers_bytes;
  if (p->slices > 1) {
    p->sums = p->x_ring;
    if (p->numbers_ring < p->sums + lpg_sums_bytes(item.tokens, lpg_octets_rows(item.row_tiles))) return 0;
  }
  return 1;
}

/* Nanoseconds that a stage of so many tokens of an item may take, at the speed of the tensor cores or of its share of
 * the memory (measured on the H200, docs/performance.md). */
static inline double lpg_octets_stage_ns(lpg_octets_item item, lpg_octets_form form, int tokens) {
  const int bits = form.bits, rows = lpg_octets_rows(item.row_tiles);
  const double columns = lpg_octets_stage_k(bits, item.tokens, item.row_tiles) / 128.0, share = rows / 256.0;
  const double read = rows * 16.0 * bits / 36.0;
  const int zeros_take = form.become == LPG_OCTETS_LESS_ZERO && (form.grouped || !form.by_e4m3);
  const double zeros = !zeros_take ? 0.0 : form.by_e4m3 ? 60.0 : lpg_is_pow2_width(bits) ? 130.0 : 280.0;
  const double scales = form.by_e4m3 && form.grouped ? 100.0 : 0.0;
  const int promotes = lpg_octets_promotes(form);
  const double work =
      promotes ? 130.0 + share * (140.0 + 3.85 * tokens + scales + zeros) : 30.0 + share * (220.0 + 2.9 * tokens);
  return columns * (read > work ? read : work);
}

/* Nanoseconds of a stage, and of outputs, whole or added up over slices; and of items of half the tokens. */
typedef struct lpg_octets_pace {
  double stage, store, add, half_stage, half_store;
} lpg_octets_pace;

static inline lpg_octets_pace lpg_octets_pace_of(lpg_octets_item item, lpg_octets_form form) {
  const double share = lpg_octets_rows(item.row_tiles) / 256.0, store = share * 13.0 * item.tokens;
  const lpg_octets_pace pace = {lpg_octets_stage_ns(item, form, item.tokens), 800.0 + store,
                                1000.0 + share * (lpg_octets_promotes(form) ? 60.0 : 45.0) * item.tokens,
                                lpg_octets_stage_ns(item, form, item.tokens / 2), 800.0 + store / 2.0};
  return pace;
}

/* Nanoseconds that the plan may take: items in turn. */
static inline double lpg_octets_cost(const lpg_octets_plan *p, const lpg_octets_pace *pace) {
  const int rounds = (p->whole + p->groups - 1) / p->groups, halves = p->whole < p->row_items * p->token_items;
  const int stages = p->part.each + (p->part.more > 0);
  return rounds * (stages * pace->stage + (p->slices > 1 ? pace->add : pace->store)) +
         halves * (stages * pace->half_stage + pace->half_store) + 1500.0;
}

/* What a plan with such items has however they are cut; 0 if there are none of them. */
static inline int lpg_octets_frame(const lpg_plan *weights, lpg_octets_form form, int64_t m, lpg_octets_item item,
                                   lpg_octets_plan *p) {
  const lpg_octets_plan none = LPG_ZERO;
  const int stage_k = lpg_octets_stage_k(weights->bits, item.tokens, item.row_tiles),
            rows = lpg_octets_rows(item.row_tiles);
  *p = none;
  p->k_stages = (int32_t)((weights->desc.k + stage_k - 1) / stage_k);
  p->row_items = (int32_t)((weights->desc.n + rows - 1) / rows);
  p->token_items = (int32_t)((m + item.tokens - 1) / item.tokens);
  p->x_bytes = item.tokens * stage_k;
  p->w_bytes = rows * stage_k / 8 * weights->bits;
  p->numbers_bytes = form.grouped ? lpg_octets_numbers_bytes(rows, stage_k) : 0;
  return lpg_octets_has_item(lpg_octets_promotes(form), form.bits, item.tokens, item.row_tiles) &&
         (int64_t)p->row_items * p->token_items <= INT32_MAX;
}

/* Cuts K into slices for clusters of so many blocks; 0 if it has no so many, or the device none that run at once. */
static inline int lpg_octets_slice(const lpg_device *device, lpg_octets_item item, int64_t m, int slices_log2,
                                   lpg_octets_plan *p) {
  const int32_t most = slices_log2 > 0 ? device->clusters[1 << slices_log2] : device->units;
  const int32_t items = p->row_items * p->token_items;
  p->slices = 1 << slices_log2;
  if (most <= 0 || p->slices > p->k_stages) return 0;
  p->groups = items < 1 ? 1 : items < most ? items : most;
  p->whole = p->slices == 1 && lpg_octets_has_halves(item.tokens, item.row_tiles)
                 ? lpg_whole_items(items, p->groups, m, item.tokens)
                 : items;
  p->part = lpg_shares_of(p->k_stages, p->slices);
  return 1;
}

/* All items, as an array. */
#define LPG_OCTETS_ENTRY(tokens, row_tiles) {tokens, row_tiles},
#define LPG_OCTETS_LIST(name) static const lpg_octets_item name[] = {LPG_OCTETS_ITEMS(LPG_OCTETS_ENTRY)}

/* Whether there is a plan at all. */
static inline int lpg_octets_fits(const lpg_plan *weights, lpgemm_dtype_t x_type, int64_t m, const lpg_device *device) {
  const lpg_octets_form form = lpg_octets_form_of(weights, x_type);
  LPG_OCTETS_LIST(items);
  for (int i = 0; i < (int)(sizeof items / sizeof items[0]); i++) {
    lpg_octets_plan p;
    if (!lpg_octets_frame(weights, form, m, items[i], &p)) continue;
    for (int log2 = 0; log2 < LPG_CLUSTER_SIZES; log2++) {
      if (lpg_octets_slice(device, items[i], m, log2, &p) && lpg_octets_lay_out(&p, items[i], device->shared_memory))
        return 1;
    }
  }
  return 0;
}

/* The plan and the item (of LPG_OCTETS_ITEMS) that take the least time, and that time; 0 if there is none. */
static inline int lpg_octets_choose(const lpg_plan *weights, lpgemm_dtype_t x_type, int64_t m, const lpg_device *device,
                                    lpg_octets_plan *plan, int *item, double *cost) {
  const lpg_octets_form form = lpg_octets_form_of(weights, x_type);
  LPG_OCTETS_LIST(items);
  int found = 0;
  for (int i = 0; i < (int)(sizeof items / sizeof items[0]); i++) {
    const lpg_octets_pace pace = lpg_octets_pace_of(items[i], form);
    lpg_octets_plan p;
    if (!lpg_octets_frame(weights, form, m, items[i], &p)) continue;
    for (int log2 = 0; log2 < LPG_CLUSTER_SIZES; log2++) {
      if (!lpg_octets_slice(device, items[i], m, log2, &p)) continue;
      const double ns = lpg_octets_cost(&p, &pace);
      if ((found && ns >= *cost) || !lpg_octets_lay_out(&p, items[i], device->shared_memory)) continue;
      found = 1;
      *plan = p;
      *item = i;
      *cost = ns;
    }
  }
  return found;
}

#endif
