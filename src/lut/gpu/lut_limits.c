#include "lut_limits.h"

#include <math.h>

#include "lut_plan.h"

int lpgemm_i_lut_gpu_is_common(const lpg_packed *weights) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  return (d->scale_type == 0 || d->scale_type == LPGEMM_F16) &&
         (d->zero == LPGEMM_ZERO_NONE || d->zero == LPGEMM_ZERO_CONSTANT);
}

const char *lpgemm_i_lut_gpu_refuses(const lpg_problem *problem, const lpg_device *device) {
  const lpg_packed *weights = problem->weights;
  const lpg_axis *group = &weights->group;
  if (lpg_is_integer_kind(problem->x_type) && problem->x_type != LPGEMM_I8) {
    return "it takes X of fp16, bf16, int8 and fp8 only";
  }
  if (group->count > 1 && (group->k % LPG_CHUNK_K != 0 || (group->k & (group->k - 1)) != 0)) {
    return "it takes groups of 128, 256, 512 ... columns and whole rows only";
  }
  if (weights->desc.zero == LPGEMM_ZERO_CONSTANT && fabsf(weights->desc.zero_constant) > 0x1p100f)
    return "the zero is too large";
  if (weights->n_padded > INT32_MAX / 2) return "it takes no matrix as large as this";
  lpg_lut_gpu_plan p;
  double cost;
  if (weights->row_tiles > 0 && !lpg_lut_gpu_make_plan(weights, device, &p, &cost)) {
    return "the tables of a row do not fit the shared memory of a cluster";
  }
  return NULL;
}

double lpgemm_i_lut_gpu_estimate(const lpg_problem *problem, const lpg_device *device) {
  lpg_lut_gpu_plan plan = LPG_ZERO;
  double ns = 0.0;
  if (!lpg_lut_gpu_make_plan(problem->weights, device, &plan, &ns)) return HUGE_VAL;
  return (double)problem->m * ns / 1000.0 *
         10.0; /* bits was faster wherever both were measured: by name or tuning only */
}
