/* Scale and zero of a group, of any type, read straight from the packed weights: for kernels that need them rarely. */
#pragma once

#include "../../internal.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct groups_args {
  lpgemm_dtype_t scale_type, super_scale_type, zero_type, super_zero_type;
  lpgemm_zero_t zero;
  float zero_constant;
  int tiles_a_scale; /* row tiles that share scales and zeros */
  lpg_axis group, super;
  const uint8_t *section[LPG_SECTIONS];
};

inline groups_args make_groups(const lpg_call &call) {
  const lpg_packed &weights = *call.problem.weights;
  const lpgemm_weight_desc_t &d = weights.desc;
  groups_args a = {d.scale_type,    d.super_scale_type,         d.zero_type,   d.super_zero_type, d.zero,
                   d.zero_constant, (int)weights.tiles_a_scale, weights.group, weights.super,     {}};
  for (int i = 0; i < LPG_SECTIONS; i++) a.section[i] = call.section[i];
  return a;
}

/* The stored bits of a section's value for (row, k); 0 if the weights have no such section. */
__device__ inline uint32_t section_bits(const groups_args &a, lpg_section_id id, lpgemm_dtype_t type,
                                        const lpg_axis &axis, int64_t row, int64_t k) {
  if (type == 0) return 0;
  const uint32_t tile = (uint32_t)(row / LPG_TILE_ROWS) / (uint32_t)a.tiles_a_scale;
  const int64_t slot_row = (int64_t)tile * LPG_TILE_ROWS + row % LPG_TILE_ROWS;
  const uint8_t *at = a.section[id] + lpg_value_offset(type, axis.padded, slot_row, (uint32_t)k / (uint32_t)axis.k);
  if (type == LPGEMM_UINT(4)) return *at >> (row % LPG_TILE_ROWS < 8 ? 0 : 4) & 15;
  switch (lpg_bytes(type)) {
    case 4: return *(const uint32_t *)at;
    case 2: return *(const uint16_t *)at;
    default: return *at;
  }
}

/* The product of a group's value and its super-group's, exact; `absent` if there is none. */
__device__ inline double scale_at(lpgemm_dtype_t type, uint32_t bits, lpgemm_dtype_t super_type, uint32_t super_bits,
                                  float absent) {
  if (type == 0) return absent;
  const double value = lpg_load(type, &bits, 0);
  return super_type == 0 ? value : value * lpg_load(super_type, &super_bits, 0);
}

/* Scale and zero (or minimum) of one scale group. */
struct group_scales {
  double scale, zero;
};

/* Loads everything before it uses anything, so that the loads overlap. */
__device__ inline group_scales group_at(const groups_args &a, int64_t row, int64_t k) {
  const uint32_t scale = section_bits(a, LPG_SECTION_SCALES, a.scale_type, a.group, row, k);
  const uint32_t super_scale = section_bits(a, LPG_SECTION_SUPER_SCALES, a.super_scale_type, a.super, row, k);
  const uint32_t zero = section_bits(a, LPG_SECTION_ZEROS, a.zero_type, a.group, row, k);
  const uint32_t super_zero = section_bits(a, LPG_SECTION_SUPER_ZEROS, a.super_zero_type, a.super, row, k);
  return {scale_at(a.scale_type, scale, a.super_scale_type, super_scale, 1.0f),
          scale_at(a.zero_type, zero, a.super_zero_type, super_zero, a.zero_constant)};
}

}  // namespace
}  // namespace lpg
