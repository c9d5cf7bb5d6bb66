/* gemv: scales of two levels, as GGUF's K-quants have them, each decoded by one lane once a k block.
 *
 * Codes of groups and the fp16 numbers of their super group (256 k) are loaded into registers a block ahead, as the
 * weights are. Lane 4 g + t decodes those of rows g and g + 8 for groups t, t + 4 and so on: the products of both
 * levels are exact in fp32. What all lanes of a row need, the scale and the integer next to the zero (the centre), goes
 * through a table of the warp's own in shared memory. What is left of the zero stays with its lane: as it lies there it
 * is the operand A of a product with the sums of X, in halves of 11 bits (tf32). */
#pragma once

#include "gemv_stream.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The scale of rows g and g + 8, and what their centres come to in the dequantiser. Groups of 16 bytes lie 160 bytes
 * apart, so that the lanes that write meet in no bank. */
template <bool Shifted>
struct level_entry {
  static constexpr int group_bytes = lpg_gemv_level_bytes(1);
  float2 scale;
  uint32_t bias[2];
};

template <>
struct level_entry<false> {
  static constexpr int group_bytes = lpg_gemv_level_bytes(0);
  float2 scale;
};

/* The codes of rows g and g + 8 as numbers. */
template <lpgemm_dtype_t Codes>
__device__ inline float2 code_values(uint32_t two) {
  if (Codes == LPGEMM_UINT(4))
    return make_float2(lpg_bits_f32((two & 15) | 0x4b000000u) - 0x1p23f,
                       lpg_bits_f32(two >> 4 | 0x4b000000u) - 0x1p23f);
  constexpr float offset = Codes == LPGEMM_I8 ? 0x1p23f + 128.0f : 0x1p23f;
  if (Codes == LPGEMM_I8) two ^= 0x8080u;
  return make_float2(lpg_bits_f32(__byte_perm(two, 0x4b000000u, 0x7440)) - offset,
                     lpg_bits_f32(__byte_perm(two, 0x4b000000u, 0x7441)) - offset);
}

template <class T>
struct level_stream {
  using entry = level_entry<T::Shifted>;
  static constexpr int lane_groups = T::scale_groups / 4, slots = T::row_tiles * lane_groups;
  static constexpr int code_bytes = T::Codes == LPGEMM_UINT(4) ? 1 : 2; /* of two rows */

  const scales_args &a;
  uint8_t *own;                                                 /* the lane's rows in the table */
  uint8_t *own_groups;                                          /* the same, from group t on */
  uint32_t first_code[T::row_tiles], first_super[T::row_tiles]; /* of the lane, in the next block */
  uint32_t code[slots], zero_code[slots], super_scale[T::row_tiles], super_zero[T::row_tiles];
  float shift[slots][2];

  __device__ level_stream(const gemv_args &args, const work &, const cursor &, int, int, int lane, uint8_t *memory)
      : a(args.scale_data),
        own(memory + lane / 4 * (int)sizeof(entry)),
        own_groups(own + lane % 4 * entry::group_bytes) {}

  /* Loads the first block, before the stream of weights does. */
  __device__ void start(const weight_stream<T> &weights) {
    find_run(weights);
    load(weights);
  }

