/* The segment form: a product with a stack whose experts have few rows of X each, by gemv's way of multiplying. Weights
 * go from memory to registers, a k block ahead and across rounds; the rows of X of an item lie in shared memory, those
 * of the next one come meanwhile. So an item costs what its weights cost to read, whatever rows it has. */
#pragma once

#include "gemv_segment_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Starts to copy the rows of X of a round's item. */
template <class T>
__device__ inline void stage_item(const segment_args &a, const segment_work<T> &w, const segment_round &of,
                                  int rotation, uint8_t *x) {
  const int lane = threadIdx.x % 32;
  const int mine = a.x_row && lane < of.rows ? __ldcg(a.x_row + of.first_row + lane) : of.first_row + lane;
  const uint16_t *const rows = (const uint16_t *)a.product.x;
  if (w.blocks > 0) {
    stage_rows<T>(a.product, of.rows, w.first_block, w.blocks, rotation, a.plan.x_stride,
                  x + of.x_place * a.plan.x_bytes, true, [&](int i) {
                    const int row = __shfl_sync(0xffffffffu, mine, i);
                    return (unsigned)row < (unsigned)a.x_rows ? rows + row * a.product.ldx : nullptr;
                  });
  }
  commit_copies();
}

/* The sums that a lane adds up: of two columns and rows g and g + 8 of a row tile. Where an item has few columns a warp
 * has several row tiles at once. */
struct lane_share {
  int tiles, tile, column; /* row tiles of a warp at once, and the lane's of them */

  __device__ explicit lane_share(int rows) {
    const int pairs = rows <= 2 ? 1 : rows <= 4 ? 2 : 4, lane = threadIdx.x % 4;
    tiles = 4 / pairs;
    tile = lane / pairs;
    column = lane % pairs * 2;
  }

  /* Where they lie in a partial. */
  __device__ int at(int row_tile) const { return row_tile * 512 + threadIdx.x % 32 / 4 * 64 + column * 8; }
};

/* With split-K: adds the warps' partials and writes the sums to the CTA that stores the strip: rank strip % split_k. */
template <class T>
__device__ inline void send_strips(const lpg_segment_plan &p, const segment_work<T> &w, const work &none, int which,
                                   int rank, const uint8_t *partials, uint8_t *peers) {
  const segment_round &now = w.round[which];
  const lane_share share(now.rows);
  const lpg_partition shares = w.shares(which);
  for (int job = w.warp; job * share.tiles < now.tiles * T::row_tiles; job += T::warps) {
    const int of = job * share.tiles + share.tile, strip = of / T::row_tiles, at = share.at(of % T::row_tiles);
    if (strip >= now.tiles || share.column >= now.rows) continue;
    const partial_span span = span_of(shares, strip, w.blocks, none);
    const uint8_t *to = peers + rank * p.peer_bytes + strip / (unsigned)p.split_k * p.partial_bytes + at;
    store_to_block(shared_address(to), strip % (unsigned)p.split_k,
                   add_partials(partials + span.first * p.partial_bytes + at, span.count, p.partial_bytes));
  }
}

template <class T>
__device__ inline void store_strips(const segment_args &a, const segment_work<T> &w, const work &none, int which,
                                    int rank, const uint8_t *partials, const uint8_t *peers) {
  const lpg_segment_plan &p = a.plan;
  const segment_round &now = w.round[which];
  const int g = threadIdx.x % 32 / 4, split_k = p.split_k;
  const lane_share share(now.rows);
  const lpg_partition shares = w.shares(which);
  for (int job = w.warp; job * share.tiles / T::row_tiles * split_k + rank < now.tiles; job += T::warps) {
    const int of = job * share.tiles + share.tile, nth = of / T::row_tiles, strip = nth * split_k + rank;
    if (strip >= now.tiles || share.column >= now.rows) continue;
    const partial_span span = span_of(shares, strip, w.blocks, none);
    const uint8_t *from = split_k > 1 ? peers + nth * p.partial_bytes : partials + span.first * p.partial_bytes;
    const float4 sum = add_partials(from + share.at(of % T::row_tiles), split_k > 1 ? split_k : span.count,
                                    split_k > 1 ? p.peer_bytes : p.partial_bytes);
    const int row_tile = (now.super_tile + strip) * T::row_tiles + of % T::row_tiles, m = now.first_row + share.column;
    store_two(a, now.expert, now.scale, m, row_tile, g, sum.x, sum.z);
    if (share.column + 1 < now.rows) store_two(a, now.expert, now.scale, m + 1, row_tile, g, sum.y, sum.w);
  }
}

