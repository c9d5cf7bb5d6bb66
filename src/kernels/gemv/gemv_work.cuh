/* gemv: arguments, template parameters, and which warp takes which part of the work.
 *
 * A CTA has a range of super tiles and a range of k blocks. It goes through them in rounds of super tiles, and in
 * each round through phases of k blocks, as shared memory has room for partial sums and X. A turn is one phase of
 * one round. In a turn the pairs (super tile, k block) are dealt evenly to the warps, a contiguous range each. */
#pragma once

#include "../epilogue/epilogue.cuh"
#include "../operand/dequant.cuh"
#include "../operand/scales.cuh"
#include "../plan/scheduler.cuh"
#include "gemv_plan.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- arguments ---- */

struct gemv_args {
  lpg_gemv_plan plan;
  dequantiser_args dequantiser;
  scales_args scale_data;
  const uint8_t *codes;
  int64_t row_bytes;   /* of a row tile's codes */
  int32_t row_vectors; /* the same in vectors of 512 bytes */
  int32_t row_tiles, n;
  int64_t k, ldx;
  const void *x;
  lpgemm_dtype_t x_type; /* the type of X in memory; 8-bit X is widened on the way to shared memory */
  epilogue_args epilogue;
  const int32_t *order; /* of the columns, if the kernel gathers those of X; else NULL */
  int32_t x_k;          /* then: columns of X */
};

/* What the template parameters mean together. X: the type that is multiplied; TileM: 8 or 16 rows of X; ScaleSteps:
 * MMA steps (16 k) of a scale group, 8 if groups are larger; Shifted: sums of X are needed, because zeros differ or
 * are not integers; Codes: the type of the codes, if scales of two levels are decoded by gemv_levels.cuh; Half: a CTA
 * has half the warps, and an SM two CTAs. */
template <class X_, template <class, int> class Dequantiser_, int Bits_, int TileM_, int ScaleSteps_, bool Shifted_,
          lpgemm_dtype_t Codes_ = 0, bool Half_ = false>
struct gemv_traits {
  using X = X_;
  using Dequantiser = Dequantiser_<X_, Bits_>;
  static constexpr int Bits = Bits_, TileM = TileM_, ScaleSteps = ScaleSteps_;
  static constexpr bool Shifted = Shifted_, Half = Half_;
  static constexpr lpgemm_dtype_t Codes = Codes_;
  static constexpr bool gathers = lpg_gemv_may_gather(TileM);
  static constexpr int shifted = lpg_gemv_shifted(Bits, Shifted, Codes != 0);
  static constexpr int row_tiles = lpg_gemv_row_tiles(Bits, TileM, ScaleSteps, shifted);
  static constexpr int tile_n = row_tiles * LPG_TILE_ROWS; /* rows of a super tile */
  static constexpr int x_tiles = TileM / 8, scale_groups = steps / ScaleSteps;
  static constexpr int chunk = lpg_gemv_chunk(row_tiles, ScaleSteps); /* k blocks whose scales are converted at once */
  static constexpr int pairs = row_tiles * scale_groups * 8;          /* of scales, in a k block */
  static constexpr int warps = lpg_gemv_warps(Bits, TileM, shifted) / (Half ? 2 : 1), threads = 32 * warps;
  static constexpr int block_bytes = 512 * Bits; /* of a row tile */
  static constexpr int tile_vectors = lpg_tile_bytes(Bits) / 512;
  static constexpr int words = 4 * Bits; /* of a lane, in a row tile and k block */
  static constexpr int unit_words = lpg_unit_words(Bits), unit_steps = lpg_unit_codes(Bits) / 4;

  /* The MMA step of a k block after which the lane's vector v of 4 words is used up. */
  __device__ static constexpr int last_step(int v) { return ((4 * v + 3) / (2 * unit_words) + 1) * unit_steps - 1; }
};

/* ---- who takes what ---- */

