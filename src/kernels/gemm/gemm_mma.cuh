/* gemm: the product of a batch of MMA steps (16 k each) by wgmma: A is weights in registers, or pieces of an image in
 * shared memory; B is a stage of X there.
 *
 * Accumulators have wgmma's layout: of rows 8 j .. 8 j + 7 of X a lane holds sum[0][4 j .. 4 j + 3]. */
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

  float sum[1][T::TileM / 2]; /* of one row tile, as the epilogue takes them */

  __device__ void clear() { clear_sums(sum); }

  __device__ void add(const gemm_product &other) {
#pragma unroll
    for (int i = 0; i < T::TileM / 2; i++) sum[0][i] += other.sum[0][i];
  }

  /* The address of a stage of X, or of an image's, as start() takes it, and the distance of two stages of X in the same
   * unit (16 bytes). */
  __device__ static uint32_t place(uint32_t x) { return swizzled_place(x); }
  static constexpr int stage_distance = T::x_stage_bytes / 16;

  /* The operand of X from a step of a stage on. */
  __device__ static uint64_t x_at(uint32_t x, int step) {
    return swizzled_rows(x + step / box_steps * (T::x_k64_bytes / 16) + step % box_steps * 2);
  }

  /* Starts a batch with the first x_rows rows of X of the stage, or a few more. */
  __device__ void start(const uint32_t (&weights)[T::batch][4], uint32_t x, int step, int x_rows) {
    if constexpr (T::widths > 1) {
      static_assert(T::batch == 1, "a batch is a group");
      T::X::wgmma::start(sum[0], weights[0], x_at(x, step), x_rows);
    } else {
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < T::batch; i++) T::X::wgmma::multiply(sum[0], weights[i], x_at(x, step + i));
      wgmma_commit();
    }
  }

  /* The same with a piece of an image for each warpgroup; piece: the place of its own. */
  __device__ void start(uint32_t piece, uint32_t x, int step, int x_rows) {
    T::X::wgmma::start_four(sum[0], swizzled_rows(piece), x_at(x, step), x_rows);
  }

  /* Waits until the batch before the last started one is done: its registers and its X may be overwritten. */
  __device__ void wait() { wgmma_wait<depth - 1>(); }

  __device__ void finish() { wgmma_wait<0>(); }
};

}  // namespace
}  // namespace lpg
