/* How many rows of X of 8 bits by weights that become bytes are cut into pieces: plain arithmetic, for C and CUDA.
 *
 * A work tile is 128 or 256 rows of weights by 32 to 256 rows of X (rows of X). K is cut into stages, and these into
 * parts of K, one for each CTA of a cluster, whose sums are added up. Clusters take work tiles in turn, of which
 * the last may come in halves of their rows of X.
 *
 * X is loaded to an image first: for every 128 columns all rows of X after one another, 128 bytes each, as the tensor
 * cores read them: of every 16 columns in the order of packed weights, and 16-byte piece i at i ^ (row of X % 8). */
#ifndef LPG_KERNELS_GEMM8_PLAN_H
#define LPG_KERNELS_GEMM8_PLAN_H

#include "../epilogue/sums.h"

enum {
  LPG_GEMM8_TILE_N = 256, /* of a work tile, the most */
  LPG_GEMM8_TILE_M = 256, /* of a work tile, the most */
  LPG_GEMM8_WARPS = 8,    /* that multiply, each one row tile or two */
  LPG_GEMM8_PRODUCER_WARPS = 4,
  LPG_GEMM8_BAND = 12, /* work tiles of a band, of rows */
  LPG_GEMM8_X_K = 128, /* columns that stand together in the image */
  LPG_GEMM8_MOST_STAGE_K = 256,
  LPG_GEMM8_MOST_STAGES = 16,
  LPG_GEMM8_BARRIER_BYTES = 256
};

/* The work tiles that there are kernels for: rows of X, and row tiles of a warp. */
#define LPG_GEMM8_TILES(tile) tile(32, 1) tile(64, 1) tile(128, 1) tile(32, 2) tile(64, 2) tile(128, 2) tile(256, 1)

/* Columns of a stage: whole tiles. */
LPG_FN int lpg_gemm8_stage_k(int bits, int tile_m, int row_tiles) {
  const int small = tile_m < LPG_GEMM8_TILE_M && row_tiles == 1;
  return lpg_tile_k(bits) > LPG_GEMM8_X_K || small ? LPG_GEMM8_MOST_STAGE_K : LPG_GEMM8_X_K;
}

typedef struct lpg_gemm8_tile {
  int tile_m, row_tiles;
} lpg_gemm8_tile;

LPG_FN int lpg_gemm8_tile_n(int row_tiles) { return row_tiles * LPG_GEMM8_WARPS * LPG_TILE_ROWS; }

/* Whether the last work tiles may come in halves of their rows of X: of the largest, 128 rows by 256 rows of X or 256
 * by 128. */
LPG_FN int lpg_gemm8_has_halves(int tile_m, int row_tiles) { return tile_m * row_tiles == 256; }

/* Bytes of a stage's scales (2 each) and zeros (1 each): one of each for every row and 128 columns. */
LPG_FN int lpg_gemm8_scales_bytes(int rows, int stage_k) { return rows * (stage_k / LPG_GEMM8_X_K) * 3; }

/* The stored code that is 0, where all groups have the same. */
static inline int64_t lpg_gemm8_zero(const lpgemm_weight_desc_t *d) {
  return (d->zero == LPGEMM_ZERO_CONSTANT ? (int64_t)d->zero_constant : 0) - lpg_integer_offset(d->type);
}

/* Of 4 and 8 bits: whether there are kernels for zeros in the middle of the codes, which are less work. */
LPG_FN int lpg_gemm8_has_centered(int bits) { return bits == 4 || bits == 8; }

/* What weights become. */
typedef enum lpg_gemm8_operand {
  LPG_GEMM8_CENTERED,  /* integers whose zero is the middle of the codes */
  LPG_GEMM8_LESS_ZERO, /* other integers */
  LPG_GEMM8_FLOATS
} lpg_gemm8_operand;

/* Which of the kernels a problem is for. */
typedef struct lpg_gemm8_mode {
  int bits;
  int by_e4m3;              /* X and the bytes of weights are e4m3, else int8 */
  int grouped;              /* scales, and zeros, come with the stages: they are not one a row */
  lpg_gemm8_operand become; /* where sums of 128 columns become fp32 */
} lpg_gemm8_mode;

