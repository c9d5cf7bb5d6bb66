/* Scales and zeros of a block of columns, from the packed form to fp32 in a warp's own table in shared memory.
 *
 * A weight is factor * d + rest, times its scale, plus its minimum, where d is what the decoder gives. The sum over a
 * group is then scale * sum(d x) + shift * sum(x). To keep weights exact that nearly cancel, d is counted from the
 * integer next to the group's zero, and only what is left of the zero goes into shift. */
#pragma once

#include "decode_plan.h"
#include "prim/async.cuh"
#include "prim/logic.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int block_k = LPG_DECODE_BLOCK_K;

/* One section as a warp reads it, block after block. */
struct number_section {
  const uint8_t *values;
  lpgemm_dtype_t type;
  int slot_bytes;  /* of the 16 values of a row tile and group */
  int row_bytes;   /* of all groups of a row tile */
  int groups;      /* of a block, at least one */
  int block_bytes; /* of them */
  int blocks_each; /* blocks that share a group; 0: all of them */
  int bytes;       /* of a block of a row tile, in a stage */
  int offset;      /* of the first row tile's, in a stage */
};

enum number_role { role_scale, role_super_scale, role_zero, role_super_zero, number_roles };
enum zero_mode { zero_fixed, zero_per_group, zero_minimum };

struct numbers_args {
  number_section section[number_roles];
  int sections;            /* that there are */
  int which[number_roles]; /* the section of each role; -1: absent */
  int only_f16_scales;     /* and nothing else: the common case */
  int one_copy;            /* one section, of which each lane copies at most 16 bytes a block */
  zero_mode mode;
  float factor; /* weight = factor * d + rest */
  float offset; /* of a stored integer: value = step * stored + offset */
  float step;
  float most;        /* the largest center */
  float fixed_shift; /* zero_fixed: shift = scale * this */
  int has_shift;     /* fixed_shift is not 0, or zeros differ */
};

/* Copies a block's values of row tiles row_tile .. row_tile + RowTiles - 1 to the stage at `to`; those from row_tiles
 * on are zero. */
template <int RowTiles>
__device__ inline void copy_numbers(const numbers_args &a, int row_tile, int row_tiles, int block, uint32_t to,
                                    int lane) {
#pragma unroll 1
  for (int i = 0; i < a.sections; i++) {
    const number_section &s = a.section[i];
    const int first = s.blocks_each == 1 ? block * s.block_bytes
                      : s.blocks_each    ? block / s.blocks_each * s.block_bytes
                                         : 0;
    const int piece = s.slot_bytes < 16 ? 8 : 16;
#pragma unroll
    for (int r = 0; r < RowTiles; r++) {
      const uint8_t *from = s.values + (int64_t)(row_tile + r) * s.row_bytes + first;
      const int left = row_tile + r < row_tiles ? s.row_bytes - first : 0;
#pragma unroll 1
      for (int at = lane * piece; at < s.block_bytes; at += 32 * piece) {
        if (piece == 16) {
          copy16_async(to + s.offset + r * s.bytes + at, from + at, at < left);
        } else {
          copy8_async(to + s.offset + r * s.bytes + at, from + at, at < left);
        }
      }
    }
  }
}

__device__ inline float e4m3_value(uint32_t code) {
  const uint32_t half = (code & 0x80u) << 8 | (code & 0x7fu) << 7;
  const float value = __half2float(__ushort_as_half((unsigned short)half)) * 256.0f;
  return (code & 0x7fu) == 0x7fu ? NAN : value;
}

/* The values of rows g and g + 8. Not inlined: instructions that most launches never run are best out of the way. */
static __device__ __noinline__ float2 load_two(lpgemm_dtype_t type, const uint8_t *slot, int g) {
  switch (type) {
    case LPGEMM_F16: return __half22float2(((const __half2 *)slot)[g]);
    case LPGEMM_BF16: {
      const uint32_t two = ((const uint32_t *)slot)[g];
      return make_float2(lpg_bits_f32(two << 16), lpg_bits_f32(two & 0xffff0000u));
    }
    case LPGEMM_F32: return ((const float2 *)slot)[g];
    case LPGEMM_E4M3: return make_float2(e4m3_value(slot[2 * g]), e4m3_value(slot[2 * g + 1]));
    case LPGEMM_UINT(4): return make_float2((float)(slot[g] & 15), (float)(slot[g] >> 4));
    default: return make_float2(lpg_load(type, slot, 2 * g), lpg_load(type, slot, 2 * g + 1));
  }
}

