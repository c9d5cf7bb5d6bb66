/* How a problem of many rows is cut into pieces: plain arithmetic, for C and CUDA.
 *
 * A work tile is a tile of 64, 128 or 256 rows of weights by 16 to 256 rows of X (rows of X). K is cut into parts of
 * whole k blocks, a part for each team of warps of each CTA of a cluster, and all parts' sums are added up. Where the
 * number of parts is given, a team may have several, one after the other. Or K is not cut among teams, and the CTAs of
 * a cluster share X, with 128 and 256 rows of X if that is faster: they have the same rows of X and different rows.
 * Clusters take work tiles in turn, in bands of row tiles, so that those that run at the same time read the same
 * weights and X; the last ones may come in halves of their rows of X. */
#ifndef LPG_KERNELS_GEMM_PLAN_H
#define LPG_KERNELS_GEMM_PLAN_H

#include <math.h>

#include "../epilogue/sums.h"

enum {
  LPG_GEMM_PRODUCER_WARPS = 4, /* that load what the others multiply */
  LPG_GEMM_TILE_N = 256,       /* of a work tile, the most */
  LPG_GEMM_TILE_M = 256,       /* of a work tile, the most */
  LPG_GEMM_BOX_M = 128,        /* the most that one copy of TMA brings, ... */
  LPG_GEMM_BOX_K = 64,         /* ... and their columns */
  LPG_GEMM_BAND = 12,          /* work tiles of a band, of rows */
  LPG_GEMM_EARLY_BLOCKS = 4,   /* of 256 columns whose weights are asked for before the kernel before ends */
  LPG_GEMM_BARRIER_BYTES = 512
};

/* ---- what a kernel's template and the weights fix ---- */

/* The work tiles that there are kernels for: rows of X, row tiles of a warp, teams, and warps of a team. All teams have
 * the same rows: more warps hide more of what each waits for. The first is for calls whose parts are given. */
#define LPG_GEMM_TILES(tile)                                                                                   \
  tile(16, 1, 2, 4) tile(32, 1, 1, 8) tile(32, 1, 2, 8) tile(32, 1, 1, 16) tile(64, 1, 1, 8) tile(64, 1, 2, 8) \
      tile(64, 1, 1, 16) tile(128, 1, 1, 8) tile(128, 2, 1, 8) tile(256, 1, 1, 8)

typedef struct lpg_gemm_tile {
  int tile_m, row_tiles, teams, warps;
} lpg_gemm_tile;

/* Columns of a stage of X: the more, the fewer waits, and the fewer stages there is room for. */
LPG_FN int lpg_gemm_stage_k(int tile_m) { return tile_m == LPG_GEMM_TILE_M ? 64 : 128; }

/* Blocks of 256 columns that stages have room for, the most. */
LPG_FN int lpg_gemm_most_blocks(int tile_m) { return tile_m < 128 ? 8 : 4; }

/* Steps of 16 columns of a stage of weights: whole tiles. */
LPG_FN int lpg_gemm_stage_steps(int bits, int stage_k) {
  return (lpg_tile_k(bits) < stage_k ? stage_k : lpg_tile_k(bits)) / LPG_STEP_K;
}

/* Whether so many CTAs of a cluster may have the same rows of X and different rows of weights: what one
 * brings of X, by a copy of TMA, it brings for all, and they take turns. */
enum { LPG_GEMM_MOST_MULTICAST = 2 };
LPG_FN int lpg_gemm_has_multicast(int tile_m, int row_tiles, int multicast) {
  return multicast == 1 || (tile_m >= 128 && row_tiles == 1);
}

/* Whether a team may have several parts of K, one after the other: the sums of those before stay in registers. */
LPG_FN int lpg_gemm_has_runs(int tile_m, int row_tiles) { return tile_m == 128 && row_tiles == 1; }

/* Whether the last work tiles may come in halves of their rows of X. */
LPG_FN int lpg_gemm_has_halves(int tile_m) { return tile_m == LPG_GEMM_TILE_M; }

