/* The frame of kernels whose packed words go to the binary tensor cores untouched, a unit after the other of a warp's
 * share.
 *
 * T, beside what bits_plan.h decides: task makes a part of X's operand; products multiplies units, stores the sums of a
 * super tile, and says what they are worth. */
#pragma once

#include "../kernels/epilogue/split_k_warps.cuh"
#include "../kernels/prim/pdl.cuh"
#include "gemv1_stream.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The thread's tasks; the first one was loaded before. */
template <class T>
__device__ inline void prepare_x(const gemv1_args &a, typename T::task &task, int first_block, int blocks,
                                 uint8_t *memory) {
  const int all = (blocks * (T::chunks * 4) * T::TileM + 31) / 32 * 32;
  for (int at = threadIdx.x; at < all;) {
    typename T::task now = task;
    at += T::threads;
    if (at < all) task.load(a, at, first_block, blocks);
    now.store(a, memory);
  }
}

template <class T>
__global__ void __launch_bounds__(T::threads, 1) gemv1_kernel(const __grid_constant__ gemv1_args a) {
  extern __shared__ __align__(1024) uint8_t memory[];
  const lpg_gemv1_plan &p = a.plan;
  pdl_launch_next();
  if (a.epilogue.device_alpha) pdl_wait(); /* reads_product() reads it */
  const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
  const warp_part share(p, T::warps, warp, reads_product(a.epilogue));
  const int first_block = share.first_block, blocks = share.blocks;
  int left = share.left, tile = share.tile;

  if (p.split_k > 1) cluster_arrive(); /* before the others may write here */
  pdl_wait();
  typename T::task task;
  if (blocks > 0) task.load(a, threadIdx.x, first_block, blocks); /* before weights hold it up */
  unit_words<T> units[T::depth] = {};
  unit_stream<T> stream(a, share, lane);
#pragma unroll
  for (int d = 0; d < T::depth; d++) stream.load(units[d]);
  if (blocks > 0) prepare_x<T>(a, task, first_block, blocks, memory);
  __syncthreads();

  typename T::products products(a, share.first_tile, share.tiles, blocks, lane);
  const uint32_t *x = (const uint32_t *)memory + share.block * T::unit_x_words;
  int left_of_tile = blocks - share.block;
  while (left > 0) {
#pragma unroll
    for (int d = 0; d < T::depth; d++) {
      if (left <= 0) break;
      products.multiply(units[d], x);
      stream.load(units[d]);
      left--;
      left_of_tile--;
      x += T::unit_x_words;
      if (left_of_tile == 0 || left == 0) {
        products.store((typename T::sum_type *)(memory + p.slots + (tile + warp) * p.slot_bytes));
        left_of_tile = blocks;
        x = (const uint32_t *)memory;
        tile++;
      }
    }
  }
  if (p.split_k > 1) cluster_wait(); /* the others have started */
  products.finish(share.slice, memory);
  __syncthreads();
  combine_sums<T>(a, share, memory,
                  [&](int row, int m, typename T::sum_type sum) { return products.value(row, m, sum, memory); });
}

}  // namespace
}  // namespace lpg
