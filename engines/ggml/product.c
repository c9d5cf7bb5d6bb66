/* MUL_MAT and MUL_MAT_ID of packed weights by fp32 X, with ggml's strides. */
#include <stdlib.h>
#include <string.h>

#include "module.h"

static const float *row_of(const struct ggml_tensor *t, int64_t i1, int64_t i2, int64_t i3) {
  return (const float *)((const char *)t->data + (size_t)i1 * t->nb[1] + (size_t)i2 * t->nb[2] + (size_t)i3 * t->nb[3]);
}

static bool has_fp32_rows(const struct ggml_tensor *t) {
  bool fits = t->type == GGML_TYPE_F32 && t->nb[0] == sizeof(float);
  for (int i = 1; i < GGML_MAX_DIMS; i++) fits = fits && t->nb[i] % sizeof(float) == 0;
  return fits && (t->ne[1] == 1 || t->nb[1] >= (size_t)t->ne[0] * sizeof(float));
}

/* Whether all rows of dimensions 1 to 3 are one matrix. */
static bool is_one_matrix(const struct ggml_tensor *t) {
  return t->nb[1] >= (size_t)t->ne[0] * sizeof(float) && (t->ne[2] == 1 || t->nb[2] == t->nb[1] * (size_t)t->ne[1]) &&
         (t->ne[3] == 1 || t->nb[3] == t->nb[2] * (size_t)t->ne[2]);
}

bool lpgemm_ggml_can_multiply(const struct ggml_tensor *node) {
  const struct ggml_tensor *w = node->src[0], *x = node->src[1], *ids = node->src[2];
  if (!lpgemm_ggml_is_packed(w) || !has_fp32_rows(x) || !has_fp32_rows(node)) return false;
  return node->op == GGML_OP_MUL_MAT || (w->ne[3] == 1 && x->ne[3] == 1 && ids->type == GGML_TYPE_I32);
}

static lpgemm_run_args_t product_of(const lpgemm_ggml_context *context, lpgemm_weights_t weights, int64_t m,
                                    const float *x, size_t x_stride, const float *y, size_t y_stride) {
  return (lpgemm_run_args_t){.size = sizeof(lpgemm_run_args_t),
                             .weights = weights,
                             .m = m,
                             .x = x,
                             .ldx = m > 1 ? (int64_t)(x_stride / sizeof(float)) : 0,
                             .x_type = LPGEMM_F32,
                             .y = (void *)y,
                             .ldy = m > 1 ? (int64_t)(y_stride / sizeof(float)) : 0,
                             .y_type = LPGEMM_F32,
                             .level = context->level};
}

static bool reserve(lpgemm_ggml_memory *memory, size_t bytes) {
  if (bytes <= memory->bytes) return true;
  free(memory->at);
  memory->at = aligned_alloc(64, (bytes + 63) / 64 * 64);
  memory->bytes = memory->at ? bytes : 0;
  return memory->at != NULL;
}

/* ---- MUL_MAT ---- */

/* X of the node, made ready once for those of its graph that have the same. */
static lpgemm_status_t prepare_x(lpgemm_ggml_context *context, const struct ggml_tensor *x, bool is_shared,
                                 lpgemm_run_args_t *args) {
  if (context->prepared_of != x) {
    size_t bytes = 0;
    if (!is_shared) return LPGEMM_SUCCESS;
    context->prepared_of = NULL;
    lpgemm_status_t status = lpgemm_prepared_x_size(context->handle, args, &bytes);
    if (status != LPGEMM_SUCCESS) return status;
    if (!reserve(&context->prepared, bytes)) return LPGEMM_OUT_OF_MEMORY;
    status = lpgemm_prepare_x(context->handle, args, context->prepared.at, context->prepared.bytes);
    if (status != LPGEMM_SUCCESS) return status;
    context->prepared_of = x;
  }
  args->prepared_x = context->prepared.at;
  args->prepared_x_bytes = context->prepared.bytes;
  return LPGEMM_SUCCESS;
}

/* Matrix i of a stack: its blobs lie one after the other. */
static lpgemm_status_t view_of_stack(lpgemm_handle_t handle, lpgemm_weights_t stack, int64_t i, int64_t count,
                                     lpgemm_weights_t *matrix) {
  lpgemm_weights_info_t info = {.size = sizeof info};
  const lpgemm_status_t status = lpgemm_weights_info(stack, &info);
  if (status != LPGEMM_SUCCESS) return status;
  const size_t bytes = info.packed_bytes / (size_t)count;
  return lpgemm_deserialize(handle, (const char *)info.memory + (size_t)i * bytes, bytes,
                            LPGEMM_LOAD_VIEW | LPGEMM_LOAD_SKIP_CHECKSUM, matrix);
}

static lpgemm_status_t multiply(lpgemm_ggml_context *context, const struct ggml_tensor *y, bool is_shared) {
  const struct ggml_tensor *w = y->src[0], *x = y->src[1];
  const lpgemm_weights_t weights = lpgemm_ggml_weights(w);
  const int64_t count = w->ne[2] * w->ne[3], r2 = x->ne[2] / w->ne[2], r3 = x->ne[3] / w->ne[3];
  if (count == 1 && is_one_matrix(x) && is_one_matrix(y)) {
    lpgemm_run_args_t args = product_of(context, weights, ggml_nrows(x), x->data, x->nb[1], y->data, y->nb[1]);
    const lpgemm_status_t prepared = prepare_x(context, x, is_shared, &args);
    return prepared == LPGEMM_SUCCESS ? lpgemm_run(context->handle, &args) : prepared;
  }
  lpgemm_status_t status = LPGEMM_SUCCESS;
  for (int64_t i = 0; i < x->ne[2] * x->ne[3] && status == LPGEMM_SUCCESS; i++) {
    const int64_t i2 = i % x->ne[2], i3 = i / x->ne[2];
    lpgemm_weights_t matrix = weights;
    if (count > 1) {
      status = view_of_stack(context->handle, weights, i3 / r3 * w->ne[2] + i2 / r2, count, &matrix);
      if (status != LPGEMM_SUCCESS) return status;
    }
    const lpgemm_run_args_t args =
        product_of(context, matrix, x->ne[1], row_of(x, 0, i2, i3), x->nb[1], row_of(y, 0, i2, i3), y->nb[1]);
    status = lpgemm_run(context->handle, &args);
    if (count > 1) lpgemm_weights_destroy(matrix);
  }
  return status;
}

