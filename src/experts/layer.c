/* lpgemm_run_experts(): a layer, whatever the backend.
 *
 *     route      the slots sorted by expert
 *     gather     X by slot, in the order of up's columns; quantised before, a token once
 *     up         h, a row a slot, with gate and activation
 *     down       a row of Y's type a slot; h quantised or in the order of down's columns before
 *     combine    Y
 *
 * Few tokens may need only two of these steps: the token form (fan.c).
 *
 * All that lies between is in the caller's workspace; where that is too small for all tokens, they are taken in chunks.
 */
#include "layer.h"

/* ---- from arguments to two products ---- */

static lpgemm_dtype_t type_of_h(const lpgemm_experts_args_t *a) {
  if (lpg_is_real(a->x_type)) return a->x_type;
  return a->y_type == LPGEMM_F32 ? LPGEMM_BF16 : a->y_type;
}

static lpgemm_status_t check_stacks(lpgemm_handle_t handle, const lpgemm_experts_args_t *a) {
  LPG_CHECK(a->up, LPGEMM_NULL_POINTER, "up is NULL; it must be a stack of experts");
  LPG_CHECK(a->down, LPGEMM_NULL_POINTER, "down is NULL; it must be a stack of experts");
  LPG_TRY(lpgemm_i_check_pair(handle, a->up));
  LPG_TRY(lpgemm_i_check_pair(handle, a->down));
  const lpg_packed *up = &a->up->packed, *down = &a->down->packed;
  LPG_CHECK(up->experts == down->experts, LPGEMM_INVALID_ARGUMENT, "up has %lld experts and down %lld; they must agree",
            (long long)up->experts, (long long)down->experts);
  LPG_CHECK(down->desc.rows == LPGEMM_ROWS_PLAIN, LPGEMM_INVALID_ARGUMENT,
            "down has LPGEMM_ROWS_PAIRED; only up may have pairs");
  LPG_CHECK(down->x_k == up->outputs, LPGEMM_INVALID_SIZE,
            "down has %lld columns, but up has %lld outputs, which are what down multiplies", (long long)down->x_k,
            (long long)up->outputs);
  return LPGEMM_SUCCESS;
}

/* What both products have from the layer. */
static lpgemm_run_args_t product_args(const lpgemm_experts_args_t *a, int64_t slots) {
  lpgemm_run_args_t args = {.size = sizeof args, .m = slots};
  args.bias_type = a->bias_type;
  args.level = a->level;
  args.batch_invariant = a->batch_invariant;
  return args;
}

/* The products of `m` tokens. X and Y of them are set when they are run. */
static lpgemm_status_t open_products(lpgemm_handle_t handle, lpg_layer *l, int64_t m) {
  const lpgemm_experts_args_t *a = &l->args;
  l->m = m;
  l->slots = m * l->route.top_k;
  lpgemm_run_args_t up = product_args(a, l->slots), down = up;
  up.weights = a->up;
  up.x_type = a->x_type;
  up.y_type = l->h_type;
  up.ldx = a->up->packed.x_k;
  up.bias = a->up_bias;
  up.activation = a->activation;
  up.gate = a->gate;
  up.x_scale = a->x_scale;
  up.x_scale_mode = a->x_scale_mode;
  up.quantize_x = a->quantize_x;
  up.kernel = a->up_kernel;
  down.weights = a->down;
  down.x_type = l->h_type;
  down.y_type = a->y_type;
  down.bias = a->down_bias;
  down.quantize_x = a->quantize_h;
  down.kernel = a->down_kernel;
  LPG_TRY(lpgemm_i_read_args(handle, &up, &l->up.r));
  LPG_TRY(lpgemm_i_read_args(handle, &down, &l->down.r));
  LPG_TRY(lpgemm_i_open_product(handle, &l->up, 1, l->route.top_k));
  return lpgemm_i_open_product(handle, &l->down, 1, l->route.top_k);
}

