/* How gemm scales weights (src/kernels/gemm/gemm_mode.c): which mode weights take, and that what a mode takes for
 * granted is so. And, on a GPU, multicast of X, which takes more rows than the drawn problems of test_gemm.c have. */
#include "devices.h"
#include "kernels/gemm/gemm_mode.h"
#include "kernels/operand/x_copy.h"
#include "layouts/packed.h"
#include "plans.h"
#include "problem.h"
#include "sample.h"
#include "test.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* ---- what common checkpoints take ---- */

static const struct mode_case {
  const char *name;
  lpgemm_dtype_t type, scale, zero_type;
  int64_t group;
  lpgemm_zero_t zero;
  float constant;
  lpgemm_dtype_t super, x;
  lpg_gemm_scales mode;
} cases[] = {
    {"symmetric", LPGEMM_UINT(4), LPGEMM_F16, 0, 128, LPGEMM_ZERO_CONSTANT, 8, 0, LPGEMM_F16, LPG_GEMM_SCALES_GROUP},
    {"row", LPGEMM_INT(8), LPGEMM_F32, 0, 0, LPGEMM_ZERO_NONE, 0, 0, LPGEMM_BF16, LPG_GEMM_SCALES_ROW},
    {"bf16", LPGEMM_UINT(4), LPGEMM_BF16, 0, 128, LPGEMM_ZERO_CONSTANT, 8, 0, LPGEMM_BF16, LPG_GEMM_SCALES_GROUP},
    {"awq", LPGEMM_UINT(4), LPGEMM_F16, LPGEMM_U8, 128, LPGEMM_ZERO_PER_GROUP, 0, 0, LPGEMM_F16, LPG_GEMM_SCALES_ZEROS},
    {"gptq_by_bf16", LPGEMM_UINT(4), LPGEMM_F16, LPGEMM_U8, 128, LPGEMM_ZERO_PER_GROUP, 0, 0, LPGEMM_BF16,
     LPG_GEMM_SCALES_SPLIT},
    {"q4_0", LPGEMM_UINT(4), LPGEMM_F16, 0, 32, LPGEMM_ZERO_CONSTANT, 8, 0, LPGEMM_F16, LPG_GEMM_SCALES_SMALL},
    {"nf4", LPGEMM_CODEBOOK(4), LPGEMM_F16, 0, 64, LPGEMM_ZERO_NONE, 0, 0, LPGEMM_F16, LPG_GEMM_SCALES_SMALL},
    {"nvfp4", LPGEMM_FLOAT(2, 1), LPGEMM_E4M3, 0, 16, LPGEMM_ZERO_NONE, 0, 0, LPGEMM_BF16, LPG_GEMM_SCALES_E4M3},
    {"mxfp4", LPGEMM_FLOAT(2, 1), LPGEMM_E8M0, 0, 32, LPGEMM_ZERO_NONE, 0, 0, LPGEMM_F16, LPG_GEMM_SCALES_E8M0},
    {"mxfp4_by_bf16", LPGEMM_FLOAT(2, 1), LPGEMM_E8M0, 0, 32, LPGEMM_ZERO_NONE, 0, 0, LPGEMM_BF16,
     LPG_GEMM_SCALES_E8M0},
    {"mxfp6_by_bf16", LPGEMM_FLOAT(3, 2), LPGEMM_E8M0, 0, 32, LPGEMM_ZERO_NONE, 0, 0, LPGEMM_BF16,
     LPG_GEMM_SCALES_E8M0},
    {"mxfp8", LPGEMM_E4M3, LPGEMM_E8M0, 0, 32, LPGEMM_ZERO_NONE, 0, 0, LPGEMM_BF16, LPG_GEMM_SCALES_E8M0},
    {"q6_k", LPGEMM_INT(6), LPGEMM_I8, 0, 16, LPGEMM_ZERO_NONE, 0, LPGEMM_F16, LPGEMM_F16, LPG_GEMM_SCALES_PREPARED},
    {"q6_k_by_bf16", LPGEMM_INT(6), LPGEMM_I8, 0, 16, LPGEMM_ZERO_NONE, 0, LPGEMM_F16, LPGEMM_BF16,
     LPG_GEMM_SCALES_PREPARED_SPLIT},
    {"q4_0_by_bf16", LPGEMM_UINT(4), LPGEMM_F16, 0, 32, LPGEMM_ZERO_CONSTANT, 8, 0, LPGEMM_BF16,
     LPG_GEMM_SCALES_SPLIT_SMALL},
    {"nf4_by_bf16", LPGEMM_CODEBOOK(4), LPGEMM_F16, 0, 64, LPGEMM_ZERO_NONE, 0, 0, LPGEMM_BF16,
     LPG_GEMM_SCALES_SPLIT_SMALL},
    {"odd_width_by_bf16", LPGEMM_UINT(3), LPGEMM_F16, 0, 64, LPGEMM_ZERO_CONSTANT, 4, 0, LPGEMM_BF16,
     LPG_GEMM_SCALES_RESTS},
    {"q4_1_by_bf16", LPGEMM_UINT(4), LPGEMM_F16, LPGEMM_F16, 32, LPGEMM_ZERO_MINIMUM, 0, 0, LPGEMM_BF16,
     LPG_GEMM_SCALES_RESTS},
    {"hqq_by_bf16", LPGEMM_UINT(4), LPGEMM_F16, LPGEMM_F16, 64, LPGEMM_ZERO_PER_GROUP, 0, 0, LPGEMM_BF16,
     LPG_GEMM_SCALES_RESTS},
    {"half_zero_by_bf16", LPGEMM_UINT(2), LPGEMM_F16, 0, 128, LPGEMM_ZERO_CONSTANT, 1.5f, 0, LPGEMM_BF16,
     LPG_GEMM_SCALES_RESTS},
    {"bipolar_by_bf16", LPGEMM_BIPOLAR(3), LPGEMM_F16, 0, 128, LPGEMM_ZERO_NONE, 0, 0, LPGEMM_BF16,
     LPG_GEMM_SCALES_RESTS},
    {"minima_in_small_groups", LPGEMM_UINT(4), LPGEMM_F16, LPGEMM_F16, 16, LPGEMM_ZERO_MINIMUM, 0, 0, LPGEMM_BF16,
     LPG_GEMM_SCALES_PREPARED},
    {"minima_in_odd_groups", LPGEMM_UINT(4), LPGEMM_F16, LPGEMM_F16, 96, LPGEMM_ZERO_MINIMUM, 0, 0, LPGEMM_BF16,
     LPG_GEMM_SCALES_PREPARED},
    {"bipolar", LPGEMM_BIPOLAR(2), LPGEMM_F16, 0, 128, LPGEMM_ZERO_NONE, 0, 0, LPGEMM_F16, LPG_GEMM_SCALES_RESTS},
    {"half_zero", LPGEMM_UINT(2), LPGEMM_F16, 0, 128, LPGEMM_ZERO_CONSTANT, 1.5f, 0, LPGEMM_F16, LPG_GEMM_SCALES_RESTS},
    {"wide_zeros", LPGEMM_UINT(8), LPGEMM_F16, LPGEMM_U16, 128, LPGEMM_ZERO_PER_GROUP, 0, 0, LPGEMM_F16,
     LPG_GEMM_SCALES_PREPARED},
    {"minima", LPGEMM_UINT(4), LPGEMM_BF16, LPGEMM_BF16, 64, LPGEMM_ZERO_MINIMUM, 0, 0, LPGEMM_BF16,
     LPG_GEMM_SCALES_PREPARED},
    {"hqq", LPGEMM_UINT(4), LPGEMM_F16, LPGEMM_F16, 64, LPGEMM_ZERO_PER_GROUP, 0, 0, LPGEMM_F16, LPG_GEMM_SCALES_RESTS},
    {"rare_width", LPGEMM_UINT(5), LPGEMM_F16, 0, 32, LPGEMM_ZERO_CONSTANT, 16, 0, LPGEMM_F16, LPG_GEMM_SCALES_RESTS},
};

