/* From the sums of warps and parts of K to outputs, in a fixed order. */
#pragma once

#include "../prim/cluster.cuh"
#include "gemv_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* A slot holds a warp's sums for a super tile as they lie in its registers: for each row tile and 8 rows of X, four
 * numbers a lane, those of D of the tensor cores. */

/* Stores a warp's sums times factor, or adds them to what it stored in an earlier phase. */
template <class T>
__device__ inline void store_slot(float4 *slot, int lane, int x_rows, float factor, bool adds,
                                  const accumulators<T> &totals) {
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
    for (int j = 0; j < T::x_tiles; j++) {
      if (j * 8 + lane % 4 * 2 >= x_rows) continue;
      float4 *four = slot + (r * T::x_tiles + j) * 32 + lane;
      const float4 before = adds ? *four : float4{};
      const float(&sum)[4] = totals.sum[r][j];
      *four = make_float4(fmaf(sum[0], factor, before.x), fmaf(sum[1], factor, before.y),
                          fmaf(sum[2], factor, before.z), fmaf(sum[3], factor, before.w));
    }
  }
}

/* The slots of a super tile of a round: of every warp that has some of its blocks. */
struct slot_span {
  int first, count;

  __device__ slot_span(const work &w, const lpg_partition &shares, int tile) {
    first = tile;
    count = 0;
    if (w.blocks == 0) return;
    first += part_of(shares, tile * w.most_blocks);
    count = tile + part_of(shares, (tile + 1) * w.most_blocks - 1) - first + 1;
  }
};

/* Adds up `count` slots, `stride` bytes apart, for one lane: in the order of the warps or of the parts of K. */
__device__ inline float4 add_slots(const uint8_t *from, int count, int stride) {
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

/* Adds up what the warps have, a row tile and 8 rows of X a warp and turn, and brings it to the CTA that
 * stores the super tile: rank tile % parts of K, where the sums of a slice lie together. */
template <class T>
__device__ inline void send_sums(const lpg_gemv_plan &p, const work &w, int round, int slice, const uint8_t *slots,
                                 uint8_t *peers) {
  constexpr int parts = T::row_tiles * T::x_tiles;
  const int lane = threadIdx.x % 32;
  const lpg_partition shares = w.shares(round);
  for (int unit = w.warp; unit < w.round_tiles(round) * parts; unit += T::warps) {
    const unsigned tile = unit / parts, part = unit % parts;
    if ((int)part % T::x_tiles * 8 + lane % 4 * 2 >= p.x_rows) continue;
    const slot_span span(w, shares, tile);
    const int at = part * 512 + lane * 16;
    const uint8_t *to = peers + slice * p.peer_bytes + tile / (unsigned)p.split_k * p.slot_bytes + at;
    store_to_block(shared_address(to), tile % (unsigned)p.split_k,
                   add_slots(slots + span.first * p.slot_bytes + at, span.count, p.slot_bytes));
  }
}

/* Adds up the sums of warps (one slice) or parts of K for the super tiles of this CTA; stores the outputs. */
template <class T>
__device__ inline void store_outputs(const gemv_args &a, const work &w, int round, int first_super_tile, int slice,
                                     const uint8_t *slots, const uint8_t *peers) {
  constexpr int parts = T::row_tiles * T::x_tiles;
  const lpg_gemv_plan &p = a.plan;
  const int lane = threadIdx.x % 32, split_k = p.split_k, tiles = w.round_tiles(round);
  const lpg_partition shares = w.shares(round);
  for (int unit = w.warp; unit / parts * split_k + slice < tiles; unit += T::warps) {
    const int at = unit / parts, part = unit % parts, tile = at * split_k + slice;
    const int m = part % T::x_tiles * 8 + lane % 4 * 2;
    if (m >= p.x_rows) continue;
    const slot_span span(w, shares, tile);
    const uint8_t *from = split_k > 1 ? peers + at * p.slot_bytes : slots + span.first * p.slot_bytes;
    const float4 sum = add_slots(from + part * 512 + lane * 16, split_k > 1 ? split_k : span.count,
                                 split_k > 1 ? p.peer_bytes : p.slot_bytes);
    const int super_tile = first_super_tile + round * p.round_tiles + tile;
    const int n = super_tile * T::tile_n + part / T::x_tiles * LPG_TILE_ROWS + lane / 4;
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
      const int column = m + i % 2, row = n + i / 2 * 8;
      if (column < p.x_rows && row < a.n)
        store_real(a.epilogue, column, row, i == 0 ? sum.x : i == 1 ? sum.y : i == 2 ? sum.z : sum.w);
    }
  }
}

}  // namespace
}  // namespace lpg
