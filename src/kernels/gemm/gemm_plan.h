/* How a problem of many rows is cut into work tiles and parts of K: plain arithmetic, for C and CUDA.
 *
 * A work tile is 64, 128, 192 or 256 rows of W by 16 to 256 rows of X; a plan may give all of them fewer rows of X than
 * there is room for, where these cut X more evenly. Split-K: K is cut into parts of whole k blocks, one for each team
 * of warps of each CTA of a cluster, and the sums of all parts are added up. Where the number of parts is given, a team
 * may have several, one after the other. Multicast: K is not cut, and the CTAs of a cluster have the same rows of X and
 * different rows of W, with 128 rows of X and more if that is faster. Clusters take work tiles in turn, in bands along
 * N, so that those that run at the same time read the same weights and X. The last work tiles may be halves, with half
 * of the rows of X. Or they are dealt out by k blocks (stream-K): each cluster gets the same number of these, and a
 * work tile's parts are added up through the workspace. */
#ifndef LPG_KERNELS_GEMM_PLAN_H
#define LPG_KERNELS_GEMM_PLAN_H

#include <math.h>

#include "../epilogue/sums.h"
#include "../operand/expand.h"
#include "../operand/limits.h"
#include "../plan/divisor.h"

enum {
  LPG_GEMM_PRODUCER_WARPS = 4, /* that load what the others multiply */
  LPG_GEMM_TILE_N = 256,       /* of a work tile, the most */
  LPG_GEMM_TILE_M = 256,       /* of a work tile, the most */
  LPG_GEMM_SQUARE_M = 192,     /* of a work tile of as many rows of W */
  LPG_GEMM_BOX_M = 192,        /* the most that one copy of TMA brings, in equal shares, ... */
  LPG_GEMM_BOX_K = 64,         /* ... and their columns */
  LPG_GEMM_BAND = 12,          /* work tiles of a band, of rows */
  LPG_GEMM_EARLY_BLOCKS = 4,   /* of 256 columns that a warp asks for before it waits for the kernel before */
  LPG_GEMM_BARRIER_BYTES = 512
};

/* ---- what a kernel's template and the weights fix ---- */

/* The work tiles that there are kernels for: rows of X, teams, and warps of a team, each with 16 rows of W. The first
 * is for batch invariance alone, where few rows of X have the parts of K of many. */
#define LPG_GEMM_TILES(tile)                                                                                    \
  tile(16, 2, 4) tile(32, 1, 8) tile(32, 1, 16) tile(64, 1, 8) tile(64, 1, 16) tile(128, 1, 8) tile(128, 1, 12) \
      tile(192, 1, 12) tile(256, 1, 8)

#define LPG_ONE(...) +1
enum { LPG_GEMM_TILE_COUNT = LPG_GEMM_TILES(LPG_ONE) };
#undef LPG_ONE

typedef struct lpg_gemm_tile {
  int tile_m, teams, warps;
} lpg_gemm_tile;

/* Of the rows of X that a work tile has room for, all are multiplied, or fewer by so many times 32. */
enum { LPG_GEMM_WIDTH_STEP = 32, LPG_GEMM_MOST_WIDTHS = 4 };
LPG_FN int lpg_gemm_widths(int tile_m) { return tile_m >= 128 ? tile_m / 2 / LPG_GEMM_WIDTH_STEP : 1; }

/* Copies of TMA that bring a work tile's rows of X. */
LPG_FN int lpg_gemm_x_boxes(int tile_m) { return tile_m > LPG_GEMM_BOX_M ? 2 : 1; }

/* Columns of a stage of X: the more, the fewer waits, and the fewer stages there is room for. */
LPG_FN int lpg_gemm_stage_k(int tile_m) { return tile_m > 128 ? 64 : 128; }

/* Blocks of 256 columns that stages have room for, the most. */
LPG_FN int lpg_gemm_most_blocks(int tile_m) { return tile_m < 128 ? 8 : 4; }

