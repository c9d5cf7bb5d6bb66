/* What happens to X: quantising it outside and inside a run, the workspace for that, integers read as bipolar. */
#include <math.h>

#include "cpu/cpu.h"
#include "problem.h"
#include "ref/gemm_ref.h"
#include "test.h"

static lpgemm_handle_t handle;
static const lpgemm_dtype_t real_types[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32};
static const lpgemm_dtype_t quantized_types[] = {
    LPGEMM_I8,         LPGEMM_E4M3,       LPGEMM_INT(2),     LPGEMM_INT(3),    LPGEMM_INT(4),
    LPGEMM_INT(7),     LPGEMM_UINT(1),    LPGEMM_UINT(2),    LPGEMM_UINT(5),   LPGEMM_UINT(8),
    LPGEMM_BIPOLAR(1), LPGEMM_BIPOLAR(2), LPGEMM_BIPOLAR(4), LPGEMM_BIPOLAR(8)};

/* The largest number of a type, and the lowest that X becomes. */
static double top_of(lpgemm_dtype_t type) {
  const double bits = (double)lpgemm_dtype_bits(type);
  if (type == LPGEMM_E4M3) return 448;
  return LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_INT ? exp2(bits - 1) - 1 : exp2(bits) - 1;
}
static double low_of(lpgemm_dtype_t type) { return LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_UINT ? 0 : -top_of(type); }

/* Half of what is between two numbers of the type, of which one stands for v. */
static double half_step(lpgemm_dtype_t type, double v, double scale) {
  if (type == LPGEMM_E4M3) return fmax(fabs(v) / 16, scale * 0x1p-10);
  return LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_BIPOLAR ? scale : scale / 2;
}

/* ---- lpgemm_quantize_activations() ---- */

enum { M = 9, K = 53, LDX = 60, LDO = 55 };

/* Rows of X in turn: ordinary, zero, one element only, negative, huge, tiny, with Inf, with NaN, ordinary. */
static void fill_x(lpgemm_dtype_t type, void *x, int finite) {
  double huge = ref_overflow(type) * (1 - ref_epsilon(type)), tiny = ref_smallest(type);
  memset(x, 0xff, (size_t)(M * LDX * ref_bytes(type)));
  for (int i = 0; i < M; i++) {
    for (int j = 0; j < K; j++) {
      double v = test_uniform(-1, 1);
      if (i == 1 || (i == 2 && j != 17)) v = 0;
      if (i == 3) v = -fabs(v);
      if (i == 4) v *= huge;
      if (i == 5) v = tiny * nearbyint(v * 300);
      if (i == 6 && j == 20 && !finite) v = -(double)INFINITY;
      if (i == 7 && j == 52 && !finite) v = (double)NAN;
      ref_store(type, x, i * LDX + j, v);
    }
  }
}

/* One row (or all, with one scale) against the definition. The scale may be rounded once; below fp32's normal range it
 * may also be the next larger number. Each code is one of the nearest. */
static void check_quantized(lpgemm_dtype_t x_type, const void *x, lpgemm_dtype_t type, const uint8_t *codes,
                            const float *scales, int first, int last) {
  double largest = 0, scale = (double)scales[0], top = top_of(type), reached = 0;
  int finite = 1, is_unsigned = LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_UINT;
  for (int i = first; i < last; i++) {
    for (int j = 0; j < K; j++) {
      double v = ref_load(x_type, x, i * LDX + j);
      finite &= isfinite(v) != 0;
      largest = fmax(largest, is_unsigned ? v : fabs(v));
    }
  }
  if (!finite) {
    uint32_t bits;
    memcpy(&bits, scales, sizeof bits);
    CHECK_INT(bits, 0x7fc00000);
    return;
  }
  if (largest == 0) CHECK(scale == (LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_BIPOLAR ? 0 : 1));
  if (largest > 0) CHECK(scale > 0 && fabs(scale - largest / top) <= 0x1p-24 * scale + 0x1p-149);
  for (int i = first; i < last; i++) {
    for (int j = 0; j < K; j++) {
      double x_value = ref_load(x_type, x, i * LDX + j), v = is_unsigned ? fmax(x_value, 0) : x_value;
      double code = ref_load(type, codes, i * LDO + j);
      if (!(fabs(code * scale - v) <= half_step(type, v, scale) * (1 + 0x1p-20)) || code > top || code < low_of(type)) {
        test_fail(__FILE__, __LINE__, "x[%d][%d] = %.9g became %g times %.9g", i, j, x_value, code, scale);
      }
      reached = fmax(reached, fabs(code));
    }
  }
  if (largest > 0 && scale >= 0x1p-126) CHECK(reached == top);
}