static void check_case(const struct mode_case *c) {
  lpgemm_weight_desc_t d = {.size = sizeof d, .type = c->type, .n = 512, .k = 1024, .group_k = c->group};
  d.scale_type = c->scale;
  d.super_scale_type = c->super;
  if (c->super) d.super_k = 256;
  d.zero = c->zero;
  d.zero_type = c->zero_type;
  d.zero_constant = c->constant;
  lpg_packed w;
  CHECK_STATUS(lpgemm_i_make_packed(&d, &w), LPGEMM_SUCCESS);
  const int rests = c->mode == LPG_GEMM_SCALES_RESTS;
  const lpg_gemm_scaling scaling = lpgemm_i_gemm_scaling(&w, c->x, rests ? 20 : 255);
  CHECK(scaling.mode == c->mode);
  /* fp16 has no room for scales that are farther apart */
  CHECK(!rests || c->x == LPGEMM_BF16 || lpgemm_i_gemm_scaling(&w, c->x, 27).mode == LPG_GEMM_SCALES_PREPARED);
  /* Floats in bf16's fields: the largest scale, of 2^127 or 2^8, leaves a factor of the row's sums in fp32, and the
   * least one of e4m3, 2^-9, a power of two in bf16. */
  const int largest = c->scale == LPGEMM_E8M0 ? 127 : 8, least = c->scale == LPGEMM_E4M3 ? -9 : 0;
  CHECK(scaling.field_power - scaling.exponent + largest <= 127);
  CHECK(scaling.field_power == 0 || scaling.exponent - least <= 127);
  CHECK((scaling.field_power > 0) ==
        lpg_gemm_keeps_fields(scaling.mode, c->x == LPGEMM_BF16, lpg_gemm_weights_of(c->type, c->x)));
}

/* Integers are scaled as they are dequantised if the scales of a row are near one another and the product of the zero
 * with them is exact. */