lpgemm_status_t lpgemm_i_open_layer(lpgemm_handle_t handle, const lpgemm_experts_args_t *args, const int64_t *m_max,
                                    lpg_layer *l) {
  lpgemm_experts_args_t *a = &l->args;
  memset(l, 0, sizeof *l);
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_CHECK(args, LPGEMM_NULL_POINTER, "args is NULL");
  LPG_TRY(lpgemm_i_copy_struct(a, sizeof *a, sizeof *a, args, "args"));
  LPG_TRY(lpgemm_i_check_reserved(a->reserved, 4, "args"));
  LPG_TRY(check_stacks(handle, a));
  LPG_TRY(lpgemm_i_read_route(a->route, &l->route));
  if (m_max) l->route.m = *m_max;
  const lpg_packed *up = &a->up->packed, *down = &a->down->packed;
  LPG_CHECK(l->route.experts == up->experts, LPGEMM_INVALID_ARGUMENT,
            "route.experts is %d, but the stacks have %lld experts", l->route.experts, (long long)up->experts);
  LPG_TRY(lpgemm_i_check_route(l->route.m, l->route.top_k, l->route.experts, &l->routing));
  if (a->x_type == 0) a->x_type = handle->default_type;
  if (a->y_type == 0) a->y_type = handle->default_type;
  if (a->bias_type == 0) a->bias_type = a->y_type;
  if (a->ldx == 0) a->ldx = up->x_k;
  if (a->ldy == 0) a->ldy = down->desc.n;
  if (a->ldc == 0) a->ldc = down->desc.n;
  LPG_CHECK(lpg_is_real(a->y_type), LPGEMM_INVALID_TYPE, "y_type is %s; of a layer it must be f16, bf16 or f32",
            lpgemm_dtype_name(a->y_type));
  LPG_CHECK(a->quantize_h == 0 || lpg_is_quantized_x(a->quantize_h), LPGEMM_INVALID_TYPE,
            "quantize_h is %s; it must be an integer of 1 to 8 bits, e4m3 or 0", lpgemm_dtype_name(a->quantize_h));
  l->h_type = type_of_h(a);
  LPG_TRY(lpgemm_i_check_ld("ldx", a->ldx, "the columns of up", up->x_k, l->route.m));
  LPG_TRY(lpgemm_i_check_ld("ldy", a->ldy, "n of down", down->desc.n, l->route.m));
  LPG_TRY(lpgemm_i_check_ld("ldc", a->ldc, "n of down", down->desc.n, l->route.m));
  return open_products(handle, l, l->route.m);
}

/* ---- memory ---- */

static size_t add(size_t *bytes, int64_t rows, int64_t row_bytes) {
  const size_t at = *bytes;
  *bytes += lpg_align256((size_t)rows * (size_t)row_bytes);
  return at;
}

static int64_t whole_vectors(int64_t k, int bytes) { return lpg_round_up(k, 16 / bytes); }

/* For l->m tokens. Partial rows take the place of X's gathered ones, which up has read. */
static void plan_memory(const lpg_layer *l, lpg_layer_memory *m) {
  const lpgemm_experts_args_t *a = &l->args;
  const lpg_packed *up = &a->up->packed, *down = &a->down->packed;
  const int x_bytes = lpg_bytes(l->up.r.call.problem.x_type), h_bytes = lpg_bytes(l->h_type);
  const int down_bytes = lpg_bytes(l->down.r.call.problem.x_type), y_bytes = lpg_bytes(a->y_type);
  memset(m, 0, sizeof *m);
  const int is_given = a->routing && l->m == l->route.m;
  m->routing = is_given ? 0 : add(&m->bytes, 1, (int64_t)lpg_routing_of(l->m, l->route.top_k, l->route.experts).bytes);
  if (a->quantize_x) {
    m->codes = add(&m->bytes, l->m, up->x_k);
    m->code_scales = add(&m->bytes, l->m, sizeof(float));
  }
  if (l->up.r.call.problem.x_scale_mode == LPGEMM_X_SCALE_ROW) {
    m->row_scales = add(&m->bytes, l->slots, sizeof(float));
  }
  m->h_ld = whole_vectors(up->outputs, h_bytes);
  m->h = add(&m->bytes, l->slots, m->h_ld * h_bytes);
  m->rows_ld = whole_vectors(up->desc.k, x_bytes);
  m->partial_ld = whole_vectors(down->desc.n, y_bytes);
  const int64_t row = m->rows_ld * x_bytes, partial = m->partial_ld * y_bytes;
  m->rows = add(&m->bytes, l->slots, row > partial ? row : partial);
  if (a->quantize_h) {
    m->h_codes_ld = whole_vectors(up->outputs, 1);
    m->h_codes = add(&m->bytes, l->slots, m->h_codes_ld);
    m->h_scales = add(&m->bytes, l->slots, sizeof(float));
  }
  if (down->desc.columns) {
    m->h_ordered_ld = whole_vectors(down->desc.k, down_bytes);
    m->h_ordered = add(&m->bytes, l->slots, m->h_ordered_ld * down_bytes);
  }
}

