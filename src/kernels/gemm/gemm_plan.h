/* How a problem of many rows is cut into pieces: plain arithmetic, for C and CUDA.
 *
 * An item is a tile of 64, 128 or 256 rows of weights by 16 to 256 rows of X (tokens). K is cut into parts of whole
 * blocks of 256 columns, a part for each team of warps of each block of threads of a cluster, and all parts' sums are
 * added up. Where the number of parts is given, a team may have several, one after the other. Or K is not cut among
 * teams, and the blocks of threads of a cluster share X, with 128 and 256 tokens if that is faster: they have the same
 * tokens and different rows. Clusters take items in turn, in bands of row tiles, so that those that run at the same
 * time read the same weights and X; the last ones may come in halves of their tokens. */
#ifndef LPG_KERNELS_WIDE_PLAN_H
#define LPG_KERNELS_WIDE_PLAN_H

#include <math.h>

#include "../epilogue/sums.h"

enum {
  LPG_WIDE_COPY_WARPS = 4,   /* that bring what the others multiply */
  LPG_WIDE_ROWS = 256,       /* of an item, the most */
  LPG_WIDE_TOKENS = 256,     /* of an item, the most */
  LPG_WIDE_BOX_TOKENS = 128, /* the most that one copy of the tensor memory accelerator brings, ... */
  LPG_WIDE_BOX_K = 64,       /* ... and their columns */
  LPG_WIDE_BAND = 12,        /* items of a band, of rows */
  LPG_WIDE_EARLY_BLOCKS = 4, /* of 256 columns whose weights are asked for before the kernel before ends */
  LPG_WIDE_BARRIER_BYTES = 512
};

/* ---- what a kernel's template and the weights fix ---- */

/* The items that there are kernels for: tokens, row tiles of a warp, teams, and warps of a team. All teams have the
 * same rows: more warps hide more of what each waits for. The first is for calls whose parts are given. */
#define LPG_WIDE_ITEMS(item)                                                                                   \
  item(16, 1, 2, 4) item(32, 1, 1, 8) item(32, 1, 2, 8) item(32, 1, 1, 16) item(64, 1, 1, 8) item(64, 1, 2, 8) \
      item(64, 1, 1, 16) item(128, 1, 1, 8) item(128, 2, 1, 8) item(256, 1, 1, 8)

typedef struct lpg_wide_item {
  int tokens, row_tiles, teams, warps;
} lpg_wide_item;

/* Columns of a stage of X: the more, the fewer waits, and the fewer stages there is room for. */
LPG_FN int lpg_wide_stage_k(int tokens) { return tokens == LPG_WIDE_TOKENS ? 64 : 128; }

/* Blocks of 256 columns that stages have room for, the most. */
LPG_FN int lpg_wide_most_blocks(int tokens) { return tokens < 128 ? 8 : 4; }

/* Steps of 16 columns of a stage of weights: whole tiles. */
LPG_FN int lpg_wide_stage_steps(int bits, int stage_k) {
  return (lpg_tile_k(bits) < stage_k ? stage_k : lpg_tile_k(bits)) / LPG_STEP_K;
}

/* Whether so many blocks of threads of a cluster may have the same tokens and different rows of weights: what one
 * brings of X, by a copy of the tensor memory accelerator, it brings for all, and they take turns. */
enum { LPG_WIDE_MOST_SHARE = 2 };
LPG_FN int lpg_wide_has_share(int tokens, int row_tiles, int share) {
  return share == 1 || (tokens >= 128 && row_tiles == 1);
}

/* Whether a team may have several parts of K, one after the other: the sums of those before stay in registers. */
LPG_FN int lpg_wide_has_runs(int tokens, int row_tiles) { return tokens == 128 && row_tiles == 1; }

/* Whether the last items may come in halves of their tokens. */
LPG_FN int lpg_wide_has_halves(int tokens) { return tokens == LPG_WIDE_TOKENS; }

LPG_FN int lpg_wide_rows(int row_tiles, int warps) { return row_tiles * warps * LPG_TILE_ROWS; }

/* How weights get their scales and zeros. In all forms but the last they are read as they are packed, and scales are of
 * X's type but where said. For the last a kernel makes lines of them first: weight = code * scale + rest, in fp32. */
