/* gemm: the producer warps, which fill the rings of stages in shared memory.
 *
 * A stage holds 64 or 128 k of X for all rows of the work tile, and the packed tiles of W that begin in these k. TMA
 * copies both, asked for by one lane. Scales and zeros come by cp.async: as packed for each k block, prepared ones
 * for each stage. A producer warp, or two that split the work, fills the same stage of every k block. It waits for
 * the stage's empty mbarrier; the full mbarrier completes when all lanes have arrived and all bytes are there. */
#pragma once

#include "../epilogue/split_k_exchange.cuh"
#include "../operand/x_rows.cuh"
#include "../prim/pdl.cuh"
#include "gemm_scales_load.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Where a producer warp's next stage is in the rings. */
template <class T>
struct producer_place {
  static constexpr int w_stages = T::w_steps / T::x_steps; /* stages of X for one stage of weights */
  ring_place full, x, codes;
  uint32_t parity; /* of the empty mbarrier's phase to wait for */
  bool has_codes;  /* a stage of weights begins here */

  __device__ producer_place(const lpg_gemm_plan &p, barriers_of barriers, int stage)
      : full(barriers.full(0), p.x_stages, 16),
        x(barriers.base + p.x_ring, p.x_stages, T::x_stage_bytes),
        codes(barriers.base + p.w_ring, p.w_stages, T::w_stage_bytes),
        has_codes(stage % w_stages == 0) {
    parity = full.advance(stage) ^ 1; /* a fresh empty mbarrier counts as passed */
    x.advance(stage);
    codes.advance(stage / w_stages);
  }

  __device__ void advance() {
    x.advance(T::block_stages);
    codes.advance(T::block_stages / w_stages);
    parity ^= full.advance(T::block_stages);
  }
};

/* Loads X of a stage, of a half the first box of rows. With multicast the CTAs of the cluster take boxes in turn, and
 * each box goes to all of them. This
 * is safe: the empty mbarrier that was waited for counts the consumer warps of all these CTAs, and the bytes of each
 * box count on the full mbarrier of the CTA that gets it. */
template <class T>
__device__ inline void load_x_stage(const gemm_args &a, const gemm_work &w, uint32_t to, uint32_t full, int x_row,
                                    int first_k, bool is_half) {
#pragma unroll
  for (int box = 0; box < T::stage_k / LPG_GEMM_BOX_K * T::x_boxes; box++) {
    if (T::may_multicast && box % w.multicast != w.multicast_rank) continue;
    if (is_half && box % T::x_boxes > 0) continue;
    const int box_k = box / T::x_boxes, box_row = box % T::x_boxes * box_rows_of<T>(w);
    const int k = first_k + box_k * LPG_GEMM_BOX_K, row = x_row + box_row;
    const uint32_t at = to + box_k * T::x_k64_bytes + box_row * LPG_GEMM_BOX_K * 2;
    if (is_multicast<T>(a.plan)) {
      copy_box_to_blocks(at, &a.x_map, k, row, full, (uint16_t)((1 << w.multicast) - 1));
    } else {
      copy_box(at, &a.x_map, k, row, full);
    }
  }
}

/* Pieces of an image along N that a work tile has. */
template <class T>
__device__ inline int image_rows_of(const gemm_args &a, int row_tile) {
  const int left = a.image_rows - row_tile / (LPG_IMAGE_ROWS / LPG_TILE_ROWS);
  return max(0, min(left, T::tile_n / LPG_IMAGE_ROWS));
}

/* Loads a stage of an image. */
template <class T>
__device__ inline void copy_image(const gemm_args &a, uint32_t to, int first_k, int row_tile, uint32_t full) {
  const int first = row_tile / (LPG_IMAGE_ROWS / LPG_TILE_ROWS), rows = image_rows_of<T>(a, row_tile);
#pragma unroll
  for (int i = 0; i < T::stage_k / LPG_IMAGE_K * (T::tile_n / LPG_IMAGE_ROWS); i++) {
    const int row = i % (T::tile_n / LPG_IMAGE_ROWS), column = first_k / LPG_IMAGE_K + i / (T::tile_n / LPG_IMAGE_ROWS);
    if (row >= rows) continue;
    const int64_t piece = (int64_t)(first + row) * a.image_columns + column;
    copy_bulk(to + i * LPG_IMAGE_PIECE, a.image + piece * LPG_IMAGE_PIECE, LPG_IMAGE_PIECE, full);
  }
}

