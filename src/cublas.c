/* In place of cuBLAS: its arguments, column-major, mapped onto a run. cuBLAS's C (m x n, column-major) is Y (n x m,
 * row-major), its B is X, and its op(A) is the packed W. */
#include "internal.h"

/* One product, in cuBLAS's words. */
typedef struct gemm {
  int transa, transb, m, n, k;
  const void *alpha, *beta;
  lpgemm_weights_t A;
  const void *B;
  int Btype, ldb;
  void *C;
  int Ctype, ldc;
  int compute_type;
} gemm;

static lpgemm_status_t map_type(const char *name, int cuda_type, lpgemm_dtype_t *type) {
  switch (cuda_type) {
    case LPGEMM_CUDA_R_32F: *type = LPGEMM_F32; break;
    case LPGEMM_CUDA_R_16F: *type = LPGEMM_F16; break;
    case LPGEMM_CUDA_R_16BF: *type = LPGEMM_BF16; break;
    case LPGEMM_CUDA_R_8I: *type = LPGEMM_I8; break;
    case LPGEMM_CUDA_R_32I: *type = LPGEMM_I32; break;
    case LPGEMM_CUDA_R_8F_E4M3: *type = LPGEMM_E4M3; break;
    case LPGEMM_CUDA_R_8F_E5M2: *type = LPGEMM_E5M2; break;
    default:
      LPG_CHECK(
          0, LPGEMM_NOT_SUPPORTED,
          "%s is %d; known cudaDataType values are 0 (32F), 2 (16F), 3 (8I), 10 (32I), 14 (16BF), 28 (8F_E4M3) and "
          "29 (8F_E5M2)",
          name, cuda_type);
  }
  return LPGEMM_SUCCESS;
}