/* Steps of 16 columns of a stage of weights: whole tiles, of which an image (16 bits) has none. */
LPG_FN int lpg_gemm_stage_steps(int bits, int stage_k) {
  return (bits == 16 || lpg_tile_k(bits) < stage_k ? stage_k : lpg_tile_k(bits)) / LPG_STEP_K;
}

/* Whether so many CTAs of a cluster may have the same rows of X and different rows of weights: what one
 * brings of X, by a copy of TMA, it brings for all, and they take turns. */
enum { LPG_GEMM_MOST_MULTICAST = 2 };
LPG_FN int lpg_gemm_has_multicast(int tile_m, int multicast) { return multicast == 1 || tile_m >= 128; }

/* Whether a team may have several parts of K, one after the other: the sums of those before stay in registers. */
LPG_FN int lpg_gemm_has_runs(int tile_m, int warps) { return tile_m == 128 && warps == 8; }

/* Whether the last work tiles may come in halves of their rows of X. */
LPG_FN int lpg_gemm_has_halves(int tile_m) { return tile_m == LPG_GEMM_TILE_M; }

/* Whether the last work tiles may be dealt out by k blocks, and TMA may store plain sums (store_fast.cuh). */
LPG_FN int lpg_gemm_streams(int tile_m, int teams) { return tile_m >= 128 && teams == 1; }

/* What a CTA of such a plan has of the workspace: the sums of a part, as its warps hold them, and a flag a warp. */
enum {
  LPG_GEMM_STREAM_FLAGS = 12,
  LPG_GEMM_STREAM_SUMS = LPG_GEMM_SQUARE_M * LPG_GEMM_SQUARE_M * 4, /* the largest work tile's */
  LPG_GEMM_STREAM_BYTES = LPG_GEMM_STREAM_SUMS + LPG_GEMM_STREAM_FLAGS * 8
};

LPG_FN int lpg_gemm_tile_n(int warps) { return warps * LPG_TILE_ROWS; }

/* How weights get their scales and zeros. They are read as they are packed, and scales are of X's type but where said.
 * For PREPARED and PREPARED_SPLIT a kernel prepares them first: weight = code * scale + rest, in fp32; or, where bf16
 * holds the codes less their zeros, code * scale, and the scale is the sum of two bf16 numbers. */
/* clang-format off */
#define LPG_GEMM_EACH_SCALES(mode) \
  mode(ROW, "row")                  /* scales go on the rows' sums alone, or there are none; one zero for all */ \
  mode(GROUP, "group")              /* groups of 128 and 256 columns, one zero for all */ \
  mode(NEAR, "near")                /* the same, integers scaled as they are dequantised: a row's scales are near */ \
  mode(ZEROS, "zeros")              /* the same with zeros of groups */ \
  mode(SMALL, "small")              /* groups of 32 and 64 */ \
  mode(E4M3, "e4m3")                /* groups of 16 to 256, scales of e4m3 */ \
  mode(E8M0, "e8m0")                /* groups of 32 to 256, scales that are powers of two */ \
  mode(SPLIT, "split")              /* groups of 128 and 256, scales of fp16 for X of bf16: the sum of two numbers */ \
  mode(PREPARED, "prepared")        /* all others, and groups of which k blocks have no whole ones */ \
  mode(PREPARED_SPLIT, "prepared split") /* such for X of bf16, without rests: fewer instructions a weight */ \
  mode(IMAGE, "image")              /* weights are X's type, scaled, in an image in the workspace: dequant */ \
  mode(LEVELS_32, "levels")         /* Q4_K, Q5_K: groups of 32, scales and minima of 6 bits by fp16 */ \
  mode(LEVELS_16, "levels")         /* Q3_K, Q6_K: groups of 16, scales of int8 by fp16 */ \
  mode(SPLIT_SMALL, "split small")  /* as SPLIT, groups of 32 and 64 */ \
  mode(RESTS, "rests")              /* groups of 32 to 256 or a row: fp16 scales, minima, zeros, a zero between codes */
/* clang-format on */
#define LPG_MODE(name, word) LPG_GEMM_SCALES_##name,
typedef enum lpg_gemm_scales { LPG_GEMM_EACH_SCALES(LPG_MODE) LPG_GEMM_SCALES_COUNT } lpg_gemm_scales;
#undef LPG_MODE

