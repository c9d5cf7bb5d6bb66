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
  static constexpr bool integer_sums = false, grouped = true, Zeros = Zeros_;
  static constexpr int units = base::stage_k / LPG_OCTETS_X_K; /* of a row tile and stage */
  /* Parts of the tokens whose products start one after the other: one's sums are scaled while the next is multiplied.
   */
  static constexpr int parts = Tokens_ >= 64 ? 2 : 1, part_sums = Tokens_ / 2 / parts;
  static constexpr bool keeps_words = Tokens_ * RowTiles_ <= 128 || Bits_ <= 4; /* while products are under way */
  static constexpr int full_arrivals = 1 + base::rows / LPG_TILE_ROWS * units;
  static constexpr int copy_registers = 40, registers = 232;
};

/* Four bytes of 16 columns, as lpg_planes_bytes_of_weights() has them, less the middle of the codes, times 2^(8 -
 * Bits). The constant is in a register, since an instruction takes only one, beside the mask. */
template <int Bits>
__device__ inline uint32_t centered_bytes(const uint32_t *word, int step) {
  static_assert(lpg_octets_has_centered(Bits), "codes of 4 or 8 bits");
  const uint32_t low = word[step * Bits / 8 * 2], codes = Bits == 4 && step % 2 == 0 ? low << 4 : low;
  return and_xor(codes, Bits == 4 ? 0xf0f0f0f0u : ~0u, 0x80808080u);
}

/* The same less a zero from 0 to 128, of codes of at most 7 bits: as it is. No byte borrows from the next. */
template <int Bits>
__device__ inline uint32_t bytes_less_zero(const uint32_t *word, int step, uint32_t zero) {
  constexpr uint32_t top = 0x80808080u, mask = ((1u << Bits) - 1) * 0x01010101u;
  if constexpr (lpg_is_pow2_width(Bits)) {
    return (and_or(word[step * Bits / 8 * 2] >> step * Bits % 8, mask, top) - zero) ^ top;
  } else {
    return (and_or(lpg_planes_bytes_of_weights(Bits, word, 2, step), mask, top) - zero) ^ top;
  }
}

/* The zeros of a unit's rows g and g + 8, four times each. */
struct unit_zeros {
  uint32_t of_row[2];

  template <class T>
  __device__ void load(uint32_t numbers, int slot, int lane) {
    constexpr int all = T::rows / LPG_TILE_ROWS * T::units;
    const uint32_t two = load_half(numbers + all * 32 + slot * 16 + lane / 4 * 2);
    of_row[0] = __byte_perm(two, 0, 0x0000);
    of_row[1] = __byte_perm(two, 0, 0x1111);
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

  __device__ void add(int r, int part, int (&of_unit)[T::part_sums], const float (&scale)[2]) {
#pragma unroll
    for (int i = 0; i < T::part_sums; i++) {
      float &to = sum[r][part * T::part_sums + i];
      to = fmaf((float)keep(of_unit[i]), scale[i / 2 % 2], to);
    }
  }
};

template <class T>
struct unit_operand {
  uint32_t weights[4][4]; /* of steps of 32 columns */

  __device__ void decode(const uint32_t *word, int unit, const unit_zeros &zeros) {
#pragma unroll
    for (int i = 0; i < 16; i++) {
      const int half = i % 2, step = unit * 8 + i / 2;
      uint32_t bytes;
      if constexpr (T::Zeros) {
        bytes = bytes_less_zero<T::Bits>(word + half, step, zeros.of_row[half]);
      } else {
        bytes = centered_bytes<T::Bits>(word + half, step);
      }
      weights[i / 4][i % 4] = (uint32_t)keep((int)bytes);
    }
  }

