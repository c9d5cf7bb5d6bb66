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
  int groups;    /* scale groups of a slab, at least one */
  int log_slabs; /* logarithm of the slabs that share a group; 31: all of them */
  int log_bytes; /* of the bytes of these groups of one row tile, as packed: from slab to slab, too */
  int small;     /* copied in pieces of 8 bytes, not 16 */
  int pitch;     /* from row tile to row tile in shared memory */
  int offset;    /* in the warp's scales */
};

struct stripe_args {
  lpg_stripe_plan plan;
  dequantiser_args dequantiser;
  scales_args scale_data;
  stripe_section section[scale_roles];
  int32_t scale_pieces;         /* 16 or 8 bytes each, of a warp and slab, all sections */
  int32_t quick, quick_bf16;    /* scales of 16 bits, and no zeros or integer ones as bytes, which are codes */
  int32_t regroups, group_mask; /* whether a row has several scale groups; slabs that share one, less 1 */
  const uint8_t *codes;
  int64_t row_bytes;   /* of a row tile's codes */
  int32_t row_vectors; /* the same in vectors of 512 bytes */
  int32_t row_tiles, n, m, k;
  int64_t ldx;
  const void *x;
  float *kept;      /* lpg_stripe_place() */
  float *sums_of_x; /* of each scale group: [slab][group of it][row of X] */
  epilogue_args epilogue;
};

/* X: the type that is multiplied; TileM: rows of X of a work tile; ScaleGroups: scale groups of a slab, 1 or 2; Zeros:
 * centers of groups differ, or something is left of zeros. */
template <class X_, template <class, int> class Dequantiser_, int Bits_, int TileM_, int ScaleGroups_, bool Zeros_>
struct stripe_traits {
  static_assert(Bits_ % 4 == 0, "a slab has whole vectors, and a unit of the dequantiser one word of a row");
  using X = X_;
  using Dequantiser = Dequantiser_<X_, Bits_>;
  static constexpr int Bits = Bits_, TileM = TileM_, ScaleGroups = ScaleGroups_;
  static constexpr bool Zeros = Zeros_;
  static constexpr int row_tiles = LPG_STRIPE_ROW_TILES, x_tiles = TileM / 8;
  static constexpr int own_tiles = x_tiles / LPG_STRIPE_TEAMS; /* tiles of 8 rows of X whose sums a team stores */
  static constexpr int steps = LPG_STRIPE_K / LPG_STEP_K, group_steps = steps / ScaleGroups; /* MMA steps of a slab */
  static constexpr int vectors = lpg_stripe_vectors(Bits);    /* of a row tile's codes of a slab */
  static constexpr int unit_steps = lpg_unit_codes(Bits) / 4; /* MMA steps of a dequantiser's unit */
};

/* ---- who has what ---- */

constexpr int stripe_unit_slabs = LPG_STRIPE_UNIT_K / LPG_STRIPE_K;

/* A place in a team's part of a stripe: a slab of a work tile. Registers are short: the unit is slab / 4. */
struct stripe_cursor {
  int tile, slab;

  __device__ stripe_cursor(int unit, int units, int team)
      : tile((unsigned)unit / (unsigned)units),
        slab((unit - tile * units) * stripe_unit_slabs + team * LPG_STRIPE_TEAM_SLABS) {}

  __device__ bool begins_tile() const { return slab < stripe_unit_slabs && slab % 2 == 0; }
  __device__ bool ends_tile(int units) const { return slab % 2 && slab >= (units - 1) * stripe_unit_slabs; }
  __device__ bool begins_unit() const { return slab % 2 == 0; }

  __device__ void next(int units) {
    slab += slab % 2 ? stripe_unit_slabs - LPG_STRIPE_TEAM_SLABS + 1 : 1;
    if (slab < units * stripe_unit_slabs) return;
    slab -= units * stripe_unit_slabs;
    tile++;
  }
};

/* The mbarriers of a stage: it has come; its team has read it. */
__device__ inline uint32_t stage_full(const lpg_stripe_plan &p, uint32_t barriers, int team, int stage) {
  return barriers + (team * p.stages + stage) * 16;
}
__device__ inline uint32_t stage_empty(const lpg_stripe_plan &p, uint32_t barriers, int team, int stage) {
  return stage_full(p, barriers, team, stage) + 8;
}

/* Work tiles with the same rows of W stand together. */
__device__ inline int stripe_n_tile(const lpg_stripe_plan &p, int tile) { return (unsigned)tile / (unsigned)p.m_tiles; }

/* Of a warp. */
__device__ inline tile_place stripe_place(const stripe_args &a, int tile, int own) {
  const int n_tile = stripe_n_tile(a.plan, tile), m_tile = tile - n_tile * a.plan.m_tiles;
  return {m_tile * a.plan.tile_m, a.m, (n_tile * LPG_STRIPE_TEAM + own) * LPG_STRIPE_ROWS, 0};
}

/* Sums of a warp, of each row tile and 8 rows of X the accumulators of mma. */
template <int RowTiles, int XTiles>
struct stripe_sums {
  float sum[RowTiles][XTiles * 4];
};

/* What store.cuh asks to know of the sums that are stored at once. */
template <int XTiles>
struct stored_sums {
  static constexpr bool integer_sums = false;
  static constexpr int row_tiles = LPG_STRIPE_STORED_ROWS / LPG_TILE_ROWS, TileM = XTiles * 8;
};

/* Stores 16 rows of X, from `first` of the sums on, by 32 rows of W from `place` on. memory: the warp's own. */
template <int XTiles, class Args>
__device__ inline void store_some(const Args &a, const stripe_sums<2, XTiles> &sums, int first, float *memory,
                                  const float *factors, const tile_place &place) {
  using stored = stored_sums<XTiles>;
  constexpr int rows = LPG_STRIPE_STORED_ROWS;
  put_sums<stored>(sums, memory, lpg_sums_stride(rows), 0, first);
  __syncwarp();
  store_sums<stored, rows, 32>(a, own_sums<rows>{memory}, LPG_PASS_ROWS, threadIdx.x % 32, factors, place);
  __syncwarp();
}

}  // namespace
}  // namespace lpg