/* Loads a stage of weights: boxes of vectors from `vector` on, of the work tile's row tiles. What is read once goes
 * first from L2: steps of two models with 16 rows take 3 to 5 % less (bench/results/h200-gemm-warps.txt). */
template <class T>
__device__ inline void copy_codes(const gemm_args &a, uint32_t to, int vector, int row_tile, int expert,
                                  uint32_t full) {
  const uint64_t policy = l2_policy(lpg_reads_once(a.plan.n_tiles, a.plan.m_tiles, a.plan.whole + a.plan.streamed));
  if constexpr (T::takes_experts) {
    copy_box(to, &a.codes_map, 0, vector, row_tile, expert, full, policy);
  } else {
    copy_box(to, &a.codes_map, 0, vector, row_tile, full, policy);
  }
}

/* The k blocks of a turn, in the order of the ring. */
template <class T>
struct k_blocks {
  const gemm_parts<T> &parts;
  const gemm_turn turn;
  int count;

  __device__ k_blocks(const gemm_parts<T> &parts, const gemm_turn &turn)
      : parts(parts),
        turn(turn),
        count(turn.blocks == 0 ? parts.blocks()
              : parts.reads    ? turn.blocks
                               : 0) {}
  __device__ int at(int i) const { return turn.blocks == 0 ? parts.block(i) : turn.first + i; }
};

struct no_copier {}; /* prepared scales need no state but the place to write to */

/* A producer warp: which parts of each k block it loads, and where they go. */
template <class T>
struct producer_warp {
  static constexpr int w_stages = producer_place<T>::w_stages;
  static_assert(T::block_stages * T::stage_warps == LPG_GEMM_PRODUCER_WARPS,
                "one or two warps have a stage of a block");
  const int lane, stage, vector; /* vector: 512-byte vector of the k block at which the stage's weights begin */
  const bool loads_weights, loads_x, loads_scales;
  const x_matrix<2> from;
  producer_place<T> place;
  ring_place scales;
  std::conditional_t<T::prepared, no_copier, scales_copier<T>> copier;
  int early; /* k blocks whose weights and scales were asked for before pdl_wait() */

  __device__ producer_warp(const gemm_args &a, barriers_of barriers, int warp, int lane)
      : lane(lane),
        stage(warp % T::block_stages),
        vector(stage / w_stages * T::w_vectors),
        loads_weights(warp / T::block_stages == 0),
        loads_x(warp / T::block_stages == T::stage_warps - 1),
        loads_scales(T::scales_weights && (T::prepared ? loads_weights : warp == 0)),
        from(a.x, a.ldx, a.m, a.k),
        place(a.plan, barriers, stage),
        scales(barriers.base + a.plan.scales, a.plan.slots,
               T::prepared ? row_tiles_of<T> * a.stage_groups * LPG_GEMM_PREPARED_BYTES : T::scales_layout().bytes),
        early(0) {
    place.has_codes &= loads_weights;
    if (T::prepared) scales.advance(stage);
  }

  /* Loads weights and scales for the first turn of the ring while the kernel before may still run (PDL): no kernel
   * writes weights. The full mbarrier expects the bytes from here on; load_tile() arrives there later. */
  __device__ void load_early(const gemm_args &a, int row_tile, const k_blocks<T> &blocks) {
    const int most = min(blocks.count, LPG_GEMM_EARLY_BLOCKS);
    ring_place slot = scales; /* more of them than early blocks */
    if constexpr (!T::prepared) {
      if (loads_scales) copier.set_rows(a, row_tile, 0, lane);
    }
    for (producer_place<T> first = place; early < most && early * T::block_stages + stage < a.plan.x_stages; early++) {
      if (first.has_codes && is_elected()) {
        expect_bytes(first.full.at, T::w_stage_bytes);
        copy_codes<T>(a, first.codes.at, blocks.at(early) * T::Bits + vector, row_tile, 0, first.full.at);
      }
      if constexpr (!T::prepared) {
        if (loads_scales) copier.copy(a, slot.at, 0, blocks.at(early), early < T::teams, lane);
        slot.advance();
      }
      first.advance();
    }
  }

