/* gemm: the product of a batch of MMA steps (16 k each) by wgmma: A is weights in registers, B is a stage of X in
 * shared memory.
 *
 * Accumulators have wgmma's layout: of row tile r and rows 8 j .. 8 j + 7 of X a lane holds sum[r][4 j .. 4 j + 3]. */
#pragma once

#include "../epilogue/store.cuh"
#include "../operand/x_type.cuh"
#include "gemm_plan.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

template <class T>
struct gemm_product {
  static constexpr int depth = 2; /* batches whose A operands are in registers: one runs, one is made */
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

  /* A stage's address as start() takes it, and the distance of two stages in the same unit (16 bytes). */
  __device__ static uint32_t place(uint32_t x) { return swizzled_place(x); }
  static constexpr int stage_distance = T::x_stage_bytes / 16;

  /* Starts a batch with the first x_rows rows of X of the stage, or a few more. A branch must not part the fence from
   * the commit: the compiler would commit once more behind it. */
  template <int Width = T::TileM>
  __device__ void start(const uint32_t (&weights)[T::batch][T::row_tiles][4], uint32_t x, int step, int x_rows) {
    constexpr int narrower = Width - LPG_GEMM_WIDTH_STEP;
    if constexpr (lpg_gemm_has_width(T::TileM, narrower)) {
      if (x_rows <= narrower) return start<narrower>(weights, x, step, x_rows);
    }
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < T::batch; i++) {
      const int at = step + i, box = at / box_steps, in_box = at % box_steps;
      const uint64_t rows = swizzled_rows(x + box * (T::x_k64_bytes / 16) + in_box * 2);
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) T::X::wgmma::template multiply<Width>(sum[r], weights[i][r], rows);
    }
    wgmma_commit();
  }

  /* Waits until the batch before the last started one is done: its registers and its X may be overwritten. */
  __device__ void wait() { wgmma_wait<depth - 1>(); }

  __device__ void finish() { wgmma_wait<0>(); }
};

}  // namespace
}  // namespace lpg
