/* Expanded weights by X on the tensor cores of sm_90a, which read both from shared memory.
 *
 *   four warps load X, and their part of the weights for all blocks that share them, into a ring of stages
 *   eight warps, in two groups with their own rows, multiply what is there; sums of parts of K; epilogue, store */
#pragma once

#include "../epilogue/split_k.cuh"
#include "../prim/barrier.cuh"
#include "../prim/cluster.cuh"
#include "../prim/logic.cuh"
#include "../prim/pdl.cuh"
#include "../prim/wgmma.cuh"
#include "dequant_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int dequant_wgmma_threads = 32 * (LPG_DEQUANT_WARPS + LPG_DEQUANT_PRODUCER_WARPS);

/* Two barriers a stage: one that is full, and one that is empty when all who multiply what is in it, or in the same
 * stage of the other block that gets the same weights, have read it. */
struct dequant_barriers {
  uint32_t base; /* address */

  __device__ uint32_t full(int stage) const { return base + 16 * stage; }
  __device__ uint32_t empty(int stage) const { return full(stage) + 8; }

  __device__ void init(const lpg_dequant_plan &p) const {
    for (int i = 0; i < p.stages; i++) {
      init_barrier(full(i), 32 + 1);
      init_barrier(empty(i), LPG_DEQUANT_WARPS * p.multicast);
    }
    fence_barriers();
  }
};

/* A copying warp has every fourth stage, the ring's stage `warp`. */
template <class T>
__device__ inline void load_stages_of_tile(const dequant_args &a, const dequant_work &w, dequant_barriers barriers,
                                           int warp, int lane) {
  const lpg_dequant_plan &p = a.plan;
  const x_matrix<T::x_bytes> x(a.x, a.ldx, a.m, a.k);
  const bool aligned = x.aligned();
  const int part = LPG_DEQUANT_W_BYTES / p.multicast;
  const uint32_t full = barriers.full(warp), empty = barriers.empty(warp);
  const uint32_t x_stage = barriers.base + p.x_ring + warp * LPG_DEQUANT_X_BYTES;
  const uint32_t w_stage = barriers.base + p.w_ring + warp * LPG_DEQUANT_W_BYTES + w.block * part;
  uint32_t parity = 1; /* fresh stages are empty */
  int turn = 0;        /* of the ring's stages */
  for (int tile = blockIdx.x / (unsigned)p.cluster; tile < w.tiles; tile += w.stride) {
    const uint8_t *const image = w.image(a, tile) + w.block * part;
    const int x_row = w.m_tile(tile) * T::TileM;
    for (int stage = 0; stage < w.k_stages; stage++, turn = (turn + 1) % LPG_DEQUANT_PRODUCER_WARPS) {
      if (turn != warp) continue;
      wait_barrier(empty, parity);
      if (lane == 0) {
        arrive_and_expect(full, LPG_DEQUANT_W_BYTES);
        copy_to_blocks(w_stage, image + (int64_t)stage * LPG_DEQUANT_W_BYTES, part, full, w.sharers());
      }
      x.template load<T::TileM>(x_stage, x_row, (w.first_stage + stage) * T::stage_k, lane, aligned);
      if (aligned) {
        arrive_when_copied(full);
      } else {
        arrive(full);
      }
      parity ^= 1;
    }
    if (p.split_k > 1) wait_for_parts();
  }
  wait_copies<0>();
}

/* Where a group of four warps finds its operands: a stage's place, and steps and row tiles in it. */
struct stage_places {
  uint32_t x, w;

  __device__ stage_places(const lpg_dequant_plan &p, uint32_t base, int warp, int ring)
      : x(swizzled_place(base + p.x_ring) + ring * (LPG_DEQUANT_X_BYTES / 16)),
        w(swizzled_place(base + p.w_ring + warp / 4 * (LPG_DEQUANT_W_BYTES / 2)) + ring * (LPG_DEQUANT_W_BYTES / 16)) {}

  __device__ uint64_t x_at(int step) const { return swizzled_rows(x + step * 2); }
  __device__ uint64_t w_at(int row_tile, int step) const {
    return swizzled_rows(w + row_tile * (LPG_DEQUANT_W_BYTES / 4 / 16) + step * 2);
  }
};

/* What the sums of a stage are scaled by before they are added to fp32: for each row tile, of rows g and g + 8. */
template <class T>
struct stage_scales {
  float scale[T::row_tiles][2] = {{1.0f, 1.0f}, {1.0f, 1.0f}};

  __device__ void load(const dequant_args &a, const dequant_work &w, int tile, int stage, int warp, int g) {
    const int64_t of_matrix = (int64_t)w.bands.n_tile(tile) * a.plan.k_stages + w.first_stage + stage;
    const float *from = a.scale_data + of_matrix * T::tile_n + warp * T::row_tiles * LPG_TILE_ROWS + g;
#pragma unroll
    for (int i = 0; i < 2 * T::row_tiles; i++) scale[i / 2][i % 2] = from[i * 8];
  }
};

