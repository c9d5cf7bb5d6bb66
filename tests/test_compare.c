/* The comparator and the reference's number formats are themselves tested: a comparator that cannot fail proves
 * nothing. */
#include <math.h>

#include "compare.h"
#include "ref/gemm_ref.h"
#include "test.h"

enum { M = 5, N = 7, LD = 9 };

typedef struct matrix {
  double want[M * N], bound[M * N];
  uint8_t y[4 * M * LD];
} matrix;

/* Distinct values far apart against their bound, stored in y. */
static void fill(matrix *t, lpgemm_dtype_t type) {
  for (int i = 0; i < 4 * M * LD; i++) t->y[i] = 0xff;
  for (int i = 0; i < M; i++) {
    for (int j = 0; j < N; j++) {
      double v = 1 + i * N + j;
      t->want[i * N + j] = (i + j) % 2 ? -v : v;
      t->bound[i * N + j] = 0.25;
      ref_store(type, t->y, i * LD + j, t->want[i * N + j]);
    }
  }
}

static int64_t bad(const matrix *t, lpgemm_dtype_t type, int same_class) {
  return compare_matrix(type, t->y, LD, M, N, t->want, t->bound, same_class).bad;
}

static void swap(lpgemm_dtype_t type, matrix *t, int a, int b) {
  double va = ref_load(type, t->y, a), vb = ref_load(type, t->y, b);
  ref_store(type, t->y, a, vb);
  ref_store(type, t->y, b, va);
}

static void check_finite(lpgemm_dtype_t type) {
  matrix t;
  fill(&t, type);
  CHECK_INT(bad(&t, type, 1), 0);

  for (int i = 0; i < M; i++) { /* one wrong element, wherever it is, however it is wrong */
    for (int j = 0; j < N; j++) {
      double v = t.want[i * N + j];
      const double wrong[] = {v + 0.5, v - 0.5, -v, 0};
      for (int w = 0; w < 4; w++) {
        if (type == LPGEMM_I32 && w < 2) continue;
        ref_store(type, t.y, i * LD + j, wrong[w]);
        compare_result r = compare_matrix(type, t.y, LD, M, N, t.want, t.bound, 1);
        CHECK_INT(r.bad, 1);
        CHECK(r.row == i && r.column == j && r.want == v);
      }
      ref_store(type, t.y, i * LD + j, v);
    }
  }
  for (int j = 0; j < N; j++) swap(type, &t, 0 * LD + j, 3 * LD + j);
  CHECK_INT(bad(&t, type, 1), 2 * N);
  fill(&t, type);
  for (int i = 0; i < M; i++) swap(type, &t, i * LD + 2, i * LD + 5);
  CHECK_INT(bad(&t, type, 1), 2 * M);

  fill(&t, type);
  t.bound[11] = (double)NAN; /* bounds that bound nothing pass nothing */
  t.bound[20] = (double)INFINITY;
  CHECK_INT(bad(&t, type, 0), 2);
}

