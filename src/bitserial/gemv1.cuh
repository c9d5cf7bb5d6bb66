/* gemv1 for fp16 and bf16: one or two rows of X by weights of 1 and 2 bits. The packed words go to the binary MMA as
 * they are (docs/bitserial.md).
 *
 *   cut the CTA's part of X into bit planes, in shared memory, while the first weights are loaded
 *   each warp, for the units of its run:
 *     binary MMA of words and planes: 24 counts for every chunk, row of X and row of W
 *     counts times powers of two by the fp16 MMA: the exact sums of codes times X's integers
 *     sums += scale * (product - center * sum of X)
 *   add up the partials of warps, then of CTAs (split-K), in a fixed order; epilogue */
#pragma once

#include "../kernels/prim/mma.cuh"
#include "../kernels/prim/mma_b1.cuh"
#include "gemv1_frame.cuh"
#include "gemv1_scales.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Counts are integers below 1024; as bits of fp16 these are themselves times 2^-24. So pairs of counts, as they come
 * out of the binary MMA, are operand A of an fp16 MMA. Its B has the weights of the planes times 2^4: for what stands
 * in lane s, column 2 s has those of the low planes and column 2 s + 1 those of the high planes; the other columns are
 * 0. */
template <int Bits>
struct plane_weights {
  uint32_t pair[4][3]; /* for lane s, of the three blocks of 8 planes */

  __device__ explicit plane_weights(int lane) {
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int b = 0; b < 3; b++) {
      const uint32_t both = weight(8 * b + 2 * t, g % 2) | weight(8 * b + 2 * t + 1, g % 2) << 16;
#pragma unroll
      for (int s = 0; s < 4; s++) pair[s][b] = g / 2 == s ? both : 0u;
    }
  }

  __device__ static uint32_t weight(int plane, int high) {
    if ((plane >= low_planes) != high) return 0;
    const float count = (float)lpg_plane_weight(Bits, plane) * (high ? 16.0f / (1 << low_planes) : 16.0f);
    return __half_as_ushort(__float2half_rn(count));
  }
};

/* Counts of the lane's two planes of a block as pairs: of row g, and of row g + 8. */
__device__ inline void pack_counts(const int (&d)[4], uint32_t &low, uint32_t &high) {
  low = __byte_perm((uint32_t)d[0], (uint32_t)d[1], 0x5410);
  high = __byte_perm((uint32_t)d[2], (uint32_t)d[3], 0x5410);
}

/* Adds to `sum` the counts of two chunks of a row of X, those of lanes s and s + 1. words: packed words of a k block;
 * planes: the lane's, of that k block. */
template <int Bits>
__device__ inline void add_products(const uint32_t *words, const uint32_t *planes, const plane_weights<Bits> &weights,
                                    int s, float (&sum)[4]) {
  uint32_t a[2][4], last[4];
#pragma unroll
  for (int c = 0; c < 2; c++) {
#pragma unroll
    for (int b = 0; b < 3; b++) {
      int d[4];
      const uint32_t *const at = planes + (c * 3 + b) * Bits;
      if (Bits == 1) {
        and_popc_128(d, words + 2 * c, at[0]);
      } else {
        and_popc_256(d, words + 4 * c, at[0], at[Bits - 1]);
      }
      if (b < 2) pack_counts(d, a[c][2 * b], a[c][2 * b + 1]);
      if (b == 2) pack_counts(d, last[2 * c], last[2 * c + 1]);
    }
    mma_f16::multiply(sum, a[c], weights.pair[s + c][0], weights.pair[s + c][1]);
  }
  mma_f16::multiply(sum, last, weights.pair[s][2], weights.pair[s + 1][2]);
}

/* Loads the lane's planes of a row of X for a k block. */
template <int Bits>
__device__ inline void load_planes(const uint32_t *from, uint32_t (&to)[6 * Bits]) {
#pragma unroll
  for (int i = 0; i < 3; i++) {
    if (Bits == 1) {
      const uint2 v = ((const uint2 *)from)[i];
      to[2 * i] = v.x, to[2 * i + 1] = v.y;
    } else {
      const uint4 v = ((const uint4 *)from)[i];
      to[4 * i] = v.x, to[4 * i + 1] = v.y, to[4 * i + 2] = v.z, to[4 * i + 3] = v.w;
    }
  }
}

/* A lane's sums for a super tile: of rows g and g + 8 of each row tile, for its chunks and rows of X. */
template <class T>
struct lane_sums {
  float sum[T::row_tiles][T::pairs][2];

