/* gemm1: bit planes of X by bit planes of W on the binary tensor cores of sm_90a (wgmma), both operands in shared
 * memory. X is operand A, so that a lane's sums are of neighbouring rows of W.
 *
 * Persistent and warp-specialised. One producer thread loads the stages of X, and a part of the stages of W that it
 * multicasts to all CTAs of the cluster: they have the same rows of W and other rows of X. Two consumer warpgroups,
 * with 64 rows of X each, multiply and store. Levels of i + j (gemm1_plan.h) come from the highest down, with the sums
 * doubled in between. */
#pragma once

#include "../kernels/prim/async.cuh"
#include "../kernels/prim/barrier.cuh"
#include "../kernels/prim/cluster.cuh"
#include "../kernels/prim/logic.cuh"
#include "gemm1_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int gemm1_threads = 32 * (LPG_GEMM1_WARPS + 4); /* whole warpgroups: two consumers, one producer */

/* Two mbarriers a stage. full: the producer's arrival and the bytes of all copies into the stage. A copy from another
 * CTA may come before this CTA's producer has announced the bytes: the phase cannot end without its arrival. empty: an
 * arrival of every consumer warp of the cluster, since a stage of W is written in all CTAs at once. */
struct gemm1_barriers {
  uint32_t base; /* address in shared memory */

  __device__ uint32_t full(int stage) const { return base + 16 * stage; }
  __device__ uint32_t empty(int stage) const { return full(stage) + 8; }

  __device__ void init(int cluster) const {
    for (int i = 0; i < LPG_GEMM1_STAGES; i++) {
      init_barrier(full(i), 1);
      init_barrier(empty(i), LPG_GEMM1_WARPS * cluster);
    }
    fence_barriers();
  }
};

/* Position in the ring of stages; parity: of the phase to wait for. */
struct gemm1_ring {
  int stage;
  uint32_t parity;