LPG_FN int lpg_gemm_is_prepared(lpg_gemm_scales mode) {
  return mode == LPG_GEMM_SCALES_PREPARED || mode == LPG_GEMM_SCALES_PREPARED_SPLIT;
}

/* Whether scales have two levels, which meet in the kernel: weight = code * scale + rest in fp32, as prepared ones. */
LPG_FN int lpg_gemm_has_levels(lpg_gemm_scales mode) {
  return mode == LPG_GEMM_SCALES_LEVELS_32 || mode == LPG_GEMM_SCALES_LEVELS_16;
}

/* Whether the kernel makes fp32 scales and rests of what is packed: so, or of one level. */
LPG_FN int lpg_gemm_has_rests(lpg_gemm_scales mode) {
  return lpg_gemm_has_levels(mode) || mode == LPG_GEMM_SCALES_RESTS;
}

/* Whether another kernel makes something of the weights first: scales and zeros, or an image; and rows' factors. */
LPG_FN int lpg_gemm_makes(lpg_gemm_scales mode) { return lpg_gemm_is_prepared(mode) || mode == LPG_GEMM_SCALES_IMAGE; }

/* Steps that share a scale. */
LPG_FN int lpg_gemm_scale_steps(lpg_gemm_scales mode) {
  switch (mode) {
    case LPG_GEMM_SCALES_SMALL:
    case LPG_GEMM_SCALES_SPLIT_SMALL:
    case LPG_GEMM_SCALES_LEVELS_32:
    case LPG_GEMM_SCALES_RESTS:
    case LPG_GEMM_SCALES_E8M0: return 2;
    case LPG_GEMM_SCALES_LEVELS_16:
    case LPG_GEMM_SCALES_E4M3:
    case LPG_GEMM_SCALES_PREPARED:
    case LPG_GEMM_SCALES_PREPARED_SPLIT: return 1;
    default: return 8;
  }
}

/* Whether a scale is the sum of two numbers, which the kernel finds. */
LPG_FN int lpg_gemm_is_split(lpg_gemm_scales mode) {
  return mode == LPG_GEMM_SCALES_SPLIT || mode == LPG_GEMM_SCALES_SPLIT_SMALL;
}

/* Whether zeros are read a group, be they the same or not. */
LPG_FN int lpg_gemm_reads_zeros(lpg_gemm_scales mode, int is_integer) {
  return is_integer && (mode == LPG_GEMM_SCALES_ZEROS || mode == LPG_GEMM_SCALES_SMALL || lpg_gemm_is_split(mode));
}

/* Weights as dequantisers tell them apart. */
typedef enum lpg_gemm_weights {
  LPG_GEMM_INTEGERS,
  LPG_GEMM_FLOATS,
  LPG_GEMM_E4M3_WEIGHTS,
  LPG_GEMM_HALVED_FLOATS, /* lpg_is_halved(): too wide to be scaled in fp16 */
  LPG_GEMM_CODEBOOKS
} lpg_gemm_weights;

LPG_FN lpg_gemm_weights lpg_gemm_weights_of(lpgemm_dtype_t type, lpgemm_dtype_t x_type) {
  return lpg_is_integer_kind(type)             ? LPG_GEMM_INTEGERS
         : type == LPGEMM_E4M3                 ? LPG_GEMM_E4M3_WEIGHTS
         : lpg_is_halved(type, x_type)         ? LPG_GEMM_HALVED_FLOATS
         : lpg_kind(type) == LPGEMM_KIND_FLOAT ? LPG_GEMM_FLOATS
                                               : LPG_GEMM_CODEBOOKS;
}

/* What quantisers write; to build all modes for the others as well takes too long. */
LPG_FN int lpg_gemm_common(lpg_gemm_weights weights, int bits) {
  switch (weights) {
    case LPG_GEMM_INTEGERS: return bits == 2 || bits == 3 || bits == 4 || bits == 8;
    case LPG_GEMM_FLOATS: return bits == 4 || bits == 6;
    case LPG_GEMM_E4M3_WEIGHTS: return 1;
    case LPG_GEMM_HALVED_FLOATS: return 0;
    default: return bits == 4;
  }
}

