/* Running: arguments -> problem -> choice -> launch. */
#include <stdio.h>
#include <string.h>

#include "dispatch/dispatch.h"
#include "request.h"

static lpgemm_status_t choose(lpgemm_handle_t handle, const lpg_request *r, lpg_choice *choice) {
  return lpgemm_i_select(lpgemm_i_registry, lpgemm_i_registry_count, &r->call.problem, &handle->device, handle->tuning,
                         r->forced, choice);
}

/* What stands in front of the kernel's part of the workspace. */
static size_t own_bytes(const lpg_request *r) {
  return r->quantized_bytes + r->scale_bytes + (r->in_handle ? 0 : r->ordered_bytes) + r->aligned_bytes;
}

/* What the copy of X must leave: to a forced kernel what it cannot do without, and where the kernel must not depend on
 * the number of rows what any may want. */
static size_t kept_bytes(lpgemm_handle_t handle, const lpg_request *r) {
  const lpg_kernel *forced;
  const lpg_problem *p = &r->call.problem;
  if (p->batch_invariant) {
    return lpgemm_i_workspace(lpgemm_i_registry, lpgemm_i_registry_count, p, &handle->device, r->forced);
  }
  if (!r->forced || !*r->forced ||
      lpgemm_i_name_kernel(lpgemm_i_registry, lpgemm_i_registry_count, "kernel", r->forced, &forced) != LPGEMM_SUCCESS)
    return 0; /* choosing refuses the name */
  return lpgemm_i_workspace_of(forced, p, &handle->device);
}

static void align_if_room(lpgemm_handle_t handle, lpg_request *r, size_t room) {
  const size_t aligned = lpgemm_i_aligned_bytes(handle, r);
  if (aligned == 0 || aligned > room || kept_bytes(handle, r) > room - aligned) return;
  r->aligned_bytes = aligned;
  r->call.problem.x_unaligned = 0;
}

void lpgemm_i_set_workspace(lpgemm_handle_t handle, lpg_request *r) {
  const size_t all = handle->workspace_bytes;
  r->in_handle = all < own_bytes(r) && r->ordered_bytes > 0 && handle->ordered_x;
  if (r->in_handle) {
    const size_t row = (size_t)r->ordered_ld * (size_t)lpg_bytes(r->call.problem.x_type);
    r->rows_at_once = (int64_t)(LPG_ORDERED_BYTES / row);
  }
  align_if_room(handle, r, all);
  const size_t own = own_bytes(r);
  r->call.problem.workspace = all > own ? all - own : 0;
}

/* ---- launch ---- */

static lpgemm_status_t quantize_inside(lpgemm_handle_t handle, lpg_request *r) {
  const lpgemm_run_args_t *a = &r->args;
  if (r->prepared_codes) {
    r->call.x = r->prepared_codes;
    r->call.ldx = r->call.problem.weights->x_k;
    r->call.x_scale = r->prepared_scale;
    return LPGEMM_SUCCESS;
  }
  uint8_t *codes = handle->workspace;
  float *scale = (float *)(void *)(codes + r->quantized_bytes);
  const int64_t k = r->call.problem.weights->x_k;
  LPG_TRY(handle->backend->quantize_activations(handle, a->m, k, a->x, a->x_type, a->ldx, a->quantize_x, codes, k,
                                                scale, LPGEMM_X_SCALE_ROW));
  r->call.x = codes;
  r->call.ldx = k;
  r->call.x_scale = scale;
  return LPGEMM_SUCCESS;
}

