/* A product with a stack where the host can read how many rows each expert has: an expert without rows costs nothing,
 * and the rows of another go to the kernel that is best for so many. */
#include "experts.h"

/* The call for one expert's rows. `one` describes its matrix. */
static lpg_call call_of_expert(const lpg_grouped *p, int64_t expert, int64_t first, int64_t rows, lpg_packed *one) {
  const lpg_call *all = &p->r.call;
  const lpg_problem *problem = &all->problem;
  const uint64_t further = (uint64_t)expert * all->stride;
  const int64_t y_bytes = lpg_bytes(problem->y_type);
  lpg_call call = *all;
  *one = *problem->weights;
  one->experts = 1;
  one->desc.global_scale = lpg_expert_scale(all->blob + further);
  call.problem.weights = one;
  call.problem.m = rows;
  call.problem.slots = 0;
  call.offsets = NULL;
  call.blob = all->blob + further;
  for (int i = 0; i < LPG_SECTIONS; i++) {
    if (call.section[i]) call.section[i] += further;
  }
  if (all->row_scales) call.row_scales = (const float *)(const void *)call.section[LPG_SECTION_ROW_SCALES];
  call.x = (const uint8_t *)all->x + first * all->ldx * lpg_bytes(problem->x_type);
  if (problem->x_scale_mode == LPGEMM_X_SCALE_ROW && all->x_scale) call.x_scale = all->x_scale + first;
  call.y = (uint8_t *)all->y + first * all->ldy * y_bytes;
  if (all->c) call.c = (const uint8_t *)all->c + first * all->ldc * y_bytes;
  if (all->bias) call.bias = (const uint8_t *)all->bias + expert * all->bias_stride * lpg_bytes(all->bias_type);
  return call;
}

lpgemm_status_t lpgemm_i_run_by_expert(lpgemm_handle_t handle, const lpg_grouped *p, void *workspace) {
  const lpg_call *all = &p->r.call;
  const int64_t experts = all->problem.experts;
  int64_t first = lpg_offset(all->offsets[0], 0, all->problem.m);
  for (int64_t e = 0, end; e < experts; e++, first = end) {
    end = lpg_offset(all->offsets[e + 1], first, all->problem.m);
    if (end == first) continue;
    lpg_packed one;
    lpg_planned own;
    const lpg_kernel *kernel;
    lpg_call call = call_of_expert(p, e, first, end - first, &one);
    LPG_TRY(
        lpgemm_i_choose_for_run(handle, p->r.args.weights, &call.problem, p->r.forced, &own, &kernel, &call.planned));
    const size_t needed = lpgemm_i_workspace_of(kernel, &call.problem, &handle->device);
    LPG_TRY(lpgemm_i_check_left(kernel, needed, all->problem.workspace));
    call.workspace = needed > 0 ? workspace : NULL;
    LPG_TRY(kernel->launch(&call));
  }
  return LPGEMM_SUCCESS;
}