static lpgemm_status_t kernels_workspace(lpgemm_handle_t handle, const lpg_layer *l, size_t *bytes) {
  size_t of_up, of_down;
  LPG_TRY(lpgemm_i_product_workspace(handle, &l->up, &of_up));
  LPG_TRY(lpgemm_i_product_workspace(handle, &l->down, &of_down));
  *bytes = of_up > of_down ? of_up : of_down;
  return LPGEMM_SUCCESS;
}

/* All tokens, or chunks of as many as fit: with what the fastest kernels ask for, or else with what stands in front of
 * it alone. */
lpgemm_status_t lpgemm_i_fit_layer(lpgemm_handle_t handle, lpg_layer *l, lpg_layer_memory *m) {
  const size_t room = handle->workspace_bytes;
  const int64_t all = l->route.m;
  size_t of_kernels = 0;
  plan_memory(l, m);
  if (m->bytes <= room) return LPGEMM_SUCCESS;
  for (int with_kernels = 1; with_kernels >= 0; with_kernels--) {
    int64_t least = 0, most = (all - 1) / LPG_LAYER_CHUNK; /* the largest number of chunks of 256 that fits is there */
    while (least < most) {
      const int64_t chunks = (least + most + 1) / 2;
      LPG_TRY(open_products(handle, l, chunks * LPG_LAYER_CHUNK));
      plan_memory(l, m);
      if (with_kernels) LPG_TRY(kernels_workspace(handle, l, &of_kernels));
      if (m->bytes + (with_kernels ? of_kernels : 0) <= room) {
        least = chunks;
      } else {
        most = chunks - 1;
      }
    }
    if (least == 0) continue;
    LPG_TRY(open_products(handle, l, least * LPG_LAYER_CHUNK));
    plan_memory(l, m);
    return LPGEMM_SUCCESS;
  }
  LPG_TRY(open_products(handle, l, all < LPG_LAYER_CHUNK ? all : LPG_LAYER_CHUNK));
  plan_memory(l, m);
  LPG_CHECK(0, LPGEMM_WORKSPACE_TOO_SMALL,
            "the workspace has %zu bytes, but %lld tokens need %zu; see lpgemm_experts_workspace() and "
            "lpgemm_set_workspace()",
            room, (long long)l->m, m->bytes);
}

/* ---- the work: tokens first .. first + l->m - 1 ---- */

static const uint8_t *row_of(const void *x, int64_t row, int64_t ld, lpgemm_dtype_t type) {
  return (const uint8_t *)x + row * ld * lpg_bytes(type);
}

/* Where the parts of the routing lie. */
typedef struct parts {
  const int32_t *offsets, *token, *position;
} parts;

