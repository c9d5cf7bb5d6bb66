/* Scales and zeros of gemv1: a lane has those of two rows, g and g + 8, for one chunk. */
#pragma once

#include "gemv1_prepare.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* From sums of codes times X's integers to sums of weights times X. (2 * count - center * sum of X) / 2 counts the
 * codes from center / 2, the half code next to the zero (or next to where a minimum makes 0); `shift` adds what is left
 * of the zero. Counts and sums of X come in two parts that are exact (low, high), so that weights that nearly cancel
 * stay exact. */
struct row_scaling {
  float scale, shift, center;

  /* Fixed zeros: the sums of the chunk are multiplied by center and rest already. */
  __device__ float add(const raw_scales<false> &, const x_chunk &x, float low, float high, float total) const {
    const float part = fmaf(2.0f, low, -x.low),
                product = fmaf((float)(1 << low_planes), fmaf(2.0f, high, -x.high), part);
    return fmaf((product + x.sum) * x.unit, scale, total);
  }

  __device__ float add(const raw_scales<true> &, const x_chunk &x, float low, float high, float total) const {
    const float part = fmaf(-center, x.low, 2.0f * low);
    const float product = fmaf((float)(1 << low_planes), fmaf(-center, x.high, 2.0f * high), part);
    return fmaf(product * x.unit, scale, fmaf(x.sum * x.unit, shift, total));
  }
};

/* Of row g (half 0) or g + 8 (half 1). */
__device__ inline row_scaling scaling_of(const chunk_scales_args &, const raw_scales<false> &raw, int half) {
  const __half2 two = *(const __half2 *)&raw.scales;
  return {half ? __high2float(two) : __low2float(two), 0.0f, 0.0f};
}

__device__ inline row_scaling scaling_of(const chunk_scales_args &a, const raw_scales<true> &raw, int half) {
  const float scale = a.scales ? scale_value(a.scale_type, half ? raw.scale.y : raw.scale.x) : 1.0f;
  const float step = 0.5f * a.step; /* half a step: 1/2 or 1 */
  if (a.zero == chunk_zero_fixed) return {scale * step, scale * step * a.rest, a.center};
  const float zero = scale_value(a.zero_type, half ? raw.zero.y : raw.zero.x);
  const float level = a.zero == chunk_zero_minimum ? __fdividef(-zero, scale) : zero;
  const float center = fminf(fmaxf(rintf((level - a.offset) / step), 0.0f), a.most_center);
  const float value = fmaf(center, step, a.offset);
  const float shift = a.zero == chunk_zero_minimum ? fmaf(value, scale, zero) : scale * (value - zero);
  return {scale * step, shift, center};
}

}  // namespace
}  // namespace lpg
