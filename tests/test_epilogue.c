/* The epilogue: y = activation(alpha * sum + beta * C + bias), in fp32 or better, rounded once. */
#include <math.h>

#include "compare.h"
#include "cpu/epilogue_rows.h"
#include "problem.h"
#include "ref/gemm_ref.h"
#include "test.h"

static struct {
  lpgemm_handle_t handle;
  const char *kernel[PROBLEM_KERNELS];
  int kernels;
} all;

static const lpgemm_dtype_t real_types[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32};
static const char *const activations[] = {"none", "relu", "gelu_erf", "gelu_tanh", "silu"};
_Static_assert(sizeof activations / sizeof activations[0] == LPG_ACTIVATION_COUNT, "an activation that nobody tests");

/* ---- every combination, random numbers ---- */

static void check_by_all(problem *p) {
  problem_expect(p);
  for (int i = 0; i < all.kernels; i++) {
    lpgemm_status_t status = problem_run(p, all.handle, all.kernel[i]);
    if (status == LPGEMM_NOT_SUPPORTED) continue;
    CHECK_STATUS(status, LPGEMM_SUCCESS);
    problem_check(p, all.kernel[i]);
  }
}

static problem_spec make_spec(int64_t m, int64_t n, int64_t k, lpgemm_dtype_t y_type) {
  problem_spec s = {.desc = {.size = sizeof s.desc}};
  s.desc.type = LPGEMM_INT(4);
  s.desc.scale_type = LPGEMM_F16;
  s.desc.group_k = 32;
  s.desc.n = n;
  s.desc.k = k;
  s.m = m;
  s.x_type = LPGEMM_F16;
  s.y_type = y_type;
  s.alpha = 1;
  return s;
}

/* All alpha, beta and places of C for one combination of types. */
static void check_combination(lpgemm_dtype_t y_type, lpgemm_dtype_t bias_type, lpgemm_activation_t activation) {
  static const float scalars[][2] = {{1, 0}, {0, 0}, {0, 1}, {-0.5f, 0}, {1, 1}, {-0.5f, 1}, {3, -0.5f}};
  for (int i = 0; i < 7; i++) {
    problem_spec s = make_spec(test_between(1, 20), test_between(1, 40), test_between(1, 100), y_type);
    s.bias_type = bias_type;
    s.activation = activation;
    s.alpha = scalars[i][0];
    s.beta = scalars[i][1];
    s.in_place = i % 2;
    s.pad_y = i % 3;
    s.pad_c = 2 * (i % 2);
    s.misaligned = i % 4 == 3;
    problem p;
    if (problem_make(&p, all.handle, &s)) check_by_all(&p);
    problem_free(&p);
  }
}

/* ---- given sums: one row, one column of W for each, X = 1 ---- */

/* The scales of W are the sums themselves: code 1, X = 1. Exact where the activation is. */
static void check_sums(const float *sum, int count, lpgemm_dtype_t y_type, const float *bias, const float *c,
                       float alpha, float beta, lpgemm_activation_t activation) {
  problem_spec s = make_spec(1, count, 1, y_type);
  s.desc.type = LPGEMM_UINT(1);
  s.desc.scale_type = LPGEMM_F32;
  s.x_type = LPGEMM_F32;
  s.bias_type = bias ? LPGEMM_F32 : 0;
  s.activation = activation;
  s.alpha = alpha;
  s.beta = c ? beta : 0;
  problem p;
  if (problem_make(&p, all.handle, &s)) {
    memset((uint8_t *)(uintptr_t)p.source.codes, 1, (size_t)count);
    memcpy((float *)(uintptr_t)p.source.scales, sum, (size_t)count * sizeof *sum);
    *(float *)p.x = 1;
    if (bias) memcpy(p.bias, bias, (size_t)count * sizeof *bias);
    for (int i = 0; c && i < count; i++) ref_store(y_type, p.c, i, (double)c[i]);
    problem_repack(&p, all.handle);
    p.spec.exact = activation == LPGEMM_ACTIVATION_NONE || activation == LPGEMM_ACTIVATION_RELU;
    check_by_all(&p);
  }
  problem_free(&p);
}