static void check_near(void) {
  static const struct {
    lpgemm_dtype_t type, x;
    float zero;
    uint32_t span;
    lpg_gemm_scales mode;
  } near[] = {
      {LPGEMM_UINT(4), LPGEMM_F16, 8, 5, LPG_GEMM_SCALES_NEAR},
      {LPGEMM_UINT(4), LPGEMM_F16, 8, 6, LPG_GEMM_SCALES_GROUP},
      {LPGEMM_UINT(2), LPGEMM_F16, 1, 0, LPG_GEMM_SCALES_NEAR},
      {LPGEMM_UINT(8), LPGEMM_F16, 256, 0, LPG_GEMM_SCALES_NEAR},
      {LPGEMM_UINT(4), LPGEMM_F16, 7, 0, LPG_GEMM_SCALES_GROUP},
      {LPGEMM_UINT(4), LPGEMM_BF16, 8, 0, LPG_GEMM_SCALES_GROUP},
      {LPGEMM_UINT(5), LPGEMM_F16, 16, 0, LPG_GEMM_SCALES_GROUP},
  };
  for (int i = 0; i < COUNT(near); i++) {
    lpgemm_weight_desc_t d = {.size = sizeof d, .type = near[i].type, .n = 512, .k = 1024, .group_k = 128};
    d.scale_type = near[i].x;
    d.zero = LPGEMM_ZERO_CONSTANT;
    d.zero_constant = near[i].zero;
    lpg_packed w;
    CHECK_STATUS(lpgemm_i_make_packed(&d, &w), LPGEMM_SUCCESS);
    CHECK(lpgemm_i_gemm_scaling(&w, near[i].x, near[i].span).mode == near[i].mode);
  }
}

/* ---- any description ---- */

static lpgemm_weight_desc_t draw_desc(void) {
  static const int64_t groups[] = {16, 32, 64, 128, 0};
  lpgemm_weight_desc_t d = {.size = sizeof d};
  const uint32_t bits = (uint32_t)test_between(1, 8);
  switch (test_between(0, 4)) {
    case 0: d.type = LPGEMM_BIPOLAR(bits); break;
    case 1:
      d.type = bits < 3 ? LPGEMM_CODEBOOK(bits) : bits > 6 ? LPGEMM_FLOAT(4u, bits - 5) : LPGEMM_FLOAT(2u, bits - 3);
      break;
    case 2: d.type = bits > 1 ? LPGEMM_INT(bits) : LPGEMM_UINT(bits); break;
    default: d.type = LPGEMM_UINT(bits); break;
  }
  d.n = test_between(1, 3000);
  d.k = test_between(1, 3000);
  d.group_k = groups[test_between(0, 4)];
  d.scale_type = sample_scale[test_between(0, SAMPLE_SCALES - 1)];
  const int integer = lpg_is_integer_kind(d.type);
  if (integer && test_between(0, 2) == 0) {
    d.zero = LPGEMM_ZERO_CONSTANT;
    d.zero_constant = (float)test_between(-4, 260) / (test_between(0, 3) ? 1 : 2);
  } else if (lpg_kind(d.type) == LPGEMM_KIND_UINT && test_between(0, 1)) {
    d.zero = LPGEMM_ZERO_PER_GROUP;
    d.zero_type = test_between(0, 3) ? LPGEMM_U8 : LPGEMM_U16;
  } else if (integer && d.scale_type && test_between(0, 1)) {
    d.zero = test_between(0, 1) ? LPGEMM_ZERO_MINIMUM : LPGEMM_ZERO_PER_GROUP;
    d.zero_type = LPGEMM_F16;
  }
  return d;
}

/* A granule of a slot lies in one group, and what is copied for it is that group's, of the size that is there. */
static void check_section(const lpg_packed *w, lpg_section_id id, int granules, int slot_bytes) {
  const lpg_axis *axis = lpg_section_axis(w, id);
  const int granule_k = LPG_BLOCK_K / granules, groups = lpg_block_groups(axis);
  CHECK(w->section[id].bytes > 0 && lpg_slot_bytes(lpg_section_type(&w->desc, id)) == slot_bytes);
  if (axis->count <= 1) {
    CHECK(groups == 1);
    return;
  }
  for (int g = 0; g < granules; g++) {
    const int64_t first = g * granule_k / axis->k, last = (g * granule_k + granule_k - 1) / axis->k;
    CHECK(first == last && first == g * groups / granules);
  }
}

/* ---- K-quants ---- */

