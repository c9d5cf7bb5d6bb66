/* The warps of a wide kernel that copy. A stage is 64 or 128 columns: X of all rows of X of the work tile, and the
 * weights whose tiles begin there, each loaded by one or a few copies of TMA, which one lane asks for; in the form
 * LINES with the lines of its columns. Each warp, or two with a half of the work each, brings the same stage of every k
 * block. */
#pragma once

#include "../epilogue/split_k.cuh"
#include "../operand/x_rows.cuh"
#include "../prim/pdl.cuh"
#include "gemm_slots.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Where the next stage of a producer warp lies. */
template <class T>
struct stage_place {
  static constexpr int w_stages = T::w_steps / T::x_steps; /* stages of X of one of weights */
  ring_place full, x, codes;
  uint32_t parity; /* of the phase in which those before have read it */
  bool has_codes;  /* weights begin here */

  __device__ stage_place(const lpg_gemm_plan &p, barriers_of barriers, int stage)
      : full(barriers.full(0), p.x_stages, 16),
        x(barriers.base + p.x_ring, p.x_stages, T::x_stage_bytes),
        codes(barriers.base + p.w_ring, p.w_stages, T::w_stage_bytes),
        has_codes(stage % w_stages == 0) {
    parity = full.advance(stage) ^ 1; /* fresh stages are empty */
    x.advance(stage);
    codes.advance(stage / w_stages);
  }

  __device__ void advance() {
    x.advance(T::block_stages);
    codes.advance(T::block_stages / w_stages);
    parity ^= full.advance(T::block_stages);
  }
};

/* Brings X of a stage, or, where blocks share it, a block's part of it to all of them. */
template <class T>
__device__ inline void load_x_box(const gemm_args &a, const gemm_work &w, uint32_t to, uint32_t full, int x_row,
                                  int column) {
#pragma unroll
  for (int box = 0; box < T::stage_k / LPG_GEMM_BOX_K * T::x_boxes; box++) {
    if (T::shares && box % w.multicast != w.block) continue;
    const int in_column = box / T::x_boxes, in_token = box % T::x_boxes * T::box_tokens;
    const int at_column = column + in_column * LPG_GEMM_BOX_K, at_token = x_row + in_token;
    const uint32_t at = to + in_column * T::x_column_bytes + in_token * LPG_GEMM_BOX_K * 2;
    if (T::shares && w.multicast > 1) {
      copy_box_to_blocks(at, &a.x_map, at_column, at_token, full, (uint16_t)((1 << w.multicast) - 1));
    } else {
      copy_box(at, &a.x_map, at_column, at_token, full);
    }
  }
}

struct no_slots {}; /* lines need no more than the place where they go */

/* A producer warp: what it brings of every k block, and where the next goes. */
template <class T>
struct producer_warp {
  static constexpr int w_stages = stage_place<T>::w_stages;
  static_assert(T::block_stages * T::copiers == LPG_GEMM_PRODUCER_WARPS, "one or two warps have a stage of a block");
  const int lane, stage, vector; /* vector: of a block's, the stage's first */
  const bool loads_weights, loads_x, loads_slots;
  const x_matrix<2> from;
  stage_place<T> place;
  ring_place slots;
  std::conditional_t<T::lines, no_slots, slot_copier<T>> slot;
  int early; /* blocks whose weights were asked for at the start */

  __device__ producer_warp(const gemm_args &a, barriers_of barriers, int warp, int lane)
      : lane(lane),
        stage(warp % T::block_stages),
        vector(stage / w_stages * T::w_vectors),
        loads_weights(warp / T::block_stages == 0),
        loads_x(warp / T::block_stages == T::copiers - 1),
        loads_slots(T::slots && (T::lines ? loads_weights : warp == 0)),
        from(a.x, a.ldx, a.m, a.k),
        place(a.plan, barriers, stage),
        slots(barriers.base + a.plan.scales, a.plan.slots,
              T::lines ? row_tiles_of<T> * a.stage_groups * LPG_GEMM_LINE_BYTES : T::slot().bytes),
        early(0) {
    place.has_codes &= loads_weights;
    if (T::lines) slots.advance(stage);
  }

