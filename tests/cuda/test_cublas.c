/* The calls in place of cuBLAS against cuBLAS itself on the same numbers: the weights are packed for one and
 * dequantised for the other, which its types hold exactly. cuBLAS is loaded at run time; nothing of it is needed to
 * build. */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <math.h>

#include "../problem.h"
#include "../ref/gemm_ref.h"
#include "../test.h"
#include "gpu.h"

static lpgemm_handle_t handle;

/* ---- cuBLAS ---- */

static struct {
  void *library, *handle;
  int (*create)(void **handle);
  int (*destroy)(void *handle);
  int (*set_pointer_mode)(void *handle, int mode);
  int (*hgemm)(void *handle, int transa, int transb, int m, int n, int k, const void *alpha, const void *A, int lda,
               const void *B, int ldb, const void *beta, void *C, int ldc);
  int (*gemm_ex)(void *handle, int transa, int transb, int m, int n, int k, const void *alpha, const void *A,
                 int a_type, int lda, const void *B, int b_type, int ldb, const void *beta, void *C, int c_type,
                 int ldc, int compute_type, int algo);
  int (*gemm_strided_batched_ex)(void *handle, int transa, int transb, int m, int n, int k, const void *alpha,
                                 const void *A, int a_type, int lda, long long stride_a, const void *B, int b_type,
                                 int ldb, long long stride_b, const void *beta, void *C, int c_type, int ldc,
                                 long long stride_c, int batch_count, int compute_type, int algo);
} cublas;

