/* The lookup kernel for integer weights of 1 to 4 bits, one source compiled for several instruction sets,
 *
 *     -DLPG_LUT=base
 *     -DLPG_LUT=avx2    -mavx2 -mfma -mf16c
 *     -DLPG_LUT=vbmi    those of avx512 (../cpu/blocked.c), -mavx512vbmi -mavx512vnni -mgfni
 *     -DLPG_LUT=neon    none: every 64-bit ARM has it
 *
 * all with -O3 -ffp-contract=fast. A task takes some tiles of 16 rows of W. For each block of 256 columns and each tile
 * it brings the weights into the form of indices, a panel, and looks them up in the tables of every row of X. Sums of
 * digits are integers within a segment, the part of a block that lies in one group; scales and zeros go on them there,
 * in fp64.
 *
 * The order of the operations for an element of Y does not depend on how Y is cut: results are batch invariant. */
#include <math.h>
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(LPG_LUT_NEON)
#include <arm_neon.h>
#endif

#include "../cpu/cpu.h"
#include "../cpu/epilogue_rows.h"
#include "build.h"
#include "bytes.h"
#include "lut.h"
#include "stream.h"

enum {
  MAX_BITS = 4,
  MAX_ROWS = 64, /* rows of X at a time */
  TASK_TILES = 4 /* that take turns with a block's tables while the first level of the cache holds them */
};

/* Indices of the 16 rows and four lanes of a step, one a byte, a plane of 64 bytes for each bit of the weights. */
typedef struct panel_step {
  _Alignas(64) uint8_t index[MAX_BITS][LPG_TILE_ROWS * LPG_LUT_LANES];
} panel_step;

/* Sums of looked up entries times 2^bit, one for each row in the order of sum_row(): 2^16 * upper + lower. Two digits'
 * sums fit 32 bits: 2^8 * 255 * 15 * 64 < 2^26. */
typedef struct lut_sums {
  _Alignas(64) int32_t upper[LPG_TILE_ROWS], lower[LPG_TILE_ROWS];
} lut_sums;

/* With constant widths, digits and places, loops and branches fold away. */
#define INLINE static inline __attribute__((always_inline))

/* Each of the three gives:
 *   sum_row(), index_byte()   in which order the sums and the panel are
 *   sort_slots()              from the order of a section's values to that of the sums
 *   make_panel_of(), for so many tiles of a block, and add_lookups(), over the steps [first, end) of a block */
#if defined(__AVX512VBMI__)
#define LPG_LUT_VECTOR 64
#define LPG_LUT_PRODUCTS /* also add_bytes(), the same for tables of bytes, and products in place of lookups */
#include "panel_vbmi.h"
#include "products_vbmi.h"
#elif defined(__AVX2__)
#define LPG_LUT_VECTOR 32
#include "panel_avx2.h"
#elif defined(LPG_LUT_NEON)
#define LPG_LUT_VECTOR 16
#include "panel_neon.h"
#else
#include "panel_base.h"
#endif
#include "group.h"
#include "made.h"

/* What makes a segment's products of what is found in the tables of a row of X, for every row tile alike: all of it
 * times the block's unit, a power of two. */
typedef struct terms {
  double factor, offset; /* sum of q * value, or of q * (value - zero) where all weights have one zero */
  double rest;           /* what is left of the one zero, times the sum of q */
  double sum;            /* of q */
} terms;

typedef struct scratch {
  panel_step panel[LPG_LUT_STEPS];
  group group[LPG_LUT_STEPS]; /* of a segment each */
  lut_sums found[LPG_LUT_STEPS];
  terms terms[MAX_ROWS][LPG_LUT_STEPS];                      /* of a block's segments */
  _Alignas(64) uint8_t codes[LPG_LUT_K * LPG_TILE_ROWS / 2]; /* of 3 bits, loaded to 4 */
  _Alignas(64) double sums[MAX_ROWS][TASK_TILES][LPG_TILE_ROWS];
} scratch;
_Static_assert(sizeof(scratch) <= LPG_SCRATCH_BYTES, "the scratch of a thread is too small");

/* What a block of columns is for every row tile. */
typedef struct part {
  int64_t block, k_tile;
  int tiles, bytes; /* tiles of a row tile, and theirs */
  int segments;
  segment segment[LPG_LUT_STEPS];
} part;

/* value of a stored code = step * code + offset */
typedef struct number {
  int bits, step, offset;
} number;

