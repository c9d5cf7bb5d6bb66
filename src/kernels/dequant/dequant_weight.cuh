/* What a code becomes in an image (dequant_expand.cu): its value, the zeros and scales of its group, the rounding. */
#pragma once

#include "../../layouts/unit.h"
#include "../operand/expand.h"
#include "../operand/x_type.cuh"
#include "../prim/logic.cuh"
#include "dequant_plan.h"
#include "dequant_scales.cuh"

#include <cuda_fp8.h>

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- types of images: how two neighbouring values are rounded ---- */

template <class X>
struct half_image {
  using pair = uint32_t;
  static constexpr bool scaled = true, wide_range = X::exponent == 8;
  __device__ static pair round(float a, float b) { return X::round_two(a, b); }
};

struct tf32_image {
  using pair = uint2;
  static constexpr bool scaled = true, wide_range = true;
  __device__ static pair round(float a, float b) { return make_uint2(tf32_value(a), tf32_value(b)); }
};

struct i8_image {
  using pair = uint16_t;
  static constexpr bool scaled = false, wide_range = true;
  __device__ static pair round(float a, float b) { /* integers: their bits are the lowest of 1.5 * 2^23 + x */
    return (uint16_t)__byte_perm(__float_as_uint(a + 12582912.0f), __float_as_uint(b + 12582912.0f), 0x0040);
  }
};

struct e4m3_image {
  using pair = uint16_t;
  static constexpr bool scaled = false, wide_range = true;
  __device__ static pair round(float a, float b) {
    return __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, __NV_E4M3);
  }
};

/* k's of a stage. */
template <class Image>
constexpr int stage_k_of = LPG_DEQUANT_STAGE_BYTES * 2 / (int)sizeof(typename Image::pair);

/* ---- what the kernel is called with, and its shared memory ---- */

struct expand_args {
  lpg_expand_scaling scaling;
  expand_sections groups;
  bool minima;
  lpgemm_dtype_t type;
  float codebook[16];
  float offset;          /* integers: value = stored + offset; here less 2^23 (values_of) */
  int value_exponent;    /* other types: values times 2^-this and scales times 2^this, if the values are far from 1 */
  expand_sections bound; /* for scaling.finds: the upper level of scales and zeros, as if it were the only one */
  double most, scale_most, zero_most; /* and the largest magnitudes: of values, and of codes of the lower level */
  const uint8_t *codes;
  const int8_t *exponents; /* of rows; NULL: all 0 */
  int64_t row_bytes;       /* bytes of the codes of a row tile */
  int32_t row_vectors;     /* the same in vectors of 512 bytes */
  int32_t n, k, k_stages, first_row_tile;
  uint8_t *image;
  int32_t in_pieces; /* the image is of pieces (expand.h), else of work tiles (dequant_plan.h) */
  float *scale_data; /* the factors of rows' sums that are found, or the table of scales; of pieces all factors */
};

constexpr int piece_bytes = LPG_TILE_ROWS * LPG_DEQUANT_STAGE_BYTES; /* a row tile's part of a stage */

struct __align__(LPG_DEQUANT_STAGE_BYTES) expand_area { /* a warp's own shared memory */
  uint8_t piece[piece_bytes];
  /* Of rows g and g + 8: scales and zeros, which set_centers() turns into scales and negated centers; and rests. A
   * group_walk reads one group more than there are. */
  float4 scale_data[most_groups + 1][LPG_TILE_ROWS / 2];
  float2 rests[most_groups + 1][LPG_TILE_ROWS / 2];
};

/* ---- weights ---- */

/* Values of two codes. Integers of step 1: the code plus 2^23, which the center takes off again. All others come from a
 * table. */
template <bool Integers>
struct values_of {
  const float *table;

  __device__ float2 both_of(uint32_t two) const {
    if (!Integers) return make_float2(table[two & 0xffffu], table[two >> 16]);
    const uint32_t upper = 0x4b000000u;
    return make_float2(__uint_as_float(__byte_perm(two, upper, 0x7610)),
                       __uint_as_float(__byte_perm(two, upper, 0x7632)));
  }
};

/* Makes centers and rests of the zeros of a k block; a lane has two rows of a group at a time. A weight is
 * (value - center) * scale + rest, rounded once. The center of integers is an integer, so that the difference is exact;
 * what is left of the zero is in the rest. */
template <bool Scaled, bool Integers>
__device__ inline void set_centers(const expand_args &a, const int *powers, int groups, int lane, expand_area &area) {
  const bool scaled = Scaled && !a.scaling.on_rows && !a.scaling.in_table;
  const float to_values = lpg_exp2i(-a.value_exponent);
  float power[2][2]; /* a row's power of two as a product of two, since it may be beyond fp32 */
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int e = powers[lane % 8 + 8 * half] + a.value_exponent;
    power[half][0] = lpg_exp2i(e >> 1);
    power[half][1] = lpg_exp2i(e - (e >> 1));
  }
#pragma unroll 1
  for (int group = lane / 8; group < groups; group += 4) {
    float4 &at = area.scale_data[group][lane % 8];
    float scale[2] = {at.x, at.y}, zero[2] = {at.z, at.w}, rest[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const auto with_power = [&](float x) { return x * power[half][0] * power[half][1]; };
      scale[half] = scaled ? with_power(scale[half]) : 1.0f;
      rest[half] = a.minima ? with_power(zero[half]) * to_values : 0.0f;
      const float center = a.minima ? 0.0f : -zero[half];
      if (Integers) { /* a zero too large to have a fraction in fp32 has no rest */
        const float nearest = fabsf(center) < 4194304.0f ? rintf(center) : center;
        if (!a.minima) rest[half] = (center - nearest) * scale[half];
        zero[half] = nearest + a.offset;
      } else {
        zero[half] = center * to_values;
      }
    }
    at = make_float4(scale[0], scale[1], zero[0], zero[1]);
    area.rests[group][lane % 8] = make_float2(rest[0], rest[1]);
  }
}

/* Walks through the groups of a k block, 16 k a step, for rows g and g + 8. */
template <bool Scaled>
struct group_walk {
  const float4 *scale_data;
  const float2 *rests;
  int left, group_k; /* left: k's of the group */
  float4 at;
  float2 rest;

  __device__ group_walk(const expand_args &a, int k0, int lane, const expand_area &area)
      : scale_data(&area.scale_data[0][lane / 4]), rests(&area.rests[0][lane / 4]), group_k(a.groups.group_k) {
    left = group_k - (int)((uint32_t)k0 % (uint32_t)group_k) + LPG_STEP_K;
    load();
  }

  __device__ void load() {
    at = *scale_data;
    rest = *rests;
    scale_data += LPG_TILE_ROWS / 2;
    rests += LPG_TILE_ROWS / 2;
  }

  /* Before every step. Behind the last group there is room for one more, so stepping past it does no
   * harm. */
  __device__ void step() {
    left -= LPG_STEP_K;
    if (left > 0) return;
    left = group_k;
    load();
  }

  __device__ float weight(float value, int half) const {
    const float difference = value + (half ? at.w : at.z), left = half ? rest.y : rest.x;
    return Scaled ? fmaf(difference, half ? at.y : at.x, left) : difference + left;
  }
};

}  // namespace
}  // namespace lpg