/* Which modes weights have kernels of: the special scales belong to floats. */
LPG_FN int lpg_gemm_scales_exist(lpg_gemm_scales mode, int bf16, lpg_gemm_weights weights, int bits) {
  const int common = lpg_gemm_common(weights, bits), is_integer = weights == LPG_GEMM_INTEGERS;
  const int is_float = weights == LPG_GEMM_FLOATS || weights == LPG_GEMM_E4M3_WEIGHTS;
  switch (mode) {
    case LPG_GEMM_SCALES_ROW: return common || weights == LPG_GEMM_HALVED_FLOATS;
    case LPG_GEMM_SCALES_NEAR: return common && is_integer && !bf16;
    case LPG_GEMM_SCALES_ZEROS: return common && is_integer;
    case LPG_GEMM_SCALES_SMALL: return common;
    case LPG_GEMM_SCALES_E4M3: return is_float && bits == 4;
    case LPG_GEMM_SCALES_E8M0: return common && is_float;
    case LPG_GEMM_SCALES_SPLIT: return common && bf16;
    case LPG_GEMM_SCALES_SPLIT_SMALL: return common && bf16 && (is_integer ? bits >= 4 : weights == LPG_GEMM_CODEBOOKS);
    case LPG_GEMM_SCALES_LEVELS_32: return is_integer && (bits == 4 || bits == 5);
    case LPG_GEMM_SCALES_LEVELS_16: return is_integer && (bits == 3 || bits == 6);
    case LPG_GEMM_SCALES_RESTS: return is_integer && (common || bits == 5);
    case LPG_GEMM_SCALES_PREPARED: return weights != LPG_GEMM_HALVED_FLOATS && (is_integer || !bf16);
    case LPG_GEMM_SCALES_PREPARED_SPLIT: return bf16 && (bits > 1 || !is_integer);
    case LPG_GEMM_SCALES_IMAGE: return 0;
    default: return weights != LPG_GEMM_HALVED_FLOATS;
  }
}

/* Whether the ratio of the exponents' biases that dequantising floats to bf16 takes is left to the scales: these have
 * few digits, so they can be as large as that, and the weights are rounded nowhere. */
LPG_FN int lpg_gemm_keeps_fields(lpg_gemm_scales mode, int bf16, lpg_gemm_weights weights) {
  return bf16 && weights == LPG_GEMM_FLOATS && (mode == LPG_GEMM_SCALES_E4M3 || mode == LPG_GEMM_SCALES_E8M0);
}

/* log2 of that ratio. */
LPG_FN int lpg_gemm_field_power(int exponent_bits) { return 128 - (1 << (exponent_bits - 1)); }

/* Which work tiles a mode has: 192 rows of both unless something is made of the weights first, 16 warps of up to 64
 * rows of X only if the registers do. */
LPG_FN int lpg_gemm_has(lpg_gemm_scales mode, int tile_m, int all_warps) {
  if (tile_m == LPG_GEMM_SQUARE_M) return mode != LPG_GEMM_SCALES_IMAGE && !lpg_gemm_is_prepared(mode);
  if (mode == LPG_GEMM_SCALES_IMAGE) return tile_m >= 128;
  if (tile_m >= 128 || all_warps == 8) return 1;
  return mode == LPG_GEMM_SCALES_ROW || mode == LPG_GEMM_SCALES_GROUP || mode == LPG_GEMM_SCALES_NEAR;
}

/* Stacks of experts, and rows in pairs, have instances of their own: of what checkpoints of experts hold. Prepared
 * scales would be those of all experts. */