static void check_not_finite(lpgemm_dtype_t type) {
  const double special[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
  matrix t;
  fill(&t, type);
  for (int s = 0; s < 3; s++) { /* where a number is wanted */
    ref_store(type, t.y, 2 * LD + 3, special[s]);
    CHECK_INT(bad(&t, type, 0), 1);
    CHECK_INT(bad(&t, type, 1), 1);
  }
  for (int w = 0; w < 3; w++) { /* where something that is not finite is wanted */
    t.want[2 * N + 3] = special[w];
    t.bound[2 * N + 3] = (double)NAN;
    for (int s = 0; s < 3; s++) {
      ref_store(type, t.y, 2 * LD + 3, special[s]);
      CHECK_INT(bad(&t, type, 0), 0);
      CHECK_INT(bad(&t, type, 1), s != w);
    }
    ref_store(type, t.y, 2 * LD + 3, 1);
    CHECK_INT(bad(&t, type, 0), 1);
    CHECK_INT(bad(&t, type, 1), 1);
  }
}

/* A number that rounds to infinity: infinity is right from the largest number on, and nothing else is. */
static void check_overflow(lpgemm_dtype_t type) {
  double edge = ref_overflow(type), largest = edge * (1 - ref_epsilon(type)), bound = edge * ref_epsilon(type);
  uint8_t y[4];
  ref_store(type, y, 0, (double)INFINITY);
  double want = edge * 1.5;
  CHECK_INT(compare_matrix(type, y, 1, 1, 1, &want, &bound, 1).bad, 0);
  want = -want;
  CHECK_INT(compare_matrix(type, y, 1, 1, 1, &want, &bound, 1).bad, 1);
  want = edge * 0.75;
  CHECK_INT(compare_matrix(type, y, 1, 1, 1, &want, &bound, 1).bad, 1);
  ref_store(type, y, 0, largest);
  CHECK(isfinite(ref_load(type, y, 0)));
  want = edge * 1.5;
  CHECK_INT(compare_matrix(type, y, 1, 1, 1, &want, &bound, 1).bad, 1);
}

/* Rounding and storing against the definition: every finite number of the type is a fixed point, the middle of two
 * neighbours goes to the even one, and a hair beside the middle to the nearer one. */
static void check_rounding(lpgemm_dtype_t type) {
  uint16_t a = 0, b;
  for (uint32_t code = 0; code < 0x7fffu; code++) {
    double low = ref_value(type, code, NULL), high = ref_value(type, code + 1, NULL);
    if (!isfinite(low)) break;
    ref_store(type, &a, 0, low);
    if (a != code || ref_round(type, low) != low) {
      CHECK_INT(a, code);
      break;
    }
    double middle = isfinite(high) ? (low + high) / 2 : ref_overflow(type);
    ref_store(type, &a, 0, middle);
    ref_store(type, &b, 0, -middle * (1 - 0x1p-50));
    if (a != code + (code & 1) || b != (code | 0x8000u)) {
      CHECK_INT(a, code + (code & 1));
      CHECK_INT(b, code | 0x8000u);
      break;
    }
    ref_store(type, &a, 0, middle * (1 + 0x1p-50));
    if (a != code + 1) {
      CHECK_INT(a, code + 1);
      break;
    }
  }
}

/* Spot values of the formats, from the papers and standards, not from a formula. */
static void check_values(void) {
  static const struct {
    lpgemm_dtype_t type;
    uint32_t code;
    double value;
  } known[] = {
      {LPGEMM_UINT(8), 255, 255},
      {LPGEMM_INT(4), 8, -8},
      {LPGEMM_INT(2), 3, -1},
      {LPGEMM_BIPOLAR(1), 0, -1},
      {LPGEMM_BIPOLAR(2), 2, 1},
      {LPGEMM_BIPOLAR(3), 0, -7},
      {LPGEMM_FLOAT(2, 1), 7, 6}, /* OCP e2m1: 0 .5 1 1.5 2 3 4 6 */
      {LPGEMM_FLOAT(2, 1), 1, 0.5},
      {LPGEMM_FLOAT(2, 1), 13, -3},
      {LPGEMM_FLOAT(3, 2), 31, 28}, /* OCP e3m2 */
      {LPGEMM_FLOAT(3, 2), 1, 0.0625},
      {LPGEMM_FLOAT(2, 3), 31, 7.5}, /* OCP e2m3 */
      {LPGEMM_E4M3, 0x7e, 448},
      {LPGEMM_E4M3, 0x01, 0x1p-9},
      {LPGEMM_E5M2, 0x7b, 57344},
      {LPGEMM_E5M2, 0x01, 0x1p-16},
      {LPGEMM_E5M2, 0xfc, -(double)INFINITY},
      {LPGEMM_FLOAT(1, 1), 3, 3}, /* bias 0: 0 1 2 3 */
      {LPGEMM_FLOAT(1, 1), 1, 1},
      {LPGEMM_FLOAT(5, 0), 31, 65536}, /* no infinity: past fp16 */
      {LPGEMM_FLOAT(7, 0), 127, 0x1p64},
      {LPGEMM_E8M0, 0, 0x1p-127},
      {LPGEMM_E8M0, 127, 1},
      {LPGEMM_F16, 0x7bff, 65504},
      {LPGEMM_F16, 0x0001, 0x1p-24},
      {LPGEMM_BF16, 0x3f81, 1.0078125},
      {LPGEMM_F32, 0xc0490fdb, -3.14159274101257324},
      {LPGEMM_I32, 0xfffffffe, -2},
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    CHECK(ref_value(known[i].type, known[i].code, NULL) == known[i].value);
  }
  CHECK(isnan(ref_value(LPGEMM_E4M3, 0x7f, NULL)) && isnan(ref_value(LPGEMM_E4M3, 0xff, NULL)));
  CHECK(isnan(ref_value(LPGEMM_E5M2, 0x7d, NULL)) && isnan(ref_value(LPGEMM_E8M0, 255, NULL)));
}

/* A product worked out by hand: two groups, a zero, scales, a global scale, bias, C and alpha. */
static void check_product(void) {
  lpgemm_weight_desc_t desc = {.size = sizeof desc};
  desc.n = 2;
  desc.k = 18;
  desc.group_k = 16;
  desc.type = LPGEMM_UINT(4);
  desc.scale_type = LPGEMM_F32;
  desc.zero = LPGEMM_ZERO_CONSTANT;
  desc.zero_constant = 1.5f;
  desc.global_scale = 2;
  uint8_t codes[36];
  float scales[4] = {1, 10, 0.5f, -1}, x[18], y_old[2] = {100, 200}, bias[2] = {7, -7}, alpha = 0.5f, beta = -1;
  for (int i = 0; i < 36; i++) codes[i] = i < 18 ? 2 : 3;
  for (int i = 0; i < 18; i++) x[i] = i < 16 ? 1.0f : 2.0f;
  lpgemm_weight_source_t source = {.size = sizeof source};
  source.codes = codes;
  source.scales = scales;
  lpgemm_run_args_t args = {.size = sizeof args};
  args.m = 1;
  args.x = x;
  args.x_type = args.y_type = LPGEMM_F32;
  args.alpha = &alpha;
  args.beta = &beta;
  args.c = y_old;
  args.bias = bias;
  double y[2], bound[2];
  ref_gemm(&desc, &source, &args, y, bound, NULL);
  /* row 0: 16 * (2 - 1.5) * 1 + 2 * 2 * 0.5 * 10 = 28; row 1: 16 * 1.5 * 0.5 - 2 * 2 * 1.5 = 6; twice, halved */
  CHECK(y[0] == 28 - 100 + 7 && y[1] == 6 - 200 - 7);
  CHECK(bound[0] > 0 && bound[0] < 1e-2 && bound[1] > 0 && bound[1] < 1e-2);
}

void suite_compare(void) {
  static const lpgemm_dtype_t types[] = {LPGEMM_F32, LPGEMM_F16, LPGEMM_BF16, LPGEMM_I32};
  for (int i = 0; i < 4; i++) {
    if (test_case("compare/finite/%s", lpgemm_dtype_name(types[i]))) check_finite(types[i]);
  }
  for (int i = 0; i < 3; i++) {
    if (test_case("compare/not_finite/%s", lpgemm_dtype_name(types[i]))) check_not_finite(types[i]);
    if (test_case("compare/overflow/%s", lpgemm_dtype_name(types[i]))) check_overflow(types[i]);
  }
  if (test_case("compare/rounding/f16")) check_rounding(LPGEMM_F16);
  if (test_case("compare/rounding/bf16")) check_rounding(LPGEMM_BF16);
  if (test_case("compare/values")) check_values();
  if (test_case("compare/product")) check_product();
}
