/* Scales and zeros of groups, of any types, for kernels that write dequantised weights to memory. */
#pragma once

#include "../operand/limits.h"
#include "../operand/scales.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int most_groups = LPG_BLOCK_K / LPG_STEP_K; /* the most that a k block touches */

/* A section of the packed weights; type 0: absent. */
struct expand_section {
  const uint8_t *values;
  lpgemm_dtype_t type;
  int slot_bytes, row_bytes; /* of the 16 values of a row tile and group; of all groups of a row tile */
};

/* The scales and the zeros, each times a value of the upper level if there is one. */
struct expand_sections {
  expand_section level[2][2]; /* [zeros][upper] */
  float zero_constant;
  int group_k, groups_each; /* k's of a group; groups of a super-group */
  int row_shift;            /* 2^this row tiles share them */

  /* Prefetches to L2 what a CTA reads of the lower level: it lies together. */
  __device__ void prefetch(int row_tile, int thread, int threads) const {
    for (int zeros = 0; zeros < 2; zeros++) {
      const expand_section &s = level[zeros][0];
      if (s.type == 0) continue;
      for (int at = thread * 128; at < s.row_bytes; at += threads * 128) {
        prefetch_to_l2(s.values + (int64_t)(row_tile >> row_shift) * s.row_bytes + at);
      }
    }
  }
};

/* Reads groups first .. first + count - 1, at most 16, for rows g and g + 8 of a row tile to to[group][g]: both scales,
 * then both zeros. By a whole warp. Not inlined: it is long, and there are many kernels. */
static __device__ __noinline__ void load_scales(const expand_sections &a, int row_tile, int first, int count,
                                                float4 (*to)[LPG_TILE_ROWS / 2]) {
  constexpr int passes = most_groups / 4; /* a quarter of the warp has a group at a time, a lane two rows */
  const int lane = threadIdx.x % 32, g = lane % 8, own = lane / 8;
  float2 value[2][passes];
#pragma unroll
  for (int zeros = 0; zeros < 2; zeros++) {
    const float absent = zeros && a.level[1][0].type == 0 ? a.zero_constant : 1.0f;
#pragma unroll
    for (int i = 0; i < passes; i++) value[zeros][i] = make_float2(absent, absent);
#pragma unroll 1
    for (int upper = 0; upper < 2; upper++) {
      const expand_section &s = a.level[zeros][upper];
      if (s.type == 0) continue;
      const uint8_t *const values = s.values + (int64_t)(row_tile >> a.row_shift) * s.row_bytes;
      int place[passes];
#pragma unroll
      for (int i = 0; i < passes; i++) {
        const int group = first + min(4 * i + own, count - 1);
        place[i] = (upper ? (unsigned)group / (unsigned)a.groups_each : group) * s.slot_bytes;
      }
      with_reader(s.type, [&](auto read) {
#pragma unroll
        for (int i = 0; i < passes; i++) {
          if (4 * i >= count) break;
          const float2 two = read(values + place[i], g);
          value[zeros][i].x *= two.x;
          value[zeros][i].y *= two.y;
        }
      });
    }
  }
#pragma unroll
  for (int i = 0; i < passes; i++) {
    if (4 * i + own >= count) break;
    to[4 * i + own][g] = make_float4(value[0][i].x, value[0][i].y, value[1][i].x, value[1][i].y);
  }
}

/* ---- on the host ---- */

inline expand_sections make_sections(const lpg_call &call) {
  const lpg_section_id id[2][2] = {{LPG_SECTION_SCALES, LPG_SECTION_SUPER_SCALES},
                                   {LPG_SECTION_ZEROS, LPG_SECTION_SUPER_ZEROS}}; /* static, it would be a symbol */
  const lpg_packed &weights = *call.problem.weights;
  expand_sections a = {};
  a.zero_constant = weights.desc.zero_constant;
  a.row_shift = lpg_scale_shift(&weights);
  a.group_k = (int)(weights.group.k < INT32_MAX ? weights.group.k : INT32_MAX);
  a.groups_each = weights.super.count > 1 ? (int)(weights.super.k / a.group_k) : INT32_MAX;
  for (int i = 0; i < 4; i++) {
    expand_section &s = a.level[i / 2][i % 2];
    s.type = lpg_section_type(&weights.desc, id[i / 2][i % 2]);
    if (s.type == 0) continue;
    s.values = call.section[id[i / 2][i % 2]];
    s.slot_bytes = lpg_slot_bytes(s.type);
    s.row_bytes = (int)(lpg_section_axis(&weights, id[i / 2][i % 2])->padded * s.slot_bytes);
  }
  return a;
}

/* The upper level, as if it were the only one. */
inline expand_sections upper_sections(expand_sections a) {
  for (int zeros = 0; zeros < 2; zeros++) {
    a.level[zeros][0] = a.level[zeros][1];
    a.level[zeros][1].type = 0;
  }
  a.group_k = a.groups_each < INT32_MAX / a.group_k ? a.group_k * a.groups_each : INT32_MAX;
  return a;
}

}  // namespace
}  // namespace lpg
