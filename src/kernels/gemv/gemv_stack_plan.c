/* What gemv with stacks of experts refuses, in the token form and in the segment form. */
#include "gemv_stack_plan.h"

#include "../operand/limits.h"

/* A lane copies at most 16 bytes of a chunk's scales: copy_one(). */
static int scales_are_one_copy(const lpg_packed *w) {
  const lpgemm_weight_desc_t *d = &w->desc;
  if (!d->scale_type) return 1;
  const lpg_gemv_kind kind = lpg_gemv_kind_of(w, LPG_STACK_COLUMNS, 0, 0);
  const int chunk = lpg_gemv_chunk(kind.row_tiles, lpg_gemv_scale_steps(w)), slot = lpg_slot_bytes(d->scale_type);
  const int shared = w->group.count > 1 && w->group.k > LPG_BLOCK_K;
  return !shared && slot >= 16 && kind.row_tiles * chunk * lpg_block_groups(&w->group) * slot <= 512;
}

const char *lpgemm_i_gemv_stack_refuses(const lpg_problem *problem) {
  const lpg_packed *w = problem->weights;
  const lpgemm_weight_desc_t *d = &w->desc;
  const lpg_center center = lpg_center_of(d);
  const char *reason = lpgemm_i_dequantisers_refuse(problem);
  if (reason) return reason;
  if (d->k == 0 || d->n == 0 || problem->m == 0) return "there is nothing to multiply";
  if (lpg_bytes(problem->x_type) != 2) return "it does not take activations of this type";
  if (lpg_has_shift(&center)) return "it does not take zeros that are no code";
  if (!lpg_stack_has_steps(w->bits, lpg_gemv_scale_steps(w)) || !scales_are_one_copy(w)) {
    return "it does not take scales of this type in groups of this size";
  }
  return NULL;
}

double lpgemm_i_gemv_stack_slower(const lpg_packed *weights) {
  if (lpg_gemv_scale_steps(weights) == 8) return 1.1;
  return weights->desc.type == LPGEMM_FLOAT(2, 1) ? 1.37 : 1.5;
}
