/* gemm: arguments, template parameters, the work tiles of a cluster, and the rings of stages.
 *
 * Clusters are persistent: each takes every `clusters`-th work tile (tile_n x tile_m). Split-K is over the CTAs of a
 * cluster and over teams: a team is the consumer warps that multiply one part of K, each with its own rows of W, and
 * all teams have the same rows. A team may have several parts of K in turn (runs). Or K is not split, and the CTAs
 * of a cluster have different rows of W and share X by multicast. */
#pragma once

#include <type_traits>

#include "../epilogue/epilogue.cuh"
#include "../launch/tensor_map.h"
#include "../operand/dequant.cuh"
#include "../operand/scales.cuh"
#include "../plan/expert_rows.cuh"
#include "../plan/scheduler.cuh"
#include "../prim/barrier.cuh"
#include "../prim/cluster.cuh"
#include "../prim/logic.cuh"
#include "../prim/pdl.cuh"
#include "gemm_plan.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* A stack of experts; count 0: one matrix. */
struct gemm_experts {
  int32_t count, bias_stride;
  const int32_t *offsets; /* rows of X */
  const uint8_t *headers;
  const float *row_scales; /* of the first expert; NULL: none */
  int64_t stride;          /* of experts, in bytes */
};

struct gemm_args {
  lpg_gemm_plan plan;
  dequantiser_args dequantiser;
  scales_args scale_data;
  /* Of these the scales and the zeros, if there are some, and their upper levels: where they are soon found. */
  scale_section copied[2], upper[2];
  float largest_value[2];  /* rests: the largest value of a code of weights, and of two levels one of minima */
  const int8_t *exponents; /* of each row's power of two; NULL: all 0 */
  int32_t field_power;     /* what the scales take of the dequantiser: log2 */
  const uint8_t *image;    /* pieces along N, and for each of them along K (gemm_plan.h) */
  int32_t image_rows, image_columns;
  const uint8_t
      *prepared; /* prepared scales: LPG_GEMM_PREPARED_BYTES for each row tile and group; and each row's factor */
  const float *line_factors;
  int32_t line_groups, block_groups, stage_groups; /* scale groups of a row, a k block, a stage of X */
  int32_t row_tiles, n, m, k;
  int64_t ldx;
  const uint16_t *x;
  int x_has_map; /* TMA can read X; else threads load it */
  lpg_tensor_map x_map, codes_map, y_map;
  gemm_experts experts;
  uint64_t *stream_flags; /* stream-K: of each CTA, what its warps raise when their sums lie there, ... */
  uint64_t stream_number; /* ... and to what */
  float4 *stream_sums;
  epilogue_args epilogue;
};

/* How kernels of a scale mode dequantise. */
template <class Dequantiser, lpg_gemm_scales Scales>
struct dequantiser_of {
  using type = Dequantiser;
};
template <int Bits, lpg_gemm_scales Scales>
struct dequantiser_of<float_dequantiser<bf16_x, Bits>, Scales> {
  using type = std::conditional_t<lpg_gemm_keeps_fields(Scales, true, LPG_GEMM_FLOATS), field_dequantiser<bf16_x, Bits>,
                                  float_dequantiser<bf16_x, Bits>>;
};
template <class Dequantiser, lpg_gemm_scales Scales>
using gemm_dequantiser = typename dequantiser_of<Dequantiser, Scales>::type;

/* What the template parameters mean together. Teams, each of TeamWarps consumer warps; Scales: the scale mode, how
 * weights get their scales and zeros; Experts: stacks of experts, and rows of W in pairs. */
template <class X_, template <class, int> class Dequantiser_, int Bits_, int TileM_, int Teams_, int TeamWarps_,
          lpg_gemm_scales Scales_, bool Experts_ = false>