/* a / b for 0 <= a < 2^20, b > 0. Exact: the approximate quotient is closer to (a + 1/2) / b than that is to an
 * integer. */
__device__ inline int quotient(int a, int b) { return (int)__fdividef((float)a + 0.5f, (float)b); }

/* The part that the index belongs to. */
__device__ inline int part_of(const lpg_partition &s, int thing) {
  const int large = s.more * (s.each + 1);
  return thing < large ? quotient(thing, s.each + 1) : s.more + quotient(thing - large, s.each);
}

/* How a CTA goes through its super tiles and k blocks. In every phase of a round a warp has the same super tiles, so
 * that its partial sums stay with it. */
struct work {
  int warps, warp, tiles, blocks;
  int most_tiles, most_blocks; /* of a round, of a phase */
  int phases, turns;

  __device__ work(const lpg_gemv_plan &p, int warps, int warp, int tiles, int blocks)
      : warps(warps),
        warp(warp),
        tiles(tiles),
        blocks(blocks),
        most_tiles(p.round_tiles),
        most_blocks(min(p.phase_blocks, blocks)) {
    phases = blocks <= most_blocks ? blocks > 0 : (unsigned)(blocks + most_blocks - 1) / (unsigned)most_blocks;
    turns = phases * (tiles <= most_tiles ? 1 : (unsigned)(tiles + most_tiles - 1) / (unsigned)most_tiles);
  }

  __device__ int round_tiles(int round) const { return min(tiles - round * most_tiles, most_tiles); }
  __device__ int phase_blocks(int phase) const { return min(blocks - phase * most_blocks, most_blocks); }
  /* The blocks of each warp in a turn. The last phase is dealt as if it were as long as the others. */
  __device__ lpg_partition warp_blocks(int round) const {
    const int units = round_tiles(round) * most_blocks;
    return {units / warps, units % warps};
  }
};

/* Where a warp is: in a run of k blocks of one super tile. */
struct cursor {
  int turn, first_block, phase_blocks; /* first_block: of the phase, counted from the CTA's first */
  int tile, block, run; /* tile: in the CTA; block: in the phase; run: blocks of the tile from there on */
  int left;             /* blocks of the turn after this run, as they were dealt */

  __device__ void start_turn(const work &w, int which) {
    turn = which;
    const int round = w.turns == w.phases ? 0 : (unsigned)turn / (unsigned)w.phases, phase = turn - round * w.phases;
    const lpg_partition warp_blocks = w.warp_blocks(round);
    const int first = first_of(warp_blocks, w.warp), tiles_before = quotient(first, w.most_blocks);
    first_block = phase * w.most_blocks;
    phase_blocks = w.phase_blocks(phase);
    tile = round * w.most_tiles + tiles_before;
    block = first - tiles_before * w.most_blocks;
    left = count_of(warp_blocks, w.warp);
    const int dealt = min(left, w.most_blocks - block);
    left -= dealt;
    run = min(dealt, phase_blocks - block);
    if (run <= 0) next_run(w);
  }

  /* To the next run of the turn; run is 0 at its end. */
  __device__ void next_run(const work &w) {
    const int dealt = min(left, w.most_blocks);
    tile++;
    block = 0;
    left -= dealt;
    run = min(dealt, phase_blocks);
  }

  /* The same, but at the end of a turn to the next one in which the warp has work. */
  __device__ void next_run_or_turn(const work &w) {
    next_run(w);
    while (run == 0 && turn + 1 < w.turns) start_turn(w, turn + 1);
  }
};

/* ---- sums ---- */

/* A warp's sums for a super tile: the accumulators of mma for each row tile and 8 rows of X. */
template <class T>
struct accumulators {
  float sum[T::row_tiles][T::x_tiles][4];

  __device__ void clear() {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int j = 0; j < T::x_tiles; j++) {
#pragma unroll
        for (int i = 0; i < 4; i++) sum[r][j][i] = 0.0f;
      }
    }
  }
};

}  // namespace
}  // namespace lpg