/* The bytes of a backend are those of the CPU's. */
static void check_host_writes_the_same(lpgemm_dtype_t x_type, const void *x, lpgemm_dtype_t type, const uint8_t *codes,
                                       const float *scales, int rows, lpgemm_x_scale_t mode) {
  uint8_t want[M * LDO];
  float want_scale[M];
  memset(want, 0x5a, sizeof want);
  lpgemm_i_quantize_activations_host(M, K, x, x_type, LDX, type, want, LDO, want_scale, mode);
  CHECK(memcmp(codes, want, (M - 1) * LDO + K) == 0);
  CHECK(memcmp(scales, want_scale, (size_t)rows * sizeof *scales) == 0); /* NaN too */
}

static void check_quantize(lpgemm_dtype_t x_type, lpgemm_dtype_t type, lpgemm_x_scale_t mode, int finite) {
  int rows = mode == LPGEMM_X_SCALE_ROW ? M : 1;
  void *x = test_alloc_at((size_t)(M * LDX * ref_bytes(x_type)), (size_t)ref_bytes(x_type));
  uint8_t *codes = test_alloc_at((M - 1) * LDO + K, 1);
  float *scales = test_alloc_at((size_t)rows * sizeof *scales, 4);
  fill_x(x_type, x, finite);
  memset(codes, 0x5a, (M - 1) * LDO + K);
  CHECK_STATUS(lpgemm_quantize_activations(handle, M, K, x, x_type, LDX, type, codes, LDO, scales, mode),
               LPGEMM_SUCCESS);
  test_wait();
  for (int i = 0; i < rows; i++) {
    check_quantized(x_type, x, type, codes, scales + i, rows == 1 ? 0 : i, rows == 1 ? M : i + 1);
  }
  for (int i = 0; i + 1 < M; i++) {
    for (int j = K; j < LDO; j++) CHECK_INT(codes[i * LDO + j], 0x5a);
  }
  check_host_writes_the_same(x_type, x, type, codes, scales, rows, mode);
  test_free(x);
  test_free(codes);
  test_free(scales);
}

static void check_quantize_empty(void) {
  float *scales = test_alloc(2 * sizeof *scales), *x = test_alloc(sizeof *x);
  uint8_t *code = test_alloc(1);
  scales[0] = scales[1] = 7;
  *x = 1;
  *code = 0x5a;
  CHECK_STATUS(
      lpgemm_quantize_activations(handle, 0, 5, x, LPGEMM_F32, 0, LPGEMM_I8, code, 0, scales, LPGEMM_X_SCALE_ROW),
      LPGEMM_SUCCESS);
  test_wait();
  CHECK(scales[0] == 7 && *code == 0x5a);
  CHECK_STATUS(
      lpgemm_quantize_activations(handle, 2, 0, x, LPGEMM_F32, 0, LPGEMM_I8, code, 0, scales, LPGEMM_X_SCALE_ROW),
      LPGEMM_SUCCESS);
  test_wait();
  CHECK(scales[0] == 1 && scales[1] == 1 && *code == 0x5a); /* rows of no elements are rows of zeros */
  test_free(scales);
  test_free(x);
  test_free(code);
}

/* ---- quantising inside a run ---- */

