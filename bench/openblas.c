#include "openblas.h"

#include <dlfcn.h>

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };

static void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                     const float *b, int ldb, float beta, float *c, int ldc);
static void (*sgemv)(int order, int trans, int rows, int columns, float alpha, const float *a, int lda, const float *x,
                     int step_x, float beta, float *y, int step_y);
static void (*set_threads)(int threads);

static int load(void) {
  static int tried;
  if (!tried) {
    void *library = dlopen("libopenblas.so.0", RTLD_NOW);
    if (!library) library = dlopen("libopenblas.so", RTLD_NOW);
    if (!bench_symbol(library, "openblas_set_num_threads", &set_threads)) library = NULL;
    if (!bench_symbol(library, "cblas_sgemv", &sgemv)) library = NULL;
    bench_symbol(library, "cblas_sgemm", &sgemm);
    tried = 1;
  }
  return sgemm != NULL;
}

void bench_openblas_threads(int threads) {
  if (load()) set_threads(threads);
}

bench_error bench_openblas_multiply(lpgemm_dtype_t type, int64_t m, int64_t n, int64_t k, const void *w, const void *x,
                                    void *y) {
  BENCH_CHECK(load(), "OpenBLAS is not installed");
  BENCH_CHECK(type == LPGEMM_F32, "the baseline on the CPU is f32, not %s", lpgemm_dtype_name(type));
  if (m == 1) { /* for one row OpenBLAS has a call that is faster */
    sgemv(ROW_MAJOR, NO_TRANSPOSE, (int)n, (int)k, 1.0f, w, (int)k, x, 1, 0.0f, y, 1);
    return NULL;
  }
  sgemm(ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE, (int)m, (int)n, (int)k, 1.0f, x, (int)k, w, (int)k, 0.0f, y, (int)n);
  return NULL;
}
