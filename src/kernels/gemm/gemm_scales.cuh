/* Scales for the wide kernels: every row's are multiplied by a power of two that brings the largest near
 * 2^scale_exponent, and that comes off the row's sums. Where a group is a row, the scale itself goes on the row's sums.
 */
#pragma once

#include "gemm_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The power of two by which the scales of a row are multiplied. Where they are multiplied in X's type it is the product
 * of two such numbers, so it may be less than asked for: scales of fp16 are not that small, those of e4m3 neither. */
template <class T>
__device__ inline int taken_power(const scales_args &a, int row_exponent) {
  const int e = a.scale_exponent - row_exponent;
  if (T::Form == LPG_GEMM_SCALES_E8M0) return e;
  return min(e, 2 * T::X::bias - 1);
}

/* x 2^e for |e| up to 252. */
__device__ inline float times_power(float x, int e) {
  const int half = e / 2;
  return x * lpg_bits_f32((uint32_t)(127 + half) << 23) * lpg_bits_f32((uint32_t)(127 + e - half) << 23);
}

/* A pair of numbers as the sum of two pairs of X's type. */
template <class X>
__device__ inline uint2 two_parts(float first, float second) {
  const uint32_t two = X::round_two(first, second);
  return make_uint2(two, X::round_two(first - X::widen((uint16_t)two), second - X::widen((uint16_t)(two >> 16))));
}

/* What takes a row's sums to what the epilogue expects: the row's scale, or the power of two that its scales have lost.
 */
template <class T>
__device__ inline float row_factor(const gemm_args &a, int row) {
  const scales_args &n = a.scale_data;
  if (row >= a.row_tiles * LPG_TILE_ROWS) return 0.0f;
  if (T::lines) return a.line_factors[row];
  if (!n.scale_on_rows) {
    return ldexpf(n.factor, (T::near ? LPG_SCALED_POWER : 0) - (a.exponents ? taken_power<T>(n, a.exponents[row]) : 0));
  }
  float scale = 1.0f;
  for (int role = role_scale; role <= role_super_scale; role++) {
    if (n.which[role] < 0) continue;
    const scale_section &s = n.section[n.which[role]];
    with_reader(s.type, [&](auto read) {
      const float2 two = read(s.values + (int64_t)(row / LPG_TILE_ROWS) * s.row_bytes, row % 8);
      scale *= row % LPG_TILE_ROWS < 8 ? two.x : two.y;
    });
  }
  return n.factor * scale;
}

}  // namespace
}  // namespace lpg