static problem_spec make_spec(lpgemm_dtype_t x_type, lpgemm_dtype_t quantize_x) {
  problem_spec s = {.desc = {.size = sizeof s.desc}};
  s.desc.type = LPGEMM_UINT(4);
  s.desc.n = 37;
  s.desc.k = 150;
  s.desc.group_k = 64;
  s.desc.scale_type = LPGEMM_BF16;
  s.desc.zero = LPGEMM_ZERO_CONSTANT;
  s.desc.zero_constant = 8;
  s.m = 11;
  s.x_type = x_type;
  s.quantize_x = quantize_x;
  s.y_type = LPGEMM_F32;
  s.alpha = 1;
  s.pad_x = 3;
  s.pad_y = 2;
  return s;
}

/* Inside gives the bits that quantising outside gives. */
static void check_inside(lpgemm_dtype_t x_type, lpgemm_dtype_t type) {
  problem_spec s = make_spec(x_type, type);
  const char *kernels[PROBLEM_KERNELS];
  int count = problem_kernels(kernels), compared = 0;
  int64_t m = s.m, k = s.desc.k;
  problem p;
  if (problem_make(&p, handle, &s)) {
    void *codes = test_alloc((size_t)(m * k)), *inside = test_alloc(problem_y_bytes(&p));
    float *scales = test_alloc((size_t)m * sizeof *scales);
    lpgemm_run_args_t args = p.args, outside = p.args;
    CHECK_STATUS(
        lpgemm_quantize_activations(handle, m, k, p.x, x_type, args.ldx, type, codes, 0, scales, LPGEMM_X_SCALE_ROW),
        LPGEMM_SUCCESS);
    outside.x = codes;
    outside.x_type = type;
    outside.ldx = 0;
    outside.x_scale = scales;
    outside.x_scale_mode = LPGEMM_X_SCALE_ROW;
    outside.quantize_x = 0;
    problem_expect(&p);
    for (int i = 0; i < count; i++) {
      p.args = args;
      lpgemm_status_t status = problem_run(&p, handle, kernels[i]);
      if (status == LPGEMM_NOT_SUPPORTED) continue;
      CHECK_STATUS(status, LPGEMM_SUCCESS);
      problem_check(&p, kernels[i]);
      memcpy(inside, p.y, problem_y_bytes(&p));
      p.args = outside;
      CHECK_STATUS(problem_run(&p, handle, kernels[i]), LPGEMM_SUCCESS);
      CHECK(memcmp(inside, p.y, problem_y_bytes(&p)) == 0);
      compared++;
    }
    CHECK(compared > 0);
    test_free(codes);
    test_free(inside);
    test_free(scales);
  }
  problem_free(&p);
}

/* A row that is not finite becomes NaN or Inf and no other row changes a bit. */
static void check_inside_not_finite(lpgemm_dtype_t type) {
  problem_spec s = make_spec(LPGEMM_F16, type);
  s.pad_y = 0;
  problem p;
  if (problem_make(&p, handle, &s)) {
    size_t row = (size_t)s.desc.n * sizeof(float), bytes = problem_y_bytes(&p);
    char *before = test_alloc(bytes);
    CHECK_STATUS(problem_run(&p, handle, NULL), LPGEMM_SUCCESS);
    memcpy(before, p.y, bytes);
    ref_store(LPGEMM_F16, p.x, 2 * p.args.ldx + 5, (double)INFINITY);
    ref_store(LPGEMM_F16, p.x, 7 * p.args.ldx + 149, (double)NAN);
    CHECK_STATUS(problem_run(&p, handle, NULL), LPGEMM_SUCCESS);
    for (int64_t i = 0; i < s.m; i++) {
      const char *y = (const char *)p.y + (size_t)i * row;
      if (i != 2 && i != 7) CHECK(memcmp(y, before + (size_t)i * row, row) == 0);
      for (int64_t j = 0; j < s.desc.n && (i == 2 || i == 7); j++) CHECK(!isfinite(ref_load(LPGEMM_F32, y, j)));
    }
    test_free(before);
  }
  problem_free(&p);
}

