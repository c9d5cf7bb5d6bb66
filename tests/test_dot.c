/* The kernels that multiply bytes, by the level FAST; test_gemm.c runs them on X of 8 bits.
 *
 *   dot/KERNEL/TYPE   types, groups, zeros, kinds of X and numbers of rows, within the bound of EXACT and what rounding
 *                     X to 8 bits, with a scale for 32 columns, may move: half a step, a 127th of the largest, by |w|
 *   dot/two_levels    codes of scales that are multiplied into the bytes of weights, and those that are not; with X of
 * 8 bits as well, where minima are not left on the sums dot/scales        types of scales and zeros dot/range         X
 * and scales that fp32 does not hold together, Inf and NaN in X dot/threads       the same bits with any number of
 * threads */
#include <math.h>

#include "compare.h"
#include "problem.h"
#include "ref/gemm_ref.h"
#include "test.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

static lpgemm_handle_t handle;
static const char *const kernels[] = {"dot.any.any.16x8.vbmi", "dot.any.any.16x8.avx2", "dotsim.any.any.16x8.base"};

static problem_spec make_spec(lpgemm_dtype_t type, int64_t m, int64_t n, int64_t k) {
  problem_spec s = {.m = m, .x_type = LPGEMM_F32, .y_type = LPGEMM_F32, .alpha = 1};
  s.desc = (lpgemm_weight_desc_t){.size = sizeof s.desc, .n = n, .k = k, .type = type, .scale_type = LPGEMM_F16};
  return s;
}

/* Adds to the bound what rounding X may move. */
static void add_rounding(problem *p) {
  enum { BLOCK = 32 };
  const int64_t m = p->args.m, n = p->spec.desc.n, k = p->spec.desc.k;
  double *w = test_alloc(((size_t)k + 1) * sizeof *w);
  for (int64_t j = 0; j < n; j++) {
    ref_weight_row(&p->spec.desc, &p->source, j, w);
    for (int64_t i = 0; i < m; i++) {
      double moved = 0;
      for (int64_t b = 0; b < k; b += BLOCK) {
        double largest = 0, sum = 0;
        for (int64_t c = b; c < k && c < b + BLOCK; c++) {
          largest = fmax(largest, fabs(ref_load(p->args.x_type, p->args.x, i * p->args.ldx + c)));
          sum += fabs(w[c]);
        }
        /* The step and its inverse are rounded, by up to 2^-22 of 127 steps. */
        if (isfinite(largest)) moved += largest / 127 * (0.5 + 127 * 0x1p-22) * sum;
      }
      p->bound[i * n + j] += 1.01 * moved; /* and the last rounding is one of a number as much larger */
    }
  }
  test_free(w);
}

static void check(const problem_spec *s, const char *kernel) {
  problem p;
  if (problem_make(&p, handle, s)) {
    p.args.level = s->x_type == LPGEMM_I8 ? LPGEMM_LEVEL_EXACT : LPGEMM_LEVEL_FAST;
    problem_expect(&p);
    if (s->x_type != LPGEMM_I8) add_rounding(&p);
    CHECK_STATUS(problem_run(&p, handle, kernel), LPGEMM_SUCCESS);
    problem_check(&p, kernel);
    problem_check_again(&p, handle, kernel);
    problem_check_alone(&p, handle, kernel);
  }
  problem_free(&p);
}

static void set_zero(lpgemm_weight_desc_t *d, int form) {
  const int is_integer = LPGEMM_DTYPE_KIND(d->type) <= LPGEMM_KIND_BIPOLAR;
  if (!is_integer || form == 0) return;
  const lpgemm_zero_t zeros[] = {LPGEMM_ZERO_NONE,      LPGEMM_ZERO_CONSTANT, LPGEMM_ZERO_PER_GROUP,
                                 LPGEMM_ZERO_PER_GROUP, LPGEMM_ZERO_MINIMUM,  LPGEMM_ZERO_MINIMUM};
  const lpgemm_dtype_t types[] = {0, 0, LPGEMM_UINT(8), LPGEMM_F16, LPGEMM_F16, LPGEMM_UINT(6)};
  d->zero = zeros[form];
  d->zero_type = types[form];
  if (form == 1) d->zero_constant = 1.5f;
  if (form == 5) { /* as GGUF's K-quants */
    d->scale_type = LPGEMM_UINT(6);
    d->super_scale_type = d->super_zero_type = LPGEMM_F16;
    d->super_k = d->group_k ? 4 * d->group_k : 0;
  }
}

static void types(const char *kernel) {
  static const int64_t groups[] = {32, 16, 128, 48, 0}, rows[] = {1, 2, 5, 13, 300};
  static const lpgemm_dtype_t x_types[] = {LPGEMM_F32, LPGEMM_F16, LPGEMM_BF16, LPGEMM_E4M3, LPGEMM_UINT(8)};
  for (int i = 0; i < PROBLEM_TYPES; i++) {
    const lpgemm_dtype_t type = problem_types()[i];
    const int is_integer = LPGEMM_DTYPE_KIND(type) <= LPGEMM_KIND_BIPOLAR;
    if (!is_integer && type != LPGEMM_FLOAT(2, 1) && type != LPGEMM_FLOAT(1, 1)) continue;
    if (!test_case("dot/%s/%s", kernel, lpgemm_dtype_name(type))) continue;
    for (int form = 0; form < 6; form++) {
      problem_spec s = make_spec(type, rows[(i + form) % 5], 37, 300 + 16 * form);
      s.desc.group_k = groups[(i + 2 * form) % 5];
      s.x_type = x_types[(i + form) % COUNT(x_types)];
      set_zero(&s.desc, form);
      check(&s, kernel);
    }
  }
  if (!test_case("dot/%s/iq4_nl", kernel)) return;
  problem_spec s = make_spec(LPGEMM_CODEBOOK(4), 5, 40, 512);
  CHECK_STATUS(lpgemm_codebook_preset("iq4_nl", s.desc.codebook), LPGEMM_SUCCESS);
  s.desc.group_k = 32;
  check(&s, kernel);
}

