/* The warps of a wide kernel that copy. A stage is 64 or 128 columns: X of all tokens of the item, and the weights
 * whose tiles begin there, each brought by one or a few copies of the tensor memory accelerator, which one lane asks
 * for; in the form LINES with the lines of its columns. Each warp, or two with a half of the work each, brings the same
 * stage of every block of 256 columns. */
#pragma once

#include "../prim/follow.cuh"
#include "../tile_parts.cuh"
#include "../x_rows.cuh"
#include "wide_slots.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Where the next stage of a warp that copies lies. */
template <class T>
struct stage_place {
  static constexpr int w_stages = T::w_steps / T::x_steps; /* stages of X of one of weights */
  ring_place full, x, codes;
  uint32_t parity; /* of the phase in which those before have read it */
  bool has_codes;  /* weights begin here */

  __device__ stage_place(const lpg_wide_plan &p, barriers_of barriers, int stage)
      : full(barriers.full(0), p.x_stages, 16),
        x(barriers.base + p.x_ring, p.x_stages, T::x_stage_bytes),
        codes(barriers.base + p.w_ring, p.w_stages, T::w_stage_bytes),
        has_codes(stage % w_stages == 0) {
    parity = full.advance(stage) & 1 ^ 1; /* fresh stages are empty */
    x.advance(stage);
    codes.advance(stage / w_stages);
  }

  __device__ void advance() {
    x.advance(T::block_stages);
    codes.advance(T::block_stages / w_stages);
    parity ^= full.advance(T::block_stages) & 1;
  }
};

/* Brings X of a stage, or, where blocks share it, a block's part of it to all of them. */
template <class T>
__device__ inline void bring_x(const wide_args &a, const wide_work &w, uint32_t to, uint32_t full, int token,
                               int column) {
  constexpr int tokens = T::Tokens < LPG_WIDE_BOX_TOKENS ? T::Tokens : LPG_WIDE_BOX_TOKENS;
  constexpr int boxes = T::Tokens / tokens, box_bytes = tokens * LPG_WIDE_BOX_K * 2;
#pragma unroll
  for (int box = 0; box < T::stage_k / LPG_WIDE_BOX_K * boxes; box++) {
    if (T::shares && box % w.share != w.block) continue;
    const int at_column = column + box / boxes * LPG_WIDE_BOX_K, at_token = token + box % boxes * tokens;
    if (T::shares && w.share > 1) {
      copy_box_to_blocks(to + box * box_bytes, &a.x_map, at_column, at_token, full, (uint16_t)((1 << w.share) - 1));
    } else {
      copy_box(to + box * box_bytes, &a.x_map, at_column, at_token, full);
    }
  }
}

template <class T>
__device__ inline void load_items(const wide_args &a, const wide_work &w, barriers_of barriers, uint8_t *memory,
                                  int warp, int lane) {
  constexpr int row_tiles = T::rows / LPG_TILE_ROWS, w_stages = stage_place<T>::w_stages;
  static_assert(T::block_stages * T::copiers == LPG_WIDE_COPY_WARPS, "one or two warps have a stage of a block");
  const lpg_wide_plan &p = a.plan;
  const wide_parts<T> parts(a, w);
  const int blocks = parts.blocks(), stage = warp % T::block_stages, copier = warp / T::block_stages;
  const bool brings_weights = copier == 0, brings_x = copier == T::copiers - 1;
  const int vector = stage / w_stages * T::w_vectors; /* of a block's, the stage's first */
  stage_place<T> place(p, barriers, stage);
  place.has_codes &= brings_weights;
  /* Weights of the ring's first turn: they are final, so they do not wait for the kernel before. */
  int early = 0;
  if (w.first_item < w.items) {
    const int most = min(blocks, LPG_WIDE_EARLY_BLOCKS);
    for (stage_place<T> first = place; early < most && early * T::block_stages + stage < p.x_stages; early++) {
      if (lane == 0 && first.has_codes) {
        expect_bytes(first.full.at, T::w_stage_bytes);
        copy_box(first.codes.at, &a.codes_map, 0, parts.block(early) * T::Bits + vector,
                 w.row_item(w.first_item) * row_tiles, first.full.at);
      }
      first.advance();
    }
  }
  wait_for_previous();
  const x_matrix<2> from(a.x, a.ldx, a.m, a.k);
  const uint32_t line_bytes = row_tiles * a.stage_groups * LPG_WIDE_LINES_BYTES;
  ring_place slots(barriers.base + p.scales, p.slots, T::lines ? line_bytes : T::slot().bytes);
  if (T::lines) slots.advance(stage);
  const bool x_comes = brings_x && a.x_has_map;
  for (int item = w.first_item; item < w.items; item += w.stride) {
    const int token = w.token_item(item) * T::Tokens, row_tile = w.row_item(item) * row_tiles;
    for (int i = 0; i < blocks; i++) {
      const int block = parts.block(i), column = block * block_k + stage * T::stage_k;
      const uint32_t full = place.full.at;
      wait_barrier(barriers_of::empty_of(full), place.parity);
      if (lane == 0) {
        const bool codes = place.has_codes && early <= 0;
        arrive_and_expect(full, (codes ? T::w_stage_bytes : 0) + (x_comes ? T::x_stage_bytes : 0));
        if (codes) copy_box(place.codes.at, &a.codes_map, 0, block * T::Bits + vector, row_tile, full);
        if (x_comes) bring_x<T>(a, w, place.x.at, full, token, column);
      }
      early--;
      if (T::lines && brings_weights) {
        const int group = a.line_groups > 1 ? block * a.block_groups + stage * a.block_groups / T::block_stages : 0;
        copy_lines<T>(a, slots.at, row_tile, group, lane);
        slots.advance(T::block_stages);
      } else if (!T::lines && T::slots && warp == 0) {
        load_slot<T>(a, slots.at, row_tile, block, lane);
        slots.advance(1);
      }
      if (!brings_x || x_comes) {
        arrive_when_copied(full);
      } else {
        for (int box = 0; box < T::stage_k / LPG_WIDE_BOX_K; box++) {
          from.load<T::Tokens>(place.x.at + box * T::Tokens * LPG_WIDE_BOX_K * 2, token, column + box * LPG_WIDE_BOX_K,
                               lane, false);
        }
        wait_all_copies();
        fence_for_tensor_cores();
        arrive(full);
      }
      place.advance();
    }
    if (p.at_once > 1) {
      wait_for_parts();
      fence_for_tensor_cores(); /* sums have lain where copies will come */
    }
  }
  if (stage > 0 || p.at_once > 1) return;
  wait_barrier(barriers_of::empty_of(place.full.at),
               place.parity); /* a stage that nobody multiplies: those who do wait for one ahead */
  arrive(place.full.at);
  if (lane == 0) arrive(place.full.at);
}

}  // namespace
}  // namespace lpg