/* ---- the workspace ---- */

static void check_workspace_refused(lpgemm_dtype_t type) {
  problem_spec s = make_spec(LPGEMM_F16, type);
  problem p;
  if (problem_make(&p, handle, &s)) {
    size_t needed = 0, least = (size_t)(s.m * s.desc.k) /* the quantised X itself */;
    CHECK_STATUS(lpgemm_workspace_size(handle, p.weights, s.m, &p.args, &needed), LPGEMM_SUCCESS);
    CHECK(needed >= least);
    void *workspace = test_alloc(needed);
    memset(p.y, 0x5a, problem_y_bytes(&p));
    const size_t sizes[] = {0, 1, 256, least - 1};
    for (int i = 0; i < 4; i++) {
      CHECK_STATUS(lpgemm_set_workspace(handle, sizes[i] ? workspace : NULL, sizes[i]), LPGEMM_SUCCESS);
      CHECK_STATUS(lpgemm_run(handle, &p.args), LPGEMM_WORKSPACE_TOO_SMALL);
      CHECK(strstr(lpgemm_last_error(), "workspace") != NULL);
    }
    for (size_t i = 0; i < problem_y_bytes(&p); i++) CHECK_INT(((uint8_t *)p.y)[i], 0x5a);
    for (size_t i = 0; i < needed; i++) CHECK_INT(((uint8_t *)workspace)[i], 0xcd);
    CHECK_STATUS(lpgemm_set_workspace(handle, workspace, needed), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_run(handle, &p.args), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_set_stream(handle, NULL), LPGEMM_SUCCESS); /* drops no workspace */
    CHECK_STATUS(lpgemm_run(handle, &p.args), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_set_workspace(handle, NULL, 0), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_run(handle, &p.args), LPGEMM_WORKSPACE_TOO_SMALL);
    test_wait();
    test_free(workspace);
  }
  problem_free(&p);
}

/* Grows with m, and beyond copies of X (fp32 or narrower) stays below 64 MiB. */
static void check_workspace_size(lpgemm_dtype_t w_type, lpgemm_dtype_t x_type, lpgemm_dtype_t quantize_x) {
  problem_spec s = make_spec(x_type, quantize_x);
  s.desc.type = w_type;
  problem p;
  if (problem_make(&p, handle, &s)) {
    static const int64_t rows[] = {0, 1, 2, 3, 7, 8, 9, 16, 17, 31, 64, 65, 128, 129, 1000, 4097, 100000};
    size_t before = 0, bytes = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
      CHECK_STATUS(lpgemm_workspace_size(handle, p.weights, rows[i], &p.args, &bytes), LPGEMM_SUCCESS);
      CHECK(bytes >= before);
      CHECK(bytes <= ((size_t)64 << 20) + (size_t)rows[i] * (size_t)(s.desc.k + 64) * 12);
      before = bytes;
    }
    CHECK_STATUS(lpgemm_workspace_size(handle, p.weights, 8, NULL, &bytes), LPGEMM_SUCCESS);
  }
  problem_free(&p);
}

/* ---- integers read as bipolar ---- */

static void check_bipolar_values(lpgemm_dtype_t type) {
  static const float scales[] = {1, 0.5f, 3, -0.125f}, zeros[] = {0, 1, -7, 8, 1.5f, 128};
  for (int i = 0; i < 4; i++) {
    for (int j = 0; j < 6; j++) {
      lpgemm_dtype_t bipolar = 0;
      float scale = 0, zero = 0;
      uint8_t flip = 0xff;
      CHECK_STATUS(lpgemm_int_to_bipolar(type, scales[i], zeros[j], &bipolar, &scale, &zero, &flip), LPGEMM_SUCCESS);
      CHECK_INT(bipolar, LPGEMM_BIPOLAR((lpgemm_dtype_t)lpgemm_dtype_bits(type)));
      for (uint32_t code = 0; code < 1u << lpgemm_dtype_bits(type); code++) {
        CHECK_INT((code ^ flip) >> lpgemm_dtype_bits(type), 0);
        double as_integer = (ref_value(type, code, NULL) - (double)zeros[j]) * (double)scales[i];
        double as_bipolar = (ref_value(bipolar, code ^ flip, NULL) - (double)zero) * (double)scale;
        CHECK(as_integer == as_bipolar);
      }
    }
  }
}