typedef enum lpg_wide_form {
  LPG_WIDE_WHOLE, /* scales go on the rows' sums alone, or there are none; one zero for all */
  LPG_WIDE_PLAIN, /* groups of at least 128 columns, one zero for all */
  LPG_WIDE_NEAR,  /* the same, integers scaled as they are decoded: a row's scales are near one another */
  LPG_WIDE_ZEROS, /* the same with zeros of groups */
  LPG_WIDE_SMALL, /* groups of 32 and 64 */
  LPG_WIDE_E4M3,  /* groups of 16 and more, scales of e4m3 */
  LPG_WIDE_E8M0,  /* groups of 32 and more, scales that are powers of two */
  LPG_WIDE_SPLIT, /* groups of at least 128, scales of fp16 for X of bf16: the sum of two numbers */
  LPG_WIDE_LINES  /* all others, groups of 16 and more */
} lpg_wide_form;
#define LPG_WIDE_EACH_FORM(form)                                                                          \
  form(LPG_WIDE_WHOLE) form(LPG_WIDE_PLAIN) form(LPG_WIDE_NEAR) form(LPG_WIDE_ZEROS) form(LPG_WIDE_SMALL) \
      form(LPG_WIDE_E4M3) form(LPG_WIDE_E8M0) form(LPG_WIDE_SPLIT) form(LPG_WIDE_LINES)

/* Steps that share a scale. */
LPG_FN int lpg_wide_granule(lpg_wide_form form) {
  switch (form) {
    case LPG_WIDE_SMALL:
    case LPG_WIDE_E8M0: return 2;
    case LPG_WIDE_E4M3:
    case LPG_WIDE_LINES: return 1;
    default: return 8;
  }
}

/* Whether zeros are read a group, be they the same or not. */
LPG_FN int lpg_wide_reads_zeros(lpg_wide_form form, int is_integer) {
  return is_integer && (form == LPG_WIDE_ZEROS || form == LPG_WIDE_SMALL || form == LPG_WIDE_SPLIT);
}

/* Weights as decoders tell them apart. */
typedef enum lpg_wide_weights {
  LPG_WIDE_INTEGERS,
  LPG_WIDE_FLOATS,
  LPG_WIDE_E4M3_WEIGHTS,
  LPG_WIDE_CODEBOOKS
} lpg_wide_weights;

LPG_FN lpg_wide_weights lpg_wide_weights_of(lpgemm_dtype_t type) {
  return lpg_is_integer_kind(type)             ? LPG_WIDE_INTEGERS
         : type == LPGEMM_E4M3                 ? LPG_WIDE_E4M3_WEIGHTS
         : lpg_kind(type) == LPGEMM_KIND_FLOAT ? LPG_WIDE_FLOATS
                                               : LPG_WIDE_CODEBOOKS;
}

/* What quantisers write; to build all forms for the others as well takes too long. */
LPG_FN int lpg_wide_common(lpg_wide_weights weights, int bits) {
  switch (weights) {
    case LPG_WIDE_INTEGERS: return bits == 2 || bits == 3 || bits == 4 || bits == 8;
    case LPG_WIDE_FLOATS: return bits == 4 || bits == 6;
    case LPG_WIDE_E4M3_WEIGHTS: return 1;
    default: return bits == 4;
  }
}

/* Which forms weights have kernels of: the special scales belong to floats. */
LPG_FN int lpg_wide_form_exists(lpg_wide_form form, int bf16, lpg_wide_weights weights, int bits) {
  const int common = lpg_wide_common(weights, bits), is_integer = weights == LPG_WIDE_INTEGERS;
  const int is_float = weights == LPG_WIDE_FLOATS || weights == LPG_WIDE_E4M3_WEIGHTS;
  switch (form) {
    case LPG_WIDE_WHOLE: return common;
    case LPG_WIDE_NEAR: return common && is_integer && !bf16;
    case LPG_WIDE_ZEROS: return common && is_integer;
    case LPG_WIDE_SMALL: return common;
    case LPG_WIDE_E4M3: return is_float && bits == 4;
    case LPG_WIDE_E8M0: return common && is_float;
    case LPG_WIDE_SPLIT: return common && bf16;
    default: return 1;
  }
}