static const struct level_case {
  const char *name;
  lpgemm_dtype_t type, codes, upper;
  int64_t group, super;
  float constant; /* 0: minima, or no zero */
  int minima;
  lpg_gemm_scales mode; /* where a row's scales are near one another */
} level_cases[] = {
    {"q3_k", LPGEMM_INT(3), LPGEMM_I8, LPGEMM_F16, 16, 256, 0, 0, LPG_GEMM_SCALES_LEVELS_16},
    {"q3_k_unsigned", LPGEMM_UINT(3), LPGEMM_I8, LPGEMM_F16, 16, 256, 4, 0, LPG_GEMM_SCALES_LEVELS_16},
    {"q6_k", LPGEMM_INT(6), LPGEMM_I8, LPGEMM_F16, 16, 256, 0, 0, LPG_GEMM_SCALES_LEVELS_16},
    {"q4_k", LPGEMM_UINT(4), LPGEMM_UINT(6), LPGEMM_F16, 32, 256, 0, 1, LPG_GEMM_SCALES_LEVELS_32},
    {"q5_k", LPGEMM_UINT(5), LPGEMM_UINT(6), LPGEMM_F16, 32, 256, 0, 1, LPG_GEMM_SCALES_LEVELS_32},
    {"q2_k", LPGEMM_UINT(2), LPGEMM_UINT(4), LPGEMM_F16, 16, 256, 0, 1, LPG_GEMM_SCALES_PREPARED},
    {"between_codes", LPGEMM_UINT(6), LPGEMM_I8, LPGEMM_F16, 16, 256, 31.5f, 0, LPG_GEMM_SCALES_PREPARED},
    {"other_groups", LPGEMM_UINT(4), LPGEMM_UINT(6), LPGEMM_F16, 64, 256, 0, 1, LPG_GEMM_SCALES_PREPARED},
    {"other_upper_groups", LPGEMM_UINT(4), LPGEMM_UINT(6), LPGEMM_F16, 32, 512, 0, 1, LPG_GEMM_SCALES_PREPARED},
    {"other_upper_type", LPGEMM_UINT(4), LPGEMM_UINT(6), LPGEMM_F32, 32, 256, 0, 1, LPG_GEMM_SCALES_PREPARED},
    {"other_width", LPGEMM_UINT(8), LPGEMM_UINT(6), LPGEMM_F16, 32, 256, 0, 1, LPG_GEMM_SCALES_PREPARED},
};

/* The mode, and that slots are as the sections lie. */
static void check_levels(const struct level_case *c, lpgemm_dtype_t x_type) {
  lpgemm_weight_desc_t d = {.size = sizeof d, .type = c->type, .n = 700, .k = 2600, .group_k = c->group};
  d.scale_type = c->codes;
  d.super_k = c->super;
  d.super_scale_type = c->upper;
  d.zero = c->minima ? LPGEMM_ZERO_MINIMUM : c->constant != 0 ? LPGEMM_ZERO_CONSTANT : LPGEMM_ZERO_NONE;
  d.zero_constant = c->constant;
  if (c->minima) {
    d.zero_type = c->codes;
    d.super_zero_type = c->upper;
  }
  lpg_packed w;
  CHECK_STATUS(lpgemm_i_make_packed(&d, &w), LPGEMM_SUCCESS);
  CHECK(lpg_gemm_is_prepared(lpgemm_i_gemm_scaling(&w, x_type, 255).mode)); /* fp16 and bf16 have no room for all */
  const lpg_gemm_scales mode = lpgemm_i_gemm_scaling(&w, x_type, 10).mode;
  CHECK(mode == c->mode || (lpg_gemm_is_prepared(mode) && lpg_gemm_is_prepared(c->mode)));
  for (int64_t k = 1; k < 300;
       k += k < 40 ? 1 : 50) { /* one group, one super-group: scales are not on the rows' sums */
    lpg_packed row;
    d.k = k;
    CHECK_STATUS(lpgemm_i_make_packed(&d, &row), LPGEMM_SUCCESS);
    const lpg_gemm_scaling scaling = lpgemm_i_gemm_scaling(&row, x_type, 10);
    CHECK(!scaling.on_rows || !lpg_gemm_has_levels(scaling.mode));
  }
  if (!lpg_gemm_has_levels(mode)) return;
  const lpg_gemm_slot slot = lpg_gemm_slot_of(mode, 1, 8, 128);
  check_section(&w, LPG_SECTION_SCALES, slot.scale_groups, slot.scale_bytes);
  check_section(&w, LPG_SECTION_SUPER_SCALES, 1, 2 * LPG_TILE_ROWS);
  if (c->minima) {
    check_section(&w, LPG_SECTION_ZEROS, slot.scale_groups, slot.zero_bytes);
    check_section(&w, LPG_SECTION_SUPER_ZEROS, 1, 2 * LPG_TILE_ROWS);
  }
  CHECK(slot.scale_groups * c->group == LPG_BLOCK_K && slot.zero_bytes == (c->minima ? (int)LPG_TILE_ROWS : 0));
  CHECK(slot.zeros == 8 * slot.scale_groups * LPG_TILE_ROWS && slot.upper == slot.zeros * (1 + c->minima));
  CHECK(slot.bytes == slot.upper + 8 * 2 * LPG_TILE_ROWS * (1 + c->minima));
}

