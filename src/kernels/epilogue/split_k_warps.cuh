/* The work of single warps, and the reduction of their sums, in a fixed order (gemv1, lut).
 *
 * Clusters share the super tiles of W, the CTAs of a cluster share K (split-K), and the warps of a CTA share its k
 * blocks: each takes a contiguous run of them, super tile after super tile. When a warp leaves a super tile it writes
 * its partial sums, [row tile][row of X][row], to partial number (super tile + warp), both counted in the CTA. No other
 * pair has this number, since a later warp never has an earlier super tile; and the partials of one super tile are
 * neighbours. With split-K a CTA then sends the sums of its warps to the CTA of the cluster that stores this super tile
 * (peer partials). */
#pragma once

#include "../plan/scheduler.cuh"
#include "../prim/async.cuh"
#include "../prim/cluster.cuh"
#include "epilogue.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* What a warp works on. */
struct warp_part {
  int rank, first_tile, tiles, first_block, blocks; /* of the CTA; rank: in the cluster */
  lpg_partition warp_blocks;                        /* the CTA's k blocks (of all its super tiles) dealt out to warps */
  int tile, block, left; /* the warp's first super tile and k block, from the CTA's first on; its number of k blocks */

  template <class Plan>
  __device__ warp_part(const Plan &p, int warps, int warp, bool reads_product) {
    rank = p.split_k > 1 ? blockIdx.x % (unsigned)p.split_k : 0;
    const int group = p.split_k > 1 ? blockIdx.x / (unsigned)p.split_k : blockIdx.x;
    first_tile = first_of(p.n_part, group);
    tiles = count_of(p.n_part, group);
    first_block = first_of(p.k_part, rank);
    blocks = reads_product ? count_of(p.k_part, rank) : 0;
    const unsigned all = (unsigned)(tiles * blocks);
    warp_blocks = {(int)(all / warps), (int)(all % warps)};
    const int first = first_of(warp_blocks, warp);
    left = count_of(warp_blocks, warp);
    tile = left > 0 ? first / blocks : 0;
    block = first - tile * blocks;
  }
};

/* A warp's position in its run of k blocks. */
struct part_cursor {
  int tile, left_of_tile, left; /* super tile of the next k block; k blocks left of it, and of the run */
  int first_block, blocks;      /* of the CTA */

  __device__ explicit part_cursor(const warp_part &part)
      : tile(part.first_tile + part.tile),
        left_of_tile(part.blocks - part.block),
        left(part.left),
        first_block(part.first_block),
        blocks(part.blocks) {}

  /* To the next k block; true if that is the first of another super tile. */
  __device__ bool next() {
    left--;
    if (--left_of_tile > 0) return false;
    tile++;
    left_of_tile = blocks;
    return left > 0;
  }
};

/* The part that has thing number `i`. a / b with 0 <= a < 2^20: the approximate reciprocal is exact enough. */
__device__ inline int part_of(const lpg_partition &s, int i) {
  const auto quotient = [](int a, int b) { return (int)__fdividef((float)a + 0.5f, (float)b); };
  const int large = s.more * (s.each + 1);
  return i < large ? quotient(i, s.each + 1) : s.more + quotient(i - large, s.each);
}

/* Adds up, in the order of the warps, the partials of a super tile for one row of W and Each rows of X; `at`: place of
 * the first of them in a partial. */
template <class T, int Each, class Args>
__device__ inline void add_warps(const Args &a, const warp_part &part, int tile, const typename T::sum_type *partials,
                                 int at, typename T::sum_type (&sum)[Each]) {
  const int blocks = part.blocks;
#pragma unroll
  for (int i = 0; i < Each; i++) sum[i] = 0;
  if (blocks == 0) return;
  const int first = part_of(part.warp_blocks, tile * blocks), last = part_of(part.warp_blocks, (tile + 1) * blocks - 1);
  const typename T::sum_type *partial = partials + (tile + first) * (a.plan.slot_bytes / 4) + at;
#pragma unroll 4
  for (int warp = first; warp <= last; warp++, partial += a.plan.slot_bytes / 4) {
#pragma unroll
    for (int i = 0; i < Each; i++) sum[i] += partial[i * LPG_TILE_ROWS];
  }
}

