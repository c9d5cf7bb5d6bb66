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

enum { WAYS = 4 }; /* of a set: problems that meet there do not drive each other out */
_Static_assert(LPG_REMEMBERED % WAYS == 0, "sets of as many");

/* Experts of a stack may differ in their global scale, and so in the kernel that takes them. */
static lpg_remembered *set_of(lpgemm_handle_t handle, lpgemm_weights_t weights, const lpg_problem *problem) {
  const uint32_t scale = lpg_f32_bits(problem->weights->desc.global_scale) ^ lpg_f32_bits(1.0f);
  const uint64_t rows = (uint64_t)(problem->fan != LPG_FAN_NONE ? problem->slots : problem->m);
  const uint64_t hash = weights->desc_hash + rows + (scale ^ scale >> 13);
  return &handle->remembered[hash % (LPG_REMEMBERED / WAYS) * WAYS];
}

/* In place of a kernel, where there is none. */
static const lpg_kernel nothing = {.name = ""};

/* In place of the version of the tuning results, on which a forced choice does not depend. */
#define FORCED UINT64_MAX

/* A plan depends on kernel and problem alone, so a forced one may have been chosen in any way. */
static int is_choice(const lpg_remembered *r, uint64_t tuning, const char *forced) {
  return forced ? strcmp(r->kernel->name, forced) == 0 : r->tuning == tuning;
}

static lpg_remembered *find(lpg_remembered *set, const lpg_problem *problem, uint64_t tuning, const char *forced) {
  for (int i = 0; i < WAYS; i++) {
    lpg_remembered *r = &set[i];
    if (r->kernel && is_same(&r->problem, problem) && is_choice(r, tuning, forced) &&
        is_same_desc(&r->desc, &problem->weights->desc)) {
      return r;
    }
  }
  return NULL;
}

/* In place of the oldest of the set. */
static lpg_remembered *add(lpg_remembered *set, const lpg_problem *problem, uint64_t tuning, const lpg_choice *choice) {
  memmove(&set[1], &set[0], (WAYS - 1) * sizeof *set);
  set->tuning = tuning;
  set->problem = *problem;
  set->desc = problem->weights->desc;
  set->kernel = choice->kernel ? choice->kernel : &nothing;
  set->planned = choice->planned;
  return set;
}

lpg_remembered *lpgemm_i_recall(lpgemm_handle_t handle, const lpg_kernel *kernels, int count, lpgemm_weights_t weights,
                                const lpg_problem *problem) {
  lpg_remembered *set = set_of(handle, weights, problem);
  const uint64_t tuning = lpgemm_i_tuning_version(handle->tuning);
  lpg_remembered *r = find(set, problem, tuning, NULL);
  if (!r) {
    lpg_choice choice = {.kernel = NULL};
    lpgemm_i_choose_if_any(kernels, count, problem, &handle->device, handle->tuning, &choice);
    r = add(set, problem, tuning, &choice);
  }
  return r->kernel == &nothing ? NULL : r;
}

lpgemm_status_t lpgemm_i_recall_forced(lpgemm_handle_t handle, const lpg_kernel *kernels, int count,
                                       lpgemm_weights_t weights, const lpg_problem *problem, const char *forced,
                                       lpg_remembered **found) {
  lpg_remembered *set = set_of(handle, weights, problem);
  *found = find(set, problem, FORCED, forced);
  if (*found) return LPGEMM_SUCCESS;
  lpg_choice choice;
  LPG_TRY(lpgemm_i_select(kernels, count, problem, &handle->device, handle->tuning, forced, &choice));
  *found = add(set, problem, FORCED, &choice);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_remember(lpgemm_handle_t handle, lpgemm_weights_t weights, const lpg_problem *problem,
                                  lpg_remembered **found) {
  *found = lpgemm_i_recall(handle, lpgemm_i_registry, lpgemm_i_registry_count, weights, problem);
  if (*found) return LPGEMM_SUCCESS;
  lpg_choice choice; /* again, for the sentence that says why there is none */
  LPG_TRY(lpgemm_i_select(lpgemm_i_registry, lpgemm_i_registry_count, problem, &handle->device, handle->tuning, NULL,
                          &choice));
  *found = add(set_of(handle, weights, problem), problem, lpgemm_i_tuning_version(handle->tuning), &choice);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_choose_for_run(lpgemm_handle_t handle, lpgemm_weights_t weights, const lpg_problem *problem,
                                        const char *forced, lpg_planned *own, const lpg_kernel **kernel,
                                        const lpg_planned **planned) {
  if (lpgemm_i_log_level() == LPGEMM_LOG_DISPATCH) {
    lpg_choice choice;
    LPG_TRY(lpgemm_i_select(lpgemm_i_registry, lpgemm_i_registry_count, problem, &handle->device, handle->tuning,
                            forced, &choice));
    *own = choice.planned;
    *kernel = choice.kernel;
    *planned = own;
    return LPGEMM_SUCCESS;
  }
  lpg_remembered *remembered;
  if (forced && *forced) {
    LPG_TRY(lpgemm_i_recall_forced(handle, lpgemm_i_registry, lpgemm_i_registry_count, weights, problem, forced,
                                   &remembered));
  } else {
    LPG_TRY(lpgemm_i_remember(handle, weights, problem, &remembered));
  }
  *kernel = remembered->kernel;
  *planned = &remembered->planned;
  return LPGEMM_SUCCESS;
}
