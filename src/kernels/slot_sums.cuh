/* From sums of warps to outputs, in a fixed order, where a warp's share is a contiguous run of blocks of super tiles:
 * its sums for a super tile lie in slot (tile + warp), as [row tile][row of X][row]. */
#pragma once

#include "blocks.cuh"
#include "epilogue.cuh"
#include "prim/async.cuh"
#include "prim/cluster.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The part of the unit. Of a / b, 0 <= a < 2^20, the approximate reciprocal is close enough. */
__device__ inline int share_of(const lpg_shares &s, int unit) {
  const auto quotient = [](int a, int b) { return (int)__fdividef((float)a + 0.5f, (float)b); };
  const int large = s.more * (s.each + 1);
  return unit < large ? quotient(unit, s.each + 1) : s.more + quotient(unit - large, s.each);
}

/* Adds up what the warps have for an output of a super tile, in their order. */
template <class Args>
__device__ inline float add_warps(const Args &a, const lpg_shares &shares, int blocks, int tile, const float *slots,
                                  int at) {
  if (blocks == 0) return 0.0f;
  const int first = share_of(shares, tile * blocks), last = share_of(shares, (tile + 1) * blocks - 1);
  float sum = 0.0f;
#pragma unroll 4
  for (int warp = first; warp <= last; warp++) sum += slots[(tile + warp) * (a.plan.slot_bytes / 4) + at];
  return sum;
}

template <class T, class Args>
__device__ inline void combine_sums(const Args &a, const lpg_shares &shares, int first_tile, int tiles, int blocks,
                                    int slice, uint8_t *memory) {
  constexpr int outputs = T::rows * T::Columns; /* of a super tile */
  const int slices = a.plan.slices;
  const float *const slots = (const float *)(memory + a.plan.slots);
  float *const inbox = (float *)(memory + a.plan.inbox);
  const auto store = [&](int tile, int at, float sum) {
    const int row_tile = (first_tile + tile) * T::row_tiles + at / (T::Columns * LPG_TILE_ROWS);
    const int n = row_tile * LPG_TILE_ROWS + at % LPG_TILE_ROWS, m = at / LPG_TILE_ROWS % T::Columns;
    if (n < a.n && m < a.m) store_real(a.epilogue, m, n, sum);
  };
  if (slices == 1) {
    for (int i = threadIdx.x; i < tiles * outputs; i += T::threads) {
      const int tile = i / outputs, at = i % outputs;
      store(tile, at, add_warps(a, shares, blocks, tile, slots, at));
    }
    return;
  }
  cluster_wait();                                                   /* the others have started */
  for (int i = threadIdx.x; i < tiles * outputs; i += T::threads) { /* to rank tile % slices, which stores it */
    const int tile = i / outputs, at = i % outputs;
    float *const to = inbox + slice * (a.plan.inbox_slice / 4) + tile / slices * outputs + at;
    store_to_block(shared_address(to), tile % slices, add_warps(a, shares, blocks, tile, slots, at));
  }
  cluster_arrive();
  cluster_wait();
  for (int i = threadIdx.x; i / outputs * slices + slice < tiles; i += T::threads) {
    float sum = 0.0f;
    for (int s = 0; s < slices; s++) sum += inbox[s * (a.plan.inbox_slice / 4) + i];
    store(i / outputs * slices + slice, i % outputs, sum);
  }
}

}  // namespace
}  // namespace lpg
