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

/* A row's numbers of a section. */
struct simple_numbers {
  lpgemm_dtype_t type; /* 0: there are none */
  const uint8_t *first;

  __device__ simple_numbers(const groups_args &a, lpg_section_id id, lpgemm_dtype_t type, const lpg_axis &axis, int row)
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

  __device__ float value(uint32_t bits, float absent) const {
    if (type == 0) return absent;
    if (type == LPGEMM_F16) return __half2float(__ushort_as_half((uint16_t)bits));
    if (type == LPGEMM_F32) return __uint_as_float(bits);
    if (type == LPGEMM_BF16) return lpg_bf16_to_f32((uint16_t)bits);
    if (type == LPGEMM_E8M0) return lpg_e8m0_to_f32((uint8_t)bits);
    if (type == LPGEMM_E4M3) return __half2float(__ushort_as_half((uint16_t)widen_e4m3(bits)));
    if (type == LPGEMM_UINT(4) && threadIdx.x % LPG_TILE_ROWS >= 8) bits >>= 4;    /* a lane's row: see load_groups() */
    const int sign = (int)lpg_stored_flip(type), mask = (1 << lpg_bits(type)) - 1; /* of two's complement */
    return (float)(((int)bits & mask ^ sign) - sign);
  }
};

/* The bits of a group's numbers, as they are stored. */
struct simple_bits {
  uint32_t scale, super_scale, zero, super_zero;
};

/* Scales and zeros of a row. */
struct simple_groups {
  simple_numbers scales, super_scales, zeros, super_zeros;
  uint32_t group_k, super_k;
  float zero_constant;

  __device__ simple_groups(const groups_args &a, int row, uint32_t group_k)
      : scales(a, LPG_SECTION_SCALES, a.scale_type, a.group, row),
        super_scales(a, LPG_SECTION_SUPER_SCALES, a.super_scale_type, a.super, row),
        zeros(a, LPG_SECTION_ZEROS, a.zero_type, a.group, row),
        super_zeros(a, LPG_SECTION_SUPER_ZEROS, a.super_zero_type, a.super, row),
        group_k(group_k),
        super_k((uint32_t)min(a.super.k, (int64_t)INT32_MAX)),
        zero_constant(a.zero_constant) {}

  __device__ simple_bits bits(uint32_t group) const {
    const uint32_t super = super_scales.type || super_zeros.type ? group * group_k / super_k : 0;
    return {scales.bits(group), super_scales.bits(super), zeros.bits(group), super_zeros.bits(super)};
  }

  /* Scale and zero. */
  __device__ float2 values(const simple_bits &bits) const {
    const float scale = scales.value(bits.scale, 1.0f) * super_scales.value(bits.super_scale, 1.0f);
    if (!zeros.type) return make_float2(scale, zero_constant);
    return make_float2(scale, zeros.value(bits.zero, 0.0f) * super_zeros.value(bits.super_zero, 1.0f));
  }
};

}  // namespace
}  // namespace lpg
