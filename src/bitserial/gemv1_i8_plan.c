/* The planner of gemv1 with int8 X. */
#include "gemv1_i8_plan.h"

#include <math.h>

#include "../kernels/operand/x_copy.h"

static const char *refuses(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  const lpg_packed *weights = problem->weights;
  (void)self, (void)device;
  if (!lpg_x_is_int8(problem->x_type)) return "the activations' codes are not the numbers as int8";
  if (weights->desc.zero == LPGEMM_ZERO_CONSTANT && fabsf(weights->desc.zero_constant) > 0x1p100f)
    return "the zero is too large";
  if (weights->n_padded > INT32_MAX / 2 || weights->k_padded > LPG_GEMV1_I8_MOST_K)
    return "it takes no matrix as large as this";
  return NULL;
}

static void begin(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, void *state) {
  (void)self, (void)device;
  lpgemm_i_gemv1_begin(lpg_gemv1_i8_mode_of, problem, state);
}

static void finish(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, const void *plan,
                   double ns, lpg_launch *launch) {
  (void)self;
  lpgemm_i_gemv1_finish(problem, device, plan, ns, launch);
}

const lpg_planner lpgemm_i_gemv1_i8_planner = {.refuses = refuses,
                                               .begin = begin,
                                               .cut = lpgemm_i_gemv1_cut,
                                               .lay_out = lpgemm_i_gemv1_lay_out,
                                               .finish = finish,
                                               .no_plan = "the GPU has too little shared memory for it",
                                               .state_bytes = LPG_GEMV1_STATE_BYTES,
                                               .plan_bytes = sizeof(lpg_gemv1_plan),
                                               .mma = LPG_MMA_B1,
                                               .dequantises = LPG_DEQUANT_NEVER};
