/* gemm: scales and zeros as they are packed: producer warps copy them to shared memory a k block at a time, consumer
 * warps make the scale and centre of each scale group from them.
 *
 * A stage of scales holds, for every row tile of the work tile: the scales of each scale group, its zeros, and the
 * rows' exponents (scales_layout()). What is the same in all stages is written once by the consumer warps. Prepared
 * scales are copied as they are, a stage of X at a time. */
#pragma once

#include "gemm_scales.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- to shared memory ---- */

/* What a lane copies of one section for each k block of a work tile: Bytes of each scale group. Groups that are
 * larger than a scale group are repeated. Addresses are computed once a work tile, since the whole CTA waits for the
 * producer warps. Row tiles and groups beyond the matrix are zero. */
template <int RowTiles, int ScaleGroups, int Bytes>
struct section_copier {
  static constexpr int pieces = Bytes / 16, each = ScaleGroups * pieces; /* pieces of 16 bytes; each: of a row tile */
  static constexpr int all = RowTiles * each, step = 32 / each; /* step: row tiles that a warp copies at once */
  static_assert(32 % each == 0, "lanes have whole row tiles");
  const uint8_t *values;     /* the lane's first piece, in k block 0 */
  int left, rows;            /* from there on: bytes of a row tile, and row tiles */
  int block_bytes, row_step; /* from a k block to the next, and from a row tile to the lane's next */

  /* before: bytes of the experts before this one. */
  __device__ void set_rows(const scale_section &s, int64_t before, int row_tile, int row_tiles, int lane) {
    const int piece = lane % each, first = row_tile + lane / each;
    const int in_block = piece / pieces * s.groups / ScaleGroups * s.slot_bytes + piece % pieces * 16;
    values = s.values + before + (int64_t)first * s.row_bytes + in_block;
    left = s.row_bytes - in_block;
    rows = row_tiles - first;
    block_bytes = s.granules_each ? s.block_bytes : 0;
    row_step = step * s.row_bytes;
  }

  __device__ void copy(uint32_t to, int block, int lane) const {
    const int block_at = block * block_bytes;
    const uint8_t *from = values + block_at;
    const bool there = block_at < left;
    if (all < 32 && lane >= all) return;
#pragma unroll
    for (int i = 0; i * 32 < all; i++, from += row_step) {
      if (all % 32 != 0 && i * 32 + lane >= all) break; /* 12 row tiles */
      copy16_async(to + (i * 32 + lane) * 16, from, there && i * step < rows);
    }
  }
};

/* Copies the prepared scales of a stage: stage_groups groups of each row tile, from group `first` on. */
template <class T>
__device__ inline void copy_prepared_scales(const gemm_args &a, uint32_t to, int row_tile, int first, int lane) {
  constexpr int row_tiles = row_tiles_of<T>, pieces = LPG_GEMM_PREPARED_BYTES / 16;
  const int each = a.stage_groups * pieces, log2 = __ffs(each) - 1;
  const uint8_t *const from = a.prepared + (int64_t)first * LPG_GEMM_PREPARED_BYTES;
  const int there = (a.line_groups - first) * pieces; /* pieces of the row left; beyond it: zero */
#pragma unroll 4
  for (int i = lane; i < row_tiles << log2; i += 32) {
    const int piece = i & (each - 1), row = min(row_tile + (i >> log2), a.row_tiles - 1);
    copy16_async(to + i * 16, from + ((int64_t)row * a.line_groups * pieces + piece) * 16, piece < there);
  }
}

/* The scales and zeros of a work tile, a k block at a time. */
template <class T>
struct scales_copier {
  static constexpr lpg_gemm_slot layout = T::scales_layout();
  section_copier<row_tiles_of<T>, layout.scale_groups, layout.scale_bytes> scales;
  static constexpr int zero_bytes = layout.zero_bytes > 0 ? layout.zero_bytes : 16;
  section_copier<row_tiles_of<T>, layout.scale_groups, zero_bytes> zeros;
  section_copier<row_tiles_of<T>, 1, 32> upper[2]; /* of two levels */
  int row_tile;

  __device__ static bool has_scales(const gemm_args &a) { return !a.scale_data.scale_on_rows; }
  __device__ static bool has_zeros(const gemm_args &a) {
    if (T::one_level_rests) return a.scale_data.mode != zero_fixed;
    return T::minima || (T::reads_zeros && a.scale_data.mode == zero_per_group);
  }

