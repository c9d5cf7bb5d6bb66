/* The lookup kernel in portable C: right for every integer weight of 1 to 4 bits, not yet fast. */
#include <math.h>

#include "../cpu/cpu.h"
#include "../cpu/epilogue.h"
#include "../cpu/weight.h"
#include "lut.h"

enum {
  MAX_BITS = 4,
  MAX_LOOKUPS = LPG_LUT_LANES * MAX_BITS,
  ROWS_AT_ONCE = 16 /* rows of X that share the lookups of a weight row */
};

/* ---- weights: a step of one row ---- */

/* One bit plane of a lane's four codes: factor * table[entry]. */
typedef struct lookup {
  double factor; /* +-2^bit; minus if the sum is in the half that the table leaves out */
  int entry;
} lookup;

typedef struct step_codes {
  uint32_t lane[LPG_LUT_LANES]; /* four stored codes each, one a byte */
  int lookups;
  lookup lookup[MAX_LOOKUPS];
} step_codes;

/* Where the codes of a step lie in a lane's words: of columns 2t, 2t + 1, and of 2t + 8, 2t + 9. */
typedef struct step_place {
  int runs[2];
  lpg_run run[2][LPG_MAX_RUNS];
} step_place;

static step_place place_step(int bits, int step) {
  step_place place;
  for (int half = 0; half < 2; half++) place.runs[half] = lpg_code_runs(bits, 2 * step + half, place.run[half]);
  return place;
}

/* The four codes of a lane's row, one a byte. A word holds the odd column's code 16 bits above the even one's. */
static uint32_t read_lane(const step_place *place, const uint8_t *tile, int lane, int row_half) {
  uint32_t codes = 0;
  for (int half = 0; half < 2; half++) {
    for (int i = 0; i < place->runs[half]; i++) {
      const lpg_run *run = &place->run[half][i];
      uint32_t word, mask = ((1u << run->bits) - 1u) * 0x00010001u;
      memcpy(&word, tile + lpg_word_offset(lane, 2 * run->word + row_half), sizeof word);
      codes |= (word >> run->shift & mask) << (run->code_bit + 8 * half);
    }
  }
  return codes;
}

/* Bit `bit` of the four codes, as four bits: the multiplication moves the lowest bit of byte j to bit 28 + j. */
static uint32_t gather_plane(uint32_t codes, int bit) { return (codes >> bit & 0x01010101u) * 0x10204080u >> 28; }

static void read_step(int bits, const step_place *place, const uint8_t *tile, int row, step_codes *out) {
  out->lookups = 0;
  for (int t = 0; t < LPG_LUT_LANES; t++) {
    uint32_t codes = read_lane(place, tile, row % 8 * 4 + t, row / 8);
    out->lane[t] = codes;
    for (int bit = 0; bit < bits; bit++) {
      uint32_t signs = gather_plane(codes, bit);
      lookup *l = &out->lookup[out->lookups++];
      l->factor = signs & 8u ? (double)(1 << bit) : -(double)(1 << bit);
      l->entry = t * LPG_LUT_ENTRIES + (int)((signs & 8u ? signs : ~signs) & 7u);
    }
  }
}

/* ---- weights: what a group of one row shares ---- */

/* weight = (value - zero[0]) * scale[0] * scale[1], or value * scale[0] * scale[1] + zero[0] * zero[1] with a minimum.
 * All of these are fp32 numbers; the second ones are 1 but for two levels. */
typedef struct group {
  int has_minimum;
  double scale[2], zero[2];
} group;

static group read_group(const lpg_call *call, int64_t row, int64_t k) {
  const lpg_plan *plan = call->problem.plan;
  const uint8_t *const *section = call->section;
  double constant = (double)plan->desc.zero_constant;
  group g;
  g.has_minimum = plan->desc.zero == LPGEMM_ZERO_MINIMUM;
  g.scale[0] = lpg_section_value(plan, section, LPG_SECTION_SCALES, row, k, 1.0);
  g.scale[1] = lpg_section_value(plan, section, LPG_SECTION_SUPER_SCALES, row, k, 1.0);
  g.zero[0] = lpg_section_value(plan, section, LPG_SECTION_ZEROS, row, k, constant);
  g.zero[1] = lpg_section_value(plan, section, LPG_SECTION_SUPER_ZEROS, row, k, 1.0);
  return g;
}

static lpg_wide times_levels(double x, const double levels[2]) {
  lpg_wide exact = {x, 0.0};
  return lpg_wide_times(lpg_wide_times(exact, (float)levels[0]), (float)levels[1]);
}

/* Sum of x * weight from the sums of x * value and of x. Where the weights of large activations are zero the two parts
 * cancel, and what is left must be as exact as they are: with integer zeros nothing is rounded, and the products with
 * scales and minima, which are longer than a double, are added in two doubles. */
static double apply_group(const group *g, double sum_values, double sum_x) {
  if (!g->has_minimum) return (sum_values - g->zero[0] * sum_x) * (g->scale[0] * g->scale[1]);
  return lpg_wide_plus(times_levels(sum_values, g->scale), times_levels(sum_x, g->zero)).hi;
}

/* ---- one step ---- */

typedef struct number {
  int bits, step, offset; /* value of a stored code = step * code + offset */
} number;

/* From the tables: code = sum of 2^i * bit_i and bit_i = (1 + sign_i) / 2, so
 * sum x * code = (sum of 2^i * (sum x * sign_i) + (2^bits - 1) * sum x) / 2. */