struct gemm_traits {
  using X = X_;
  static constexpr bool prepared = lpg_gemm_is_prepared(Scales_), integer_sums = false;
  static constexpr bool image = Scales_ == LPG_GEMM_SCALES_IMAGE; /* the tensor cores read weights as they are */
  static constexpr bool takes_experts = Experts_;
  static constexpr bool halves = lpg_gemm_has_halves(TileM_) && !Experts_; /* the last work tiles may be halves */
  static constexpr bool scales_weights = Scales_ != LPG_GEMM_SCALES_ROW && !image; /* before the MMA, not on the sums */
  static constexpr bool levels = lpg_gemm_has_levels(Scales_), minima = Scales_ == LPG_GEMM_SCALES_LEVELS_32;
  static constexpr bool one_level_rests = Scales_ == LPG_GEMM_SCALES_RESTS;
  /* Rows' powers of two are found with the rests, as far as they need one. */
  static constexpr bool finds_row_powers = levels || (one_level_rests && X_::exponent == 5);
  static constexpr bool has_powers =
      scales_weights && !prepared && !levels && !one_level_rests; /* of rows, in the slots */
  static constexpr bool near = Scales_ == LPG_GEMM_SCALES_NEAR;   /* scaled by the multiply-add that dequantises */
  /* The type that codes become: fp16 holds the integers that are then scaled in fp32. */
  using Codes = std::conditional_t<(Scales_ == LPG_GEMM_SCALES_PREPARED && Dequantiser_<X_, Bits_>::centered) ||
                                       lpg_gemm_has_rests(Scales_),
                                   f16_x, X_>;
  using Dequantiser = gemm_dequantiser<Dequantiser_<Codes, Bits_>, Scales_>;
  static constexpr bool split = lpg_gemm_is_split(Scales_);
  static constexpr bool prepared_split = Scales_ == LPG_GEMM_SCALES_PREPARED_SPLIT;
  static constexpr int Bits = Bits_, TileM = TileM_, widths = lpg_gemm_widths(TileM);
  static constexpr lpg_gemm_scales Scales = Scales_;
  static constexpr int teams = Teams_, team_warps = TeamWarps_, warps = teams * team_warps;
  static constexpr int row_tiles = 1, tile_n = lpg_gemm_tile_n(team_warps); /* row_tiles: of a warp */
  static constexpr int threads = 32 * (warps + LPG_GEMM_PRODUCER_WARPS);
  /* The CTAs of a cluster may share X. */
  static constexpr bool may_multicast = lpg_gemm_has_multicast(TileM_, 2);
  static constexpr bool runs = lpg_gemm_has_runs(TileM_, TeamWarps_) && !image; /* a team may have several parts of K */
  static constexpr bool skips_end = warps < 16; /* stages beyond K: else registers are too few */
  static constexpr bool streams = lpg_gemm_streams(TileM_, Teams_) && !Experts_;
  static_assert(!halves || streams, "turn_of() deals out halves");
  static constexpr bool is_square = TileM == LPG_GEMM_SQUARE_M; /* 12 warps with more sums than others have */
  static constexpr int producer_registers = is_square ? 32 : 56, consumer_registers = warps == 8  ? 224
                                                                                      : is_square ? 160
                                                                                      : warps == 12
                                                                                          ? 152
                                                                                          : 104; /* a thread */
  static constexpr int many_words = Bits_ > 4 && Bits_ < 8; /* a lane holds many words of a stage of weights */
  /* MMA steps in one wgmma commit group: more steps mean fewer waits, and more registers. */
  static constexpr int batch = image          ? LPG_IMAGE_K / LPG_STEP_K
                               : TileM >= 128 ? 1
                               : warps == 8   ? 4
                                              : (TileM > 32 ? 2 : 4) >> many_words;
  static constexpr int ScaleSteps = lpg_gemm_scale_steps(Scales);
  static constexpr bool reads_zeros = lpg_gemm_reads_zeros(Scales, Dequantiser::centered);
  __device__ static constexpr lpg_gemm_slot scales_layout() {
    return lpg_gemm_slot_of(Scales, Dequantiser::centered, tile_n / LPG_TILE_ROWS, stage_k);
  }
  static constexpr int stage_k = lpg_gemm_stage_k(TileM), block_stages = block_k / stage_k;
  /* Producer warps that fill a stage: of two, one loads weights and scales, the other X. */
  static constexpr int stage_warps = LPG_GEMM_PRODUCER_WARPS / block_stages;
  static constexpr int x_steps = stage_k / LPG_STEP_K, x_stage_bytes = TileM * stage_k * 2;
  /* A stage of X is split at every 64 k (a swizzled row of 128 bytes); one or two TMA boxes copy the rows of 64 k. */
  static constexpr int x_k64_bytes = TileM * LPG_GEMM_BOX_K * 2;
  static constexpr int x_boxes = lpg_gemm_x_boxes(TileM);
  static_assert(!halves || x_boxes == 2, "one TMA box brings the rows of a half");
  static constexpr int w_steps = lpg_gemm_stage_steps(Bits, stage_k);
  static constexpr int w_vectors = w_steps * Bits / 16; /* 512-byte vectors of a row tile in a stage */
  static constexpr int w_stage_bytes = tile_n / LPG_TILE_ROWS * w_vectors * 512;
  static constexpr int unit_words = lpg_unit_words(Bits), unit_steps = lpg_unit_codes(Bits) / 4;

