/* A product with a stack: what is checked, chosen and launched, for lpgemm_run_grouped() and for both of a layer. */
#include "experts.h"

lpgemm_status_t lpgemm_i_open_product(lpgemm_handle_t handle, lpg_grouped *p, int is_gathered, int32_t top_k) {
  lpg_request *r = &p->r;
  const lpgemm_weights_t w = r->args.weights;
  LPG_CHECK(!r->args.prepared_x, LPGEMM_NOT_SUPPORTED,
            "prepared_x is given, but that is of X as it is; a product with experts needs x itself");
  LPG_TRY(lpgemm_i_make_problem(handle, r, &w->packed, w->content.scale_span));
  lpg_problem *problem = &r->call.problem;
  problem->experts = (int32_t)w->packed.experts;
  problem->top_k = top_k;
  problem->slots = r->args.m;
  if (is_gathered) problem->x_unaligned = 0;
  return LPGEMM_SUCCESS;
}

/* One expert's rows, if each has as many. */
static lpg_problem average_problem(const lpg_problem *problem) {
  lpg_problem one = *problem;
  one.m = lpg_ceil_div(problem->m, problem->experts);
  one.slots = 0;
  return one;
}

lpgemm_status_t lpgemm_i_check_left(const lpg_kernel *kernel, size_t needed, size_t left) {
  LPG_CHECK(left >= needed, LPGEMM_WORKSPACE_TOO_SMALL,
            "kernel %s needs %zu bytes of workspace, and %zu are left for it; see lpgemm_workspace_size(), "
            "lpgemm_experts_workspace() and lpgemm_set_workspace()",
            kernel->name, needed, left);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_choose_product(lpgemm_handle_t handle, lpg_grouped *p, size_t workspace_bytes) {
  lpg_call *call = &p->r.call;
  const int by_expert = handle->backend->by_expert;
  call->problem.workspace = workspace_bytes;
  const lpg_problem chosen = by_expert ? average_problem(&call->problem) : call->problem;
  const lpg_kernel *kernel;
  const lpg_planned *planned;
  LPG_TRY(lpgemm_i_choose_for_run(handle, p->r.args.weights, &chosen, p->r.forced, &p->own, &kernel, &planned));
  if (planned != &p->own) p->own = *planned; /* what is remembered may go with the next choice, that for down */
  call->planned = &p->own;
  p->needed = lpgemm_i_workspace_of(kernel, &chosen, &handle->device);
  p->kernel = by_expert ? NULL : kernel;
  return lpgemm_i_check_left(kernel, p->needed, workspace_bytes);
}

lpgemm_status_t lpgemm_i_product_workspace(lpgemm_handle_t handle, const lpg_grouped *p, size_t *bytes) {
  const char *forced = p->r.forced;
  const lpg_kernel *unused;
  if (forced && *forced) {
    LPG_TRY(lpgemm_i_name_kernel(lpgemm_i_registry, lpgemm_i_registry_count, "kernel", forced, &unused));
  }
  *bytes = lpgemm_i_workspace(lpgemm_i_registry, lpgemm_i_registry_count, &p->r.call.problem, &handle->device, forced);
  return LPGEMM_SUCCESS;
}

int lpgemm_i_try_by_row(lpg_grouped *p, const void *x, int64_t ldx, const int32_t *row, int64_t x_rows) {
  lpg_call *call = &p->r.call;
  const lpg_problem *problem = &call->problem;
  const int aligned = (uintptr_t)x % 16 == 0 && ldx * lpg_bytes(problem->x_type) % 16 == 0;
  call->x_row = NULL;
  if (!p->kernel || !(p->kernel->flags & LPG_K_BY_ROW) || !aligned) return 0;
  if (problem->weights->desc.columns || problem->x_scale_mode == LPGEMM_X_SCALE_ROW) return 0;
  call->x = x;
  call->ldx = ldx;
  call->x_row = row;
  call->x_rows = x_rows;
  return 1;
}

lpgemm_status_t lpgemm_i_run_product(lpgemm_handle_t handle, lpg_grouped *p, void *workspace) {
  lpg_call *call = &p->r.call;
  double start = 0;
  if (call->problem.weights->desc.n == 0) return LPGEMM_SUCCESS;
  LPG_TRY(lpgemm_i_profile_start(handle, &start));
  if (handle->backend->by_expert) {
    LPG_TRY(lpgemm_i_run_by_expert(handle, p, workspace));
  } else {
    call->workspace = p->needed > 0 ? workspace : NULL;
    LPG_TRY(p->kernel->launch(call));
  }
  return lpgemm_i_profile_end(handle, &call->problem, p->kernel ? p->kernel->name : "by-expert", start);
}
