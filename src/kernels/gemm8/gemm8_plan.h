/* How X of 8 bits by weights that become bytes is cut into work tiles and parts of K: plain arithmetic, C and CUDA.
 *
 * A work tile is 128 or 256 rows of W by 32 to 256 rows of X. K is cut into stages; with split-K each CTA of a cluster
 * has a part of the stages, and the sums of the parts are added up. Clusters take work tiles in turn; the last may be
 * halves, with half of the rows of X.
 *
 * X is written to an image first: for every 128 columns all rows of X one after another, 128 bytes each, as the tensor
 * cores read them: every 16 columns in the order of packed weights, and 16-byte piece i at i ^ (row of X % 8). Or it is
 * read directly: each CTA, which then has one work tile, makes its own part of that image in shared memory. */
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
  LPG_GEMM8_DIRECT_AHEAD = 2, /* stages that are on their way where X is read directly, beside the one at hand */
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
LPG_FN int lpg_gemm8_promotes(lpg_gemm8_mode mode) { return mode.by_e4m3 || mode.grouped; }

/* Which work tiles there are: what fits registers and shared memory, and pays. */
LPG_FN int lpg_gemm8_has_tile(int promotes, int bits, int tile_m, int row_tiles) {
  if (!promotes) return tile_m < LPG_GEMM8_TILE_M;
  if (tile_m == LPG_GEMM8_TILE_M) return lpg_tile_k(bits) <= LPG_GEMM8_X_K;
  return row_tiles == 1 || tile_m < 128 || bits == 1 || bits % 2 == 0;
}

typedef struct lpg_gemm8_plan {
  int32_t k_stages;          /* of a row */
  int32_t n_tiles, m_tiles;  /* work tiles along N and along M */
  int32_t whole;             /* whole work tiles; the others come last, as halves */
  int32_t split_k, clusters; /* CTAs of a cluster; clusters */
  lpg_partition part;        /* stages of a part of K */
  int32_t direct;            /* X has no image */
  int32_t exchanges;         /* parts may send their sums to one another (split_k_exchange.cuh): there is room, ... */
  int32_t apart;             /* ... behind the stages */
  int32_t stages;            /* in shared memory */
  int32_t x_bytes, w_bytes;  /* of a stage */
  int32_t scales_bytes;      /* of a stage, with scales of groups */
  /* offsets in shared memory */
  int32_t received /* an mbarrier */, factors, offsets, x_sums, sums, x_ring, w_ring, scales_ring, shared_bytes;
} lpg_gemm8_plan;

/* Whether rows' scales are of types that the kernel finds itself (gemm8_rows.cuh). */
static inline int lpg_gemm8_finds_scales(const lpgemm_weight_desc_t *d) {
  const lpgemm_dtype_t type = d->scale_type;
  return d->super_scale_type == 0 && (type == 0 || type == LPGEMM_F32 || type == LPGEMM_F16 || type == LPGEMM_BF16);
}

/* Rows of X that the image has room for. */
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

/* With the number of its work tile in LPG_GEMM8_TILES. */
typedef struct lpg_gemm8_planned {
  lpg_gemm8_plan plan;
  int32_t tile;
} lpg_gemm8_planned;

#endif