  /* The MMA step of a stage at which a lane first needs its words 4 v .. 4 v + 3. */
  __device__ static constexpr int first_step(int v) { return 4 * v / (2 * unit_words) * unit_steps; }
};

template <class T>
constexpr int row_tiles_of = T::tile_n / LPG_TILE_ROWS; /* in a work tile */

/* The work tiles of a cluster, and the CTA's place in it. */
struct gemm_work : tile_bands<LPG_GEMM_BAND> {
  int tiles, first_tile, stride;       /* the cluster takes first_tile, first_tile + stride and so on */
  int rank;                            /* in the cluster: which parts of K */
  int multicast, multicast_rank;       /* multicast: CTAs that share X */
  const lpg_gemm_plan &plan;           /* what is not copied is not kept in registers */
  int x_rows;                          /* of a whole work tile */
  static constexpr int first_rank = 0; /* of the CTAs that split K */
  bool reads;                          /* else the product is skipped: alpha is 0 */

  __device__ gemm_work(const lpg_gemm_plan &p, bool reads)
      : tile_bands{p.n_tiles, p.m_tiles},
        tiles(p.whole),
        stride(p.clusters),
        multicast(p.multicast),
        plan(p),
        x_rows(p.x_rows),
        reads(reads) {
    rank = p.split_k > 1 ? cluster_rank() : 0;
    multicast_rank = p.multicast > 1 ? cluster_rank() : 0;
    first_tile = cluster_number();
  }

  /* The number behind the last work tile, where none comes by k blocks (stream-K). */
  __device__ int end_of_tiles() const { return tiles; }
  __device__ static bool is_half(int) { return false; }

  /* As tile_bands has them, without its divisions. */
  __device__ int2 place(int tile) const { /* along N and M */
    const int band = lpg_quotient(tile, plan.by_band), in_band = tile - band * LPG_GEMM_BAND * m_tiles;
    const int rows = band_rows(band);
    const int m = rows < LPG_GEMM_BAND ? lpg_quotient(in_band, plan.by_last_band) : (unsigned)in_band / LPG_GEMM_BAND;
    return {band * LPG_GEMM_BAND + in_band - m * rows, m};
  }
  __device__ int n_tile(int tile) const { return place(tile).x * multicast + multicast_rank; }
  __device__ int2 x_rows_of(int tile, int, int m) const {
    const int first = place(tile).y * x_rows;
    return {first, min(first + x_rows, m)};
  }
};

/* The same where the last work tiles may come as halves, unless they come by k blocks: two numbers each, behind those
 * of the whole ones. A type of its own: kernels that have no halves were slower with it (log, 2026-11-28). */
struct halved_work : gemm_work {
  using gemm_work::gemm_work;

  __device__ int end_of_tiles() const { return tiles + 2 * (n_tiles * m_tiles - tiles); }
  __device__ bool is_half(int tile) const { return tile >= tiles && plan.streamed == 0; }
  __device__ int whole_of(int tile) const { return is_half(tile) ? (tile + tiles) / 2 : tile; }

