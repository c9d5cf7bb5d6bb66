/* gemm8: int8 X by integer weights with one scale and one zero a row, on the int8 tensor cores (wgmma, sm_90a).
 *
 *   8 consumer warps, each with 16 or 32 rows of W of the work tile:
 *     for each batch of 1 or 2 MMA steps (32 k each): make the codes into bytes in registers (wgmma's A operand)
 *     while the tensor cores run the batch before
 *   The sums are int32 throughout, and exact. What the rows' offsets and zeros add is the sums of rows of X times as
 *   much, which come with the image of X, or at the end, if X is read directly.
 *   The kernel, its producer warps and the ring are in gemm8_frame.cuh. */
#pragma once

#include "../operand/bit_planes.h"
#include "gemm8_frame.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* A lane's packed words of the current stage. */
template <class T>
struct gemm8_words {
  uint32_t word[T::row_tiles][4 * T::w_vectors];

  /* Loads the words that are first needed in the batch of steps that begins at `step`. stage: address. */
  __device__ void load(uint32_t stage, int step) {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int v = 0; v < T::w_vectors; v++) {
        if (T::first_step(v) / T::batch == step / T::batch) {
          load_words(stage + (r * T::w_vectors + v) * 512, &word[r][4 * v]);
        }
      }
    }
  }
};

template <class T>
struct gemm8_sums {
  int sum[T::row_tiles][T::TileM / 2];

  /* Sets the sums to what offsets and zeros add, which is each row's of W times the sum of each row of X; to 0 if X is
   * read directly, and with split-K but in rank 0. No branch: the compiler would wait for each wgmma. */
  template <class Work>
  __device__ void begin(const gemm8_args &a, const Work &w, int tile, int warp, int lane) {
    const bool adds = !a.plan.direct && w.rank == 0 && w.stages > 0;
    const int2 *const x_sums = (const int2 *)(a.x_sums + w.m_tile(tile) * T::TileM) + lane % 4;
    const int32_t *const offsets =
        a.offsets + w.n_tile(tile) * T::tile_n + warp * T::row_tiles * LPG_TILE_ROWS + lane / 4;
    int own[T::row_tiles][2];
#pragma unroll
    for (int i = 0; i < 2 * T::row_tiles; i++) own[i / 2][i % 2] = adds ? offsets[8 * i] : 0;
    clear_sums(sum);
#pragma unroll
    for (int j = 0; j < T::TileM / 8; j++) add_eight(j, own, adds ? x_sums[4 * j] : make_int2(0, 0));
  }

  /* Adds it where X was read directly. offsets: of the warp's rows, less their zeros. */
  __device__ void add_offsets(const int *offsets, const int *x_sums) {
    int own[T::row_tiles][2];
#pragma unroll
    for (int i = 0; i < 2 * T::row_tiles; i++) own[i / 2][i % 2] = offsets[threadIdx.x % 32 / 4 + 8 * i];
#pragma unroll
    for (int j = 0; j < T::TileM / 8; j++) add_eight(j, own, ((const int2 *)x_sums)[4 * j + threadIdx.x % 4]);
  }

  /* Eight rows of X, of which the lane has two. */
  __device__ void add_eight(int block, const int (&offset)[T::row_tiles][2], int2 x_sums) {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int i = 0; i < 4; i++) sum[r][4 * block + i] += offset[r][i / 2] * (i % 2 ? x_sums.y : x_sums.x);
    }
  }

  __device__ void start(const uint32_t (&weights)[T::batch][T::row_tiles][4], uint32_t x, int step) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < T::batch; i++) {
      const int at = step + i;
      const uint64_t rows = swizzled_rows(x + at / 4 * (T::x_part / 16) + at % 4 * 2);
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) wgmma_u8_by_i8::multiply(sum[r], weights[i][r], rows);
    }
    wgmma_commit();
  }
};

