/* stripe: scales and zeros of a warp's rows, from a stage of the ring to registers. */
#pragma once

#include "stripe_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* One piece of 16 or 8 bytes of a warp's packed scales and zeros of a unit: a lane's part of the copies. The pieces of
 * all sections are counted through. Row tiles beyond the matrix repeat the last one; values beyond its K become zero.
 */
struct stripe_piece {
  const uint8_t *from; /* of unit 0 */
  int bytes, left;     /* from unit to unit; from there to the end of the row tile's values. bytes < 0: no piece */
  int units_each;
  int to, size;

  __device__ void set_rows(const stripe_args &a, int row_tile, int index) {
    bytes = -1;
#pragma unroll 1
    for (int i = 0; i < a.scale_data.sections; i++) {
      const scale_section &s = a.scale_data.section[i];
      const stripe_section &own = a.section[i];
      const int shift = s.slot_bytes < 16 ? 3 : 4, each = own.bytes >> shift;
      if (index >= 0 && index < LPG_STRIPE_ROW_TILES * each) {
        const int r = index >= each, in_row = (index - r * each) << shift;
        from = s.values + (int64_t)(min(row_tile + r, a.row_tiles - 1) >> s.row_shift) * s.row_bytes + in_row;
        bytes = own.units_each ? own.bytes : 0;
        units_each = own.units_each;
        left = s.row_bytes - in_row;
        to = own.offset + r * own.pitch + in_row;
        size = 1 << shift;
      }
      index -= LPG_STRIPE_ROW_TILES * each;
    }
  }

  __device__ void copy(int unit, uint32_t scales) const {
    if (bytes < 0) return;
    const int first = (units_each > 1 ? (int)((unsigned)unit / (unsigned)units_each) : unit) * bytes;
    if (size == 16) {
      copy16_async(scales + to, from + first, first < left);
    } else {
      copy8_async(scales + to, from + first, first < left);
    }
  }
};

/* The scales of a row tile's rows g and g + 8 that scaled weights take, in both halves of a word: times the row's power
 * of two, which keeps the products normal numbers and comes off the sums; of fp16 by bf16 X the sum of two numbers. */
template <class T>
struct stripe_multiplier {
  static constexpr bool by_e8m0 = T::multipliers == LPG_STRIPE_BY_E8M0;
  static constexpr bool is_sum = T::multipliers == LPG_STRIPE_BY_16_BITS && !T::has_powers;
  uint32_t power[2]; /* two factors of it; halves: rows g and g + 8. e8m0: log2 of each row's */
  uint32_t scale[2], low[2];

  __device__ void set_powers(const stripe_args &a, int row_tile, int g) {
    const int8_t *const exponents = a.exponents + min(row_tile, a.row_tiles - 1) * LPG_TILE_ROWS + g;
    const auto bits = [](int e) { return (uint32_t)(T::X::bias + e) << T::X::mantissa; };
    int e[2];
#pragma unroll
    for (int half = 0; half < 2; half++) e[half] = a.scale_exponent - exponents[8 * half];
    if (by_e8m0) {
      power[0] = (uint32_t)e[0];
      power[1] = (uint32_t)e[1];
      return;
    }
    const int most = 2 * T::X::bias - 1, first = min(e[0], most), second = min(e[1], most);
    power[0] = bits(first / 2) | bits(second / 2) << 16;
    power[1] = bits(first - first / 2) | bits(second - second / 2) << 16;
  }

  /* 1 over the power of row g + 8 half, as two factors: of e8m0 it may be beyond fp32's range. */
  __device__ float2 inverse(int half) const {
    const auto exponent = [&](uint32_t two) { return (int)(two >> (T::X::mantissa + 16 * half) & 31) - T::X::bias; };
    const int e = by_e8m0 ? (int)power[half] : exponent(power[0]) + exponent(power[1]);
    return make_float2(lpg_exp2i(-(e / 2)), lpg_exp2i(e / 2 - e));
  }

  /* two: the scales as they are packed. */
  __device__ void set(const stripe_args &a, uint32_t two) {
    if constexpr (by_e8m0) {
      scale[0] = power_of_code<typename T::X>(two & 255, (int)power[0]);
      scale[1] = power_of_code<typename T::X>(two >> 8, (int)power[1]);
      return;
    }
    if (T::multipliers == LPG_STRIPE_BY_E4M3) { /* to fp16, by fields, since 8.0 has no instruction; none is NaN */
      const uint32_t codes = two << 7 | two << 15, signs = two << 8 | two << 16;
      two = f16_x::multiply((codes & both(0x3f80)) | (signs & both(0x8000)), power_pair<f16_x>(8));
    }
    if constexpr (T::has_powers) {
      two = T::X::multiply(T::X::multiply(two, power[0]), power[1]);
    } else {
      const float2 f16 = __half22float2(f16_x::in(two));
      const uint2 parts = two_parts<typename T::X>(f16.x, f16.y);
      const uint32_t rest = a.quick_bf16 ? 0 : parts.y;
      two = a.quick_bf16 ? two : parts.x;
      low[0] = __byte_perm(rest, 0, 0x1010);
      low[1] = __byte_perm(rest, 0, 0x3232);
    }
    scale[0] = __byte_perm(two, 0, 0x1010);
    scale[1] = __byte_perm(two, 0, 0x3232);
  }

  __device__ uint32_t weights(uint32_t codes, int half) const {
    if constexpr (!is_sum) return T::X::multiply(codes, scale[half]);
    return T::X::fma(codes, scale[half], T::X::multiply(codes, low[half]));
  }
};

/* Of a row tile and scale group, for rows g and g + 8: weight = scale * (code - center) + shift. */
struct stripe_group {
  float2 scale, shift, center;
};