LPG_FN int lpg_gemm_takes_experts(lpg_gemm_scales mode, lpg_gemm_weights weights, int bits) {
  const int near = mode == LPG_GEMM_SCALES_GROUP || mode == LPG_GEMM_SCALES_NEAR || mode == LPG_GEMM_SCALES_SPLIT;
  switch (weights) {
    case LPG_GEMM_INTEGERS:
      return (bits == 4 && (near || mode == LPG_GEMM_SCALES_ZEROS || mode == LPG_GEMM_SCALES_SMALL)) ||
             (bits == 8 && (near || mode == LPG_GEMM_SCALES_ROW));
    case LPG_GEMM_FLOATS: return bits == 4 && (mode == LPG_GEMM_SCALES_E4M3 || mode == LPG_GEMM_SCALES_E8M0);
    case LPG_GEMM_E4M3_WEIGHTS: return mode == LPG_GEMM_SCALES_ROW;
    default: return 0;
  }
}

/* Their work tiles: those of the mode from 32 rows of X on, with 256 of 4 bits only; and 256 rows of W by 32 and 64 of
 * X, which in stacks are the fastest of so few rows, as work tiles are many (H200, 2026-11-27: docs/log/2026-11.md). */
LPG_FN int lpg_gemm_has_for_experts(lpg_gemm_scales mode, int bits, int tile_m, int all_warps) {
  if (tile_m < 32 || tile_m == LPG_GEMM_SQUARE_M || (tile_m == LPG_GEMM_TILE_M && bits != 4)) return 0;
  return lpg_gemm_has(mode, tile_m, all_warps) || all_warps == 16;
}

enum { LPG_GEMM_MOST_EXPERTS = 1024 }; /* shared memory has room for the rows of X of so many */

/* Prepared scales and images, which are made in the workspace. */
enum {
  LPG_GEMM_PREPARED_BYTES = 128,             /* of a row tile and granule */
  LPG_GEMM_PREPARED_KEPT = 256,              /* granules of a row that are read once */
  LPG_GEMM_MOST_PREPARED = 64 * 1024 * 1024, /* bytes of all that a call may make */
  LPG_GEMM_MOST_IMAGE = 44 * 1024 * 1024 /* of an image, if there is a choice: L2 keeps it, beside stream-K's sums */
};

/* A slot of the ring of scales in shared memory. It belongs to a k block and holds the scales of a work tile's rows,
 * their zeros, and, for a team's first k block of a work tile, the rows' exponents: by row tile, then by scale group.
 * Of two levels it holds the codes of scales and minima, and the upper ones by row tile.
 * Where scales are prepared it belongs to a stage of X and holds those: for each row tile of the groups that
 * the stage's columns lie in, as 8 pieces of 16 bytes, piece g for rows g and g + 8. */
typedef struct lpg_gemm_slot {
  int steps, scale_groups, scale_bytes, zero_bytes; /* of a row tile; bytes of a scale group */
  int zeros, exponents, bytes;                      /* where they begin, and the whole */
  int upper, upper_bytes; /* of two levels, in place of exponents: the upper scales, and as many bytes of minima */
} lpg_gemm_slot;

LPG_FN lpg_gemm_slot lpg_gemm_slot_of(lpg_gemm_scales mode, int is_integer, int row_tiles, int stage_k) {
  lpg_gemm_slot s = LPG_ZERO;
  const int prepared = lpg_gemm_is_prepared(mode), levels = lpg_gemm_has_levels(mode);
  const int bytes = mode == LPG_GEMM_SCALES_E4M3 || mode == LPG_GEMM_SCALES_E8M0 || levels ? 1 : 2;
  s.steps = (prepared ? stage_k : (int)LPG_BLOCK_K) / LPG_STEP_K;
  s.scale_groups = s.steps / lpg_gemm_scale_steps(mode);
  s.scale_bytes = prepared ? (int)LPG_GEMM_PREPARED_BYTES : bytes * LPG_TILE_ROWS;
  s.zero_bytes = mode == LPG_GEMM_SCALES_RESTS                                                 ? 2 * LPG_TILE_ROWS
                 : lpg_gemm_reads_zeros(mode, is_integer) || mode == LPG_GEMM_SCALES_LEVELS_32 ? (int)LPG_TILE_ROWS
                                                                                               : 0;
  if (mode == LPG_GEMM_SCALES_ROW || mode == LPG_GEMM_SCALES_IMAGE) return s;
  s.zeros = row_tiles * s.scale_groups * s.scale_bytes;
  s.exponents = s.zeros + row_tiles * s.scale_groups * s.zero_bytes;
  s.upper = s.exponents;
  s.upper_bytes = row_tiles * LPG_TILE_ROWS * 2;
  s.bytes = s.exponents + (prepared || mode == LPG_GEMM_SCALES_RESTS ? 0
                           : levels                                  ? s.upper_bytes * (s.zero_bytes ? 2 : 1)
                                                                     : row_tiles * LPG_TILE_ROWS);
  return s;
}