static int find(const char *name, void *function) {
  void *symbol = dlsym(cublas.library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

static int open_cublas(void) {
  static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "/usr/local/cuda/lib64/libcublas.so"};
  for (int i = 0; i < 3 && !cublas.library; i++) cublas.library = dlopen(names[i], RTLD_NOW);
  return cublas.library && find("cublasCreate_v2", &cublas.create) && find("cublasDestroy_v2", &cublas.destroy) &&
         find("cublasSetPointerMode_v2", &cublas.set_pointer_mode) && find("cublasHgemm", &cublas.hgemm) &&
         find("cublasGemmEx", &cublas.gemm_ex) && find("cublasGemmStridedBatchedEx", &cublas.gemm_strided_batched_ex) &&
         cublas.create(&cublas.handle) == 0;
}

/* ---- a product for both ---- */

typedef struct call {
  int b_type, c_type, compute; /* cuBLAS's numbers */
  lpgemm_dtype_t b, c, scalar; /* ours; A is of b's type */
} call;

static const call calls[] = {
    {LPGEMM_CUDA_R_16F, LPGEMM_CUDA_R_16F, LPGEMM_COMPUTE_16F, LPGEMM_F16, LPGEMM_F16, LPGEMM_F16},
    {LPGEMM_CUDA_R_16F, LPGEMM_CUDA_R_16F, LPGEMM_COMPUTE_32F, LPGEMM_F16, LPGEMM_F16, LPGEMM_F32},
    {LPGEMM_CUDA_R_16F, LPGEMM_CUDA_R_32F, LPGEMM_COMPUTE_32F, LPGEMM_F16, LPGEMM_F32, LPGEMM_F32},
    {LPGEMM_CUDA_R_16BF, LPGEMM_CUDA_R_16BF, LPGEMM_COMPUTE_32F, LPGEMM_BF16, LPGEMM_BF16, LPGEMM_F32},
    {LPGEMM_CUDA_R_16BF, LPGEMM_CUDA_R_32F, LPGEMM_COMPUTE_32F, LPGEMM_BF16, LPGEMM_F32, LPGEMM_F32},
    {LPGEMM_CUDA_R_32F, LPGEMM_CUDA_R_32F, LPGEMM_COMPUTE_32F, LPGEMM_F32, LPGEMM_F32, LPGEMM_F32},
    {LPGEMM_CUDA_R_8I, LPGEMM_CUDA_R_32F, LPGEMM_COMPUTE_32F, LPGEMM_I8, LPGEMM_F32, LPGEMM_F32},
    {LPGEMM_CUDA_R_8I, LPGEMM_CUDA_R_32I, LPGEMM_COMPUTE_32I, LPGEMM_I8, LPGEMM_I32, LPGEMM_I32},
};
enum { CALLS = sizeof calls / sizeof calls[0], BATCHES = 3 };

/* Integers so small that no sum and no scaled sum is rounded, not even in cuBLAS's fp16: both must be equal. */
typedef enum numbers { RANDOM, EXACT } numbers;

typedef struct product {
  const call *t;
  numbers numbers;
  int m, n, k, ldb, ldc;
  int64_t stride_b, stride_c; /* with columns between two products */
  lpgemm_weights_t packed[BATCHES];
  void *a;                     /* [BATCHES][m][k] dequantised: column-major k x m */
  double *w;                   /* [BATCHES][m][k] */
  void *b, *c, *ours, *theirs; /* c: before the call */
  size_t c_bytes;
  float *scalars; /* alpha and beta of t->scalar */
} product;

static const void *alpha_of(const product *p) { return p->scalars; }
static const void *beta_of(const product *p) { return (char *)p->scalars + ref_bytes(p->t->scalar); }

static void *draw(lpgemm_dtype_t type, int64_t count, double reach, int whole) {
  void *array = test_alloc((size_t)(count * ref_bytes(type)));
  for (int64_t i = 0; i < count; i++) {
    ref_store(type, array, i,
              whole ? (double)test_between((int64_t)-reach, (int64_t)reach) : test_uniform(-reach, reach));
  }
  return array;
}

/* Weights of 4 bits, for int8 as they are, for real types less 8 and times a power of two a group. */
static void pack_matrix(product *p, int i) {
  int is_integer = p->t->b == LPGEMM_I8;
  int64_t m = p->m, k = p->k, groups = (k + 31) / 32;
  lpgemm_weight_desc_t desc = {.size = sizeof desc};
  lpgemm_weight_source_t source = {.size = sizeof source};
  uint8_t *codes = test_alloc((size_t)(m * k));
  for (int64_t j = 0; j < m * k; j++) codes[j] = (uint8_t)test_between(0, 15);
  desc.n = m;
  desc.k = k;
  desc.type = is_integer ? LPGEMM_INT(4) : LPGEMM_UINT(4);
  source.codes = codes;
  source.codes_bytes = (size_t)(m * k);
  void *scales = is_integer ? NULL : test_alloc((size_t)(m * groups) * 2);
  if (scales) {
    for (int64_t j = 0; j < m * groups; j++) {
      ref_store(LPGEMM_F16, scales, j, p->numbers == EXACT ? 1 : ldexp(1, (int)test_between(-6, -2)));
    }
    desc.group_k = 32;
    desc.scale_type = LPGEMM_F16;
    desc.zero = LPGEMM_ZERO_CONSTANT;
    desc.zero_constant = 8;
    source.scales = scales;
    source.scales_bytes = (size_t)(m * groups) * 2;
  }
  CHECK_STATUS(lpgemm_pack_weights(handle, &desc, &source, NULL, 0, &p->packed[i]), LPGEMM_SUCCESS);
  for (int64_t row = 0; row < m; row++) {
    int64_t at = ((int64_t)i * m + row) * k;
    ref_weight_row(&desc, &source, row, p->w + at);
    for (int64_t j = 0; j < k; j++) {
      ref_store(p->t->b, p->a, at + j, p->w[at + j]);
      CHECK(ref_load(p->t->b, p->a, at + j) == p->w[at + j]);
    }
  }
  test_free(codes);
  test_free(scales);
}

static product make_product(const call *t, numbers kind, int m, int n, int k, double alpha, double beta) {
  product p = {.t = t, .numbers = kind, .m = m, .n = n, .k = k, .ldb = k + 4, .ldc = m + 8};
  int whole = kind == EXACT || t->b == LPGEMM_I8, columns = BATCHES * (n + 2);
  int64_t count = (int64_t)BATCHES * m * k;
  p.stride_b = (int64_t)p.ldb * (n + 2);
  p.stride_c = (int64_t)p.ldc * (n + 2);
  p.a = test_alloc((size_t)(count * ref_bytes(t->b)));
  p.w = test_alloc((size_t)count * sizeof *p.w);
  for (int i = 0; i < BATCHES; i++) pack_matrix(&p, i);
  p.b = draw(t->b, (int64_t)p.ldb * columns, whole ? (kind == EXACT ? 1 : 100) : 1, whole);
  p.c = draw(t->c, (int64_t)p.ldc * columns, whole ? 4 : 1, whole);
  p.c_bytes = (size_t)((int64_t)p.ldc * columns * ref_bytes(t->c));
  if (beta == 0) memset(p.c, 0xff, p.c_bytes); /* it is not read */
  p.ours = test_alloc(p.c_bytes);
  p.theirs = test_alloc(p.c_bytes);
  memcpy(p.ours, p.c, p.c_bytes);
  memcpy(p.theirs, p.c, p.c_bytes);
  p.scalars = test_alloc(2 * sizeof *p.scalars); /* room for each type */
  ref_store(t->scalar, p.scalars, 0, alpha);
  ref_store(t->scalar, p.scalars, 1, beta);
  return p;
}

static void free_product(product *p) {
  for (int i = 0; i < BATCHES; i++) CHECK_STATUS(lpgemm_weights_destroy(p->packed[i]), LPGEMM_SUCCESS);
  void *memory[] = {p->a, p->w, p->b, p->c, p->ours, p->theirs, p->scalars};
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) test_free(memory[i]);
}