  __device__ void clear() {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int p = 0; p < T::pairs; p++) sum[r][p][0] = sum[r][p][1] = 0.0f;
    }
  }

  /* Writes them as a partial: [row tile][row of X][row]. */
  __device__ void store(float *partial, int lane, float factor) const {
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int p = 0; p < T::pairs; p++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
          float all = sum[r][p][half] + __shfl_xor_sync(~0u, sum[r][p][half], 1);
          if (T::TileM == 1) all += __shfl_xor_sync(~0u, all, 2);
          const int m = T::TileM == 1 ? 0 : 2 * p + t / 2;
          if (t % T::chunks == 0) partial[(r * T::TileM + m) * LPG_TILE_ROWS + half * 8 + g] = all * factor;
        }
      }
    }
  }
};

/* Adds the products of a unit; x: the planes of its first k block, of the first row of X. */
template <class T>
__device__ inline void multiply_unit(const gemv1_args &a, const unit_words<T> &unit, const uint32_t *x, int lane,
                                     const plane_weights<T::Bits> &weights, lane_sums<T> &sums) {
  constexpr int things = T::TileM == 1 ? T::blocks : 2; /* with two chunks each: k blocks, or rows of X */
  const int t = lane % 4, stride = T::TileM == 1 ? T::block_words : a.plan.x_stride / 4;
#pragma unroll
  for (int p = 0; p < T::pairs; p++, x += 2 * stride) {
    float products[T::row_tiles][4];
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int i = 0; i < 4; i++) products[r][i] = 0.0f;
    }
#pragma unroll
    for (int i = 0; i < things; i++) {
      uint32_t planes[6 * T::Bits];
      load_planes<T::Bits>(x + i * stride + lane * (6 * T::Bits), planes);
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) {
        const uint32_t *const words = unit.word[r] + (T::TileM == 1 ? i * 4 * T::Bits : 0);
        add_products<T::Bits>(words, planes, weights, 2 * i, products[r]);
      }
    }
    const x_chunk x_sums = ((const x_chunk *)(x + t / 2 * stride + T::plane_words))[t % 2];
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float &total = sums.sum[r][p][half];
        total = scaling_of(a.scale_data, unit.scale_data[r], half)
                    .add(unit.scale_data[r], x_sums, products[r][2 * half], products[r][2 * half + 1], total);
      }
    }
  }
}

/* T::products of gemv1_frame.cuh. */
template <class T>
struct fixed_products {
  const gemv1_args &a;
  int lane;
  plane_weights<T::Bits> weights;
  lane_sums<T> sums;

  __device__ fixed_products(const gemv1_args &a, int, int, int, int lane) : a(a), lane(lane), weights(lane) {
    sums.clear();
  }

  __device__ void multiply(const unit_words<T> &unit, const uint32_t *x) {
    multiply_unit<T>(a, unit, x, lane, weights, sums);
  }

  __device__ void store(float *partial) {
    sums.store(partial, lane, T::General ? 1.0f : 0.5f * a.scale_data.step);
    sums.clear();
  }

  __device__ void finish(int, uint8_t *) const {}
  __device__ float value(int, int, float sum, const uint8_t *) const { return sum; }
};

/* TileM: rows of X, 1 or an even number. General: scales that are not fp16, or zeros that differ.
 *
 * The four lanes of a quad have four things at a time: the four chunks of a unit if there is one row of X, else its two
 * chunks for two rows of X. */
template <int Bits_, int TileM_, bool General_>
struct gemv1_traits {
  using task = plane_task<gemv1_traits>;
  using products = fixed_products<gemv1_traits>;
  using scale_data = raw_scales<General_>;
  using sum_type = float;
  static constexpr int Bits = Bits_, TileM = TileM_;
  static constexpr bool General = General_;
  static constexpr int warps = LPG_GEMV1_WARPS, threads = 32 * warps, row_tiles = lpg_gemv1_row_tiles(TileM);
  static constexpr int chunks = lpg_gemv1_chunks(TileM), blocks = chunks / 2; /* chunks of a unit; its k blocks */
  static constexpr int pairs = TileM == 1 ? 1 : TileM / 2;                    /* of rows of X; or the only row */
  static constexpr int tile_n = row_tiles * LPG_TILE_ROWS;                    /* rows of W of a super tile */
  static constexpr int vectors = Bits * blocks; /* vectors of 512 bytes, of a row tile of a unit */
  /* Units whose loads are under way, in registers. */
  static constexpr int depth = 5 - Bits - General;
  static constexpr int block_words = lpg_gemv1_block_words(Bits), plane_words = lpg_gemv1_plane_words(Bits);
  static constexpr int unit_x_words = blocks * block_words; /* of one row of X */
  static constexpr int digits = lpg_fixed_digits(Bits);
};

}  // namespace
}  // namespace lpg