static inline lpg_gemm8_mode lpg_gemm8_mode_of(const lpg_packed *weights, lpgemm_dtype_t x_type) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  const int several = weights->group.count > 1, zeros = d->zero == LPGEMM_ZERO_PER_GROUP;
  lpg_gemm8_mode f = {weights->bits, x_type == LPGEMM_E4M3, 0, LPG_GEMM8_LESS_ZERO};
  f.grouped = (several && (d->scale_type != 0 || zeros)) || (f.by_e4m3 && zeros);
  if (lpg_kind(d->type) == LPGEMM_KIND_FLOAT) {
    f.become = LPG_GEMM8_FLOATS;
  } else if (lpg_gemm8_has_centered(f.bits) && !zeros && lpg_gemm8_zero(d) == (int64_t)1 << (f.bits - 1)) {
    f.become = LPG_GEMM8_CENTERED;
  }
  return f;
}

/* Whether the sums of 128 columns become fp32, with or without scales: gemm8_units.cuh. */
LPG_FN int lpg_gemm8_promotes(lpg_gemm8_mode form) { return form.by_e4m3 || form.grouped; }

/* Which work tiles there are: what fits registers and shared memory, and pays. */
LPG_FN int lpg_gemm8_has_tile(int promotes, int bits, int tile_m, int row_tiles) {
  if (!promotes) return tile_m < LPG_GEMM8_TILE_M;
  if (tile_m == LPG_GEMM8_TILE_M) return lpg_tile_k(bits) <= LPG_GEMM8_X_K;
  return row_tiles == 1 || tile_m < 128 || bits == 1 || bits % 2 == 0;
}

typedef struct lpg_gemm8_plan {
  int32_t k_stages;          /* of a row */
  int32_t n_tiles, m_tiles;  /* tiles of rows and of rows of X */
  int32_t whole;             /* work tiles; those that are left come in halves, last */
  int32_t split_k, clusters; /* CTAs of a cluster; clusters */
  lpg_partition part;        /* stages of a slice */
  int32_t stages;            /* in shared memory */
  int32_t x_bytes, w_bytes;  /* of a stage */
  int32_t scales_bytes;      /* of a stage, with scales of groups */
  /* offsets in shared memory */
  int32_t factors, sums, x_ring, w_ring, scales_ring, shared_bytes;
} lpg_gemm8_plan;

/* Tokens that the image has room for. */
static inline int64_t lpg_gemm8_x_rows(int64_t m) { return (m + 7) / 8 * 8; }

/* What a call makes in its workspace, where it begins: the image, the sums of rows of X, and of rows of weights the
 * factor (fp32) and the offset less the zero (int32). There is room to read all of a work tile. */
typedef struct lpg_gemm8_workspace {
  int64_t x_sums, factors, offsets, bytes;
} lpg_gemm8_workspace;

static inline lpg_gemm8_workspace lpg_gemm8_workspace_of(const lpg_packed *weights, int64_t m) {
  const int64_t stage_k = LPG_GEMM8_MOST_STAGE_K, tile_m = lpg_gemm8_x_rows(m);
  const int64_t rows = (weights->desc.n + LPG_GEMM8_TILE_N - 1) / LPG_GEMM8_TILE_N * LPG_GEMM8_TILE_N;
  lpg_gemm8_workspace w;
  w.x_sums = (weights->desc.k + stage_k - 1) / stage_k * stage_k * tile_m;
  w.factors = w.x_sums + (tile_m + LPG_GEMM8_TILE_M) * 4;
  w.offsets = w.factors + rows * 4;
  w.bytes = w.offsets + rows * 4;
  return w;
}

