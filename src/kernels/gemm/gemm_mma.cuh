/* How the wide kernels multiply a batch of steps of 16 columns: weights in registers by a stage of X in shared memory.
 * Sums lie in registers alike: of row tile r and rows of X 8 j .. 8 j + 7, D of the tensor cores is sum[r][4 j .. 4 j +
 * 3]. */
#pragma once

#include "../epilogue/store.cuh"
#include "../operand/x_type.cuh"
#include "gemm_plan.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

template <class T>
struct gemm_product {
  static constexpr int depth = 2; /* batches whose weights stay in registers */
  static constexpr int box_steps = LPG_GEMM_BOX_K / LPG_STEP_K;

  float sum[T::row_tiles][T::TileM / 2];

  __device__ void clear() { clear_sums(sum); }

  __device__ void add(const gemm_product &other) {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int i = 0; i < T::TileM / 2; i++) sum[r][i] += other.sum[r][i];
    }
  }

  /* X as start() wants it: a stage, and how far apart they are. */
  __device__ static uint32_t place(uint32_t x) { return swizzled_place(x); }
  static constexpr int stage_distance = T::x_stage_bytes / 16;

  __device__ void start(const uint32_t (&weights)[T::batch][T::row_tiles][4], uint32_t x, int step) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < T::batch; i++) {
      const int at = step + i, box = at / box_steps, in_box = at % box_steps;
      const uint64_t rows = swizzled_rows(x + box * (T::x_column_bytes / 16) + in_box * 2);
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) T::X::wgmma::multiply(sum[r], weights[i][r], rows);
    }
    wgmma_commit();
  }

  /* Until the batch depth - 1 before is done: its weights' registers and its X are free. */
  __device__ void wait() { wgmma_wait<depth - 1>(); }

  __device__ void finish() { wgmma_wait<0>(); }
};

}  // namespace
}  // namespace lpg
