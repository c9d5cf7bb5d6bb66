/* The rows of X of the experts of a stack, which only the device knows: for each expert, in shared memory, how many
 * work tiles along M and how many rows of X are before its own. */
#pragma once

#include "partition.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct expert_rows {
  int count;
  const int *first_tile, *first_row; /* [count + 1] */

  /* memory: lpg_expert_rows_bytes(count). */
  __device__ expert_rows(uint8_t *memory, int count)
      : count(count), first_tile((const int *)memory), first_row((const int *)memory + lpg_expert_rows_pitch(count)) {}

  /* The expert of a tile along M, which one has. The whole warp must call it. */
  __device__ int expert_of(int tile) const {
    const int lane = threadIdx.x % 32;
    int expert = 0;
#pragma unroll
    for (int step = 1024; step >= 1; step /= 32) { /* the last whose tiles begin no later: of those in steps, then .. */
      if (step > 1 && count <= step) continue;
      const int begins = first_tile[min(expert + lane * step, count)];
      expert += (__popc(__ballot_sync(0xffffffffu, begins <= tile)) - 1) * step;
    }
    return expert;
  }
};

/* Fills them: work of one warp. offsets: [count + 1], an array or what has elements as one, believed as lpg_offset()
 * says; m: rows that X has; tiles_of(rows): work tiles of an expert with so many. */
template <class Offsets, class TilesOf>
__device__ inline void fill_expert_rows(Offsets offsets, int count, int m, uint8_t *memory, TilesOf tiles_of) {
  constexpr int each = 8; /* neighbouring experts of a lane at once */
  int *const first_tile = (int *)memory, *const first_row = first_tile + lpg_expert_rows_pitch(count);
  const int lane = threadIdx.x % 32;
  int tiles_before = 0, rows_before = 0;
#pragma unroll 1
  for (int chunk = 0; chunk < count; chunk += 32 * each) {
    const int first = chunk + lane * each;
    int row[each + 1], tiles[each], all = 0;
#pragma unroll
    for (int i = 0; i <= each; i++) row[i] = min(offsets[min(first + i, count)], m);
#pragma unroll
    for (int i = 1; i <= each; i++) row[i] = max(row[i], row[i - 1]);
    int most = row[each];
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, most, step);
      if (lane >= step) most = max(most, other);
    }
    const int lower = __shfl_up_sync(0xffffffffu, most, 1);
    const int least = lane == 0 ? rows_before : max(lower, rows_before);
#pragma unroll
    for (int i = 0; i <= each; i++) row[i] = max(row[i], least);
#pragma unroll
    for (int i = 0; i < each; i++) {
      tiles[i] = tiles_of(row[i + 1] - row[i]);
      all += tiles[i];
    }
    const int own = all;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, all, step);
      if (lane >= step) all += other;
    }
    int at = tiles_before + all - own;
#pragma unroll
    for (int i = 0; i < each; i++) {
      if (first + i < count) {
        first_tile[first + i] = at;
        first_row[first + i] = row[i];
      }
      at += tiles[i];
    }
    tiles_before += __shfl_sync(0xffffffffu, all, 31);
    rows_before = max(rows_before, __shfl_sync(0xffffffffu, most, 31));
  }
  if (lane == 0) {
    first_tile[count] = tiles_before;
    first_row[count] = rows_before;
  }
}

}  // namespace
}  // namespace lpg