typedef struct job {
  const lpg_call *call;
  const lpg_packed *packed;
  number type;
  int digits;                           /* of the tables, at most */
  double half;                          /* of the step */
  double sum_factor;                    /* of the sum of q in that of q * value, apart from what the tables give */
  double step_bias[LPG_LUT_DIGITS + 1]; /* what the biases of a step add to that, with so many digits */
  groups groups;
  int64_t ahead;                 /* row tiles from a task to the one that the thread takes next, about */
  int64_t first, rows, blocks;   /* rows of X, and blocks of a row */
  lpg_lut_block *tables;         /* of these rows */
  lut_bytes *bytes;              /* the same with 8 bits; NULL: those are not used */
  struct lut_products *products; /* the activations themselves; NULL: weights are looked up */
} job;

/* ---- a segment ---- */

/* CASE for each number of digits, with constants. */
#define CASES(n) \
  CASE(n, 1);    \
  CASE(n, 2);    \
  CASE(n, 3);    \
  CASE(n, 4)

static void add_segment(int bits, int digits, const panel_step *panel, const lpg_lut_block *b, int first, int end,
                        lut_sums *sums) {
#define CASE(n, d) \
  case (n)*8 + (d): add_lookups(n, d, panel, b, first, end, sums); break
  switch (bits * 8 + digits) {
    CASES(1);
    CASES(2);
    CASES(3);
    CASES(4);
  }
#undef CASE
}

static void make_panel(int bits, int tiles, const uint8_t *tile, panel_step *panel) {
  switch (bits) {
    case 1: make_panel_of(1, tiles, tile, panel); break;
    case 2: make_panel_of(2, tiles, tile, panel); break;
    case 3: make_panel_of(3, tiles, tile, panel); break;
    default: make_panel_of(4, tiles, tile, panel); break;
  }
}

/* The digits of a block's tables that are looked up. */
static int digits_of(const job *j, const lpg_lut_block *b) {
  int used = LPG_LUT_DIGITS - b->first;
  return used < j->digits ? used : j->digits;
}

/* What the lookups in bytes had more than the sums of q, for every plane. */
static double byte_bias(const lut_bytes *bytes, const segment *at) {
  return LPG_LUT_BYTE_BIAS * (double)(bytes->before[at->end] - bytes->before[at->first]);
}

static void find_segment(const job *j, const panel_step *panel, const lpg_lut_block *b, const lut_bytes *bytes,
                         const segment *at, lut_sums *found) {
#if defined(LPG_LUT_PRODUCTS)
  if (bytes) {
    switch (j->type.bits) {
      case 1: add_bytes(1, panel, bytes, at->first, at->end, found); return;
      case 2: add_bytes(2, panel, bytes, at->first, at->end, found); return;
      case 3: add_bytes(3, panel, bytes, at->first, at->end, found); return;
      default: add_bytes(4, panel, bytes, at->first, at->end, found); return;
    }
  }
#else
  (void)bytes;
#endif
  add_segment(j->type.bits, digits_of(j, b), panel, b, at->first, at->end, found);
}

#if defined(LPG_LUT_PRODUCTS)
/* The codes of a block in the form of 4-bit ones. */
static const uint8_t *codes_to_multiply(const job *j, const uint8_t *codes, scratch *s) {
  if (j->type.bits != 3) return codes;
  widen_codes(codes, s->codes);
  return s->codes;
}

static void multiply_segment(int fields, int digits, const uint8_t *codes, const lut_products *x, const segment *at,
                             lut_sums *sums) {
#define CASE(n, d) \
  case (n)*8 + (d): add_products(n, d, codes, x, at->first, at->end, sums); break
  switch (fields * 8 + digits) {
    CASES(2);
    CASES(4);
  }
#undef CASE
}
#endif

/* As code = sum of 2^i * bit_i and bit_i = (1 + sign_i) / 2,
 * sum q * code = (sum of 2^i * (sum q * sign_i) + (2^bits - 1) * sum q) / 2. All is exact. */
static terms terms_of(const job *j, const lpg_lut_block *b, const lut_bytes *bytes, const segment *at) {
  double sum_q = b->before[at->end] - b->before[at->first], half = j->half;
  double offset = j->sum_factor * sum_q;
  if (bytes) {
    half *= bytes->unit;
    offset -= half * (double)((1 << j->type.bits) - 1) * byte_bias(bytes, at);
  } else {
    offset -= j->step_bias[digits_of(j, b)] * (double)(at->end - at->first);
  }
  if (j->groups.one_zero) offset -= j->groups.zero * sum_q;
  return (terms){half * b->unit, offset * b->unit, j->groups.left * sum_q * b->unit, sum_q * b->unit};
}