  __device__ int n_tile(int tile) const { return gemm_work::n_tile(whole_of(tile)); }
  __device__ int2 x_rows_of(int tile, int tile_m, int m) const {
    int2 rows = gemm_work::x_rows_of(whole_of(tile), tile_m, m);
    if (is_half(tile)) {
      rows.x += (tile - tiles) % 2 * (x_rows / 2);
      rows.y = min(rows.x + x_rows / 2, m);
    }
    return rows;
  }
};

template <class T>
using work_of = std::conditional_t<T::halves, halved_work, gemm_work>;

/* Whether the CTAs of a cluster share X. */
template <class T>
__device__ inline bool is_multicast(const lpg_gemm_plan &p) {
  return T::may_multicast && p.multicast > 1;
}

/* Rows of X that a copy of TMA brings. */
template <class T>
__device__ inline int box_rows_of(const gemm_work &w) {
  return w.x_rows / T::x_boxes;
}

/* ---- stacks: of each expert the work tiles of its rows of X, in bands of its own. Nothing of this is kept in
 * registers, which the main loop needs: it is read where it is used. ---- */

__device__ inline expert_rows rows_of_experts(const gemm_args &a, uint8_t *memory) {
  return expert_rows(memory + a.plan.experts, a.experts.count);
}

template <class T>
__device__ inline bool has_experts(const gemm_args &a) {
  return T::takes_experts && a.experts.count > 0;
}

/* Reads how many rows of X the experts have. The whole CTA takes part. */
template <class T>
__device__ inline void read_experts(const gemm_args &a, uint8_t *memory) {
  if (!has_experts<T>(a)) return;
  pdl_wait();
  if (threadIdx.x < 32) {
    fill_expert_rows(a.experts.offsets, a.experts.count, a.m, memory + a.plan.experts, [&](int rows) {
      return T::widths > 1 ? lpg_quotient(rows + a.plan.x_rows - 1, a.plan.by_x_rows)
                           : (rows + T::TileM - 1) / T::TileM;
    });
  }
  __syncthreads();
}

/* The work tiles of all clusters, where turns are not dealt out by turn_of(). */
template <class T>
__device__ inline int tiles_of(const gemm_args &a, const gemm_work &w, uint8_t *memory) {
  int tiles = w.tiles;
  if (has_experts<T>(a)) tiles = w.n_tiles * rows_of_experts(a, memory).first_tile[a.experts.count];
  return T::takes_experts ? agreed(tiles) : tiles;
}

/* Where a work tile lies, and its expert. The whole warp must call it. */
template <class T, class Work>
__device__ inline tile_place find_place(const gemm_args &a, const Work &w, int tile, uint8_t *memory, int &expert) {
  expert = 0;
  if (!has_experts<T>(a)) return place_of<T>(a, w, tile);
  const expert_rows rows = rows_of_experts(a, memory);
  expert = rows.expert_of((unsigned)tile / (unsigned)w.n_tiles);
  const int first = rows.first_tile[expert], in_expert = tile - first * w.n_tiles;
  const tile_bands<LPG_GEMM_BAND> own = {w.n_tiles, rows.first_tile[expert + 1] - first};
  const int x_rows = T::widths > 1 ? w.x_rows : T::TileM;
  const int m = rows.first_row[expert] + own.m_tile(in_expert) * x_rows;
  return {m, min(m + x_rows, rows.first_row[expert + 1]),
          (own.n_tile(in_expert) * w.multicast + w.multicast_rank) * T::tile_n, expert * a.experts.bias_stride};
}

/* The k blocks that a CTA takes for a work tile, in the order of the ring: one from each team's part of K in turn.
 * If parts differ in length, the first teams have the longer ones, so the order has no holes. */
template <class T>
struct gemm_parts {
  const lpg_partition &part;
  int runs, first; /* parts of a team, and the CTA's first part */
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
  /* The k block that is i-th in the ring's order. */
  __device__ int block(int i) const { return first_block(i % T::teams) + i / T::teams; }
};