LPG_FN int lpg_gemm_tile_n(int row_tiles, int warps) { return row_tiles * warps * LPG_TILE_ROWS; }

/* How weights get their scales and zeros. In all forms but the last they are read as they are packed, and scales are of
 * X's type but where said. For the last a kernel makes lines of them first: weight = code * scale + rest, in fp32. */
typedef enum lpg_gemm_scales {
  LPG_GEMM_SCALES_ROW,     /* scales go on the rows' sums alone, or there are none; one zero for all */
  LPG_GEMM_SCALES_GROUP,   /* groups of at least 128 columns, one zero for all */
  LPG_GEMM_SCALES_NEAR,    /* the same, integers scaled as they are dequantised: a row's scales are near one another */
  LPG_GEMM_SCALES_ZEROS,   /* the same with zeros of groups */
  LPG_GEMM_SCALES_SMALL,   /* groups of 32 and 64 */
  LPG_GEMM_SCALES_E4M3,    /* groups of 16 and more, scales of e4m3 */
  LPG_GEMM_SCALES_E8M0,    /* groups of 32 and more, scales that are powers of two */
  LPG_GEMM_SCALES_SPLIT,   /* groups of at least 128, scales of fp16 for X of bf16: the sum of two numbers */
  LPG_GEMM_SCALES_PREPARED /* all others, groups of 16 and more */
} lpg_gemm_scales;
#define LPG_GEMM_EACH_SCALES(form)                                                                                  \
  form(LPG_GEMM_SCALES_ROW) form(LPG_GEMM_SCALES_GROUP) form(LPG_GEMM_SCALES_NEAR) form(LPG_GEMM_SCALES_ZEROS)      \
      form(LPG_GEMM_SCALES_SMALL) form(LPG_GEMM_SCALES_E4M3) form(LPG_GEMM_SCALES_E8M0) form(LPG_GEMM_SCALES_SPLIT) \
          form(LPG_GEMM_SCALES_PREPARED)

/* Steps that share a scale. */
LPG_FN int lpg_gemm_scale_steps(lpg_gemm_scales form) {
  switch (form) {
    case LPG_GEMM_SCALES_SMALL:
    case LPG_GEMM_SCALES_E8M0: return 2;
    case LPG_GEMM_SCALES_E4M3:
    case LPG_GEMM_SCALES_PREPARED: return 1;
    default: return 8;
  }
}

/* Whether zeros are read a group, be they the same or not. */
LPG_FN int lpg_gemm_reads_zeros(lpg_gemm_scales form, int is_integer) {
  return is_integer &&
         (form == LPG_GEMM_SCALES_ZEROS || form == LPG_GEMM_SCALES_SMALL || form == LPG_GEMM_SCALES_SPLIT);
}

/* Weights as dequantisers tell them apart. */
typedef enum lpg_gemm_weights {
  LPG_GEMM_INTEGERS,
  LPG_GEMM_FLOATS,
  LPG_GEMM_E4M3_WEIGHTS,
  LPG_GEMM_CODEBOOKS
} lpg_gemm_weights;

LPG_FN lpg_gemm_weights lpg_gemm_weights_of(lpgemm_dtype_t type) {
  return lpg_is_integer_kind(type)             ? LPG_GEMM_INTEGERS
         : type == LPGEMM_E4M3                 ? LPG_GEMM_E4M3_WEIGHTS
         : lpg_kind(type) == LPGEMM_KIND_FLOAT ? LPG_GEMM_FLOATS
                                               : LPG_GEMM_CODEBOOKS;
}

/* What quantisers write; to build all forms for the others as well takes too long. */
LPG_FN int lpg_gemm_common(lpg_gemm_weights weights, int bits) {
  switch (weights) {
    case LPG_GEMM_INTEGERS: return bits == 2 || bits == 3 || bits == 4 || bits == 8;
    case LPG_GEMM_FLOATS: return bits == 4 || bits == 6;
    case LPG_GEMM_E4M3_WEIGHTS: return 1;
    default: return bits == 4;
  }
}

