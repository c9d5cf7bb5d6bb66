#include "gemv1_i8_limits.h"

#include <math.h>

#include "../kernels/operand/x_copy.h"
#include "gemv1_i8_plan.h"

const char *lpgemm_i_gemv1_i8_refuses(const lpg_problem *problem, const lpg_device *device) {
  const lpg_packed *weights = problem->weights;
  lpg_gemv1_plan p;
  double cost;
  if (!lpg_x_is_int8(problem->x_type)) return "the activations' codes are not the numbers as int8";
  if (weights->desc.zero == LPGEMM_ZERO_CONSTANT && fabsf(weights->desc.zero_constant) > 0x1p100f)
    return "the zero is too large";
  if (weights->n_padded > INT32_MAX / 2 || weights->k_padded > LPG_GEMV1_I8_MOST_K)
    return "it takes no matrix as large as this";
  if (weights->row_tiles > 0 &&
      !lpg_gemv1_make_plan(weights, lpg_gemv1_i8_mode_of(weights->bits, problem->m), device, &p, &cost)) {
    return "the GPU has too little shared memory for it";
  }
  return NULL;
}

double lpgemm_i_gemv1_i8_estimate(const lpg_problem *problem, const lpg_device *device) {
  lpg_gemv1_plan plan;
  double ns = 0.0;
  const lpg_gemv1_mode form = lpg_gemv1_i8_mode_of(problem->weights->bits, problem->m);
  return lpg_gemv1_make_plan(problem->weights, form, device, &plan, &ns) ? ns / 1000.0 : HUGE_VAL;
}