/* Prepared scales: granules that a stage of X touches. */
static inline int lpg_gemm_stage_groups(const lpg_packed *weights, int stage_k) {
  const int groups = lpg_block_groups(&weights->group) * stage_k / LPG_BLOCK_K;
  return groups > 1 ? groups : 1;
}

/* The same for a row. */
static inline int64_t lpg_gemm_scale_groups(const lpg_packed *weights) {
  return weights->group.count <= 1 ? 1 : lpg_ceil_div(weights->k_padded, lpg_granule_k(&weights->group));
}

/* Bytes of a row tile in the workspace, with a factor a row: of its image, or of its prepared scales, one a granule. */
static inline int64_t lpg_gemm_made_each(const lpg_packed *weights, lpg_gemm_scales mode) {
  return (mode == LPG_GEMM_SCALES_IMAGE
              ? (int64_t)lpg_image_columns(weights->desc.k) * (LPG_TILE_ROWS * LPG_IMAGE_K * 2)
              : lpg_gemm_scale_groups(weights) * LPG_GEMM_PREPARED_BYTES) +
         LPG_TILE_ROWS * 4;
}

/* Row tiles that so many bytes of workspace hold: of images whole pieces. */
static inline int64_t lpg_gemm_room_tiles(const lpg_packed *weights, lpg_gemm_scales mode, int64_t bytes) {
  const int64_t tiles = bytes / lpg_gemm_made_each(weights, mode);
  return mode == LPG_GEMM_SCALES_IMAGE ? tiles - tiles % (LPG_IMAGE_ROWS / LPG_TILE_ROWS) : tiles;
}

/* Row tiles of W whose scales or image are made, and which are multiplied, at once: all, or chunks of multiples of 256
 * rows and of row tiles that share scales, as few as there is room for, all but the last alike. 0: there is no room.
 * Images of the longest rows have all the workspace. */
static inline int64_t lpg_gemm_chunk_tiles(const lpg_packed *weights, lpg_gemm_scales mode) {
  const int64_t all = weights->row_tiles;
  const int64_t shared = weights->tiles_a_scale < all ? weights->tiles_a_scale : 1; /* a power of two */
  const int64_t unit = shared > LPG_GEMM_TILE_N / LPG_TILE_ROWS ? shared : LPG_GEMM_TILE_N / LPG_TILE_ROWS;
  const int64_t large = lpg_gemm_room_tiles(weights, mode, LPG_GEMM_MOST_PREPARED);
  const int64_t small = lpg_gemm_room_tiles(weights, mode, LPG_GEMM_MOST_IMAGE);
  const int64_t most = mode == LPG_GEMM_SCALES_IMAGE && (all <= small || unit <= small) ? small : large;
  if (all <= most) return all;
  if (most < unit) return 0;
  return lpg_round_up(lpg_ceil_div(all, lpg_ceil_div(all, most / unit * unit)), unit);
}

/* The same in rows, in any mode; and the bytes in the workspace, of a chunk. */
static inline int64_t lpg_gemm_chunk_rows(const lpg_packed *weights, lpg_gemm_scales mode) {
  const int64_t tiles = lpg_gemm_makes(mode) ? lpg_gemm_chunk_tiles(weights, mode) : weights->row_tiles;
  return tiles < weights->row_tiles ? tiles * LPG_TILE_ROWS : weights->desc.n;
}
static inline int64_t lpg_gemm_made_bytes(const lpg_packed *weights, lpg_gemm_scales mode) {
  if (!lpg_gemm_makes(mode)) return 0;
  const int64_t tiles = lpg_gemm_chunk_tiles(weights, mode), of_piece = LPG_IMAGE_ROWS / LPG_TILE_ROWS;
  return (mode == LPG_GEMM_SCALES_IMAGE ? lpg_round_up(tiles, of_piece) : tiles) * lpg_gemm_made_each(weights, mode);
}

