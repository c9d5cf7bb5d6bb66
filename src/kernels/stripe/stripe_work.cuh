/* stripe: arguments, template parameters, and where a CTA is in its stripe. */
#pragma once

#include "../epilogue/store.cuh"
#include "../operand/dequant.cuh"
#include "../operand/scales.cuh"
#include "../operand/x_rows.cuh"
#include "stripe_plan.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- arguments ---- */

/* How a section's values lie in a stage, beside what scale_section says of the packed ones. */
struct stripe_section {
  int groups;     /* scale groups of a unit, at least one */
  int units_each; /* units that share a group; 0: all of them */
  int bytes;      /* of these groups of one row tile, as packed: from unit to unit, too */
  int pitch;      /* from row tile to row tile in shared memory */
  int offset;     /* in the warp's scales */
};

struct stripe_args {
  lpg_stripe_plan plan;
  dequantiser_args dequantiser;
  scales_args scale_data;
  stripe_section section[scale_roles];
  int32_t scale_pieces;      /* 16 or 8 bytes each, of a warp and unit, all sections */
  int32_t quick, quick_bf16; /* scales of 16 bits, and no zeros or integer ones as bytes, which are codes */
  const uint8_t *codes;
  int64_t row_bytes;   /* of a row tile's codes */
  int32_t row_vectors; /* the same in vectors of 512 bytes */
  int32_t row_tiles, n, m, k;
  const int8_t *exponents; /* of rows' largest scales, for scaled weights */
  int32_t scale_exponent;  /* which is brought near 2^this */
  int64_t ldx;
  const void *x;
  float *partials;  /* two of a CTA */
  float *sums_of_x; /* of each scale group: [unit][group of it][row of X] */
  epilogue_args epilogue;
};

/* X: the type that is multiplied; Warps: of a CTA; TileM: rows of X of a work tile; ScaleGroups: scale groups of a
 * unit: 1, or those of groups of 32 or 16; Zeros: centers of groups differ, or something is left of zeros, or there are
 * several scale groups (which scaled weights do not need); Scaled: weights are scaled before they are multiplied, so
 * that a warp has one set of sums. */
template <class X_, template <class, int> class Dequantiser_, int Bits_, int Warps_, int TileM_, int ScaleGroups_,
          bool Zeros_, bool Scaled_ = false>
struct stripe_traits {
  using X = X_;
  using Dequantiser = Dequantiser_<X_, Bits_>;
  static constexpr int Bits = Bits_, Warps = Warps_, TileM = TileM_, ScaleGroups = ScaleGroups_;
  static constexpr bool Zeros = Zeros_, Scaled = Scaled_, integer_sums = false;
  /* Scaled weights: which scales, and whether rows' powers of two are on them. */
  static constexpr bool is_float = !Dequantiser::centered && Dequantiser::table_bytes == 0;
  static constexpr lpg_stripe_multipliers multipliers = lpg_stripe_multipliers_of(is_float, ScaleGroups);
  static constexpr bool has_powers = Scaled && (X::exponent == 5 || multipliers == LPG_STRIPE_BY_E8M0);
  static constexpr bool may_shift = Zeros && Dequantiser::centered && !Scaled; /* something may be left of zeros */
  static constexpr int at_once = TileM > 32 ? 2 : 3;                           /* CTAs of an SM, as registers allow */
  static constexpr int threads = 32 * Warps, row_tiles = LPG_STRIPE_ROW_TILES, x_tiles = TileM / 8;
  static constexpr int rows = row_tiles * LPG_TILE_ROWS; /* of W, of a warp */
  static constexpr int tile_n = Warps * rows;
  static constexpr int unit_k = lpg_stripe_k(Bits, Dequantiser::centered);
  static constexpr int unit_steps = unit_k / LPG_STEP_K;       /* MMA steps of a unit */
  static constexpr int group_steps = unit_steps / ScaleGroups; /* of a scale group */
  static constexpr int words = unit_k * Bits / 64;             /* of a lane, in a row tile and unit */
  static constexpr int piece_words = Bits % 2 ? 2 : 4;         /* that are copied at once */
  static constexpr int pieces = words / piece_words, piece_bytes = piece_words * 4, row_pieces = pieces * LPG_LANES;
  static constexpr int unit_words = lpg_unit_words(Bits);              /* of a dequantiser's unit */
  static constexpr int codes_of_unit_words = lpg_unit_codes(Bits) / 4; /* its MMA steps */
  static constexpr int panel_bytes = TileM * 128;                      /* X comes in panels of 64 k */
  static constexpr int panels = unit_k / 64;
  /* Of scales and zeros, of a lane: one group has 32 at most, as have weights without zeros in a unit of 64 k, and
   * scaled ones. */
  static constexpr int scale_pieces = Scaled || ScaleGroups == 1 || (unit_k == 64 && !Dequantiser::centered) ? 1 : 2;

  /* The MMA step of a unit that is the first to take codes of a piece. */
  __device__ static constexpr int first_step(int piece) {
    const int word = piece * piece_words / 2; /* of row g */
    return word / unit_words * codes_of_unit_words + word % unit_words * (16 / Bits) / 2;
  }
};

/* ---- who has what ---- */

/* A place in a stripe: a unit of a work tile. */
struct stripe_cursor {
  int tile, unit;

  __device__ stripe_cursor(int at, int units) : tile((unsigned)at / (unsigned)units), unit(at - tile * units) {}
  __device__ void next(int units) {
    if (++unit == units) {
      unit = 0;
      tile++;
    }
  }
};

/* Work tiles with the same rows of W stand together. */
__device__ inline int stripe_n_tile(const lpg_stripe_plan &p, int tile) { return (unsigned)tile / (unsigned)p.m_tiles; }

__device__ inline tile_place stripe_place(const stripe_args &a, int tile, int warp, int rows) {
  const int n_tile = stripe_n_tile(a.plan, tile), m_tile = tile - n_tile * a.plan.m_tiles;
  return {m_tile * a.plan.tile_m, a.m, (n_tile * a.plan.warps + warp) * rows, 0};
}

/* A warp's sums, of each row tile and 8 rows of X the accumulators of mma. */
template <class T>
struct stripe_sums {
  float sum[T::row_tiles][T::x_tiles * 4];

  __device__ void clear() { clear_sums(sum); }
};

}  // namespace
}  // namespace lpg