/* cublasComputeType_t: 64, 65 half; 68, 69, 74, 75, 77 float; 72, 73 int32. All accumulate in fp32 or int32 here. */
static lpgemm_status_t map_compute(int compute_type, lpgemm_dtype_t *scalar_type) {
  switch (compute_type) {
    case 64:
    case 65: *scalar_type = LPGEMM_F16; break;
    case 68:
    case 69:
    case 74:
    case 75:
    case 77: *scalar_type = LPGEMM_F32; break;
    case 72:
    case 73: *scalar_type = LPGEMM_I32; break;
    default:
      LPG_CHECK(0, LPGEMM_NOT_SUPPORTED,
                "compute_type is %d; known cublasComputeType_t values are 64 (16F), 68 (32F), 72 (32I), their pedantic "
                "forms 65, 69, 73 and the fast forms 74, 75, 77",
                compute_type);
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_shape(lpgemm_handle_t handle, const gemm *g) {
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_CHECK(g->A, LPGEMM_NULL_POINTER, "A is NULL; it must be packed weights");
  LPG_TRY(lpgemm_i_check_pair(handle, g->A));
  LPG_CHECK(g->transa == LPGEMM_OP_T && g->transb == LPGEMM_OP_N, LPGEMM_NOT_SUPPORTED,
            "transa is %d and transb %d; packed weights exist only as transa = OP_T (1), transb = OP_N (0)", g->transa,
            g->transb);
  LPG_CHECK(g->m >= 0 && g->n >= 0 && g->k >= 0, LPGEMM_INVALID_SIZE, "m, n, k are %d, %d, %d; none may be negative",
            g->m, g->n, g->k);
  const lpgemm_weight_desc_t *d = &g->A->packed.desc;
  LPG_CHECK(d->rows == LPGEMM_ROWS_PLAIN && g->A->packed.experts == 1, LPGEMM_NOT_SUPPORTED,
            "A is a stack of experts or has LPGEMM_ROWS_PAIRED, which cuBLAS has no words for: lpgemm_run(), "
            "lpgemm_run_grouped()");
  LPG_CHECK(g->m == d->n && g->k == d->k, LPGEMM_INVALID_SIZE,
            "m = %d and k = %d, but A was packed with n = %lld (cuBLAS's m) and k = %lld", g->m, g->k, (long long)d->n,
            (long long)d->k);
  LPG_CHECK(g->ldb >= (g->k > 1 ? g->k : 1), LPGEMM_INVALID_SIZE, "ldb is %d; it must be at least max(1, k) = %d",
            g->ldb, g->k > 1 ? g->k : 1);
  LPG_CHECK(g->ldc >= (g->m > 1 ? g->m : 1), LPGEMM_INVALID_SIZE, "ldc is %d; it must be at least max(1, m) = %d",
            g->ldc, g->m > 1 ? g->m : 1);
  int empty = g->m == 0 || g->n == 0;
  LPG_CHECK(g->B || empty || g->k == 0, LPGEMM_NULL_POINTER, "B is NULL");
  LPG_CHECK(g->C || empty, LPGEMM_NULL_POINTER, "C is NULL");
  LPG_CHECK(g->alpha, LPGEMM_NULL_POINTER, "alpha is NULL");
  LPG_CHECK(g->beta, LPGEMM_NULL_POINTER, "beta is NULL");
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t run_gemm(lpgemm_handle_t handle, const gemm *g, int check_only) {
  LPG_TRY(check_shape(handle, g));
  lpg_scalars scalars = {g->alpha, g->beta, 0};
  lpgemm_run_args_t args = {.size = sizeof args};
  LPG_TRY(map_compute(g->compute_type, &scalars.type));
  LPG_TRY(map_type("Btype", g->Btype, &args.x_type));
  LPG_CHECK(lpg_is_x_type(args.x_type), LPGEMM_NOT_SUPPORTED, "Btype is %d (%s), which is no type of activations",
            g->Btype, lpgemm_dtype_name(args.x_type));
  LPG_TRY(map_type("Ctype", g->Ctype, &args.y_type));
  LPG_CHECK(lpg_is_y_type(args.y_type), LPGEMM_NOT_SUPPORTED, "Ctype is %d (%s), which is no type of outputs", g->Ctype,
            lpgemm_dtype_name(args.y_type));
  LPG_CHECK((args.y_type == LPGEMM_I32) == (scalars.type == LPGEMM_I32), LPGEMM_NOT_SUPPORTED,
            "Ctype is %d and compute_type %d; COMPUTE_32I (72) goes with Ctype 32I (10) and with no other", g->Ctype,
            g->compute_type);
  args.weights = g->A;
  args.m = g->n;
  args.x = g->B;
  args.ldx = g->ldb;
  args.y = g->C;
  args.ldy = g->ldc;
  args.c = g->C;
  args.ldc = g->ldc;
  return lpgemm_i_run(handle, &args, &scalars, check_only);
}

lpgemm_status_t lpgemm_gemm_ex(lpgemm_handle_t handle, int transa, int transb, int m, int n, int k, const void *alpha,
                               lpgemm_weights_t A, int Atype, int lda, const void *B, int Btype, int ldb,
                               const void *beta, void *C, int Ctype, int ldc, int compute_type, int algo) {
  (void)Atype;
  (void)lda;
  (void)algo;
  gemm g = {transa, transb, m, n, k, alpha, beta, A, B, Btype, ldb, C, Ctype, ldc, compute_type};
  return run_gemm(handle, &g, 0);
}

lpgemm_status_t lpgemm_hgemm(lpgemm_handle_t handle, int transa, int transb, int m, int n, int k, const void *alpha,
                             lpgemm_weights_t A, int lda, const void *B, int ldb, const void *beta, void *C, int ldc) {
  return lpgemm_gemm_ex(handle, transa, transb, m, n, k, alpha, A, LPGEMM_CUDA_R_16F, lda, B, LPGEMM_CUDA_R_16F, ldb,
                        beta, C, LPGEMM_CUDA_R_16F, ldc, LPGEMM_COMPUTE_16F, -1);
}

/* A pointer `index` strides of `stride` elements behind the first. */
static const void *step(const void *first, int64_t index, int64_t stride, int cuda_type) {
  lpgemm_dtype_t type = 0;
  if (!first || map_type("type", cuda_type, &type) != LPGEMM_SUCCESS) return first;
  return (const uint8_t *)first + index * stride * lpg_bytes(type);
}

lpgemm_status_t lpgemm_gemm_strided_batched_ex(lpgemm_handle_t handle, int transa, int transb, int m, int n, int k,
                                               const void *alpha, const lpgemm_weights_t *A, int Atype, int lda,
                                               int64_t strideA, const void *B, int Btype, int ldb, int64_t strideB,
                                               const void *beta, void *C, int Ctype, int ldc, int64_t strideC,
                                               int batch_count, int compute_type, int algo) {
  (void)Atype;
  (void)lda;
  (void)algo;
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_CHECK(batch_count >= 0, LPGEMM_INVALID_SIZE, "batch_count is %d; it must be 0 or more", batch_count);
  LPG_CHECK(A || batch_count == 0, LPGEMM_NULL_POINTER, "A is NULL; it must be an array of packed matrices");
  LPG_CHECK(strideA == 0 || strideA == 1, LPGEMM_INVALID_ARGUMENT,
            "strideA is %lld; it counts packed matrices and must be 0 or 1", (long long)strideA);
  int64_t largest = LPG_MOST_ELEMENTS / (batch_count > 0 ? batch_count : 1);
  LPG_CHECK(strideB >= 0 && strideB <= largest, LPGEMM_INVALID_SIZE, "strideB is %lld; it must be 0 to %lld",
            (long long)strideB, (long long)largest);
  LPG_CHECK(strideC >= 0 && strideC <= largest, LPGEMM_INVALID_SIZE, "strideC is %lld; it must be 0 to %lld",
            (long long)strideC, (long long)largest);
  LPG_CHECK(batch_count <= 1 || n == 0 || m == 0 || strideC >= (int64_t)ldc * (n - 1) + m, LPGEMM_INVALID_SIZE,
            "strideC is %lld; the products would overlap, it must be at least ldc * (n - 1) + m = %lld",
            (long long)strideC, (long long)ldc * (n - 1) + m);
  for (int check_only = 1; check_only >= 0; check_only--) { /* everything is checked before anything is written */
    for (int i = 0; i < batch_count; i++) {
      const void *b = step(B, i, strideB, Btype), *c = step(C, i, strideC, Ctype);
      gemm g = {transa, transb, m,           n, k, alpha, beta, A[i * strideA], b, Btype, ldb, (void *)(uintptr_t)c,
                Ctype,  ldc,    compute_type};
      LPG_TRY(run_gemm(handle, &g, check_only));
    }
  }
  return LPGEMM_SUCCESS;
}
