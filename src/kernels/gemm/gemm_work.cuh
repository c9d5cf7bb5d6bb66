/* What the parts of the wide kernels have in common: their arguments, what their template parameters mean, and which
 * cluster of CTAs does which work tiles. */
#pragma once

#include <type_traits>

#include "../epilogue/epilogue.cuh"
#include "../launch/tensor_map.h"
#include "../operand/dequant.cuh"
#include "../operand/scales.cuh"
#include "../plan/scheduler.cuh"
#include "../prim/barrier.cuh"
#include "gemm_plan.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct gemm_args {
  lpg_gemm_plan plan;
  dequantiser_args dequantiser;
  scales_args scale_data;
  const int8_t *exponents; /* of the rows; NULL: all 0 */
  const uint8_t *lines;    /* the form LINES: of each row tile and group, LPG_GEMM_LINE_BYTES; and the rows' factors */
  const float *line_factors;
  int32_t line_groups, block_groups, stage_groups; /* of a row, a k block, a stage of X */
  int32_t row_tiles, n, m, k;
  int64_t ldx;
  const uint16_t *x;
  int x_has_map; /* else threads load X */
  lpg_tensor_map x_map, codes_map;
  epilogue_args epilogue;
};

/* What the template parameters say together. Tokens: rows of X of a work tile; RowTiles: of a warp; Teams, each of
 * TeamWarps consumer warps; Form: how weights get their scales and zeros. */
template <class X_, template <class, int> class Dequantiser_, int Bits_, int TileM_, int RowTiles_, int Teams_,
          int TeamWarps_, lpg_gemm_scales Form_>
struct gemm_traits {
  using whole = gemm_traits;
  using X = X_;
  static constexpr bool lines = Form_ == LPG_GEMM_SCALES_PREPARED, integer_sums = false;
  static constexpr bool slots = Form_ != LPG_GEMM_SCALES_ROW; /* weights are scaled before they are multiplied */
  static constexpr bool near = Form_ == LPG_GEMM_SCALES_NEAR; /* as they are dequantised */
  /* What codes become: fp16 is enough for integers that are scaled in fp32. */
  using Codes = std::conditional_t<lines && Dequantiser_<X_, Bits_>::centered, f16_x, X_>;
  using Dequantiser = Dequantiser_<Codes, Bits_>;
  static constexpr int Bits = Bits_, TileM = TileM_;
  static constexpr lpg_gemm_scales Form = Form_;
  static constexpr int teams = Teams_, team_warps = TeamWarps_, warps = teams * team_warps;
  static constexpr int row_tiles = RowTiles_, tile_n = lpg_gemm_tile_n(row_tiles, team_warps);
  static constexpr int threads = 32 * (warps + LPG_GEMM_PRODUCER_WARPS);
  static constexpr bool shares = lpg_gemm_has_multicast(TileM_, RowTiles_, 2);  /* CTAs of a cluster may share X */
  static constexpr bool runs = lpg_gemm_has_runs(TileM_, RowTiles_);            /* a team may have several parts of K */
  static constexpr int copy_registers = 56, registers = warps == 8 ? 224 : 104; /* of who copies, of who multiplies */
  /* Steps whose products start together: more leave the warps alone for longer, but take registers. */
  static constexpr int many_words = Bits_ > 4 && Bits_ < 8; /* that a lane holds of a stage of weights */
  static constexpr int batch = TileM >= 128 ? 1 : warps == 8 ? 4 : (TileM > 32 ? 2 : 4) >> many_words;
  static constexpr int ScaleSteps = lpg_gemm_scale_steps(Form);
  static constexpr bool reads_zeros = lpg_gemm_reads_zeros(Form, Dequantiser::centered);
  __device__ static constexpr lpg_gemm_slot slot() {
    return lpg_gemm_slot_of(Form, Dequantiser::centered, tile_n / LPG_TILE_ROWS, stage_k);
  }
  static constexpr int stage_k = lpg_gemm_stage_k(TileM), block_stages = block_k / stage_k;
  /* Warps that load a stage: of two, one brings weights and scales, the other X. */
  static constexpr int copiers = LPG_GEMM_PRODUCER_WARPS / block_stages;
  static constexpr int x_steps = stage_k / LPG_STEP_K, x_stage_bytes = TileM * stage_k * 2;
  /* A stage holds columns that a copy brings after one another, and of these one or two copies' rows of X. */
  static constexpr int x_column_bytes = TileM * LPG_GEMM_BOX_K * 2;
  static constexpr int box_tokens = TileM < LPG_GEMM_BOX_M ? TileM : LPG_GEMM_BOX_M;
  static constexpr int x_boxes = TileM / box_tokens;
  static constexpr int w_steps = lpg_gemm_stage_steps(Bits, stage_k);
  static constexpr int w_vectors = w_steps * Bits / 16; /* of 512 bytes, of a row tile and stage */
  static constexpr int w_stage_bytes = tile_n / LPG_TILE_ROWS * w_vectors * 512;
  static constexpr int unit_words = lpg_unit_words(Bits), unit_steps = lpg_unit_codes(Bits) / 4;