/* ---- comparing ---- */

/* How far the two may be apart: each sums in fp32, in an order of its own and cuBLAS's tensor cores without rounding to
 * nearest, and rounds once or, for the scalars, a few times. */
static double bound_of(const product *p, double value, double size, double old) {
  if (p->numbers == EXACT || p->t->c == LPGEMM_I32) return 0;
  double error = 3 * (p->k + 8) * 0x1p-23 * size + 8 * 0x1p-23 * fabs(old);
  return error + 2 * ref_epsilon(p->t->c) * (fabs(value) + error) + ref_smallest(p->t->c);
}

/* Product i with matrix `a`; other products of the buffer, and what lies beside them, must be as they were. */
static void compare_product(const product *p, int i, int a) {
  double alpha = ref_load(p->t->scalar, p->scalars, 0), beta = ref_load(p->t->scalar, p->scalars, 1);
  for (int col = 0; col < p->n; col++) {
    for (int row = 0; row < p->m; row++) {
      int64_t at = i * p->stride_c + (int64_t)col * p->ldc + row, w = ((int64_t)a * p->m + row) * p->k;
      double sum = 0, size = 0, old = beta == 0 ? 0 : beta * ref_load(p->t->c, p->c, at);
      for (int j = 0; j < p->k; j++) {
        double x = ref_load(p->t->b, p->b, i * p->stride_b + (int64_t)col * p->ldb + j);
        sum += alpha * p->w[w + j] * x;
        size += fabs(alpha * p->w[w + j] * x);
      }
      double ours = ref_load(p->t->c, p->ours, at), theirs = ref_load(p->t->c, p->theirs, at);
      double bound = bound_of(p, sum + old, size, old);
      double exact = p->t->c == LPGEMM_I32 ? sum + old : ref_round(p->t->c, sum + old);
      if (fabs(ours - theirs) <= bound && (bound > 0 || ours == exact)) continue;
      test_fail(__FILE__, __LINE__,
                "product %d, C[%d, %d] is %.9g, cuBLAS's %.9g; %.3g apart are allowed, exact is %.9g", i, row, col,
                ours, theirs, bound, exact);
      return;
    }
  }
}

static void compare(const product *p, int batches, int stride_a) {
  test_wait();
  for (int i = 0; i < batches; i++) compare_product(p, i, stride_a ? i : 0);
  size_t element = (size_t)ref_bytes(p->t->c);
  for (int64_t at = 0; (size_t)at * element < p->c_bytes; at++) {
    int64_t inside = at % p->stride_c;
    if (at / p->stride_c < batches && inside / p->ldc < p->n && inside % p->ldc < p->m) continue;
    if (memcmp((char *)p->ours + (size_t)at * element, (char *)p->c + (size_t)at * element, element) == 0) continue;
    test_fail(__FILE__, __LINE__, "element %lld of C is outside the product and was written", (long long)at);
    return;
  }
}

/* ---- the calls ---- */

static void both(int cublas_status, lpgemm_status_t status) {
  CHECK_INT(cublas_status, 0);
  CHECK_STATUS(status, LPGEMM_SUCCESS);
}

static void run_hgemm(product *p) {
  both(cublas.hgemm(cublas.handle, 1, 0, p->m, p->n, p->k, alpha_of(p), p->a, p->k, p->b, p->ldb, beta_of(p), p->theirs,
                    p->ldc),
       lpgemm_hgemm(handle, 1, 0, p->m, p->n, p->k, alpha_of(p), p->packed[0], p->k, p->b, p->ldb, beta_of(p), p->ours,
                    p->ldc));
  compare(p, 1, 0);
}

static void run_gemm_ex(product *p) {
  const call *t = p->t;
  both(cublas.gemm_ex(cublas.handle, 1, 0, p->m, p->n, p->k, alpha_of(p), p->a, t->b_type, p->k, p->b, t->b_type,
                      p->ldb, beta_of(p), p->theirs, t->c_type, p->ldc, t->compute, -1),
       lpgemm_gemm_ex(handle, 1, 0, p->m, p->n, p->k, alpha_of(p), p->packed[0], t->b_type, p->k, p->b, t->b_type,
                      p->ldb, beta_of(p), p->ours, t->c_type, p->ldc, t->compute, -1));
  compare(p, 1, 0);
}