static int check_drawn(lpgemm_dtype_t x_type) {
  const lpgemm_weight_desc_t d = draw_desc();
  lpg_packed w;
  CHECK_STATUS(lpgemm_i_make_packed(&d, &w), LPGEMM_SUCCESS);
  lpg_problem problem = {.weights = &w, .m = test_between(17, 600), .x_type = x_type, .y_type = x_type};
  problem.scale_span = (uint32_t)test_between(0, 8);
  const lpg_planner *planner = &lpgemm_i_gemm_planner;
  if (planner->refuses(planner, &problem, &sm90)) return 0;
  const lpg_gemm_scaling s = lpgemm_i_gemm_scaling(&w, x_type, problem.scale_span);
  const int is_integer = lpg_is_integer_kind(d.type);
  CHECK(lpg_gemm_scales_exist(s.mode, x_type == LPGEMM_BF16, lpg_gemm_weights_of(d.type, x_type), w.bits));
  lpg_gemm_planned plan;
  CHECK(plan_of(planner, &problem, &sm90, &plan));
  if (lpg_gemm_is_prepared(s.mode) || s.mode == LPG_GEMM_SCALES_ROW) return 1;
  const lpg_gemm_slot slot = lpg_gemm_slot_of(s.mode, is_integer, 8, 128);
  if (!s.on_rows) check_section(&w, LPG_SECTION_SCALES, slot.scale_groups, slot.scale_bytes);
  if (d.zero == LPGEMM_ZERO_PER_GROUP) {
    CHECK(lpg_gemm_reads_zeros(s.mode, is_integer) || s.mode == LPG_GEMM_SCALES_RESTS);
    check_section(&w, LPG_SECTION_ZEROS, slot.scale_groups, slot.zero_bytes);
  }
  if (d.zero == LPGEMM_ZERO_MINIMUM) check_section(&w, LPG_SECTION_ZEROS, slot.scale_groups, slot.zero_bytes);
  const int exponents = s.mode == LPG_GEMM_SCALES_RESTS ? 0 : 8 * LPG_TILE_ROWS;
  CHECK(slot.zeros % 16 == 0 && slot.exponents % 16 == 0 && slot.bytes == slot.exponents + exponents);
  return 1;
}

/* ---- work tiles of 256 rows of X ---- */

/* How the last work tiles come. */
typedef enum last_tiles { WHOLE, HALVES, STREAMED } last_tiles;

/* Odd everywhere: rows without a neighbour that shares X, columns that end in a block, a stage, a step. Of some the
 * last work tiles come in halves or are dealt out by k blocks; and of some K is cut, so that nothing is shared. The
 * last two have work tiles of 192 rows of W and X. */
static const struct {
  int64_t m, n, k;
  last_tiles last;
  int shares;
} large[] = {{9954, 965, 131, HALVES, 1},    {10222, 770, 507, HALVES, 1},   {900, 1045, 1799, WHOLE, 0},
             {14250, 507, 187, WHOLE, 1},    {18700, 250, 40, WHOLE, 1},     {303, 4096, 4099, WHOLE, 0},
             {211, 28107, 300, WHOLE, 1},    {190, 28107, 299, WHOLE, 1},    {246, 4851, 2871, STREAMED, 1},
             {407, 1356, 8623, STREAMED, 0}, {330, 8609, 2463, STREAMED, 1}, {106, 8511, 3807, STREAMED, 1},
             {427, 4261, 3681, STREAMED, 1}, {620, 2100, 5795, STREAMED, 0}, {371, 9301, 2931, STREAMED, 0},
             {371, 6304, 3931, WHOLE, 0}};

static const struct shared_case {
  const char *name;
  lpgemm_dtype_t type, scale;
  int64_t group;
  lpgemm_dtype_t x, y;
  int zeros, pad_x, pad_y, x_scales;
} shared[] = {
    {"plain", LPGEMM_UINT(4), LPGEMM_F16, 128, LPGEMM_F16, LPGEMM_F16, 0, 0, 6, 0},
    {"row", LPGEMM_E4M3, LPGEMM_F32, 0, LPGEMM_BF16, LPGEMM_BF16, 0, 3, 7, 0},
    {"small", LPGEMM_CODEBOOK(4), LPGEMM_F16, 64, LPGEMM_F16, LPGEMM_F32, 0, 0, 0, 0},
    {"zeros", LPGEMM_UINT(3), LPGEMM_F16, 128, LPGEMM_F16, LPGEMM_F16, 1, 8, 2, 0},
    {"split", LPGEMM_UINT(8), LPGEMM_F16, 128, LPGEMM_BF16, LPGEMM_BF16, 1, 1, 6, 0},
    {"prepared", LPGEMM_BIPOLAR(4), LPGEMM_F16, 128, LPGEMM_F16, LPGEMM_F16, 0, 0, 0, 0},
    {"mxfp4", LPGEMM_FLOAT(2, 1), LPGEMM_E8M0, 32, LPGEMM_F16, LPGEMM_F16, 0, 5, 3, 0},
    {"nvfp4", LPGEMM_FLOAT(2, 1), LPGEMM_E4M3, 16, LPGEMM_BF16, LPGEMM_F32, 0, 0, 0, 0},
    {"int8", LPGEMM_UINT(2), LPGEMM_F16, 32, LPGEMM_INT(8), LPGEMM_F16, 0, 0, 6, 1},
    {"bf16", LPGEMM_UINT(6), LPGEMM_BF16, 128, LPGEMM_BF16, LPGEMM_BF16, 0, 0, 6, 0},
    {"stream", LPGEMM_UINT(4), LPGEMM_F16, 128, LPGEMM_F16, LPGEMM_F16, 0, 0, 6, 0},
    {"stream_row", LPGEMM_E4M3, LPGEMM_F32, 0, LPGEMM_F16, LPGEMM_F16, 0, 5, 7, 0},
    {"stream_zeros", LPGEMM_UINT(4), LPGEMM_F16, 128, LPGEMM_BF16, LPGEMM_BF16, 1, 3, 5, 0},
    {"stream_e8m0", LPGEMM_FLOAT(2, 1), LPGEMM_E8M0, 32, LPGEMM_BF16, LPGEMM_F32, 0, 3, 0, 0},
    {"square_stream", LPGEMM_UINT(4), LPGEMM_F16, 128, LPGEMM_F16, LPGEMM_F16, 1, 0, 6, 0},
    {"square_parts", LPGEMM_UINT(8), LPGEMM_F16, 128, LPGEMM_BF16, LPGEMM_BF16, 1, 0, 0, 0},
};

