/* Expanded weights by X on the tensor cores of sm_90a, which read both from shared memory.
 *
 *   four warps bring X, and their part of the weights for all blocks of the cluster, into a ring of stages
 *   eight warps, in two groups with their own rows, multiply what is there; epilogue, store */
#pragma once

#include "dense_work.cuh"
#include "prim/logic.cuh"
#include "prim/wgmma.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int dense_wgmma_threads = 32 * (LPG_DENSE_WARPS + LPG_DENSE_COPY_WARPS);

/* Two barriers a stage: one that is full, and one that is empty when all who multiply what is in it, or in the same
 * stage of the other blocks of the cluster, which get the same weights, have read it. */
struct dense_barriers {
  uint32_t base; /* address */

  __device__ uint32_t full(int stage) const { return base + 16 * stage; }
  __device__ uint32_t empty(int stage) const { return full(stage) + 8; }

  __device__ void init(const lpg_dense_plan &p) const {
    for (int i = 0; i < p.stages; i++) {
      init_barrier(full(i), 32 + 1);
      init_barrier(empty(i), LPG_DENSE_WARPS * p.cluster);
    }
    fence_barriers();
  }
};

/* A copying warp has every fourth stage, the ring's stage `warp`. */
template <class T>
__device__ inline void bring_stages(const dense_args &a, const dense_work &w, dense_barriers barriers, int warp,
                                    int lane) {
  const lpg_dense_plan &p = a.plan;
  const x_matrix<T::x_bytes> x(a.x, a.ldx, a.m, a.k);
  const bool aligned = x.aligned();
  const int part = LPG_DENSE_W_BYTES / p.cluster;
  const uint32_t full = barriers.full(warp), empty = barriers.empty(warp);
  const uint32_t x_stage = barriers.base + p.x_ring + warp * LPG_DENSE_X_BYTES;
  const uint32_t w_stage = barriers.base + p.w_ring + warp * LPG_DENSE_W_BYTES + w.block * part;
  uint32_t parity = 1; /* fresh stages are empty */
  int turn = 0;        /* of the ring's stages */
  for (int item = blockIdx.x / (unsigned)p.cluster; item < w.items; item += p.groups) {
    const uint8_t *const image = w.image(a, item) + w.block * part;
    const int token = w.token_item(item) * T::Tokens;
    for (int stage = 0; stage < w.k_stages; stage++, turn = (turn + 1) % LPG_DENSE_COPY_WARPS) {
      if (turn != warp) continue;
      wait_barrier(empty, parity);
      if (lane == 0) {
        arrive_and_expect(full, LPG_DENSE_W_BYTES);
        copy_to_blocks(w_stage, image + (int64_t)stage * LPG_DENSE_W_BYTES, part, full, (uint16_t)((1 << p.cluster) - 1));
      }
      x.template load<T::Tokens>(x_stage, token, stage * T::stage_k, lane, aligned);
      if (aligned) {
        arrive_when_copied(full);
      } else {
        arrive(full);
      }
      parity ^= 1;
    }
  }
  wait_copies<0>();
}

template <class T>
__device__ inline void multiply_stages(const dense_args &a, const dense_work &w, dense_barriers barriers,
                                       uint8_t *memory, int warp, int lane) {
  const lpg_dense_plan &p = a.plan;
  const uint32_t x_ring = swizzled_place(barriers.base + p.x_ring);
  const uint32_t w_ring = swizzled_place(barriers.base + p.w_ring + warp / 4 * (LPG_DENSE_W_BYTES / 2));
  float *const factors = (float *)(memory + p.factors);
  dense_sums<T> sums;
  int ring = 0, before = -1, pass = 0; /* stages of the ring; before: one that is still being read */
  uint32_t parity = 0;
  const auto release = [&](int stage) {
    if (stage >= 0 && lane < p.cluster) tell_block(barriers.empty(stage), lane);
  };
  for (int item = blockIdx.x / (unsigned)p.cluster; item < w.items; item += p.groups) {
    load_factors<T>(a, w, item, warp, lane, factors);
    sums.clear();
#pragma unroll 1
    for (int stage = 0; stage < w.k_stages; stage++) {
      wait_barrier(barriers.full(ring), parity);
      fence_for_tensor_cores();
      wgmma_fence();
#pragma unroll
      for (int step = 0; step < T::steps; step++) {
        const uint64_t rows = swizzled_rows(x_ring + ring * (LPG_DENSE_X_BYTES / 16) + step * 2);
#pragma unroll
        for (int r = 0; r < T::row_tiles; r++) {
          const uint32_t place = w_ring + ring * (LPG_DENSE_W_BYTES / 16) + r * (LPG_DENSE_W_BYTES / 4 / 16) + step * 2;
          T::X::wgmma::multiply(sums.sum[r], swizzled_rows(place), rows);
        }
      }
      wgmma_commit();
      wgmma_wait<1>();
      release(before);
      before = ring;
      if (++ring == LPG_DENSE_MOST_STAGES) {
        ring = 0;
        parity ^= 1;
      }
    }
    wgmma_wait<0>();
    release(before);
    before = -1;
    store_item<T, true>(a, w, item, sums, factors, memory, 0, pass);
  }
}

template <class T>
__global__ void __launch_bounds__(dense_wgmma_threads, 1) dense_wgmma_kernel(const __grid_constant__ dense_args a) {
  extern __shared__ __align__(1024) uint8_t memory[];
  const dense_work w(a);
  const dense_barriers barriers = {shared_address(memory)};
  if (threadIdx.x == 0) barriers.init(a.plan);
  __syncthreads();
  cluster_arrive(); /* before others arrive at this block's barriers */
  cluster_wait();
  const int warp = same_in_warp(threadIdx.x / 32), lane = threadIdx.x % 32;
  if (warp >= LPG_DENSE_WARPS) {
    give_registers_back<56>();
    bring_stages<T>(a, w, barriers, warp - LPG_DENSE_WARPS, lane);
    __syncwarp();
  } else {
    take_registers<224>();
    multiply_stages<T>(a, w, barriers, memory, warp, lane);
  }
  cluster_arrive(); /* before others lose what they still write to */
  cluster_wait();
}

}  // namespace
}  // namespace lpg