/* Which items a form has: 16 warps, and two row tiles a warp, only where registers do, and for the form LINES the best
 * of each number of tokens. */
LPG_FN int lpg_wide_has(lpg_wide_form form, int bits, int tokens, int row_tiles, int teams, int all_warps) {
  if (row_tiles == 2 && bits > 4 && bits < 8) return 0;
  if (tokens < 32) return 1;
  if (form == LPG_WIDE_LINES) return tokens >= 128 || teams == 2;
  if (form == LPG_WIDE_WHOLE || form == LPG_WIDE_PLAIN || form == LPG_WIDE_NEAR)
    return all_warps == 16 || tokens >= 128;
  return all_warps == 8;
}

/* A slot in shared memory: scales of an item's rows, zeros, and, for a team's first block of an item, the rows'
 * exponents, each by row tiles, in these by granules. It is of a block of columns; in the form LINES of a stage of X,
 * and holds lines instead: of each row tile those of the groups that the stage's columns lie in, 8 pieces of 16 bytes,
 * each the lines of rows g and g + 8. */
enum {
  LPG_WIDE_LINES_BYTES = 128,            /* of a row tile and group */
  LPG_WIDE_LINES_KEPT = 256,             /* groups of a row that are read once */
  LPG_WIDE_MOST_LINES = 64 * 1024 * 1024 /* bytes of all that a call may make */
};
typedef struct lpg_wide_slot {
  int steps, granules, scale_bytes, zero_bytes; /* of a row tile; bytes of a granule */
  int zeros, exponents, bytes;                  /* where they begin, and the whole */
} lpg_wide_slot;

LPG_FN lpg_wide_slot lpg_wide_slot_of(lpg_wide_form form, int is_integer, int row_tiles, int stage_k) {
  lpg_wide_slot s = LPG_ZERO;
  const int lines = form == LPG_WIDE_LINES, bytes = form == LPG_WIDE_E4M3 || form == LPG_WIDE_E8M0 ? 1 : 2;
  s.steps = (lines ? stage_k : (int)LPG_BLOCK_K) / LPG_STEP_K;
  s.granules = s.steps / lpg_wide_granule(form);
  s.scale_bytes = lines ? (int)LPG_WIDE_LINES_BYTES : bytes * LPG_TILE_ROWS;
  s.zero_bytes = lpg_wide_reads_zeros(form, is_integer) ? LPG_TILE_ROWS : 0;
  if (form == LPG_WIDE_WHOLE) return s;
  s.zeros = row_tiles * s.granules * s.scale_bytes;
  s.exponents = s.zeros + row_tiles * s.granules * s.zero_bytes;
  s.bytes = s.exponents + (lines ? 0 : row_tiles * LPG_TILE_ROWS);
  return s;
}

/* Groups that a stage of X touches. */
static inline int lpg_wide_stage_groups(const lpg_plan *weights, int stage_k) {
  const int groups = lpg_block_groups(&weights->group) * stage_k / LPG_BLOCK_K;
  return groups > 1 ? groups : 1;
}

/* The form LINES: lines of a row tile, and of all of them the bytes in the workspace, with the factor of each row. */
static inline int64_t lpg_wide_groups(const lpg_plan *weights) {
  return weights->group.count <= 1 ? 1 : weights->group.padded;
}
static inline int64_t lpg_wide_lines_bytes(const lpg_plan *weights) {
  return weights->row_tiles * (lpg_wide_groups(weights) * LPG_WIDE_LINES_BYTES + LPG_TILE_ROWS * 4);
}

typedef struct lpg_wide_kind {
  lpg_wide_item item;
  int bits, rows, share, stage_k;
  lpg_wide_form form;
  int table_bytes; /* the decoder's, in shared memory */
  int slot_bytes;  /* of scales and zeros */
  int x_stage_bytes, w_stage_bytes;
} lpg_wide_kind;