/* The types of a case. */
static void set_case(problem_spec *s, const struct shared_case *c) {
  s->desc.type = c->type;
  s->desc.group_k = c->group;
  s->desc.scale_type = c->scale;
  if (c->zeros) {
    s->desc.zero = LPGEMM_ZERO_PER_GROUP;
    s->desc.zero_type = LPGEMM_U8;
  }
  for (int j = 0; lpg_kind(c->type) == LPGEMM_KIND_CODEBOOK && j < 1 << lpg_bits(c->type); j++) {
    s->desc.codebook[j] = (float)(j * j - 60) / 128;
  }
  s->x_type = c->x;
  s->y_type = c->y;
  s->x_scale_mode = c->x_scales ? LPGEMM_X_SCALE_ROW : LPGEMM_X_SCALE_NONE;
}

/* Of case i: shape i modulo their number, so that each shape meets several modes. */
static problem_spec shared_spec(int i) {
  const struct shared_case *c = &shared[i];
  problem_spec s = {.desc = {.size = sizeof s.desc}, .m = large[i % COUNT(large)].m, .alpha = 1};
  set_case(&s, c);
  s.desc.n = large[i % COUNT(large)].n;
  s.desc.k = large[i % COUNT(large)].k;
  s.pad_x = c->pad_x;
  s.pad_y = c->pad_y;
  return s;
}

/* They are taken by the plan for an H200, shared only if X can be read as copies for several read it. */
static void check_shared_plan(int i) {
  const problem_spec s = shared_spec(i);
  lpg_packed w;
  lpg_gemm_planned planned;
  CHECK_STATUS(lpgemm_i_make_packed(&s.desc, &w), LPGEMM_SUCCESS);
  lpg_problem problem = plan_problem(&w, s.x_type, s.m);
  CHECK(plan_of(&lpgemm_i_gemm_planner, &problem, &sm90, &planned));
  const lpg_gemm_plan p = planned.plan;
  const last_tiles last = p.streamed ? STREAMED : p.whole < p.n_tiles * p.m_tiles ? HALVES : WHOLE;
  CHECK(large[i % COUNT(large)].shares == (p.multicast == 2));
  CHECK(i < COUNT(shared) - 2 || lpgemm_i_gemm_tiles[planned.tile].tile_m == LPG_GEMM_SQUARE_M);
  CHECK(last == large[i % COUNT(large)].last && (last != WHOLE || p.multicast == 2 || p.split_k > 1));
  problem.x_unaligned = 1;
  CHECK(plan_of(&lpgemm_i_gemm_planner, &problem, &sm90, &planned));
  CHECK(planned.plan.multicast == 1 || lpg_x_copy_bytes(&problem, 2) > 0); /* unless X is copied */
}

static void check_by_gemm(lpgemm_handle_t handle, const problem_spec *s) {
  const int kind = (int)lpg_kind(s->desc.type);
  const char *const names[] = {"u", "f", "c"}, *const x = s->x_type == LPGEMM_BF16 ? "bf16" : "f16";
  char kernel[64];
  snprintf(kernel, sizeof kernel, "gemm.%s%d.%s.256x128.sm90a",
           names[kind == LPGEMM_KIND_FLOAT      ? 1
                 : kind == LPGEMM_KIND_CODEBOOK ? 2
                                                : 0],
           lpg_bits(s->desc.type), x);
  if (!problem_has_kernel(kernel)) {
    test_skip("%s is not in this build, or not for this GPU", kernel);
    return;
  }
  problem p;
  if (problem_make(&p, handle, s)) {
    CHECK_STATUS(problem_run(&p, handle, kernel), LPGEMM_SUCCESS);
    problem_expect(&p);
    problem_check(&p, kernel);
    problem_check_again(&p, handle, kernel);
    problem_check_alone(&p, handle, kernel);
  }
  problem_free(&p);
}