/* Lays out shared memory; 0 if it does not fit. */
static inline int lpg_gemm8_lay_out(lpg_gemm8_plan *p, lpg_gemm8_tile tile, int64_t shared_memory) {
  p->factors = LPG_GEMM8_BARRIER_BYTES;
  p->sums = p->factors + LPG_GEMM8_TILE_N * 4;
  p->x_ring = p->sums;
  if (p->split_k == 1) { /* a warp's sums of a few rows of X; of parts of K they lie where the stages were */
    p->x_ring += LPG_GEMM8_WARPS * lpg_sums_bytes(LPG_PASS_ROWS, tile.row_tiles * LPG_TILE_ROWS);
  }
  p->x_ring = lpg_round_up_to(p->x_ring, 1024); /* swizzled rows */
  p->stages = (int32_t)((shared_memory - p->x_ring) / (p->x_bytes + p->w_bytes + p->scales_bytes));
  if (p->stages > LPG_GEMM8_MOST_STAGES) p->stages = LPG_GEMM8_MOST_STAGES;
  if (p->stages < 2) return 0;
  p->w_ring = p->x_ring + p->stages * p->x_bytes;
  p->scales_ring = p->w_ring + p->stages * p->w_bytes;
  p->shared_bytes = p->scales_ring + p->stages * p->scales_bytes;
  if (p->split_k > 1) {
    p->sums = p->x_ring;
    if (p->scales_ring < p->sums + lpg_sums_bytes(tile.tile_m, lpg_gemm8_tile_n(tile.row_tiles))) return 0;
  }
  return 1;
}

/* Nanoseconds that a stage of so many rows of X of a work tile may take, at the speed of the tensor cores or of its
 * share of the memory (measured on the H200, docs/performance.md). */
static inline double lpg_gemm8_stage_ns(lpg_gemm8_tile tile, lpg_gemm8_mode form, int tile_m) {
  const int bits = form.bits, rows = lpg_gemm8_tile_n(tile.row_tiles);
  const double columns = lpg_gemm8_stage_k(bits, tile.tile_m, tile.row_tiles) / 128.0, share = rows / 256.0;
  const double read = rows * 16.0 * bits / 36.0;
  const int zeros_take = form.become == LPG_GEMM8_LESS_ZERO && (form.grouped || !form.by_e4m3);
  const double zeros = !zeros_take ? 0.0 : form.by_e4m3 ? 60.0 : lpg_is_pow2_width(bits) ? 130.0 : 280.0;
  const double scales = form.by_e4m3 && form.grouped ? 100.0 : 0.0;
  const int promotes = lpg_gemm8_promotes(form);
  const double work =
      promotes ? 130.0 + share * (140.0 + 3.85 * tile_m + scales + zeros) : 30.0 + share * (220.0 + 2.9 * tile_m);
  return columns * (read > work ? read : work);
}

/* Nanoseconds of a stage, and of outputs, whole or added up over parts of K; and of work tiles of half the rows of X.
 */
typedef struct lpg_gemm8_pace {
  double stage, store, add, half_stage, half_store;
} lpg_gemm8_pace;

static inline lpg_gemm8_pace lpg_gemm8_pace_of(lpg_gemm8_tile tile, lpg_gemm8_mode form) {
  const double share = lpg_gemm8_tile_n(tile.row_tiles) / 256.0, store = share * 13.0 * tile.tile_m;
  const lpg_gemm8_pace pace = {lpg_gemm8_stage_ns(tile, form, tile.tile_m), 800.0 + store,
                               1000.0 + share * (lpg_gemm8_promotes(form) ? 60.0 : 45.0) * tile.tile_m,
                               lpg_gemm8_stage_ns(tile, form, tile.tile_m / 2), 800.0 + store / 2.0};
  return pace;
}

/* Nanoseconds that the plan may take: work tiles in turn. */
static inline double lpg_gemm8_cost(const lpg_gemm8_plan *p, const lpg_gemm8_pace *pace) {
  const int rounds = (p->whole + p->clusters - 1) / p->clusters, halves = p->whole < p->n_tiles * p->m_tiles;
  const int stages = p->part.each + (p->part.more > 0);
  return rounds * (stages * pace->stage + (p->split_k > 1 ? pace->add : pace->store)) +
         halves * (stages * pace->half_stage + pace->half_store) + 1500.0;
}

