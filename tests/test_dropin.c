/* The calls in place of cuBLAS, against column-major loops: C (m x n) = alpha * op(A) * B (k x n) + beta * C; and
 * lpgemm_matmul(). */
#include <math.h>

#include "compare.h"
#include "problem.h"
#include "ref/gemm_ref.h"
#include "test.h"

static lpgemm_handle_t handle;

/* ---- packed matrices and column-major buffers ---- */

typedef struct matrix {
  lpgemm_weight_desc_t desc;
  lpgemm_weight_source_t source;
  lpgemm_weights_t packed;
} matrix;

/* Without scales for integers. */
static matrix make_matrix(int m, int k, int integers) {
  matrix a = {.desc = {.size = sizeof a.desc}, .source = {.size = sizeof a.source}};
  a.desc.n = m;
  a.desc.k = k;
  a.desc.type = LPGEMM_INT(4);
  uint8_t *codes = test_alloc((size_t)(m * k));
  for (int i = 0; i < m * k; i++) codes[i] = (uint8_t)test_between(0, 15);
  a.source.codes = codes;
  a.source.codes_bytes = (size_t)(m * k);
  if (!integers) {
    int64_t count = m * ((k + 31) / 32);
    a.desc.group_k = 32;
    a.desc.scale_type = LPGEMM_F16;
    void *scales = test_alloc((size_t)count * 2);
    for (int64_t i = 0; i < count; i++) ref_store(LPGEMM_F16, scales, i, test_uniform(0.05, 0.2));
    a.source.scales = scales;
    a.source.scales_bytes = (size_t)count * 2;
  }
  CHECK_STATUS(lpgemm_pack_weights(handle, &a.desc, &a.source, NULL, 0, &a.packed), LPGEMM_SUCCESS);
  return a;
}

static void free_matrix(matrix *a) {
  CHECK_STATUS(lpgemm_weights_destroy(a->packed), LPGEMM_SUCCESS);
  test_free((void *)(uintptr_t)a->source.codes);
  test_free((void *)(uintptr_t)a->source.scales);
}

/* Random small numbers in the first `count` rows of each column, poison in the others. */
static void *make_columns(lpgemm_dtype_t type, int count, int ld, int columns) {
  int64_t bytes = ref_bytes(type), total = (int64_t)ld * columns;
  char *b = test_alloc((size_t)(total * bytes));
  memset(b, 0xff, (size_t)(total * bytes));
  int integers = type == LPGEMM_I8 || type == LPGEMM_I32;
  for (int j = 0; j < columns; j++) {
    for (int i = 0; i < count; i++) {
      ref_store(type, b, (int64_t)j * ld + i, integers ? (double)test_between(-100, 100) : test_uniform(-1, 1));
    }
  }
  return b;
}

/* want and bound of one product, column after column: the order of a row-major Y of n rows. */
static void expect(const matrix *a, int n, const void *b, lpgemm_dtype_t b_type, int ldb, const void *c,
                   lpgemm_dtype_t c_type, int ldc, double alpha, double beta, double *want, double *bound) {
  int m = (int)a->desc.n, k = (int)a->desc.k;
  double *w = test_alloc((size_t)k * sizeof *w);
  for (int i = 0; i < m; i++) {
    ref_weight_row(&a->desc, &a->source, i, w);
    for (int j = 0; j < n; j++) {
      double sum = 0, size = 0, old = beta == 0 ? 0 : beta * ref_load(c_type, c, (int64_t)j * ldc + i);
      for (int l = 0; l < k; l++) {
        double x = ref_load(b_type, b, (int64_t)j * ldb + l);
        sum += w[l] * x;
        size += fabs(w[l] * x);
      }
      double v = alpha * sum + old, error = (k + 8) * 0x1p-23 * fabs(alpha) * size + 0x1p-20 * fabs(old);
      want[j * m + i] = v;
      bound[j * m + i] =
          c_type == LPGEMM_I32 ? 0 : error + ref_epsilon(c_type) * (fabs(v) + error) + ref_smallest(c_type) / 2;
    }
  }
  test_free(w);
}

/* Rows m .. ldc of every column keep their poison. */
static void check_tails(const void *c, lpgemm_dtype_t type, int m, int ldc, int columns) {
  int64_t bytes = ref_bytes(type);
  for (int j = 0; j < columns; j++) {
    const uint8_t *column = (const uint8_t *)c + (int64_t)j * ldc * bytes;
    for (int64_t i = m * bytes; i < ldc * bytes; i++) {
      if (column[i] == 0xff) continue;
      test_fail(__FILE__, __LINE__, "column %d of C was written beyond its %d rows", j, m);
      return;
    }
  }
}