static void two_levels(const char *kernel) {
  static const int64_t groups[] = {16, 32, 48, 128}, rows[] = {1, 4, 9};
  static const lpgemm_dtype_t scales[] = {LPGEMM_UINT(4), LPGEMM_UINT(6), LPGEMM_INT(8)};
  if (!test_case("dot/two_levels/%s", kernel)) return;
  for (int i = 0; i < 3 * 4 * 3 * 3 * 2; i++) { /* bits, groups, codes of scales, zeros, X */
    const int bits = 1 + i % 3, zero = i / 36 % 3;
    problem_spec s = make_spec(LPGEMM_UINT(bits), rows[i % 5 % 3], 23, 400 + 16 * (i % 4));
    s.desc.group_k = groups[i / 3 % 4];
    s.desc.scale_type = scales[i / 12 % 3];
    s.desc.super_scale_type = LPGEMM_F16;
    s.desc.super_k = i % 7 == 0 ? 0 : 2 * s.desc.group_k;
    s.desc.zero = zero == 0 ? LPGEMM_ZERO_NONE : LPGEMM_ZERO_MINIMUM;
    if (zero == 1) s.desc.zero_type = LPGEMM_F16;
    if (zero == 2) s.desc.zero_type = i % 2 ? LPGEMM_UINT(6) : LPGEMM_UINT(4);
    if (zero == 2) s.desc.super_zero_type = LPGEMM_F16;
    if (i / 108 == 1) s.x_type = LPGEMM_I8;
    check(&s, kernel);
  }
}

static void scales(const char *kernel) {
  static const lpgemm_dtype_t of_scales[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32, LPGEMM_E8M0, LPGEMM_E4M3};
  static const lpgemm_dtype_t of_zeros[] = {0, LPGEMM_U8, LPGEMM_U16, LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32};
  if (!test_case("dot/scales/%s", kernel)) return;
  for (int i = 0; i < COUNT(of_scales) * COUNT(of_zeros); i++) {
    problem_spec s = make_spec(LPGEMM_UINT(4), 3, 40, 320);
    s.desc.group_k = 32;
    s.desc.scale_type = of_scales[i % COUNT(of_scales)];
    s.desc.zero_type = of_zeros[i / COUNT(of_scales)];
    s.desc.zero = s.desc.zero_type ? LPGEMM_ZERO_PER_GROUP : LPGEMM_ZERO_NONE;
    check(&s, kernel);
  }
}

static void range(const char *kernel) {
  if (!test_case("dot/range/%s", kernel)) return;
  problem_spec s = make_spec(LPGEMM_UINT(4), 5, 40, 600);
  s.desc.group_k = 32;
  s.not_finite = 1;
  check(&s, kernel);
  s.not_finite = 0;
  s.desc.scale_type = LPGEMM_E8M0;
  problem p;
  if (problem_make(&p, handle, &s)) {
    uint8_t *scales = (uint8_t *)(uintptr_t)p.source.scales;
    for (int64_t i = 0; i < s.desc.n * 19; i++) scales[i] = i % 3 == 0 ? 60 : 127; /* 2^-67 */
    problem_repack(&p, handle);
    for (int64_t i = 0; i < s.m * p.args.ldx; i++) ((float *)p.x)[i] *= i % 64 < 32 ? 0x1p60f : 1;
    p.args.level = LPGEMM_LEVEL_FAST;
    problem_expect(&p);
    add_rounding(&p);
    CHECK_STATUS(problem_run(&p, handle, kernel), LPGEMM_SUCCESS);
    problem_check(&p, kernel);
  }
  problem_free(&p);
}

static void threads(const char *kernel) {
  if (!test_case("dot/threads/%s", kernel)) return;
  lpgemm_handle_t many = problem_handle(5);
  problem_spec s = make_spec(LPGEMM_INT(5), 21, 150, 500);
  problem p;
  if (problem_make(&p, handle, &s)) {
    void *first = test_alloc(problem_y_bytes(&p));
    p.args.level = LPGEMM_LEVEL_FAST;
    CHECK_STATUS(problem_run(&p, handle, kernel), LPGEMM_SUCCESS);
    memcpy(first, p.y, problem_y_bytes(&p));
    CHECK_STATUS(problem_run(&p, many, kernel), LPGEMM_SUCCESS);
    CHECK(memcmp(first, p.y, problem_y_bytes(&p)) == 0);
    test_free(first);
  }
  problem_free(&p);
  lpgemm_destroy(many);
}

void suite_dot(void) {
  handle = problem_handle(2);
  for (int i = 0; i < COUNT(kernels); i++) {
    if (!problem_has_kernel(kernels[i])) continue;
    types(kernels[i]);
    two_levels(kernels[i]);
    scales(kernels[i]);
    range(kernels[i]);
    threads(kernels[i]);
  }
  lpgemm_destroy(handle);
}
