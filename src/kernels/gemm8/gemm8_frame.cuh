/* gemm8: the kernel, for all 8-bit operands.
 *
 *   4 producer warps fill a ring of stages in shared memory (gemm8_load.cuh).
 *   8 consumer warps multiply: gemm8.cuh (one scale a row), gemm8_units.cuh (scale groups, and e4m3).
 *   Each stage has a full and an empty mbarrier. CTAs are persistent: a cluster takes work tiles in turn. Split-K is
 *   over the CTAs of a cluster; the partial sums are added in a fixed order. Then the epilogue. */
#pragma once

#include "../epilogue/split_k_exchange.cuh"
#include "../prim/logic.cuh"
#include "../prim/pdl.cuh"
#include "../prim/wgmma.cuh"
#include "gemm8_load.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Writes the zero that all groups have to all stages; no copy overwrites it. */
template <class T>
__device__ inline void fill_zeros(const gemm8_args &a, uint8_t *memory) {
  constexpr int words = T::tile_n * T::units / 4;
  for (int i = threadIdx.x; i < a.plan.stages * words; i += T::threads) {
    uint8_t *const stage = memory + a.plan.scales_ring + i / words * T::scales_bytes;
    ((uint32_t *)(stage + T::tile_n * T::units * 2))[i % words] = a.groups.zero;
  }
}

/* Initialises the mbarriers. Of X that is read directly each producer warp arrives, of an image one lane. */
template <class T>
__device__ inline void init_barriers(const lpg_gemm8_plan &p, uint32_t base) {
  if (threadIdx.x == 0) {
    for (int i = 0; i < p.stages; i++) {
      init_barrier(base + 16 * i, T::full_arrivals + (p.direct ? LPG_GEMM8_PRODUCER_WARPS - 1 : 0));
      init_barrier(base + 16 * i + 8, T::warps);
    }
    if (p.exchanges) init_barrier(base + p.received, T::warps * p.split_k);
    fence_barriers();
  }
  __syncthreads();
}

/* Stores a work tile, or, of parts of K, the CTA's share of it. */
template <class T, class Work, class Sums>
__device__ inline void store_sums(const gemm8_args &a, const Work &w, int tile, const Sums &sums, const float *factors,
                                  uint8_t *memory) {
  if constexpr (!is_half<T>) {
    if (a.plan.exchanges) {
      const parts_exchange<T> exchange(a, w, tile, memory);
      exchange.send(a, w, (tile - w.first_tile) / w.stride, sums, memory);
      store_pieces<T, stores_all>(a, exchange.own, factors, memory,
                                  [&](piece_sums<T> &piece, int first) { exchange.add(piece, first); });
      return exchange.end(a);
    }
  }
  const int parts = a.plan.split_k > 1 ? 1 : 0;
  if (parts > 0 || !store_scaled<T>(a, w, tile, sums, factors, memory))
    store_tile<T, is_half<T> ? 0 : 1>(a, w, tile, sums, sums, parts, factors, memory);
}

template <class T>
__global__ void __launch_bounds__(T::threads, 1) gemm8_kernel(const __grid_constant__ gemm8_args a) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  const uint32_t base = shared_address(memory);
  if constexpr (T::grouped && T::Zeros) {
    if (!a.groups.zeros) fill_zeros<T>(a, memory);
  }
  pdl_launch_next();
  init_barriers<T>(a.plan, base);
  if (a.plan.apart && a.plan.exchanges) cluster_arrive_only(); /* see parts_exchange */
  if (a.epilogue.device_alpha) pdl_wait();                     /* reads_product() reads it */
  const gemm8_work w(a);
  const int warp = same_in_warp(threadIdx.x / 32), lane = threadIdx.x % 32;
  if (warp >= T::warps) {
    release_registers<T::producer_registers>();
    gemm8_ring ring(a.plan, base, 1); /* a fresh empty mbarrier counts as passed */
    load_tiles<T>(a, w, ring, memory, warp - T::warps, lane);
    if constexpr (lpg_gemm8_has_halves(T::TileM, T::row_tiles)) {
      load_images<half_traits<T>>(a, halves_of<gemm8_work>(w), ring, 0, warp - T::warps, lane);
    }
  } else {
    take_registers<T::consumer_registers>();
    pdl_wait();
    gemm8_ring ring(a.plan, base, 0);
    T::template multiply<T>(a, w, ring, memory, warp, lane);
    if constexpr (lpg_gemm8_has_halves(T::TileM, T::row_tiles)) {
      T::template multiply<half_traits<T>>(a, halves_of<gemm8_work>(w), ring, memory, warp, lane);
    }
  }
}

}  // namespace
}  // namespace lpg
