/* gemm8: 8-bit X by weights whose sums are promoted to fp32 every 128 k: weights with scales, or scales and zeros,
 * of groups of 128 k or multiples, and e4m3 with any scales, since the tensor cores add its products with few bits.
 *
 *   A unit is one row tile (16 rows) of each consumer warp by 128 k: 4 MMA steps of 32 k. For each unit: make the codes
 *   into bytes in registers, multiply, then sums += scale * products in fp32 (without groups: sums += products).
 * gemm8_bytes.cuh says what the weights become. */
#pragma once

#include "gemm8_bytes.cuh"
#include "gemm8_frame.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The zeros of rows g and g + 8 of a unit, in all four bytes of a word each. */
struct unit_zeros {
  uint32_t of_row[2];

  template <class T>
  __device__ void load(uint32_t scale_data, int unit, int lane) {
    constexpr int all = T::tile_n / LPG_TILE_ROWS * T::units;
    const uint32_t two = load_half(scale_data + all * 32 + unit * 16 + lane / 4 * 2);
    of_row[0] = __byte_perm(two, 0, 0x0000);
    of_row[1] = __byte_perm(two, 0, 0x1111);
  }
};

__device__ inline float scale_in(uint32_t two, int which, bool is_bf16) {
  const uint32_t half = which ? two >> 16 : two & 0xffff;
  return is_bf16 ? __uint_as_float(half << 16) : __half2float(__ushort_as_half((uint16_t)half));
}

template <class T>
struct unit_sums {
  float sum[T::row_tiles][T::TileM / 2];

  __device__ void add(int r, int part, typename T::accumulator (&of_unit)[T::part_sums], const float (&scale)[2]) {
#pragma unroll
    for (int i = 0; i < T::part_sums; i++) {
      float &to = sum[r][part * T::part_sums + i];
      const float products = (float)keep(of_unit[i]);
      to = T::grouped ? fmaf(products, scale[i / 2 % 2], to) : to + products;
    }
  }
};

/* The A operand of a unit. */
template <class T>
struct unit_operand {
  uint32_t weights[4][4]; /* of 4 MMA steps */

  /* Makes a unit's codes into bytes. unit: among those whose words were loaded together. */
  __device__ void dequantise(const gemm8_args &a, const uint32_t *word, int unit, const unit_zeros &zeros) {
#pragma unroll
    for (int i = 0; i < 16; i++) {
      const int half = i % 2, step = unit * 8 + i / 2;
      weights[i / 4][i % 4] = (uint32_t)keep((int)T::Weights::bytes(word + half, step, zeros.of_row[half], a.bytes));
    }
  }

  __device__ void start(typename T::accumulator (&sum)[T::part_sums], uint32_t x, int unit, int part) const {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const uint64_t rows =
          swizzled_rows(x + unit * (T::x_part / 16) + part * (T::part_rows * LPG_GEMM8_X_K / 16) + i * 2);
      if (i == 0) {
        T::Weights::template product<false>::multiply(sum, weights[i], rows);
      } else {
        T::Weights::template product<true>::multiply(sum, weights[i], rows);
      }
    }
    wgmma_commit();
  }
};

/* Loads the words of a unit, or of all units of a packed tile. */
template <class T>
__device__ inline void load_unit_words(uint32_t lane_codes, int unit, uint32_t (&word)[4 * T::load_vectors]) {
#pragma unroll
  for (int v = 0; v < T::load_vectors; v++) {
    load_words(lane_codes + (unit / T::load_units * T::load_vectors + v) * 512, &word[4 * v]);
  }
}

/* The main loop of a consumer warp. The rows of X of a unit are cut into parts of at most 64, so that the products
 * of a part need few registers. While the tensor cores run one or two parts, the warp adds the part before to the
 * sums and, if it has registers for a second A operand, makes the next unit's bytes. With two operands, a unit u of
 * two parts is
 *
 *     issue                                               in flight after it
 *     start u.0                                           (u-1).1, u.0
 *     wait for all but one; add (u-1).1                   u.0
 *     start u.1                                           u.0, u.1
 *     bytes of u+1 into the other operand
 *     wait for all but one; add u.0                       u.1
 *
 * With one operand the wgmma of u read its registers: the bytes of u+1 are made after a wait for all, and the last
 * part of u is added when (u+1).0 has started. The last unit of a stage waits for all as well, releases the stage,
 * and adds its last part at once. Products of parts have two sets of registers in turn, so parts are counted through
 * a stage: unit i begins with part i * parts. */
