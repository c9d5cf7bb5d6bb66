/* The one epilogue of all CPU kernels. */
#ifndef LPG_CPU_EPILOGUE_H
#define LPG_CPU_EPILOGUE_H

#include "../internal.h"

/* Writes Y[m, n] = activation(alpha * x_scale * row_scales[n] * sum + beta * C[m, n] + bias[n]), computed in fp64 and
 * rounded once. sum is that of value(X) * w over k, the global scale included; it is not looked at if
 * call->skip_product. Int32 output wraps: there alpha and beta are 0 or 1, and sum is an integer. */
void lpgemm_i_epilogue(const lpg_call *call, int64_t m, int64_t n, double sum);

/* The same of pairs: Y[m, output] of the sums of its gate and of its up. */
void lpgemm_i_epilogue_pair(const lpg_call *call, int64_t m, int64_t output, double gate_sum, double up_sum);

/* What the sums of row m are multiplied by. */
static inline double lpg_factor_of_row(const lpg_call *call, int64_t m) {
  double scale = 1.0;
  if (call->problem.x_scale_mode == LPGEMM_X_SCALE_TENSOR) scale = (double)call->x_scale[0];
  if (call->problem.x_scale_mode == LPGEMM_X_SCALE_ROW) scale = (double)call->x_scale[m];
  return (double)call->alpha * scale;
}

#endif
