/* The token form of a layer of experts (plan/fan.h), by gemv's way of multiplying: weights from memory to registers a k
 * block ahead, X in shared memory, 8 columns of mma.
 *
 * The rows of X of all tokens (way in: of all slots) lie in shared memory; which of them are an item's columns is said
 * by the address that a lane gives ldmatrix. So an item costs what its weights cost to read, an expert that nobody
 * names costs nothing, and nothing is sorted, gathered or written twice.
 *
 *   out   waits for the kernel before, since the indices are its work; then lets the way in start
 *   in    starts when `out` is past its wait: the indices are final, so it finds its items and asks for weights before
 * it waits for h */
#pragma once

#include "gemv_fan_reduce.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Starts to copy the CTA's k blocks of X. Slots that are left out have no row. */
template <class T, bool In>
__device__ inline void stage_fan(const fan_args &a, int first_block, int blocks, int rotation, const int *first_of_slot,
                                 uint8_t *to) {
  const uint16_t *const x = (const uint16_t *)a.product.x;
  stage_rows<T>(a.product, a.plan.x_rows, first_block, blocks, rotation, a.plan.x_stride, to, false,
                [&](int row) { return In && first_of_slot[row] < 0 ? nullptr : x + row * a.product.ldx; });
}

template <class T, bool In>
__global__ void __launch_bounds__(T::threads, 1) fan_kernel(const __grid_constant__ fan_args a) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  const lpg_fan_plan &p = a.plan;
  const int lane = threadIdx.x % 32, warp = same_in_warp(threadIdx.x / 32), g = lane / 4;
  const int rank = p.split_k > 1 ? blockIdx.x % p.split_k : 0,
            cluster = p.split_k > 1 ? blockIdx.x / p.split_k : blockIdx.x;
  uint8_t *const partials = memory + p.partials, *const x = memory + p.x;
  if (p.split_k > 1) cluster_arrive(); /* others may write to this CTA's shared memory from now on */
  if (!In) pdl_wait();
  pdl_launch_next();
  fan_items items(p, memory);
  if (!In) {
    stage_fan<T, In>(a, first_of(p.k_part, rank), count_of(p.k_part, rank), cluster, nullptr, x);
    commit_copies();
  }
  items.find(a);
  const fan_work<T, In> w(p, items, cluster, rank, warp);
  const work none(lpg_gemv_plan{}, 1, 0, 0, 0);
  strip_cursor at = {};
  if (w.tiles > 0) at.start(w, 0);
  strip_stream<T, fan_work<T, In>> weights(a, none, w, at, lane);
  strip_scales<T, fan_work<T, In>> scale_data(a, w, at, lane, memory + p.warp + warp * p.warp_bytes,
                                              p.scale_table_bytes);
  scale_data.copy_next();
  block_words<T> words = {};
  weights.fill(words);
  items.add_scales(a);
  for (int i = threadIdx.x; a.product.epilogue.bias && i < w.tiles * w.each; i += T::threads) {
    const strip_place place = w.place(0, i);
    prefetch_biases<T>(a, w.expert_of(place), place.super_tile);
  }
  T::Dequantiser::fill_table(a.product.dequantiser, memory, threadIdx.x, T::threads);
  const typename T::Dequantiser dequantiser(a.product.dequantiser, memory, lane);
  row_centers<T> centers;
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) {
    T::Dequantiser::set_center(centers.row[r][0], T::X::round(a.product.dequantiser.center));
    T::Dequantiser::set_center(centers.row[r][1], T::X::round(a.product.dequantiser.center));
  }
  if (In) {
    pdl_wait();
    stage_fan<T, In>(a, w.first_block, w.blocks, cluster, items.first, x);
    commit_copies();
  }
  if (w.tiles <= 0 && p.split_k > 1) cluster_wait();
  for (int round = 0; round * w.round_tiles < w.tiles; round++) {
    if (In) { /* sums of all warps are added to from zero on */
      const int bytes = (w.round_tiles + T::warps - 1) * p.partial_bytes;
      for (int i = threadIdx.x * 16; i < bytes; i += T::threads * 16) *(float4 *)(partials + i) = float4{};
    }
    if (round == 0) {
      wait_copies<0>();
      scale_data.waited = true;
    }
    if (In || round == 0) __syncthreads();
    if (round > 0) at.start(w, round);
    for (; at.run > 0; at.next(w)) {
      const fan_item &item = items.item[w.place(round, at.strip).item];
      uint32_t block_x[1] = {keep(shared_address(x) + item.template row<In>(lane % 8) * p.x_stride + lane / 8 * 16 +
                                  at.block * (block_k * 2))};
      accumulators<T> totals;
      totals.clear();
      multiply_strip<T>(at.run, block_x, dequantiser, weights, scale_data, words, g, centers, totals);
      uint8_t *const partial = partials + (w.tile_of(at.strip) + warp) * p.partial_bytes;
      const float factor = a.product.scale_data.factor;
      if constexpr (In) {
        add_to_tokens<T>(item, p.tokens, factor, lane, (float *)partial, totals);
      } else {
        store_partial<T>((float4 *)partial, lane, LPG_STACK_COLUMNS, factor, false, totals);
      }
    }
    /* Peer partials have two areas in turn: other CTAs may still read those of the round before. */
    uint8_t *const peers = memory + p.peers + round % 2 * p.split_k * p.peer_bytes;
    __syncthreads();
    if (p.split_k > 1) {
      if (round == 0) cluster_wait(); /* all CTAs of the cluster run */
      send_fan<T, In>(p, w, none, round, rank, partials, peers);
      cluster_arrive();
      cluster_wait();
    }
    store_round<T, In>(a, w, none, round, rank, partials, peers);
    if (w.tiles > (round + 1) * w.round_tiles) __syncthreads(); /* before the partials are overwritten */
  }
}

}  // namespace
}  // namespace lpg