/* ---- one product ---- */

typedef struct call {
  int b_type, c_type, compute; /* cuBLAS's numbers */
  lpgemm_dtype_t b, c, scalar; /* ours */
} call;

static const call calls[] = {
    {LPGEMM_CUDA_R_16F, LPGEMM_CUDA_R_16F, LPGEMM_COMPUTE_16F, LPGEMM_F16, LPGEMM_F16, LPGEMM_F16},
    {LPGEMM_CUDA_R_16F, LPGEMM_CUDA_R_16F, LPGEMM_COMPUTE_32F, LPGEMM_F16, LPGEMM_F16, LPGEMM_F32},
    {LPGEMM_CUDA_R_16F, LPGEMM_CUDA_R_32F, LPGEMM_COMPUTE_32F, LPGEMM_F16, LPGEMM_F32, LPGEMM_F32},
    {LPGEMM_CUDA_R_16BF, LPGEMM_CUDA_R_16BF, LPGEMM_COMPUTE_32F, LPGEMM_BF16, LPGEMM_BF16, LPGEMM_F32},
    {LPGEMM_CUDA_R_16BF, LPGEMM_CUDA_R_32F, LPGEMM_COMPUTE_32F, LPGEMM_BF16, LPGEMM_F32, LPGEMM_F32},
    {LPGEMM_CUDA_R_32F, LPGEMM_CUDA_R_32F, LPGEMM_COMPUTE_32F, LPGEMM_F32, LPGEMM_F32, LPGEMM_F32},
    {LPGEMM_CUDA_R_8I, LPGEMM_CUDA_R_32F, LPGEMM_COMPUTE_32F, LPGEMM_I8, LPGEMM_F32, LPGEMM_F32},
    {LPGEMM_CUDA_R_8F_E4M3, LPGEMM_CUDA_R_16BF, LPGEMM_COMPUTE_32F, LPGEMM_E4M3, LPGEMM_BF16, LPGEMM_F32},
    {LPGEMM_CUDA_R_8F_E5M2, LPGEMM_CUDA_R_16F, LPGEMM_COMPUTE_32F, LPGEMM_E5M2, LPGEMM_F16, LPGEMM_F32},
    {LPGEMM_CUDA_R_8I, LPGEMM_CUDA_R_32I, LPGEMM_COMPUTE_32I, LPGEMM_I8, LPGEMM_I32, LPGEMM_I32},
};
enum { CALLS = sizeof calls / sizeof calls[0] };

/* which: 0 gemm_ex, 1 hgemm, 2 gemm_ex in pointer mode DEVICE */
static void check_product(const call *t, int which, int m, int n, int k, double alpha, double beta) {
  int ldb = k + 3, ldc = m + 5;
  matrix a = make_matrix(m, k, t->c == LPGEMM_I32);
  void *b = make_columns(t->b, k, ldb, n), *c = make_columns(t->c, beta == 0 ? 0 : m, ldc, n);
  double *want = test_alloc((size_t)(m * n) * 2 * sizeof *want), *bound = want + m * n;
  float on_host[2], *on_device = test_alloc(sizeof on_host); /* room for each type */
  char *alpha_at = (char *)(which == 2 ? on_device : on_host), *beta_at = alpha_at + ref_bytes(t->scalar);
  ref_store(t->scalar, alpha_at, 0, alpha);
  ref_store(t->scalar, beta_at, 0, beta);
  expect(&a, n, b, t->b, ldb, c, t->c, ldc, alpha, beta, want, bound);
  lpgemm_status_t status;
  if (which == 1) {
    status = lpgemm_hgemm(handle, LPGEMM_OP_T, LPGEMM_OP_N, m, n, k, alpha_at, a.packed, k, b, ldb, beta_at, c, ldc);
  } else {
    if (which == 2) CHECK_STATUS(lpgemm_set_pointer_mode(handle, LPGEMM_POINTER_DEVICE), LPGEMM_SUCCESS);
    status = lpgemm_gemm_ex(handle, LPGEMM_OP_T, LPGEMM_OP_N, m, n, k, alpha_at, a.packed, LPGEMM_CUDA_R_16F, k, b,
                            t->b_type, ldb, beta_at, c, t->c_type, ldc, t->compute, -1);
    CHECK_STATUS(lpgemm_set_pointer_mode(handle, LPGEMM_POINTER_HOST), LPGEMM_SUCCESS);
  }
  CHECK_STATUS(status, LPGEMM_SUCCESS);
  test_wait();
  CHECK_MATRIX(compare_matrix(t->c, c, ldc, n, m, want, bound, 1), which == 1 ? "hgemm" : "gemm_ex");
  check_tails(c, t->c, m, ldc, n);
  test_free(b);
  test_free(c);
  test_free(want);
  test_free(on_device);
  free_matrix(&a);
}