/* Sums that are not finite and values at the ends of every range, through each activation. */
static void check_special(lpgemm_dtype_t y_type, lpgemm_activation_t activation) {
  const float inf = (float)INFINITY;
  const float bias[] = {(float)NAN, inf,    -inf,   inf,     -inf,  (float)NAN, 0,     -0.0f,
                        1e30f,      -1e30f, 1e-30f, -1e-30f, 65504, 65519.99f,  65520, -65520,
                        88.7f,      -88.7f, -104,   104,     -1e4f, 1e4f,       -3,    3};
  enum { COUNT = sizeof bias / sizeof bias[0] };
  float sum[COUNT] = {0}, c[COUNT];
  for (int i = 0; i < COUNT; i++) c[i] = i == 3 ? -inf : i == 4 ? 1.0f : i == 5 ? inf : 0.0f;
  check_sums(sum, COUNT, y_type, bias, NULL, 1, 0, activation);
  check_sums(sum, COUNT, y_type, bias, c, 1, 1, activation);
  check_sums(sum, COUNT, y_type, bias, NULL, 0, 0, activation);
}

/* Sums that a rounding before the last step would spoil. */
static void check_one_rounding(lpgemm_dtype_t y_type) {
  double unit = 2 * ref_epsilon(y_type); /* of the numbers from 1 to 2 */
  const struct {
    double sum, c, bias;
  } cases[] = {
      {1 + unit / 2, unit / 16, 0},           /* a tie, and a hair that decides it: up */
      {1 + 1.5 * unit, 0, -unit / 16},        /* down to 1 + unit; the tie alone goes to 1 + 2 unit */
      {1 + unit / 2, 0, 1 + 0.75 * unit},     /* up to 2 + 2 unit, in the next binade */
      {2 + unit, 0, unit},                    /* 2 + 2 unit exactly */
      {1 + unit / 2, unit / 2, unit / 2},     /* 1 + 1.5 unit, a tie to 1 + 2 unit */
      {-1 - unit / 2, -unit / 16, unit / 32}, /* up in magnitude */
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    float sum = (float)cases[i].sum, c = (float)cases[i].c, bias = (float)cases[i].bias;
    double want = ref_round(y_type, cases[i].sum + cases[i].c + cases[i].bias);
    double early = ref_round(y_type, ref_round(y_type, ref_round(y_type, cases[i].sum) + cases[i].c) + cases[i].bias);
    CHECK(want != early); /* else the case shows nothing */
    CHECK((double)sum == cases[i].sum && (double)c == cases[i].c && (double)bias == cases[i].bias);
    check_sums(&sum, 1, y_type, &bias, &c, 1, 1, LPGEMM_ACTIVATION_NONE);
  }
}

/* Partial sums that fp16 could not hold: 1000 products of 100 and then their opposites. */
static void check_no_half_sums(void) {
  problem_spec s = make_spec(3, 5, 2001, LPGEMM_F16);
  s.desc.scale_type = 0;
  s.desc.type = LPGEMM_INT(8);
  s.desc.group_k = 0;
  problem p;
  if (problem_make(&p, all.handle, &s)) {
    uint8_t *codes = (uint8_t *)(uintptr_t)p.source.codes;
    for (int64_t i = 0; i < 5 * 2001; i++) codes[i] = i % 2001 < 1000 ? 100 : i % 2001 < 2000 ? 0x9c /* -100 */ : 1;
    for (int64_t i = 0; i < 3 * 2001; i++) ref_store(LPGEMM_F16, p.x, i, 1);
    problem_repack(&p, all.handle);
    p.spec.exact = 1;
    check_by_all(&p);
    CHECK_STATUS(problem_run(&p, all.handle, NULL), LPGEMM_SUCCESS);
    CHECK(ref_load(LPGEMM_F16, p.y, 0) == 1);
  }
  problem_free(&p);
}

