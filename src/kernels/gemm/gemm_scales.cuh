/* gemm: the power of two on each row's scales, and the factor that takes it off the row's sums again.
 *
 * In most modes scales are rounded to X's type before they meet a weight. To keep them in its range, a row's scales are
 * multiplied by a power of two that brings the largest near 2^scale_exponent. Where scales and rests are fp32, the
 * power comes of a bound of the row's weights (find_row_powers()), or the kernel that prepared them found it. With one
 * scale a row, the scale itself goes on the sums. */
#pragma once

#include "gemm_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The exponent of the power of two on a row's scales. Where the product is made in X's type, the power is a product
 * of two numbers of that type, so it is bounded: scales of fp16 and e4m3 are never that small. */
template <class T>
__device__ inline int taken_power(const scales_args &a, int row_exponent) {
  const int e = a.scale_exponent - row_exponent;
  if (T::Scales == LPG_GEMM_SCALES_E8M0) return e;
  return min(e, 2 * T::X::bias - 1);
}

/* x 2^e for |e| up to 252. */
__device__ inline float times_power(float x, int e) {
  const int half = e / 2;
  return x * lpg_bits_f32((uint32_t)(127 + half) << 23) * lpg_bits_f32((uint32_t)(127 + e - half) << 23);
}

/* What a row's sums are multiplied by before the epilogue: the row's scale, or the inverse of its power of two; the
 * global scale, if factors take it; of an expert, and of pairs, what the epilogue multiplies by otherwise. */
template <class T>
__device__ inline float row_factor(const gemm_args &a, int row, int expert) {
  const scales_args &n = a.scale_data;
  if (row >= a.row_tiles * LPG_TILE_ROWS) return 0.0f;
  if (T::prepared || T::image) return a.line_factors[row];
  float own = n.factor;
  int64_t before = 0;
  if (T::takes_experts && (a.experts.count > 0 || a.epilogue.paired)) {
    before = expert * a.experts.stride;
    own *= a.experts.count > 0 ? lpg_expert_scale(a.experts.headers + before) : a.epilogue.global_scale;
    if (a.experts.row_scales) own *= *(const float *)((const uint8_t *)(a.experts.row_scales + row) + before);
  }
  if (!n.scale_on_rows) {
    const int power = T::has_powers && a.exponents ? taken_power<T>(n, a.exponents[before + row]) : 0;
    return ldexpf(own, (T::near ? LPG_SCALED_POWER : 0) + a.field_power - power);
  }
  float scale = 1.0f;
  for (int role = role_scale; role <= role_super_scale; role++) {
    if (n.which[role] < 0) continue;
    const scale_section &s = n.section[n.which[role]];
    with_reader(s.type, [&](auto read) {
      const float2 two = read(s.values + before + (int64_t)(row / LPG_TILE_ROWS) * s.row_bytes, row % 8);
      scale *= row % LPG_TILE_ROWS < 8 ? two.x : two.y;
    });
  }
  return own * scale;
}

}  // namespace
}  // namespace lpg
