/* int8 by integer weights whose scales, or scales and zeros, are those of groups of 128 columns or multiples of them.
 *
 * The frame is that of octets.cuh. The products of a unit, which is one row tile of each warp by 128 columns, are
 * int32; they become fp32, are scaled and added to sums in fp32 while the other four warps have the tensor cores.
 * Weights become signed bytes: the code less its zero, or, where the zero is the middle of the codes, that times the
 * power of two that brings it to the top of the byte. */
#pragma once

#include "octets.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

template <int Bits_, int Tokens_, int RowTiles_, bool Zeros_>
struct octets_group_traits : octets_traits<Bits_, Tokens_, RowTiles_> {
  using base = octets_traits<Bits_, Tokens_, RowTiles_>;
  static constexpr bool integer_sums = false, Zeros = Zeros_;
  static constexpr int units = base::stage_k / LPG_OCTETS_X_K; /* of a row tile and stage */
  /* Whether there are registers to decode a unit's weights while those before are multiplied. */
  static constexpr bool ahead = Tokens_ * RowTiles_ <= 128;
  static constexpr bool keeps_words = ahead || Bits_ <= 4; /* and to have their words by then */
  static constexpr int copy_registers = 24, registers = 240;
};

/* Four bytes of 16 columns, as lpg_planes_bytes_of_weights() has them, less the middle of the codes, times 2^(8 -
 * Bits).
 */
template <int Bits>
__device__ inline uint32_t centered_bytes(const uint32_t *word, int step) {
  constexpr uint32_t top = 0x80808080u;
  if constexpr (lpg_is_pow2_width(Bits)) {
    constexpr int steps = 8 / Bits; /* of a word */
    return (word[step / steps * 2] << (8 - Bits - step % steps * Bits) & (0x100u - (0x100u >> Bits)) * 0x01010101u) ^
           top;
  } else {
    return (lpg_planes_bytes_of_weights(Bits, word, 2, step) << (8 - Bits)) ^ top;
  }
}

/* The same less a zero from 0 to 128, of codes of at most 7 bits: as it is. */
template <int Bits>
__device__ inline uint32_t bytes_less_zero(const uint32_t *word, int step, uint32_t zero) {
  constexpr uint32_t top = 0x80808080u; /* no byte borrows from the next */
  return ((lpg_planes_bytes_of_weights(Bits, word, 2, step) | top) - zero) ^ top;
}

/* What belongs to the rows g and g + 8 of a warp's row tiles, for the units of a stage: scales as they are packed, and
 * zeros, four times each. */
template <class T>
struct group_numbers_of {
  uint32_t scale[T::row_tiles][T::units];
  uint32_t zero[T::Zeros ? T::row_tiles : 1][T::units][2];

  /* unit: the stage's first of the row. */
  __device__ void load(const octets_groups &g, int row_tile, int row_tiles, int unit, int lane) {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      const int64_t tile = min(row_tile + r, row_tiles - 1);
#pragma unroll
      for (int u = 0; u < T::units; u++) {
        const int group = min((unit + u) >> g.log2, g.last);
        scale[r][u] = *(const uint32_t *)(g.scales + tile * g.scale_row + group * 32 + lane / 4 * 4);
        if constexpr (T::Zeros) {
          uint32_t two = g.zero;
          if (g.zeros) two = *(const uint16_t *)(g.zeros + tile * g.zero_row + group * 16 + lane / 4 * 2);
          zero[r][u][0] = __byte_perm(two, 0, 0x0000);
          zero[r][u][1] = __byte_perm(two, 0, 0x1111);
        }
      }
    }
  }
};

__device__ inline float scale_in(uint32_t two, int which, bool is_bf16) {
  const uint32_t half = which ? two >> 16 : two & 0xffff;
  return is_bf16 ? __uint_as_float(half << 16) : __half2float(__ushort_as_half((uint16_t)half));
}

template <class T>
struct group_sums {
  float sum[T::row_tiles][T::Tokens / 2];

  __device__ void clear() {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int i = 0; i < T::Tokens / 2; i++) sum[r][i] = 0.0f;
    }
  }

  __device__ void add(int r, int (&of_unit)[T::Tokens / 2], uint32_t scales, bool is_bf16) {
    const float scale[2] = {scale_in(scales, 0, is_bf16), scale_in(scales, 1, is_bf16)};
#pragma unroll
    for (int i = 0; i < T::Tokens / 2; i++) {
      sum[r][i] = fmaf((float)keep(of_unit[i]), scale[i / 2 % 2], sum[r][i]);
    }
  }
};

template <class T>
struct unit_operand {
  uint32_t weights[4][4]; /* of steps of 32 columns */

  __device__ void decode(const uint32_t *word, int unit, const uint32_t *zero) {
#pragma unroll
    for (int i = 0; i < 16; i++) {
      const int half = i % 2, step = unit * 8 + i / 2;
      uint32_t bytes;
      if constexpr (T::Zeros) {
        bytes = bytes_less_zero<T::Bits>(word + half, step, zero[half]);
      } else {
        bytes = centered_bytes<T::Bits>(word + half, step);
      }
      weights[i / 4][i % 4] = (uint32_t)keep((int)bytes);
    }
  }