/* An infinity in C with beta = 1 stays in its element. */
static void check_c_not_finite(lpgemm_dtype_t y_type) {
  problem_spec s = make_spec(4, 6, 40, y_type);
  s.beta = 1;
  s.in_place = 1;
  problem p;
  if (problem_make(&p, all.handle, &s)) {
    ref_store(y_type, p.c, 7, (double)INFINITY);
    ref_store(y_type, p.c, 13, (double)NAN);
    check_by_all(&p);
  }
  problem_free(&p);
}

/* ---- the narrowing of whole row tiles ---- */

/* Scales between two neighbours of a format, just beside that, and anything at all: narrowed by way of fp32 they are
 * what narrowing them at once gives. */
static void check_narrowing(lpgemm_dtype_t type) {
  const int is_f16 = type == LPGEMM_F16;
  const double others[] = {0.0, -0.0, 65504.0, 65519.999, 65520.0, 1e300, 3.4e38, 0x1p-150, INFINITY, -INFINITY, NAN};
  const int count = (int)(sizeof others / sizeof others[0]);
  for (int i = 0; i < 300000; i++) {
    const uint32_t code = (uint32_t)test_between(0, is_f16 ? 0x7bfe : 0x7f7e), sign = (uint32_t)test_between(0, 1)
                                                                                      << 15;
    const uint16_t next[] = {(uint16_t)(code | sign), (uint16_t)((code + 1) | sign)};
    const double low = ref_load(type, next, 0), high = ref_load(type, next, 1);
    const double middle = 0.5 * (low + high), apart[] = {0.0, 0x1p-52, -0x1p-52, 0x1p-30, -0x1p-30, 0.3, -0.3};
    double x = middle + apart[i % 7] * fabs(i % 2 ? middle : high - low);
    if (i < count) x = others[i];
    const uint32_t odd = lpg_odd_f32_bits(x);
    const uint32_t got = is_f16 ? lpg_odd_to_f16(odd) : lpg_f32_to_bf16(lpg_bits_f32(odd));
    CHECK_INT(got, is_f16 ? lpg_f64_to_f16(x) : lpg_f64_to_bf16(x));
  }
}

void suite_epilogue(void) {
  all.handle = problem_handle(2);
  all.kernels = problem_kernels(all.kernel);
  for (int y = 0; y < 3; y++) {
    const char *type = lpgemm_dtype_name(real_types[y]);
    for (int a = LPGEMM_ACTIVATION_NONE; a < LPG_ACTIVATION_COUNT; a++) {
      for (int b = 0; b < 4; b++) {
        lpgemm_dtype_t bias = b ? real_types[b - 1] : 0;
        if (!test_case("epilogue/%s/%s/bias_%s", type, activations[a], lpgemm_dtype_name(bias))) continue;
        check_combination(real_types[y], bias, (lpgemm_activation_t)a);
      }
      if (test_case("epilogue/%s/%s/special", type, activations[a])) {
        check_special(real_types[y], (lpgemm_activation_t)a);
      }
    }
    if (test_case("epilogue/%s/c_not_finite", type)) check_c_not_finite(real_types[y]);
  }
  if (test_case("epilogue/one_rounding/f16")) check_one_rounding(LPGEMM_F16);
  if (test_case("epilogue/one_rounding/bf16")) check_one_rounding(LPGEMM_BF16);
  if (test_case("epilogue/narrowing/f16")) check_narrowing(LPGEMM_F16);
  if (test_case("epilogue/narrowing/bf16")) check_narrowing(LPGEMM_BF16);
  if (test_case("epilogue/no_half_sums")) check_no_half_sums();
  CHECK_STATUS(lpgemm_destroy(all.handle), LPGEMM_SUCCESS);
}
