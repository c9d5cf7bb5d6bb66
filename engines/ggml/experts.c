/* MUL_MAT_ID on the CPU: the rows of an expert are brought together, multiplied, and brought back. */
#include <stdlib.h>
#include <string.h>

#include "module.h"

static const float *row_of(const struct ggml_tensor *t, int64_t i1, int64_t i2, int64_t i3) {
  return (const float *)((const char *)t->data + (size_t)i1 * t->nb[1] + (size_t)i2 * t->nb[2] + (size_t)i3 * t->nb[3]);
}

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

static bool reserve(lpgemm_ggml_context *context, size_t bytes) {
  if (bytes <= context->scratch_bytes) return true;
  free(context->scratch);
  context->scratch = aligned_alloc(64, (bytes + 63) / 64 * 64);
  context->scratch_bytes = context->scratch ? bytes : 0;
  return context->scratch != NULL;
}

lpgemm_status_t lpgemm_ggml_multiply_experts(lpgemm_ggml_context *context, const struct ggml_tensor *y) {
  const struct ggml_tensor *w = y->src[0], *x = y->src[1], *ids = y->src[2];
  const int64_t k = w->ne[0], n = w->ne[1], experts = w->ne[2];
  slots s = {.x = x, .y = y, .used = ids->ne[0], .count = ids->ne[0] * ids->ne[1]};
  const size_t bytes[4] = {(size_t)(experts + 1) * sizeof(int32_t), (size_t)s.count * sizeof(int32_t),
                           (size_t)(s.count * k) * sizeof(float), (size_t)(s.count * n) * sizeof(float)};
  if (!reserve(context, bytes[0] + bytes[1] + bytes[2] + bytes[3] + 4 * 64)) return LPGEMM_OUT_OF_MEMORY;
  char *at = context->scratch;
  s.offsets = cut(&at, bytes[0]);
  s.slot = cut(&at, bytes[1]);
  s.sorted_x = cut(&at, bytes[2]);
  s.sorted_y = cut(&at, bytes[3]);
  if (!sort_slots(ids, experts, &s)) return LPGEMM_INVALID_ARGUMENT;
  for_each_row(context, &s, gather_row);
  const lpgemm_status_t status = lpgemm_ggml_multiply_sorted(context->handle, context->level, s.sorted_x, LPGEMM_F32,
                                                             s.offsets, s.count, s.sorted_y, y);
  if (status == LPGEMM_SUCCESS) for_each_row(context, &s, scatter_row);
  return status;
}