static void check_products(const call *t, int which) {
  static const double scalars[][2] = {{1, 0}, {-0.5, 1}, {1, -0.5}, {0, 1}, {0.25, 2}};
  static const double integers[][2] = {{1, 0}, {1, 1}, {0, 1}, {0, 0}, {1, 1}};
  static const int sizes[][3] = {{70, 9, 130}, {33, 1, 64}, {16, 40, 31}, {1, 3, 200}, {129, 17, 5}};
  for (int i = 0; i < 5; i++) {
    const double *s = t->scalar == LPGEMM_I32 ? integers[i] : scalars[i];
    check_product(t, which, sizes[i][0], sizes[i][1], sizes[i][2], s[0], s[1]);
  }
}

/* ---- strided batches ---- */

static void check_batch(const call *t, int64_t stride_a, int batches, double beta) {
  enum { GEMM_M = 40, N = 6, K = 70, LDB = 72, LDC = 43, GAP = 2 }; /* GAP: whole columns between two products */
  matrix a[3];
  lpgemm_weights_t packed[3];
  for (int i = 0; i < 3; i++) {
    a[i] = make_matrix(GEMM_M, K, t->c == LPGEMM_I32);
    packed[i] = a[i].packed;
  }
  int columns = (N + GAP) * 3;
  void *b = make_columns(t->b, K, LDB, columns), *c = make_columns(t->c, GEMM_M, LDC, columns);
  size_t c_bytes = (size_t)(LDC * columns * ref_bytes(t->c));
  void *before = test_alloc(c_bytes);
  memcpy(before, c, c_bytes);
  float scalars[2]; /* room for each type */
  char *beta_at = (char *)scalars + ref_bytes(t->scalar);
  ref_store(t->scalar, scalars, 0, 1);
  ref_store(t->scalar, beta_at, 0, beta);
  CHECK_STATUS(lpgemm_gemm_strided_batched_ex(handle, LPGEMM_OP_T, LPGEMM_OP_N, GEMM_M, N, K, scalars, packed,
                                              LPGEMM_CUDA_R_16F, K, stride_a, b, t->b_type, LDB, LDB * (N + GAP),
                                              beta_at, c, t->c_type, LDC, LDC * (N + GAP), batches, t->compute, -1),
               LPGEMM_SUCCESS);
  test_wait();
  for (int i = 0; i < 3; i++) {
    double want[GEMM_M * N], bound[GEMM_M * N];
    int64_t b_at = (int64_t)i * LDB * (N + GAP) * ref_bytes(t->b),
            c_at = (int64_t)i * LDC * (N + GAP) * ref_bytes(t->c);
    size_t product = (size_t)(LDC * N * ref_bytes(t->c)), all = (size_t)(LDC * (N + GAP) * ref_bytes(t->c));
    if (i >= batches) product = 0; /* nothing of it is written */
    if (product) {
      expect(&a[stride_a ? i : 0], N, (char *)b + b_at, t->b, LDB, (char *)before + c_at, t->c, LDC, 1, beta, want,
             bound);
      CHECK_MATRIX(compare_matrix(t->c, (char *)c + c_at, LDC, N, GEMM_M, want, bound, 1), "batched");
      check_tails((char *)c + c_at, t->c, GEMM_M, LDC, N);
    }
    CHECK(memcmp((char *)c + c_at + product, (char *)before + c_at + product, all - product) == 0);
  }
  test_free(b);
  test_free(c);
  test_free(before);
  for (int i = 0; i < 3; i++) free_matrix(&a[i]);
}

/* ---- refusals: a status, a sentence with the argument's name, and C untouched ---- */

