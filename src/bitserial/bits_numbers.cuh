/* Scales and zeros of the bits kernels: each lane has the one row and chunk whose sum it brings together. */
#pragma once

#include <cuda_fp16.h>

#include "../kernels/numbers.cuh"
#include "bits_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* As they are packed. */
struct raw_numbers {
  uint32_t scale, zero;
};

/* The bits of number `slot` of a row tile's 16. */
__device__ inline uint32_t load_bits(const uint8_t *slots, int slot_bytes, int slot) {
  switch (slot_bytes) {
    case LPG_TILE_ROWS * 4: return __ldg((const uint32_t *)slots + slot);
    case LPG_TILE_ROWS * 2: return __ldg((const unsigned short *)slots + slot);
    default: return __ldg(slots + slot);
  }
}

/* Of row tile row_tile for the lane's chunk; slot is the lane's row. */
template <class T>
__device__ inline raw_numbers load_numbers_of(const bits_numbers &a, int row_tile, int chunk, int slot) {
  raw_numbers raw = {0x3c00u, 0}; /* 1 */
  const int group = min(chunk >> a.group_shift, a.last_group);
  if (!T::General) {
    if (a.scales) {
      const uint8_t *const slots = a.scales + row_tile * a.scale_row + group * (LPG_TILE_ROWS * 2);
      raw.scale = __ldg((const unsigned short *)slots + slot);
    }
    return raw;
  }
  if (a.scales) {
    raw.scale = load_bits(a.scales + row_tile * a.scale_row + group * a.scale_slot, a.scale_slot, slot);
  }
  if (a.zeros) raw.zero = load_bits(a.zeros + row_tile * a.zero_row + group * a.zero_slot, a.zero_slot, slot);
  return raw;
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

/* What a sum of products with codes becomes: scale * (2 * sum - center * sum of X) + shift * sum of X. */
struct row_scaling {
  float scale, shift;
  int center;
};

/* Codes are counted from the half code next to the zero (or next to where a minimum makes 0), exactly; what is left of
 * the zero goes on the sum of X. So weights that nearly cancel stay exact. */
template <class T>
__device__ inline row_scaling scaling_of(const bits_numbers &a, const raw_numbers &raw) {
  if (!T::General) {
    return {__half2float(__ushort_as_half((unsigned short)raw.scale)), 0.0f, a.center};
  }
  const float scale = a.scales ? number_value(a.scale_type, raw.scale) : 1.0f;
  const float half = 0.5f * a.step; /* of a step: 1/2 or 1 */
  if (a.zero == bits_zero_fixed) return {scale * half, scale * half * a.rest, a.center};
  const float zero = number_value(a.zero_type, raw.zero);
  const float level = a.zero == bits_zero_minimum ? __fdividef(-zero, scale) : zero;
  const float center = fminf(fmaxf(rintf((level - a.offset) / half), 0.0f), (float)a.most_center);
  const float value = fmaf(center, half, a.offset);
  const float shift = a.zero == bits_zero_minimum ? fmaf(value, scale, zero) : scale * (value - zero);
  return {scale * half, shift, (int)center};
}

}  // namespace
}  // namespace lpg
