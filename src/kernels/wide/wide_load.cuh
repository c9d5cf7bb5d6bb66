/* The warps of a wide kernel that copy. A stage is 64 columns: X of all tokens of the item, and the weights whose tiles
 * begin there. Each of the four warps brings every fourth stage: one of every block of 256 columns; in the last form
 * with the lines of its columns. */
#pragma once

#include "../tile_parts.cuh"
#include "../x_rows.cuh"
#include "wide_slots.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Weights: of all row tiles of the item from row_tile on, one after the other, whole tiles as they are packed.
 * `vectors`: of 512 bytes, of each row tile from `codes` on; beyond them all is zero. Row tiles that are not there
 * repeat the last. */
template <class T>
__device__ inline void load_weights(const wide_args &a, uint32_t to, const uint8_t *codes, int row_tile, int vectors) {
  constexpr int row_tiles = T::rows / LPG_TILE_ROWS, tile_bytes = T::w_vectors * 512;
  if (row_tile + row_tiles <= a.row_tiles && vectors >= T::w_vectors) {
#pragma unroll
    for (int r = 0; r < row_tiles; r++, codes += a.row_bytes) {
#pragma unroll
      for (int v = 0; v < T::w_vectors; v++) copy16_async(to + r * tile_bytes + v * 512, codes + v * 512);
    }
    return;
  }
#pragma unroll 1
  for (int r = 0; r < row_tiles; r++) {
#pragma unroll 1
    for (int v = 0; v < T::w_vectors; v++) {
      copy16_async(to + r * tile_bytes + v * 512, v < vectors ? codes + v * 512 : a.codes, v < vectors);
    }
    if (row_tile + r + 1 < a.row_tiles) codes += a.row_bytes;
  }
}

/* A stage that a warp has copied or is still copying, and has not yet announced: those who copy make visible to the
 * tensor cores what they wrote, so that those who multiply need not. */
struct stage_on_its_way {
  uint32_t full = 0; /* its barrier; 0: none */

  /* Later: batches of copies after its own. */
  template <int Later>
  __device__ void announce() {
    if (full == 0) return;
    wait_copies<Later>();
    fence_for_tensor_cores();
    arrive(full);
    full = 0;
  }
};

/* Brings a block's part of a stage of X to all blocks that share it. */
template <class T>
__device__ inline void share_x(const wide_args &a, const wide_work<T::share> &w, uint32_t to, uint32_t full, int token,
                               int column) {
  constexpr int box_bytes = LPG_WIDE_BOX_TOKENS * LPG_WIDE_STAGE_K * 2;
  arrive_and_expect(full, T::x_stage_bytes); /* from all of them */
  for (int box = w.block; box < T::Tokens / LPG_WIDE_BOX_TOKENS; box += T::share) {
    copy_box_to_blocks(to + box * box_bytes, &a.x_map, column, token + box * LPG_WIDE_BOX_TOKENS, full,
                       (uint16_t)((1 << T::share) - 1));
  }
}

template <class T>
__device__ inline void load_items(const wide_args &a, const wide_work<T::share> &w, barriers_of barriers,
                                  uint8_t *memory, int warp, int lane) {
  constexpr int row_tiles = T::rows / LPG_TILE_ROWS, w_stages = T::w_steps / T::x_steps; /* stages of one of weights */
  static_assert(LPG_WIDE_COPY_WARPS * T::x_steps == steps, "a warp has a stage of a block");
  const lpg_wide_plan &p = a.plan;
  const wide_parts<T> parts(a, w);
  const int blocks = parts.blocks();
  const x_matrix<2> from(a.x, a.ldx, a.m, a.k);
  const bool aligned = from.aligned();
  ring_place full(barriers.full(0), p.x_stages, 16), x(barriers.base + p.x_ring, p.x_stages, T::x_stage_bytes);
  ring_place codes(barriers.base + p.w_ring, p.w_stages, T::w_stage_bytes);
  const uint32_t line_bytes = row_tiles * a.stage_groups * LPG_WIDE_LINES_BYTES;
  ring_place slots(barriers.base + p.scales, p.slots, T::lines ? line_bytes : T::slot().bytes);
  uint32_t parity = full.advance(warp) & 1 ^ 1; /* fresh stages are empty */
  stage_on_its_way before;
  x.advance(warp);
  codes.advance(warp / w_stages);
  if (T::lines) slots.advance(warp);
  for (int item = w.first_item; item < w.items; item += w.stride) {
    const int token = w.token_item(item) * T::Tokens, row_tile = w.row_item(item) * row_tiles;
    for (int i = 0; i < blocks; i++) {
      const int block = parts.block(i), vector = block * T::Bits + warp / w_stages * T::w_vectors;
      if (!__all_sync(~0u, barrier_is_over(full.at + 8, parity))) before.announce<0>();
      wait_barrier(full.at + 8, parity);
      if (warp % w_stages == 0) {
        load_weights<T>(a, codes.at + lane * 16,
                        a.codes + min(row_tile, a.row_tiles - 1) * a.row_bytes + (int64_t)vector * 512 + lane * 16,
                        row_tile, a.row_vectors - vector);
        codes.advance(LPG_WIDE_COPY_WARPS / w_stages);
      }
      if (T::lines) {
        const int group = a.line_groups > 1 ? block * a.block_groups + warp * a.block_groups / LPG_WIDE_COPY_WARPS : 0;
        copy_lines<T>(a, slots.at, row_tile, group, lane);
        slots.advance(LPG_WIDE_COPY_WARPS);
      } else if (warp == 0) {
        load_slot<T>(a, slots.at, row_tile, block, lane);
        slots.advance(1);
      }
      const int column = block * block_k + warp * LPG_WIDE_STAGE_K;
      if constexpr (T::shares) {
        if (lane == 0) share_x<T>(a, w, x.at, full.at, token, column);
        arrive_when_copied(full.at);
      } else {
        from.load<T::Tokens>(x.at, token, column, lane, aligned);
        commit_copies();
        before.announce<1>();
        before.full = full.at;
      }
      x.advance(LPG_WIDE_COPY_WARPS);
      parity ^= full.advance(LPG_WIDE_COPY_WARPS) & 1;
    }
    before.announce<0>();
    if (p.parts > 1) wait_for_parts();
  }
  if (warp > 0 || p.parts > 1) return;
  wait_barrier(full.at + 8, parity); /* a stage that nobody multiplies: those who do wait for one ahead */
  arrive(full.at);
  if (T::shares && lane == 0) arrive(full.at);
}

}  // namespace
}  // namespace lpg
