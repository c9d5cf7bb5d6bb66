/* Scales and zeros for the wide kernels as they are packed: what the copying warps put into a slot for a block of
 * columns, and what the others make of it, a scale group of columns at a time. Slots of numbers that nobody copies are
 * filled once. */
#pragma once

#include "gemm_scales.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- into slots ---- */

/* What a lane copies of a section for every block of a work tile's columns: Bytes of each scale group, of the group
 * that it lies in. Addresses are found once a work tile, since all else waits for the producer warp. Row tiles that are
 * not there are zero, as is what is beyond the columns. */
template <int RowTiles, int ScaleGroups, int Bytes>
struct scale_copier {
  static constexpr int pieces = Bytes / 16, each = ScaleGroups * pieces; /* of a row tile */
  static constexpr int all = RowTiles * each, step = 32 / each;          /* row tiles that the lanes have at once */
  static_assert(32 % each == 0, "lanes have whole row tiles");
  const uint8_t *values;     /* of block 0 and the lane's first row tile */
  int left, rows;            /* bytes of a row, and row tiles, from there on */
  int block_bytes, row_step; /* from a block to the next, and from a row tile to the lane's next */

  __device__ void set_rows(const scale_section &s, int row_tile, int row_tiles, int lane) {
    const int piece = lane % each, first = row_tile + lane / each;
    const int in_block = piece / pieces * s.groups / ScaleGroups * s.slot_bytes + piece % pieces * 16;
    values = s.values + (int64_t)first * s.row_bytes + in_block;
    left = s.row_bytes - in_block;
    rows = row_tiles - first;
    block_bytes = s.blocks_each ? s.block_bytes : 0;
    row_step = step * s.row_bytes;
  }

  __device__ void copy(uint32_t to, int block, int lane) const {
    const int block_at = block * block_bytes;
    const uint8_t *from = values + block_at;
    const bool there = block_at < left;
    if (all < 32 && lane >= all) return;
#pragma unroll
    for (int i = 0; i * 32 < all; i++, from += row_step) {
      copy16_async(to + (i * 32 + lane) * 16, from, there && i * step < rows);
    }
  }
};

/* The lines of a stage: `groups` of each row tile, from group `first` on. */
template <class T>
__device__ inline void copy_lines(const gemm_args &a, uint32_t to, int row_tile, int first, int lane) {
  constexpr int row_tiles = row_tiles_of<T>, pieces = LPG_GEMM_LINE_BYTES / 16;
  const int each = a.stage_groups * pieces, log2 = __ffs(each) - 1;
  const uint8_t *const lines = a.lines + (int64_t)first * LPG_GEMM_LINE_BYTES;
  const int there = (a.line_groups - first) * pieces; /* the others are of columns that are not */
#pragma unroll 4
  for (int i = lane; i < row_tiles << log2; i += 32) {
    const int piece = i & (each - 1), row = min(row_tile + (i >> log2), a.row_tiles - 1);
    copy16_async(to + i * 16, lines + ((int64_t)row * a.line_groups * pieces + piece) * 16, piece < there);
  }
}

/* The slots of a work tile, block after block. */
template <class T>
struct slot_copier {
  static constexpr lpg_gemm_slot slot = T::slot();
  scale_copier<row_tiles_of<T>, slot.scale_groups, slot.scale_bytes> scales;
  scale_copier<row_tiles_of<T>, slot.scale_groups, 16> zeros;
  int row_tile;

  static_assert(slot.zero_bytes == 0 || slot.zero_bytes == 16, "a zero is a byte");
  __device__ static bool has_scales(const gemm_args &a) { return !a.scale_data.scale_on_rows; }
  __device__ static bool has_zeros(const gemm_args &a) { return T::reads_zeros && a.scale_data.mode == zero_per_group; }
  __device__ static const scale_section &section(const gemm_args &a, scale_role role) {
    return a.scale_data.section[a.scale_data.which[role]];
  }

  __device__ void set_rows(const gemm_args &a, int row_tile_, int lane) {
    row_tile = row_tile_;
    if (has_scales(a)) scales.set_rows(section(a, role_scale), row_tile, a.row_tiles, lane);
    if (has_zeros(a)) zeros.set_rows(section(a, role_zero), row_tile, a.row_tiles, lane);
  }

  /* first: a team's first block, of whose slot the rows' exponents are read. */
  __device__ void copy(const gemm_args &a, uint32_t to, int block, bool first, int lane) const {
    if (has_scales(a)) {
      scales.copy(to, block, lane);
      if (first && lane < row_tiles_of<T>) {
        copy16_async(to + slot.exponents + lane * LPG_TILE_ROWS,
                     a.exponents + min(row_tile + lane, a.row_tiles - 1) * LPG_TILE_ROWS);
      }
    }
    if (has_zeros(a)) zeros.copy(to + slot.zeros, block, lane);
  }
};

/* What slot_copier never brings: it runs at the same time. Scales of one where they go on the sums, and
 * the zero that all have. */
template <class T>
__device__ inline void fill_slots(const gemm_args &a, uint8_t *slots) {
  constexpr lpg_gemm_slot slot = T::slot();
  const uint32_t one = T::X::round(1.0f);
  const uint32_t zero = (uint32_t)a.dequantiser.center * 0x01010101u;
  const int first = a.scale_data.scale_on_rows ? 0 : slot.zeros / 4;
  const int end = T::reads_zeros && a.scale_data.mode != zero_per_group ? slot.exponents / 4 : slot.zeros / 4;
  if (first >= end) return;
  for (int s = 0; s < a.plan.slots; s++) {
    uint32_t *const words = (uint32_t *)(slots + s * slot.bytes);
    for (int i = first + threadIdx.x; i < end; i += 32 * T::warps) words[i] = i < slot.zeros / 4 ? one : zero;
  }
}

