/* The calls for a layer of experts: checks of pointers, and a chunk of tokens after the other. */
#include <stdio.h>

#include "layer.h"

/* ---- checks ---- */

/* Bytes from the first to the last number of a matrix. */
static uint64_t extent(int64_t rows, int64_t columns, int64_t ld, lpgemm_dtype_t type) {
  return rows > 0 && columns > 0 ? (uint64_t)((rows - 1) * ld + columns) * (uint64_t)lpg_bytes(type) : 0;
}

typedef struct range {
  const char *name;
  const void *data;
  uint64_t bytes;
} range;

static lpgemm_status_t check_apart(const range *a, const range *b) {
  const uintptr_t x = (uintptr_t)a->data, y = (uintptr_t)b->data;
  const int apart = a->bytes == 0 || b->bytes == 0 || (x < y ? y - x >= a->bytes : x - y >= b->bytes);
  LPG_CHECK(apart, LPGEMM_INVALID_ARGUMENT, "%s is %p and %s %p; they must not overlap", a->name, a->data, b->name,
            b->data);
  return LPGEMM_SUCCESS;
}

/* Y, and what is written of the workspace and by routing, lie apart from all that is read. */
static lpgemm_status_t check_overlap(lpgemm_handle_t handle, const lpg_layer *l) {
  const lpgemm_experts_args_t *a = &l->args;
  const int64_t m = l->route.m;
  const int64_t n = a->down->packed.desc.n;
  const range x = {"x", a->x, extent(m, a->up->packed.x_k, a->ldx, a->x_type)};
  const range y = {"y", a->y, extent(m, n, a->ldy, a->y_type)};
  const range c = {"c", l->c, l->c == a->y ? 0 : extent(m, n, a->ldc, a->y_type)};
  const range routing = {"routing", a->routing, a->routing ? l->routing.bytes : 0};
  const range workspace = {"the workspace", handle->workspace, handle->workspace_bytes};
  const range expert = {"route.expert", l->route.expert, (uint64_t)l->routing.slots * 4};
  const range weight = {"route.weight", l->route.weight, l->route.weight ? (uint64_t)l->routing.slots * 4 : 0};
  const range *const read[] = {&x, &c, &routing, &expert, &weight};
  for (size_t i = 0; i < sizeof read / sizeof read[0]; i++) {
    LPG_TRY(check_apart(&y, read[i]));
    LPG_TRY(check_apart(&workspace, read[i]));
  }
  return check_apart(&y, &workspace);
}

