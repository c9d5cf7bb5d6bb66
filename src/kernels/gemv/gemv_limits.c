#include "gemv_limits.h"

#include <math.h>

#include "../operand/limits.h"
#include "gemv_plan.h"

static const char *refuses(const lpg_problem *problem, const lpg_device *device, int columns) {
  const lpg_packed *weights = problem->weights;
  const char *reason = lpgemm_i_dequantisers_refuse(problem);
  if (reason) return reason;
  /* Integers count from a zero, and codebooks of two are dequantised as integers. */
  const int may_shift = lpg_is_integer_kind(weights->desc.type) || weights->bits == 1;
  for (int shifted = 0; shifted <= may_shift; shifted++) {
    lpg_gemv_kind kind = lpg_gemv_kind_of(weights, columns, shifted, shifted);
    if (weights->row_tiles > 0 && !lpg_gemv_fits(&kind, weights, columns, device)) {
      return "the GPU has too little shared memory for it";
    }
  }
  return NULL;
}

const char *lpgemm_i_gemv_8_refuses(const lpg_problem *problem, const lpg_device *device) {
  return refuses(problem, device, 8);
}

const char *lpgemm_i_gemv_16_refuses(const lpg_problem *problem, const lpg_device *device) {
  return refuses(problem, device, 16);
}