/* ---- out of slots ---- */

/* 2^(code - 127 + exponent), twice; what is too small is zero, and 255 NaN. */
template <class X>
__device__ inline uint32_t power_of_code(uint32_t code, int exponent) {
  const uint32_t field = (uint32_t)max((int)code + exponent - 127 + X::bias, 0);
  return code == 255 ? both(0x7fff) : field * both(1u << X::mantissa);
}

template <class X>
__device__ inline float2 widen_two(uint32_t pair) {
  return X::mantissa == 10 ? __half22float2(*(const __half2 *)&pair)
                           : make_float2(lpg_bits_f32(pair << 16), lpg_bits_f32(pair & 0xffff0000u));
}

/* What a row tile's weights are dequantised with, for a scale group of columns: of rows g and g + 8. */
template <class T>
struct row_scales_of {
  uint32_t scale[2], lacks[2]; /* lacks: where the scale is the sum of two numbers, the second */
  float2 line[2];              /* the form LINES: scale and rest */
  uint32_t power[2]; /* by which scales of X's type are multiplied, one after the other: pairs, for rows g and g + 8 */
  int exponent[2];   /* what it is the power of */
  typename T::Dequantiser::rows rows[2];
  typename scaled_dequantiser<T::Bits>::rows near[2];

  __device__ void set_centers(uint32_t of_g, uint32_t of_other) {
    T::Dequantiser::set_center(rows[0], of_g);
    T::Dequantiser::set_center(rows[1], of_other);
  }

  /* From a row tile's exponents. */
  __device__ void set_power(const scales_args &a, const int8_t *exponents, int g) {
    for (int half = 0; half < 2; half++) {
      exponent[half] = a.scale_on_rows ? 0 : taken_power<T>(a, exponents[g + 8 * half]);
    }
    const auto bits = [](int e) { return (uint32_t)(T::X::bias + e) << T::X::mantissa; };
    power[0] = bits(exponent[0] / 2) | bits(exponent[1] / 2) << 16;
    power[1] = bits(exponent[0] - exponent[0] / 2) | bits(exponent[1] - exponent[1] / 2) << 16;
  }

  /* Each of the two numbers twice. */
  __device__ static void spread(uint32_t two, uint32_t (&to)[2]) {
    to[0] = __byte_perm(two, 0, 0x1010);
    to[1] = __byte_perm(two, 0, 0x3232);
  }

  /* From a scale group's scales and zeros in a slot; no branches: what is under way on the tensor cores must not be cut
   * in two. */
  __device__ void load(const scaled_dequantiser<T::Bits> &dequantiser, const uint8_t *scales, const uint8_t *zeros,
                       int g) {
    if constexpr (T::Form == LPG_GEMM_SCALES_E8M0) {
      const uint32_t two = ((const uint16_t *)scales)[g];
      scale[0] = power_of_code<typename T::X>(two & 255, exponent[0]);
      scale[1] = power_of_code<typename T::X>(two >> 8, exponent[1]);
    } else if constexpr (T::Form == LPG_GEMM_SCALES_SPLIT) {
      const float2 two = __half22float2(((const __half2 *)scales)[g]);
      const uint2 both_parts =
          two_parts<typename T::X>(times_power(two.x, exponent[0]), times_power(two.y, exponent[1]));
      spread(both_parts.x, scale);
      spread(both_parts.y, lacks);
    } else {
      uint32_t two;
      if constexpr (T::Form == LPG_GEMM_SCALES_E4M3) {
        const uint32_t codes = ((const uint16_t *)scales)[g];
        two = T::X::round_two(e4m3_value(codes & 255), e4m3_value(codes >> 8));
      } else {
        two = ((const uint32_t *)scales)[g];
      }
      spread(T::X::multiply(T::X::multiply(two, power[0]), power[1]), scale);
      if constexpr (T::near) {
        for (int half = 0; half < 2; half++) dequantiser.set_scale(near[half], scale[half]);
      }
    }
    if constexpr (T::reads_zeros) {
      const uint32_t two = ((const uint16_t *)zeros)[g];
      set_centers(T::X::small_integer(two & 255), T::X::small_integer(two >> 8));
    }
  }

  /* From two lines. */
  __device__ void load(const float4 &lines) {
    line[0] = make_float2(lines.x, lines.y);
    line[1] = make_float2(lines.z, lines.w);
  }

  /* A pair of weights of row g + 8 half. */
  __device__ uint32_t weights(const typename T::Dequantiser &dequantiser, int half, const uint32_t *unit,
                              int pair) const {
    if constexpr (T::near) return scaled_dequantiser<T::Bits>::decode(near[half], unit, pair);
    return scaled(dequantiser.decode(rows[half], unit, pair), half);
  }

  /* d to the scaled weight. */
  __device__ uint32_t scaled(uint32_t d, int half) const {
    if constexpr (T::lines) {
      const float2 two = widen_two<typename T::Codes>(d);
      return T::X::round_two(fmaf(two.x, line[half].x, line[half].y), fmaf(two.y, line[half].x, line[half].y));
    }
    if (T::Form == LPG_GEMM_SCALES_ROW) return d;
    if (T::Form != LPG_GEMM_SCALES_SPLIT) return T::X::multiply(d, scale[half]);
    return T::X::fma(d, scale[half], T::X::multiply(d, lacks[half]));
  }
};

}  // namespace
}  // namespace lpg