  /* To the block that the stream of weights is at. */
  __device__ void find_run(const weight_stream<T> &weights) {
    const int block = (weights.a.row_vectors - weights.vectors) / T::Bits, lane = weights.lane;
    const int blocks = a.section[1].row_bytes / (LPG_TILE_ROWS * 2);
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      const int row_tile = min(weights.first_row_tile + weights.at.tile * T::row_tiles + r, weights.a.row_tiles - 1);
      const uint32_t at = (uint32_t)(row_tile >> a.section[0].row_shift) * (uint32_t)blocks + (uint32_t)block;
      first_code[r] = (at * T::scale_groups + lane % 4) * 8 + lane / 4;
      first_super[r] = at * 8 + lane / 4;
    }
  }

  __device__ void next_block() {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      first_code[r] += T::scale_groups * 8;
      first_super[r] += 8;
    }
  }

  __device__ void load(const weight_stream<T> &weights) {
    if (weights.at.run == 0) return;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      const uint64_t codes = (uint64_t)first_code[r] * code_bytes, supers = (uint64_t)first_super[r] * 4;
#pragma unroll
      for (int i = 0; i < lane_groups; i++) {
        code[r * lane_groups + i] = load_small<code_bytes>(a.section[0].values + codes + i * 32 * code_bytes);
        if (T::Shifted)
          zero_code[r * lane_groups + i] = load_small<code_bytes>(a.section[2].values + codes + i * 32 * code_bytes);
      }
      super_scale[r] = load_small<4>(a.section[1].values + supers);
      if (T::Shifted) super_zero[r] = load_small<4>(a.section[3].values + supers);
    }
  }

  /* The bias of one row, and what is left of its minimum. Any integer near the zero will do for a centre. */
  __device__ static uint32_t bias_of(float scale, float zero, float &rest) {
    constexpr float most = (float)(1 << T::Bits);
    const float part = __saturatef(zero * reciprocal(scale) * (-1.0f / most));
    const float center = fmaf(part, most, 0x1p23f); /* and 2^23 */
    rest = fmaf(center - 0x1p23f, scale, zero);
    return T::Dequantiser::bias_of(lpg_f32_bits(center));
  }

  /* Fills the table for a block. */
  __device__ void decode() {
    __syncwarp(); /* nobody reads the block before any more */
#pragma unroll
    for (int s = 0; s < slots; s++) {
      const int r = s / lane_groups;
      const float2 codes = code_values<T::Codes>(code[s]), super = __half22float2(f16_x::in(super_scale[r]));
      const float2 scale = make_float2(codes.x * super.x, codes.y * super.y);
      uint8_t *to = own_groups + (r * T::scale_groups + s % lane_groups * 4) * entry::group_bytes;
      if constexpr (T::Shifted) {
        const float2 minima = code_values<T::Codes>(zero_code[s]), upper = __half22float2(f16_x::in(super_zero[r]));
        const uint32_t first = bias_of(scale.x, minima.x * upper.x, shift[s][0]);
        const uint32_t second = bias_of(scale.y, minima.y * upper.y, shift[s][1]);
        *(uint4 *)to = make_uint4(lpg_f32_bits(scale.x), lpg_f32_bits(scale.y), first, second);
      } else {
        *(float2 *)to = scale;
      }
    }
    __syncwarp();
  }

  __device__ entry at(int r, int scale_group) const {
    const uint8_t *from = own + (r * T::scale_groups + scale_group) * entry::group_bytes;
    if constexpr (T::Shifted) {
      const uint4 four = *(const uint4 *)from;
      return {make_float2(lpg_bits_f32(four.x), lpg_bits_f32(four.y)), {four.z, four.w}};
    } else {
      return {*(const float2 *)from};
    }
  }

  /* Adds what is left of the zeros, times the sums of X of the block. */
  __device__ void add_shifts(const float *sums, int lane, accumulators<T> &totals) const {
#pragma unroll
    for (int eight = 0; eight < T::scale_groups / 8; eight++) {
      uint32_t b[T::x_tiles][2], b_low[T::x_tiles][2];
#pragma unroll
      for (int j = 0; j < T::x_tiles; j++) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
          const float sum = sums[(eight * 8 + i * 4 + lane % 4) * T::TileM + j * 8 + lane / 4];
          b[j][i] = upper_tf32(sum);
          b_low[j][i] = lpg_f32_bits(sum - lpg_bits_f32(b[j][i]));
        }
      }
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) {
        uint32_t a[4], a_low[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
          const float rest = shift[r * lane_groups + eight * 2 + i / 2][i % 2];
          a[i] = upper_tf32(rest);
          a_low[i] = lpg_f32_bits(rest - lpg_bits_f32(a[i]));
        }
#pragma unroll
        for (int j = 0; j < T::x_tiles; j++) {
          mma_tf32::multiply(totals.sum[r][j], a_low, b_low[j][0], b_low[j][1]);
          mma_tf32::multiply(totals.sum[r][j], a_low, b[j][0], b[j][1]);
          mma_tf32::multiply(totals.sum[r][j], a, b_low[j][0], b_low[j][1]);
          mma_tf32::multiply(totals.sum[r][j], a, b[j][0], b[j][1]);
        }
      }
    }
  }
};

}  // namespace
}  // namespace lpg
