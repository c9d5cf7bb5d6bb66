/* The lookup kernel for integer weights of 1 to 4 bits, one source compiled for several instruction sets,
 *
 *     -DLPG_LUT=base
 *     -DLPG_LUT=avx2    -mavx2 -mfma -mf16c
 *     -DLPG_LUT=vbmi    those of avx512 (../cpu/blocked.c), -mavx512vbmi -mavx512vnni -mgfni
 *
 * all with -O3 -ffp-contract=fast. A task takes some tiles of 16 rows of W. For each block of 256 columns and each tile it brings the
 * weights into the form of indices, a panel, and looks them up in the tables of every row of X. Sums of digits are
 * integers within a segment, the part of a block that lies in one group; scales and zeros go on them there, in fp64.
 *
 * The order of the operations for an element of Y does not depend on how Y is cut: results are batch invariant. */
#include <math.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "../cpu/cpu.h"
#include "../cpu/epilogue.h"
#include "build.h"
#include "lut.h"

enum {
  MAX_BITS = 4,
  MAX_ROWS = 64, /* rows of X at a time */
  TASK_TILES = 4 /* that take turns with a block's tables while the first level of the cache holds them */
};

/* Indices of the 16 rows and four lanes of a step, one a byte, a plane of 64 bytes for each bit of the weights. */
typedef struct panel_step {
  _Alignas(64) uint8_t index[MAX_BITS][LPG_TILE_ROWS * LPG_LUT_LANES];
} panel_step;

/* Sums of digits times 2^bit, one for each row in the order of sum_row(). */
typedef struct digit_sums {
  _Alignas(64) int32_t digit[LPG_LUT_DIGITS][LPG_TILE_ROWS];
} digit_sums;

/* With constant widths, digits and places, loops and branches fold away. */
#define INLINE static inline __attribute__((always_inline))

/* Each of the three gives:
 *   sum_row(), index_byte()   in which order the sums and the panel are
 *   make_panel_of(), for so many tiles of a block, and add_lookups(), over the steps [first, end) of a block */
#if defined(__AVX512VBMI__)
#define LPG_LUT_VECTOR 64
#include "panel_vbmi.h"
#elif defined(__AVX2__)
#define LPG_LUT_VECTOR 32
#include "panel_avx2.h"
#else
#include "panel_base.h"
#endif

/* What a group of 16 rows shares, in the order of the sums, fp64: weight = (value - zero) * scale + rest. The zero is
 * an integer, near to the value that makes the weight 0, and the rest is at most scale / 2; but where there is no such
 * value among those of codes, the zero is 0. So sums of x * (value - zero) are exact and those of |x (value - zero)| are
 * at most 2 |x weight|: large activations on weights that are 0 leave nothing behind. */
typedef struct group {
  double scale[LPG_TILE_ROWS], zero[LPG_TILE_ROWS], rest[LPG_TILE_ROWS];
} group;

typedef struct scratch {
  panel_step panel[LPG_LUT_STEPS];
  double sums[MAX_ROWS][TASK_TILES][LPG_TILE_ROWS];
} scratch;
_Static_assert(sizeof(scratch) <= LPG_SCRATCH_BYTES, "the scratch of a thread is too small");

/* value of a stored code = step * code + offset */
typedef struct number {
  int bits, step, offset;
} number;

typedef struct job {
  const lpg_call *call;
  const lpg_plan *plan;
  number type;
  int digits;       /* of the tables, at most */
  int one_zero;     /* all weights have the zero below: groups have no zeros and no rests */
  double zero, left; /* an integer, and what the zero has beyond it */
  int64_t first, rows, blocks; /* rows of X, and blocks of a row */
  const lpg_lut_block *tables; /* of these rows */
  lpg_lut_block *to_build;     /* the same, while they are built */
} job;

/* ---- groups ---- */