/* The same product through both forms: exact numbers, so equal to the bit and to the reference. */
static void check_bipolar_product(lpgemm_dtype_t type) {
  problem_spec s = make_spec(LPGEMM_F16, 0);
  s.desc.type = type;
  s.desc.scale_type = 0;
  s.desc.group_k = 0;
  s.desc.zero_constant = 3;
  s.exact = 1;
  problem p;
  if (problem_make(&p, handle, &s)) {
    problem_expect(&p);
    CHECK_STATUS(problem_run(&p, handle, NULL), LPGEMM_SUCCESS);
    problem_check(&p, "as integers");
    lpgemm_weight_desc_t desc = s.desc;
    float scale = 0;
    uint8_t flip = 0;
    CHECK_STATUS(lpgemm_int_to_bipolar(type, 1, 3, &desc.type, &scale, &desc.zero_constant, &flip), LPGEMM_SUCCESS);
    desc.global_scale = scale;
    for (int64_t i = 0; i < desc.n * desc.k; i++) ((uint8_t *)(uintptr_t)p.source.codes)[i] ^= flip;
    CHECK_STATUS(lpgemm_weights_destroy(p.weights), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_pack_weights(handle, &desc, &p.source, NULL, 0, &p.weights), LPGEMM_SUCCESS);
    p.args.weights = p.weights;
    CHECK_STATUS(problem_run(&p, handle, NULL), LPGEMM_SUCCESS);
    problem_check(&p, "as bipolar");
  }
  problem_free(&p);
}

static void check_bipolar_refused(void) {
  static const lpgemm_dtype_t wrong[] = {LPGEMM_BIPOLAR(4), LPGEMM_CODEBOOK(2), LPGEMM_E4M3, LPGEMM_F16,
                                         LPGEMM_U16,        LPGEMM_I32,         0,           LPGEMM_INT(1)};
  for (int i = 0; i < 8; i++) {
    lpgemm_dtype_t type = 77;
    float scale = 77, zero = 77;
    uint8_t flip = 77;
    CHECK_STATUS(lpgemm_int_to_bipolar(wrong[i], 1, 0, &type, &scale, &zero, &flip), LPGEMM_INVALID_TYPE);
    CHECK(type == 77 && scale == 77 && zero == 77 && flip == 77);
  }
}

/* A row of which half are as near to the middle between two numbers as the types allow, often on it: from a random
 * scale, and from scales that the largest number gives without rounding. */
static void fill_near_ties(lpgemm_dtype_t x_type, void *x, int64_t first, int64_t columns, double top, int row) {
  static const double exact[] = {0.125, 0.75, 5};
  const double largest = row < 3 ? top * exact[row] : test_uniform(0.5, 2);
  ref_store(x_type, x, first, largest);
  for (int64_t j = 1; j < columns; j++) {
    const double steps = nearbyint(test_uniform(-2 * top, 2 * top));
    ref_store(x_type, x, first + j, largest * (j % 2 ? steps / (2 * top) : test_uniform(-1, 1)));
  }
}

