/* MUL_MAT and MUL_MAT_ID on a GPU, in the order of the backend's stream. X is rounded to bf16, which has fp32's range,
 * unless EXACT is asked for or the product's own precision: then it stays as it is, and the slow kernels that take fp32
 * multiply it. */
#include <ggml-impl.h>

#include "gpu.h"

enum { ALIGNMENT = 256, WORKSPACE_BYTES = 64 << 20 /* the most that lpgemm_run() asks for beside copies of X */ };

bool lpgemm_ggml_cuda_worked(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return true;
  GGML_LOG_ERROR("lpgemm: %s: %s\n", what, cudaGetErrorString(error));
  cudaGetLastError(); /* so that no later call sees it */
  return false;
}

static bool worked(lpgemm_status_t status) { return status == LPGEMM_SUCCESS; }

bool lpgemm_ggml_gpu_can_multiply(const struct ggml_tensor *node) {
  return node->op == GGML_OP_MUL_MAT || node->src[2]->nb[0] == sizeof(int32_t);
}

/* ---- memory ---- */

static size_t padded(int64_t count, size_t bytes) {
  return ((size_t)count * bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* What was there before may be in use until the stream has done its work; where the stream is of another backend, as
 * long as there is a graph that it has captured. */
static bool reserve(lpgemm_ggml_gpu_context *context, size_t bytes) {
  if (bytes <= context->scratch_bytes) return true;
  const size_t before = context->scratch_bytes;
  context->x = NULL;
  context->scratch_bytes = 0;
  if (context->owns_stream) {
    if (!lpgemm_ggml_cuda_worked(cudaStreamSynchronize(context->stream), "waiting for a product")) return false;
    cudaFree(context->scratch);
  } else if (context->scratch) {
    if (context->growths == LPGEMM_GGML_GROWTHS) return false;
    context->outgrown[context->growths++] = context->scratch;
    if (bytes < 2 * before) bytes = 2 * before;
  }
  void *memory = NULL;
  const bool has_memory = lpgemm_ggml_cuda_worked(cudaMalloc(&memory, bytes), "scratch for a product");
  context->scratch = memory;
  if (!has_memory) return false;
  context->scratch_bytes = bytes;
  return true;
}

static bool bind_workspace(lpgemm_ggml_gpu_context *context) {
  if (context->workspace) return true;
  if (!lpgemm_ggml_cuda_worked(cudaMalloc(&context->workspace, WORKSPACE_BYTES), "a workspace")) return false;
  return worked(lpgemm_set_workspace(context->handle, context->workspace, WORKSPACE_BYTES));
}

/* ---- MUL_MAT ---- */

static bool keeps_fp32(const lpgemm_ggml_gpu_context *context, const struct ggml_tensor *y) {
  return context->level == LPGEMM_LEVEL_EXACT || ggml_get_op_params_i32(y, 3) == GGML_PREC_F32;
}

static lpgemm_ggml_rows rows_of(const struct ggml_tensor *t) {
  lpgemm_ggml_rows rows = {.data = t->data, .length = t->ne[0]};
  for (int i = 0; i < 3; i++) {
    rows.ne[i] = t->ne[i + 1];
    rows.stride[i] = (int64_t)(t->nb[i + 1] / sizeof(float));
  }
  return rows;
}

/* X in bf16 in the scratch. Products that follow each other and have the same X (q, k and v) share it. A product that
 * comes twice in a graph is one of a benchmark, in whose time X belongs. */
static bool round_x(lpgemm_ggml_gpu_context *context, const struct ggml_tensor *y, lpgemm_ggml_x *rounded) {
  const struct ggml_tensor *x = y->src[1];
  if (!reserve(context, padded(ggml_nelements(x), sizeof(uint16_t)))) return false;
  if (context->x != x || context->y == y) {
    const lpgemm_ggml_rows rows = rows_of(x);
    context->x = NULL;
    if (!lpgemm_ggml_cuda_worked(
            lpgemm_ggml_gather(&rows, context->scratch, true, NULL, context->follows, context->stream), "rounding X")) {
      return false;
    }
  }
  context->x = x;
  context->y = y;
  *rounded = (lpgemm_ggml_x){.data = context->scratch, .type = LPGEMM_BF16, .nb = {sizeof(uint16_t)}};
  for (int i = 1; i < GGML_MAX_DIMS; i++) rounded->nb[i] = rounded->nb[i - 1] * (size_t)x->ne[i - 1];
  return true;
}

static bool multiply(lpgemm_ggml_gpu_context *context, const struct ggml_tensor *y) {
  lpgemm_ggml_x x = lpgemm_ggml_own_x(y->src[1]);
  if (!keeps_fp32(context, y) && !round_x(context, y, &x)) return false;
  return worked(lpgemm_ggml_multiply(context->handle, context->level, &x, y));
}

/* ---- MUL_MAT_ID ---- */

/* Slot s of a token: expert ids[s, token], row s (or s modulo the rows that there are) of x[token], row s of y[token].
 */
static lpgemm_ggml_rows x_of_slots(const struct ggml_tensor *x, int64_t used) {
  lpgemm_ggml_rows rows = rows_of(x);
  rows.ne[2] = x->ne[2];
  rows.stride[2] = rows.stride[1];
  rows.ne[1] = used / x->ne[1];
  rows.stride[1] = 0;
  return rows;
}

/* ids as [slots], in the scratch where rows of it are apart. */
static bool bring_ids(const lpgemm_ggml_gpu_context *context, const struct ggml_tensor *ids, void *scratch,
                      const int32_t **dense) {
  const size_t row = (size_t)ids->ne[0] * sizeof(int32_t);
  *dense = ids->data;
  if (ids->ne[1] == 1 || ids->nb[1] == row) return true;
  *dense = scratch;
  return lpgemm_ggml_cuda_worked(cudaMemcpy2DAsync(scratch, row, ids->data, ids->nb[1], row, (size_t)ids->ne[1],
                                                   cudaMemcpyDeviceToDevice, context->stream),
                                 "copying the ids of experts");
}

static bool multiply_experts(lpgemm_ggml_gpu_context *context, const struct ggml_tensor *y) {
  const struct ggml_tensor *w = y->src[0], *x = y->src[1], *ids = y->src[2];
  const int64_t k = w->ne[0], n = w->ne[1], used = ids->ne[0], slots = used * ids->ne[1];
  const bool is_bf16 = !keeps_fp32(context, y);
  lpgemm_route_args_t route = {.size = sizeof route, .m = slots, .top_k = 1, .experts = (int32_t)w->ne[2]};
  lpgemm_routing_view_t view = {.size = sizeof view};
  size_t routing_bytes;
  if (!worked(lpgemm_route_size(context->handle, slots, 1, route.experts, &routing_bytes))) return false;
  const size_t at_ids = padded(1, routing_bytes), at_x = at_ids + padded(slots, sizeof(int32_t));
  const size_t at_y = at_x + padded(slots * k, is_bf16 ? sizeof(uint16_t) : sizeof(float));
  if (!reserve(context, at_y + padded(slots * n, sizeof(float)))) return false;
  context->x = NULL;
  char *scratch = context->scratch;
  float *sorted = (float *)(void *)(scratch + at_y);
  if (!bring_ids(context, ids, scratch + at_ids, &route.expert)) return false;
  if (!worked(lpgemm_route(context->handle, &route, scratch, routing_bytes))) return false;
  if (!worked(lpgemm_routing_view(context->handle, &route, scratch, &view))) return false;
  const lpgemm_ggml_rows from = x_of_slots(x, used), to = rows_of(y);
  const cudaError_t gathered =
      lpgemm_ggml_gather(&from, scratch + at_x, is_bf16, view.position, context->follows, context->stream);
  if (!lpgemm_ggml_cuda_worked(gathered, "gathering X")) return false;
  const lpgemm_status_t status =
      lpgemm_ggml_multiply_sorted(context->handle, context->level, scratch + at_x, is_bf16 ? LPGEMM_BF16 : LPGEMM_F32,
                                  view.offsets, slots, sorted, y);
  return worked(status) &&
         lpgemm_ggml_cuda_worked(lpgemm_ggml_scatter(sorted, &to, view.position, context->follows, context->stream),
                                 "scattering Y");
}

bool lpgemm_ggml_gpu_multiply(void *of_backend, struct ggml_tensor *node) {
  lpgemm_ggml_gpu_context *context = of_backend;
  if (!bind_workspace(context)) return false;
  return node->op == GGML_OP_MUL_MAT ? multiply(context, node) : multiply_experts(context, node);
}
