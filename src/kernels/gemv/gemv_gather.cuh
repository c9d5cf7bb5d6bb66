/* gemv: X in the order of the weights' columns, without a launch in front.
 *
 * Each CTA takes whole rows of X, as they are, to shared memory, one while the one before is gathered from there into
 * the columns of its part of K. Loads of single elements from L1 would take a cycle for each line that a warp touches,
 * some 20 a load; the banks of shared memory serve 32 random elements in 3 or 4. */
#pragma once

#include "../operand/x_row.cuh"
#include "gemv_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Starts to copy the order of the CTA's columns. It belongs to the weights, so this may come before pdl_wait(). */
template <class T>
__device__ inline void copy_order(const gemv_args &a, int first_block, int blocks, uint8_t *memory) {
  const int first = first_block * block_k, columns = min((int)a.k - first, blocks * block_k);
#pragma unroll 1
  for (int i = threadIdx.x * 4; i < columns; i += T::threads * 4) {
    copy_some_async(shared_address(memory + a.plan.order) + i * 4, a.order + first + i, min(columns - i, 4) * 4);
  }
}

/* Starts to copy a row of X, if there is one. */
template <class T>
__device__ inline void copy_raw_row(const gemv_args &a, int row, uint8_t *memory) {
  if (row < a.plan.x_rows) {
    uint16_t *to = (uint16_t *)(memory + a.plan.raw + row % 2 * a.plan.raw_bytes);
    copy_row((const uint16_t *)a.x + row * a.ldx, a.x_k, to, T::threads);
  }
  commit_copies();
}

/* Gathers all rows of X to where stage_x() would have put them. Afterwards the CTA has yet to meet. */
template <class T>
__device__ inline void gather_x(const gemv_args &a, int first_block, int blocks, uint8_t *memory) {
  const int columns = min((int)a.k - first_block * block_k, blocks * block_k);
  const int2 *const order = (const int2 *)(memory + a.plan.order);
  copy_raw_row<T>(a, 0, memory);
#pragma unroll 1
  for (int row = 0; row < a.plan.x_rows; row++) {
    if (row > 0) __syncthreads(); /* nobody reads the row before, whose place the next one takes */
    copy_raw_row<T>(a, row + 1, memory);
    wait_copies<1>();
    __syncthreads(); /* the row is there, and the order */
    const uint16_t *const raw = (const uint16_t *)(memory + a.plan.raw + row % 2 * a.plan.raw_bytes);
    uint32_t *const out = (uint32_t *)(memory + a.plan.x + row * a.plan.x_stride);
#pragma unroll 2
    for (int i = threadIdx.x; i < blocks * (block_k / 2); i += T::threads) {
      const int2 from = order[i]; /* beyond K it is anything */
      const uint32_t first = 2 * i < columns ? raw[from.x] : 0, second = 2 * i + 1 < columns ? raw[from.y] : 0;
      out[i] = first | second << 16;
    }
  }
}

}  // namespace
}  // namespace lpg