/* A warp's scales and zeros of a unit, from how they are packed to a table, an entry a lane at a time. */
template <class T>
struct stripe_scales {
  static constexpr int entries = T::row_tiles * T::ScaleGroups * 8;
  const stripe_args &a;
  const uint8_t *raw; /* the warp's part of the stage */
  stripe_group *table;
  int lane;

  __device__ const uint8_t *slot(int which, int r, int group, int slot_bytes) const {
    const stripe_section &own = a.section[which];
    return raw + own.offset + r * own.pitch + group * own.groups / T::ScaleGroups * slot_bytes;
  }

  template <bool Upper>
  __device__ float2 read(scale_role role, int r, int group, int g) const {
    const int which = a.scale_data.which[role];
    if (which < 0) return make_float2(1.0f, 1.0f);
    const scale_section &s = a.scale_data.section[which];
    const uint8_t *from = slot(which, r, group, s.slot_bytes);
    float2 value;
    const auto one = [&](auto reader) { value = reader(from, g); };
    if (Upper) {
      with_upper_reader(s.type, one);
    } else {
      with_reader(s.type, one);
    }
    return value;
  }

  /* The product of both levels, and what rounding it has lost, which counts where it cancels. */
  __device__ void both_levels(scale_role role, scale_role super, int r, int group, int g, float2 &value,
                              float2 &lost) const {
    const float2 low = read<false>(role, r, group, g), up = read<true>(super, r, group, g);
    value = make_float2(low.x * up.x, low.y * up.y);
    lost = make_float2(fmaf(low.x, up.x, -value.x), fmaf(low.y, up.y, -value.y));
  }

  /* The center next to the zero of a row, and what is left: with scale and zero (or minimum) and what they lost. */
  __device__ void center_row(float scale, float scale_lost, float zero, float zero_lost, float &center,
                             float &shift) const {
    const scales_args &s = a.scale_data;
    const bool minimum = s.mode == zero_minimum;
    const float level = minimum ? __fdividef(-zero, scale) : zero;
    center = fminf(fmaxf(rintf((level - s.offset) * s.inverse_step), 0.0f), s.most);
    const float value = fmaf(center, s.step, s.offset);
    shift = minimum ? fmaf(value, scale, zero) + fmaf(value, scale_lost, zero_lost) : scale * (value - zero);
  }

  /* Two values of 16 bits. */
  __device__ float2 quick_scale(uint32_t two) const {
    const float2 f16 = __half22float2(f16_x::in(two));
    return make_float2(a.quick_bf16 ? lpg_bits_f32(two << 16) : f16.x,
                       a.quick_bf16 ? lpg_bits_f32(two & 0xffff0000u) : f16.y);
  }

  /* As they are packed: the scales of rows g and g + 8, and their zeros of 8 bits. */
  __device__ uint32_t packed_scales(int r, int group) const {
    if (T::multipliers == LPG_STRIPE_BY_16_BITS) return ((const uint32_t *)slot(0, r, group, 32))[lane / 4];
    return ((const uint16_t *)slot(0, r, group, 16))[lane / 4];
  }
  __device__ uint32_t packed_zeros(int r, int group) const {
    return ((const uint16_t *)slot(1, r, group, 16))[lane / 4];
  }

  __device__ stripe_group convert(int r, int group, int g) const {
    const scales_args &s = a.scale_data;
    stripe_group to = {};
    if (a.quick) {
      to.scale = quick_scale(((const uint32_t *)slot(0, r, group, 32))[g]);
      const uint32_t zeros = ((const uint16_t *)slot(1, r, group, 16))[g];
      to.center = make_float2((float)(zeros & 0xff), (float)(zeros >> 8));
      return to;
    }
    float2 scale, scale_lost;
    both_levels(role_scale, role_super_scale, r, group, g, scale, scale_lost);
    to.scale = scale;
    if (!T::may_shift) return to;
    to.scale = make_float2(scale.x * s.factor, scale.y * s.factor);
    if (s.mode == zero_fixed) {
      to.shift = make_float2(scale.x * s.fixed_shift, scale.y * s.fixed_shift);
      to.center = make_float2(a.dequantiser.center, a.dequantiser.center);
      return to;
    }
    float2 zero, zero_lost;
    both_levels(role_zero, role_super_zero, r, group, g, zero, zero_lost);
    center_row(scale.x, scale_lost.x, zero.x, zero_lost.x, to.center.x, to.shift.x);
    center_row(scale.y, scale_lost.y, zero.y, zero_lost.y, to.center.y, to.shift.y);
    return to;
  }

  /* Fills the table. What the whole CTA has met behind has been read. */
  __device__ void fill() const {
    if (!T::Zeros && a.quick) return;
#pragma unroll 1
    for (int i = lane; i < entries; i += 32) table[i] = convert(i / 8 / T::ScaleGroups, i / 8 % T::ScaleGroups, i % 8);
    __syncwarp();
  }

  __device__ stripe_group load(int r, int group) const {
    const int g = lane / 4, at = (r * T::ScaleGroups + group) * 8 + g;
    if (T::Zeros) return table[at];
    /* No branch: it would stand among the products. What is not there is not read, since it may lie outside. */
    const uint8_t *const entry = (const uint8_t *)&table[at];
    const uint8_t *const packed = a.quick ? slot(0, r, group, 32) + g * 4 : entry;
    const float2 quick = quick_scale(*(const uint32_t *)packed), slow = *(const float2 *)entry;
    stripe_group to = {};
    to.scale = make_float2(a.quick ? quick.x : slow.x, a.quick ? quick.y : slow.y);
    return to;
  }
};

}  // namespace
}  // namespace lpg
