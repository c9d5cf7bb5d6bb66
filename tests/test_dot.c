/* The kernels that multiply bytes, by the levels FAST and EXACT.
 *
 *   dot/KERNEL/TYPE   types, groups, zeros, kinds of X and numbers of rows, within the bound of EXACT and, by FAST,
 * what rounding X to 8 bits, with a scale for 32 columns, may move: half a step, a 127th of the largest, by |w|
 *   dot/two_levels    codes of scales that are multiplied into the bytes of weights, and those that are not; with X of
 *                     8 bits as well, where minima are not left on the sums
 *   dot/codebooks     values that take two and three digits: NF4, FP4 and drawn ones, by few and by many columns
 *   dot/row           one row of X, which meets codes as they lie, by all widths of one word, groups, zeros and ends of
 *                     rows; the same bits as with batch_invariant where all sums are exact, and the same numbers
 *                     where products are tiny
 *   dot/scales        types of scales and zeros
 *   dot/range         X and scales that fp32 does not hold together, Inf and NaN in X
 *   dot/threads       the same bits with any number of threads
 *   dot/apart         X of all magnitudes in one block, and blocks of zeros, which three digits do not hold
 *   dot/edges         the largest magnitudes of three digits and those beyond, whose sums are exact
 *   dot/cancel        large X on weights that are zero leaves no error beside small X on others */
#include <math.h>

#include "compare.h"
#include "problem.h"
#include "ref/gemm_ref.h"
#include "test.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

static lpgemm_handle_t handle;
static const char *const kernels[] = {"dot.any.any.16x8.vbmi", "dot.any.any.16x8.avxvnni", "dot.any.any.16x8.avx2",
                                      "dot.any.any.16x8.dotprod", "dotsim.any.any.16x8.base"};

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

/* Y against what is expected of a level, again, and row by row. */
static void check_level(problem *p, lpgemm_level_t level, const char *kernel) {
  p->args.level = level;
  problem_expect(p);
  if (level == LPGEMM_LEVEL_FAST) add_rounding(p);
  CHECK_STATUS(problem_run(p, handle, kernel), LPGEMM_SUCCESS);
  problem_check(p, kernel);
  problem_check_again(p, handle, kernel);
  problem_check_alone(p, handle, kernel);
}

static void check(const problem_spec *s, const char *kernel) {
  problem p;
  if (problem_make(&p, handle, s)) {
    check_level(&p, LPGEMM_LEVEL_EXACT, kernel);
    if (s->x_type != LPGEMM_I8) check_level(&p, LPGEMM_LEVEL_FAST, kernel);
  }
  problem_free(&p);
}

