/* Scales and zeros of the bits kernels: each lane has those of two rows, g and g + 8, and one chunk of columns. */
#pragma once

#include <cuda_fp16.h>

#include "../kernels/numbers.cuh"
#include "bits_prepare.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* As they are packed: of two rows, fp16 scales in one word. */
template <bool General>
struct raw_numbers {
  uint32_t scales;
};

template <>
struct raw_numbers<true> {
  uint2 scale, zero;
};

/* The bits of numbers 2g and 2g + 1 of a row tile's 16. */
__device__ inline uint2 load_two(const uint8_t *slots, int slot_bytes, int g) {
  switch (slot_bytes) {
    case LPG_TILE_ROWS * 4: return __ldg((const uint2 *)slots + g);
    case LPG_TILE_ROWS * 2: {
      const uint32_t two = __ldg((const uint32_t *)slots + g);
      return make_uint2(two & 0xffffu, two >> 16);
    }
    default: {
      const uint32_t two = __ldg((const unsigned short *)slots + g);
      return make_uint2(two & 0xffu, two >> 8);
    }
  }
}

/* Of a row tile: scales and zeros point at its first group's. */
__device__ inline void load_raw(const bits_numbers &a, const uint8_t *scales, const uint8_t *, int group, int g,
                                raw_numbers<false> &raw) {
  raw.scales = 0x3c003c00u; /* 1 */
  if (a.scales) raw.scales = __ldg((const uint32_t *)(scales + group * (LPG_TILE_ROWS * 2)) + g);
}

__device__ inline void load_raw(const bits_numbers &a, const uint8_t *scales, const uint8_t *zeros, int group, int g,
                                raw_numbers<true> &raw) {
  if (a.scales) raw.scale = load_two(scales + group * a.scale_slot, a.scale_slot, g);
  if (a.zeros) raw.zero = load_two(zeros + group * a.zero_slot, a.zero_slot, g);
}

__device__ inline float number_value(lpgemm_dtype_t type, uint32_t bits) {
  switch (type) {
    case LPGEMM_BF16: return __uint_as_float(bits << 16);
    case LPGEMM_F32: return __uint_as_float(bits);
    case LPGEMM_E8M0: return e8m0_value(bits);
    case LPGEMM_E4M3: return e4m3_value(bits);
    case LPGEMM_UINT(8):
    case LPGEMM_UINT(16): return (float)bits;
    default: return __half2float(__ushort_as_half((unsigned short)bits));
  }
}

/* What counts become: a sum of products of X's integers with codes is (2 * count - center * sum) / 2 plus what the rest
 * of the zero takes. Codes are counted from the half code next to the zero (or next to where a minimum makes 0), in two
 * parts that are exact, so that weights that nearly cancel stay exact. */
struct row_scaling {
  float scale, shift, center;

  /* With fixed zeros the chunk's numbers have center and rest in them. */
  __device__ float add(const raw_numbers<false> &, const chunk_numbers &x, float low, float high, float total) const {
    const float part = fmaf(2.0f, low, -x.low),
                product = fmaf((float)(1 << low_planes), fmaf(2.0f, high, -x.high), part);
    return fmaf((product + x.sum) * x.unit, scale, total);
  }

  __device__ float add(const raw_numbers<true> &, const chunk_numbers &x, float low, float high, float total) const {
    const float part = fmaf(-center, x.low, 2.0f * low);
    const float product = fmaf((float)(1 << low_planes), fmaf(-center, x.high, 2.0f * high), part);
    return fmaf(product * x.unit, scale, fmaf(x.sum * x.unit, shift, total));
  }
};

/* Of row g (half 0) or g + 8. */
__device__ inline row_scaling scaling_of(const bits_numbers &, const raw_numbers<false> &raw, int half) {
  const __half2 two = *(const __half2 *)&raw.scales;
  return {half ? __high2float(two) : __low2float(two), 0.0f, 0.0f};
}

__device__ inline row_scaling scaling_of(const bits_numbers &a, const raw_numbers<true> &raw, int half) {
  const float scale = a.scales ? number_value(a.scale_type, half ? raw.scale.y : raw.scale.x) : 1.0f;
  const float step = 0.5f * a.step; /* half of it: 1/2 or 1 */
  if (a.zero == bits_zero_fixed) return {scale * step, scale * step * a.rest, a.center};
  const float zero = number_value(a.zero_type, half ? raw.zero.y : raw.zero.x);
  const float level = a.zero == bits_zero_minimum ? __fdividef(-zero, scale) : zero;
  const float center = fminf(fmaxf(rintf((level - a.offset) / step), 0.0f), a.most_center);
  const float value = fmaf(center, step, a.offset);
  const float shift = a.zero == bits_zero_minimum ? fmaf(value, scale, zero) : scale * (value - zero);
  return {scale * step, shift, center};
}

}  // namespace
}  // namespace lpg
