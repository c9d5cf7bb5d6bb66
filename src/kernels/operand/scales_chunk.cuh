/* Scales and zeros for kernels that take X as fixed point (gemv1, lut): those of a chunk (128 k), which a lane reads
 * for two rows of a row tile, g and g + 8, straight from the packed weights. */
#pragma once

#include <cuda_fp16.h>

#include "scales.cuh"
#include "x_fixed.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

enum chunk_zero { chunk_zero_fixed, chunk_zero_per_group, chunk_zero_minimum };

/* Where scales and zeros lie, and what follows from the type of the weights. */
struct chunk_scales_args {
  const uint8_t *scales, *zeros; /* NULL: absent */
  lpgemm_dtype_t scale_type, zero_type;
  chunk_zero zero;
  int scale_slot, zero_slot; /* bytes of the 16 values of a row tile and scale group */
  int64_t scale_row, zero_row;
  int group_shift, last_group; /* the group of chunk c is min(c >> group_shift, last_group) */
  float step, offset;          /* value of a stored code = step * code + offset */
  float most_center;           /* of `center`: twice the largest code */
  float center, rest; /* fixed zeros, in halves of a step: the center (twice a code, or between two codes), and what is
                         left of the zero */
};

/* Fills it, on the host. */
static void set_chunk_scales(const lpg_call &call, chunk_scales_args &scale_data) {
  const lpg_packed &weights = *call.problem.weights;
  const lpgemm_weight_desc_t &d = weights.desc;
  scale_data.scales = call.section[LPG_SECTION_SCALES];
  scale_data.zeros = call.section[LPG_SECTION_ZEROS];
  scale_data.scale_type = d.scale_type;
  scale_data.zero_type = d.zero_type;
  scale_data.scale_slot = d.scale_type ? lpg_slot_bytes(d.scale_type) : 0;
  scale_data.zero_slot = d.zero_type ? lpg_slot_bytes(d.zero_type) : 0;
  scale_data.scale_row = weights.group.padded * scale_data.scale_slot;
  scale_data.zero_row = weights.group.padded * scale_data.zero_slot;
  scale_data.last_group = weights.group.count > 0 ? (int)weights.group.count - 1 : 0;
  while (weights.group.count > 1 && LPG_CHUNK_K << scale_data.group_shift < weights.group.k) scale_data.group_shift++;
  scale_data.zero = d.zero == LPGEMM_ZERO_PER_GROUP ? chunk_zero_per_group
                    : d.zero == LPGEMM_ZERO_MINIMUM ? chunk_zero_minimum
                                                    : chunk_zero_fixed;
  scale_data.step = (float)lpg_integer_step(d.type);
  scale_data.offset = (float)lpg_integer_offset(d.type);
  scale_data.most_center = (float)(2 * ((1 << weights.bits) - 1));
  const double zero = d.zero == LPGEMM_ZERO_CONSTANT ? (double)d.zero_constant : 0.0, half = 0.5 * scale_data.step;
  const double center = rint((zero - scale_data.offset) / half);
  scale_data.center = (float)fmin(fmax(center, 0.0), (double)scale_data.most_center);
  scale_data.rest = (float)((scale_data.center * half + scale_data.offset - zero) / half);
}

/* As they are stored, for rows g and g + 8. Without General: two fp16 scales in one word, and no zeros. */
template <bool General>
struct raw_scales {
  uint32_t scales;
};

template <>
struct raw_scales<true> {
  uint2 scale, zero;
};

/* The bits of values 2 g and 2 g + 1 of a row tile's 16, which are rows g and g + 8. */
__device__ inline uint2 load_two(const uint8_t *values, int slot_bytes, int g) {
  switch (slot_bytes) {
    case LPG_TILE_ROWS * 4: return __ldg((const uint2 *)values + g);
    case LPG_TILE_ROWS * 2: {
      const uint32_t two = __ldg((const uint32_t *)values + g);
      return make_uint2(two & 0xffffu, two >> 16);
    }
    default: {
      const uint32_t two = __ldg((const unsigned short *)values + g);
      return make_uint2(two & 0xffu, two >> 8);
    }
  }
}

/* `scales` and `zeros`: those of the row tile's first group. */
__device__ inline void load_raw(const chunk_scales_args &a, const uint8_t *scales, const uint8_t *, int group, int g,
                                raw_scales<false> &raw) {
  raw.scales = 0x3c003c00u; /* 1 */
  if (a.scales) raw.scales = __ldg((const uint32_t *)(scales + group * (LPG_TILE_ROWS * 2)) + g);
}

__device__ inline void load_raw(const chunk_scales_args &a, const uint8_t *scales, const uint8_t *zeros, int group,
                                int g, raw_scales<true> &raw) {
  if (a.scales) raw.scale = load_two(scales + group * a.scale_slot, a.scale_slot, g);
  if (a.zeros) raw.zero = load_two(zeros + group * a.zero_slot, a.zero_slot, g);
}

}  // namespace
}  // namespace lpg