/* A number of the tensor cores' sums in fp32. Sums of 128 products of int8 are below 2^22, so that the bits of 1.5 *
 * 2^23 take them as its last digits: conversions are slow. */
__device__ inline float stage_sum(float sum) { return sum; }
__device__ inline float stage_sum(int sum) { return __int_as_float(sum + 0x4b400000) - 12582912.0f; }

/* The products of a stage, one row tile of 64 rows after the other, whose sums are added to fp32 while the other four
 * warps have the tensor cores. sum: registers for them. */
template <class T>
__device__ inline void promote_stage(const stage_places &at, const stage_scales<T> &scales,
                                     typename T::Scales::sum (&sum)[T::TileM / 2], dequant_sums<T, float> &totals) {
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) {
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < T::steps; step++) {
      T::Scales::wgmma::multiply(sum, at.w_at(r, step), at.x_at(step), step > 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < T::TileM / 2; i++) {
      totals.sum[r][i] = fmaf(scales.scale[r][i / 2 % 2], stage_sum(sum[i]), totals.sum[r][i]);
    }
  }
}

/* The products of a stage start; they add to the sums. */
template <class T, class Sum>
__device__ inline void start_stage(const stage_places &at, dequant_sums<T, Sum> &sums) {
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < T::steps; step++) {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      T::Scales::wgmma::multiply(sums.sum[r], at.w_at(r, step), at.x_at(step), true);
    }
  }
  wgmma_commit();
}

template <class T>
__device__ inline void multiply_stages(const dequant_args &a, const dequant_work &w, dequant_barriers barriers,
                                       uint8_t *memory, int warp, int lane) {
  using sums_type = dequant_sums<T, typename T::Scales::sum>;
  const lpg_dequant_plan &p = a.plan;
  float *const factors = (float *)(memory + p.factors);
  typename T::Scales::sum of_stage[T::TileM / 2] = {}; /* the same registers for all stages */
  int ring = 0, before = -1;                           /* stages of the ring; before: one that is still being read */
  uint32_t parity = 0;
  const auto release = [&](int stage) {
    if (stage >= 0 && lane < p.multicast) arrive_remote(barriers.empty(stage), w.sharer(lane));
  };
  for (int tile = blockIdx.x / (unsigned)p.cluster; tile < w.tiles; tile += w.stride) {
    load_factors<T>(a, w, tile, warp, lane, factors);
    dequant_sums<T, float> totals;
    sums_type sums;
    if (T::Promotes) totals.clear();
    if (!T::Promotes) sums.clear();
#pragma unroll 1
    for (int stage = 0; stage < w.k_stages; stage++) {
      stage_scales<T> scales;
      if (T::Promotes && a.scaling.in_table) scales.load(a, w, tile, stage, warp, lane / 4);
      wait_barrier(barriers.full(ring), parity);
      fence_for_tensor_cores();
      const stage_places at(p, barriers.base, warp, ring);
      if constexpr (T::Promotes) {
        promote_stage<T>(at, scales, of_stage, totals);
        release(ring);
      } else {
        start_stage<T>(at, sums);
        wgmma_wait<1>();
        release(before);
        before = ring;
      }
      if (++ring == LPG_DEQUANT_MOST_STAGES) {
        ring = 0;
        parity ^= 1;
      }
    }
    if constexpr (!T::Promotes) {
      wgmma_wait<0>();
      release(before);
      before = -1;
      convert_sums(a, sums, totals);
    }
    if (p.split_k > 1) {
      store_parts<T>(a, w, tile, totals, factors, memory);
    } else {
      store_tile<T>(a, w, tile, totals, factors, memory);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(dequant_wgmma_threads, 1)
    dequant_wgmma_kernel(const __grid_constant__ dequant_args a) {
  extern __shared__ __align__(1024) uint8_t memory[];
  pdl_launch_next();
  if (a.epilogue.device_alpha) pdl_wait(); /* reads_product() reads it */
  const dequant_work w(a);
  const dequant_barriers barriers = {shared_address(memory)};
  if (threadIdx.x == 0) barriers.init(a.plan);
  __syncthreads();
  cluster_arrive(); /* before others arrive at this block's barriers */
  cluster_wait();
  pdl_wait();
  const int warp = same_in_warp(threadIdx.x / 32), lane = threadIdx.x % 32;
  if (warp >= LPG_DEQUANT_WARPS) {
    release_registers<56>();
    load_stages_of_tile<T>(a, w, barriers, warp - LPG_DEQUANT_WARPS, lane);
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
