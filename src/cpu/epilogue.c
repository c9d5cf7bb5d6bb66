/* From a sum of products to an element of Y. */
#include "epilogue.h"

#include <math.h>

/* All but ReLU are 0 at minus infinity, where their formulas say infinity times zero. */
static double activate(lpgemm_activation_t activation, double v, double alpha) {
  _Static_assert(LPG_ACTIVATION_COUNT == 5, "an activation without a line here would be none");
  const int is_end = v == -(double)INFINITY;
  switch (activation) {
    case LPGEMM_ACTIVATION_NONE: break;
    case LPGEMM_ACTIVATION_RELU: return v < 0.0 ? 0.0 : v; /* keeps NaN */
    case LPGEMM_ACTIVATION_GELU_ERF: return is_end ? 0.0 : 0.5 * v * erfc(v * -0.70710678118654752440);
    case LPGEMM_ACTIVATION_GELU_TANH: /* (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)) */
      return is_end ? 0.0 : v / (1.0 + exp(-2.0 * 0.79788456080286535588 * (v + 0.044715 * v * v * v)));
    case LPGEMM_ACTIVATION_SILU: return is_end ? 0.0 : v / (1.0 + exp(-alpha * v));
  }
  return v;
}

static void store_i32(const lpg_call *call, int64_t m, int64_t n, double sum) {
  int64_t v = call->skip_product ? 0 : (int64_t)sum;
  if (call->beta != 0.0f) v += ((const int32_t *)call->c)[m * call->ldc + n];
  uint32_t wrapped = (uint32_t)(uint64_t)v;
  memcpy((int32_t *)call->y + m * call->ldy + n, &wrapped, sizeof wrapped);
}

/* A sum of row `row` of W with its factors, and its bias. */
static double with_bias(const lpg_call *call, int64_t m, int64_t row, int64_t bias, double sum) {
  double v = call->skip_product ? 0.0 : lpg_factor_of_row(call, m) * sum;
  if (call->row_scales && !call->skip_product) v *= (double)call->row_scales[row];
  if (call->bias) v += (double)lpg_load(call->bias_type, call->bias, bias);
  return v;
}

void lpgemm_i_epilogue_pair(const lpg_call *call, int64_t m, int64_t output, double gate_sum, double up_sum) {
  const int64_t row = output / LPG_PAIR_ROWS * LPG_TILE_ROWS + output % LPG_PAIR_ROWS;
  const int64_t outputs = call->problem.weights->outputs;
  const double limit = (double)call->gate.limit;
  double gate = with_bias(call, m, row, output, gate_sum);
  double up = with_bias(call, m, row + LPG_PAIR_ROWS, outputs + output, up_sum);
  gate = gate > limit ? limit : gate;
  up = up > limit ? limit : up < -limit ? -limit : up;
  double v = activate(call->activation, gate, (double)call->gate.alpha) * (up + (double)call->gate.up_offset);
  if (isnan(v)) v = (double)NAN;
  lpg_store_f64(call->problem.y_type, call->y, m * call->ldy + output, v);
}

void lpgemm_i_epilogue(const lpg_call *call, int64_t m, int64_t n, double sum) {
  lpgemm_dtype_t y_type = call->problem.y_type;
  if (y_type == LPGEMM_I32) {
    store_i32(call, m, n, sum);
    return;
  }
  double v = call->skip_product ? 0.0 : lpg_factor_of_row(call, m) * sum;
  if (call->row_scales && !call->skip_product) v *= (double)call->row_scales[n];
  if (call->beta != 0.0f) v += (double)call->beta * (double)lpg_load(y_type, call->c, m * call->ldc + n);
  if (call->bias) v += (double)lpg_load(call->bias_type, call->bias, n);
  v = activate(call->activation, v, 1.0);
  if (isnan(v)) v = (double)NAN; /* one NaN: its sign would depend on the order of a multiplication's factors */
  lpg_store_f64(y_type, call->y, m * call->ldy + n, v);
}
