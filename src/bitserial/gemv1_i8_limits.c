#include "gemv1_i8_limits.h"

#include <math.h>

#include "../kernels/operand/x_copy.h"
#include "gemv1_i8_plan.h"

const char *lpgemm_i_gemv1_i8_refuses(const lpg_problem *problem, const lpg_device *device) {
  const lpg_plan *plan = problem->plan;
  lpg_gemv1_plan p;
  double cost;
  if (!lpg_x_is_int8(problem->x_type)) return "the activations' codes are not the numbers as int8";
  if (plan->desc.zero == LPGEMM_ZERO_CONSTANT && fabsf(plan->desc.zero_constant) > 0x1p100f)
    return "the zero is too large";
  if (plan->n_padded > INT32_MAX / 2 || plan->k_padded > LPG_GEMV1_I8_MOST_K)
    return "it takes no matrix as large as this";
  if (plan->row_tiles > 0 &&
      !lpg_gemv1_make_plan(plan, lpg_gemv1_i8_mode_of(plan->bits, problem->m), device, &p, &cost)) {
    return "the GPU has too little shared memory for it";
  }
  return NULL;
}

double lpgemm_i_gemv1_i8_estimate(const lpg_problem *problem, const lpg_device *device) {
  lpg_gemv1_plan plan;
  double ns = 0.0;
  const lpg_gemv1_mode form = lpg_gemv1_i8_mode_of(problem->plan->bits, problem->m);
  return lpg_gemv1_make_plan(problem->plan, form, device, &plan, &ns) ? ns / 1000.0 : HUGE_VAL;
}