typedef struct lpg_gemm_kind {
  lpg_gemm_tile tile;
  int bits, tile_n, multicast, stage_k;
  lpg_gemm_scales mode;
  int table_bytes; /* the dequantiser's, in shared memory */
  int slot_bytes;  /* of scales and zeros */
  int x_stage_bytes, w_stage_bytes;
} lpg_gemm_kind;

static inline lpg_gemm_kind lpg_gemm_kind_of(const lpg_packed *weights, lpg_gemm_tile tile, lpg_gemm_scales mode,
                                             int multicast) {
  const int is_image = mode == LPG_GEMM_SCALES_IMAGE, bits = is_image ? 16 : weights->bits;
  const int is_codebook = lpg_kind(weights->desc.type) == LPGEMM_KIND_CODEBOOK && !is_image;
  const int is_integer = lpg_is_integer_kind(weights->desc.type);
  lpg_gemm_kind kind;
  kind.tile = tile;
  kind.tile_n = lpg_gemm_tile_n(tile.warps);
  kind.multicast = multicast;
  kind.stage_k = lpg_gemm_stage_k(tile.tile_m);
  kind.bits = bits;
  kind.table_bytes = is_codebook ? (1 << 2 * bits) * LPG_LANES * 4 : 0;
  kind.mode = mode;
  kind.slot_bytes =
      lpg_gemm_is_prepared(mode)
          ? kind.tile_n / LPG_TILE_ROWS * lpg_gemm_stage_groups(weights, kind.stage_k) * LPG_GEMM_PREPARED_BYTES
          : lpg_gemm_slot_of(mode, is_integer, kind.tile_n / LPG_TILE_ROWS, kind.stage_k).bytes;
  kind.x_stage_bytes = tile.tile_m * kind.stage_k * 2;
  kind.w_stage_bytes = kind.tile_n * lpg_gemm_stage_steps(bits, kind.stage_k) * LPG_STEP_K / 8 * bits;
  return kind;
}

/* ---- the plan ---- */

typedef struct lpg_gemm_plan {
  int32_t blocks;                       /* of 256 columns */
  int32_t n_tiles, m_tiles;             /* work tiles along N (of all CTAs with the same rows of X) and along M */
  lpg_divisor by_band, by_last_band;    /* work tiles of a band, and along N of the last band: see gemm_work */
  int32_t x_rows;                       /* of a whole work tile */
  lpg_divisor by_x_rows;                /* cuts the rows of experts into work tiles */
  int32_t whole;                        /* work tiles that one cluster takes whole; the others come last, as halves or
                                           by k blocks. With experts the kernel counts, since only the device knows */
  int32_t split_k, multicast, clusters; /* CTAs of a cluster: parts of K, or with the same X; clusters */
  int32_t at_once, runs; /* parts of K that have their own teams, and that a team does one after the other */
  int32_t parts;         /* of K: both together */
  lpg_partition part;    /* blocks of one */
  int32_t streamed;      /* work tiles behind the whole ones, of which each cluster takes as many k blocks; 0: none */
  lpg_partition stream;  /* k blocks of a cluster */
  int32_t exchanges;     /* teams may send their sums to one another (split_k_exchange.cuh): there is room, ... */
  int32_t apart;         /* ... behind the stages */
  int32_t boxes;         /* TMA stores outputs: at `sums` there is room for those of a work tile */
  int32_t x_stages, w_stages, slots;
  /* offsets in shared memory */
  int32_t received /* an mbarrier */, table, factors, experts, sums, scales, x_ring, w_ring, shared_bytes;
} lpg_gemm_plan;

/* With the number of its work tile in LPG_GEMM_TILES. */
typedef struct lpg_gemm_planned {
  lpg_gemm_plan plan;
  int32_t tile;
} lpg_gemm_planned;

#endif