/* The values of a codebook are near 2^15, so its scales are near 2^-1: 2^-14 is the least that keeps its digits. */
static void check_codebook_span(void) {
  lpgemm_weight_desc_t d = {.size = sizeof d, .type = LPGEMM_CODEBOOK(4), .n = 64, .k = 128, .group_k = 64};
  lpg_packed w;
  d.scale_type = LPGEMM_F16;
  for (int i = 0; i < 16; i++) d.codebook[i] = (float)(i - 7);
  CHECK_STATUS(lpgemm_i_make_packed(&d, &w), LPGEMM_SUCCESS);
  lpg_problem problem = plan_problem(&w, LPGEMM_F16, 100);
  problem.scale_span = 13;
  CHECK(lpgemm_i_gemm_scales_refuse(&problem) == NULL);
  problem.scale_span = 14;
  CHECK(lpgemm_i_gemm_scales_refuse(&problem) != NULL);
}

/* ---- stacks of experts ---- */

/* An H200's work tiles for so many rows an expert: those that were the fastest there, for 8192 rows an expert what the
 * costs say; and those of experts/grouped/tiles, which is to have all. */
static void check_experts_plan(void) {
  static const struct {
    int64_t n, k, slots;
    int experts, rows, tile_n, least_m, most_m;
  } cases[] = {{28672, 4096, 128, 8, LPGEMM_ROWS_PAIRED, 256, 32, 32},
               {28672, 4096, 512, 8, LPGEMM_ROWS_PAIRED, 192, 96, 128},
               {3072, 4096, 4096, 128, LPGEMM_ROWS_PAIRED, 256, 64, 64},
               {3072, 4096, 8192, 128, LPGEMM_ROWS_PAIRED, 192, 96, 128},
               {2048, 768, 32768, 128, LPGEMM_ROWS_PLAIN, 192, 96, 128},
               {7168, 2048, 2048, 256, LPGEMM_ROWS_PLAIN, 256, 32, 32},
               {28672, 4096, 65536, 8, LPGEMM_ROWS_PAIRED, 128, 160, 256},
               {5624, 200, 109, 6, LPGEMM_ROWS_PLAIN, 256, 32, 32},
               {5616, 200, 233, 6, LPGEMM_ROWS_PAIRED, 256, 64, 64},
               {5624, 200, 577, 6, LPGEMM_ROWS_PLAIN, 128, 96, 128},
               {5624, 200, 727, 6, LPGEMM_ROWS_PLAIN, 192, 96, 128},
               {5624, 200, 1393, 6, LPGEMM_ROWS_PLAIN, 128, 160, 256}};
  for (int i = 0; i < COUNT(cases); i++) {
    lpgemm_weight_desc_t d = {.size = sizeof d, .type = LPGEMM_UINT(4), .n = cases[i].n, .k = cases[i].k};
    d.group_k = 128;
    d.scale_type = LPGEMM_F16;
    d.zero = LPGEMM_ZERO_CONSTANT;
    d.zero_constant = 8;
    d.experts = cases[i].experts;
    d.rows = (lpgemm_rows_t)cases[i].rows;
    lpg_packed w;
    lpg_gemm_planned planned;
    CHECK_STATUS(lpgemm_i_make_packed(&d, &w), LPGEMM_SUCCESS);
    lpg_problem problem = plan_problem(&w, LPGEMM_F16, cases[i].slots);
    problem.experts = cases[i].experts;
    problem.slots = cases[i].slots;
    problem.paired = d.rows == LPGEMM_ROWS_PAIRED;
    if (problem.paired) problem.activation = LPGEMM_ACTIVATION_SILU;
    CHECK(plan_of(&lpgemm_i_gemm_planner, &problem, &sm90, &planned));
    CHECK_INT(lpg_gemm_tile_n(lpgemm_i_gemm_tiles[planned.tile].warps), cases[i].tile_n);
    CHECK(planned.plan.x_rows >= cases[i].least_m && planned.plan.x_rows <= cases[i].most_m);
  }
}

/* ---- where K ends, and what follows the sums ---- */

/* K ends anywhere in a k block, with parts of K and without; the sums get nothing, scales, C and a bias, or go to an Y
 * that is no whole vectors. rows: the most of X. */
static void check_ends(lpgemm_handle_t handle, const struct shared_case *c, int rows) {
  for (int i = 0; i < 12; i++) {
    problem_spec s = {.desc = {.size = sizeof s.desc}, .alpha = i % 4 == 1 ? 0.75f : 1, .beta = i % 4 == 2 ? 0.5f : 0};
    set_case(&s, c);
    s.m = test_between(rows / 2, rows);
    s.desc.n = 8 * test_between(2, 60) + (i % 4 == 3 ? 4 : 0);
    s.desc.k = 256 * test_between(0, i % 3 ? 5 : 12) + (i % 2 ? test_between(1, 256) : 8 * test_between(1, 31));
    s.desc.global_scale = i % 5 == 0 ? 0.375f : 0;
    s.bias_type = i % 4 == 2 ? s.y_type : 0;
    s.pad_x = s.pad_y = i % 4 == 3 ? 1 : 0;
    check_by_gemm(handle, &s);
  }
}

