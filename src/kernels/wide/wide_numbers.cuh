/* Scales and zeros for the wide kernels' last two forms, of any type and level: the warps that copy make them numbers
 * of X's type, in tables in shared memory, for weights that are scaled before they are multiplied.
 *
 * A weight is (code - center) * scale + rest, where center is the integer next to the zero: rest is 0 for a group's,
 * and what a fixed zero between the codes leaves, which X's type holds. Every row's scales are multiplied by a power of
 * two that brings the largest near 2^scale_exponent; it comes off the row's sums. A scale is the sum of two numbers of
 * X's type, so that the scaled weight is rounded once. Where a group is a row, the scale itself goes on the row's sums.
 */
#pragma once

#include "wide_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The power of two by which the scales of a row are multiplied. Where they are multiplied in X's type it is the product
 * of two such numbers, so it may be less than asked for: scales of fp16 are not that small, those of e4m3 neither. In
 * tables it is a number of fp32. */
template <class T>
__device__ inline int taken_power(const numbers_args &a, int row_exponent) {
  const int e = a.scale_exponent - row_exponent;
  if (T::Form == LPG_WIDE_E8M0) return e;
  return T::tables ? max(min(e, 126), -126) : min(e, 2 * T::X::bias - 1);
}

/* x 2^e for |e| up to 252. */
__device__ inline float times_power(float x, int e) {
  const int half = e / 2;
  return x * lpg_bits_f32((uint32_t)(127 + half) << 23) * lpg_bits_f32((uint32_t)(127 + e - half) << 23);
}

/* A pair of numbers as the sum of two pairs of X's type. */
template <class X>
__device__ inline uint2 two_parts(float first, float second) {
  const uint32_t two = X::round_two(first, second);
  return make_uint2(two, X::round_two(first - X::widen((uint16_t)two), second - X::widen((uint16_t)(two >> 16))));
}

/* What takes a row's sums to what the epilogue expects: the row's scale, or the power of two that its scales have lost.
 */
template <class T>
__device__ inline float row_factor(const wide_args &a, int row) {
  const numbers_args &n = a.numbers;
  if (row >= a.row_tiles * LPG_TILE_ROWS) return 0.0f;
  if (!n.scale_on_rows) return ldexpf(n.factor, a.exponents ? -taken_power<T>(n, a.exponents[row]) : 0);
  float scale = 1.0f;
  for (int role = role_scale; role <= role_super_scale; role++) {
    if (n.which[role] < 0) continue;
    const number_section &s = n.section[n.which[role]];
    with_reader(s.type, [&](auto read) {
      const float2 two = read(s.values + (int64_t)(row / LPG_TILE_ROWS) * s.row_bytes, row % 8);
      scale *= row % LPG_TILE_ROWS < 8 ? two.x : two.y;
    });
  }
  return n.factor * scale;
}

/* ---- tables ---- */

/* Scale, center and rest of a row's group; s already has the row's power of two. */
struct group_line {
  float scale, center, rest;

  __device__ group_line(const numbers_args &n, float fixed_center, float s, float zero) {
    scale = s * n.step;
    center = fixed_center;
    rest = n.fixed_shift * s;
    if (n.mode == zero_fixed) return;
    center = (zero - n.offset) * n.inverse_step;
    rest = 0.0f;
  }
};

/* An entry: scales of rows g and g + 8, what these lack, rests and centers. */
template <class X>
__device__ inline uint4 entry_of(const group_line &g, const group_line &other) {
  const uint2 scales = two_parts<X>(g.scale, other.scale);
  return make_uint4(scales.x, scales.y, X::round_two(g.rest, other.rest), X::round_two(g.center, other.center));
}

/* What a warp that copies keeps of its stage and of the next: numbers as they are packed, of all row tiles of the item
 * and the groups that the stage's columns touch, and the rows' exponents. Its stages are the same quarter of every
 * block. */
template <class T>
struct raw_numbers {
  static constexpr int row_tiles = T::rows / LPG_TILE_ROWS, granules = T::slot().granules;
  const wide_args &a;
  uint8_t *memory;
  int quarter, lane, next = 0; /* next: which half of its memory is copied to, while the other waits to be converted */

  __device__ raw_numbers(const wide_args &a, uint8_t *memory, int warp, int lane)
      : a(a), memory(memory + a.plan.raw + warp * a.plan.raw_bytes), quarter(warp), lane(lane) {}