static lpgemm_status_t read_beta(lpgemm_handle_t handle, lpg_layer *l) {
  const lpgemm_experts_args_t *a = &l->args;
  if (!a->beta) return LPGEMM_SUCCESS;
  if (handle->pointer_mode == LPGEMM_POINTER_DEVICE && handle->device.backend == LPGEMM_BACKEND_CUDA) {
    LPG_CHECK(a->c, LPGEMM_NULL_POINTER, "beta is given in device memory, but c is NULL");
    l->device_beta = a->beta;
    l->c = a->c;
    return LPGEMM_SUCCESS;
  }
  l->beta = *a->beta;
  LPG_CHECK(l->beta == 0.0f || a->c, LPGEMM_NULL_POINTER, "beta is %g, but c is NULL", (double)l->beta);
  l->c = l->beta != 0.0f ? a->c : NULL;
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_pointers(lpgemm_handle_t handle, lpg_layer *l) {
  const lpgemm_experts_args_t *a = &l->args;
  LPG_TRY(lpgemm_i_check_pointer("y", a->y, a->y_type));
  if (a->up->packed.desc.k > 0) LPG_TRY(lpgemm_i_check_pointer("x", a->x, a->x_type));
  LPG_TRY(lpgemm_i_check_pointer("route.expert", l->route.expert, LPGEMM_I32));
  if (l->route.weight) LPG_TRY(lpgemm_i_check_pointer("route.weight", l->route.weight, LPGEMM_F32));
  if (a->up_bias) LPG_TRY(lpgemm_i_check_pointer("up_bias", a->up_bias, a->bias_type));
  if (a->down_bias) LPG_TRY(lpgemm_i_check_pointer("down_bias", a->down_bias, a->bias_type));
  if (a->x_scale_mode != LPGEMM_X_SCALE_NONE) {
    LPG_TRY(lpgemm_i_check_pointer("x_scale", a->x_scale, LPGEMM_F32));
  } else {
    LPG_CHECK(!a->x_scale, LPGEMM_INVALID_ARGUMENT, "x_scale is given, but x_scale_mode is LPGEMM_X_SCALE_NONE");
  }
  if (l->c) {
    LPG_TRY(lpgemm_i_check_pointer("c", l->c, a->y_type));
    LPG_CHECK(l->c != a->y || a->ldc == a->ldy, LPGEMM_INVALID_ARGUMENT, "c is y, but ldc = %lld is not ldy = %lld",
              (long long)a->ldc, (long long)a->ldy);
  }
  LPG_CHECK(a->routing || a->routing_bytes == 0, LPGEMM_NULL_POINTER, "routing is NULL, but routing_bytes is %zu",
            a->routing_bytes);
  LPG_CHECK((uintptr_t)a->routing % 256 == 0, LPGEMM_MISALIGNED, "routing is %p; it must be 256-byte aligned",
            a->routing);
  LPG_CHECK(!a->routing || a->routing_bytes >= l->routing.bytes, LPGEMM_BUFFER_TOO_SMALL,
            "routing_bytes is %zu; lpgemm_route_size() says %zu", a->routing_bytes, l->routing.bytes);
  return check_overlap(handle, l);
}

/* ---- the calls ---- */

lpgemm_status_t lpgemm_run_experts(lpgemm_handle_t handle, const lpgemm_experts_args_t *args) {
  lpg_layer l;
  lpg_layer_memory memory;
  LPG_TRY(lpgemm_i_open_layer(handle, args, NULL, &l));
  const int64_t m = l.route.m;
  if (m == 0 || l.args.down->packed.desc.n == 0) return LPGEMM_SUCCESS;
  LPG_TRY(read_beta(handle, &l));
  LPG_TRY(check_pointers(handle, &l));
  LPG_TRY(lpgemm_i_fit_layer(handle, &l, &memory));
  const int64_t chunk = l.m;
  if (m % chunk) LPG_TRY(lpgemm_i_set_chunk(handle, &l, m % chunk, &memory)); /* what the last one may be refused */
  LPG_TRY(lpgemm_i_set_chunk(handle, &l, chunk, &memory));
  int32_t before;
  LPG_TRY(lpgemm_i_enter(handle, &before));
  lpgemm_status_t status = LPGEMM_SUCCESS;
  for (int64_t first = 0; first < m && status == LPGEMM_SUCCESS; first += chunk) {
    if (m - first < chunk) status = lpgemm_i_set_chunk(handle, &l, m - first, &memory);
    if (status == LPGEMM_SUCCESS) status = lpgemm_i_run_chunk(handle, &l, &memory, first);
  }
  lpgemm_i_leave(handle, before);
  return status;
}

lpgemm_status_t lpgemm_experts_workspace(lpgemm_handle_t handle, int64_t m_max, const lpgemm_experts_args_t *args,
                                         size_t *bytes) {
  lpg_layer l;
  LPG_CHECK(bytes, LPGEMM_NULL_POINTER, "bytes is NULL");
  LPG_TRY(lpgemm_i_check_m_max(m_max));
  LPG_TRY(lpgemm_i_open_layer(handle, args, &m_max, &l));
  return lpgemm_i_layer_workspace(handle, &l, bytes);
}

/* ---- explain ---- */

typedef struct writer {
  char *text;
  size_t bytes, used;
} writer;

static void say(writer *w, const char *text) {
  for (; *text && w->used + 1 < w->bytes; text++) w->text[w->used++] = *text;
  w->text[w->used] = 0;
}

static lpgemm_status_t explain_product(lpgemm_handle_t handle, const lpg_layer *l, const lpg_grouped *p,
                                       const char *name, writer *w) {
  char line[256];
  lpg_problem problem = p->r.call.problem;
  const lpgemm_weight_desc_t *d = &problem.weights->desc;
  lpg_choice choice;
  if (handle->backend->by_expert) {
    problem.m = lpg_ceil_div(l->slots, l->route.experts);
    problem.slots = 0;
  }
  const lpgemm_status_t status = lpgemm_i_choose(lpgemm_i_registry, lpgemm_i_registry_count, &problem, &handle->device,
                                                 handle->tuning, p->r.forced, &choice);
  if (status != LPGEMM_SUCCESS) say(w, lpgemm_last_error());
  LPG_TRY(status);
  const double us = choice.planned.launch.us * (handle->backend->by_expert ? l->route.experts : 1);
  snprintf(line, sizeof line, "%s: %s (n %lld, k %lld)%s by %s to %s: %s, %s, about %.1f us\n", name,
           lpgemm_dtype_name(d->type), (long long)d->n, (long long)d->k, problem.paired ? " in pairs" : "",
           lpgemm_dtype_name(problem.x_type), lpgemm_dtype_name(problem.y_type), choice.kernel->name, choice.why, us);
  say(w, line);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_explain_experts(lpgemm_handle_t handle, const lpgemm_experts_args_t *args, char *text,
                                       size_t text_bytes) {
  char line[256];
  lpg_layer l;
  lpg_layer_memory memory;
  LPG_CHECK(text, LPGEMM_NULL_POINTER, "text is NULL");
  LPG_CHECK(text_bytes > 0, LPGEMM_BUFFER_TOO_SMALL, "text_bytes is 0; one byte is the least");
  LPG_TRY(lpgemm_i_open_layer(handle, args, NULL, &l));
  writer w = {text, text_bytes, 0};
  *text = 0;
  const int64_t m = l.route.m;
  if (m == 0) {
    say(&w, "0 tokens: nothing is launched\n");
    return LPGEMM_SUCCESS;
  }
  const lpgemm_status_t fits = lpgemm_i_fit_layer(handle, &l, &memory);
  if (fits != LPGEMM_SUCCESS) say(&w, lpgemm_last_error());
  LPG_TRY(fits);
  snprintf(
      line, sizeof line,
      "%lld tokens, %d of %d experts each: %lld slots, expected about %.1f rows an expert; %lld tokens at once, in "
      "%zu bytes of workspace beside what the kernels need\n",
      (long long)m, l.route.top_k, l.route.experts, (long long)l.routing.slots,
      (double)l.routing.slots / l.route.experts, (long long)l.m, memory.bytes);
  say(&w, line);
  const size_t rest = handle->workspace_bytes > memory.bytes ? handle->workspace_bytes - memory.bytes : 0;
  const lpgemm_status_t chosen = lpgemm_i_choose_form(handle, &l, rest);
  if (chosen != LPGEMM_SUCCESS) say(&w, lpgemm_last_error());
  LPG_TRY(chosen);
  if (l.is_fan) say(&w, "token form: two launches, and no routing\n");
  LPG_TRY(explain_product(handle, &l, &l.up, "up", &w));
  return explain_product(handle, &l, &l.down, "down", &w);
}