/* Clusters have several work tiles each and cut K, which ends in a stage: receive buffers are used again. */
static problem_spec turns_spec(void) {
  problem_spec s = {.desc = {.size = sizeof s.desc}, .m = 36, .alpha = 1};
  set_case(&s, &shared[0]);
  s.desc.n = 4296;
  s.desc.k = 13896;
  s.x_type = s.y_type = LPGEMM_BF16;
  return s;
}

/* The plan for an H200. */
static lpg_gemm_plan plan_on_h200(const problem_spec *s) {
  lpg_packed w;
  lpg_gemm_planned planned;
  CHECK_STATUS(lpgemm_i_make_packed(&s->desc, &w), LPGEMM_SUCCESS);
  const lpg_problem problem = plan_problem(&w, s->x_type, s->m);
  CHECK(plan_of(&lpgemm_i_gemm_planner, &problem, &sm90, &planned));
  return planned.plan;
}

static void check_turns_plan(void) {
  const problem_spec s = turns_spec();
  const lpg_gemm_plan p = plan_on_h200(&s);
  CHECK(p.split_k > 1 && p.apart && p.exchanges && p.n_tiles * p.m_tiles > p.clusters);
}

/* Clusters have several work tiles each, whose outputs TMA stores; both dimensions of Y end in a box. */
static problem_spec boxes_spec(void) {
  problem_spec s = {.desc = {.size = sizeof s.desc}, .m = 2600, .alpha = 1};
  set_case(&s, &shared[0]);
  s.desc.n = 2120;
  s.desc.k = 200;
  return s;
}

static void check_boxes_plan(void) {
  const problem_spec s = boxes_spec();
  const lpg_gemm_plan p = plan_on_h200(&s);
  CHECK(p.boxes && p.n_tiles * p.m_tiles > p.clusters);
}

/* So they are stored; with a gap behind the rows of Y, which stays as it is; and where the plan has room for them but
 * outputs are no plain sums, or not in whole vectors: then threads store them. */
static void check_boxes(lpgemm_handle_t handle) {
  for (int i = 0; i < 5; i++) {
    problem_spec s = boxes_spec();
    s.pad_y = i == 1 ? 8 : i == 2 ? 3 : 0;
    s.bias_type = i == 3 ? s.y_type : 0;
    s.beta = i == 4 ? 0.5f : 0;
    check_by_gemm(handle, &s);
  }
}

void suite_gemm_family(void) {
  if (test_backend() == LPGEMM_BACKEND_CUDA) {
    lpgemm_handle_t handle = problem_handle(1);
    for (int i = 0; i < COUNT(shared); i++) {
      if (!test_case("gemm_family/shared/%s", shared[i].name)) continue;
      const problem_spec s = shared_spec(i);
      check_by_gemm(handle, &s);
    }
    if (test_case("gemm_family/turns")) {
      const problem_spec s = turns_spec();
      check_by_gemm(handle, &s);
    }
    if (test_case("gemm_family/boxes")) check_boxes(handle);
    static const int rows[] = {32, 64, 128, 256, 700};
    for (int i = 0; i < COUNT(shared) * COUNT(rows); i++) {
      const struct shared_case *const c = &shared[i / COUNT(rows)];
      if (test_case("gemm_family/ends/%s/m%d", c->name, rows[i % COUNT(rows)]))
        check_ends(handle, c, rows[i % COUNT(rows)]);
    }
    CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
    return;
  }
  for (int i = 0; i < COUNT(shared); i++) {
    if (test_case("gemm_family/plan/%s", shared[i].name)) check_shared_plan(i);
  }
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    if (test_case("gemm_family/mode/%s", cases[i].name)) check_case(&cases[i]);
  }
  for (int i = 0; i < COUNT(level_cases); i++) {
    if (!test_case("gemm_family/levels/%s", level_cases[i].name)) continue;
    check_levels(&level_cases[i], LPGEMM_F16);
    check_levels(&level_cases[i], LPGEMM_BF16);
  }
  if (test_case("gemm_family/near")) check_near();
  if (test_case("gemm_family/codebook_span")) check_codebook_span();
  if (test_case("gemm_family/plan/turns")) check_turns_plan();
  if (test_case("gemm_family/plan/boxes")) check_boxes_plan();
  if (test_case("gemm_family/plan/experts")) check_experts_plan();
  static const lpgemm_dtype_t x_types[] = {LPGEMM_F16, LPGEMM_BF16};
  for (int x = 0; x < 2; x++) {
    if (!test_case("gemm_family/slots/%s", lpgemm_dtype_name(x_types[x]))) continue;
    int taken = 0;
    for (int i = 0; i < 4000; i++) taken += check_drawn(x_types[x]);
    CHECK(taken > 1000);
  }
}