static void check_refused(void) {
  enum { GEMM_M = 8, N = 3, K = 16 };
  matrix a = make_matrix(GEMM_M, K, 0);
  const size_t b_bytes = K * N * 2, c_bytes = GEMM_M * N * 4;
  uint16_t one = 0x3c00, zero = 0, *b = test_alloc(b_bytes), *c = test_alloc(c_bytes);
  float fone = 1, fzero = 0;
  memset(b, 0, b_bytes);
  memset(c, 0x5a, c_bytes);
#define HGEMM(ta, tb, m, n, k, al, A, B, ldb, be, C, ldc, status, word)                        \
  do {                                                                                         \
    CHECK_STATUS(lpgemm_hgemm(handle, ta, tb, m, n, k, al, A, K, B, ldb, be, C, ldc), status); \
    CHECK(strstr(lpgemm_last_error(), word) != NULL);                                          \
  } while (0)
  HGEMM(0, 0, GEMM_M, N, K, &one, a.packed, b, K, &zero, c, GEMM_M, LPGEMM_NOT_SUPPORTED, "transa");
  HGEMM(1, 1, GEMM_M, N, K, &one, a.packed, b, K, &zero, c, GEMM_M, LPGEMM_NOT_SUPPORTED, "transb");
  HGEMM(2, 0, GEMM_M, N, K, &one, a.packed, b, K, &zero, c, GEMM_M, LPGEMM_NOT_SUPPORTED, "transa");
  HGEMM(1, 0, GEMM_M + 1, N, K, &one, a.packed, b, K, &zero, c, GEMM_M + 1, LPGEMM_INVALID_SIZE, "m =");
  HGEMM(1, 0, GEMM_M, N, K - 1, &one, a.packed, b, K, &zero, c, GEMM_M, LPGEMM_INVALID_SIZE, "k =");
  HGEMM(1, 0, GEMM_M, -1, K, &one, a.packed, b, K, &zero, c, GEMM_M, LPGEMM_INVALID_SIZE, "negative");
  HGEMM(1, 0, GEMM_M, N, K, &one, a.packed, b, K - 1, &zero, c, GEMM_M, LPGEMM_INVALID_SIZE, "ldb");
  HGEMM(1, 0, GEMM_M, N, K, &one, a.packed, b, K, &zero, c, GEMM_M - 1, LPGEMM_INVALID_SIZE, "ldc");
  HGEMM(1, 0, GEMM_M, N, K, NULL, a.packed, b, K, &zero, c, GEMM_M, LPGEMM_NULL_POINTER, "alpha");
  HGEMM(1, 0, GEMM_M, N, K, &one, a.packed, b, K, NULL, c, GEMM_M, LPGEMM_NULL_POINTER, "beta");
  HGEMM(1, 0, GEMM_M, N, K, &one, NULL, b, K, &zero, c, GEMM_M, LPGEMM_NULL_POINTER, "weights");
#undef HGEMM
#define GEMM_EX(b_type, c_type, compute, status, word)                                                              \
  do {                                                                                                              \
    CHECK_STATUS(lpgemm_gemm_ex(handle, 1, 0, GEMM_M, N, K, &fone, a.packed, 2, K, b, b_type, K, &fzero, c, c_type, \
                                GEMM_M, compute, -1),                                                               \
                 status);                                                                                           \
    CHECK(strstr(lpgemm_last_error(), word) != NULL);                                                               \
  } while (0)
  GEMM_EX(1, LPGEMM_CUDA_R_16F, LPGEMM_COMPUTE_32F, LPGEMM_NOT_SUPPORTED, "Btype"); /* 64F */
  GEMM_EX(LPGEMM_CUDA_R_16F, 999, LPGEMM_COMPUTE_32F, LPGEMM_NOT_SUPPORTED, "Ctype");
  GEMM_EX(LPGEMM_CUDA_R_16F, LPGEMM_CUDA_R_16F, 70, LPGEMM_NOT_SUPPORTED, "compute_type"); /* 64F */
  GEMM_EX(LPGEMM_CUDA_R_16F, LPGEMM_CUDA_R_16F, LPGEMM_COMPUTE_32I, LPGEMM_NOT_SUPPORTED, "Ctype");
  GEMM_EX(LPGEMM_CUDA_R_8I, LPGEMM_CUDA_R_32I, LPGEMM_COMPUTE_32F, LPGEMM_NOT_SUPPORTED, "Ctype");
  GEMM_EX(LPGEMM_CUDA_R_8I, LPGEMM_CUDA_R_32I, LPGEMM_COMPUTE_32I, LPGEMM_NOT_SUPPORTED, "scales");
#undef GEMM_EX
  lpgemm_weights_t both[2] = {a.packed, NULL};
#define BATCHED(A, stride_a, stride_b, stride_c, count, status, word)                                           \
  do {                                                                                                          \
    CHECK_STATUS(                                                                                               \
        lpgemm_gemm_strided_batched_ex(handle, 1, 0, GEMM_M, N, K, &fone, A, 2, K, stride_a, b, 2, K, stride_b, \
                                       &fzero, c, 2, GEMM_M, stride_c, count, LPGEMM_COMPUTE_32F, -1),          \
        status);                                                                                                \
    CHECK(strstr(lpgemm_last_error(), word) != NULL);                                                           \
  } while (0)
  BATCHED(both, 0, 0, GEMM_M * N, -1, LPGEMM_INVALID_SIZE, "batch_count");
  BATCHED(both, 2, 0, GEMM_M * N, 2, LPGEMM_INVALID_ARGUMENT, "strideA");
  BATCHED(both, 0, -1, GEMM_M * N, 2, LPGEMM_INVALID_SIZE, "strideB");
  BATCHED(both, 0, 0, GEMM_M * N - 1, 2, LPGEMM_INVALID_SIZE, "strideC");
  BATCHED(NULL, 0, 0, GEMM_M * N, 2, LPGEMM_NULL_POINTER, "A is NULL");
  BATCHED(both, 1, 0, GEMM_M * N, 2, LPGEMM_NULL_POINTER, "weights"); /* the second: the first is not run either */
#undef BATCHED
  test_wait();
  for (size_t i = 0; i < c_bytes / sizeof *c; i++) CHECK_INT(c[i], 0x5a5a);
  test_free(b);
  test_free(c);
  free_matrix(&a);
}