template <class T>
__global__ void __launch_bounds__(T::threads, 1) segment_kernel(const __grid_constant__ segment_args a) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  const lpg_segment_plan &p = a.plan;
  const int lane = threadIdx.x % 32, warp = same_in_warp(threadIdx.x / 32), g = lane / 4;
  const int rank = p.split_k > 1 ? blockIdx.x % p.split_k : 0,
            cluster = p.split_k > 1 ? blockIdx.x / p.split_k : blockIdx.x;
  uint8_t *const partials = memory + p.partials, *const x = memory + p.x;
  if (p.split_k > 1) cluster_arrive(); /* others may write to this CTA's shared memory from now on */
  if (!a.offsets_final) {
    pdl_wait();
    pdl_launch_next();
  }
  const segment_work<T> w(a, cluster, rank, warp, memory);
  const work none(lpg_gemv_plan{}, 1, 0, 0, 0);
  if (!a.offsets_final && w.rounds > 0) stage_item<T>(a, w, w.round[0], cluster, x);
  strip_cursor at = {}, first = {};
  if (w.rounds > 0) {
    at.start(w, 0);
    first.start_from(w, 0);
  }
  strip_stream<T, segment_work<T>> weights(a, none, w, first, lane);
  strip_scales<T, segment_work<T>> scale_data(a, w, first, lane, memory + p.warp + warp * p.warp_bytes,
                                              p.scale_table_bytes);
  scale_data.copy_next();
  block_words<T> words = {};
  weights.fill(words);
  w.add_scales(a);
  if (a.offsets_final) {
    pdl_wait();
    pdl_launch_next();
    if (w.rounds > 0) stage_item<T>(a, w, w.round[0], cluster, x);
  }
  T::Dequantiser::fill_table(a.product.dequantiser, memory, threadIdx.x, T::threads);
  const typename T::Dequantiser dequantiser(a.product.dequantiser, memory, lane);
  row_centers<T> centers;
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) {
    T::Dequantiser::set_center(centers.row[r][0], T::X::round(a.product.dequantiser.center));
    T::Dequantiser::set_center(centers.row[r][1], T::X::round(a.product.dequantiser.center));
  }
  if (w.rounds == 0 && p.split_k > 1) cluster_wait();
  for (int which = 0; which < w.rounds; which++) {
    const segment_round &now = w.round[which];
    wait_copies<0>();
    scale_data.waited = true;
    __syncthreads(); /* X is there, and the partials of the round before are read */
    if (now.next_item > 0) stage_item<T>(a, w, w.round[now.next_item], cluster, x);
    for (int i = threadIdx.x; a.product.epilogue.bias && i < now.tiles; i += T::threads) {
      prefetch_biases<T>(a, now.expert, now.super_tile + i);
    }
    if (which > 0) at.start(w, which);
    uint32_t lane_x[T::x_tiles];
#pragma unroll
    for (int j = 0; j < T::x_tiles; j++) {
      lane_x[j] = keep(shared_address(x) + now.x_place * p.x_bytes + min(j * 8 + lane % 8, now.rows - 1) * p.x_stride +
                       lane / 8 * 16);
    }
    for (; at.run > 0; at.next(w)) {
      accumulators<T> totals;
      totals.clear();
      uint32_t block_x[T::x_tiles];
#pragma unroll
      for (int j = 0; j < T::x_tiles; j++) block_x[j] = lane_x[j] + at.block * (block_k * 2);
      multiply_strip<T>(at.run, block_x, dequantiser, weights, scale_data, words, g, centers, totals);
      store_partial<T>((float4 *)(partials + (at.strip + warp) * p.partial_bytes), lane, now.rows,
                       a.product.scale_data.factor, false, totals);
    }
    /* Peer partials have two areas in turn: other CTAs may still read those of the round before. */
    uint8_t *const peers = memory + p.peers + which % 2 * p.split_k * p.peer_bytes;
    __syncthreads();
    if (p.split_k > 1) {
      if (which == 0) cluster_wait(); /* all CTAs of the cluster run */
      send_strips<T>(p, w, none, which, rank, partials, peers);
      cluster_arrive();
      cluster_wait();
    }
    store_strips<T>(a, w, none, which, rank, partials, peers);
  }
}

}  // namespace
}  // namespace lpg