/* Which forms weights have kernels of: the special scales belong to floats. */
LPG_FN int lpg_gemm_scales_exist(lpg_gemm_scales form, int bf16, lpg_gemm_weights weights, int bits) {
  const int common = lpg_gemm_common(weights, bits), is_integer = weights == LPG_GEMM_INTEGERS;
  const int is_float = weights == LPG_GEMM_FLOATS || weights == LPG_GEMM_E4M3_WEIGHTS;
  switch (form) {
    case LPG_GEMM_SCALES_ROW: return common;
    case LPG_GEMM_SCALES_NEAR: return common && is_integer && !bf16;
    case LPG_GEMM_SCALES_ZEROS: return common && is_integer;
    case LPG_GEMM_SCALES_SMALL: return common;
    case LPG_GEMM_SCALES_E4M3: return is_float && bits == 4;
    case LPG_GEMM_SCALES_E8M0: return common && is_float;
    case LPG_GEMM_SCALES_SPLIT: return common && bf16;
    default: return 1;
  }
}

/* Which work tiles a form has: 16 warps, and two row tiles a warp, only where registers do, and for the form LINES the
 * best of each number of rows of X. */
LPG_FN int lpg_gemm_has(lpg_gemm_scales form, int bits, int tile_m, int row_tiles, int teams, int all_warps) {
  if (row_tiles == 2 && bits > 4 && bits < 8) return 0;
  if (tile_m < 32) return 1;
  if (form == LPG_GEMM_SCALES_PREPARED) return tile_m >= 128 || teams == 2;
  if (form == LPG_GEMM_SCALES_ROW || form == LPG_GEMM_SCALES_GROUP || form == LPG_GEMM_SCALES_NEAR)
    return all_warps == 16 || tile_m >= 128;
  return all_warps == 8;
}

/* A slot in shared memory: scales of a work tile's rows, zeros, and, for a team's first block of a work tile, the rows'
 * exponents, each by row tiles, in these by scale group. It is of a k block; in the form LINES of a stage of X,
 * and holds lines instead: of each row tile those of the groups that the stage's columns lie in, 8 pieces of 16 bytes,
 * each the lines of rows g and g + 8. */
enum {
  LPG_GEMM_LINE_BYTES = 128,                  /* of a row tile and group */
  LPG_GEMM_LINES_KEPT = 256,                  /* groups of a row that are read once */
  LPG_GEMM_MOST_LINE_BYTES = 64 * 1024 * 1024 /* bytes of all that a call may make */
};
typedef struct lpg_gemm_slot {
  int steps, scale_groups, scale_bytes, zero_bytes; /* of a row tile; bytes of a scale group */
  int zeros, exponents, bytes;                      /* where they begin, and the whole */
} lpg_gemm_slot;

LPG_FN lpg_gemm_slot lpg_gemm_slot_of(lpg_gemm_scales form, int is_integer, int row_tiles, int stage_k) {
  lpg_gemm_slot s = LPG_ZERO;
  const int lines = form == LPG_GEMM_SCALES_PREPARED,
            bytes = form == LPG_GEMM_SCALES_E4M3 || form == LPG_GEMM_SCALES_E8M0 ? 1 : 2;
  s.steps = (lines ? stage_k : (int)LPG_BLOCK_K) / LPG_STEP_K;
  s.scale_groups = s.steps / lpg_gemm_scale_steps(form);
  s.scale_bytes = lines ? (int)LPG_GEMM_LINE_BYTES : bytes * LPG_TILE_ROWS;
  s.zero_bytes = lpg_gemm_reads_zeros(form, is_integer) ? LPG_TILE_ROWS : 0;
  if (form == LPG_GEMM_SCALES_ROW) return s;
  s.zeros = row_tiles * s.scale_groups * s.scale_bytes;
  s.exponents = s.zeros + row_tiles * s.scale_groups * s.zero_bytes;
  s.bytes = s.exponents + (lines ? 0 : row_tiles * LPG_TILE_ROWS);
  return s;
}

