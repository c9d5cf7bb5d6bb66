/* Scales and zeros of the bits kernels: each lane has those of two rows, g and g + 8, and one chunk of columns. */
#pragma once

#include "gemv1_prepare.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* What counts become: a sum of products of X's integers with codes is (2 * count - center * sum) / 2 plus what the rest
 * of the zero takes. Codes are counted from the half code next to the zero (or next to where a minimum makes 0), in two
 * parts that are exact, so that weights that nearly cancel stay exact. */
struct row_scaling {
  float scale, shift, center;

  /* With fixed zeros the chunk's numbers have center and rest in them. */
  __device__ float add(const raw_scales<false> &, const chunk_scales &x, float low, float high, float total) const {
    const float part = fmaf(2.0f, low, -x.low),
                product = fmaf((float)(1 << low_planes), fmaf(2.0f, high, -x.high), part);
    return fmaf((product + x.sum) * x.unit, scale, total);
  }

  __device__ float add(const raw_scales<true> &, const chunk_scales &x, float low, float high, float total) const {
    const float part = fmaf(-center, x.low, 2.0f * low);
    const float product = fmaf((float)(1 << low_planes), fmaf(-center, x.high, 2.0f * high), part);
    return fmaf(product * x.unit, scale, fmaf(x.sum * x.unit, shift, total));
  }
};

/* Of row g (half 0) or g + 8. */
__device__ inline row_scaling scaling_of(const chunk_scales_args &, const raw_scales<false> &raw, int half) {
  const __half2 two = *(const __half2 *)&raw.scales;
  return {half ? __high2float(two) : __low2float(two), 0.0f, 0.0f};
}

__device__ inline row_scaling scaling_of(const chunk_scales_args &a, const raw_scales<true> &raw, int half) {
  const float scale = a.scales ? scale_value(a.scale_type, half ? raw.scale.y : raw.scale.x) : 1.0f;
  const float step = 0.5f * a.step; /* half of it: 1/2 or 1 */
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