  __device__ void set_rows(const gemm_args &a, int row_tile_, int expert, int lane) {
    const int64_t before = T::takes_experts ? expert * a.experts.stride : 0;
    row_tile = row_tile_;
    if (has_scales(a)) scales.set_rows(a.copied[0], before, row_tile, a.row_tiles, lane);
    if (has_zeros(a)) zeros.set_rows(a.copied[1], before, row_tile, a.row_tiles, lane);
    if constexpr (T::levels) {
      for (int i = 0; i < 1 + T::minima; i++) upper[i].set_rows(a.upper[i], before, row_tile, a.row_tiles, lane);
    }
  }

  /* first: a team's first block of the work tile; the consumers read the rows' exponents from there only. */
  __device__ void copy(const gemm_args &a, uint32_t to, int expert, int block, bool first, int lane) const {
    if (has_scales(a)) {
      scales.copy(to, block, lane);
      if (T::has_powers && first && lane < row_tiles_of<T>) {
        const int8_t *const exponents = a.exponents + (T::takes_experts ? expert * a.experts.stride : 0);
        copy16_async(to + layout.exponents + lane * LPG_TILE_ROWS,
                     exponents + min(row_tile + lane, a.row_tiles - 1) * LPG_TILE_ROWS);
      }
    }
    if (has_zeros(a)) zeros.copy(to + layout.zeros, block, lane);
    if constexpr (T::levels) {
      for (int i = 0; i < 1 + T::minima; i++) upper[i].copy(to + layout.upper + i * layout.upper_bytes, block, lane);
    }
  }
};

/* Fills what scales_copier does not write (it runs at the same time): scales of 1 where the scale goes on the sums,
 * and the zero that all groups have. */
template <class T>
__device__ inline void fill_scales(const gemm_args &a, uint8_t *scales) {
  constexpr lpg_gemm_slot layout = T::scales_layout();
  static_assert(layout.zeros % 16 == 0 && layout.exponents % 16 == 0 && layout.bytes % 16 == 0, "whole pieces");
  const uint32_t one = T::X::round(1.0f);
  const uint32_t zero = (uint32_t)a.dequantiser.center * 0x01010101u;
  const int first = a.scale_data.scale_on_rows ? 0 : layout.zeros;
  const int end = T::reads_zeros && a.scale_data.mode != zero_per_group ? layout.exponents : layout.zeros;
  for (int at = first + threadIdx.x * 16; at < end; at += 32 * T::warps * 16) {
    const uint32_t word = at < layout.zeros ? one : zero;
#pragma unroll 4
    for (int s = 0; s < a.plan.slots; s++) *(uint4 *)(scales + at + s * layout.bytes) = {word, word, word, word};
  }
}

/* ---- to registers ---- */

template <class X>
__device__ inline float2 widen_two(uint32_t pair) {
  return X::mantissa == 10 ? __half22float2(*(const __half2 *)&pair)
                           : make_float2(lpg_bits_f32(pair << 16), lpg_bits_f32(pair & 0xffff0000u));
}

/* The scales, zeros and centres of rows g and g + 8 of a row tile (g = lane / 4), for one scale group. */
template <class T>
struct row_scales_of {
  /* e4m3's scales of a row are so near one another that bf16 holds their power of two. */
  static constexpr bool one_power = T::Scales == LPG_GEMM_SCALES_E4M3 && T::X::exponent == 8;
  uint32_t scale[2], scale_low[2]; /* scale_low: where a scale is the sum of two numbers, the second */
  float2 prepared[2];              /* prepared scales, and those with rests: weight = d * x + y */
  float upper[2][2];               /* two levels: upper scale and minimum, times the row's power of two */
  float row_power[2];              /* that power, where it is found with the rests */
  uint32_t power[2]; /* the power of two on scales, as one or two factors of X's type; halves: rows g, g + 8 */
  int exponent[2];   /* log2 of it */
  typename T::Dequantiser::rows rows[2];
  typename scaled_dequantiser<T::Bits>::rows near[2];

  __device__ void set_centers(uint32_t of_g, uint32_t of_other) {
    T::Dequantiser::set_center(rows[0], of_g);
    T::Dequantiser::set_center(rows[1], of_other);
  }