static inline lpg_wide_kind lpg_wide_kind_of(const lpg_plan *weights, lpg_wide_item item, lpg_wide_form form,
                                             int share) {
  const int bits = weights->bits, row_tiles = item.row_tiles;
  const int is_codebook = lpg_kind(weights->desc.type) == LPGEMM_KIND_CODEBOOK;
  const int is_integer = lpg_is_integer_kind(weights->desc.type);
  lpg_wide_kind kind;
  kind.item = item;
  kind.rows = lpg_wide_rows(row_tiles, item.warps);
  kind.share = share;
  kind.stage_k = lpg_wide_stage_k(item.tokens);
  kind.bits = bits;
  kind.table_bytes = is_codebook ? (1 << 2 * bits) * LPG_LANES * 4 : 0;
  kind.form = form;
  kind.slot_bytes =
      form == LPG_WIDE_LINES
          ? kind.rows / LPG_TILE_ROWS * lpg_wide_stage_groups(weights, kind.stage_k) * LPG_WIDE_LINES_BYTES
          : lpg_wide_slot_of(form, is_integer, kind.rows / LPG_TILE_ROWS, kind.stage_k).bytes;
  kind.x_stage_bytes = item.tokens * kind.stage_k * 2;
  kind.w_stage_bytes = kind.rows * lpg_wide_stage_steps(bits, kind.stage_k) * LPG_STEP_K / 8 * bits;
  return kind;
}

/* ---- the plan ---- */

typedef struct lpg_wide_plan {
  int32_t blocks;                 /* of 256 columns */
  int32_t row_items, token_items; /* tiles of rows, of all blocks that share tokens, and of tokens */
  int32_t whole;                  /* items; those that are left come in halves, last */
  int32_t slices, share, groups;  /* blocks of threads of a cluster: slices of K, or those that share; clusters */
  int32_t at_once, runs;          /* parts of K that have their own teams, and that a team does one after the other */
  int32_t parts;                  /* of K: both together */
  lpg_shares part;                /* blocks of one */
  int32_t x_stages, w_stages, slots;
  /* offsets in shared memory */
  int32_t table, factors, sums, scales, x_ring, w_ring, shared_bytes;
} lpg_wide_plan;

/* Lays out shared memory; 0 if it does not fit. A stage of weights is for several of X where tiles are long. One of X
 * that is free must mean that the weights' next, and the slot's, are free as well: see the bounds, and that teams go
 * through the stages in turn, a block of columns each. */