static void set_zero(lpgemm_weight_desc_t *d, int form) {
  if (form == 0) return;
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
    const int is_integer = LPGEMM_DTYPE_KIND(type) <= LPGEMM_KIND_BIPOLAR, is_book = type == LPGEMM_CODEBOOK(2);
    if (!is_integer && !is_book && type != LPGEMM_FLOAT(2, 1) && type != LPGEMM_FLOAT(1, 1)) continue;
    if (!test_case("dot/%s/%s", kernel, lpgemm_dtype_name(type))) continue;
    for (int form = 0; form < 6; form++) {
      problem_spec s = make_spec(type, rows[(i + form) % 5], 37, 300 + 16 * form);
      s.desc.group_k = groups[(i + 2 * form) % 5];
      s.x_type = x_types[(i + form) % COUNT(x_types)];
      for (int c = 0; is_book && c < 4; c++) s.desc.codebook[c] = 7.0f - (float)c; /* zeros of 0 to 3 lie beside them */
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

static void set_codebook(lpgemm_weight_desc_t *d, int which) {
  static const char *const names[] = {"nf4", "fp4", "iq4_nl"};
  d->type = LPGEMM_CODEBOOK(4);
  if (which < 3) {
    CHECK_STATUS(lpgemm_codebook_preset(names[which], d->codebook), LPGEMM_SUCCESS);
    return;
  }
  for (int i = 0; i < 16; i++) {
    const float value = (float)test_between(50, 1000) / 1000 * (which == 3 ? 1 : 100);
    d->codebook[i] = i % 2 ? -value : i == 0 ? 0 : value;
  }
}

static void codebooks(const char *kernel) {
  static const int64_t columns[] = {48, 300, 1100, 4096}, groups[] = {64, 16, 32, 0};
  static const int64_t rows[] = {1, 3, 10};
  if (!test_case("dot/codebooks/%s", kernel)) return;
  for (int i = 0; i < 5 * 4 * 3; i++) {
    problem_spec s = make_spec(0, rows[i / 20], 19, columns[i % 4]);
    set_codebook(&s.desc, i % 5);
    s.desc.group_k = groups[(i / 4 + i / 20) % 4];
    s.desc.scale_type = i % 3 == 0 ? LPGEMM_E4M3 : LPGEMM_F16;
    s.desc.global_scale = i % 3 == 0 ? 0.3f : 0;
    s.x_type = i % 7 == 0 ? LPGEMM_I8 : i % 2 ? LPGEMM_F32 : LPGEMM_BF16;
    check(&s, kernel);
  }
}

/* Types that a row of X meets without a panel; e2m1, and codebooks of one, two and three bytes. */
static void set_row_type(lpgemm_weight_desc_t *d, int which) {
  static const lpgemm_dtype_t plain[] = {LPGEMM_UINT(1), LPGEMM_UINT(2),    LPGEMM_UINT(4),    LPGEMM_UINT(8),
                                         LPGEMM_INT(4),  LPGEMM_BIPOLAR(2), LPGEMM_FLOAT(2, 1)};
  if (which < COUNT(plain)) {
    d->type = plain[which];
  } else {
    set_codebook(d, which - COUNT(plain));
  }
}

static void row(const char *kernel) {
  static const int64_t groups[] = {32, 16, 128, 48, 0, 64}, columns[] = {256, 32, 300, 1040, 16, 528, 1024};
  static const lpgemm_dtype_t x_types[] = {LPGEMM_F32, LPGEMM_I8, LPGEMM_F16};
  if (!test_case("dot/row/%s", kernel)) return;
  for (int i = 0; i < 10 * 6 * 7; i++) { /* types, zeros, columns */
    problem_spec s = make_spec(0, 1, 37, columns[i / 60]);
    set_row_type(&s.desc, i % 10);
    s.desc.group_k = groups[(i / 10 + i / 60) % 6];
    s.x_type = x_types[i % 7 % 3];
    /* Codebooks of several digits have none. */
    if (LPGEMM_DTYPE_KIND(s.desc.type) != LPGEMM_KIND_CODEBOOK) set_zero(&s.desc, i / 10 % 6);
    check(&s, kernel);
  }
}

/* Small integers as X, and scales of 1: the order of additions does not matter. */
static void row_exact(const char *kernel) {
  static const lpgemm_zero_t zeros[] = {LPGEMM_ZERO_NONE, LPGEMM_ZERO_CONSTANT, LPGEMM_ZERO_PER_GROUP};
  if (!test_case("dot/row/exact/%s", kernel)) return;
  for (int i = 0; i < 7 * 3; i++) {
    problem_spec s = make_spec(0, 1, 50, 800);
    problem p;
    set_row_type(&s.desc, i % 7);
    s.x_type = LPGEMM_I8;
    s.desc.group_k = i % 2 ? 32 : 16;
    if (LPGEMM_DTYPE_KIND(s.desc.type) != LPGEMM_KIND_FLOAT) s.desc.zero = zeros[i / 7];
    if (s.desc.zero == LPGEMM_ZERO_PER_GROUP) s.desc.zero_type = LPGEMM_U8;
    if (s.desc.zero == LPGEMM_ZERO_CONSTANT) s.desc.zero_constant = 1;
    if (problem_make(&p, handle, &s)) {
      for (int64_t g = 0; g < 50 * (800 / s.desc.group_k); g++) {
        ref_store(LPGEMM_F16, (void *)(uintptr_t)p.source.scales, g, 1);
      }
      problem_repack(&p, handle);
      float first[50];
      CHECK_STATUS(problem_run(&p, handle, kernel), LPGEMM_SUCCESS);
      memcpy(first, p.y, sizeof first);
      p.args.batch_invariant = 1;
      CHECK_STATUS(problem_run(&p, handle, kernel), LPGEMM_SUCCESS);
      CHECK(memcmp(first, p.y, sizeof first) == 0);
    }
    problem_free(&p);
  }
}

/* Scales of two levels with products near the end of fp32: what is multiplied first must not fall below it. */
static void row_tiny(const char *kernel) {
  enum { N = 37, K = 512 };
  if (!test_case("dot/row/tiny/%s", kernel)) return;
  for (int i = 0; i < 5; i++) {
    problem_spec s = make_spec(0, 1, N, K);
    problem p;
    set_codebook(&s.desc, i);
    for (int code = 0; code < 16; code++) s.desc.codebook[code] = ldexpf(s.desc.codebook[code], -59);
    s.desc.group_k = 32;
    s.desc.scale_type = LPGEMM_I8;
    s.desc.super_scale_type = LPGEMM_F16;
    s.desc.super_k = 256;
    s.x_type = LPGEMM_F32;
    if (problem_make(&p, handle, &s)) {
      for (int64_t g = 0; g < N * (K / 256); g++) {
        ref_store(LPGEMM_F16, (void *)(uintptr_t)p.source.super_scales, g, 3 * 0x1p-24);
      }
      for (int64_t g = 0; g < N * (K / 32); g++) ref_store(LPGEMM_I8, (void *)(uintptr_t)p.source.scales, g, 127);
      problem_repack(&p, handle);
      for (int k = 0; k < K; k++) ((float *)p.x)[k] = (float)test_between(-99, 99) * 0x1p-45f;
      float first[N], most = 0;
      p.args.level = LPGEMM_LEVEL_FAST;
      CHECK_STATUS(problem_run(&p, handle, kernel), LPGEMM_SUCCESS);
      memcpy(first, p.y, sizeof first);
      p.args.batch_invariant = 1;
      CHECK_STATUS(problem_run(&p, handle, kernel), LPGEMM_SUCCESS);
      const float *panels = p.y;
      for (int n = 0; n < N; n++) most = fmaxf(most, fabsf(panels[n]));
      CHECK(most > 0x1p-120f);
      /* Scales of the last of three bytes are subnormal in one way or the other. */
      for (int n = 0; n < N; n++) CHECK(fabsf(first[n] - panels[n]) <= 0x1p-6f * most);
    }
    problem_free(&p);
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
    check_level(&p, LPGEMM_LEVEL_FAST, kernel);
    check_level(&p, LPGEMM_LEVEL_EXACT, kernel);
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
    for (int fast = 0; fast < 2; fast++) {
      p.args.level = fast ? LPGEMM_LEVEL_FAST : LPGEMM_LEVEL_EXACT;
      CHECK_STATUS(problem_run(&p, handle, kernel), LPGEMM_SUCCESS);
      memcpy(first, p.y, problem_y_bytes(&p));
      CHECK_STATUS(problem_run(&p, many, kernel), LPGEMM_SUCCESS);
      CHECK(memcmp(first, p.y, problem_y_bytes(&p)) == 0);
    }
    test_free(first);
  }
  problem_free(&p);
  lpgemm_destroy(many);
}

/* ---- three digits ---- */

/* The level EXACT on an fp32 X of a test's own. */
static void check_x(problem *p, void (*fill)(float *x, int64_t i), const char *kernel) {
  for (int64_t i = 0; i < p->args.m * p->args.ldx; i++) fill((float *)p->x + i, i);
  check_level(p, LPGEMM_LEVEL_EXACT, kernel);
}

static void of_all_magnitudes(float *x, int64_t i) { *x = ldexpf(i / 32 % 5 == 3 ? 0 : *x, -(int)(i * 7 % 60)); }
static void of_one_outlier(float *x, int64_t i) { *x *= i % 32 == 9 ? 3000.0f : 1.0f; }
static void of_tiny_blocks(float *x, int64_t i) { *x = ldexpf(*x, i / 32 % 2 ? -39 : -140); }
static void of_huge_blocks(float *x, int64_t i) { *x = ldexpf(*x, i % 3 ? 40 : i % 2 ? -100 : -149); }

static void apart(const char *kernel) {
  if (!test_case("dot/apart/%s", kernel)) return;
  for (int form = 0; form < 6; form++) {
    problem_spec s = make_spec(form % 2 ? LPGEMM_UINT(4) : LPGEMM_UINT(2), 7, 40, 300 + 500 * form);
    s.desc.group_k = form % 3 ? 32 : 16;
    set_zero(&s.desc, form);
    problem p;
    if (problem_make(&p, handle, &s)) {
      check_x(&p, of_one_outlier, kernel);
      check_x(&p, of_all_magnitudes, kernel);
      check_x(&p, of_tiny_blocks, kernel);
    }
    problem_free(&p);
    if (problem_make(&p, handle, &s)) check_x(&p, of_huge_blocks, kernel);
    problem_free(&p);
  }
}

/* Magnitudes next to 0x7f7f7f halves and to powers of two, of both signs: digits at their ends. */
static void of_edges(float *x, int64_t i) {
  static const int32_t near[] = {0x7f7f7f, 0x7f7f80, 0x7fffff, 0x800000, 0x7f8080, 0x808080, 0x8000, 0x7f7f, 0x80, 1};
  const int32_t edge = near[i / 32 % 10] + (int32_t)(i % 3) - 1;
  *x = (float)(i % 2 ? edge : -edge);
}

/* One weight a row that is not zero, so that an output is an element of X: exact where the unit is 1, and where that is
 * 2, off by 1 at most. */
static void edges(const char *kernel) {
  if (!test_case("dot/edges/%s", kernel)) return;
  problem_spec s = make_spec(LPGEMM_INT(2), 2, 640, 640);
  problem p;
  s.desc.scale_type = 0;
  if (problem_make(&p, handle, &s)) {
    uint8_t *codes = (uint8_t *)(uintptr_t)p.source.codes;
    for (int64_t i = 0; i < 640 * 640; i++) codes[i] = i / 640 == i % 640;
    problem_repack(&p, handle);
    check_x(&p, of_edges, kernel);
    for (int64_t i = 0; i < 2 * 640; i++) {
      const float x = ((const float *)p.x)[i / 640 * p.args.ldx + i % 640];
      const float y = ((const float *)p.y)[i / 640 * p.args.ldy + i % 640];
      CHECK(fabsf(y - x) <= (fabsf(x) < 0x7f7f7e ? 0 : 1));
    }
  }
  problem_free(&p);
}

enum { CANCEL_ZERO = 6 };

/* All weights of a column are zero (its codes meet their zero, or its minimum) unless it is one of a few. */
static int has_weights(int64_t column) { return column % 16 == 3 * (column / 16 % 5); }

static void cancel(int form, double large, const char *kernel) {
  if (!test_case("dot/cancel/%d/%g/%s", form, large, kernel)) return;
  problem_spec s = make_spec(LPGEMM_UINT(4), 3, 20, 512);
  s.desc.group_k = 32;
  s.desc.zero = form == 0 ? LPGEMM_ZERO_CONSTANT : form == 1 ? LPGEMM_ZERO_PER_GROUP : LPGEMM_ZERO_MINIMUM;
  s.desc.zero_type = form == 0 ? 0 : form == 1 ? LPGEMM_U8 : form == 2 ? LPGEMM_F32 : LPGEMM_UINT(6);
  if (form == 0) s.desc.zero_constant = CANCEL_ZERO;
  if (form >= 2) s.desc.scale_type = form == 2 ? LPGEMM_F32 : LPGEMM_UINT(6);
  if (form == 3) s.desc.super_scale_type = s.desc.super_zero_type = LPGEMM_F16;
  if (form == 3) s.desc.super_k = 256;
  problem p;
  if (problem_make(&p, handle, &s)) {
    const int64_t groups = s.desc.n * (s.desc.k / 32);
    uint8_t *codes = (uint8_t *)(uintptr_t)p.source.codes, *zeros = (uint8_t *)(uintptr_t)p.source.zeros;
    void *scales = (void *)(uintptr_t)p.source.scales;
    for (int64_t i = 0; i < s.desc.n * s.desc.k; i++) {
      codes[i] = (uint8_t)(has_weights(i % s.desc.k) ? test_between(0, 15) : CANCEL_ZERO);
    }
    for (int64_t i = 0; i < groups && form > 0; i++) { /* 6 times 10 bits is a number of any type of them */
      const double scale = form == 3 ? (double)test_between(1, 10) : (double)test_between(512, 1023) * 0x1p-10;
      if (form >= 2) ref_store(s.desc.scale_type, scales, i, scale);
      ref_store(s.desc.zero_type, zeros, i, form == 1 ? CANCEL_ZERO : form == 2 ? -CANCEL_ZERO * scale : scale);
    }
    for (int64_t i = 0; i < s.desc.n * 2 && form == 3; i++) {
      const double super = (double)test_between(512, 1023) * 0x1p-12;
      ref_store(LPGEMM_F16, (void *)(uintptr_t)p.source.super_scales, i, super);
      ref_store(LPGEMM_F16, (void *)(uintptr_t)p.source.super_zeros, i, ref_round(LPGEMM_F16, -CANCEL_ZERO * super));
    }
    problem_repack(&p, handle);
    double smallest = HUGE_VAL;
    for (int64_t i = 0; i < s.m * p.args.ldx; i++) {
      ((float *)p.x)[i] *= has_weights(i % p.args.ldx) ? 1.0f : (float)large;
    }
    check_level(&p, LPGEMM_LEVEL_EXACT, kernel);
    for (int64_t i = 0; i < s.m * s.desc.n; i++) smallest = fmin(smallest, p.bound[i]);
    CHECK(smallest < large * 0x1p-24); /* an error of the large ones would be seen */
  }
  problem_free(&p);
}

void suite_dot(void) {
  handle = problem_handle(2);
  for (int i = 0; i < COUNT(kernels); i++) {
    if (!problem_has_kernel(kernels[i])) continue;
    types(kernels[i]);
    two_levels(kernels[i]);
    codebooks(kernels[i]);
    row(kernels[i]);
    row_exact(kernels[i]);
    row_tiny(kernels[i]);
    scales(kernels[i]);
    range(kernels[i]);
    threads(kernels[i]);
    apart(kernels[i]);
    edges(kernels[i]);
    for (int form = 0; form < 4; form++) {
      cancel(form, 1e5, kernels[i]);
      cancel(form, 1e9, kernels[i]);
    }
  }
  lpgemm_destroy(handle);
}