/* What a plan with such work tiles has however they are cut; 0 if there are none of them. */
static inline int lpg_gemm8_frame(const lpg_packed *weights, lpg_gemm8_mode form, int64_t m, lpg_gemm8_tile tile,
                                  lpg_gemm8_plan *p) {
  const lpg_gemm8_plan none = LPG_ZERO;
  const int stage_k = lpg_gemm8_stage_k(weights->bits, tile.tile_m, tile.row_tiles),
            rows = lpg_gemm8_tile_n(tile.row_tiles);
  *p = none;
  p->k_stages = (int32_t)((weights->desc.k + stage_k - 1) / stage_k);
  p->n_tiles = (int32_t)((weights->desc.n + rows - 1) / rows);
  p->m_tiles = (int32_t)((m + tile.tile_m - 1) / tile.tile_m);
  p->x_bytes = tile.tile_m * stage_k;
  p->w_bytes = rows * stage_k / 8 * weights->bits;
  p->scales_bytes = form.grouped ? lpg_gemm8_scales_bytes(rows, stage_k) : 0;
  return lpg_gemm8_has_tile(lpg_gemm8_promotes(form), form.bits, tile.tile_m, tile.row_tiles) &&
         (int64_t)p->n_tiles * p->m_tiles <= INT32_MAX;
}

/* Cuts K into parts of K for clusters of so many blocks; 0 if it has no so many, or the device none that run at once.
 */
static inline int lpg_gemm8_cut(const lpg_device *device, lpg_gemm8_tile tile, int64_t m, int split_k_log2,
                                lpg_gemm8_plan *p) {
  const int32_t most = split_k_log2 > 0 ? device->clusters[1 << split_k_log2] : device->sms;
  const int32_t tiles = p->n_tiles * p->m_tiles;
  p->split_k = 1 << split_k_log2;
  if (most <= 0 || p->split_k > p->k_stages) return 0;
  p->clusters = tiles < 1 ? 1 : tiles < most ? tiles : most;
  p->whole = p->split_k == 1 && lpg_gemm8_has_halves(tile.tile_m, tile.row_tiles)
                 ? lpg_whole_tiles(tiles, p->clusters, m, tile.tile_m)
                 : tiles;
  p->part = lpg_partition_of(p->k_stages, p->split_k);
  return 1;
}

/* All work tiles, as an array. */
#define LPG_GEMM8_ENTRY(tile_m, row_tiles) {tile_m, row_tiles},
#define LPG_GEMM8_LIST(name) static const lpg_gemm8_tile name[] = {LPG_GEMM8_TILES(LPG_GEMM8_ENTRY)}

/* Whether there is a plan at all. */
static inline int lpg_gemm8_fits(const lpg_packed *weights, lpgemm_dtype_t x_type, int64_t m,
                                 const lpg_device *device) {
  const lpg_gemm8_mode form = lpg_gemm8_mode_of(weights, x_type);
  LPG_GEMM8_LIST(tiles);
  for (int i = 0; i < (int)(sizeof tiles / sizeof tiles[0]); i++) {
    lpg_gemm8_plan p;
    if (!lpg_gemm8_frame(weights, form, m, tiles[i], &p)) continue;
    for (int log2 = 0; log2 < LPG_CLUSTER_SIZES; log2++) {
      if (lpg_gemm8_cut(device, tiles[i], m, log2, &p) && lpg_gemm8_lay_out(&p, tiles[i], device->shared_memory))
        return 1;
    }
  }
  return 0;
}

/* The plan and the work tile (of LPG_GEMM8_TILES) that take the least time, and that time; 0 if there is none. */
static inline int lpg_gemm8_choose(const lpg_packed *weights, lpgemm_dtype_t x_type, int64_t m,
                                   const lpg_device *device, lpg_gemm8_plan *plan, int *tile, double *cost) {
  const lpg_gemm8_mode form = lpg_gemm8_mode_of(weights, x_type);
  LPG_GEMM8_LIST(tiles);
  int found = 0;
  for (int i = 0; i < (int)(sizeof tiles / sizeof tiles[0]); i++) {
    const lpg_gemm8_pace pace = lpg_gemm8_pace_of(tiles[i], form);
    lpg_gemm8_plan p;
    if (!lpg_gemm8_frame(weights, form, m, tiles[i], &p)) continue;
    for (int log2 = 0; log2 < LPG_CLUSTER_SIZES; log2++) {
      if (!lpg_gemm8_cut(device, tiles[i], m, log2, &p)) continue;
      const double ns = lpg_gemm8_cost(&p, &pace);
      if ((found && ns >= *cost) || !lpg_gemm8_lay_out(&p, tiles[i], device->shared_memory)) continue;
      found = 1;
      *plan = p;
      *tile = i;
      *cost = ns;
    }
  }
  return found;
}

#endif