static inline int lpg_wide_lay_out(lpg_wide_plan *p, const lpg_wide_kind *kind, int64_t shared_memory) {
  const int each = lpg_wide_stage_steps(kind->bits, kind->stage_k) * LPG_STEP_K / kind->stage_k;
  const int block_stages = LPG_BLOCK_K / kind->stage_k, others = (kind->item.teams - 1) * block_stages; /* of others */
  const int lines = kind->form == LPG_WIDE_LINES;
  p->table = LPG_WIDE_BARRIER_BYTES;
  p->factors = p->table + kind->table_bytes;
  p->sums = p->factors + 2 * LPG_WIDE_ROWS * 4;
  p->scales = p->sums;
  if (p->at_once == 1) { /* a warp's sums of a few tokens; of parts they lie where the stages were */
    p->scales +=
        kind->item.teams * kind->item.warps * lpg_sums_bytes(LPG_PASS_TOKENS, kind->item.row_tiles * LPG_TILE_ROWS);
  }
  const int most = lpg_wide_most_blocks(kind->item.tokens) * block_stages;
  p->slots = 1 + kind->item.teams + (most - 2) / block_stages;                              /* as below */
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
  /* A warp that copies brings one stage of each block; with fewer, or where what it sees given back is of two teams in
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
    const int sums_bytes = kind->item.teams * p->runs * lpg_sums_bytes(kind->item.tokens, kind->rows);
    p->sums = p->x_ring;
    if (p->shared_bytes < p->sums + sums_bytes) return 0;
  }
  return 1;
}

/* How much longer decoding takes in a form than in the plain one. */
static inline double lpg_wide_slower(lpg_wide_form form) {
  switch (form) {
    case LPG_WIDE_WHOLE:
    case LPG_WIDE_NEAR: return 0.8;
    case LPG_WIDE_PLAIN: return 1.0;
    case LPG_WIDE_ZEROS: return 1.1;
    case LPG_WIDE_SMALL:
    case LPG_WIDE_E8M0:
    case LPG_WIDE_SPLIT: return 1.4;
    case LPG_WIDE_E4M3: return 2.0;
    default: return 2.2;
  }
}

/* Nanoseconds in which a block of threads adds up the sums of an item's parts out of the others' shared memory, beyond
 * what storing takes anyway (H200). In clusters of eight with 256 rows to add up it is the most of a small matrix
 * (2026-11-22: 1024 x 4096 to 3072 x 6144 with 4 to 128 rows of X). Items of 128 tokens take longer to store whole as
 * well, so less comes on top (2026-11-23: 4096 x 4096 to 8192 x 28672 with 128 and 256 rows); of 256 tokens each block
 * reads 128 KB, one other block's after the other (the same day, the suite regret). */
static inline double lpg_wide_parts_cost(const lpg_wide_plan *p, const lpg_wide_kind *kind) {
  const int many = p->slices >= 8 && kind->rows * kind->item.teams >= LPG_WIDE_ROWS;
  if (p->at_once == 1) return 0.0;
  if (kind->item.tokens == LPG_WIDE_TOKENS) return 1250.0 * p->slices;
  return (p->slices > 1 && kind->item.tokens < 128 ? 1500.0 : 700.0) +
         (many ? kind->item.tokens * (kind->item.tokens > 32 ? 75.0 : 35.0) : 0.0);
}

/* Nanoseconds of 128 rows by a block of 256 columns of 4-bit integers in the plain form: measured on the H200 with each
 * item forced, 32 to 2048 rows of X, four shapes, 2026-11-23 (docs/performance.md). */
enum {
  LPG_WIDE_DECODE_NS = 830,        /* to decode them, in items of up to 128 tokens */
  LPG_WIDE_MULTIPLY_NS = 11,       /* to multiply them by a token */
  LPG_WIDE_HIDDEN_DECODE_NS = 350, /* with 256 tokens: what of decoding is not hidden, */
  LPG_WIDE_COPY_NS = 440,          /* by the warps that bring a block: as long as items of few tokens take */
  LPG_WIDE_ITEM_NS = 1800,         /* of an item beside its blocks, */
  LPG_WIDE_LARGE_ITEM_NS = 1200,   /* with 256 tokens, */
  LPG_WIDE_START_NS = 1500         /* and of a call */
};

/* Nanoseconds of a block of columns and of an item, and how many times as long as that all takes. */
typedef struct lpg_wide_pace {
  double block, half_block, item, slower;
} lpg_wide_pace;

/* A block of columns, at the speed of decoding and multiplying or of its share of the memory. */
static inline double lpg_wide_block_ns(const lpg_wide_kind *kind, double tokens) {
  const double share = kind->rows / 128.0;
  /* Of what an item reads per block, weights come out of memory once, and all of it through L2 (H200, 2026-11-23). */
  const double codes = kind->rows * 32.0 * kind->bits, x = tokens * 512.0 / kind->share;
  const double read = fmax(codes / 30.0, (codes + x) / 48.0);
  const double slower = lpg_wide_slower(kind->form);
  const double crowded =
      kind->item.warps == 16 && kind->bits == 7 ? 1.8 : 1.0; /* 7 bits by 16 warps: H200, 2026-11-22 */
  /* Decoding and multiplying overlap, the better the more one of them takes. */
  const double decode = LPG_WIDE_DECODE_NS * share * slower, multiply = LPG_WIDE_MULTIPLY_NS * share * tokens;
  const double both = tokens >= LPG_WIDE_TOKENS ? LPG_WIDE_HIDDEN_DECODE_NS * slower + 10.25 * tokens
                                                : cbrt(decode * decode * decode + multiply * multiply * multiply);
  /* 128 rows by 128 tokens overlap less (128 to 512 rows of X, five shapes: H200, 2026-11-23). */
  const double small = tokens == 128 && kind->item.row_tiles == 1 ? 1.1 : 1.0;
  return fmax(fmax(read, LPG_WIDE_COPY_NS), both * crowded * small);
}

static inline lpg_wide_pace lpg_wide_pace_of(const lpg_wide_kind *kind, double slower_decoder) {
  const int tokens = kind->item.tokens, most = tokens == LPG_WIDE_TOKENS;
  const lpg_wide_pace pace = {lpg_wide_block_ns(kind, tokens),
                              lpg_wide_has_halves(tokens) ? lpg_wide_block_ns(kind, 0.5 * tokens) : 0.0,
                              (double)(most ? LPG_WIDE_LARGE_ITEM_NS : LPG_WIDE_ITEM_NS), slower_decoder};
  return pace;
}

/* Nanoseconds that the plan may take: items in turn. */
static inline double lpg_wide_cost(const lpg_wide_plan *p, const lpg_wide_kind *kind, const lpg_wide_pace *pace) {
  const int rounds = (p->whole + p->groups - 1) / p->groups, halves = p->whole < p->row_items * p->token_items;
  const int blocks = (p->blocks + p->at_once - 1) / p->at_once * kind->item.teams;
  return (rounds * (blocks * pace->block + pace->item + lpg_wide_parts_cost(p, kind)) +
          halves * (blocks * pace->half_block + pace->item) + LPG_WIDE_START_NS) *
         pace->slower;
}

/* What a plan of the kind has however K is cut; 0 if there is none. */
static inline int lpg_wide_frame(const lpg_wide_kind *kind, const lpg_plan *weights, int64_t m, lpg_wide_plan *p) {
  const lpg_wide_plan none = LPG_ZERO;
  *p = none;
  p->blocks = (int32_t)((weights->k_padded + LPG_BLOCK_K - 1) / LPG_BLOCK_K);
  p->share = kind->share;
  p->row_items = (int32_t)((weights->desc.n + kind->rows * kind->share - 1) / (kind->rows * kind->share));
  p->token_items = (int32_t)((m + kind->item.tokens - 1) / kind->item.tokens);
  return (int64_t)p->row_items * p->token_items <= INT32_MAX;
}

/* Cuts K for clusters of so many blocks into so many parts (0: one for each team); 0 if it has no so many parts, or the
 * device no such clusters that run at once. */
static inline int lpg_wide_slice(const lpg_wide_kind *kind, int64_t m, const lpg_device *device, int slices_log2,
                                 int parts, lpg_wide_plan *p) {
  if (kind->share > 1 && slices_log2 > 0) return 0;
  const int cluster = kind->share << slices_log2;
  const int32_t most = cluster > 1 ? device->clusters[cluster] : device->units;
  const int32_t items = p->row_items * p->token_items;
  p->slices = 1 << slices_log2;
  p->at_once = p->slices * kind->item.teams;
  p->runs = parts > 0 ? parts / p->at_once : 1;
  p->parts = p->at_once * p->runs;
  if (parts > 0 && p->parts != parts) return 0;
  if (p->runs > 1 && !lpg_wide_has_runs(kind->item.tokens, kind->item.row_tiles)) return 0;
  if (p->runs > 2 && p->at_once > 1) return 0; /* each part's sums stay by themselves */
  if (most <= 0 || (p->parts > 1 && p->parts > p->blocks)) return 0;
  p->groups = items < 1 ? 1 : items < most ? items : most;
  p->whole = p->parts == 1 && lpg_wide_has_halves(kind->item.tokens)
                 ? lpg_whole_items(items, p->groups, m, kind->item.tokens)
                 : items;
  p->part = lpg_shares_of(p->blocks, p->parts);
  return 1;
}

/* The plan for m rows that takes the least time, and that time, if it is less than *cost; else 0. `parts`: of K, or 0
 * if any number will do. */
static inline int lpg_wide_make_plan(const lpg_wide_kind *kind, const lpg_plan *weights, int64_t m,
                                     const lpg_device *device, int parts, double slower_decoder, lpg_wide_plan *plan,
                                     double *cost) {
  const lpg_wide_pace pace = lpg_wide_pace_of(kind, slower_decoder);
  lpg_wide_plan p;
  int found = 0;
  if (!lpg_wide_frame(kind, weights, m, &p)) return 0;
  for (int i = 0; i < LPG_CLUSTER_SIZES; i++) {
    if (!lpg_wide_slice(kind, m, device, i, parts, &p)) continue;
    const double ns = lpg_wide_cost(&p, kind, &pace);
    if (ns >= *cost || !lpg_wide_lay_out(&p, kind, device->shared_memory)) continue;
    found = 1;
    *cost = ns;
    *plan = p;
  }
  return found;
}

#endif
