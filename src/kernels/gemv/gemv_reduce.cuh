/* gemv: from the partial sums of warps and CTAs to outputs, in a fixed order.
 *
 * Each warp writes its partial sums of a super tile to shared memory. With split-K, each CTA adds those of its warps
 * and writes the result to the CTA of the cluster that stores the tile (peer partials), which adds the CTAs' and
 * runs the epilogue. Without split-K the CTA adds its warps' partials and stores. */
#pragma once

#include "../epilogue/store_pairs.cuh"
#include "../prim/cluster.cuh"
#include "gemv_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* A partial is a warp's sums of a super tile in the layout of its registers: for each row tile and 8 rows of X, four
 * floats a lane, the accumulator of mma. A warp's range of (super tile, k block) is contiguous, so it may share its
 * first and last super tile with its neighbours. Its partial of a tile is number (tile in the round + warp): no other
 * pair has this number, and the partials of one tile are contiguous. */

/* Writes a warp's sums times factor, or adds them to what it wrote in an earlier phase. */
template <class T>
__device__ inline void store_partial(float4 *partial, int lane, int x_rows, float factor, bool adds,
                                     const accumulators<T> &totals) {
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
    for (int j = 0; j < T::x_tiles; j++) {
      if (j * 8 + lane % 4 * 2 >= x_rows) continue;
      float4 *four = partial + (r * T::x_tiles + j) * 32 + lane;
      const float4 before = adds ? *four : float4{};
      const float(&sum)[4] = totals.sum[r][j];
      *four = make_float4(fmaf(sum[0], factor, before.x), fmaf(sum[1], factor, before.y),
                          fmaf(sum[2], factor, before.z), fmaf(sum[3], factor, before.w));
    }
  }
}

/* The partials of a super tile of a round: one for every warp that has some of its blocks. */
struct partial_span {
  int first, count;

  __device__ partial_span(const work &w, const lpg_partition &warp_blocks, int tile) {
    first = tile;
    count = 0;
    if (w.blocks == 0) return;
    first += part_of(warp_blocks, tile * w.most_blocks);
    count = tile + part_of(warp_blocks, (tile + 1) * w.most_blocks - 1) - first + 1;
  }
};

/* Adds `count` partials, `stride` bytes apart, for one lane: in the order of the warps, or of the CTAs of the
 * cluster. */
__device__ inline float4 add_partials(const uint8_t *from, int count, int stride) {
  float4 sum = {};
#pragma unroll 4
  for (int s = 0; s < count; s++) {
    const float4 one = *(const float4 *)(from + s * stride);
    sum.x += one.x;
    sum.y += one.y;
    sum.z += one.z;
    sum.w += one.w;
  }
  return sum;
}

/* Adds the warps' partials and writes the sums to the CTA that stores the super tile: rank tile % split_k. A warp
 * takes a row tile by 8 rows of X at a time. The sums that one CTA sends to another lie together. */
template <class T>
__device__ inline void send_sums(const lpg_gemv_plan &p, const work &w, int round, int rank, const uint8_t *partials,
                                 uint8_t *peers) {
  constexpr int pieces = T::row_tiles * T::x_tiles;
  const int lane = threadIdx.x % 32;
  const lpg_partition warp_blocks = w.warp_blocks(round);
  for (int job = w.warp; job < w.round_tiles(round) * pieces; job += T::warps) {
    const unsigned tile = job / pieces, piece = job % pieces;
    if ((int)piece % T::x_tiles * 8 + lane % 4 * 2 >= p.x_rows) continue;
    const partial_span span(w, warp_blocks, tile);
    const int at = piece * 512 + lane * 16;
    const uint8_t *to = peers + rank * p.peer_bytes + tile / (unsigned)p.split_k * p.slot_bytes + at;
    store_to_block(shared_address(to), tile % (unsigned)p.split_k,
                   add_partials(partials + span.first * p.slot_bytes + at, span.count, p.slot_bytes));
  }
}

/* Stores the outputs of a lane's sums where rows g and g + 8 of a row tile are gate and up. */
__device__ inline void store_lane_pairs(const gemv_args &a, int m, int row_tile, int g, const float4 &sum) {
  const epilogue_args &e = a.epilogue;
  const int column = row_tile * 8 + g, outputs = a.n / 2;
  if (column >= outputs) return;
  const float *const scales = e.row_scales ? e.row_scales + row_tile * LPG_TILE_ROWS + g : NULL;
  const float gate = e.global_scale * (scales ? scales[0] : 1.0f), up = e.global_scale * (scales ? scales[8] : 1.0f);
#pragma unroll 1
  for (int i = 0; i < 2 && m + i < a.plan.x_rows; i++) {
    store_pair(e, m + i, column, outputs, 0, (i == 0 ? sum.x : sum.y) * gate, (i == 0 ? sum.z : sum.w) * up);
  }
}

/* Adds the partials of the warps (no split-K) or of the CTAs for the super tiles of this CTA, and stores the
 * outputs. */
template <class T>
__device__ inline void store_outputs(const gemv_args &a, const work &w, int round, int first_super_tile, int rank,
                                     const uint8_t *partials, const uint8_t *peers) {
  constexpr int pieces = T::row_tiles * T::x_tiles;
  const lpg_gemv_plan &p = a.plan;
  const int lane = threadIdx.x % 32, split_k = p.split_k, tiles = w.round_tiles(round);
  const lpg_partition warp_blocks = w.warp_blocks(round);
  for (int job = w.warp; job / pieces * split_k + rank < tiles; job += T::warps) {
    const int at = job / pieces, piece = job % pieces, tile = at * split_k + rank;
    const int m = piece % T::x_tiles * 8 + lane % 4 * 2;
    if (m >= p.x_rows) continue;
    const partial_span span(w, warp_blocks, tile);
    const uint8_t *from = split_k > 1 ? peers + at * p.slot_bytes : partials + span.first * p.slot_bytes;
    const float4 sum = add_partials(from + piece * 512 + lane * 16, split_k > 1 ? split_k : span.count,
                                    split_k > 1 ? p.peer_bytes : p.slot_bytes);
    const int super_tile = first_super_tile + round * p.round_tiles + tile;
    const int n = super_tile * T::tile_n + piece / T::x_tiles * LPG_TILE_ROWS + lane / 4;
    if (a.epilogue.paired) {
      store_lane_pairs(a, m, n / LPG_TILE_ROWS, lane / 4, sum);
      continue;
    }
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
      const int x_row = m + i % 2, row = n + i / 2 * 8;
      if (x_row < p.x_rows && row < a.n)
        store_real(a.epilogue, x_row, row, i == 0 ? sum.x : i == 1 ? sum.y : i == 2 ? sum.z : sum.w);
    }
  }
}

}  // namespace
}  // namespace lpg