/* MMA steps of K's last k block. */
template <class T>
__device__ inline int last_steps(const gemm_args &a) {
  if (!T::skips_end) return steps;
  return (unsigned)(a.k - (a.plan.blocks - 1) * block_k + LPG_STEP_K - 1) / LPG_STEP_K;
}

/* A turn of a cluster: a work tile, and which of its k blocks where these are dealt out (stream-K); blocks 0: all that
 * the CTA has of it. */
struct gemm_turn {
  int tile, first, blocks; /* tile less than 0: there is none */

  /* Whoever has a work tile's first block stores it. */
  __device__ bool is_partial() const { return first > 0; }
};

/* The turn of that number: the cluster's whole work tiles come first, then its share of the others: perhaps a half, or
 * some k blocks. */
template <class Work>
__device__ inline gemm_turn turn_of(const gemm_args &a, const Work &w, int number) {
  const lpg_gemm_plan &p = a.plan;
  const int tile = w.first_tile + number * w.stride;
  if (tile < w.tiles) return {tile, 0, 0};
  if (p.streamed == 0) return {tile < w.end_of_tiles() ? tile : -1, 0, 0};
  /* k blocks are counted through all of these work tiles */
  const int start = first_of(p.stream, w.first_tile), end = first_of(p.stream, w.first_tile + 1);
  const int own = number - (unsigned)w.tiles / (unsigned)w.stride,
            streamed = (unsigned)start / (unsigned)p.blocks + own;
  const int unit = own == 0 ? start : streamed * p.blocks, first = unit - streamed * p.blocks;
  if (unit >= end) return {-1, 0, 0};
  return {w.tiles + streamed, first, min(p.blocks - first, end - unit)};
}

/* The same; tiles: the work tiles of all clusters, which of experts are known to the kernel alone. */
template <class T>
__device__ inline gemm_turn turn_at(const gemm_args &a, const work_of<T> &w, int tiles, int number) {
  if (T::streams) return turn_of(a, w, number);
  const int tile = w.first_tile + number * w.stride;
  return {tile < tiles ? tile : -1, 0, 0};
}

/* The mbarriers of the ring of X, which has 64 or 128 k a stage. full: the lanes of the stage's producer warps
 * arrive, and one lane of each arrives with the bytes that TMA will write. empty: each consumer warp that reads the
 * stage arrives. Weights and scales have rings of their own, of packed tiles and of k blocks, without mbarriers: a
 * free stage of X implies that theirs are free (the planner's place() sees to it). */
struct barriers_of {
  uint32_t base; /* shared memory address */

  __device__ uint32_t full(int stage) const { return base + 16 * stage; }
  __device__ uint32_t empty(int stage) const { return empty_of(full(stage)); }
  __device__ static uint32_t empty_of(uint32_t full) { return full + 8; }

  template <class T>
  __device__ void init(const lpg_gemm_plan &p) const {
    constexpr int most = lpg_gemm_most_blocks(T::TileM) * T::block_stages;
    static_assert(16 * most <= LPG_GEMM_BARRIER_BYTES, "too many barriers");
    for (int i = 0; i < p.x_stages; i++) {
      init_barrier(full(i), (32 + 1) * T::stage_warps);
      init_barrier(empty(i), T::team_warps * p.multicast);
    }
    if (p.exchanges) init_barrier(base + p.received, T::warps * p.split_k);
    fence_barriers();
  }
};

/* A place in a ring: `at` goes from `first` to `end` by `step` and starts again. */
struct ring_place {
  uint32_t at, first, end, step;

  __device__ ring_place(uint32_t first, int count, uint32_t step)
      : at(first), first(first), end(first + count * step), step(step) {}

  /* By at most one turn of the ring, without a branch; 1 if it wrapped. */
  __device__ int advance(int count) {
    at += count * step;
    const int turns = at >= end;
    at -= turns ? end - first : 0;
    return turns;
  }

  /* By one stage. */
  __device__ int advance() {
    at += step;
    if (at != end) return 0;
    at = first;
    return 1;
  }
};

}  // namespace
}  // namespace lpg