  /* Weights of the ring's first turn: they are final, so they do not wait for the kernel before. */
  __device__ void begin_early(const gemm_args &a, const gemm_work &w, const gemm_parts<T> &parts) {
    if (w.first_tile >= w.tiles) return;
    const int most = min(parts.blocks(), LPG_GEMM_EARLY_BLOCKS);
    for (stage_place<T> first = place; early < most && early * T::block_stages + stage < a.plan.x_stages; early++) {
      if (first.has_codes && is_elected()) {
        expect_bytes(first.full.at, T::w_stage_bytes);
        copy_box(first.codes.at, &a.codes_map, 0, parts.block(early) * T::Bits + vector,
                 w.n_tile(w.first_tile) * row_tiles_of<T>, first.full.at);
      }
      first.advance();
    }
  }

  /* first: of a team's blocks. */
  __device__ void load_slot(const gemm_args &a, int row_tile, int block, bool first) {
    if constexpr (T::lines) {
      const int group = a.line_groups > 1 ? block * a.block_groups + stage * a.block_groups / T::block_stages : 0;
      copy_lines<T>(a, slots.at, row_tile, group, lane);
      slots.advance(T::block_stages);
    } else {
      slot.copy(a, slots.at, block, first, lane);
      slots.advance();
    }
  }
};

/* Brings the stages of a work tile. */
template <class T, class Work>
__device__ inline void load_tile(const gemm_args &a, const Work &w, int tile,
                                 const gemm_parts<typename T::whole> &parts, producer_warp<typename T::whole> &own) {
  constexpr int x_bytes = T::x_boxes * T::box_tokens * T::stage_k * 2;
  const int x_row = w.m_tile(tile) * T::TileM, row_tile = w.n_tile(tile) * row_tiles_of<T>, lane = own.lane;
  const int blocks = parts.blocks();
  const bool x_comes = own.loads_x && a.x_has_map;
  if constexpr (!T::lines) {
    if (own.loads_slots && blocks > 0) own.slot.set_rows(a, row_tile, lane);
  }
  for (int i = 0; i < blocks; i++, own.early--, own.place.advance()) {
    const int block = parts.block(i), column = block * block_k + own.stage * T::stage_k;
    const uint32_t full = own.place.full.at, x = own.place.x.at;
    wait_barrier(barriers_of::empty_of(full), own.place.parity);
    if (is_elected()) {
      const bool codes = own.place.has_codes && own.early <= 0;
      arrive_and_expect(full, (codes ? T::w_stage_bytes : 0) + (x_comes ? x_bytes : 0));
      if (codes) copy_box(own.place.codes.at, &a.codes_map, 0, block * T::Bits + own.vector, row_tile, full);
      if (x_comes) load_x_box<T>(a, w, x, full, x_row, column);
    }
    if (own.loads_slots) own.load_slot(a, row_tile, block, i < T::teams);
    if (!own.loads_x || x_comes) {
      arrive_when_copied(full);
    } else {
      for (int box = 0; box < T::stage_k / LPG_GEMM_BOX_K; box++) {
        own.from.template load<T::TileM>(x + box * T::x_column_bytes, x_row, column + box * LPG_GEMM_BOX_K, lane,
                                         false);
      }
      wait_all_copies();
      fence_for_tensor_cores();
      arrive(full);
    }
  }
  if (!is_half<T> && a.plan.at_once > 1) {
    wait_for_parts();
    fence_for_tensor_cores(); /* sums have lain where copies will come */
  }
}

template <class T>
__device__ inline void load_tiles(const gemm_args &a, const gemm_work &w, barriers_of barriers, int warp, int lane) {
  const gemm_parts<T> parts(a, w);
  producer_warp<T> own(a, barriers, warp, lane);
  own.begin_early(a, w, parts);
  pdl_wait();
  for (int tile = w.first_tile; tile < w.tiles; tile += w.stride) load_tile<T>(a, w, tile, parts, own);
  if constexpr (lpg_gemm_has_halves(T::TileM)) {
    const halves_of<gemm_work> halves(w);
    if (w.first_tile < halves.tiles) load_tile<gemm_half_traits<T>>(a, halves, w.first_tile, parts, own);
  }
  if (own.stage > 0 || a.plan.at_once > 1) return;
  /* a stage that nobody multiplies: those who do wait for one ahead */
  wait_barrier(barriers_of::empty_of(own.place.full.at), own.place.parity);
  arrive(own.place.full.at);
  if (lane == 0) arrive(own.place.full.at);
}

}  // namespace
}  // namespace lpg
