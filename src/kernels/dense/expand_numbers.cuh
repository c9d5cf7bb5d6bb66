/* Scales and zeros as floats, of types whose values and products fp32 holds exactly: all types on one level, fp16 and
 * integers of up to 8 bits on two. Bits and values are apart, so that all of a batch are read before any is used. */
#pragma once

#include "../groups.cuh"
#include "../widen.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

inline bool is_simple(lpgemm_dtype_t type, bool two_levels) {
  return type == 0 || type == LPGEMM_F16 || (lpg_is_integer_kind(type) && lpg_integer_step(type) == 1) ||
         (!two_levels && (type == LPGEMM_BF16 || type == LPGEMM_F32 || type == LPGEMM_E4M3 || type == LPGEMM_E8M0));
}

/* Whether all are that; most: the largest magnitude of the weights' values, which their powers of two depend on. */
inline bool are_simple(const lpgemm_weight_desc_t &d, double most) {
  const bool two = d.super_scale_type || d.super_zero_type;
  return most > 0x1p-60 && most < 0x1p60 && is_simple(d.scale_type, two) && is_simple(d.super_scale_type, two) &&
         is_simple(d.zero_type, two) && is_simple(d.super_zero_type, two);
}

/* The value of a number; upper: u4 of rows 8 .. 15. */
__device__ inline float simple_value(lpgemm_dtype_t type, uint32_t bits, bool upper) {
  if (type == LPGEMM_F16) return __half2float(__ushort_as_half((uint16_t)bits));
  if (type == LPGEMM_F32) return __uint_as_float(bits);
  if (type == LPGEMM_BF16) return lpg_bf16_to_f32((uint16_t)bits);
  if (type == LPGEMM_E8M0) return lpg_e8m0_to_f32((uint8_t)bits);
  if (type == LPGEMM_E4M3) return __half2float(__ushort_as_half((uint16_t)widen_e4m3(bits)));
  if (type == LPGEMM_UINT(4) && upper) bits >>= 4;
  const int sign = (int)lpg_stored_flip(type), mask = (1 << lpg_bits(type)) - 1; /* of two's complement */
  return (float)((((int)bits & mask) ^ sign) - sign);
}

/* A row's numbers of a section, as they are stored. */
struct simple_section {
  lpgemm_dtype_t type; /* 0: there are none */
  const uint8_t *first;

  __device__ simple_section(const groups_args &a, lpg_section_id id, lpgemm_dtype_t type, const lpg_axis &axis, int row)
      : type(type), first(a.section[id] + lpg_value_offset(type, axis.padded, row, 0)) {}

  __device__ uint32_t bits(uint32_t group) const {
    if (type == 0) return 0;
    const uint8_t *const at = first + (int64_t)group * lpg_slot_bytes(type);
    switch (lpg_bytes(type)) {
      case 4: return *(const uint32_t *)at;
      case 2: return *(const uint16_t *)at;
      default: return *at;
    }
  }
};

/* Of a group: types, or what is stored. */
struct simple_numbers {
  uint32_t scale, super_scale, zero, super_zero;
};

/* Scale and zero of a group, from their types and bits; what has no type is 1. Not in line: it is long, and there are
 * many kernels. */
static __device__ __noinline__ float2 simple_values(simple_numbers type, simple_numbers bits, bool upper) {
  const auto value = [&](uint32_t type, uint32_t bits) { return type ? simple_value(type, bits, upper) : 1.0f; };
  return make_float2(value(type.scale, bits.scale) * value(type.super_scale, bits.super_scale),
                     value(type.zero, bits.zero) * value(type.super_zero, bits.super_zero));
}

/* Scales and zeros of a row. */
struct simple_groups {
  simple_section scales, super_scales, zeros, super_zeros;
  uint32_t group_k, super_k;

  __device__ simple_groups(const groups_args &a, int row, uint32_t group_k)
      : scales(a, LPG_SECTION_SCALES, a.scale_type, a.group, row),
        super_scales(a, LPG_SECTION_SUPER_SCALES, a.super_scale_type, a.super, row),
        zeros(a, LPG_SECTION_ZEROS, a.zero_type, a.group, row),
        super_zeros(a, LPG_SECTION_SUPER_ZEROS, a.super_zero_type, a.super, row),
        group_k(group_k),
        super_k((uint32_t)min(a.super.k, (int64_t)INT32_MAX)) {}

  __device__ simple_numbers bits(uint32_t group) const {
    const uint32_t super = super_scales.type || super_zeros.type ? group * group_k / super_k : 0;
    return {scales.bits(group), super_scales.bits(super), zeros.bits(group), super_zeros.bits(super)};
  }

  __device__ simple_numbers types() const { return {scales.type, super_scales.type, zeros.type, super_zeros.type}; }
};

}  // namespace
}  // namespace lpg