static double look_up(const number *type, const group *g, const step_codes *codes, const double *table) {
  double sum_signs = 0.0, sum_x = 0.0;
  for (int i = 0; i < codes->lookups; i++) sum_signs += codes->lookup[i].factor * table[codes->lookup[i].entry];
  for (int t = 0; t < LPG_LUT_LANES; t++) sum_x += table[t * LPG_LUT_ENTRIES + 7];
  double sum_codes = 0.5 * (sum_signs + (double)((1 << type->bits) - 1) * sum_x);
  return apply_group(g, (double)type->step * sum_codes + (double)type->offset * sum_x, sum_x);
}

/* From the activations themselves, where the step has no tables. */
static double multiply(const number *type, const group *g, const step_codes *codes, const double *table) {
  double sum = 0.0;
  for (int t = 0; t < LPG_LUT_LANES; t++) {
    for (int j = 0; j < 4; j++) {
      int code = (int)(codes->lane[t] >> 8 * j & 0xffu);
      sum += table[t * LPG_LUT_ENTRIES + j] * apply_group(g, (double)(type->step * code + type->offset), 1.0);
    }
  }
  return sum;
}

/* ---- 16 rows of weights ---- */

typedef struct job {
  const lpg_call *call;
  int64_t first, rows;  /* rows of X */
  const double *tables; /* of these rows */
} job;

static void multiply_block(const job *j, int64_t row_tile, int64_t first, int rows, int weight_rows) {
  const lpg_plan *plan = j->call->problem.plan;
  const number type = {plan->bits, lpg_integer_step(plan->desc.type), lpg_integer_offset(plan->desc.type)};
  int64_t n = row_tile * LPG_TILE_ROWS, steps = j->call->skip_product ? 0 : lpg_ceil_div(plan->desc.k, LPG_STEP_K);
  int tile_steps = lpg_tile_k(plan->bits) / LPG_STEP_K;
  group groups[LPG_TILE_ROWS];
  double sums[LPG_TILE_ROWS][ROWS_AT_ONCE] = {{0}};
  for (int64_t step = 0; step < steps; step++) {
    int64_t column = step * LPG_STEP_K;
    const uint8_t *tile =
        j->call->section[LPG_SECTION_CODES] + lpg_tile_offset(plan->bits, plan->k_tiles, row_tile, step / tile_steps);
    step_place place = place_step(plan->bits, (int)(step % tile_steps));
    int new_group = column % plan->group.k == 0;
    for (int r = 0; r < weight_rows; r++) {
      if (new_group) groups[r] = read_group(j->call, n + r, column);
      step_codes codes;
      read_step(plan->bits, &place, tile, r, &codes);
      for (int m = 0; m < rows; m++) {
        const double *table = j->tables + ((first + m) * steps + step) * LPG_LUT_STEP;
        int has_tables = !isnan(table[LPG_LUT_ENTRIES - 1]);
        sums[r][m] += (has_tables ? look_up : multiply)(&type, &groups[r], &codes, table);
      }
    }
  }
  for (int m = 0; m < rows; m++) {
    for (int r = 0; r < weight_rows; r++) {
      lpgemm_i_epilogue(j->call, j->first + first + m, n + r, sums[r][m] * (double)plan->desc.global_scale);
    }
  }
}

static void multiply_tile(void *context, int64_t row_tile, void *scratch) {
  const job *j = context;
  int64_t left = j->call->problem.plan->desc.n - row_tile * LPG_TILE_ROWS;
  int weight_rows = left < LPG_TILE_ROWS ? (int)left : LPG_TILE_ROWS;
  (void)scratch;
  for (int64_t first = 0; first < j->rows; first += ROWS_AT_ONCE) {
    int rows = j->rows - first < ROWS_AT_ONCE ? (int)(j->rows - first) : ROWS_AT_ONCE;
    multiply_block(j, row_tile, first, rows, weight_rows);
  }
}

/* ---- the call ---- */

/* Rows of X that are worked on at a time: all that have tables, or as many as 32 MiB of workspace hold, but one at
 * least. */
static int64_t rows_at_a_time(const lpg_problem *problem) {
  size_t row_bytes = lpgemm_i_lut_bytes(1, problem->plan->desc.k), limit = (size_t)32 << 20;
  if (problem->tables || row_bytes == 0) return problem->m;
  int64_t rows = row_bytes < limit ? (int64_t)(limit / row_bytes) : 1;
  return problem->m < rows ? problem->m : rows;
}

size_t lpgemm_i_lut_cpu_workspace(const lpg_problem *problem, const lpg_device *device) {
  (void)device;
  return problem->tables ? 0 : lpgemm_i_lut_bytes(rows_at_a_time(problem), problem->plan->desc.k);
}

static void build_row(void *context, int64_t row, void *scratch) {
  const job *j = context;
  const lpg_call *call = j->call;
  lpgemm_dtype_t type = call->problem.x_type;
  int64_t k = call->problem.plan->desc.k;
  const uint8_t *x = (const uint8_t *)call->x + (j->first + row) * call->ldx * lpg_bytes(type);
  (void)scratch;
  lpgemm_i_lut_build_host(1, k, x, type, call->ldx, (uint8_t *)call->workspace + lpgemm_i_lut_bytes(row, k));
}

lpgemm_status_t lpgemm_i_lut_cpu(const lpg_call *call) {
  const lpg_problem *problem = &call->problem;
  int64_t rows = rows_at_a_time(problem);
  for (int64_t first = 0; first < problem->m; first += rows) {
    job j = {call, first, problem->m - first < rows ? problem->m - first : rows, NULL};
    j.tables = problem->tables ? call->tables : call->workspace;
    if (!problem->tables && !call->skip_product) lpgemm_i_parallel(call->pool, j.rows, build_row, &j);
    lpgemm_i_parallel(call->pool, problem->plan->row_tiles, multiply_tile, &j);
  }
  return LPGEMM_SUCCESS;
}