/* The bytes are the host's. */
static void check_quantize_columns(lpgemm_dtype_t x_type, lpgemm_dtype_t type, int64_t columns, lpgemm_x_scale_t mode) {
  enum { ROWS = 5 };
  const int64_t ld = (columns + 15) / 16 * 16;
  const size_t bytes = (size_t)(ROWS * ld);
  void *x = test_alloc(bytes * (size_t)ref_bytes(x_type));
  uint8_t *codes = test_alloc(bytes), *want = test_alloc(bytes);
  float *scales = test_alloc(ROWS * sizeof *scales), want_scales[ROWS];
  for (int i = 0; i < ROWS; i++) fill_near_ties(x_type, x, i * ld, columns, top_of(type), i);
  memset(codes, 0x5a, bytes);
  memset(want, 0x5a, bytes);
  CHECK_STATUS(lpgemm_quantize_activations(handle, ROWS, columns, x, x_type, ld, type, codes, ld, scales, mode),
               LPGEMM_SUCCESS);
  test_wait();
  lpgemm_i_quantize_activations_host(ROWS, columns, x, x_type, ld, type, want, ld, want_scales, mode);
  CHECK(memcmp(codes, want, bytes) == 0);
  for (int i = 0; i < (mode == LPGEMM_X_SCALE_ROW ? ROWS : 1); i++) CHECK(scales[i] == want_scales[i]);
  test_free(x);
  test_free(codes);
  test_free(want);
  test_free(scales);
}

/* Rows of eights and others, which a CTA holds and more. */
static void check_quantize_ties(lpgemm_dtype_t x_type, lpgemm_dtype_t type) {
  static const int64_t columns[] = {8, 1000, 8200, 20003, 66000};
  for (int i = 0; i < 5; i++) {
    check_quantize_columns(x_type, type, columns[i], LPGEMM_X_SCALE_ROW);
    check_quantize_columns(x_type, type, columns[i], LPGEMM_X_SCALE_TENSOR);
  }
}

void suite_activations(void) {
  handle = problem_handle(2);
  for (size_t q = 0; q < sizeof quantized_types / sizeof *quantized_types; q++) {
    lpgemm_dtype_t type = quantized_types[q];
    const char *name = lpgemm_dtype_name(type);
    for (int x = 0; x < 3; x++) {
      const char *x_name = lpgemm_dtype_name(real_types[x]);
      for (int finite = 0; finite < 2; finite++) {
        const char *what = finite ? "finite" : "not_finite";
        if (test_case("activations/quantize/%s/%s/row/%s", x_name, name, what)) {
          check_quantize(real_types[x], type, LPGEMM_X_SCALE_ROW, finite);
        }
        if (test_case("activations/quantize/%s/%s/tensor/%s", x_name, name, what)) {
          check_quantize(real_types[x], type, LPGEMM_X_SCALE_TENSOR, finite);
        }
      }
      if (test_case("activations/quantize/ties/%s/%s", x_name, name)) check_quantize_ties(real_types[x], type);
      if (test_case("activations/inside/%s/%s", x_name, name)) check_inside(real_types[x], type);
      if (test_case("activations/workspace/size/%s/%s", x_name, name)) {
        check_workspace_size(LPGEMM_UINT(4), real_types[x], type);
        check_workspace_size(LPGEMM_INT(2), real_types[x], 0);
        check_workspace_size(LPGEMM_E4M3, real_types[x], type);
      }
    }
    if (test_case("activations/inside/not_finite/%s", name)) check_inside_not_finite(type);
    if (test_case("activations/workspace/refused/%s", name)) check_workspace_refused(type);
  }
  if (test_case("activations/quantize/empty")) check_quantize_empty();
  for (int bits = 1; bits <= 8; bits++) {
    for (int is_signed = 0; is_signed < 2; is_signed++) {
      if (is_signed && bits == 1) continue;
      lpgemm_dtype_t type = is_signed ? LPGEMM_INT((lpgemm_dtype_t)bits) : LPGEMM_UINT((lpgemm_dtype_t)bits);
      if (test_case("activations/bipolar/values/%s", lpgemm_dtype_name(type))) check_bipolar_values(type);
      if (test_case("activations/bipolar/product/%s", lpgemm_dtype_name(type))) check_bipolar_product(type);
    }
  }
  if (test_case("activations/bipolar/refused")) check_bipolar_refused();
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
