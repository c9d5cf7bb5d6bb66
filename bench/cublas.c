#include "cublas.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORKSPACE = 32 << 20 };

/* ---- the libraries ---- */

/* The functions have the types of the headers; the libraries are found at run time. */
#define FUNCTION(name) static __typeof__(name) *p_##name
FUNCTION(cublasCreate_v2);
FUNCTION(cublasGetVersion_v2);
FUNCTION(cublasSetStream_v2);
FUNCTION(cublasSetWorkspace_v2);
FUNCTION(cublasGemmEx);
FUNCTION(cublasLtCreate);
FUNCTION(cublasLtMatmul);
FUNCTION(cublasLtMatmulDescCreate);
FUNCTION(cublasLtMatmulDescDestroy);
FUNCTION(cublasLtMatmulDescSetAttribute);
FUNCTION(cublasLtMatrixLayoutCreate);
FUNCTION(cublasLtMatrixLayoutDestroy);
FUNCTION(cublasLtMatmulPreferenceCreate);
FUNCTION(cublasLtMatmulPreferenceDestroy);
FUNCTION(cublasLtMatmulPreferenceSetAttribute);
FUNCTION(cublasLtMatmulAlgoGetHeuristic);

/* In the loader's path, or beside the toolkit. */
static void *open_library(const char *name) {
  static const char *const versions[] = {"13", "12"};
  const char *home = getenv("CUDA_HOME");
  const char *folders[] = {NULL, home, "/usr/local/cuda"};
  char path[1024];
  for (size_t v = 0; v < sizeof versions / sizeof *versions; v++) {
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
      if (f > 0 && !folders[f]) continue;
      snprintf(path, sizeof path, "%s%s%s.so.%s", f ? folders[f] : "", f ? "/lib64/" : "", name, versions[v]);
      void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* cuBLAS finds its Lt among those that are loaded */
      if (library) return library;
    }
  }
  return NULL;
}

static bench_error load(void) {
  void *lt = open_library("libcublasLt"), *blas = open_library("libcublas");
  BENCH_CHECK(lt && blas, "cuBLAS is not here: neither in the loader's path nor in CUDA_HOME/lib64");
  int found = 1;
#define FIND(library, name) found = bench_symbol(library, #name, &p_##name) && found
  FIND(blas, cublasCreate_v2);
  FIND(blas, cublasGetVersion_v2);
  FIND(blas, cublasSetStream_v2);
  FIND(blas, cublasSetWorkspace_v2);
  FIND(blas, cublasGemmEx);
  FIND(lt, cublasLtCreate);
  FIND(lt, cublasLtMatmul);
  FIND(lt, cublasLtMatmulDescCreate);
  FIND(lt, cublasLtMatmulDescDestroy);
  FIND(lt, cublasLtMatmulDescSetAttribute);
  FIND(lt, cublasLtMatrixLayoutCreate);
  FIND(lt, cublasLtMatrixLayoutDestroy);
  FIND(lt, cublasLtMatmulPreferenceCreate);
  FIND(lt, cublasLtMatmulPreferenceDestroy);
  FIND(lt, cublasLtMatmulPreferenceSetAttribute);
  FIND(lt, cublasLtMatmulAlgoGetHeuristic);
  BENCH_CHECK(found, "cuBLAS lacks a function that is needed");
  return NULL;
}

static cudaStream_t the_stream;
static cublasHandle_t blas_handle;
static cublasLtHandle_t lt_handle;
static void *workspace;
static char version[32] = "none";