template <class T, class Work>
__device__ inline void multiply_units(const gemm8_args &a, const Work &w, gemm8_ring &ring, uint8_t *memory, int warp,
                                      int lane) {
  constexpr int row_tiles = T::row_tiles, units = T::units, all_units = row_tiles * units;
  constexpr int parts = T::TileM / T::part_rows; /* parts of the rows of X */
  static_assert(all_units * parts % 2 == 0 && all_units % T::operands == 0, "registers take turns");
  float *const factors = (float *)(memory + a.plan.factors);
  /* The lane is computed from a value that is in a register anyway. Otherwise the compiler reads the thread's index
   * again in the loop, and no longer makes bytes between the sums (e4m3 with groups: 4 % longer). */
  const uint32_t lane_codes = keep(warp * row_tiles * T::w_vectors * 512 + lane * 16);
  const int warp_unit = warp * all_units, own_lane = (int)(lane_codes / 16 % 32);
  typename T::accumulator of_part[2][T::part_sums] = {};
  uint32_t word[4 * T::load_vectors];
  unit_operand<T> operand[T::operands];
  unit_zeros zeros = {{a.groups.zero, a.groups.zero}};
  unit_sums<T> sums;
#pragma unroll 1
  for (int tile = w.first_tile; tile < w.tiles; tile += w.stride) {
    const int row = warp * row_tiles * LPG_TILE_ROWS + lane;
    if (lane < row_tiles * LPG_TILE_ROWS) {
      const float scale = T::grouped ? 1.0f : w.stages ? a.scale_of(w.n_tile(tile) * T::tile_n + row) : 0.0f;
      factors[row] = scale * a.bytes.unit;
    }
    clear_sums(sums.sum);
    if (w.stages > 0) {
      wait_barrier(ring.full, ring.parity);
      load_unit_words<T>(ring.codes + lane_codes, 0, word);
      if (T::grouped && T::Zeros) zeros.load<T>(ring.scale_data, warp_unit, lane);
      operand[0].dequantise(a, word, 0, zeros);
    }
#pragma unroll 1
    for (int left = w.stages; left > 0; left--) {
      const gemm8_ring now = ring;
      const uint32_t x = swizzled_place(now.x);
      float scale[2] = {}, scale_before[2] = {}; /* of the current unit, and of the one before */
#pragma unroll
      for (int i = 0; i < all_units; i++) {
        const int next = (i + 1) % all_units, first_part = i * parts;
        unit_operand<T> &weights = operand[i % T::operands];
        const auto add = [&](int part_of_stage, const float(&scales)[2]) {
          sums.add(part_of_stage / parts / units, part_of_stage % parts, of_part[part_of_stage % 2], scales);
        };
        weights.start(of_part[first_part % 2], x, i % units, 0);
        const uint32_t scales = T::grouped ? load_word(now.scale_data + (warp_unit + i) * 32 + own_lane / 4 * 4) : 0u;
        scale[0] = scale_in(scales, 0, a.groups.scale_is_bf16);
        scale[1] = scale_in(scales, 1, a.groups.scale_is_bf16);
        if (i > 0) {
          if (T::operands == 2) wgmma_wait<1>();
          add(first_part - 1, scale_before);
        }
        if (parts > 1) weights.start(of_part[(first_part + 1) % 2], x, i % units, 1);
        if (next == 0) {
          ring.advance<T>(a.plan);
          /* no branch: the compiler would wait for the wgmma in flight */
          wait_barrier(left > 1 ? ring.full : now.full, left > 1 ? ring.parity : now.parity);
        } else {
          __syncwarp(); /* keeps the compiler from moving what follows between the wgmma instructions */
        }
        const gemm8_ring &of_next = next == 0 ? ring : now;
        const bool loads = next % T::load_units == 0;
        if (loads && T::keeps_words) load_unit_words<T>(of_next.codes + lane_codes, next, word);
        if (T::grouped && T::Zeros) zeros.load<T>(of_next.scale_data, warp_unit + next, own_lane);
        if (T::operands == 2) operand[(i + 1) % T::operands].dequantise(a, word, next % T::load_units, zeros);
#pragma unroll
        for (int part = 1; part < parts; part++) {
          if (part > 1) weights.start(of_part[(first_part + part) % 2], x, i % units, part);
          wgmma_wait<1>();
          add(first_part + part - 1, scale);
        }
        if (T::operands == 1 || next == 0) wgmma_wait<0>();
        if (next == 0) {
          __syncwarp();
          if (own_lane == 0) arrive(now.full + 8);
        }
        if (T::operands == 1) {
          if (loads && !T::keeps_words) load_unit_words<T>(of_next.codes + lane_codes, next, word);
          weights.dequantise(a, word, next % T::load_units, zeros);
        }
        if (next == 0) add(first_part + parts - 1, scale);
        scale_before[0] = scale[0];
        scale_before[1] = scale[1];
      }
    }
    __syncwarp();
    store_sums<T>(a, w, tile, sums, factors, memory);
  }
}

template <class Weights_, int TileM_, int RowTiles_, bool Grouped_>
struct gemm8_unit_traits : gemm8_traits<Weights_::Bits, TileM_, RowTiles_> {
  using whole = gemm8_unit_traits;
  using base = gemm8_traits<Weights_::Bits, TileM_, RowTiles_>;
  using Weights = Weights_;
  using accumulator = typename Weights::accumulator;
  static constexpr bool integer_sums = false, grouped = Grouped_, Zeros = Weights::zeros;
  static constexpr int part_rows = TileM_ < 64 ? TileM_ : 64, part_sums = part_rows / 2;
  /* Units whose words are loaded together: those of a packed tile; and its 512-byte vectors in a row tile. */
  static constexpr int load_units = lpg_tile_k(base::Bits) > LPG_GEMM8_X_K ? base::units : 1;
  static constexpr int load_vectors = load_units * LPG_GEMM8_X_K * base::Bits / 256;
  /* A operands that there are registers for; and whether words may be loaded before the unit before is done. */
  static constexpr int operands = TileM_ * RowTiles_ <= 128 && TileM_ * load_units <= 128 ? 2 : 1;
  static constexpr bool keeps_words = operands == 2 || base::Bits <= 4;
  static constexpr int full_arrivals = grouped ? 1 + base::tile_n / LPG_TILE_ROWS * base::units : 1;
  static constexpr int producer_registers = 40, consumer_registers = 232;

  /* T: these traits, or those of half work tiles. */
  template <class T, class Work>
  __device__ static void multiply(const gemm8_args &a, const Work &w, gemm8_ring &ring, uint8_t *memory, int warp,
                                  int lane) {
    multiply_units<T>(a, w, ring, memory, warp, lane);
  }
};

}  // namespace
}  // namespace lpg