/* ---- MUL_MAT_ID ---- */

enum { FEW = 32 }; /* rows that are copied sooner than other threads are asked */

/* Slot s of a token: expert ids[s, token], row s (or the only one) of x[token], row s of y[token]. */
typedef struct slots {
  const struct ggml_tensor *x, *y;
  int64_t used, count;
  int32_t *offsets; /* [experts + 1]: the sorted slots of an expert */
  int32_t *slot;    /* [count]: of a sorted one */
  float *sorted_x, *sorted_y;
} slots;

static void gather_row(void *work, int64_t i) {
  const slots *s = work;
  const int64_t slot = s->slot[i];
  memcpy(s->sorted_x + i * s->x->ne[0], row_of(s->x, slot % s->used % s->x->ne[1], slot / s->used, 0),
         (size_t)s->x->ne[0] * sizeof(float));
}

static void scatter_row(void *work, int64_t i) {
  const slots *s = work;
  const int64_t slot = s->slot[i];
  memcpy((float *)row_of(s->y, slot % s->used, slot / s->used, 0), s->sorted_y + i * s->y->ne[0],
         (size_t)s->y->ne[0] * sizeof(float));
}

static void for_each_row(const lpgemm_ggml_context *context, slots *s, lpgemm_task_t task) {
  if (s->count > FEW) {
    lpgemm_ggml_for_each(context->threads, task, s, s->count);
  } else {
    for (int64_t i = 0; i < s->count; i++) task(s, i);
  }
}

static int32_t expert_of(const struct ggml_tensor *ids, int64_t slot) {
  const int64_t used = ids->ne[0];
  return *(const int32_t *)((const char *)ids->data + (size_t)(slot % used) * ids->nb[0] +
                            (size_t)(slot / used) * ids->nb[1]);
}

/* A stable counting sort; false if an id names no expert. */
static bool sort_slots(const struct ggml_tensor *ids, int64_t experts, slots *s) {
  memset(s->offsets, 0, (size_t)(experts + 1) * sizeof *s->offsets);
  for (int64_t i = 0; i < s->count; i++) {
    const int32_t e = expert_of(ids, i);
    if (e < 0 || e >= experts) return false;
    s->offsets[e]++;
  }
  int32_t end = 0;
  for (int64_t e = 0; e <= experts; e++) s->offsets[e] = end += s->offsets[e];
  for (int64_t i = s->count - 1; i >= 0; i--) s->slot[--s->offsets[expert_of(ids, i)]] = (int32_t)i;
  return true;
}

/* Cuts `bytes` off the scratch, at a multiple of 64. */
static void *cut(char **at, size_t bytes) {
  void *memory = *at;
  *at += (bytes + 63) / 64 * 64;
  return memory;
}

static lpgemm_status_t multiply_experts(lpgemm_ggml_context *context, const struct ggml_tensor *y) {
  const struct ggml_tensor *w = y->src[0], *x = y->src[1], *ids = y->src[2];
  const int64_t k = w->ne[0], n = w->ne[1], experts = w->ne[2];
  slots s = {.x = x, .y = y, .used = ids->ne[0], .count = ids->ne[0] * ids->ne[1]};
  const size_t bytes[4] = {(size_t)(experts + 1) * sizeof(int32_t), (size_t)s.count * sizeof(int32_t),
                           (size_t)(s.count * k) * sizeof(float), (size_t)(s.count * n) * sizeof(float)};
  if (!reserve(&context->scratch, bytes[0] + bytes[1] + bytes[2] + bytes[3] + 4 * 64)) return LPGEMM_OUT_OF_MEMORY;
  char *at = context->scratch.at;
  s.offsets = cut(&at, bytes[0]);
  s.slot = cut(&at, bytes[1]);
  s.sorted_x = cut(&at, bytes[2]);
  s.sorted_y = cut(&at, bytes[3]);
  if (!sort_slots(ids, experts, &s)) return LPGEMM_INVALID_ARGUMENT;
  for_each_row(context, &s, gather_row);
  const lpgemm_run_args_t args = product_of(context, lpgemm_ggml_weights(w), s.count, s.sorted_x,
                                            (size_t)k * sizeof(float), s.sorted_y, (size_t)n * sizeof(float));
  const lpgemm_groups_t groups = {.size = sizeof groups, .offsets = s.offsets};
  const lpgemm_status_t status = lpgemm_run_grouped(context->handle, &args, &groups);
  if (status == LPGEMM_SUCCESS) for_each_row(context, &s, scatter_row);
  return status;
}

bool lpgemm_ggml_multiply(lpgemm_ggml_context *context, struct ggml_tensor *node, bool is_shared) {
  const lpgemm_status_t status =
      node->op == GGML_OP_MUL_MAT ? multiply(context, node, is_shared) : multiply_experts(context, node);
  if (status != LPGEMM_SUCCESS) lpgemm_ggml_failed("multiplying", node->src[0]);
  return status == LPGEMM_SUCCESS;
}
