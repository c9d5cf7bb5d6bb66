/* Scales and zeros of a block of columns for the wide kernels' last form: in X's type, in a warp's own table in shared
 * memory, for weights that are scaled before they are multiplied.
 *
 * Every row's scales are multiplied by a power of two that brings the largest near 2^scale_exponent; it comes off the
 * row's sums. A scale that X's type does not hold exactly is the sum of two numbers, so that the scaled weight is
 * rounded once. Where a group is a row, the scale itself goes on the row's sums. */
#pragma once

#include "wide_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The power of two by which the scales of a row are multiplied. Where they are multiplied in X's type it is the product
 * of two such numbers, so it may be less than asked for: scales of fp16 are not that small, those of e4m3 neither. */
template <class T>
__device__ inline int taken_power(const numbers_args &a, int row_exponent) {
  const int e = a.scale_exponent - row_exponent;
  return T::tables || T::Form == LPG_WIDE_E8M0 ? e : min(e, 2 * T::X::bias - 1);
}

/* x 2^e for |e| up to 252. */
__device__ inline float times_power(float x, int e) {
  const int half = e / 2;
  return x * lpg_bits_f32((uint32_t)(127 + half) << 23) * lpg_bits_f32((uint32_t)(127 + e - half) << 23);
}

/* The two numbers, of rows g and g + 8, that a section has for a group. */
__device__ inline float2 read_pair(lpgemm_dtype_t type, const uint8_t *slot, int g) {
  switch (type) {
    case LPGEMM_F16: return __half22float2(((const __half2 *)slot)[g]);
    case LPGEMM_F32: return ((const float2 *)slot)[g];
    case LPGEMM_BF16:
    case LPGEMM_UINT(16): {
      const uint32_t two = ((const uint32_t *)slot)[g];
      return type == LPGEMM_BF16 ? make_float2(lpg_bits_f32(two << 16), lpg_bits_f32(two & 0xffff0000u))
                                 : make_float2((float)(two & 0xffffu), (float)(two >> 16));
    }
    case LPGEMM_UINT(4): return make_float2((float)(slot[g] & 15), (float)(slot[g] >> 4));
    default: break;
  }
  const uint32_t two = ((const uint16_t *)slot)[g], first = two & 0xffu, second = two >> 8;
  switch (type) {
    case LPGEMM_E4M3: return make_float2(e4m3_value(first), e4m3_value(second));
    case LPGEMM_E8M0: return make_float2(e8m0_value(first), e8m0_value(second));
    case LPGEMM_INT(8): return make_float2((float)(int8_t)first, (float)(int8_t)second);
    default: return make_float2((float)first, (float)second);
  }
}

/* What takes a row's sums to what the epilogue expects: the row's scale, or the power of two that its scales have lost.
 */
template <class T>
__device__ inline float row_factor(const wide_args &a, int row) {
  const numbers_args &n = a.numbers;
  if (row >= a.row_tiles * LPG_TILE_ROWS) return 0.0f;
  if (n.which[role_scale] < 0) return n.factor;
  if (!n.scale_on_rows) return ldexpf(n.factor, -taken_power<T>(n, a.exponents[row]));
  float scale = 1.0f;
  for (int role = role_scale; role <= role_super_scale; role++) {
    if (n.which[role] < 0) continue;
    const number_section &s = n.section[n.which[role]];
    const float2 two = read_pair(s.type, s.values + (int64_t)(row / LPG_TILE_ROWS) * s.row_bytes, row % 8);
    scale *= row % LPG_TILE_ROWS < 8 ? two.x : two.y;
  }
  return n.factor * scale;
}

/* An entry of a warp's table: scales of rows g and g + 8, what they lack, and each row's zero, as pairs. */
template <class X>
__device__ inline uint4 entry_of(float2 scale, float2 zero) {
  const uint32_t two = X::round_two(scale.x, scale.y);
  const uint32_t rest = X::round_two(scale.x - X::widen((uint16_t)two), scale.y - X::widen((uint16_t)(two >> 16)));
  return make_uint4(two, rest, X::round(zero.x), X::round(zero.y));
}