  __device__ void advance() {
    if (++stage == LPG_GEMM1_STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }
};

/* The producer thread. */
__device__ inline void load_planes(const gemm1_args &a, const gemm1_work &w, gemm1_barriers barriers) {
  const int part = LPG_GEMM1_W_BYTES / w.cluster;
  const int64_t x_plane = (int64_t)w.k_stages * LPG_GEMM1_X_BYTES, w_plane = (int64_t)w.k_stages * LPG_GEMM1_W_BYTES;
  const uint16_t all = (uint16_t)((1 << w.cluster) - 1), own = (uint16_t)(1 << w.rank);
  gemm1_ring ring = {0, 1}; /* parity 1: fresh stages count as empty */
  for (int tile = blockIdx.x / (unsigned)w.cluster; tile < w.tiles; tile += a.plan.clusters) {
    const uint8_t *const x_tile = a.x_image + w.m_tile(tile) * (w.q * x_plane);
    const uint8_t *const w_tile = a.w_image + w.bands.n_tile(tile) * (w.p * w_plane) + w.rank * part;
    for (int level = w.levels() - 1; level >= 0; level--) {
      for (int plane = w.first_plane(level); plane <= w.last_plane(level); plane++) {
        const uint8_t *x = x_tile + (level - plane) * x_plane, *weights = w_tile + plane * w_plane;
        for (int k = 0; k < w.k_stages; k++, ring.advance()) {
          const uint32_t full = barriers.full(ring.stage);
          wait_barrier(barriers.empty(ring.stage), ring.parity);
          arrive_and_expect(full, LPG_GEMM1_W_BYTES + LPG_GEMM1_X_BYTES);
          copy_to_blocks(barriers.base + LPG_GEMM1_W_AT + ring.stage * LPG_GEMM1_W_BYTES + w.rank * part, weights, part,
                         full, all);
          copy_to_blocks(barriers.base + LPG_GEMM1_X_AT + ring.stage * LPG_GEMM1_X_BYTES, x, LPG_GEMM1_X_BYTES, full,
                         own);
          weights += LPG_GEMM1_W_BYTES;
          x += LPG_GEMM1_X_BYTES;
        }
      }
    }
  }
}

/* Numbered barriers of the CTA: one for each warpgroup, and one at which the second warpgroup waits until the first is
 * gemm1_lead stages ahead. It stays ahead, so that one warpgroup stores a work tile while the other multiplies. */
enum { gemm1_warpgroup_barrier = 1, gemm1_start_barrier = 3 };
constexpr int gemm1_lead = 2; /* stages */

__device__ inline void multiply_planes(const gemm1_args &a, const gemm1_work &w, gemm1_barriers barriers,
                                       uint8_t *memory, int warp, int lane) {
  const int warpgroup = warp / 4;
  int32_t *const scale_data = (int32_t *)(memory + LPG_GEMM1_SCALES_AT + warpgroup * LPG_GEMM1_SCALES_BYTES);
  uint8_t *const area = memory + LPG_GEMM1_OUT_AT + warp * 16 * LPG_GEMM1_PITCH;
  const uint32_t x_at = swizzled_place(barriers.base + LPG_GEMM1_X_AT + warpgroup * (LPG_GEMM1_X_BYTES / 2));
  const uint32_t w_at = swizzled_place(barriers.base + LPG_GEMM1_W_AT);
  int sum[128];
  gemm1_ring ring = {0, 0};
  int before = -1;                                              /* the stage that a wgmma still reads */
  int lead = warpgroup == 0 && w.levels() > 0 ? gemm1_lead : 0; /* stages until the second warpgroup may start */
  if (warpgroup == 1 && w.levels() > 0) threads_meet(gemm1_start_barrier, 256);
  const auto release = [&](int stage) {
    if (stage >= 0 && lane < w.cluster) arrive_remote(barriers.empty(stage), lane);
  };
  for (int tile = blockIdx.x / (unsigned)w.cluster; tile < w.tiles; tile += a.plan.clusters) {
    const int n_tile = w.bands.n_tile(tile);
    threads_meet(gemm1_warpgroup_barrier + warpgroup, 128); /* all have stored the last work tile and read its scales */
    for (int i = threadIdx.x % 128; i < LPG_GEMM1_SCALES * LPG_GEMM1_TILE_N; i += 128) {
      scale_data[i] = a.scale_data[n_tile * (LPG_GEMM1_SCALES * LPG_GEMM1_TILE_N) + i];
    }
#pragma unroll
    for (int i = 0; i < 128; i++) sum[i] = 0;
    for (int level = w.levels() - 1; level >= 0; level--) {
      const int stages = (w.last_plane(level) - w.first_plane(level) + 1) * w.k_stages;
#pragma unroll 1
      for (int i = 0; i < stages; i++, ring.advance()) {
        wait_barrier(barriers.full(ring.stage), ring.parity);
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < 4; step++) {
          wgmma_b1::multiply(sum, swizzled_rows(x_at + ring.stage * (LPG_GEMM1_X_BYTES / 16) + step * 2),
                             swizzled_rows(w_at + ring.stage * (LPG_GEMM1_W_BYTES / 16) + step * 2), true);
        }
        wgmma_commit();
        if (lead > 0 && --lead == 0) threads_arrive(gemm1_start_barrier, 256);
        wgmma_wait<1>();
        release(before);
        before = ring.stage;
      }
      wgmma_wait<0>();
      release(before);
      before = -1;
      if (level > 0) {
#pragma unroll
        for (int i = 0; i < 128; i++) sum[i] = (int)((unsigned)sum[i] << 1);
      }
    }
    if (lead > 0) { /* the first work tile had fewer stages */
      lead = 0;
      threads_arrive(gemm1_start_barrier, 256);
    }
    threads_meet(gemm1_warpgroup_barrier + warpgroup, 128); /* the scales are there */
    const gemm1_store to(a, scale_data, area, w.m_tile(tile) * LPG_GEMM1_TILE_M + warp * 16,
                         (a.first_tile + n_tile) * LPG_GEMM1_TILE_N, lane);
    to.store(sum);
  }
}

static __global__ void __launch_bounds__(gemm1_threads, 1) gemm1_kernel(const __grid_constant__ gemm1_args a) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  const gemm1_work w(a);
  const gemm1_barriers barriers = {shared_address(memory)};
  if (threadIdx.x == 0) barriers.init(w.cluster);
  __syncthreads();
  cluster_arrive(); /* the mbarriers exist before other CTAs arrive at them */
  cluster_wait();
  const int warp = same_in_warp(threadIdx.x / 32), lane = threadIdx.x % 32;
  if (warp >= LPG_GEMM1_WARPS) {
    release_registers<56>();
    if (warp == LPG_GEMM1_WARPS && lane == 0) load_planes(a, w, barriers);
    __syncwarp();
  } else {
    take_registers<224>();
    multiply_planes(a, w, barriers, memory, warp, lane);
  }
  cluster_arrive(); /* no CTA ends while others write to its shared memory */
  cluster_wait();
}

}  // namespace
}  // namespace lpg