static void run_batched(product *p, int stride_a, int batches) {
  const call *t = p->t;
  both(cublas.gemm_strided_batched_ex(cublas.handle, 1, 0, p->m, p->n, p->k, alpha_of(p), p->a, t->b_type, p->k,
                                      stride_a ? (long long)p->m * p->k : 0, p->b, t->b_type, p->ldb, p->stride_b,
                                      beta_of(p), p->theirs, t->c_type, p->ldc, p->stride_c, batches, t->compute, -1),
       lpgemm_gemm_strided_batched_ex(handle, 1, 0, p->m, p->n, p->k, alpha_of(p), p->packed, t->b_type, p->k, stride_a,
                                      p->b, t->b_type, p->ldb, p->stride_b, beta_of(p), p->ours, t->c_type, p->ldc,
                                      p->stride_c, batches, t->compute, -1));
  compare(p, batches, stride_a);
}

typedef enum which { GEMM_EX, HGEMM, BATCHED } which;

static void check_call(const call *t, which call, int device_scalars) {
  static const double scalars[][2] = {{1, 0}, {-0.5, 1}, {1, -0.5}, {0, 1}, {0.25, 2}};
  static const double integers[][2] = {{1, 0}, {1, 1}, {0, 1}, {1, 0}, {1, 1}};
  static const int sizes[][3] = {{68, 9, 132}, {32, 1, 64}, {16, 40, 32}, {4, 3, 200}, {128, 17, 8}}; /* int8: by 4 */
  GPU(cublas.set_pointer_mode(cublas.handle, device_scalars));
  CHECK_STATUS(lpgemm_set_pointer_mode(handle, device_scalars ? LPGEMM_POINTER_DEVICE : LPGEMM_POINTER_HOST),
               LPGEMM_SUCCESS);
  for (int i = 0; i < 5; i++) {
    const double *s = t->scalar == LPGEMM_I32 ? integers[i] : scalars[i];
    for (int kind = t->scalar == LPGEMM_F16 ? EXACT : RANDOM; kind <= EXACT; kind++) { /* cuBLAS sums halves in fp16 */
      product p = make_product(t, (numbers)kind, sizes[i][0], sizes[i][1], sizes[i][2], s[0], s[1]);
      if (call == GEMM_EX) run_gemm_ex(&p);
      if (call == HGEMM) run_hgemm(&p);
      if (call == BATCHED) run_batched(&p, i % 2, 1 + i % BATCHES);
      free_product(&p);
    }
  }
  CHECK_STATUS(lpgemm_set_pointer_mode(handle, LPGEMM_POINTER_HOST), LPGEMM_SUCCESS);
}

/* cuBLAS takes the other transposes of the same memory; packed weights do not have them, and the sentence says so. */
static void check_transposed(void) {
  product p = make_product(&calls[1], EXACT, 32, 32, 32, 1, 0);
  for (int ta = 0; ta < 2; ta++) {
    for (int tb = 0; tb < 2; tb++) {
      if (ta == 1 && tb == 0) continue;
      both(cublas.gemm_ex(cublas.handle, ta, tb, 32, 32, 32, alpha_of(&p), p.a, 2, 32, p.b, 2, p.ldb, beta_of(&p),
                          p.theirs, 2, p.ldc, LPGEMM_COMPUTE_32F, -1),
           LPGEMM_SUCCESS);
      CHECK_STATUS(lpgemm_gemm_ex(handle, ta, tb, 32, 32, 32, alpha_of(&p), p.packed[0], 2, 32, p.b, 2, p.ldb,
                                  beta_of(&p), p.ours, 2, p.ldc, LPGEMM_COMPUTE_32F, -1),
                   LPGEMM_NOT_SUPPORTED);
      CHECK(strstr(lpgemm_last_error(), "transa") && strstr(lpgemm_last_error(), "OP_T (1)"));
      CHECK(memcmp(p.ours, p.c, p.c_bytes) == 0);
    }
  }
  test_wait();
  free_product(&p);
}

void suite_cublas(void) {
  handle = problem_handle(1);
  int is_there = open_cublas();
  if (!is_there && test_case("cublas/library")) test_skip("there is no libcublas.so.13 or .12 here");
  for (int device = 0; device < 2 && is_there; device++) {
    const char *scalars = device ? "device" : "host";
    for (int i = 0; i < CALLS; i++) {
      const call *t = &calls[i];
      const char *b = lpgemm_dtype_name(t->b), *c = lpgemm_dtype_name(t->c);
      if (test_case("cublas/gemm_ex/%s/%s/%d/%s", b, c, t->compute, scalars)) check_call(t, GEMM_EX, device);
      if (test_case("cublas/batched/%s/%s/%d/%s", b, c, t->compute, scalars)) check_call(t, BATCHED, device);
    }
    if (test_case("cublas/hgemm/%s", scalars)) check_call(&calls[0], HGEMM, device);
  }
  if (is_there && test_case("cublas/transposed")) check_transposed();
  if (is_there) cublas.destroy(cublas.handle);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