  /* Starts to copy those of a block, if it is there; a batch of copies. Row tiles that are not there repeat the last.
   */
  __device__ void copy(bool there, int row_tile, int block) {
    const numbers_args &n = a.numbers;
    const uint32_t to = shared_address(memory + next * (a.plan.raw_bytes / 2));
    next ^= 1;
#pragma unroll
    for (int role = 0; role < number_roles; role++) {
      const number_section &s = n.section[role];
      if (!there || n.which[role] < 0) continue;
      const int group = s.blocks_each == 1 ? block * s.groups + quarter * s.groups / LPG_WIDE_COPY_WARPS
                        : s.blocks_each    ? (unsigned)block / (unsigned)s.blocks_each
                                           : 0;
      const int first = group * s.slot_bytes, size = s.slot_bytes < 16 ? 8 : 16;
      const int log2 = __ffs(s.bytes / size) - 1; /* pieces of a row tile */
#pragma unroll 1
      for (int piece = lane; piece < row_tiles << log2; piece += 32) {
        const int r = piece >> log2, at = (piece & ((1 << log2) - 1)) * size;
        const uint8_t *from = s.values + (int64_t)min(row_tile + r, a.row_tiles - 1) * s.row_bytes + first + at;
        const bool inside = first + at < s.row_bytes;
        if (size == 16) {
          copy16_async(to + s.offset + r * s.bytes + at, inside ? from : s.values, inside);
        } else {
          copy8_async(to + s.offset + r * s.bytes + at, inside ? from : s.values, inside);
        }
      }
    }
    if (there && a.exponents && lane < row_tiles) {
      copy16_async(to + n.raw_exponents + lane * LPG_TILE_ROWS,
                   a.exponents + min(row_tile + lane, a.row_tiles - 1) * LPG_TILE_ROWS);
    }
    commit_copies();
  }

  /* Makes the stage's table of them when they are there. A quarter of the warp has a granule of a row tile at a time,
   * and `many` of them together, so that one's loads and arithmetic hide the other's. */
  __device__ void convert(uint8_t *slot) const {
    constexpr int many = 4;
    static_assert(row_tiles * granules % (4 * many) == 0, "a lane has as many as the others");
    const numbers_args &n = a.numbers;
    const uint8_t *const raw = memory + next * (a.plan.raw_bytes / 2);
    const int8_t *const exponents = (const int8_t *)raw + n.raw_exponents;
    const int g = lane % 8;
    const bool powers = !n.scale_on_rows && a.exponents, scales = !n.scale_on_rows && n.which[role_scale] >= 0;
#pragma unroll 1
    for (int first = lane / 8; first < row_tiles * granules; first += 4 * many) {
      const auto each = [&](int role, auto take) {
        const number_section &s = n.section[role];
        const int groups = lpg_wide_stage_groups(s.groups);
        with_reader(s.type, [&](auto read) {
#pragma unroll
          for (int j = 0; j < many; j++) {
            const int i = first + 4 * j, group = i % granules * groups / granules;
            take(j, read(raw + s.offset + i / granules * s.bytes + group * s.slot_bytes, g));
          }
        });
      };
      float2 scale[many], zero[many];
#pragma unroll
      for (int j = 0; j < many; j++) {
        scale[j] = make_float2(1.0f, 1.0f);
        zero[j] = make_float2(0.0f, 0.0f);
      }
      const auto product = [](float2 a, float2 b) { return make_float2(a.x * b.x, a.y * b.y); };
      if (scales) {
        each(role_scale, [&](int j, float2 x) { scale[j] = x; });
        if (n.which[role_super_scale] >= 0) {
          each(role_super_scale, [&](int j, float2 x) { scale[j] = product(scale[j], x); });
        }
      }
      if (n.mode != zero_fixed) each(role_zero, [&](int j, float2 x) { zero[j] = x; });
#pragma unroll
      for (int j = 0; j < many; j++) {
        const int i = first + 4 * j;
        const int8_t *const of_row = exponents + i / granules * LPG_TILE_ROWS + g;
        const auto power_of = [&](int row) {
          return powers ? lpg_bits_f32((uint32_t)(127 + taken_power<T>(n, of_row[row])) << 23) : 1.0f;
        };
        const float power = power_of(0), other = power_of(8);
        const group_line first_row(n, a.decoder.center, scale[j].x * power, zero[j].x);
        const group_line second_row(n, a.decoder.center, scale[j].y * other, zero[j].y);
        ((uint4 *)slot)[i * 8 + g] = entry_of<typename T::X>(first_row, second_row);
      }
    }
  }
};

}  // namespace
}  // namespace lpg
