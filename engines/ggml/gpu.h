/* What the parts of the module for GPUs share. */
#ifndef LPGEMM_GGML_GPU_H
#define LPGEMM_GGML_GPU_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- gpu_rows.cu: rows of X and Y are brought where lpgemm_run() takes them ---- */

/* Rows of fp32: row i of dimensions 0 to 2, of which the first runs fastest. Strides count floats. */
typedef struct lpgemm_ggml_rows {
  float *data;
  int64_t length; /* of a row */
  int64_t ne[3], stride[3];
} lpgemm_ggml_rows;

/* Whether these kernels wait for the one before by themselves: they do where they were compiled for 9.0 and later,
 * which is not so on every such GPU. */
bool lpgemm_ggml_may_follow(void);

/* Copies rows to dense ones of fp32 or bf16, row i as row position[i]; not at all where that is negative; as row i if
 * position is NULL. Their length is a multiple of 8. follows: the GPU may start it before the kernel before has ended.
 */
cudaError_t lpgemm_ggml_gather(const lpgemm_ggml_rows *from, void *to, bool is_bf16, const int32_t *position,
                               bool follows, cudaStream_t stream);

/* Copies dense row position[i] to row i of `to`; zeros where that is negative. */
cudaError_t lpgemm_ggml_scatter(const float *from, const lpgemm_ggml_rows *to, const int32_t *position, bool follows,
                                cudaStream_t stream);

#ifdef __cplusplus
}
#else

#include "module.h"

/* ---- gpu_product.c: MUL_MAT and MUL_MAT_ID ---- */

enum { LPGEMM_GGML_GROWTHS = 48 }; /* each at least by a factor of two */

typedef struct lpgemm_ggml_gpu_context {
  lpgemm_handle_t handle;
  lpgemm_level_t level;
  int gpu;
  bool follows; /* lpgemm_ggml_may_follow() */
  cudaStream_t stream;
  bool owns_stream;
  void *workspace;
  char *scratch; /* grows to what the largest product needs */
  size_t scratch_bytes;
  void *
      outgrown[LPGEMM_GGML_GROWTHS]; /* scratch that was too short, for captured graphs of a stream that is not owned */
  int growths;
  const struct ggml_tensor *x, *y; /* whose X is in bf16 at the start of the scratch, and for which product; or NULL */
} lpgemm_ggml_gpu_context;

bool lpgemm_ggml_gpu_can_multiply(const struct ggml_tensor *node);
bool lpgemm_ggml_gpu_multiply(void *context, struct ggml_tensor *node);

/* ---- gpu.c ---- */

/* Products on a GPU in a stream, NULL: in one of its own. NULL, and a line in the log, if that fails. */
lpgemm_ggml_gpu_context *lpgemm_ggml_open_context(int gpu, cudaStream_t stream);

/* Writes what CUDA says to the log; true if there is nothing. */
bool lpgemm_ggml_cuda_worked(cudaError_t error, const char *what);
#endif

#endif