/* The 16 values of a section for a row tile and a column, in slot order. */
static void load_section(const job *j, lpg_section_id id, int64_t row_tile, int64_t k, float *out) {
  lpgemm_dtype_t type = lpg_section_type(&j->plan->desc, id);
  const lpg_axis *axis = lpg_section_axis(j->plan, id);
  const uint8_t *at =
      j->call->section[id] + lpg_value_offset(type, axis->padded, row_tile * LPG_TILE_ROWS, k / axis->k);
  if (type == LPGEMM_UINT(4)) {
    for (int i = 0; i < LPG_TILE_ROWS; i++) out[i] = (float)(at[i / 2] >> i % 2 * 4 & 15);
  } else {
    load_floats(type, at, 0, LPG_TILE_ROWS, out);
  }
}

/* Times the values of a section, in the order of the sums; nothing if there is no such section. A product of two fp32
 * numbers is exact. */
static void multiply_by_section(const job *j, lpg_section_id id, int64_t row_tile, int64_t k, double *values) {
  float factor[LPG_TILE_ROWS];
  if (!lpg_section_type(&j->plan->desc, id)) return;
  load_section(j, id, row_tile, k, factor);
  for (int i = 0; i < LPG_TILE_ROWS; i++) values[i] *= (double)factor[lpg_row_slot(sum_row(i))];
}

/* The integer next to a zero, if it is one that codes come near to. */
static inline double integer_zero(double zero) {
  const double most = 64.0, rounder = 0x1.8p52; /* adding it leaves an integer */
  double nearest = (zero + rounder) - rounder;
  return fabs(nearest) <= most ? nearest : 0.0;
}

static void load_group(const job *j, int64_t row_tile, int64_t k, group *g) {
  const lpgemm_weight_desc_t *d = &j->plan->desc;
  for (int i = 0; i < LPG_TILE_ROWS; i++) g->scale[i] = 1.0;
  multiply_by_section(j, LPG_SECTION_SCALES, row_tile, k, g->scale);
  multiply_by_section(j, LPG_SECTION_SUPER_SCALES, row_tile, k, g->scale);
  if (j->one_zero) return;
  double zero[LPG_TILE_ROWS];
  for (int i = 0; i < LPG_TILE_ROWS; i++) zero[i] = 1.0;
  multiply_by_section(j, LPG_SECTION_ZEROS, row_tile, k, zero);
  multiply_by_section(j, LPG_SECTION_SUPER_ZEROS, row_tile, k, zero);
  for (int i = 0; i < LPG_TILE_ROWS; i++) {
    double s = g->scale[i], z = integer_zero(d->zero == LPGEMM_ZERO_MINIMUM ? -zero[i] / s : zero[i]);
    double left = z - zero[i];
    g->zero[i] = z;
    g->rest[i] = d->zero == LPGEMM_ZERO_MINIMUM ? fma(z, s, zero[i]) : left != 0.0 ? left * s : 0.0;
  }
}

/* ---- a segment: the steps [first, end) of a block, all in one group ---- */