/* Groups that a stage of X touches. */
static inline int lpg_gemm_stage_groups(const lpg_packed *weights, int stage_k) {
  const int groups = lpg_block_groups(&weights->group) * stage_k / LPG_BLOCK_K;
  return groups > 1 ? groups : 1;
}

/* The form LINES: lines of a row tile, and of all of them the bytes in the workspace, with the factor of each row. */
static inline int64_t lpg_gemm_scale_groups(const lpg_packed *weights) {
  return weights->group.count <= 1 ? 1 : weights->group.padded;
}
static inline int64_t lpg_gemm_lines_bytes(const lpg_packed *weights) {
  return weights->row_tiles * (lpg_gemm_scale_groups(weights) * LPG_GEMM_LINE_BYTES + LPG_TILE_ROWS * 4);
}

typedef struct lpg_gemm_kind {
  lpg_gemm_tile tile;
  int bits, tile_n, multicast, stage_k;
  lpg_gemm_scales form;
  int table_bytes; /* the dequantiser's, in shared memory */
  int slot_bytes;  /* of scales and zeros */
  int x_stage_bytes, w_stage_bytes;
} lpg_gemm_kind;

static inline lpg_gemm_kind lpg_gemm_kind_of(const lpg_packed *weights, lpg_gemm_tile tile, lpg_gemm_scales form,
                                             int multicast) {
  const int bits = weights->bits, row_tiles = tile.row_tiles;
  const int is_codebook = lpg_kind(weights->desc.type) == LPGEMM_KIND_CODEBOOK;
  const int is_integer = lpg_is_integer_kind(weights->desc.type);
  lpg_gemm_kind kind;
  kind.tile = tile;
  kind.tile_n = lpg_gemm_tile_n(row_tiles, tile.warps);
  kind.multicast = multicast;
  kind.stage_k = lpg_gemm_stage_k(tile.tile_m);
  kind.bits = bits;
  kind.table_bytes = is_codebook ? (1 << 2 * bits) * LPG_LANES * 4 : 0;
  kind.form = form;
  kind.slot_bytes =
      form == LPG_GEMM_SCALES_PREPARED
          ? kind.tile_n / LPG_TILE_ROWS * lpg_gemm_stage_groups(weights, kind.stage_k) * LPG_GEMM_LINE_BYTES
          : lpg_gemm_slot_of(form, is_integer, kind.tile_n / LPG_TILE_ROWS, kind.stage_k).bytes;
  kind.x_stage_bytes = tile.tile_m * kind.stage_k * 2;
  kind.w_stage_bytes = kind.tile_n * lpg_gemm_stage_steps(bits, kind.stage_k) * LPG_STEP_K / 8 * bits;
  return kind;
}

/* ---- the plan ---- */

typedef struct lpg_gemm_plan {
  int32_t blocks;                       /* of 256 columns */
  int32_t n_tiles, m_tiles;             /* tiles of rows, of all blocks that share rows of X, and of rows of X */
  int32_t whole;                        /* work tiles; those that are left come in halves, last */
  int32_t split_k, multicast, clusters; /* CTAs of a cluster: parts of K, or those that share; clusters */
  int32_t at_once, runs; /* parts of K that have their own teams, and that a team does one after the other */
  int32_t parts;         /* of K: both together */
  lpg_partition part;    /* blocks of one */
  int32_t x_stages, w_stages, slots;
  /* offsets in shared memory */
  int32_t table, factors, sums, scales, x_ring, w_ring, shared_bytes;
} lpg_gemm_plan;

/* Lays out shared memory; 0 if it does not fit. A stage of weights is for several of X where tiles are long. One of X
 * that is free must mean that the weights' next, and the slot's, are free as well: see the bounds, and that teams go
 * through the stages in turn, a k block each. */
