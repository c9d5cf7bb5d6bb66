/* What the parts of the wide kernels have in common: their arguments, what their template parameters mean, and which
 * cluster of blocks of threads does which items. */
#pragma once

#include "blocks.cuh"
#include "decoder.cuh"
#include "epilogue.cuh"
#include "numbers.cuh"
#include "prim/barrier.cuh"
#include "wide_plan.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct wide_args {
  lpg_wide_plan plan;
  decoder_args decoder;
  numbers_args numbers;
  const uint8_t *codes;
  const int8_t *exponents; /* of the rows; NULL: all 0 */
  int64_t row_bytes;       /* of the codes of a row tile */
  int32_t row_vectors;     /* of them, 512 bytes each */
  int32_t row_tiles, n, m, k;
  int64_t ldx;
  const uint16_t *x;
  epilogue_args epilogue;
};

/* What the template parameters say together. Tokens: rows of X of an item; Product: product.cuh; General: scales of any
 * kind and groups from 16 columns on, zeros that differ; else one scale of X's type a group of at least 128. */
template <class X_, template <class, int> class Decoder_, int Bits_, int Tokens_, template <class> class Product_,
          bool General_>
struct wide_traits {
  using X = X_;
  using Decoder = Decoder_<X_, Bits_>;
  using Product = Product_<wide_traits>;
  static constexpr int Bits = Bits_, Tokens = Tokens_;
  static constexpr bool General = General_;
  static constexpr int row_tiles = LPG_WIDE_ROW_TILES;
  static constexpr int threads = 32 * LPG_WIDE_WARPS + 128; /* four warps bring what the others multiply */
  static constexpr int Granule = lpg_wide_granule(General), granules = steps / Granule;
  static constexpr int chunk = lpg_wide_chunk(General), pairs = lpg_wide_pairs(General) / chunk; /* of a block */
  static constexpr int x_steps = LPG_WIDE_STAGE_K / LPG_STEP_K, x_stage_bytes = Tokens * LPG_WIDE_STAGE_K * 2;
  static constexpr int w_steps = lpg_wide_stage_steps(Bits);
  static constexpr int w_vectors = w_steps * Bits / 16; /* of 512 bytes, of a row tile and stage */
  static constexpr int w_stage_bytes = LPG_WIDE_ROWS / LPG_TILE_ROWS * w_vectors * 512;
  static constexpr int unit_words = lpg_unit_words(Bits), unit_steps = lpg_unit_codes(Bits) / 4;

  /* The step of a stage at which vector v of 4 words a lane is needed first. */
  __device__ static constexpr int first_step(int v) { return 4 * v / (2 * unit_words) * unit_steps; }
};

/* The items of a cluster, and the slice of a block of threads. */
struct wide_work {
  int items, first_item, stride; /* the cluster takes first_item, first_item + stride and so on */
  int rank;                      /* in the cluster: the slice */
  int first_block, blocks;       /* of the slice */
  int row_items, token_items;

  __device__ wide_work(const lpg_wide_plan &p, bool reads)
      : items(p.row_items * p.token_items), stride(p.groups), row_items(p.row_items), token_items(p.token_items) {
    rank = p.slices > 1 ? blockIdx.x % (unsigned)p.slices : 0;
    first_item = p.slices > 1 ? blockIdx.x / (unsigned)p.slices : blockIdx.x;
    first_block = first_of(p.slice, rank);
    blocks = reads ? count_of(p.slice, rank) : 0;
  }

  /* Where an item lies: bands of row tiles, in each all tokens, in each of these all the band's rows. */
  __device__ int band_rows(int band) const { return min(row_items - band * LPG_WIDE_BAND, (int)LPG_WIDE_BAND); }
  __device__ int band(int item) const { return (unsigned)item / (unsigned)(LPG_WIDE_BAND * token_items); }
  __device__ int row_item(int item) const {
    const int b = band(item), in_band = item - b * LPG_WIDE_BAND * token_items;
    return b * LPG_WIDE_BAND + (unsigned)in_band % (unsigned)band_rows(b);
  }
  __device__ int token_item(int item) const {
    const int b = band(item), in_band = item - b * LPG_WIDE_BAND * token_items;
    return (unsigned)in_band / (unsigned)band_rows(b);
  }
};

/* A ring of stages in shared memory, as those who fill it or those who read it go round. */
struct ring {
  uint32_t memory, full, empty; /* addresses; barriers are 8 bytes a stage */
  int stages, stage;
  uint32_t parity;

  __device__ ring(uint32_t memory, uint32_t barriers, int stages)
      : memory(memory),
        full(barriers),
        empty(barriers + 8 * LPG_WIDE_MOST_STAGES),
        stages(stages),
        stage(0),
        parity(0) {}

  __device__ void wait_full() const { wait_barrier(full + 8 * stage, parity); }
  __device__ void wait_empty() const { wait_barrier(empty + 8 * stage, parity ^ 1); }
  __device__ void advance() {
    if (++stage < stages) return;
    stage = 0;
    parity ^= 1;
  }
};

/* A warp that has read stage - 1 gives it back. */
__device__ inline void release_before(const ring &r, int lane) {
  if (lane == 0) arrive(r.empty + 8 * (r.stage > 0 ? r.stage - 1 : r.stages - 1));
}

/* Offsets of the barriers. */
constexpr int x_barriers = 0, w_barriers = 2 * 8 * LPG_WIDE_MOST_STAGES, sum_barriers = 2 * w_barriers;
static_assert(sum_barriers + 16 <= LPG_WIDE_BARRIER_BYTES, "too many barriers");

}  // namespace
}  // namespace lpg
