/* Warps with shares of a matrix, and from their sums to outputs, in a fixed order. A share is a contiguous run of
 * blocks of super tiles; its sums for a super tile go to slot (tile + warp), which no other pair has, as [row tile][row
 * of X][row]. The slots of one tile are contiguous. */
#pragma once

#include "../plan/scheduler.cuh"
#include "../prim/async.cuh"
#include "../prim/cluster.cuh"
#include "epilogue.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* What a warp does, by the plan: CTAs of a cluster have parts of K, clusters groups of super tiles. */
struct warp_part {
  int slice, first_tile, tiles, first_block, blocks; /* of the CTA */
  lpg_partition shares;                              /* of its warps */
  int tile, block, left; /* of the warp: where it begins, counted from those first ones, and how many blocks it has */

  template <class Plan>
  __device__ warp_part(const Plan &p, int warps, int warp, bool reads_product) {
    slice = p.split_k > 1 ? blockIdx.x % (unsigned)p.split_k : 0;
    const int group = p.split_k > 1 ? blockIdx.x / (unsigned)p.split_k : blockIdx.x;
    first_tile = first_of(p.n_part, group);
    tiles = count_of(p.n_part, group);
    first_block = first_of(p.k_part, slice);
    blocks = reads_product ? count_of(p.k_part, slice) : 0;
    const unsigned all = (unsigned)(tiles * blocks);
    shares = {(int)(all / warps), (int)(all % warps)};
    const int first = first_of(shares, warp);
    left = count_of(shares, warp);
    tile = left > 0 ? first / blocks : 0;
    block = first - tile * blocks;
  }
};

/* Where in its share a warp is. */
struct part_cursor {
  int tile, left_of_tile, left; /* the next block's super tile; blocks of it, and of the share, that are left */
  int first_block, blocks;      /* of the CTA */

  __device__ explicit part_cursor(const warp_part &share)
      : tile(share.first_tile + share.tile),
        left_of_tile(share.blocks - share.block),
        left(share.left),
        first_block(share.first_block),
        blocks(share.blocks) {}

  /* To the next block; 1 if it is the first of its super tile. */
  __device__ bool next() {
    left--;
    if (--left_of_tile > 0) return false;
    tile++;
    left_of_tile = blocks;
    return left > 0;
  }
};

/* The part of the unit. Of a / b, 0 <= a < 2^20, the approximate reciprocal is close enough. */
__device__ inline int share_of(const lpg_partition &s, int unit) {
  const auto quotient = [](int a, int b) { return (int)__fdividef((float)a + 0.5f, (float)b); };
  const int large = s.more * (s.each + 1);
  return unit < large ? quotient(unit, s.each + 1) : s.more + quotient(unit - large, s.each);
}

/* Adds up, in their order, what the warps have for an output row of a super tile and Each rows of X, of which the first
 * one's lies at `at` of a slot. */
template <class T, int Each, class Args>
__device__ inline void add_warps(const Args &a, const warp_part &share, int tile, const typename T::sum_type *slots,
                                 int at, typename T::sum_type (&sum)[Each]) {
  const int blocks = share.blocks;
#pragma unroll
  for (int i = 0; i < Each; i++) sum[i] = 0;
  if (blocks == 0) return;
  const int first = share_of(share.shares, tile * blocks), last = share_of(share.shares, (tile + 1) * blocks - 1);
  const typename T::sum_type *slot = slots + (tile + first) * (a.plan.slot_bytes / 4) + at;
#pragma unroll 4
  for (int warp = first; warp <= last; warp++, slot += a.plan.slot_bytes / 4) {
#pragma unroll
    for (int i = 0; i < Each; i++) sum[i] += slot[i * LPG_TILE_ROWS];
  }
}

/* A thread takes outputs of a row and of Each rows of X at a time. */
template <class T, int Each, class Args, class Value>
__device__ inline void combine_each(const Args &a, const warp_part &share, uint8_t *memory, const Value &value) {
  using sum_type = typename T::sum_type;
  const int tiles = share.tiles, slice = share.slice;
  constexpr int outputs = T::tile_n * T::TileM, of_tile = outputs / Each, of_rows = LPG_TILE_ROWS * T::TileM / Each;
  const int split_k = a.plan.split_k;
  const sum_type *const slots = (const sum_type *)(memory + a.plan.slots);
  sum_type *const peers = (sum_type *)(memory + a.plan.peers);
  sum_type sum[Each];
  /* Of a tile's number `i`: the first row of X, and the place of its sum in a slot. */
  const auto m_of = [](int i) { return i % of_rows / LPG_TILE_ROWS * Each; };
  const auto place = [&](int i) { return (i / of_rows * T::TileM + m_of(i)) * LPG_TILE_ROWS + i % LPG_TILE_ROWS; };
  const auto store = [&](int tile, int i) {
    const int row = (tile * T::row_tiles + i / of_rows) * LPG_TILE_ROWS + i % LPG_TILE_ROWS;
    const int n = share.first_tile * T::tile_n + row;
#pragma unroll
    for (int j = 0; j < Each; j++) {
      const int m = m_of(i) + j;
      if (n < a.n && m < a.m) store_real(a.epilogue, m, n, value(row, m, sum[j]));
    }
  };
  if (split_k == 1) {
    for (int i = threadIdx.x; i < tiles * of_tile; i += T::threads) {
      const int tile = i / of_tile;
      add_warps<T>(a, share, tile, slots, place(i % of_tile), sum);
      store(tile, i % of_tile);
    }
    return;
  }
  for (int i = threadIdx.x; i < tiles * of_tile; i += T::threads) { /* to rank tile % parts of K, which stores it */
    const int tile = i / of_tile, at = place(i % of_tile);
    sum_type *const to = peers + slice * (a.plan.peer_bytes / 4) + tile / split_k * outputs + at;
    add_warps<T>(a, share, tile, slots, at, sum);
#pragma unroll
    for (int j = 0; j < Each; j++) store_to_block(shared_address(to + j * LPG_TILE_ROWS), tile % split_k, sum[j]);
  }
  cluster_arrive();
  cluster_wait();
  for (int i = threadIdx.x; i / of_tile * split_k + slice < tiles; i += T::threads) {
    const sum_type *from = peers + i / of_tile * outputs + place(i % of_tile);
#pragma unroll
    for (int j = 0; j < Each; j++) sum[j] = 0;
    for (int s = 0; s < split_k; s++, from += a.plan.peer_bytes / 4) {
#pragma unroll
      for (int j = 0; j < Each; j++) sum[j] += from[j * LPG_TILE_ROWS];
    }
    store(i / of_tile * split_k + slice, i % of_tile);
  }
}

/* With parts of K all blocks of the cluster have started. value: of a row of the group's, a row of X and their sum.
 * Where threads have outputs to spare they take one each, which is sooner done; else all of a row, which is less work.
 */
template <class T, class Args, class Value>
__device__ inline void combine_sums(const Args &a, const warp_part &share, uint8_t *memory, const Value &value) {
  if (T::TileM > 1 && a.plan.n_part.each * (T::tile_n * T::TileM) >= T::threads) {
    combine_each<T, T::TileM>(a, share, memory, value);
  } else {
    combine_each<T, 1>(a, share, memory, value);
  }
}

}  // namespace
}  // namespace lpg