static inline int lpg_gemm_lay_out(lpg_gemm_plan *p, const lpg_gemm_kind *kind, int64_t shared_memory) {
  const int each = lpg_gemm_stage_steps(kind->bits, kind->stage_k) * LPG_STEP_K / kind->stage_k;
  const int block_stages = LPG_BLOCK_K / kind->stage_k, others = (kind->tile.teams - 1) * block_stages; /* of others */
  const int lines = kind->form == LPG_GEMM_SCALES_PREPARED;
  p->table = LPG_GEMM_BARRIER_BYTES;
  p->factors = p->table + kind->table_bytes;
  p->sums = p->factors + 2 * LPG_GEMM_TILE_N * 4;
  p->scales = p->sums;
  if (p->at_once == 1) { /* a warp's sums of a few rows of X; of parts they lie where the stages were */
    p->scales +=
        kind->tile.teams * kind->tile.warps * lpg_sums_bytes(LPG_PASS_ROWS, kind->tile.row_tiles * LPG_TILE_ROWS);
  }
  const int most = lpg_gemm_most_blocks(kind->tile.tile_m) * block_stages;
  p->slots = 1 + kind->tile.teams + (most - 2) / block_stages;                              /* as below */
  p->x_ring = lpg_round_up_to(p->scales + (lines ? 0 : p->slots * kind->slot_bytes), 1024); /* swizzled rows */
  const int64_t room = shared_memory - p->x_ring;
  const int stage_bytes = kind->x_stage_bytes + (lines ? kind->slot_bytes : 0);
  p->x_stages = 0;
  for (int32_t w_stages = 2; w_stages <= most; w_stages++) {
    const int64_t left = (room - (int64_t)w_stages * kind->w_stage_bytes) / stage_bytes;
    const int32_t bound = each == 1 ? w_stages : 1 + each * (w_stages - 1) - others;
    int32_t x_stages = left < bound ? (int32_t)left : bound;
    if (x_stages > most) x_stages = most;
    if (x_stages <= p->x_stages) continue;
    p->x_stages = x_stages;
    p->w_stages = w_stages;
  }
  /* A producer warp brings one stage of each block; with fewer, or where what it sees release is of two teams in
   * turn, it could take a stage's next turn but one for its next. */
  if (p->x_stages < others + block_stages) return 0;
  p->w_ring = p->x_ring + p->x_stages * kind->x_stage_bytes;
  p->shared_bytes = p->w_ring + p->w_stages * kind->w_stage_bytes;
  if (lines) { /* a slot belongs to a stage of X */
    p->slots = p->x_stages;
    p->scales = p->shared_bytes;
    p->shared_bytes += p->slots * kind->slot_bytes;
  }
  if (p->at_once > 1) {
    const int sums_bytes = kind->tile.teams * p->runs * lpg_sums_bytes(kind->tile.tile_m, kind->tile_n);
    p->sums = p->x_ring;
    if (p->shared_bytes < p->sums + sums_bytes) return 0;
  }
  return 1;
}

/* How much longer dequantising takes in a form than in the plain one. */
static inline double lpg_gemm_slower(lpg_gemm_scales form) {
  switch (form) {
    case LPG_GEMM_SCALES_ROW:
    case LPG_GEMM_SCALES_NEAR: return 0.8;
    case LPG_GEMM_SCALES_GROUP: return 1.0;
    case LPG_GEMM_SCALES_ZEROS: return 1.1;
    case LPG_GEMM_SCALES_SMALL:
    case LPG_GEMM_SCALES_E8M0:
    case LPG_GEMM_SCALES_SPLIT: return 1.4;
    case LPG_GEMM_SCALES_E4M3: return 2.0;
    default: return 2.2;
  }
}

/* Nanoseconds in which a CTA adds up the sums of a work tile's parts out of the others' shared memory, beyond
 * what storing takes anyway (H200). In clusters of eight with 256 rows to add up it is the most of a small matrix
 * (2026-11-22: 1024 x 4096 to 3072 x 6144 with 4 to 128 rows of X). Work tiles of 128 rows of X take longer to store
 * whole as well, so less comes on top (2026-11-23: 4096 x 4096 to 8192 x 28672 with 128 and 256 rows); of 256 rows of X
 * each block reads 128 KB, one other block's after the other (the same day, the suite regret). */
