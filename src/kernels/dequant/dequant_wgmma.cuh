/* Dense GEMM by wgmma on images of dequantised weights (sm_90a), both operands in shared memory: 8 bits, tf32, and
 * fp16 with a table of scales. All other 16-bit images are multiplied by gemm_image.cuh.
 *
 * Persistent and warp-specialised. Each of four producer warps fills one stage of a ring: X by cp.async, W by a bulk
 * copy. CTAs of a cluster with the same rows of W and the same part of K each multicast a part of W to all of them. Two
 * consumer warpgroups, with 128 rows of W each, multiply and store. With split-K the CTAs of a cluster add up their
 * sums in the end (split_k.cuh). */
#pragma once

#include "../epilogue/split_k.cuh"
#include "../epilogue/store_fast.cuh"
#include "../prim/barrier.cuh"
#include "../prim/cluster.cuh"
#include "../prim/logic.cuh"
#include "../prim/pdl.cuh"
#include "../prim/wgmma.cuh"
#include "dequant_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int dequant_wgmma_threads = 32 * (LPG_DEQUANT_WARPS + LPG_DEQUANT_PRODUCER_WARPS);

/* Two mbarriers a stage. full: an arrival of each lane of the producer warp when its copies of X are done, one more of
 * lane 0, and the bytes of W from all CTAs that multicast. Such bytes may come before this CTA's lane 0 has announced
 * them: the phase cannot end without its arrival. empty: an arrival of every consumer warp of these CTAs, since a stage
 * of W is written in all of them at once. */
struct dequant_barriers {
  uint32_t base; /* address in shared memory */

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

/* A producer warp: it fills stage `warp` of the ring, so every fourth stage of a work tile. */
template <class T>
__device__ inline void load_stages_of_tile(const dequant_args &a, const dequant_work &w, dequant_barriers barriers,
                                           int warp, int lane) {
  const lpg_dequant_plan &p = a.plan;
  const x_matrix<T::x_bytes> x(a.x, a.ldx, a.m, a.k);
  const bool aligned = x.aligned();
  const int part = LPG_DEQUANT_W_BYTES / p.multicast;
  const uint32_t full = barriers.full(warp), empty = barriers.empty(warp);
  const uint32_t x_stage = barriers.base + p.x_ring + warp * LPG_DEQUANT_X_BYTES;
  const uint32_t w_stage = barriers.base + p.w_ring + warp * LPG_DEQUANT_W_BYTES + w.m_rank * part;
  uint32_t parity = 1; /* parity 1: fresh stages count as empty */
  int turn = 0;        /* the stage of the ring whose turn it is */
  for (int tile = blockIdx.x / (unsigned)p.cluster; tile < w.tiles; tile += w.stride) {
    const uint8_t *const image = w.image(a, tile) + w.m_rank * part;
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

/* Descriptors of the operands of a consumer warpgroup: of a stage, and of steps and row tiles in it. */
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

/* Factors of a stage's sums before they are added in fp32: for each row tile, of rows g and g + 8. */
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

/* A sum of the tensor cores as fp32. Sums of 128 products of int8 are below 2^22: added to the bits of 1.5 * 2^23 they
 * are its last mantissa bits. Conversion instructions are slow. */
__device__ inline float stage_sum(float sum) { return sum; }
__device__ inline float stage_sum(int sum) { return __int_as_float(sum + 0x4b400000) - 12582912.0f; }

/* Multiplies a stage, 64 rows of W at a time; while their sums are added in fp32, the other warpgroup has the tensor
 * cores. sum: the registers of such a product. */
template <class T>
__device__ inline void promote_stage(const stage_places &at, const stage_scales<T> &scales,
                                     typename T::Types::sum (&sum)[T::TileM / 2], dequant_sums<T, float> &totals) {
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) {
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < T::steps; step++) {
      T::Types::wgmma::multiply(sum, at.w_at(r, step), at.x_at(step), step > 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < T::TileM / 2; i++) {
      totals.sum[r][i] = fmaf(scales.scale[r][i / 2 % 2], stage_sum(sum[i]), totals.sum[r][i]);
    }
  }
}

/* Starts the products of a stage; they add to `sums`. */
template <class T, class Sum>
__device__ inline void start_stage(const stage_places &at, dequant_sums<T, Sum> &sums) {
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < T::steps; step++) {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      T::Types::wgmma::multiply(sums.sum[r], at.w_at(r, step), at.x_at(step), true);
    }
  }
  wgmma_commit();
}

template <class T>
__device__ inline void multiply_stages(const dequant_args &a, const dequant_work &w, dequant_barriers barriers,
                                       uint8_t *memory, int warp, int lane) {
  using sums_type = dequant_sums<T, std::conditional_t<T::Promotes, float, typename T::Types::sum>>;
  const lpg_dequant_plan &p = a.plan;
  float *const factors = (float *)(memory + p.factors);
  typename T::Types::sum of_stage[T::TileM / 2] = {}; /* the same registers for all stages */
  int ring = 0, before = -1;                          /* stages of the ring; before: the one that a wgmma still reads */
  uint32_t parity = 0;
  const auto release = [&](int stage) {
    if (stage >= 0 && lane < p.multicast) arrive_remote(barriers.empty(stage), w.sharer(lane));
  };
  for (int tile = blockIdx.x / (unsigned)p.cluster; tile < w.tiles; tile += w.stride) {
    load_factors<T>(a, w, tile, warp, lane, factors);
    sums_type sums;
    sums.clear();
#pragma unroll 1
    for (int stage = 0; stage < w.k_stages; stage++) {
      stage_scales<T> scales;
      if (T::Promotes && a.scaling.in_table) scales.load(a, w, tile, stage, warp, lane / 4);
      wait_barrier(barriers.full(ring), parity);
      fence_for_tensor_cores();
      const stage_places at(p, barriers.base, warp, ring);
      if constexpr (T::Promotes) {
        promote_stage<T>(at, scales, of_stage, sums);
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
    }
    const int parts = p.split_k > 1 ? 1 : 0;
    if (parts > 0 || !store_scaled<T>(a, w, tile, sums, factors, memory))
      store_tile<T, 1>(a, w, tile, sums, sums, parts, factors, memory);
  }
}

template <class T>
__global__ void __launch_bounds__(dequant_wgmma_threads, 1)
    dequant_wgmma_kernel(const __grid_constant__ dequant_args a) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  pdl_launch_next();
  if (a.epilogue.device_alpha) pdl_wait(); /* reads_product() reads device_alpha */
  const dequant_work w(a);
  const dequant_barriers barriers = {shared_address(memory)};
  if (threadIdx.x == 0) barriers.init(a.plan);
  __syncthreads();
  cluster_arrive(); /* the mbarriers exist before other CTAs arrive at them */
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
  cluster_arrive(); /* no CTA ends while others write to its shared memory */
  cluster_wait();
}

}  // namespace
}  // namespace lpg