#define BLAS(call)                                                                                 \
  do {                                                                                             \
    cublasStatus_t blas_status_ = (call);                                                          \
    BENCH_CHECK(blas_status_ == CUBLAS_STATUS_SUCCESS, "%s: status %d", #call, (int)blas_status_); \
  } while (0)

bench_error bench_cublas_open(cudaStream_t stream) {
  int number = 0;
  BENCH_TRY(load());
  BENCH_CHECK(cudaMalloc(&workspace, WORKSPACE) == cudaSuccess, "no device memory for cuBLAS's workspace");
  BLAS(p_cublasCreate_v2(&blas_handle));
  BLAS(p_cublasLtCreate(&lt_handle));
  BLAS(p_cublasSetStream_v2(blas_handle, stream)); /* drops the workspace, so it comes first */
  BLAS(p_cublasSetWorkspace_v2(blas_handle, workspace, WORKSPACE));
  BLAS(p_cublasGetVersion_v2(blas_handle, &number));
  snprintf(version, sizeof version, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
  the_stream = stream;
  return NULL;
}

const char *bench_cublas_version(void) { return version; }

/* ---- fp8: one layout, one heuristic answer, kept for the launches that follow ---- */

typedef struct fp8 {
  int64_t m, n, k;
  cublasLtMatmulDesc_t desc;
  cublasLtMatrixLayout_t w, x, y;
  cublasLtMatmulHeuristicResult_t best;
} fp8;

static fp8 current;

static void free_fp8(fp8 *p) {
  if (p->desc) p_cublasLtMatmulDescDestroy(p->desc);
  if (p->w) p_cublasLtMatrixLayoutDestroy(p->w);
  if (p->x) p_cublasLtMatrixLayoutDestroy(p->x);
  if (p->y) p_cublasLtMatrixLayoutDestroy(p->y);
  *p = (fp8){0};
}

static bench_error ask_heuristic(fp8 *p, cublasLtMatmulPreference_t preference) {
  size_t bytes = WORKSPACE;
  int found = 0;
  BLAS(p_cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
                                              sizeof bytes));
  BLAS(p_cublasLtMatmulAlgoGetHeuristic(lt_handle, p->desc, p->w, p->x, p->y, p->y, preference, 1, &p->best, &found));
  BENCH_CHECK(found == 1, "cuBLAS has no fp8 algorithm for this product");
  return NULL;
}

static bench_error make_fp8(fp8 *p, int64_t m, int64_t n, int64_t k) {
  cublasOperation_t transposed = CUBLAS_OP_T;
  int8_t fast = 0;
  cublasLtMatmulPreference_t preference;
  BLAS(p_cublasLtMatmulDescCreate(&p->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  BLAS(p_cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
  BLAS(p_cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast));
  BLAS(p_cublasLtMatrixLayoutCreate(&p->w, CUDA_R_8F_E4M3, (uint64_t)k, (uint64_t)n, k));
  BLAS(p_cublasLtMatrixLayoutCreate(&p->x, CUDA_R_8F_E4M3, (uint64_t)k, (uint64_t)m, k));
  BLAS(p_cublasLtMatrixLayoutCreate(&p->y, CUDA_R_16F, (uint64_t)n, (uint64_t)m, n));
  BLAS(p_cublasLtMatmulPreferenceCreate(&preference));
  bench_error error = ask_heuristic(p, preference);
  p_cublasLtMatmulPreferenceDestroy(preference);
  p->m = m;
  p->n = n;
  p->k = k;
  return error;
}

static bench_error multiply_fp8(int64_t m, int64_t n, int64_t k, const void *w, const void *x, void *y) {
  const float one = 1.0f, zero = 0.0f;
  if (!current.desc || current.m != m || current.n != n || current.k != k) {
    free_fp8(&current);
    bench_error error = make_fp8(&current, m, n, k);
    if (error) free_fp8(&current);
    BENCH_TRY(error);
  }
  BLAS(p_cublasLtMatmul(lt_handle, current.desc, &one, w, current.w, x, current.x, &zero, y, current.y, y, current.y,
                        &current.best.algo, workspace, WORKSPACE, the_stream));
  return NULL;
}

/* ---- the product ---- */

bench_error bench_cublas_multiply(lpgemm_dtype_t type, int64_t m, int64_t n, int64_t k, const void *w, const void *x,
                                  void *y) {
  const float one = 1.0f, zero = 0.0f;
  const int32_t int_one = 1, int_zero = 0;
  BENCH_CHECK(blas_handle, "cuBLAS is not here");
  if (type == LPGEMM_E4M3) return multiply_fp8(m, n, k, w, x, y);
  int is_int = type == LPGEMM_I8;
  BENCH_CHECK(is_int || type == LPGEMM_F16 || type == LPGEMM_BF16 || type == LPGEMM_F32, "cuBLAS has no %s here",
              lpgemm_dtype_name(type));
  cudaDataType_t in = is_int                ? CUDA_R_8I
                      : type == LPGEMM_F16  ? CUDA_R_16F
                      : type == LPGEMM_BF16 ? CUDA_R_16BF
                                            : CUDA_R_32F;
  BLAS(p_cublasGemmEx(blas_handle, CUBLAS_OP_T, CUBLAS_OP_N, (int)n, (int)m, (int)k,
                      is_int ? (const void *)&int_one : &one, w, in, (int)k, x, in, (int)k,
                      is_int ? (const void *)&int_zero : &zero, y, is_int ? CUDA_R_32I : in, (int)n,
                      is_int ? CUBLAS_COMPUTE_32I : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT_TENSOR_OP));
  return NULL;
}