  /* exponents: of the row tile's rows. */
  __device__ void set_power(const scales_args &a, const int8_t *exponents, int g) {
    for (int half = 0; half < 2; half++) {
      exponent[half] = a.scale_on_rows ? 0 : taken_power<T>(a, exponents[g + 8 * half]);
    }
    const auto bits = [](int e) { return (uint32_t)(T::X::bias + e) << T::X::mantissa; };
    const int first[2] = {one_power ? exponent[0] : exponent[0] / 2, one_power ? exponent[1] : exponent[1] / 2};
    power[0] = bits(first[0]) | bits(first[1]) << 16;
    power[1] = bits(exponent[0] - first[0]) | bits(exponent[1] - first[1]) << 16;
  }

  /* Each half of `two` to both halves of a word. */
  __device__ static void spread(uint32_t two, uint32_t (&to)[2]) {
    to[0] = __byte_perm(two, 0, 0x1010);
    to[1] = __byte_perm(two, 0, 0x3232);
  }

  /* From the packed scales and zeros of a scale group. There are no branches here, and none between the start and
   * the wait of a wgmma: at a branch the compiler would wait for the wgmma in flight. */
  __device__ void load(const scaled_dequantiser<T::Bits> &dequantiser, const uint8_t *scales, const uint8_t *zeros,
                       int g) {
    if constexpr (T::Scales == LPG_GEMM_SCALES_E8M0) {
      const uint32_t two = ((const uint16_t *)scales)[g];
      scale[0] = power_of_code<typename T::X>(two & 255, exponent[0]);
      scale[1] = power_of_code<typename T::X>(two >> 8, exponent[1]);
    } else if constexpr (T::split) {
      const float2 two = __half22float2(((const __half2 *)scales)[g]);
      const uint2 high_low = two_parts<typename T::X>(times_power(two.x, exponent[0]), times_power(two.y, exponent[1]));
      spread(high_low.x, scale);
      spread(high_low.y, scale_low);
    } else {
      uint32_t two;
      if constexpr (T::Scales == LPG_GEMM_SCALES_E4M3) {
        two = e4m3_values(((const uint16_t *)scales)[g], false); /* fp16 */
        if constexpr (T::X::exponent == 8) {
          const float2 wide = __half22float2(f16_x::in(two));
          two = T::X::round_two(wide.x, wide.y);
        }
      } else {
        two = ((const uint32_t *)scales)[g];
      }
      two = T::X::multiply(two, power[0]);
      spread(one_power ? two : T::X::multiply(two, power[1]), scale);
      if constexpr (T::near) {
        for (int half = 0; half < 2; half++) dequantiser.set_scale(near[half], scale[half]);
      }
    }
    if constexpr (T::reads_zeros) {
      const uint32_t two = ((const uint16_t *)zeros)[g];
      set_centers(T::X::small_integer(two & 255), T::X::small_integer(two >> 8));
    }
  }

  /* From two levels: the upper one as it is for a k block, and the codes of a scale group. */
  __device__ void load_upper(const uint8_t *scales, const uint8_t *minima, int g) {
#pragma unroll
    for (int i = 0; i < 1 + T::minima; i++) {
      const float2 two = __half22float2(((const __half2 *)(i ? minima : scales))[g]);
      upper[0][i] = two.x * row_power[0];
      upper[1][i] = two.y * row_power[1];
    }
  }
  __device__ void load_codes(const uint8_t *scales, const uint8_t *minima, int g) {
    /* codes as the last bits of 2^23; int8 are 128 more first */
    constexpr uint32_t flip = T::minima ? 0 : 0x8080;
    constexpr float bias = T::minima ? 8388608.0f : 8388736.0f;
    const auto value = [](uint32_t two, int half) {
      return lpg_bits_f32(__byte_perm(two, 0x4b000000u, half ? 0x7651 : 0x7650));
    };
    const uint32_t scale = ((const uint16_t *)scales)[g] ^ flip,
                   minimum = T::minima ? ((const uint16_t *)minima)[g] : 0;
#pragma unroll
    for (int half = 0; half < 2; half++) {
      prepared[half].x = (value(scale, half) - bias) * upper[half][0];
      prepared[half].y = T::minima ? (value(minimum, half) - bias) * upper[half][1] : 0.0f;
    }
  }

