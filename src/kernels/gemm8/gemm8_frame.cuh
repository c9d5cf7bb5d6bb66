/* gemm8: the kernel and its producer warps, for all 8-bit operands.
 *
 *   4 producer warps fill a ring of stages in shared memory. One lane asks for two TMA copies a stage: packed weights,
 *   and rows of the X image (gemm8_x.cu). If scales are of groups, all four warps load those by cp.async.
 *   8 consumer warps multiply: gemm8.cuh (one scale a row), gemm8_units.cuh (scale groups, and e4m3).
 *   Each stage has a full and an empty mbarrier. CTAs are persistent: a cluster takes work tiles in turn. Split-K is
 *   over the CTAs of a cluster; the partial sums are added in a fixed order. Then the epilogue. */
#pragma once

#include "../epilogue/store_fast.cuh"
#include "../prim/logic.cuh"
#include "../prim/pdl.cuh"
#include "../prim/wgmma.cuh"
#include "gemm8_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Loads the scales and zeros of a stage, for the producer warp's row tiles from row_tile on. k_unit: number of the
 * stage's first 128 k. A lane loads those of one row tile and 128 k; its arrival on the full mbarrier follows its
 * copies. */
template <class T>
__device__ inline void load_stage_scales(const gemm8_groups &g, uint32_t to, uint32_t full, int warp, int row_tile,
                                         int row_tiles, int k_unit, int lane) {
  constexpr int all = T::tile_n / LPG_TILE_ROWS * T::units, each = all / LPG_GEMM8_PRODUCER_WARPS;
  if (lane >= each) return;
  const int64_t tile = min(row_tile + lane / T::units, row_tiles - 1);
  const int group = min((k_unit + lane % T::units) >> g.log2, g.last), place = warp * each + lane;
  const uint8_t *const scales = g.scales + tile * g.scale_row + group * 32;
  copy16_async(to + place * 32, scales);
  copy16_async(to + place * 32 + 16, scales + 16);
  if (T::Zeros && g.zeros) copy16_async(to + all * 32 + place * 16, g.zeros + tile * g.zero_row + group * 16);
  arrive_when_copied(full);
}

/* Writes the zero that all groups have to all stages; no copy overwrites it. */
template <class T>
__device__ inline void fill_zeros(const gemm8_args &a, uint8_t *memory) {
  constexpr int words = T::tile_n * T::units / 4;
  for (int i = threadIdx.x; i < a.plan.stages * words; i += T::threads) {
    uint8_t *const stage = memory + a.plan.scales_ring + i / words * T::scales_bytes;
    ((uint32_t *)(stage + T::tile_n * T::units * 2))[i % words] = a.groups.zero;
  }
}

/* Fills the stages of all work tiles. The first producer warp loads X and weights, each of the four the scales of a
 * quarter of the row tiles. */
template <class T, class Work>
__device__ inline void load_tiles(const gemm8_args &a, const Work &w, gemm8_ring &ring, int warp, int lane) {
  constexpr int row_tiles = T::tile_n / LPG_TILE_ROWS, x_parts = T::stage_k / LPG_GEMM8_X_K;
  for (int tile = w.first_tile; tile < w.tiles; tile += w.stride) {
    const int x_row = w.m_tile(tile) * T::TileM, row_tile = w.n_tile(tile) * row_tiles;
    const int x_rows = min(T::TileM, a.image_rows - x_row);
    const uint8_t *image = a.image + (int64_t)x_row * LPG_GEMM8_X_K + (int64_t)w.first * x_parts * a.image_stage;
    for (int stage = w.first; stage < w.first + w.stages; stage++) {
      if (T::grouped || warp == 0) wait_barrier(ring.full + 8, ring.parity);
      if (warp == 0 && is_elected()) {
        arrive_and_expect(ring.full, x_rows * T::stage_k + T::w_bytes);
        copy_box(ring.codes, &a.codes, 0, stage * T::w_vectors, row_tile, ring.full);
#pragma unroll
        for (int i = 0; i < x_parts; i++) {
          copy_bulk(ring.x + i * T::x_part, image + i * a.image_stage, x_rows * LPG_GEMM8_X_K, ring.full);
        }
      }
      if constexpr (T::grouped) {
        load_stage_scales<T>(a.groups, ring.scale_data, ring.full, warp,
                             row_tile + warp * (row_tiles / LPG_GEMM8_PRODUCER_WARPS), a.row_tiles, stage * T::units,
                             lane);
      }
      image += x_parts * a.image_stage;
      ring.advance<T>(a.plan);
    }
    __syncwarp();
    if (!is_half<T> && a.plan.split_k > 1) {
      if (T::grouped) wait_copies<0>();
      wait_for_parts();
      fence_for_tensor_cores(); /* partial sums lay where TMA writes next */
    }
  }
}

/* Initialises the mbarriers; then waits for the kernels before (PDL). */
template <class T>
__device__ inline void begin_gemm8(const gemm8_args &a, uint32_t base) {
  pdl_launch_next();
  if (threadIdx.x == 0) {
    for (int i = 0; i < a.plan.stages; i++) {
      init_barrier(base + 16 * i, T::full_arrivals);
      init_barrier(base + 16 * i + 8, T::warps);
    }
    fence_barriers();
  }
  __syncthreads();
  pdl_wait();
}

template <class T>
__global__ void __launch_bounds__(T::threads, 1) gemm8_kernel(const __grid_constant__ gemm8_args a) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  const uint32_t base = shared_address(memory);
  if constexpr (T::grouped && T::Zeros) {
    if (!a.groups.zeros) fill_zeros<T>(a, memory);
  }
  begin_gemm8<T>(a, base);
  const gemm8_work w(a);
  const int warp = same_in_warp(threadIdx.x / 32), lane = threadIdx.x % 32;
  if (warp >= T::warps) {
    release_registers<T::producer_registers>();
    gemm8_ring ring(a.plan, base, 1); /* a fresh empty mbarrier counts as passed */
    load_tiles<T>(a, w, ring, warp - T::warps, lane);
    if constexpr (lpg_gemm8_has_halves(T::TileM, T::row_tiles)) {
      load_tiles<half_traits<T>>(a, halves_of<gemm8_work>(w), ring, warp - T::warps, lane);
    }
  } else {
    take_registers<T::consumer_registers>();
    gemm8_ring ring(a.plan, base, 0);
    T::template multiply<T>(a, w, ring, memory, warp, lane);
    if constexpr (lpg_gemm8_has_halves(T::TileM, T::row_tiles)) {
      T::template multiply<half_traits<T>>(a, halves_of<gemm8_work>(w), ring, memory, warp, lane);
    }
  }
}

}  // namespace
}  // namespace lpg