/* X in the order of columns, all rows of it or some after the others. */
static lpgemm_status_t multiply_ordered(lpgemm_handle_t handle, const lpg_request *r, const lpg_kernel *kernel) {
  const lpg_call *whole = &r->call;
  if (r->prepared_order) {
    lpg_call call = *whole;
    call.x = r->prepared_order;
    call.ldx = r->ordered_ld;
    return kernel->launch(&call);
  }
  const lpg_packed *packed = whole->problem.weights;
  const int64_t x_bytes = lpg_bytes(whole->problem.x_type), y_bytes = lpg_bytes(whole->problem.y_type);
  const int32_t *order = (const int32_t *)(const void *)whole->section[LPG_SECTION_COLUMN_ORDER];
  uint8_t *ordered = r->in_handle ? handle->ordered_x : (uint8_t *)handle->workspace + own_bytes(r) - r->ordered_bytes;
  for (int64_t row = 0; row < whole->problem.m; row += r->rows_at_once) {
    lpg_call call = *whole;
    const int64_t left = whole->problem.m - row;
    call.problem.m = left < r->rows_at_once ? left : r->rows_at_once;
    LPG_TRY(handle->backend->gather(handle, packed, call.problem.m,
                                    (const uint8_t *)whole->x + row * whole->ldx * x_bytes, whole->problem.x_type,
                                    whole->ldx, order, ordered, r->ordered_ld));
    call.x = ordered;
    call.ldx = r->ordered_ld;
    if (whole->problem.x_scale_mode == LPGEMM_X_SCALE_ROW) call.x_scale = whole->x_scale + row;
    call.y = (uint8_t *)whole->y + row * whole->ldy * y_bytes;
    if (whole->c) call.c = (const uint8_t *)whole->c + row * whole->ldc * y_bytes;
    LPG_TRY(kernel->launch(&call));
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t align_rows(lpgemm_handle_t handle, lpg_request *r) {
  uint8_t *aligned = (uint8_t *)handle->workspace + own_bytes(r) - r->aligned_bytes;
  LPG_TRY(handle->backend->align(handle, &r->call, aligned));
  r->call.x = aligned;
  r->call.ldx = r->call.problem.weights->desc.k;
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t launch(lpgemm_handle_t handle, lpg_request *r, const lpg_kernel *kernel) {
  int32_t before;
  double start = 0;
  LPG_TRY(lpgemm_i_enter(handle, &before));
  lpgemm_status_t status = lpgemm_i_profile_start(handle, &start);
  if (status == LPGEMM_SUCCESS && r->args.quantize_x && !r->call.skip_product) status = quantize_inside(handle, r);
  if (status == LPGEMM_SUCCESS && r->aligned_bytes > 0 && !r->call.skip_product) status = align_rows(handle, r);
  if (status == LPGEMM_SUCCESS) {
    const int is_ordered = r->ordered_bytes > 0 && !r->call.skip_product;
    status = is_ordered ? multiply_ordered(handle, r, kernel) : kernel->launch(&r->call);
  }
  if (status == LPGEMM_SUCCESS) status = lpgemm_i_profile_end(handle, &r->call.problem, kernel->name, start);
  lpgemm_i_leave(handle, before);
  return status;
}

lpgemm_status_t lpgemm_i_run(lpgemm_handle_t handle, const lpgemm_run_args_t *args, const lpg_scalars *scalars,
                             int check_only) {
  lpg_request r;
  lpg_planned own_plan;
  const lpg_kernel *kernel;
  LPG_TRY(lpgemm_i_read_args(handle, args, &r));
  LPG_TRY(lpgemm_i_check_pair(handle, r.args.weights));
  const lpg_packed *packed = &r.args.weights->packed;
  LPG_TRY(lpgemm_i_refuse_stack(packed, "this call"));
  LPG_TRY(lpgemm_i_make_problem(handle, &r, packed, r.args.weights->content.scale_span));
  lpgemm_i_set_workspace(handle, &r);
  LPG_TRY(
      lpgemm_i_choose_for_run(handle, r.args.weights, &r.call.problem, r.forced, &own_plan, &kernel, &r.call.planned));
  if (r.call.planned->launch.gathers) { /* no copy of X */
    r.ordered_bytes = 0;
    r.rows_at_once = r.args.m;
    r.call.gathers = 1;
  }
  if (r.args.m == 0 || packed->desc.n == 0) return LPGEMM_SUCCESS;
  LPG_TRY(lpgemm_i_read_scalars(&r, handle, scalars));
  LPG_TRY(lpgemm_i_check_pointers(&r, packed));
  size_t own = own_bytes(&r);
  lpgemm_i_fill_call(handle, &r);
  if (r.args.prepared_x) LPG_TRY(lpgemm_i_read_prepared(&r, kernel));
  LPG_CHECK(r.rows_at_once > 0 || r.prepared_order, LPGEMM_WORKSPACE_TOO_SMALL,
            "the workspace has %zu bytes, but X in the order of the weights' %lld columns needs %zu; see "
            "lpgemm_workspace_size() and lpgemm_set_workspace()",
            handle->workspace_bytes, (long long)packed->desc.k, own + r.ordered_bytes);
  size_t needed = own + lpgemm_i_workspace_of(kernel, &r.call.problem, &handle->device);
  LPG_CHECK(handle->workspace_bytes >= needed, LPGEMM_WORKSPACE_TOO_SMALL,
            "the workspace has %zu bytes, but kernel %s needs %zu; see lpgemm_workspace_size() and "
            "lpgemm_set_workspace()",
            handle->workspace_bytes, kernel->name, needed);
  if (check_only || r.args.n_begin == r.args.n_end) return LPGEMM_SUCCESS;
  lpg_packed part;
  if (r.args.n_end - r.args.n_begin < packed->desc.n) lpgemm_i_slice(&r.call, r.args.n_begin, r.args.n_end, &part);
  r.call.workspace = handle->workspace_bytes > own ? (uint8_t *)handle->workspace + own : NULL;
  return launch(handle, &r, kernel);
}

lpgemm_status_t lpgemm_run(lpgemm_handle_t handle, const lpgemm_run_args_t *args) {
  LPG_CHECK(args, LPGEMM_NULL_POINTER, "args is NULL");
  lpg_scalars scalars = {NULL, NULL, LPGEMM_F32};
  if (args->size >= LPG_LEAST_RUN_ARGS) { /* a struct that is too small is refused below */
    scalars.alpha = args->alpha;
    scalars.beta = args->beta;
  }
  return lpgemm_i_run(handle, args, &scalars, 0);
}

lpgemm_status_t lpgemm_matmul(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t m, const void *x, int64_t ldx,
                              void *y, int64_t ldy) {
  lpgemm_run_args_t args = {.size = sizeof args};
  args.weights = weights;
  args.m = m;
  args.x = x;
  args.ldx = ldx;
  args.y = y;
  args.ldy = ldy;
  return lpgemm_run(handle, &args);
}

/* ---- asking before running ---- */

lpgemm_status_t lpgemm_i_describe(lpgemm_handle_t handle, const lpgemm_run_args_t *args, lpg_problem *problem) {
  lpg_request r;
  LPG_TRY(lpgemm_i_read_args(handle, args, &r));
  LPG_TRY(lpgemm_i_check_pair(handle, r.args.weights));
  LPG_TRY(lpgemm_i_refuse_stack(&r.args.weights->packed, "this call"));
  LPG_TRY(lpgemm_i_make_problem(handle, &r, &r.args.weights->packed, r.args.weights->content.scale_span));
  lpgemm_i_set_workspace(handle, &r);
  *problem = r.call.problem;
  return LPGEMM_SUCCESS;
}

/* Types and options of a caller who gives no data: the handle's defaults if args is NULL. Of ldx counts whether rows
 * begin at multiples of 16 bytes. */
static lpgemm_status_t read_options(lpgemm_handle_t handle, const lpgemm_run_args_t *args, lpgemm_weights_t weights,
                                    int64_t m, lpg_request *r) {
  lpgemm_run_args_t options = {.size = sizeof options};
  LPG_TRY(lpgemm_i_read_args(handle, args ? args : &options, r));
  LPG_TRY(lpgemm_i_check_pair(handle, weights));
  LPG_TRY(lpgemm_i_check_m_max(m));
  r->args.weights = weights;
  r->args.m = m;
  const int64_t ldx = r->args.ldx;
  r->args.x = NULL;
  r->args.ldx = r->args.ldy = r->args.ldc = 0;
  LPG_TRY(lpgemm_i_make_problem(handle, r, &weights->packed, weights->content.scale_span));
  if (!r->args.quantize_x && !r->ordered_bytes && ldx % (16 / lpg_bytes(r->args.x_type)) != 0) {
    r->call.problem.x_unaligned = 1;
  }
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_workspace_size(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t m_max,
                                      const lpgemm_run_args_t *args, size_t *bytes) {
  LPG_CHECK(bytes, LPGEMM_NULL_POINTER, "bytes is NULL");
  lpg_request r;
  LPG_TRY(read_options(handle, args, weights, m_max, &r));
  if (weights->packed.experts > 1) return lpgemm_i_grouped_workspace(handle, &r, bytes);
  const lpg_kernel *forced;
  if (r.forced && *r.forced) {
    LPG_TRY(lpgemm_i_name_kernel(lpgemm_i_registry, lpgemm_i_registry_count, "kernel", r.forced, &forced));
  }
  align_if_room(handle, &r, SIZE_MAX);
  *bytes = own_bytes(&r) +
           lpgemm_i_workspace(lpgemm_i_registry, lpgemm_i_registry_count, &r.call.problem, &handle->device, r.forced);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_supports(lpgemm_handle_t handle, const lpgemm_weight_desc_t *desc, lpgemm_dtype_t x_type,
                                  lpgemm_dtype_t y_type, int64_t m) {
  lpg_request r = {.args = {.size = sizeof r.args, .m = m, .x_type = x_type, .y_type = y_type}};
  lpg_choice choice;
  lpg_packed packed;
  LPG_TRY(lpgemm_i_read_desc(desc, &packed));
  LPG_TRY(lpgemm_i_make_problem(handle, &r, &packed, 255));
  return choose(handle, &r, &choice);
}

lpgemm_status_t lpgemm_supports(lpgemm_handle_t handle, const lpgemm_weight_desc_t *desc, lpgemm_dtype_t x_type,
                                lpgemm_dtype_t y_type, int64_t m) {
  LPG_TRY(lpgemm_i_check_handle(handle));
  return lpgemm_i_supports(handle, desc, x_type, y_type, m);
}

lpgemm_status_t lpgemm_explain(lpgemm_handle_t handle, const lpgemm_run_args_t *args, char *text, size_t text_bytes) {
  lpg_request r;
  LPG_TRY(lpgemm_i_read_args(handle, args, &r));
  LPG_CHECK(text, LPGEMM_NULL_POINTER, "text is NULL");
  LPG_CHECK(text_bytes > 0, LPGEMM_BUFFER_TOO_SMALL, "text_bytes is 0; one byte is the least");
  LPG_TRY(lpgemm_i_check_pair(handle, r.args.weights));
  LPG_TRY(lpgemm_i_refuse_stack(&r.args.weights->packed, "lpgemm_explain()"));
  LPG_TRY(lpgemm_i_make_problem(handle, &r, &r.args.weights->packed, r.args.weights->content.scale_span));
  lpgemm_i_set_workspace(handle, &r);
  const lpg_scalars scalars = {r.args.alpha, r.args.beta, LPGEMM_F32};
  LPG_TRY(lpgemm_i_read_scalars(&r, handle, &scalars));
  size_t used = 0;
  if (r.aligned_bytes > 0) {
    snprintf(text, text_bytes, "X, whose rows do not begin at multiples of 16 bytes, is copied first: %zu bytes\n",
             r.aligned_bytes);
    used = strlen(text);
  }
  const lpgemm_status_t status =
      lpgemm_i_explain(lpgemm_i_registry, lpgemm_i_registry_count, &r.call.problem, &handle->device, handle->tuning,
                       r.forced, text + used, text_bytes - used);
  if (status != LPGEMM_SUCCESS) memmove(text, text + used, strlen(text + used) + 1); /* the first line says why */
  return status;
}