  /* From fp16 scales and minima or zeros of one level. Less the step between two values, which the rows' factors have.
   */
  __device__ void load_rests(const scales_args &a, const uint8_t *scales, const uint8_t *zeros, int g) {
    float2 scale = __half22float2(((const __half2 *)scales)[g]);
    float2 zero = a.mode == zero_fixed ? make_float2(0.0f, 0.0f) : __half22float2(((const __half2 *)zeros)[g]);
    const float fixed = a.fixed_shift * a.inverse_step;
    if (T::finds_row_powers) { /* a zero needs none: it is multiplied by its scale, which has it */
      scale.x *= row_power[0];
      scale.y *= row_power[1];
      zero.x *= a.mode == zero_minimum ? row_power[0] : 1.0f;
      zero.y *= a.mode == zero_minimum ? row_power[1] : 1.0f;
    }
    const auto rest = [&](float scale, float zero) {
      return a.mode == zero_minimum ? fmaf(fixed, scale, zero) : (fixed - zero) * scale;
    };
    zero.x *= a.inverse_step;
    zero.y *= a.inverse_step;
    prepared[0] = make_float2(scale.x, rest(scale.x, zero.x));
    prepared[1] = make_float2(scale.y, rest(scale.y, zero.y));
  }

  /* From prepared scales. */
  __device__ void load(const float4 &four) {
    if constexpr (T::prepared_split) {
      scale[0] = __float_as_uint(four.x);
      scale_low[0] = __float_as_uint(four.y);
      scale[1] = __float_as_uint(four.z);
      scale_low[1] = __float_as_uint(four.w);
      return;
    }
    prepared[0] = make_float2(four.x, four.y);
    prepared[1] = make_float2(four.z, four.w);
  }

  /* Two weights of row g + 8 half. */
  __device__ uint32_t weights(const typename T::Dequantiser &dequantiser, int half, const uint32_t *unit,
                              int pair) const {
    if constexpr (T::near) return scaled_dequantiser<T::Bits>::decode(near[half], unit, pair);
    return scaled(dequantiser.decode(rows[half], unit, pair), half);
  }

  /* d, as the dequantiser gives it, times the scale. */
  __device__ uint32_t scaled(uint32_t d, int half) const {
    if constexpr ((T::prepared && !T::prepared_split) || T::levels || T::one_level_rests) {
      const float2 two = widen_two<typename T::Codes>(d);
      return T::X::round_two(fmaf(two.x, prepared[half].x, prepared[half].y),
                             fmaf(two.y, prepared[half].x, prepared[half].y));
    }
    if (T::Scales == LPG_GEMM_SCALES_ROW) return d;
    if (!T::split && !T::prepared_split) return T::X::multiply(d, scale[half]);
    return T::X::fma(d, scale[half], T::X::multiply(d, scale_low[half]));
  }
};

/* A bound of the minima of rows g and g + 8 in a super-group: by the largest code that there is, or, where that is more
 * than the other parts of the weights, by the codes themselves, which may all be small. */
__device__ inline float2 bound_of_minima(const gemm_args &a, int row_tile, int super, int g, const float (&others)[2]) {
  constexpr int groups = LPG_BLOCK_K / 32;
  const uint8_t *const upper = a.upper[1].values + (int64_t)row_tile * a.upper[1].row_bytes;
  const float2 minima = __half22float2(((const __half2 *)(upper + super * (2 * LPG_TILE_ROWS)))[g]);
  const float2 largest = make_float2(fabsf(minima.x) * a.largest_value[1], fabsf(minima.y) * a.largest_value[1]);
  if (largest.x <= others[0] && largest.y <= others[1]) return largest;
  const uint8_t *const codes = a.copied[1].values + (int64_t)row_tile * a.copied[1].row_bytes;
  uint32_t most[2] = {0, 0};
#pragma unroll 1
  for (int group = super * groups; group < (super + 1) * groups; group++) {
    if (group * LPG_TILE_ROWS >= a.copied[1].row_bytes) break;
    const uint32_t two = ((const uint16_t *)(codes + group * LPG_TILE_ROWS))[g];
    most[0] = max(most[0], two & 255);
    most[1] = max(most[1], two >> 8);
  }
  return make_float2(fabsf(minima.x) * (float)most[0], fabsf(minima.y) * (float)most[1]);
}

/* A bound of the rests of rows g and g + 8 of a row tile (g = lane % 8), of one level: zeros times their scales, or
 * minima. By the whole warp: two lanes have the 32 bytes of a group. */
