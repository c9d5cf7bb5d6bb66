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

#include "gemv.cuh"
#include "gemv_fan_reduce.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Starts to copy the CTA's k blocks of X, a row and block a warp. Beyond the matrix X is zero. Slots that are left out
 * have no row. */
template <class T, bool In>
__device__ inline void stage_fan(const fan_args &a, int first_block, int blocks, int rotation, const int *first_of_slot,
                                 uint8_t *to) {
  const gemv_args &product = a.product;
  const int lane = threadIdx.x % 32, warp = same_in_warp(threadIdx.x / 32), rows = a.plan.x_rows;
  const bool aligned = (uintptr_t)product.x % 16 == 0 && product.ldx % 8 == 0;
  const int shift = (unsigned)rotation % (unsigned)blocks;
  for (int i = warp; i < rows * blocks; i += T::warps) {
    const int row = (unsigned)i / (unsigned)blocks, turned = i - row * blocks + shift;
    const int block = turned < blocks ? turned : turned - blocks;
    if (In && first_of_slot[row] < 0) continue;
    const int64_t k = (int64_t)(first_block + block) * block_k + lane * 8;
    const uint16_t *from = (const uint16_t *)product.x + row * product.ldx + k;
    uint8_t *out = to + row * a.plan.x_stride + block * (block_k * 2) + lane * 16;
    if (aligned && k + 8 <= product.k) {
      copy16_async(shared_address(out), from);
      continue;
    }
    const auto at = [&](int j) { return k + j < product.k ? (uint32_t)from[j] : 0u; };
    *(uint4 *)out = make_uint4(at(0) | at(1) << 16, at(2) | at(3) << 16, at(4) | at(5) << 16, at(6) | at(7) << 16);
  }
}

/* Brings the biases of the CTA's rows to L2: they are read where nothing else is left to do. */
template <class T, bool In>
__device__ inline void prefetch_biases(const fan_args &a, const fan_work<T, In> &w) {
  const epilogue_args &e = a.product.epilogue;
  if (!e.bias) return;
  const int bytes = lpg_bytes(e.bias_type);
  for (int i = threadIdx.x; i < w.tiles * w.each; i += T::threads) {
    const fan_place at = w.place(0, i);
    const int row = at.super_tile * T::tile_n, n = a.product.n;
    const int64_t first = (int64_t)w.items.item[at.item].expert * a.bias_stride;
    const uint8_t *const biases = (const uint8_t *)e.bias + first * bytes;
    if (e.paired && row / 2 < n / 2) {
      prefetch_to_l2(biases + row / 2 * bytes);
      prefetch_to_l2(biases + (n / 2 + row / 2) * bytes);
    } else if (!e.paired && row < n) {
      prefetch_to_l2(biases + row * bytes);
    }
  }
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
  fan_cursor at = {};
  if (w.tiles > 0) at.start(w, 0);
  fan_stream<T, In> weights(a, none, w, at, lane);
  fan_scales<T, In> scale_data(a, w, at, lane, memory + p.warp + warp * p.warp_bytes);
  scale_data.copy_next();
  block_words<T> words = {};
  weights.fill(words);
  items.add_scales(a);
  prefetch_biases<T, In>(a, w);
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
      const uint32_t block_x[1] = {shared_address(x) + item.template row<In>(lane % 8) * p.x_stride + lane / 8 * 16 +
                                   at.block * (block_k * 2)};
      uint32_t next_x[1] = {keep(block_x[0])};
      accumulators<T> totals;
      totals.clear();
      for (int left = at.run; left > 0; left -= T::chunk) {
        scale_data.take();
        scale_table table = scale_data.table;
#pragma unroll 1
        for (int i = min(left, T::chunk); i > 0; i--) {
          multiply_block<T>(a.product.scale_data, dequantiser, weights, words, next_x, nullptr, table, g, centers,
                            totals);
          weights.end_block();
          table.to_next_block(T::pairs);
          next_x[0] += block_k * 2;
        }
      }
      uint8_t *const partial = partials + (w.tile_of(at.strip) + warp) * p.partial_bytes;
      const float factor = a.product.scale_data.factor;
      if constexpr (In) {
        add_to_tokens<T>(item, p.tokens, factor, lane, (float *)partial, totals);
      } else {
        store_partial<T>((float4 *)partial, lane, LPG_FAN_COLUMNS, factor, false, totals);
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