/* Adds what was found to the sums of Y. All is exact but for scales and rests. */
INLINE void add_found(int one_zero, const terms *x, const group *g, const lut_sums *found, double *sums) {
  for (int i = 0; i < LPG_TILE_ROWS; i += V) {
    vdouble upper = to_doubles(*(const vint *)(found->upper + i)),
            lower = to_doubles(*(const vint *)(found->lower + i));
    vdouble value = (upper * 0x1p16 + lower) * x->factor + x->offset, scale = *(const vdouble *)(g->scale + i);
    if (one_zero) {
      *(vdouble *)(sums + i) += (value + x->rest) * scale;
    } else {
      value -= *(const vdouble *)(g->zero + i) * x->sum;
      *(vdouble *)(sums + i) += value * scale + *(const vdouble *)(g->rest + i) * x->sum;
    }
  }
}

INLINE void add_segment_found(const job *j, const terms *x, const group *g, const lut_sums *found, double *sums) {
  if (j->groups.one_zero) {
    add_found(1, x, g, found, sums);
  } else {
    add_found(0, x, g, found, sums);
  }
}

/* The activations that are kept out of the tables. Their codes are in the panel, a bit in each plane. */
static void multiply_kept(const job *j, const panel_step *panel, const lpg_lut_block *b, const segment *at,
                          const group *g, double *sums) {
  for (int c = at->first * LPG_STEP_K; c < at->end * LPG_STEP_K; c++) {
    if (!(b->kept[c / 32] >> c % 32 & 1)) continue;
    int t = lpg_lut_lane(c % LPG_STEP_K), place = lpg_lut_bit(c % LPG_STEP_K);
    for (int i = 0; i < LPG_TILE_ROWS; i++) {
      int code = 0;
      for (int bit = 0; bit < j->type.bits; bit++) {
        code |= (panel[c / LPG_STEP_K].index[bit][index_byte(i, t)] >> place & 1) << bit;
      }
      double value = (double)(j->type.step * code + j->type.offset);
      double weight = j->groups.one_zero ? ((value - j->groups.zero) + j->groups.left) * g->scale[i]
                                         : (value - g->zero[i]) * g->scale[i] + g->rest[i];
      sums[i] += (double)b->x[c] * weight;
    }
  }
}

/* ---- a task ---- */

static void describe_part(const lpg_packed *packed, int64_t block, part *p) {
  int tile_k = lpg_tile_k(packed->bits);
  int64_t k = block * LPG_LUT_K, left = packed->desc.k - k, tiles = LPG_LUT_K / tile_k;
  int steps = (int)lpg_ceil_div(left < LPG_LUT_K ? left : LPG_LUT_K, LPG_STEP_K), first = 0;
  const int has_levels = packed->desc.super_scale_type || packed->desc.super_zero_type;
  p->block = block;
  p->k_tile = k / tile_k;
  p->segments = 0;
  p->tiles = (int)(tiles < packed->k_tiles - p->k_tile ? tiles : packed->k_tiles - p->k_tile);
  p->bytes = p->tiles * lpg_tile_bytes(packed->bits);
  for (int64_t group = k / packed->group.k; first < steps; group++) { /* a segment ends where its group does */
    int64_t column = k + first * LPG_STEP_K;
    int64_t steps_of_group = ((group + 1) * packed->group.k - k) / LPG_STEP_K;
    int end = steps_of_group < steps ? (int)steps_of_group : steps;
    p->segment[p->segments++] = (segment){first, end, group, has_levels ? column / packed->super.k : 0};
    first = end;
  }
}

static const uint8_t *codes_of(const job *j, int64_t row_tile, const part *p) {
  const lpg_packed *packed = j->packed;
  return j->call->section[LPG_SECTION_CODES] + lpg_tile_offset(packed->bits, packed->k_tiles, row_tile, p->k_tile);
}