  /* The step of a stage at which vector v of 4 words a lane is needed first. */
  __device__ static constexpr int first_step(int v) { return 4 * v / (2 * unit_words) * unit_steps; }
};

/* Of work tiles of half the rows of X: one copy for every 64 columns in place of two. */
template <class Whole>
struct gemm_half_traits : half_traits<Whole> {
  static_assert(Whole::x_boxes == 2, "a copy brings the tokens of a half");
  static constexpr int x_boxes = 1;
};

template <class T>
constexpr int row_tiles_of = T::tile_n / LPG_TILE_ROWS; /* of a work tile */

/* The work tiles of a cluster, and the parts of K of a CTA. */
struct gemm_work : tile_bands<LPG_GEMM_BAND> {
  int tiles, first_tile, stride;       /* the cluster takes first_item, first_item + stride and so on */
  int rank;                            /* in the cluster: which slice */
  int multicast, block;                /* blocks that have the same rows of X, and which of them */
  static constexpr int first_rank = 0; /* of those that share the work tile */
  bool reads;                          /* else there is nothing to multiply */

  __device__ gemm_work(const lpg_gemm_plan &p, bool reads)
      : tile_bands{p.n_tiles, p.m_tiles}, tiles(p.whole), stride(p.clusters), multicast(p.multicast), reads(reads) {
    rank = p.split_k > 1 ? blockIdx.x % (unsigned)p.split_k : 0;
    block = p.multicast > 1 ? blockIdx.x % (unsigned)p.multicast : 0;
    first_tile = blockIdx.x / (unsigned)(p.split_k * p.multicast);
  }

  __device__ int n_tile(int tile) const { return tile_bands::n_tile(tile) * multicast + block; }
};

/* The k blocks that a CTA goes through for a work tile: one of each team's parts in turn. The first
 * teams' parts are the longer ones, if any. */
template <class T>
struct gemm_parts {
  const lpg_partition &part;
  int runs, first; /* parts of a team, the first part */
  bool reads;

  __device__ gemm_parts(const gemm_args &a, const gemm_work &w)
      : part(a.plan.part), runs(T::runs ? a.plan.runs : 1), first(w.rank * T::teams * runs), reads(w.reads) {}

  __device__ int first_block(int team) const { return first_of(part, first + team * runs); }
  __device__ int blocks_of(int team) const { return reads ? first_block(team + 1) - first_block(team) : 0; }
  /* Of one of a team's parts. */
  __device__ int blocks_of(int team, int run) const { return reads ? count_of(part, first + team * runs + run) : 0; }
  __device__ int blocks() const {
    int all = 0;
    for (int team = 0; team < T::teams; team++) all += blocks_of(team);
    return all;
  }
  /* The column block of the i-th of all. */
  __device__ int block(int i) const { return first_block(i % T::teams) + i / T::teams; }
};

/* The stages in shared memory: a ring of X, 64 or 128 columns each, with two barriers a stage: one that is full (the
 * lanes of a warp arrive, and one of them when bytes are on their way), and one that is empty when all who multiply
 * have read it. Stages of weights hold whole tiles, and may be for several of X, as
 * slots of scales are for a k block; the plan has as many that those of X alone need barriers. */
struct barriers_of {
  uint32_t base; /* address */

  __device__ uint32_t full(int stage) const { return base + 16 * stage; }
  __device__ uint32_t empty(int stage) const { return empty_of(full(stage)); }
  __device__ static uint32_t empty_of(uint32_t full) { return full + 8; }

  template <class T>
  __device__ void init(const lpg_gemm_plan &p) const {
    constexpr int most = lpg_gemm_most_blocks(T::TileM) * T::block_stages;
    static_assert(16 * most <= LPG_GEMM_BARRIER_BYTES, "too many barriers");
    for (int i = 0; i < p.x_stages; i++) {
      init_barrier(full(i), (32 + 1) * T::copiers);
      init_barrier(empty(i), T::team_warps * p.multicast);
    }
    fence_barriers();
  }
};

/* Goes round a ring: `at` from `first` on, `step` further each time. */
struct ring_place {
  uint32_t at, first, end, step;

  __device__ ring_place(uint32_t first, int count, uint32_t step)
      : at(first), first(first), end(first + count * step), step(step) {}

  /* By no more than the ring has, without a branch; 1 if it begins again. */
  __device__ int advance(int count) {
    at += count * step;
    const int turns = at >= end;
    at -= turns ? end - first : 0;
    return turns;
  }

  /* By one. */
  __device__ int advance() {
    at += step;
    if (at != end) return 0;
    at = first;
    return 1;
  }
};

}  // namespace
}  // namespace lpg