/* What one row has for one group. */
struct row_numbers {
  float scale, shift, center;
};

/* scale_code * super_scale, zero_code * super_zero: each product's rounding error counts where the two cancel. */
__device__ inline row_numbers combine(const numbers_args &a, float scale_code, float super_scale, float zero_code,
                                      float super_zero) {
  row_numbers n = {};
  const float scale = scale_code * super_scale;
  n.scale = scale * a.factor;
  if (a.mode == zero_fixed) {
    n.shift = scale * a.fixed_shift;
    return n;
  }
  const float zero = zero_code * super_zero;
  const float level = a.mode == zero_minimum ? -zero / scale : zero;
  n.center = fminf(fmaxf(rintf((level - a.offset) / a.step), 0.0f), a.most);
  const float value = fmaf(n.center, a.step, a.offset);
  if (a.mode == zero_minimum) {
    const float scale_error = fmaf(scale_code, super_scale, -scale), zero_error = fmaf(zero_code, super_zero, -zero);
    n.shift = fmaf(value, scale, zero) + fmaf(value, scale_error, zero_error);
  } else {
    n.shift = scale * (value - zero);
  }
  return n;
}

/* The warp's table: for each row tile, granule of columns and g, what rows g and g + 8 have. */
struct number_table {
  float2 *scale, *shift;
  uint32_t *center; /* two numbers of X's type; used with zeros that differ */
};

/* What a lane does for every block in the common case, which is fp16 scales and nothing else. */
struct f16_scales {
  int at, stride; /* of the lane's pairs in a stage */
};

template <int RowTiles, int Granules>
__device__ inline f16_scales find_f16_scales(const numbers_args &a, int lane) {
  const number_section &s = a.section[0];
  const int groups = s.groups, granule = lane / 8;
  return {keep(s.offset + granule / Granules * s.bytes + granule % Granules * groups / Granules * 32 + lane % 8 * 4),
          (4 * groups + Granules - 1) / Granules * 32};
}

/* Fills the table of RowTiles row tiles and Granules granules a block from a stage. */
template <class X, int RowTiles, int Granules>
__device__ inline void convert_numbers(const numbers_args &a, const f16_scales &scales, const uint8_t *stage,
                                       const number_table &table, int lane) {
  constexpr int pairs = RowTiles * Granules * 8;
  if (a.only_f16_scales) {
#pragma unroll
    for (int i = 0; i < (pairs + 31) / 32; i++) {
      const int p = lane + 32 * i;
      if (pairs % 32 != 0 && p >= pairs) continue;
      const float2 scale = __half22float2(*(const __half2 *)(stage + scales.at + i * scales.stride));
      table.scale[p] = make_float2(scale.x * a.factor, scale.y * a.factor);
      if (a.has_shift) table.shift[p] = make_float2(scale.x * a.fixed_shift, scale.y * a.fixed_shift);
    }
    return;
  }
#pragma unroll 1
  for (int p = lane; p < pairs; p += 32) {
    const int g = p % 8, granule = p / 8 % Granules, row_tile = p / 8 / Granules;
    float2 value[number_roles];
#pragma unroll
    for (int role = 0; role < number_roles; role++) {
      value[role] = make_float2(role == role_zero ? 0.0f : 1.0f, role == role_zero ? 0.0f : 1.0f);
      if (a.which[role] < 0) continue;
      const number_section &s = a.section[a.which[role]];
      const int group = granule * s.groups / Granules;
      value[role] = load_two(s.type, stage + s.offset + row_tile * s.bytes + group * s.slot_bytes, g);
    }
    const row_numbers first =
        combine(a, value[role_scale].x, value[role_super_scale].x, value[role_zero].x, value[role_super_zero].x);
    const row_numbers second =
        combine(a, value[role_scale].y, value[role_super_scale].y, value[role_zero].y, value[role_super_zero].y);
    table.scale[p] = make_float2(first.scale, second.scale);
    if (a.has_shift) table.shift[p] = make_float2(first.shift, second.shift);
    if (a.mode != zero_fixed) {
      table.center[p] = (X::round(first.center) & 0xffffu) | (X::round(second.center) & 0xffff0000u);
    }
  }
}

}  // namespace
}  // namespace lpg