/* Fills the table from a block's raw values: a quarter of the warp has a group of a row tile at a time. */
template <class T>
__device__ inline void convert_scales(const numbers_args &a, float center, const uint8_t *raw, uint4 *table, int lane) {
  const int8_t *exponents = (const int8_t *)(raw + a.raw_exponents);
  const int g = lane % 8, log2 = a.block_groups_log2, copies = T::granules >> log2;
  const auto slot_of = [&](const number_section &s, int r, int group) {
    return raw + s.offset + r * s.bytes + (group * s.groups >> log2) * s.slot_bytes;
  };
  const auto powered = [&](float2 scale, int r) {
    return make_float2(times_power(scale.x, taken_power<T>(a, exponents[r * LPG_TILE_ROWS + g])),
                       times_power(scale.y, taken_power<T>(a, exponents[r * LPG_TILE_ROWS + g + 8])));
  };
#pragma unroll 1
  for (int i = lane / 8; i < T::row_tiles << log2; i += 4) {
    const int group = i & ((1 << log2) - 1), r = i >> log2;
    const auto pair_of = [&](number_role role, int index) {
      const number_section &s = a.section[a.which[role]];
      return read_pair(s.type, slot_of(s, r, index), g);
    };
    float2 scale = make_float2(1.0f, 1.0f);
    if (!a.scale_on_rows && a.which[role_scale] >= 0) {
      scale = pair_of(role_scale, group);
      if (a.which[role_super_scale] >= 0) {
        const float2 super = pair_of(role_super_scale, group);
        scale = make_float2(scale.x * super.x, scale.y * super.y);
      }
      scale = powered(scale, r);
    }
    float2 zero = make_float2(center, center);
    if (a.mode == zero_per_group) zero = pair_of(role_zero, group);
    const uint4 entry = entry_of<typename T::X>(scale, zero);
    for (int c = 0; c < copies; c++) table[(r * T::granules + group * copies + c) * 8 + g] = entry;
  }
}

/* A warp's scales and zeros, block after block: copied a block ahead. There is one team. */
template <class T>
struct scale_stream {
  const wide_args &a;
  const wide_work &w;
  const wide_parts<T> &parts;
  int item, block, left; /* of the next block to copy; blocks of the item that are left */
  int warp, lane;
  uint8_t *raw;
  uint4 *table;

  __device__ scale_stream(const wide_args &a, const wide_work &w, const wide_parts<T> &parts, int warp, int lane,
                          uint8_t *memory)
      : a(a), w(w), parts(parts), item(w.first_item), warp(warp), lane(lane) {
    begin_item();
    raw = memory + a.plan.number_bytes;
    table = (uint4 *)memory;
  }

  __device__ void begin_item() {
    block = parts.block(0);
    left = parts.blocks();
  }

  __device__ void copy_next() {
    if (item < w.items && left > 0) {
      const int row_tile = w.row_item(item) * T::row_tiles * T::warps + warp * T::row_tiles;
      if (__builtin_expect(a.numbers.one_copy, 1)) {
        copy_one<T::row_tiles, 1>(a.numbers.section[0], lane, row_tile, a.row_tiles, block, shared_address(raw));
      } else {
        copy_all<T::row_tiles, 1>(a.numbers, lane, row_tile, a.row_tiles, block, shared_address(raw));
      }
      if (a.exponents && lane < T::row_tiles) {
        copy_some_async(shared_address(raw) + a.numbers.raw_exponents + lane * LPG_TILE_ROWS,
                        a.exponents + min(row_tile + lane, a.row_tiles - 1) * LPG_TILE_ROWS, LPG_TILE_ROWS);
      }
      block++;
      if (--left == 0) {
        item += w.stride;
        begin_item();
      }
    }
    commit_copies();
  }

  /* Brings the next block's into the table. */
  __device__ void take() {
    wait_copies<0>();
    __syncwarp();
    convert_scales<T>(a.numbers, a.decoder.center, raw, table, lane);
    __syncwarp();
    copy_next();
  }
};

}  // namespace
}  // namespace lpg
