/* The same products by cuBLAS in fp16. It is looked for at run time: the example runs without it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "block_cuda.h"

enum { WORKSPACE = 32 << 20 };

/* cuBLAS's own types, as far as they are needed here; lpgemm.h has the values of its enumerations. */
static int (*create)(void **handle);
static int (*set_stream)(void *handle, cudaStream_t stream);
static int (*set_workspace)(void *handle, void *workspace, size_t bytes);
static int (*gemm_ex)(void *handle, int transa, int transb, int m, int n, int k, const void *alpha, const void *a,
                      int a_type, int lda, const void *b, int b_type, int ldb, const void *beta, void *c, int c_type,
                      int ldc, int compute_type, int algorithm);
static void *handle;

/* In the loader's path, or beside the toolkit. */
static void *open_library(const char *name) {
  const char *home = getenv("CUDA_HOME"), *folders[] = {"", home ? home : "/usr/local/cuda", "/usr/local/cuda"};
  for (int version = 13; version >= 12; version--) {
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
      char path[1024];
      snprintf(path, sizeof path, "%s%s%s.so.%d", folders[i], i > 0 ? "/lib64/" : "", name, version);
      void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
      if (library) return library;
    }
  }
  return NULL;
}

static int find(void *library, const char *name, void *function) {
  void *address = dlsym(library, name);
  memcpy(function, &address, sizeof address); /* ISO C has no cast from an object's pointer to a function's */
  return address != NULL;
}

int cublas_open(void) {
  void *workspace;
  if (handle) return 1;
  open_library("libcublasLt"); /* cuBLAS needs it and finds it among those that are loaded */
  void *library = open_library("libcublas");
  if (!library || !find(library, "cublasCreate_v2", &create) || !find(library, "cublasSetStream_v2", &set_stream) ||
      !find(library, "cublasSetWorkspace_v2", &set_workspace) || !find(library, "cublasGemmEx", &gemm_ex)) {
    return 0;
  }
  CUDA(cudaMalloc(&workspace, WORKSPACE)); /* with a workspace of its own cuBLAS may be captured */
  if (create(&handle) || set_stream(handle, cuda_stream) || set_workspace(handle, workspace, WORKSPACE)) {
    fail("cuBLAS does not start");
  }
  return 1;
}

void cublas_multiply(const block *b, const linear *layer, int64_t m, const void *x, void *y, int add) {
  const float one = 1.0f, beta = add ? 1.0f : 0.0f;
  (void)b;
  if (gemm_ex(handle, LPGEMM_OP_T, LPGEMM_OP_N, (int)layer->n, (int)m, (int)layer->k, &one, layer->dense,
              LPGEMM_CUDA_R_16F, (int)layer->k, x, LPGEMM_CUDA_R_16F, (int)layer->k, &beta, y, LPGEMM_CUDA_R_16F,
              (int)layer->n, LPGEMM_COMPUTE_32F, -1)) {
    fail("cublasGemmEx failed");
  }
}
