#include "gemv1_limits.h"

#include <math.h>

#include "gemv1_plan.h"

int lpgemm_i_gemv1_is_common(const lpg_packed *weights) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  return (d->scale_type == 0 || d->scale_type == LPGEMM_F16) &&
         (d->zero == LPGEMM_ZERO_NONE || d->zero == LPGEMM_ZERO_CONSTANT);
}

const char *lpgemm_i_gemv1_refuses(const lpg_problem *problem, const lpg_device *device) {
  const lpg_packed *weights = problem->weights;
  const lpg_axis *group = &weights->group;
  if (lpg_bytes(problem->x_type) == 1) return "it takes X of 16 bits only";
  if (group->count > 1 && (group->k % LPG_CHUNK_K != 0 || (group->k & (group->k - 1)) != 0)) {
    return "it takes groups of 128, 256, 512 ... columns and whole rows only";
  }
  if (weights->desc.zero == LPGEMM_ZERO_CONSTANT && fabsf(weights->desc.zero_constant) > 0x1p100f)
    return "the zero is too large";
  if (weights->n_padded > INT32_MAX / 2 || weights->k_padded > INT32_MAX / 4)
    return "it takes no matrix as large as this";
  lpg_gemv1_plan p;
  double cost;
  if (weights->row_tiles > 0 &&
      !lpg_gemv1_make_plan(weights, lpg_gemv1_mode_of(weights->bits, problem->m), device, &p, &cost)) {
    return "the GPU has too little shared memory for it";
  }
  return NULL;
}

/* 1 where the kernels were measured, and won: from 2048 x 2048 on by one row (H200, 2026-11-22), from 5120 x 640 on by
 * two (2026-11-23). */
static int is_measured(const lpg_problem *problem) {
  const double weights = (double)problem->weights->desc.n * (double)problem->weights->desc.k;
  return problem->m <= 2 && weights >= (problem->m <= 1 ? 2048.0 * 2048.0 : 5120.0 * 640.0);
}

double lpgemm_i_gemv1_estimate(const lpg_problem *problem, const lpg_device *device) {
  lpg_gemv1_plan plan;
  double ns = 0.0;
  const lpg_gemv1_mode form = lpg_gemv1_mode_of(problem->weights->bits, problem->m);
  if (!lpg_gemv1_make_plan(problem->weights, form, device, &plan, &ns)) return HUGE_VAL;
  if (!is_measured(problem)) return ns / 100.0; /* taken by name or tuning only */
  const double general =
      lpgemm_i_gemv1_is_common(problem->weights) ? 1.0 : 0.9; /* seven were timed, H200, 2026-11-23 */
  return ns / 1000.0 * general;
}