#if defined(LPG_LUT_PRODUCTS)
/* The panel is made for activations that are kept out, if there are some. */
static void multiply_block(const job *j, const tile_rows *rows, const part *p, const uint8_t *packed, int tile,
                           scratch *s) {
  const uint8_t *codes = codes_to_multiply(j, packed, s);
  const int fields = fields_of(j->type.bits);
  int has_panel = 0;
  for (int i = 0; i < p->segments; i++) load_group(&j->groups, rows, &p->segment[i], &s->group[i]);
  for (int64_t m = 0; m < j->rows; m++) {
    const lpg_lut_block *b = j->tables + m * j->blocks + p->block;
    const lut_products *x = j->products + m * j->blocks + p->block;
    double *sums = s->sums[m][tile];
    if (b->any_kept && !has_panel) {
      make_panel(j->packed->bits, p->tiles, packed, s->panel);
      has_panel = 1;
    }
    for (int i = 0; i < p->segments; i++)
      multiply_segment(fields, digits_of(j, b), codes, x, &p->segment[i], &s->found[i]);
    for (int i = 0; i < p->segments; i++) {
      add_segment_found(j, &s->terms[m][i], &s->group[i], &s->found[i], sums);
      if (b->any_kept) multiply_kept(j, s->panel, b, &p->segment[i], &s->group[i], sums);
    }
  }
}
#endif

static void multiply_part(const job *j, const tile_rows *rows, const part *p, int tile, scratch *s) {
  const lpg_packed *packed = j->packed;
  const uint8_t *codes = codes_of(j, rows->tile, p);
#if defined(LPG_LUT_PRODUCTS)
  if (j->products) {
    multiply_block(j, rows, p, codes, tile, s);
    return;
  }
#endif
  make_panel(packed->bits, p->tiles, codes, s->panel);
  for (int i = 0; i < p->segments; i++) load_group(&j->groups, rows, &p->segment[i], &s->group[i]);
  for (int64_t m = 0; m < j->rows; m++) {
    const lpg_lut_block *b = j->tables + m * j->blocks + p->block;
    const lut_bytes *bytes = j->bytes ? j->bytes + m * j->blocks + p->block : NULL;
    double *sums = s->sums[m][tile];
    for (int i = 0; i < p->segments; i++) find_segment(j, s->panel, b, bytes, &p->segment[i], &s->found[i]);
    for (int i = 0; i < p->segments; i++) {
      add_segment_found(j, &s->terms[m][i], &s->group[i], &s->found[i], sums);
      if (b->any_kept) multiply_kept(j, s->panel, b, &p->segment[i], &s->group[i], sums);
    }
  }
}

static void run_task(void *context, int64_t index, void *memory) {
  const job *j = context;
  scratch *s = memory;
  int64_t first_tile = index * TASK_TILES, left = j->packed->row_tiles - first_tile;
  int tiles = left < TASK_TILES ? (int)left : TASK_TILES;
  const int64_t ahead = first_tile + j->ahead; /* the thread's next task, about */
  code_stream codes =
      stream_from(j->packed, j->call->section[LPG_SECTION_CODES], ahead < j->packed->row_tiles ? ahead : first_tile);
  part p;
  memset(s->sums, 0, (size_t)j->rows * sizeof s->sums[0]);
  for (int64_t block = 0; block < j->blocks; block++) {
    describe_part(j->packed, block, &p);
    for (int64_t m = 0; m < j->rows; m++) {
      const int64_t at = m * j->blocks + block;
      for (int i = 0; i < p.segments; i++) {
        s->terms[m][i] = terms_of(j, j->tables + at, j->bytes ? j->bytes + at : NULL, &p.segment[i]);
      }
    }
    for (int64_t i = first_tile; i < first_tile + tiles; i++) {
      const int64_t next = i + j->ahead < j->packed->row_tiles ? i + j->ahead : j->packed->row_tiles - 1;
      const tile_rows rows = {i, i / j->packed->tiles_a_scale, next / j->packed->tiles_a_scale};
      fetch(&codes, p.bytes);
      multiply_part(j, &rows, &p, (int)(i - first_tile), s);
    }
  }
  for (int64_t m = 0; m < j->rows; m++) {
    for (int i = 0; i < tiles; i++) {
      int64_t n = (first_tile + i) * LPG_TILE_ROWS, rows = j->packed->desc.n - n;
      double of_rows[LPG_TILE_ROWS];
      for (int r = 0; r < LPG_TILE_ROWS; r++) {
        of_rows[sum_row(r)] = s->sums[m][i][r] * (double)j->packed->desc.global_scale;
      }
      lpg_epilogue_tile(j->call, j->first + m, n, rows < LPG_TILE_ROWS ? (int)rows : LPG_TILE_ROWS, of_rows);
    }
  }
}

/* ---- the call ---- */

