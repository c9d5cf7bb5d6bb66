/* Dense GEMM by mma.sync on images of dequantised weights, for every GPU from sm_80 on.
 *
 * A CTA makes one work tile. Stages of 128 bytes of a row, of W and of X, come by cp.async into a ring in shared
 * memory, some stages ahead; all eight warps load and multiply. A warp multiplies its own 32 rows of W by the 128 rows
 * of X, then stores them. */
#pragma once

#include "../prim/logic.cuh"
#include "../prim/pdl.cuh"
#include "dequant_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int dequant_mma_threads = 32 * LPG_DEQUANT_WARPS;

/* A warp's part of the loads of a stage: an eighth of the image of W, and 16 rows of X. */
template <class T>
__device__ inline void load_stage_of_tile(const dequant_args &a, const x_matrix<T::x_bytes> &x, const uint8_t *image,
                                          int x_row, int stage, uint32_t memory, int ring, int warp, int lane,
                                          bool aligned) {
  constexpr int part = LPG_DEQUANT_W_BYTES / LPG_DEQUANT_WARPS, rows = T::TileM / LPG_DEQUANT_WARPS;
  const int first = warp * part + lane * 16;
  const uint32_t to = memory + a.plan.w_ring + ring * LPG_DEQUANT_W_BYTES + first;
  const uint8_t *const from = image + (int64_t)stage * LPG_DEQUANT_W_BYTES + first;
#pragma unroll
  for (int i = 0; i < part / 512; i++) copy16_async(to + i * 512, from + i * 512);
  const uint32_t x_to = memory + a.plan.x_ring + ring * LPG_DEQUANT_X_BYTES + warp * rows * LPG_DEQUANT_STAGE_BYTES;
  x.template load<rows>(x_to, x_row + warp * rows, stage * T::stage_k, lane, aligned);
}

template <class T>
__device__ inline void multiply_stage(const lpg_dequant_plan &p, dequant_sums<T, typename T::Types::sum> &sums,
                                      uint32_t memory, int ring, int warp, int lane) {
  using mma = typename T::Types::mma;
  const int row = lane % 16, upper = lane / 16; /* A: a lane passes the address of half of a row's 32 bytes */
  const uint32_t w = memory + p.w_ring + ring * LPG_DEQUANT_W_BYTES +
                     (warp / 4 * 128 + warp % 4 * LPG_TILE_ROWS + row) * LPG_DEQUANT_STAGE_BYTES;
  const int x_row = lane % 8, quarter = lane / 8; /* B: of a quarter of 64 bytes of 8 rows of X */
  const uint32_t x = memory + p.x_ring + ring * LPG_DEQUANT_X_BYTES + x_row * LPG_DEQUANT_STAGE_BYTES;
#pragma unroll
  for (int two = 0; two < T::steps; two += 2) {
    uint32_t weights[2][T::row_tiles][4];
#pragma unroll
    for (int s = 0; s < 2; s++) {
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) {
        load_matrices(w + r * 64 * LPG_DEQUANT_STAGE_BYTES + (((two + s) * 2 + upper) ^ row % 8) * 16, weights[s][r]);
      }
    }
#pragma unroll
    for (int j = 0; j < T::TileM / 8; j++) {
      uint32_t b[4];
      load_matrices(x + j * 8 * LPG_DEQUANT_STAGE_BYTES + ((two * 2 + quarter) ^ x_row) * 16, b);
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) {
        auto &d = *(typename T::Types::sum(*)[4]) & sums.sum[r][4 * j];
        mma::multiply(d, weights[0][r], b[0], b[1]);
        mma::multiply(d, weights[1][r], b[2], b[3]);
      }
    }
  }
}

template <class T>
__global__ void __launch_bounds__(dequant_mma_threads, 1) dequant_mma_kernel(const __grid_constant__ dequant_args a) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  const lpg_dequant_plan &p = a.plan;
  pdl_launch_next();
  pdl_wait();
  const dequant_work w(a);
  const int tile = blockIdx.x, warp = same_in_warp(threadIdx.x / 32), lane = threadIdx.x % 32, stages = p.stages;
  const x_matrix<T::x_bytes> x(a.x, a.ldx, a.m, a.k);
  const bool aligned = x.aligned();
  const uint8_t *const image = w.image(a, tile);
  const int x_row = w.m_tile(tile) * T::TileM;
  const uint32_t base = shared_address(memory);
  float *const factors = (float *)(memory + p.factors);
  dequant_sums<T, typename T::Types::sum> sums;
  load_factors<T>(a, w, tile, warp, lane, factors);
  sums.clear();
  for (int stage = 0; stage < stages - 1; stage++) {
    if (stage < w.k_stages) load_stage_of_tile<T>(a, x, image, x_row, stage, base, stage, warp, lane, aligned);
    commit_copies();
  }
  int ring = 0, next = stages - 1; /* stages of the ring: to multiply next, and to fill next */
#pragma unroll 1
  for (int stage = 0; stage < w.k_stages; stage++) {
    if (stages == 2) { /* the stage's copies are the last ones */
      wait_copies<0>();
    } else {
      wait_copies<1>(); /* the copies of one stage may still be under way, however long the ring is */
    }
    __syncthreads(); /* the stage is complete, and all warps have read the one that is filled next */
    const int ahead = stage + stages - 1;
    if (ahead < w.k_stages) load_stage_of_tile<T>(a, x, image, x_row, ahead, base, next, warp, lane, aligned);
    commit_copies();
    multiply_stage<T>(p, sums, keep((int)base), ring, warp, lane);
    ring = ring + 1 == stages ? 0 : ring + 1;
    next = next + 1 == stages ? 0 : next + 1;
  }
  wait_copies<0>();
  __syncthreads(); /* the sums take the place of the ring */
  store_tile<T>(a, w, tile, sums, factors, memory);
}

}  // namespace
}  // namespace lpg
