/* The kernel of gemv1, for X of 16 bits and of int8: packed words go to the binary MMA as they are.
 *
 * Clusters share the super tiles of W, the CTAs of a cluster share K, the warps of a CTA share its units
 * (split_k_warps.cuh; a unit is the k block there). A unit is T::row_tiles row tiles by T::chunks chunks of 128 k. A
 * warp has T::depth units of loads under way, in registers; between the preparation of X and the end of its run it
 * waits for no other warp.
 *
 * T has what is special to the type of X, beside the plan (gemv1_plan.h): T::task makes a piece of X's planes;
 * T::products multiplies units, writes the partial of a super tile, and makes values of sums. */
#pragma once

#include "../kernels/epilogue/split_k_warps.cuh"
#include "../kernels/prim/pdl.cuh"
#include "gemv1_stream.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The thread's tasks; its first one is loaded already. */
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
  LPG_SHARED_MEMORY(uint8_t, 1024);
  const lpg_gemv1_plan &p = a.plan;
  pdl_launch_next();
  if (a.epilogue.device_alpha) pdl_wait(); /* reads_product() reads device_alpha */
  const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
  const warp_part part(p, T::warps, warp, reads_product(a.epilogue));
  const int first_block = part.first_block, blocks = part.blocks;
  int left = part.left, tile = part.tile;

  if (p.split_k > 1) cluster_arrive(); /* others may write partials here from now on */
  pdl_wait();
  typename T::task task;
  if (blocks > 0) task.load(a, threadIdx.x, first_block, blocks); /* ahead of the weights' loads */
  unit_words<T> units[T::depth] = {};
  unit_stream<T> stream(a, part, lane);
#pragma unroll
  for (int d = 0; d < T::depth; d++) stream.load(units[d]);
  if (blocks > 0) prepare_x<T>(a, task, first_block, blocks, memory);
  __syncthreads();

  typename T::products products(a, part.first_tile, part.tiles, blocks, lane);
  const uint32_t *x = (const uint32_t *)memory + part.block * T::unit_x_words;
  int left_of_tile = blocks - part.block;
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
  if (p.split_k > 1) cluster_wait(); /* all CTAs of the cluster have started */
  products.finish(part.rank, memory);
  __syncthreads();
  combine_sums<T>(a, part, memory,
                  [&](int row, int m, typename T::sum_type sum) { return products.value(row, m, sum, memory); });
}

}  // namespace
}  // namespace lpg