static void build_task(void *context, int64_t index, void *unused) {
  const job *j = context;
  const lpg_call *call = j->call;
  int64_t row = (j->first + index / j->blocks) * call->ldx;
  (void)unused;
  build_part(j->packed->desc.k, call->x, call->problem.x_type, row, index % j->blocks, !j->products, j->tables + index);
#if defined(LPG_LUT_PRODUCTS)
  if (j->products)
    split_block(fields_of(j->type.bits), j->digits < LPG_LUT_DIGITS, j->tables + index, j->products + index);
#endif
  if (j->bytes) shorten_block(j->type.bits, j->tables + index, j->bytes + index);
}

static void read_weights(job *j) {
  lpgemm_dtype_t type = j->packed->desc.type;
  j->type = (number){j->packed->bits, lpg_integer_step(type), lpg_integer_offset(type)};
  j->groups = describe_groups(j->packed, j->call->section);
  double planes = (double)((1 << j->type.bits) - 1);
  j->half = 0.5 * (double)j->type.step;
  j->sum_factor = j->half * planes + (double)j->type.offset;
  for (int i = 1; i <= LPG_LUT_DIGITS; i++) j->step_bias[i] = j->half * planes * lpg_lut_step_bias(i);
}

#if defined(LPG_LUT_PRODUCTS)
/* The sum of q * code is what was found, without bias. */
static void expect_products(job *j) {
  j->half = (double)j->type.step;
  j->sum_factor = (double)j->type.offset;
  for (int i = 0; i <= LPG_LUT_DIGITS; i++) j->step_bias[i] = 0.0;
}
#endif

/* Tables of row `first` of `rows` that are, or will be, at `memory`, and what is beside them. */
static void place_x(job *j, others kind, int64_t rows, int64_t first, void *memory) {
  lpg_lut_block *tables = memory;
  void *after = tables + rows * j->blocks;
  j->tables = tables + first * j->blocks;
  if (kind == BYTES) j->bytes = (lut_bytes *)after + first * j->blocks;
#if defined(LPG_LUT_PRODUCTS)
  if (kind == PRODUCTS) j->products = (lut_products *)after + first * j->blocks;
#endif
}

#define NAME_(isa, part) lpgemm_i_lut_##isa##part
#define NAME(isa, part) NAME_(isa, part)

lpgemm_status_t NAME(LPG_LUT, )(const lpg_call *call) {
  const lpg_problem *problem = &call->problem;
  job j = {.call = call, .packed = problem->weights};
  int64_t bytes;
  const others kind = others_of(problem, &bytes);
  read_weights(&j);
#if defined(LPG_LUT_PRODUCTS)
  if (kind == PRODUCTS) expect_products(&j);
#endif
  j.digits = digits_at(problem->level);
  j.ahead = lpgemm_i_pool_threads(call->pool) * TASK_TILES;
  j.blocks = call->skip_product ? 0 : lpg_lut_blocks(problem->weights->desc.k);
  int64_t most = MAX_ROWS;
  void *tables = lpgemm_i_pool_shared(call->pool);
  if (j.blocks > 0 && !call->made_x) {
    most = LPG_SHARED_BYTES / (j.blocks * ((int64_t)sizeof(lpg_lut_block) + bytes));
    if (most == 0) tables = call->workspace; /* of one row: the planner asked for it */
    most = most == 0 ? 1 : most < MAX_ROWS ? most : MAX_ROWS;
  }
  for (; j.first < problem->m; j.first += j.rows) {
    j.rows = problem->m - j.first < most ? problem->m - j.first : most;
    if (call->made_x) {
      place_x(&j, kind, problem->m, j.first, (void *)call->made_x); /* which is not written */
    } else {
      place_x(&j, kind, j.rows, 0, tables);
      if (j.blocks > 0) LPG_TRY(lpgemm_i_parallel(call->pool, j.rows * j.blocks, build_task, &j));
    }
    LPG_TRY(lpgemm_i_parallel(call->pool, lpg_ceil_div(problem->weights->row_tiles, TASK_TILES), run_task, &j));
  }
  return LPGEMM_SUCCESS;
}

/* ---- X alone ---- */

static lpgemm_status_t make_x(const lpg_call *call, void *made) {
  int64_t bytes;
  job j = {.call = call, .packed = call->problem.weights, .digits = digits_at(call->problem.level)};
  j.type.bits = j.packed->bits;
  j.blocks = lpg_lut_blocks(j.packed->desc.k);
  place_x(&j, others_of(&call->problem, &bytes), call->problem.m, 0, made);
  return lpgemm_i_parallel(call->pool, call->problem.m * j.blocks, build_task, &j);
}

const lpg_x_form NAME(LPG_LUT, _form) = {.variant = variant, .bytes = made_bytes, .make = make_x};
