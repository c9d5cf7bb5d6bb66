/* Of each row of W, where one scale and one zero are for all of it: the scale, and the offset of its codes less the
 * zero. */
#pragma once

#include <cuda_fp16.h>

#include "../operand/scales_any.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct gemm8_rows {
  groups_args groups;
  int32_t n, offset; /* rows; offset of a stored code */

  /* Of the types that lpg_gemm8_finds_scales() names; 0 beyond the matrix. */
  __device__ float scale(int row) const {
    if (row >= n) return 0.0f;
    const uint32_t bits = section_bits(groups, LPG_SECTION_SCALES, groups.scale_type, groups.group, row, 0);
    switch (groups.scale_type) {
      case 0: return 1.0f;
      case LPGEMM_F32: return __uint_as_float(bits);
      case LPGEMM_F16: return __half2float(__ushort_as_half((uint16_t)bits));
      default: return __uint_as_float(bits << 16); /* bf16 */
    }
  }

  __device__ int offset_less_zero(int row) const {
    if (row >= n) return 0;
    if (groups.zero == LPGEMM_ZERO_CONSTANT) return offset - (int)groups.zero_constant;
    if (groups.zero != LPGEMM_ZERO_PER_GROUP) return offset;
    return offset - (int)section_bits(groups, LPG_SECTION_ZEROS, groups.zero_type, groups.group, row, 0);
  }
};

inline gemm8_rows make_gemm8_rows(const lpg_call &call) {
  const lpgemm_weight_desc_t &d = call.problem.weights->desc;
  return {make_groups(call), (int32_t)d.n, lpg_integer_offset(d.type)};
}

}  // namespace
}  // namespace lpg