  /* Loads the scales of a k block, or of a stage if prepared, unless that was done early. first: this is a team's first
   * block of the work tile. */
  __device__ void load_scales(const gemm_args &a, int row_tile, int expert, int block, bool first) {
    if constexpr (T::prepared) {
      const int group = a.line_groups > 1 ? block * a.block_groups + stage * a.block_groups / T::block_stages : 0;
      copy_prepared_scales<T>(a, scales.at, row_tile, group, lane);
      scales.advance(T::block_stages);
    } else {
      if (early <= 0) copier.copy(a, scales.at, expert, block, first, lane);
      scales.advance();
    }
  }
};

/* What a producer warp must know of a work tile: its first row of X and row tile of W, its expert, and whether it is a
 * half. */
struct loaded_tile {
  int x_row, row_tile, expert;
  bool is_half;
};

template <class T>
__device__ inline loaded_tile find_loaded(const gemm_args &a, const work_of<T> &w, int tile, uint8_t *memory) {
  int expert;
  const tile_place at = find_place<T>(a, w, tile, memory, expert);
  const auto same = [](int x) { return T::takes_experts ? agreed(x) : x; };
  return {same(at.m), same(at.n) / LPG_TILE_ROWS, same(expert), w.is_half(tile)};
}

/* What a producer warp loads, where the compiler is to know it: code that runs for the first time is slow to come. */
enum class load_kind { all, weights, x };

/* Fills the stages of a work tile. */
template <class T, load_kind Kind>
__device__ inline void load_tile(const gemm_args &a, const gemm_work &w, const loaded_tile &tile, const k_blocks<T> &k,
                                 producer_warp<T> &own) {
  const int x_bytes = (tile.is_half ? 1 : T::x_boxes) * box_rows_of<T>(w) * T::stage_k * 2;
  const int x_row = tile.x_row, row_tile = tile.row_tile, expert = tile.expert, lane = own.lane;
  const int blocks = k.count;
  const int w_bytes =
      T::image ? image_rows_of<T>(a, row_tile) * (T::stage_k / LPG_IMAGE_K) * LPG_IMAGE_PIECE : T::w_stage_bytes;
  constexpr bool loads_x = Kind != load_kind::weights, loads_weights = Kind != load_kind::x;
  const bool x_by_tma = loads_x && a.x_has_map, loads_scales = loads_weights && own.loads_scales;
  if constexpr (!T::prepared) {
    if (loads_scales && blocks > 0) own.copier.set_rows(a, row_tile, expert, lane);
  }
#pragma unroll 1
  for (int i = 0; i < blocks; i++, own.early--, own.place.advance()) {
    const int block = k.at(i), first_k = block * block_k + own.stage * T::stage_k;
    const uint32_t full = own.place.full.at, x = own.place.x.at;
    wait_barrier(barriers_of::empty_of(full), own.place.parity);
    const bool there = block < a.plan.blocks - 1 || own.stage * T::x_steps < last_steps<T>(a); /* else beyond K */
    if (is_elected()) {
      const bool codes = loads_weights && own.place.has_codes && own.early <= 0 && there;
      const bool tma = x_by_tma && there;
      arrive_and_expect(full, (codes ? w_bytes : 0) + (tma ? x_bytes : 0));
      if constexpr (T::image) {
        if (codes) copy_image<T>(a, own.place.codes.at, first_k, row_tile, full);
      } else if (codes) {
        copy_codes<T>(a, own.place.codes.at, block * T::Bits + own.vector, row_tile, expert, full);
      }
      if (tma) load_x_stage<T>(a, w, x, full, x_row, first_k, tile.is_half);
    }
    if (loads_scales) own.load_scales(a, row_tile, expert, block, i < T::teams);
    if (!loads_x || x_by_tma) {
      arrive_when_copied(full);
    } else {
      for (int box = 0; box < T::stage_k / LPG_GEMM_BOX_K; box++) {
        own.from.template load<T::TileM>(x + box * T::x_k64_bytes, x_row, first_k + box * LPG_GEMM_BOX_K, lane, false);
      }
      wait_all_copies();
      fence_for_tensor_cores();
      arrive(full);
    }
  }
  if (a.plan.at_once > 1) {
    if (a.plan.exchanges) {
      wait_for_exchange(a, T::threads);
    } else {
      wait_for_parts();
    }
    fence_for_tensor_cores(); /* partial sums may have lain where TMA writes next */
  }
}