template <class T, class Work>
__device__ inline void multiply_tiles(const gemm8_args &a, const Work &w, gemm8_ring &ring, uint8_t *memory, int warp,
                                      int lane) {
  constexpr int warp_rows = T::row_tiles * LPG_TILE_ROWS;
  float *const factors = (float *)(memory + a.plan.factors);
  int *const offsets = (int *)(memory + a.plan.offsets) + warp * warp_rows;
  const uint32_t lane_codes = warp * T::row_tiles * T::w_vectors * 512 + lane * 16;
  uint32_t operand[2][T::batch][T::row_tiles][4];
  gemm8_words<T> words;
  gemm8_sums<T> sums;
#pragma unroll 1
  for (int tile = w.first_tile; tile < w.tiles; tile += w.stride) {
    if (lane < warp_rows) {
      const int row = w.n_tile(tile) * T::tile_n + warp * warp_rows + lane;
      factors[warp * warp_rows + lane] = w.stages > 0 ? a.scale_of(row) : 0.0f;
      if (!is_half<T> && a.plan.direct && w.stages > 0) offsets[lane] = a.rows.offset_less_zero(row);
    }
    sums.begin(a, w, tile, warp, lane);
    uint32_t before = 0; /* empty mbarrier of the stage that a wgmma may still read; 0: none */
    if (w.stages > 0) {
      wait_barrier(ring.full, ring.parity);
      words.load(ring.codes + lane_codes, 0);
    }
#pragma unroll 1
    for (int left = w.stages; left > 0; left--) {
      const uint32_t x = swizzled_place(ring.x), full = ring.full, parity = ring.parity;
#pragma unroll
      for (int first = 0; first < T::stage_steps; first += T::batch) {
        uint32_t(&weights)[T::batch][T::row_tiles][4] = operand[first / T::batch % 2];
#pragma unroll
        for (int i = 0; i < T::batch * 4; i++) {
          const int step = first + i / 4, half = i % 2, sixteen = i / 2 % 2;
#pragma unroll
          for (int r = 0; r < T::row_tiles; r++) {
            weights[i / 4][r][half + 2 * sixteen] =
                (uint32_t)keep((int)lpg_bit_planes_weight_bytes(T::Bits, words.word[r] + half, 2, step * 2 + sixteen));
          }
        }
        sums.start(weights, x, first);
        const int next = first + T::batch;
        if (next == T::stage_steps) {
          ring.advance<T>(a.plan);
          /* no branch: the compiler would wait for the wgmma in flight */
          wait_barrier(left > 1 ? ring.full : full, left > 1 ? ring.parity : parity);
        }
        if (!T::as_stored) words.load(ring.codes + lane_codes, next % T::stage_steps);
        wgmma_wait<1>();
        if (T::as_stored) words.load(ring.codes + lane_codes, next % T::stage_steps);
        if (first == 0) {
          __syncwarp();
          if (lane == 0 && before != 0) arrive(before);
          before = full + 8;
        }
      }
    }
    wgmma_wait<0>();
    __syncwarp();
    if (lane == 0 && before != 0) arrive(before);
    if (!is_half<T> && a.plan.direct && w.stages > 0) sums.add_offsets(offsets, (const int *)(memory + a.plan.x_sums));
    store_sums<T>(a, w, tile, sums, factors, memory);
  }
}

template <int Bits, int TileM, int RowTiles>
struct gemm8_row_traits : gemm8_traits<Bits, TileM, RowTiles> {
  using whole = gemm8_row_traits;
  static constexpr bool integer_sums = true, grouped = false, Zeros = false;
  /* The words are the A operand themselves: new ones must wait for its wgmma. */
  static constexpr bool as_stored = Bits == 8;

  /* T: these traits, or those of half work tiles. */
  template <class T, class Work>
  __device__ static void multiply(const gemm8_args &a, const Work &w, gemm8_ring &ring, uint8_t *memory, int warp,
                                  int lane) {
    multiply_tiles<T>(a, w, ring, memory, warp, lane);
  }
};

}  // namespace
}  // namespace lpg
