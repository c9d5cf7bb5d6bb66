/* What the parts of the wide kernels have in common: their arguments, what their template parameters mean, and which
 * cluster of blocks of threads does which items. */
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

struct wide_args {
  lpg_wide_plan plan;
  decoder_args decoder;
  numbers_args numbers;
  const int8_t *exponents; /* of the rows; NULL: all 0 */
  const uint8_t *lines;    /* the form LINES: of each row tile and group, LPG_WIDE_LINES_BYTES; and the rows' factors */
  const float *line_factors;
  int32_t line_groups, block_groups, stage_groups; /* of a row, a block of columns, a stage of X */
  int32_t row_tiles, n, m, k;
  int64_t ldx;
  const uint16_t *x;
  int x_has_map; /* else threads bring X */
  lpg_tensor_map x_map, codes_map;
  epilogue_args epilogue;
};

/* What the template parameters say together. Tokens: rows of X of an item; RowTiles: of a warp; Teams, each of
 * TeamWarps warps that multiply; Form: how weights get their scales and zeros. */
template <class X_, template <class, int> class Decoder_, int Bits_, int Tokens_, int RowTiles_, int Teams_,
          int TeamWarps_, lpg_wide_form Form_>
struct wide_traits {
  using whole = wide_traits;
  using X = X_;
  static constexpr bool lines = Form_ == LPG_WIDE_LINES, integer_sums = false;
  static constexpr bool slots = Form_ != LPG_WIDE_WHOLE; /* weights are scaled before they are multiplied */
  static constexpr bool near = Form_ == LPG_WIDE_NEAR;   /* as they are decoded */
  /* What codes become: fp16 is enough for integers that are scaled in fp32. */
  using Codes = std::conditional_t<lines && Decoder_<X_, Bits_>::centered, f16_x, X_>;
  using Decoder = Decoder_<Codes, Bits_>;
  static constexpr int Bits = Bits_, Tokens = Tokens_;
  static constexpr lpg_wide_form Form = Form_;
  static constexpr int teams = Teams_, team_warps = TeamWarps_, warps = teams * team_warps;
  static constexpr int row_tiles = RowTiles_, rows = lpg_wide_rows(row_tiles, team_warps);
  static constexpr int threads = 32 * (warps + LPG_WIDE_COPY_WARPS);
  static constexpr bool shares = lpg_wide_has_share(Tokens_, RowTiles_, 2);     /* blocks of a cluster may share X */
  static constexpr bool runs = lpg_wide_has_runs(Tokens_, RowTiles_);           /* a team may have several parts of K */
  static constexpr int copy_registers = 56, registers = warps == 8 ? 224 : 104; /* of who copies, of who multiplies */
  /* Steps whose products start together: more leave the warps alone for longer, but take registers. */
  static constexpr int many_words = Bits_ > 4 && Bits_ < 8; /* that a lane holds of a stage of weights */
  static constexpr int batch = Tokens >= 128 ? 1 : warps == 8 ? 4 : (Tokens > 32 ? 2 : 4) >> many_words;
  static constexpr int Granule = lpg_wide_granule(Form);
  static constexpr bool reads_zeros = lpg_wide_reads_zeros(Form, Decoder::centered);
  __device__ static constexpr lpg_wide_slot slot() {
    return lpg_wide_slot_of(Form, Decoder::centered, rows / LPG_TILE_ROWS, stage_k);
  }
  static constexpr int stage_k = lpg_wide_stage_k(Tokens), block_stages = block_k / stage_k;
  /* Warps that bring a stage: of two, one brings weights and scales, the other X. */
  static constexpr int copiers = LPG_WIDE_COPY_WARPS / block_stages;
  static constexpr int x_steps = stage_k / LPG_STEP_K, x_stage_bytes = Tokens * stage_k * 2;
  /* A stage holds columns that a copy brings after one another, and of these one or two copies' tokens. */
  static constexpr int x_column_bytes = Tokens * LPG_WIDE_BOX_K * 2;
  static constexpr int box_tokens = Tokens < LPG_WIDE_BOX_TOKENS ? Tokens : LPG_WIDE_BOX_TOKENS;
  static constexpr int x_boxes = Tokens / box_tokens;
  static constexpr int w_steps = lpg_wide_stage_steps(Bits, stage_k);
  static constexpr int w_vectors = w_steps * Bits / 16; /* of 512 bytes, of a row tile and stage */
  static constexpr int w_stage_bytes = rows / LPG_TILE_ROWS * w_vectors * 512;
  static constexpr int unit_words = lpg_unit_words(Bits), unit_steps = lpg_unit_codes(Bits) / 4;

  /* The step of a stage at which vector v of 4 words a lane is needed first. */
  __device__ static constexpr int first_step(int v) { return 4 * v / (2 * unit_words) * unit_steps; }
};

/* Of items of half the tokens: one copy for every 64 columns in place of two. */
template <class Whole>
struct wide_half_traits : half_traits<Whole> {
  static_assert(Whole::x_boxes == 2, "a copy brings the tokens of a half");
  static constexpr int x_boxes = 1;
};

template <class T>
constexpr int row_tiles_of = T::rows / LPG_TILE_ROWS; /* of an item */

/* The items of a cluster, and the parts of K of a block of threads. */
struct wide_work : item_bands<LPG_WIDE_BAND> {
  int items, first_item, stride;       /* the cluster takes first_item, first_item + stride and so on */
  int rank;                            /* in the cluster: which slice */
  int share, block;                    /* blocks that have the same tokens, and which of them */
  static constexpr int first_rank = 0; /* of those that share the item */
  bool reads;                          /* else there is nothing to multiply */

  __device__ wide_work(const lpg_wide_plan &p, bool reads)
      : item_bands{p.row_items, p.token_items}, items(p.whole), stride(p.groups), share(p.share), reads(reads) {
    rank = p.slices > 1 ? blockIdx.x % (unsigned)p.slices : 0;
    block = p.share > 1 ? blockIdx.x % (unsigned)p.share : 0;
    first_item = blockIdx.x / (unsigned)(p.slices * p.share);
  }

  __device__ int row_item(int item) const { return item_bands::row_item(item) * share + block; }
};

/* The blocks of columns that a block of threads goes through for an item: one of each team's parts in turn. The first
 * teams' parts are the longer ones, if any. */
template <class T>
struct wide_parts {
  const lpg_shares &part;
  int runs, first; /* parts of a team, the first part */
  bool reads;

  __device__ wide_parts(const wide_args &a, const wide_work &w)
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
 * slots of scales are for a block of columns; the plan has as many that those of X alone need barriers. */
struct barriers_of {
  uint32_t base; /* address */

  __device__ uint32_t full(int stage) const { return base + 16 * stage; }
  __device__ uint32_t empty(int stage) const { return empty_of(full(stage)); }
  __device__ static uint32_t empty_of(uint32_t full) { return full + 8; }

  template <class T>
  __device__ void init(const lpg_wide_plan &p) const {
    constexpr int most = lpg_wide_most_blocks(T::Tokens) * T::block_stages;
    static_assert(16 * most <= LPG_WIDE_BARRIER_BYTES, "too many barriers");
    for (int i = 0; i < p.x_stages; i++) {
      init_barrier(full(i), (32 + 1) * T::copiers);
      init_barrier(empty(i), T::team_warps * p.share);
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