static inline double lpg_gemm_parts_cost(const lpg_gemm_plan *p, const lpg_gemm_kind *kind) {
  const int many = p->split_k >= 8 && kind->tile_n * kind->tile.teams >= LPG_GEMM_TILE_N;
  if (p->at_once == 1) return 0.0;
  if (kind->tile.tile_m == LPG_GEMM_TILE_M) return 1250.0 * p->split_k;
  return (p->split_k > 1 && kind->tile.tile_m < 128 ? 1500.0 : 700.0) +
         (many ? kind->tile.tile_m * (kind->tile.tile_m > 32 ? 75.0 : 35.0) : 0.0);
}

/* Nanoseconds of 128 rows by a k block of 4-bit integers in the plain form: measured on the H200 with each
 * work tile forced, 32 to 2048 rows of X, four shapes, 2026-11-23 (docs/performance.md). */
enum {
  LPG_GEMM_DEQUANT_NS = 830,         /* to decode them, in work tiles of up to 128 rows of X */
  LPG_GEMM_MULTIPLY_NS = 11,         /* to multiply them by a row of X */
  LPG_GEMM_EXPOSED_DEQUANT_NS = 350, /* with 256 rows of X: what of dequantising is not hidden, */
  LPG_GEMM_LOAD_NS = 440,            /* by the warps that load a block: as long as work tiles of few rows of X take */
  LPG_GEMM_TILE_NS = 1800,           /* of a work tile beside its blocks, */
  LPG_GEMM_LARGE_TILE_NS = 1200,     /* with 256 rows of X, */
  LPG_GEMM_START_NS = 1500           /* and of a call */
};

/* Nanoseconds of a k block and of a work tile, and how many times as long as that all takes. */
typedef struct lpg_gemm_pace {
  double block, half_block, tile, slower;
} lpg_gemm_pace;

/* A k block, at the speed of dequantising and multiplying or of its share of the memory. */
static inline double lpg_gemm_block_ns(const lpg_gemm_kind *kind, double tile_m) {
  const double share = kind->tile_n / 128.0;
  /* Of what a work tile reads per block, weights come out of memory once, and all of it through L2 (H200, 2026-11-23).
   */
  const double codes = kind->tile_n * 32.0 * kind->bits, x = tile_m * 512.0 / kind->multicast;
  const double read = fmax(codes / 30.0, (codes + x) / 48.0);
  const double slower = lpg_gemm_slower(kind->form);
  const double crowded =
      kind->tile.warps == 16 && kind->bits == 7 ? 1.8 : 1.0; /* 7 bits by 16 warps: H200, 2026-11-22 */
  /* Decoding and multiplying overlap, the better the more one of them takes. */
  const double decode = LPG_GEMM_DEQUANT_NS * share * slower, multiply = LPG_GEMM_MULTIPLY_NS * share * tile_m;
  const double both = tile_m >= LPG_GEMM_TILE_M ? LPG_GEMM_EXPOSED_DEQUANT_NS * slower + 10.25 * tile_m
                                                : cbrt(decode * decode * decode + multiply * multiply * multiply);
  /* 128 rows by 128 rows of X overlap less (128 to 512 rows of X, five shapes: H200, 2026-11-23). */
  const double small = tile_m == 128 && kind->tile.row_tiles == 1 ? 1.1 : 1.0;
  return fmax(fmax(read, LPG_GEMM_LOAD_NS), both * crowded * small);
}

static inline lpg_gemm_pace lpg_gemm_pace_of(const lpg_gemm_kind *kind, double slower_dequantiser) {
  const int tile_m = kind->tile.tile_m, most = tile_m == LPG_GEMM_TILE_M;
  const lpg_gemm_pace pace = {lpg_gemm_block_ns(kind, tile_m),
                              lpg_gemm_has_halves(tile_m) ? lpg_gemm_block_ns(kind, 0.5 * tile_m) : 0.0,
                              (double)(most ? LPG_GEMM_LARGE_TILE_NS : LPG_GEMM_TILE_NS), slower_dequantiser};
  return pace;
}

