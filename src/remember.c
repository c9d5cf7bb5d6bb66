/* Which kernel a handle chose, with which plan, for a problem it had before. */
#include "dispatch/dispatch.h"

/* Bit by bit: what differs in the sign of a zero counts as another description. */
static int is_same_desc(const lpgemm_weight_desc_t *a, const lpgemm_weight_desc_t *b) {
  const uint8_t *x = (const uint8_t *)a, *y = (const uint8_t *)b;
  return memcmp(x, y, sizeof *a) == 0;
}

static int is_same(const lpg_problem *a, const lpg_problem *b) {
  return a->m == b->m && a->scale_span == b->scale_span && a->x_type == b->x_type && a->y_type == b->y_type &&
         a->x_scale_mode == b->x_scale_mode && a->level == b->level && a->batch_invariant == b->batch_invariant &&
         a->x_unaligned == b->x_unaligned && a->experts == b->experts && a->top_k == b->top_k && a->slots == b->slots &&
         a->fan == b->fan && a->paired == b->paired && a->activation == b->activation && a->workspace == b->workspace;
}

/* Experts of a stack may differ in their global scale, and so in the kernel that takes them. */
static uint64_t slot_of(lpgemm_weights_t weights, const lpg_problem *problem) {
  const uint32_t scale = lpg_f32_bits(problem->weights->desc.global_scale) ^ lpg_f32_bits(1.0f);
  /* A call of a layer of few tokens asks for both forms: they must not take each other's place. */
  const uint64_t is_fan = problem->fan != LPG_FAN_NONE;
  const uint64_t rows = (uint64_t)(is_fan ? problem->slots : problem->m);
  return ((weights->desc_hash + rows + (scale ^ scale >> 13)) ^ is_fan) % LPG_REMEMBERED;
}

lpgemm_status_t lpgemm_i_remember(lpgemm_handle_t handle, lpgemm_weights_t weights, const lpg_problem *problem,
                                  lpg_remembered **found) {
  lpg_remembered *r = &handle->remembered[slot_of(weights, problem)];
  uint64_t tuning = lpgemm_i_tuning_version(handle->tuning);
  *found = r;
  const lpgemm_weight_desc_t *desc = &problem->weights->desc;
  if (r->kernel && r->tuning == tuning && is_same(&r->problem, problem) && is_same_desc(&r->desc, desc)) {
    return LPGEMM_SUCCESS;
  }
  lpg_choice choice;
  r->kernel = NULL;
  LPG_TRY(lpgemm_i_select(lpgemm_i_registry, lpgemm_i_registry_count, problem, &handle->device, handle->tuning, NULL,
                          &choice));
  r->kernel = choice.kernel;
  r->planned = choice.planned;
  r->desc = *desc;
  r->tuning = tuning;
  r->problem = *problem;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_choose_for_run(lpgemm_handle_t handle, lpgemm_weights_t weights, const lpg_problem *problem,
                                        const char *forced, lpg_planned *own, const lpg_kernel **kernel,
                                        const lpg_planned **planned) {
  if ((forced && *forced) || lpgemm_i_log_level() == LPGEMM_LOG_DISPATCH) {
    lpg_choice choice;
    LPG_TRY(lpgemm_i_select(lpgemm_i_registry, lpgemm_i_registry_count, problem, &handle->device, handle->tuning,
                            forced, &choice));
    *own = choice.planned;
    *kernel = choice.kernel;
    *planned = own;
    return LPGEMM_SUCCESS;
  }
  lpg_remembered *remembered;
  LPG_TRY(lpgemm_i_remember(handle, weights, problem, &remembered));
  *kernel = remembered->kernel;
  *planned = &remembered->planned;
  return LPGEMM_SUCCESS;
}