  __device__ void start(int (&sum)[T::part_sums], uint32_t x, int unit, int part) const {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const uint64_t rows = swizzled_rows(x + unit * (T::x_part / 16) + part * (T::x_part / 16 / T::parts) + i * 2);
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

/* The zero that all groups have, in all stages: nobody brings it, and nothing else is ever there. */
template <class T>
__device__ inline void fill_zeros(const octets_args &a, uint8_t *memory) {
  constexpr int words = T::rows * T::units / 4;
  for (int i = threadIdx.x; i < a.plan.stages * words; i += T::threads) {
    uint8_t *const stage = memory + a.plan.numbers_ring + i / words * T::numbers_bytes;
    ((uint32_t *)(stage + T::rows * T::units * 2))[i % words] = a.groups.zero;
  }
}

template <class T>
__device__ inline void multiply_groups(const octets_args &a, const octets_work &w, uint32_t base, uint8_t *memory,
                                       int warp, int lane) {
  constexpr int row_tiles = T::row_tiles, units = T::units, all_units = row_tiles * units;
  octets_ring ring(a.plan, base, 0);
  float *const factors = (float *)(memory + a.plan.factors);
  const uint32_t own_codes = warp * row_tiles * T::w_vectors * 512 + lane * 16;
  const int own_slot = warp * all_units;
  if (lane < row_tiles * LPG_TILE_ROWS) {
    factors[warp * row_tiles * LPG_TILE_ROWS + lane] = T::Zeros ? 1.0f : 1.0f / (1 << (8 - T::Bits));
  }
  int of_unit[T::parts][T::part_sums] = {}; /* the same registers for all units */
  uint32_t word[4 * T::w_vectors];
  unit_operand<T> operand;
  unit_zeros zeros = {};
  group_sums<T> sums;
#pragma unroll 1
  for (int item = w.first_item; item < w.items; item += w.stride) {
    sums.clear();
    if (w.stages > 0) {
      wait_barrier(ring.full, ring.parity);
      load_row_tile<T>(ring.codes + own_codes, 0, word);
      if (T::Zeros) zeros.load<T>(ring.numbers, own_slot, lane);
      operand.decode(word, 0, zeros);
    }
#pragma unroll 1
    for (int left = w.stages; left > 0; left--) {
      const octets_ring now = ring;
      const uint32_t x = swizzled_place(now.x);
      float scale_before[2] = {}; /* of the stage's unit before, whose last part is still to be added */
#pragma unroll
      for (int i = 0; i < all_units; i++) {
        const int next = (i + 1) % all_units;
        operand.start(of_unit[0], x, i % units, 0);
        const uint32_t scales = load_word(now.numbers + (own_slot + i) * 32 + lane / 4 * 4);
        if constexpr (T::parts == 2) {
          if (i > 0) sums.add((i - 1) / units, 1, of_unit[1], scale_before);
          operand.start(of_unit[1], x, i % units, 1);
        }
        if (next == 0) {
          ring.advance<T>(a.plan);
          wait_barrier(left > 1 ? ring.full : now.full, left > 1 ? ring.parity : now.parity); /* without a branch */
        }
        const octets_ring &of_next = next == 0 ? ring : now;
        if (T::keeps_words && next % units == 0) load_row_tile<T>(of_next.codes + own_codes, next / units, word);
        if (T::Zeros) zeros.load<T>(of_next.numbers, own_slot + next, lane);
        const float scale[2] = {scale_in(scales, 0, a.groups.scale_is_bf16),
                                scale_in(scales, 1, a.groups.scale_is_bf16)};
        wgmma_wait<T::parts - 1>();
        sums.add(i / units, 0, of_unit[0], scale);
        if (T::parts == 2) wgmma_wait<0>();
        if (next == 0) {
          __syncwarp();
          if (lane == 0) arrive(now.full + 8);
        }
        if (!T::keeps_words && next % units == 0) load_row_tile<T>(of_next.codes + own_codes, next / units, word);
        operand.decode(word, next % units, zeros);
        if constexpr (T::parts == 2) {
          if (next == 0) sums.add(i / units, 1, of_unit[1], scale);
        }
        scale_before[0] = scale[0];
        scale_before[1] = scale[1];
      }
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
  if (T::Zeros && !a.groups.zeros) fill_zeros<T>(a, memory);
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