/* Fills the stages of all the CTA's work tiles. */
template <class T, load_kind Kind>
__device__ inline void load_turns(const gemm_args &a, const work_of<T> &w, const gemm_parts<T> &parts,
                                  producer_warp<T> &own, uint8_t *memory) {
  const int tiles = tiles_of<T>(a, w, memory);
  /* A warp that loads nothing but weights and scales as they are packed need not wait for the kernel before. */
  constexpr bool loads_x = Kind != load_kind::weights, loads_weights = Kind != load_kind::x;
  const bool waits = !has_experts<T>(a) && (T::prepared || T::image || loads_x);
  for (int number = 0;; number++) {
    const gemm_turn turn = turn_at<T>(a, w, tiles, number);
    loaded_tile at = {0, 0, 0, false};
    if (turn.tile >= 0) at = find_loaded<T>(a, w, turn.tile, memory); /* before the wait: all it takes is time */
    if (number == 0) {
      if (waits && !T::image && turn.tile >= 0 && loads_weights)
        own.load_early(a, at.row_tile, k_blocks<T>(parts, turn));
      if (waits) pdl_wait();
      __syncwarp();
      if (is_multicast<T>(a.plan) && loads_x) cluster_wait(); /* the other CTAs have started */
    }
    if (turn.tile < 0) break;
    load_tile<T, Kind>(a, w, at, k_blocks<T>(parts, turn), own);
  }
  __syncwarp();
  if (is_multicast<T>(a.plan) && !loads_x) cluster_wait();
}

template <class T>
__device__ inline void load_tiles(const gemm_args &a, const work_of<T> &w, barriers_of barriers, uint8_t *memory,
                                  int warp, int lane) {
  const gemm_parts<T> parts(a, w);
  producer_warp<T> own(a, barriers, warp, lane);
  if (own.loads_x && a.x_has_map && is_elected()) prefetch_map(&a.x_map);
  if constexpr (T::stage_warps == 1) {
    load_turns<T, load_kind::all>(a, w, parts, own, memory);
  } else if (own.loads_x) {
    load_turns<T, load_kind::x>(a, w, parts, own, memory);
  } else {
    load_turns<T, load_kind::weights>(a, w, parts, own, memory);
  }
  if (own.stage > 0 || a.plan.at_once > 1) return;
  /* One more stage, empty: the consumers wait for a stage ahead, past the last work tile too. */
  wait_barrier(barriers_of::empty_of(own.place.full.at), own.place.parity);
  arrive(own.place.full.at);
  if (lane == 0) arrive(own.place.full.at);
  if (!is_multicast<T>(a.plan)) return;
  /* Waits for the last arrivals of both CTAs' warps at each stage: then no CTA is arrived at any more. */
  ring_place full = own.place.full;
  uint32_t parity = own.place.parity;
  for (int i = 1; i < a.plan.x_stages; i++) {
    parity ^= full.advance();
    wait_barrier(barriers_of::empty_of(full.at), parity);
  }
}

}  // namespace
}  // namespace lpg