static void add_segment(int bits, int digits, const panel_step *panel, const lpg_lut_block *b, int first, int end,
                           digit_sums *sums) {
#define CASE(n, d) \
  case (n)*8 + (d): add_lookups(n, d, panel, b, first, end, sums); break
#define CASES(n) \
  CASE(n, 1);    \
  CASE(n, 2);    \
  CASE(n, 3);    \
  CASE(n, 4)
  switch (bits * 8 + digits) {
    CASES(1);
    CASES(2);
    CASES(3);
    CASES(4);
  }
#undef CASES
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

/* From the tables. As code = sum of 2^i * bit_i and bit_i = (1 + sign_i) / 2,
 * sum q * code = (sum of 2^i * (sum q * sign_i) + (2^bits - 1) * sum q) / 2. All is exact but for scales and rests. */
static void look_up(const job *j, const panel_step *panel, const lpg_lut_block *b, int first, int end, const group *g,
                    double *sums) {
  int digits = LPG_LUT_DIGITS - b->first < j->digits ? LPG_LUT_DIGITS - b->first : j->digits;
  double sum_q = b->before[end] - b->before[first], planes = (double)((1 << j->type.bits) - 1);
  double bias = planes * (double)(end - first) * lpg_lut_step_bias(digits);
  double half = 0.5 * (double)j->type.step, offset = half * (planes * sum_q - bias) + (double)j->type.offset * sum_q;
  double value[LPG_TILE_ROWS];
  digit_sums found = {{{0}}}; /* digits that are not used stay 0 */
  add_segment(j->type.bits, digits, panel, b, first, end, &found);
  for (int i = 0; i < LPG_TILE_ROWS; i++) { /* two digits' sums fit 32 bits: 2^8 * 255 * 15 * 64 < 2^26 */
    value[i] = 0x1p16 * (double)(found.digit[3][i] * 256 + found.digit[2][i]);
  }
  if (digits > 2) {
    for (int i = 0; i < LPG_TILE_ROWS; i++) value[i] += (double)(found.digit[1][i] * 256 + found.digit[0][i]);
  }
  if (j->one_zero) {
    double rest = j->left * sum_q;
    offset -= j->zero * sum_q;
    for (int i = 0; i < LPG_TILE_ROWS; i++) sums[i] += ((half * value[i] + offset) + rest) * (g->scale[i] * b->unit);
  } else {
    for (int i = 0; i < LPG_TILE_ROWS; i++) {
      double exact = (half * value[i] + offset) - g->zero[i] * sum_q;
      sums[i] += b->unit * (exact * g->scale[i] + sum_q * g->rest[i]);
    }
  }
}

/* The activations that are kept out of the tables. Their codes are in the panel, a bit in each plane. */
static void multiply_kept(const job *j, const panel_step *panel, const lpg_lut_block *b, int first, int end,
                          const group *g, double *sums) {
  for (int c = first * LPG_STEP_K; c < end * LPG_STEP_K; c++) {
    if (!(b->kept[c / 32] >> c % 32 & 1)) continue;
    int t = lpg_lut_lane(c % LPG_STEP_K), place = lpg_lut_bit(c % LPG_STEP_K);
    for (int i = 0; i < LPG_TILE_ROWS; i++) {
      int code = 0;
      for (int bit = 0; bit < j->type.bits; bit++) {
        code |= (panel[c / LPG_STEP_K].index[bit][index_byte(i, t)] >> place & 1) << bit;
      }
      double value = (double)(j->type.step * code + j->type.offset);
      double weight = j->one_zero ? ((value - j->zero) + j->left) * g->scale[i]
                                  : (value - g->zero[i]) * g->scale[i] + g->rest[i];
      sums[i] += (double)b->x[c] * weight;
    }
  }
}

/* ---- a task ---- */

/* Brings the codes of the next block, which are multiplied after those of the task's other tiles. */
static void prefetch(const uint8_t *codes, int bytes) {
  for (int i = 0; i < bytes; i += 64) __builtin_prefetch(codes + i);
}

static void multiply_block(const job *j, int64_t row_tile, int64_t block, int tile, scratch *s) {
  const lpg_plan *plan = j->plan;
  int64_t k = block * LPG_LUT_K, left = plan->desc.k - k, k_tile = k / lpg_tile_k(plan->bits);
  int steps = (int)lpg_ceil_div(left < LPG_LUT_K ? left : LPG_LUT_K, LPG_STEP_K);
  int tiles = LPG_LUT_K / lpg_tile_k(plan->bits), bytes = tiles * lpg_tile_bytes(plan->bits);
  const uint8_t *codes =
      j->call->section[LPG_SECTION_CODES] + lpg_tile_offset(plan->bits, plan->k_tiles, row_tile, k_tile);
  if (k_tile + 2 * tiles <= plan->k_tiles) prefetch(codes + bytes, bytes);
  if (tiles > plan->k_tiles - k_tile) tiles = (int)(plan->k_tiles - k_tile);
  make_panel(plan->bits, tiles, codes, s->panel);
  for (int first = 0, end; first < steps; first = end) {
    int64_t column = k + first * LPG_STEP_K, group_end = column + plan->group.k - column % plan->group.k;
    end = group_end - k < steps * LPG_STEP_K ? (int)(group_end - k) / LPG_STEP_K : steps;
    group g;
    load_group(j, row_tile, column, &g);
    for (int64_t m = 0; m < j->rows; m++) {
      const lpg_lut_block *b = j->tables + m * j->blocks + block;
      look_up(j, s->panel, b, first, end, &g, s->sums[m][tile]);
      if (b->any_kept) multiply_kept(j, s->panel, b, first, end, &g, s->sums[m][tile]);
    }
  }
}

static void run_task(void *context, int64_t index, void *memory) {
  const job *j = context;
  scratch *s = memory;
  int64_t first_tile = index * TASK_TILES, left = j->plan->row_tiles - first_tile;
  int tiles = left < TASK_TILES ? (int)left : TASK_TILES;
  memset(s->sums, 0, (size_t)j->rows * sizeof s->sums[0]);
  for (int64_t block = 0; block < j->blocks; block++) {
    for (int i = 0; i < tiles; i++) multiply_block(j, first_tile + i, block, i, s);
  }
  for (int64_t m = 0; m < j->rows; m++) {
    for (int i = 0; i < tiles * LPG_TILE_ROWS; i++) {
      int64_t n = (first_tile + i / LPG_TILE_ROWS) * LPG_TILE_ROWS + sum_row(i % LPG_TILE_ROWS);
      double sum = s->sums[m][i / LPG_TILE_ROWS][i % LPG_TILE_ROWS];
      if (n < j->plan->desc.n) lpgemm_i_epilogue(j->call, j->first + m, n, sum * (double)j->plan->desc.global_scale);
    }
  }
}

/* ---- the call ---- */

static void build_task(void *context, int64_t index, void *unused) {
  const job *j = context;
  const lpg_call *call = j->call;
  int64_t row = (j->first + index / j->blocks) * call->ldx;
  (void)unused;
  build_part(j->plan->desc.k, call->x, call->problem.x_type, row, index % j->blocks, j->to_build + index);
}

#define NAME_(start, isa) start##isa
#define NAME(start, isa) NAME_(start, isa)

static void read_weights(job *j) {
  const lpgemm_weight_desc_t *d = &j->plan->desc;
  j->type = (number){j->plan->bits, lpg_integer_step(d->type), lpg_integer_offset(d->type)};
  j->one_zero = d->zero == LPGEMM_ZERO_NONE || d->zero == LPGEMM_ZERO_CONSTANT;
  j->zero = integer_zero((double)d->zero_constant);
  j->left = j->zero - (double)d->zero_constant;
}

lpgemm_status_t NAME(lpgemm_i_lut_, LPG_LUT)(const lpg_call *call) {
  const lpg_problem *problem = &call->problem;
  job j = {.call = call, .plan = problem->plan};
  read_weights(&j);
  j.digits = problem->level == LPGEMM_LEVEL_FAST ? 2 : LPG_LUT_DIGITS;
  j.blocks = call->skip_product ? 0 : lpg_lut_blocks(problem->plan->desc.k);
  int64_t most = MAX_ROWS, fitting = LPG_SHARED_BYTES / (int64_t)sizeof(lpg_lut_block);
  if (!problem->tables && j.blocks > 0) {
    j.to_build = call->workspace ? call->workspace : lpgemm_i_pool_shared(call->pool);
    most = j.blocks > fitting ? 1 : fitting / j.blocks;
    if (most > MAX_ROWS) most = MAX_ROWS;
  }
  for (; j.first < problem->m; j.first += j.rows) {
    j.rows = problem->m - j.first < most ? problem->m - j.first : most;
    j.tables = problem->tables ? (const lpg_lut_block *)call->tables + j.first * j.blocks : j.to_build;
    if (j.to_build) lpgemm_i_parallel(call->pool, j.rows * j.blocks, build_task, &j);
    lpgemm_i_parallel(call->pool, lpg_ceil_div(problem->plan->row_tiles, TASK_TILES), run_task, &j);
  }
  return LPGEMM_SUCCESS;
}

void NAME(lpgemm_i_lut_build_, LPG_LUT)(int64_t m, int64_t k, const void *x, lpgemm_dtype_t x_type, int64_t ldx,
                                        void *tables) {
  lpg_lut_block *block = tables;
  for (int64_t row = 0; row < m; row++) {
    for (int64_t i = 0; i < lpg_lut_blocks(k); i++) build_part(k, x, x_type, row * ldx, i, block++);
  }
}
