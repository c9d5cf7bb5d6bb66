/* What the parts of the decode kernels have in common: their arguments, what their template parameters mean, and which
 * warp does which part of the work. */
#pragma once

#include "decode_plan.h"
#include "decoder.cuh"
#include "epilogue.cuh"
#include "numbers.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int warps = LPG_DECODE_WARPS, threads = 32 * warps;
constexpr int steps = block_k / LPG_STEP_K; /* of a block */

struct decode_args {
  lpg_decode_plan plan;
  decoder_args decoder;
  numbers_args numbers;
  const uint8_t *codes;
  int64_t row_bytes;    /* of the codes of a row tile */
  int32_t whole_blocks; /* blocks that lie within it */
  int32_t row_tiles, n, m;
  int64_t k, ldx;
  const uint16_t *x;
  epilogue_args epilogue;
};

/* What the template parameters say together. X: activation type; Columns: 8 or 16 rows of X; Granule: steps that share
 * a scale (8 when groups are larger). */
template <class X_, template <class, int> class Decoder_, int Bits_, int Columns_, int Granule_, bool Clusters_>
struct decode_traits {
  using X = X_;
  using Decoder = Decoder_<X_, Bits_>;
  static constexpr int Bits = Bits_, Columns = Columns_, Granule = Granule_;
  static constexpr bool Clusters = Clusters_; /* of blocks of threads, which share rows */
  static constexpr int row_tiles = lpg_decode_row_tiles(Bits, Columns, Granule);
  static constexpr int rows = row_tiles * LPG_TILE_ROWS; /* of a super tile */
  static constexpr int x_tiles = Columns / 8, granules = steps / Granule;
  static constexpr int block_bytes = 512 * Bits; /* of a row tile */
  static constexpr int stages = lpg_decode_stages(Bits, Columns, Clusters);
  static constexpr int words = 4 * Bits; /* of a lane, row tile and block */
  static constexpr int unit_words = lpg_unit_words(Bits), unit_steps = lpg_unit_codes(Bits) / 4;
};

/* ---- which work is whose ---- */

/* The first thing of a part. */
__device__ inline int first_of(const lpg_shares &s, int part) { return part * s.each + min(part, s.more); }
__device__ inline int count_of(const lpg_shares &s, int part) { return s.each + (part < s.more); }

/* The blocks of a round, dealt out to the warps. */
__device__ inline lpg_shares shares_of_warps(int units) { return {units / warps, units % warps}; }

/* The blocks of a warp, in the order in which they lie in memory: runs of blocks of one super tile. */
struct work {
  int warp, tiles, blocks, most_tiles; /* of the block of threads, and of a round */
  int round, rounds;
  int first_tile, round_tiles; /* of the round */
  int tile, block, run;        /* the current run: run blocks of the tile from this one on */
  int left;                    /* blocks of the round that follow the run */

  __device__ work(int warp, int tiles, int blocks, int most_tiles)
      : warp(warp), tiles(tiles), blocks(blocks), most_tiles(most_tiles), round(-1), run(0), left(0) {
    rounds = (unsigned)(tiles + most_tiles - 1) / (unsigned)most_tiles;
  }

  __device__ void start_round() {
    round++;
    first_tile = round * most_tiles;
    round_tiles = min(tiles - first_tile, most_tiles);
    const lpg_shares shares = shares_of_warps(round_tiles * blocks);
    const unsigned first = first_of(shares, warp), each = max(blocks, 1);
    tile = first_tile + first / each;
    block = first % each;
    left = count_of(shares, warp);
    take_run();
  }

  __device__ void take_run() {
    run = min(left, blocks - block);
    left -= run;
  }

  /* To the next run of the round; run is 0 at its end. */
  __device__ void next_run() {
    tile++;
    block = 0;
    take_run();
  }
};

/* ---- sums ---- */

/* A warp's sums for a super tile: for each row tile and 8 rows of X, D of the tensor cores. */
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