  __device__ void start(int (&sum)[T::Tokens / 2], uint32_t x, int unit) const {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const uint64_t rows = swizzled_rows(x + unit * (T::x_part / 16) + i * 2);
      if (i == 0) {
        wgmma_i8_in<false>::multiply(sum, weights[i], rows);
      } else {
        wgmma_i8_in<true>::multiply(sum, weights[i], rows);
      }
    }
    wgmma_commit();
  }
};

template <class T>
__device__ inline void load_row_tile(uint32_t stage, int row_tile, uint32_t (&word)[4 * T::w_vectors]) {
#pragma unroll
  for (int v = 0; v < T::w_vectors; v++) load_words(stage + (row_tile * T::w_vectors + v) * 512, &word[4 * v]);
}

template <class T>
__device__ inline void multiply_groups(const octets_args &a, const octets_work &w, uint32_t base, uint8_t *memory,
                                       int warp, int lane) {
  constexpr int row_tiles = T::row_tiles, units = T::units;
  octets_ring ring(a.plan, base, 0);
  float *const factors = (float *)(memory + a.plan.factors);
  const uint32_t own_codes = warp * row_tiles * T::w_vectors * 512 + lane * 16;
  if (lane < row_tiles * LPG_TILE_ROWS) {
    factors[warp * row_tiles * LPG_TILE_ROWS + lane] = T::Zeros ? 1.0f : 1.0f / (1 << (8 - T::Bits));
  }
  int of_unit[T::Tokens / 2] = {}; /* the same registers for all units */
  uint32_t word[4 * T::w_vectors];
  unit_operand<T> operand, next_operand;
  group_numbers_of<T> numbers, next_numbers;
  group_sums<T> sums;
#pragma unroll 1
  for (int item = w.first_item; item < w.items; item += w.stride) {
    const int row_tile = w.row_item(item) * (T::rows / LPG_TILE_ROWS) + warp * row_tiles;
    int unit = w.first * units;
    sums.clear();
    if (w.stages > 0) {
      numbers.load(a.groups, row_tile, a.row_tiles, unit, lane);
      wait_barrier(ring.full, ring.parity);
      load_row_tile<T>(ring.codes + own_codes, 0, word);
      operand.decode(word, 0, numbers.zero[0][0]);
    }
#pragma unroll 1
    for (int left = w.stages; left > 0; left--) {
      const uint32_t x = swizzled_place(ring.x), codes = ring.codes + own_codes, full = ring.full, parity = ring.parity;
      unit += units;
      next_numbers.load(a.groups, row_tile, a.row_tiles, unit, lane);
#pragma unroll
      for (int i = 0; i < row_tiles * units; i++) {
        const int r = i / units, u = i % units, next = (i + 1) % (row_tiles * units);
        const uint32_t *const zero =
            (next == 0 ? next_numbers : numbers).zero[T::Zeros ? next / units : 0][next % units];
        operand.start(of_unit, x, u);
        if (next == 0) {
          ring.advance<T>(a.plan);
          wait_barrier(left > 1 ? ring.full : full, left > 1 ? ring.parity : parity); /* without a branch */
        }
        const uint32_t next_codes = next == 0 ? ring.codes + own_codes : codes;
        if (T::keeps_words && next % units == 0) load_row_tile<T>(next_codes, next / units, word);
        if (T::ahead) next_operand.decode(word, next % units, zero);
        wgmma_wait<0>();
        if (next == 0) {
          __syncwarp();
          if (lane == 0) arrive(full + 8);
        }
        sums.add(r, of_unit, numbers.scale[r][u], a.groups.scale_is_bf16);
        if (T::ahead) {
          operand = next_operand;
        } else {
          if (!T::keeps_words && next % units == 0) load_row_tile<T>(next_codes, next / units, word);
          operand.decode(word, next % units, zero);
        }
      }
      numbers = next_numbers;
    }
    __syncwarp();
    if (a.plan.slices > 1) {
      store_parts<T>(a, w, item, sums, factors, memory);
    } else if (!store_scaled<T>(a, w, item, sums, factors, memory, warp, lane)) {
      store_item<T>(a, w, item, sums, factors, memory);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(T::threads, 1) octets_groups_kernel(const __grid_constant__ octets_args a) {
  extern __shared__ __align__(1024) uint8_t memory[];
  const uint32_t base = shared_address(memory);
  begin_octets<T>(a, base);
  const octets_work w(a);
  const int warp = same_in_warp(threadIdx.x / 32), lane = threadIdx.x % 32;
  if (warp >= T::warps) {
    give_registers_back<T::copy_registers>();
    bring_stages<T>(a, w, base, warp - T::warps, lane);
  } else {
    take_registers<T::registers>();
    multiply_groups<T>(a, w, base, memory, warp, lane);
  }
}

}  // namespace
}  // namespace lpg