/* A thread makes the outputs of one row of W and Each rows of X at a time. */
template <class T, int Each, class Args, class Value>
__device__ inline void combine_each(const Args &a, const warp_part &part, uint8_t *memory, const Value &value) {
  using sum_type = typename T::sum_type;
  const int tiles = part.tiles, rank = part.rank;
  constexpr int outputs = T::tile_n * T::TileM, of_tile = outputs / Each, of_rows = LPG_TILE_ROWS * T::TileM / Each;
  const int split_k = a.plan.split_k;
  const sum_type *const partials = (const sum_type *)(memory + a.plan.slots);
  sum_type *const peers = (sum_type *)(memory + a.plan.peers);
  sum_type sum[Each];
  /* For output i of a super tile: its first row of X, and its place in a partial. */
  const auto m_of = [](int i) { return i % of_rows / LPG_TILE_ROWS * Each; };
  const auto place = [&](int i) { return (i / of_rows * T::TileM + m_of(i)) * LPG_TILE_ROWS + i % LPG_TILE_ROWS; };
  const auto store = [&](int tile, int i) {
    const int row = (tile * T::row_tiles + i / of_rows) * LPG_TILE_ROWS + i % LPG_TILE_ROWS;
    const int n = part.first_tile * T::tile_n + row;
#pragma unroll
    for (int j = 0; j < Each; j++) {
      const int m = m_of(i) + j;
      if (n < a.n && m < a.m) store_real(a.epilogue, m, n, value(row, m, sum[j]));
    }
  };
  if (split_k == 1) {
    for (int i = threadIdx.x; i < tiles * of_tile; i += T::threads) {
      const int tile = i / of_tile;
      add_warps<T>(a, part, tile, partials, place(i % of_tile), sum);
      store(tile, i % of_tile);
    }
    return;
  }
  for (int i = threadIdx.x; i < tiles * of_tile; i += T::threads) { /* to rank tile % split_k, which stores it */
    const int tile = i / of_tile, at = place(i % of_tile);
    sum_type *const to = peers + rank * (a.plan.peer_bytes / 4) + tile / split_k * outputs + at;
    add_warps<T>(a, part, tile, partials, at, sum);
#pragma unroll
    for (int j = 0; j < Each; j++) store_to_block(shared_address(to + j * LPG_TILE_ROWS), tile % split_k, sum[j]);
  }
  cluster_arrive();
  cluster_wait();
  for (int i = threadIdx.x; i / of_tile * split_k + rank < tiles; i += T::threads) {
    const sum_type *from = peers + i / of_tile * outputs + place(i % of_tile);
#pragma unroll
    for (int j = 0; j < Each; j++) sum[j] = 0;
    for (int s = 0; s < split_k; s++, from += a.plan.peer_bytes / 4) {
#pragma unroll
      for (int j = 0; j < Each; j++) sum[j] += from[j * LPG_TILE_ROWS];
    }
    store(i / of_tile * split_k + rank, i % of_tile);
  }
}

/* From the warps' partials to outputs. With split-K all CTAs of the cluster must have started, since this writes to
 * their shared memory. value(row, m, sum): the value of a row of the cluster's, a row of X and their sum. If there are
 * fewer outputs than threads, a thread takes one output each, which is sooner done; else all rows of X of a row of W,
 * which is less work. */
template <class T, class Args, class Value>
__device__ inline void combine_sums(const Args &a, const warp_part &part, uint8_t *memory, const Value &value) {
  if (T::TileM > 1 && a.plan.n_part.each * (T::tile_n * T::TileM) >= T::threads) {
    combine_each<T, T::TileM>(a, part, memory, value);
  } else {
    combine_each<T, 1>(a, part, memory, value);
  }
}

}  // namespace
}  // namespace lpg