/* Nanoseconds that the plan may take: work tiles in turn. */
static inline double lpg_gemm_cost(const lpg_gemm_plan *p, const lpg_gemm_kind *kind, const lpg_gemm_pace *pace) {
  const int rounds = (p->whole + p->clusters - 1) / p->clusters, halves = p->whole < p->n_tiles * p->m_tiles;
  const int blocks = (p->blocks + p->at_once - 1) / p->at_once * kind->tile.teams;
  return (rounds * (blocks * pace->block + pace->tile + lpg_gemm_parts_cost(p, kind)) +
          halves * (blocks * pace->half_block + pace->tile) + LPG_GEMM_START_NS) *
         pace->slower;
}

/* What a plan of the kind has however K is cut; 0 if there is none. */
static inline int lpg_gemm_frame(const lpg_gemm_kind *kind, const lpg_packed *weights, int64_t m, lpg_gemm_plan *p) {
  const lpg_gemm_plan none = LPG_ZERO;
  *p = none;
  p->blocks = (int32_t)((weights->k_padded + LPG_BLOCK_K - 1) / LPG_BLOCK_K);
  p->multicast = kind->multicast;
  p->n_tiles = (int32_t)((weights->desc.n + kind->tile_n * kind->multicast - 1) / (kind->tile_n * kind->multicast));
  p->m_tiles = (int32_t)((m + kind->tile.tile_m - 1) / kind->tile.tile_m);
  return (int64_t)p->n_tiles * p->m_tiles <= INT32_MAX;
}

/* Cuts K for clusters of so many blocks into so many parts (0: one for each team); 0 if it has no so many parts, or the
 * device no such clusters that run at once. */
static inline int lpg_gemm_cut(const lpg_gemm_kind *kind, int64_t m, const lpg_device *device, int split_k_log2,
                               int parts, lpg_gemm_plan *p) {
  if (kind->multicast > 1 && split_k_log2 > 0) return 0;
  const int cluster = kind->multicast << split_k_log2;
  const int32_t most = cluster > 1 ? device->clusters[cluster] : device->sms;
  const int32_t tiles = p->n_tiles * p->m_tiles;
  p->split_k = 1 << split_k_log2;
  p->at_once = p->split_k * kind->tile.teams;
  p->runs = parts > 0 ? parts / p->at_once : 1;
  p->parts = p->at_once * p->runs;
  if (parts > 0 && p->parts != parts) return 0;
  if (p->runs > 1 && !lpg_gemm_has_runs(kind->tile.tile_m, kind->tile.row_tiles)) return 0;
  if (p->runs > 2 && p->at_once > 1) return 0; /* each part's sums stay by themselves */
  if (most <= 0 || (p->parts > 1 && p->parts > p->blocks)) return 0;
  p->clusters = tiles < 1 ? 1 : tiles < most ? tiles : most;
  p->whole = p->parts == 1 && lpg_gemm_has_halves(kind->tile.tile_m)
                 ? lpg_whole_tiles(tiles, p->clusters, m, kind->tile.tile_m)
                 : tiles;
  p->part = lpg_partition_of(p->blocks, p->parts);
  return 1;
}

/* The plan for m rows that takes the least time, and that time, if it is less than *cost; else 0. `parts`: of K, or 0
 * if any number will do. */
static inline int lpg_gemm_make_plan(const lpg_gemm_kind *kind, const lpg_packed *weights, int64_t m,
                                     const lpg_device *device, int parts, double slower_dequantiser,
                                     lpg_gemm_plan *plan, double *cost) {
  const lpg_gemm_pace pace = lpg_gemm_pace_of(kind, slower_dequantiser);
  lpg_gemm_plan p;
  int found = 0;
  if (!lpg_gemm_frame(kind, weights, m, &p)) return 0;
  for (int i = 0; i < LPG_CLUSTER_SIZES; i++) {
    if (!lpg_gemm_cut(kind, m, device, i, parts, &p)) continue;
    const double ns = lpg_gemm_cost(&p, kind, &pace);
    if (ns >= *cost || !lpg_gemm_lay_out(&p, kind, device->shared_memory)) continue;
    found = 1;
    *cost = ns;
    *plan = p;
  }
  return found;
}

#endif
