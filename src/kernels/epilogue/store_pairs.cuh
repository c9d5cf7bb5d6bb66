/* The epilogue where rows of W come in pairs: of a row tile rows 0 to 7 are the gates of eight outputs, rows 8 to 15
 * the values that they gate:  Y = activation(gate) * (up + up_offset). */
#pragma once

#include "../operand/x_type.cuh"
#include "../plan/scheduler.cuh"
#include "epilogue.cuh"
#include "sums.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* gate / (1 + e^power), by the quick division: its errors are those of expf, and it calls nothing. */
__device__ inline float quick_gate(float gate, float power) {
  return gate == -INFINITY ? 0.0f : __fdividef(gate, 1.0f + expf(power));
}

/* Gate and up as they are multiplied, each with its scales and bias before. Comparisons, since fmin would drop NaN. */
__device__ inline float limited_gate(const epilogue_args &e, float gate) {
  return gate > e.gate.limit ? e.gate.limit : gate;
}
__device__ inline float limited_up(const epilogue_args &e, float up) {
  return (up > e.gate.limit ? e.gate.limit : up < -e.gate.limit ? -e.gate.limit : up) + e.gate.up_offset;
}

__device__ inline float scaled_sum(float alpha, float sum, float x_scale) {
  return __fmul_rn(__fmul_rn(alpha, sum), x_scale);
}

/* One output. gate, up: sums with the scales of their rows of W; bias_row: where the expert's bias begins. */
__device__ inline void store_pair(const epilogue_args &e, int64_t m, int column, int outputs, int64_t bias_row,
                                  float gate, float up) {
  const float alpha = alpha_of(e), x_scale = x_scale_of(e, m);
  gate = scaled_sum(alpha, gate, x_scale);
  up = scaled_sum(alpha, up, x_scale);
  if (e.bias) {
    gate += load_real(e.bias_type, e.bias, bias_row + column);
    up += load_real(e.bias_type, e.bias, bias_row + outputs + column);
  }
  gate = limited_gate(e, gate);
  const bool is_silu = e.activation == LPGEMM_ACTIVATION_SILU;
  gate = is_silu ? quick_gate(gate, -e.gate.alpha * gate) : activate(gate, e.activation);
  store_rounded(e.y_type, e.y, m * e.ldy + column, gate * limited_up(e, up));
}

/* The bias of row `row` of W, as it is packed; of a row without an output that of another. bias_row: where those of the
 * expert begin. */
__device__ inline float pair_bias(const epilogue_args &e, int row, int outputs, int64_t bias_row) {
  const int output = min(row / LPG_TILE_ROWS * 8 + row % 8, outputs - 1), half = row % LPG_TILE_ROWS / 8;
  return load_real(e.bias_type, e.bias, bias_row + half * outputs + output);
}

/* Stores four neighbouring outputs of a row of Y, as many as there are. */
__device__ inline void store_outputs(const epilogue_args &e, int64_t m, int column, int outputs, const float (&v)[4]) {
  const int64_t at = m * e.ldy + column;
  if (lpg_bytes(e.y_type) == 2 && column + 4 <= outputs && ((uintptr_t)e.y + at * 2) % 8 == 0) {
    const bool f16 = e.y_type == LPGEMM_F16;
    *(uint2 *)((uint16_t *)e.y + at) = make_uint2(f16 ? f16_x::round_two(v[0], v[1]) : bf16_x::round_two(v[0], v[1]),
                                                  f16 ? f16_x::round_two(v[2], v[3]) : bf16_x::round_two(v[2], v[3]));
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (column + i < outputs) store_rounded(e.y_type, e.y, at + i, v[i]);
  }
}

/* Stores a thread's share of the outputs of rows of X from row m on: store_pass() in store.cuh for pairs. Behind the
 * factors of the rows of W lie their biases. Activations: SILU and GELU_TANH. */
template <class Args, class Pass>
__device__ inline void store_pairs(const Args &a, const Pass &pass, int m) {
  const epilogue_args &e = a.epilogue;
  const int outputs = a.n / 2, row = pass.share.row;
  const int column = pass.place.n / 2 + row / LPG_TILE_ROWS * 8 + row % LPG_TILE_ROWS;
  const int x_rows = column < outputs ? min(pass.x_rows, pass.place.m_end - m) : 0;
  const float alpha = alpha_of(e), *const factors = pass.factors + row;
  const bool is_silu = e.activation == LPGEMM_ACTIVATION_SILU;
#pragma unroll 1
  for (int x_row = pass.share.x_row; x_row < x_rows; x_row += pass.share.all_rows) {
    const int places[2] = {pass.sums.place(x_row, row), pass.sums.place(x_row, row + 8)};
    float4 sums[2];
    pass.sums.take(sums, places);
    const float scale = x_scale_of(e, m + x_row);
    float gate[4] = {sums[0].x, sums[0].y, sums[0].z, sums[0].w}, up[4] = {sums[1].x, sums[1].y, sums[1].z, sums[1].w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      gate[i] = scaled_sum(alpha, gate[i] * factors[i], scale);
      up[i] = scaled_sum(alpha, up[i] * factors[8 + i], scale);
    }
    if (e.bias) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        gate[i] += factors[LPG_BIASES_BEHIND + i];
        up[i] += factors[LPG_BIASES_BEHIND + 8 + i];
      }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const float g = limited_gate(e, gate[i]), power = is_silu ? -e.gate.alpha * g : tanh_power(g);
      gate[i] = quick_gate(g, power) * limited_up(e, up[i]);
    }
    store_outputs(e, m + x_row, column, outputs, gate);
  }
}

}  // namespace
}  // namespace lpg