static lpgemm_status_t route_chunk(lpgemm_handle_t handle, const lpg_layer *l, const lpg_layer_memory *m, int64_t first,
                                   parts *p) {
  const lpg_routing layout = lpg_routing_of(l->m, l->route.top_k, l->route.experts);
  const int is_given = l->args.routing && l->m == l->route.m;
  const uint8_t *at = is_given ? l->args.routing : (const uint8_t *)handle->workspace + m->routing;
  if (!is_given) LPG_TRY(lpgemm_i_route(handle, &l->route, first, l->m, (uint8_t *)handle->workspace + m->routing));
  p->offsets = (const int32_t *)(const void *)(at + layout.offsets);
  p->token = (const int32_t *)(const void *)(at + layout.token);
  p->position = (const int32_t *)(const void *)(at + layout.position);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t gather_x(lpgemm_handle_t handle, lpg_layer *l, const lpg_layer_memory *m, int64_t first,
                                const parts *p) {
  const lpgemm_experts_args_t *a = &l->args;
  lpg_call *call = &l->up.r.call;
  const lpg_packed *packed = call->problem.weights;
  const int has_row_scales = call->problem.x_scale_mode == LPGEMM_X_SCALE_ROW;
  uint8_t *own = handle->workspace;
  lpg_gather g = lpg_gather_of(call);
  g.rows = l->slots;
  g.offsets = p->offsets;
  g.row = p->token;
  g.x_rows = l->m;
  g.x = row_of(a->x, first, a->ldx, a->x_type);
  g.ldx = a->ldx;
  g.out = own + m->rows;
  g.ldo = m->rows_ld;
  if (a->quantize_x) {
    float *scales = (float *)(void *)(own + m->code_scales);
    LPG_TRY(handle->backend->quantize_activations(handle, l->m, packed->x_k, g.x, a->x_type, a->ldx, a->quantize_x,
                                                  own + m->codes, packed->x_k, scales, LPGEMM_X_SCALE_ROW));
    g.x = own + m->codes;
    g.ldx = packed->x_k;
    g.x_scale = scales;
  } else if (has_row_scales) {
    g.x_scale = a->x_scale + first;
  }
  call->x_scale = a->x_scale;
  if (lpgemm_i_try_by_row(&l->up, g.x, g.ldx, p->token, l->m)) return LPGEMM_SUCCESS;
  if (has_row_scales) g.out_scale = (float *)(void *)(own + m->row_scales);
  if (has_row_scales) call->x_scale = g.out_scale;
  call->x = g.out;
  call->ldx = g.ldo;
  return packed->desc.k > 0 ? handle->backend->gather_rows(handle, &g) : LPGEMM_SUCCESS;
}

/* Rows of h: where the host can say so, without those that no expert has made. */
static int64_t rows_of_h(lpgemm_handle_t handle, const lpg_layer *l, const parts *p) {
  if (!handle->backend->by_expert) return l->slots;
  int64_t end = 0;
  for (int64_t e = 0; e <= l->route.experts; e++) end = lpg_offset(p->offsets[e], end, l->slots);
  return end;
}

/* h as down reads it. */
static lpgemm_status_t prepare_h(lpgemm_handle_t handle, lpg_layer *l, const lpg_layer_memory *m, const parts *p) {
  lpg_call *call = &l->down.r.call;
  const int64_t rows = rows_of_h(handle, l, p);
  const lpg_packed *packed = call->problem.weights;
  uint8_t *own = handle->workspace;
  call->x = own + m->h;
  call->ldx = m->h_ld;
  if (l->args.quantize_h) {
    float *scales = (float *)(void *)(own + m->h_scales);
    LPG_TRY(handle->backend->quantize_activations(handle, rows, packed->x_k, call->x, l->h_type, call->ldx,
                                                  l->args.quantize_h, own + m->h_codes, m->h_codes_ld, scales,
                                                  LPGEMM_X_SCALE_ROW));
    call->x = own + m->h_codes;
    call->ldx = m->h_codes_ld;
    call->x_scale = scales;
  }
  if (!packed->desc.columns || packed->desc.k == 0) return LPGEMM_SUCCESS;
  lpg_gather g = lpg_gather_of(call);
  g.rows = g.x_rows = l->slots;
  g.offsets = p->offsets;
  g.out = own + m->h_ordered;
  g.ldo = m->h_ordered_ld;
  call->x = g.out;
  call->ldx = g.ldo;
  return handle->backend->gather_rows(handle, &g);
}

static lpgemm_status_t combine_chunk(lpgemm_handle_t handle, const lpg_layer *l, const lpg_layer_memory *m,
                                     int64_t first, const parts *p) {
  const lpgemm_experts_args_t *a = &l->args;
  const lpg_combine c = {.m = l->m,
                         .n = a->down->packed.desc.n,
                         .slots = l->slots,
                         .top_k = l->route.top_k,
                         .position = p->position,
                         .weight = l->route.weight ? l->route.weight + first * l->route.top_k : NULL,
                         .partial = (const uint8_t *)handle->workspace + m->rows,
                         .ld = m->partial_ld,
                         .y_type = a->y_type,
                         .y = (uint8_t *)a->y + first * a->ldy * lpg_bytes(a->y_type),
                         .ldy = a->ldy,
                         .c = l->c ? row_of(l->c, first, a->ldc, a->y_type) : NULL,
                         .ldc = a->ldc,
                         .beta = l->beta,
                         .device_beta = l->device_beta};
  return handle->backend->combine(handle, &c);
}

lpgemm_status_t lpgemm_i_run_chunk(lpgemm_handle_t handle, lpg_layer *l, const lpg_layer_memory *m, int64_t first) {
  uint8_t *own = handle->workspace;
  lpg_call *up = &l->up.r.call, *down = &l->down.r.call;
  void *rest = handle->workspace_bytes > m->bytes ? own + m->bytes : NULL;
  parts p;
  if (l->is_fan) return lpgemm_i_run_fan(handle, l, m);
  LPG_TRY(route_chunk(handle, l, m, first, &p));
  up->offsets = down->offsets = p.offsets;
  LPG_TRY(gather_x(handle, l, m, first, &p));
  up->y = own + m->h;
  up->ldy = m->h_ld;
  LPG_TRY(lpgemm_i_run_product(handle, &l->up, rest));
  LPG_TRY(prepare_h(handle, l, m, &p));
  /* up alone is between down and whoever wrote the offsets, which is done when up is past its own wait */
  down->offsets_final = l->up.kernel && l->up.kernel->flags & LPG_K_WAITS_FIRST && down->x == own + m->h;
  down->y = own + m->rows;
  down->ldy = m->partial_ld;
  LPG_TRY(lpgemm_i_run_product(handle, &l->down, rest));
  return combine_chunk(handle, l, m, first, &p);
}

static lpgemm_status_t fill(lpgemm_handle_t handle, lpg_request *r) {
  const lpg_scalars none = {NULL, NULL, LPGEMM_F32};
  LPG_TRY(lpgemm_i_read_scalars(r, handle, &none));
  LPG_TRY(lpgemm_i_read_gate(r));
  lpgemm_i_fill_call(handle, r);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_set_chunk(lpgemm_handle_t handle, lpg_layer *l, int64_t m, lpg_layer_memory *memory) {
  if (m != l->m) LPG_TRY(open_products(handle, l, m));
  LPG_TRY(fill(handle, &l->up.r));
  LPG_TRY(fill(handle, &l->down.r));
  plan_memory(l, memory);
  const size_t rest = handle->workspace_bytes > memory->bytes ? handle->workspace_bytes - memory->bytes : 0;
  return lpgemm_i_choose_form(handle, l, rest);
}

lpgemm_status_t lpgemm_i_layer_workspace(lpgemm_handle_t handle, lpg_layer *l, size_t *bytes) {
  lpg_layer_memory m;
  size_t of_kernels;
  plan_memory(l, &m);
  LPG_TRY(kernels_workspace(handle, l, &of_kernels));
  *bytes = m.bytes + of_kernels;
  return LPGEMM_SUCCESS;
}