/* ---- lpgemm_matmul() is lpgemm_run() with the handle's type ---- */

static void check_matmul(lpgemm_dtype_t type) {
  lpgemm_config_t config = {.size = sizeof config, .backend = test_backend(), .default_type = type};
  lpgemm_handle_t own = NULL;
  CHECK_STATUS(lpgemm_create(&own, &config), LPGEMM_SUCCESS);
  problem_spec s = {.desc = {.size = sizeof s.desc, .n = 50, .k = 90, .type = LPGEMM_UINT(4)}};
  s.desc.group_k = 32, s.desc.scale_type = LPGEMM_F16;
  s.m = 6, s.x_type = s.y_type = type, s.alpha = 1, s.pad_x = 5, s.pad_y = 3;
  problem p;
  if (problem_make(&p, own, &s)) {
    problem_expect(&p);
    memset(p.y, 0xff, problem_y_bytes(&p));
    CHECK_STATUS(lpgemm_matmul(own, p.weights, 6, p.x, 95, p.y, 53), LPGEMM_SUCCESS);
    test_wait();
    problem_check(&p, "lpgemm_matmul");
  }
  problem_free(&p);
  CHECK_STATUS(lpgemm_destroy(own), LPGEMM_SUCCESS);
}

void suite_dropin(void) {
  static const lpgemm_dtype_t real_types[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32};
  handle = problem_handle(2);
  if (test_case("dropin/hgemm")) check_products(&calls[0], 1);
  for (int i = 0; i < CALLS; i++) {
    const call *t = &calls[i];
    const char *b = lpgemm_dtype_name(t->b), *c = lpgemm_dtype_name(t->c), *s = lpgemm_dtype_name(t->scalar);
    if (test_case("dropin/gemm_ex/%s/%s/scalars_%s", b, c, s)) check_products(t, 0);
    if (test_case("dropin/device_pointers/%s/%s/scalars_%s", b, c, s)) check_products(t, 2);
    if (test_case("dropin/batched/%s/%s/scalars_%s", b, c, s)) {
      for (int stride = 0; stride < 2; stride++) {
        check_batch(t, stride, 3, 1);
        check_batch(t, stride, 2, 0);
        check_batch(t, stride, 0, 1);
      }
    }
  }
  if (test_case("dropin/refused")) check_refused();
  for (int i = 0; i < 3; i++) {
    if (test_case("dropin/matmul/%s", lpgemm_dtype_name(real_types[i]))) check_matmul(real_types[i]);
  }
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