__device__ inline float2 bound_of_rests(const gemm_args &a, int row_tile, int lane) {
  const scales_args &s = a.scale_data;
  if (s.mode == zero_fixed) return make_float2(0.0f, 0.0f);
  const uint8_t *const scales = a.copied[0].values + (int64_t)row_tile * a.copied[0].row_bytes;
  const uint8_t *const zeros = a.copied[1].values + (int64_t)row_tile * a.copied[1].row_bytes;
  const uint4 ones = {0x3c003c00u, 0x3c003c00u, 0x3c003c00u, 0x3c003c00u};
  float2 most[4] = {};
#pragma unroll 4
  for (int at = lane * 16; at < a.copied[1].row_bytes; at += 32 * 16) {
    const uint4 zero = *(const uint4 *)(zeros + at),
                scale = s.mode == zero_minimum ? ones : *(const uint4 *)(scales + at);
    const uint32_t of_zero[4] = {zero.x, zero.y, zero.z, zero.w}, of_scale[4] = {scale.x, scale.y, scale.z, scale.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const float2 z = __half22float2(*(const __half2 *)&of_zero[i]),
                   by = __half22float2(*(const __half2 *)&of_scale[i]);
      most[i].x = fmaxf(most[i].x, fabsf(z.x * by.x));
      most[i].y = fmaxf(most[i].y, fabsf(z.y * by.y));
    }
  }
  float2 own = {};
#pragma unroll
  for (int i = 0; i < 4; i++) {
#pragma unroll
    for (int step = 2; step < 32; step *= 2) {
      most[i].x = fmaxf(most[i].x, __shfl_xor_sync(0xffffffffu, most[i].x, step));
      most[i].y = fmaxf(most[i].y, __shfl_xor_sync(0xffffffffu, most[i].y, step));
    }
    const float2 there = {__shfl_sync(0xffffffffu, most[i].x, lane % 8 / 4),
                          __shfl_sync(0xffffffffu, most[i].y, lane % 8 / 4)};
    if (lane % 4 == i) own = there;
  }
  return make_float2(own.x * s.inverse_step, own.y * s.inverse_step);
}

/* With rests and X of fp16: the powers of two that bring the rows of a row tile near 2^14, by a bound of their weights
 * from the rows' exponents and from the rests. power: of rows g and g + 8 (g = lane / 4). Returns the factor of row
 * lane % 16 that takes it off again. bf16 has room for all. */
template <class T>
__device__ inline float find_row_powers(const gemm_args &a, int row_tile, int lane, float (&power)[2]) {
  power[0] = power[1] = 1.0f;
  if (T::X::exponent == 8) return 1.0f;
  const int g = lane % 8, tile = min(row_tile, a.row_tiles - 1);
  float most[2];
#pragma unroll
  for (int half = 0; half < 2; half++) {
    most[half] = a.largest_value[0] * lpg_exp2i(a.exponents[tile * LPG_TILE_ROWS + g + 8 * half] + 1);
  }
  if constexpr (T::minima) {
    float minimum[2] = {0.0f, 0.0f};
#pragma unroll 4
    for (int super = lane / 8; super < a.plan.blocks; super += 4) {
      const float2 bound = bound_of_minima(a, tile, super, g, most);
      minimum[0] = fmaxf(minimum[0], bound.x);
      minimum[1] = fmaxf(minimum[1], bound.y);
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
#pragma unroll
      for (int step = 8; step < 32; step *= 2)
        minimum[half] = fmaxf(minimum[half], __shfl_xor_sync(0xffffffffu, minimum[half], step));
      most[half] += minimum[half];
    }
  }
  if constexpr (T::one_level_rests) {
    const float2 rests = bound_of_rests(a, tile, lane);
    most[0] += rests.x;
    most[1] += rests.y;
  }
  int exponent[2];
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int e = most[half] > 0.0f ? 14 - (most[half] < INFINITY ? ilogbf(most[half]) : 127) : 0;
    exponent[half] = max(min(e, 126), -126);
  }
#pragma unroll
  for (int half = 0; half < 2; half++) power[half] = lpg_exp2i(__shfl_sync(0xffffffffu, exponent[half], lane / 4));
  return lpg_exp2i(-(lane % LPG_TILE_ROWS < 8 ? exponent[0] : exponent[1]));
}

}  // namespace
}  // namespace lpg
