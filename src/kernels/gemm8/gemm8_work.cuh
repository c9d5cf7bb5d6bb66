/* gemm8: arguments, template parameters, the work tiles of a cluster, and the ring of stages. */
#pragma once

#include "../epilogue/split_k.cuh"
#include "../launch/tensor_map.h"
#include "../plan/scheduler.cuh"
#include "gemm8_plan.h"
#include "gemm8_rows.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Scales and zeros of groups, as they are packed: those of a row tile are contiguous. */
struct gemm8_groups {
  const uint8_t *scales, *zeros;
  int64_t scale_row, zero_row; /* bytes of a row tile */
  int32_t log2;                /* log2 of (k of a group / 128) */
  int32_t last;                /* last group of a row */
  int32_t scale_is_bf16;
  uint32_t zero; /* the zero of all groups, in four bytes, if `zeros` is NULL */
};

/* What weights become in gemm8_units.cuh. */
struct gemm8_bytes_args {
  float unit;          /* weight of a byte that is 1 */
  uint32_t float_up;   /* bits by which exponent and mantissa of a float move up */
  uint32_t float_mask; /* mask of where they are then, in four bytes */
};

struct gemm8_args {
  lpg_gemm8_plan plan;
  lpg_tensor_map codes; /* packed weights */
  int32_t row_tiles, n, m;
  /* Where X is read directly (plan.direct): X itself, and scales and zeros of rows of W as they are packed. */
  const uint8_t *x;
  int64_t ldx;
  int32_t k;
  gemm8_rows rows;
  /* Else, from the kernel ahead (gemm8_x.cu): */
  const uint8_t *image;   /* the X image */
  int64_t image_stage;    /* bytes of 128 k of all rows of X */
  int32_t image_rows;     /* rows of X in the image */
  const int32_t *x_sums;  /* sum of each row of X */
  const float *factors;   /* scale of each row of W */
  const int32_t *offsets; /* offset less zero of each row of W */
  gemm8_groups groups;
  gemm8_bytes_args bytes;
  epilogue_args epilogue;

  __device__ float scale_of(int row) const { return plan.direct ? rows.scale(row) : factors[row]; }
};

template <int Bits_, int TileM_, int RowTiles_>
struct gemm8_traits {
  static constexpr int Bits = Bits_, TileM = TileM_;
  static constexpr int row_tiles = RowTiles_, tile_n = lpg_gemm8_tile_n(row_tiles), warps = LPG_GEMM8_WARPS;
  static constexpr int teams = 1, team_warps = warps;
  static constexpr int threads = 32 * (warps + LPG_GEMM8_PRODUCER_WARPS);
  static constexpr int producer_registers = 56, consumer_registers = 224; /* a thread */
  static constexpr int stage_k = lpg_gemm8_stage_k(Bits, TileM_, RowTiles_),
                       stage_steps = stage_k / 32;              /* MMA steps of 32 k */
  static constexpr int units = stage_k / LPG_GEMM8_X_K;         /* 128-k units of a row tile in a stage */
  static constexpr int batch = TileM * row_tiles > 128 ? 1 : 2; /* MMA steps in one wgmma commit group */
  static constexpr int w_vectors = stage_k * Bits / 256;        /* 512-byte vectors of a row tile in a stage */
  static constexpr int w_bytes = tile_n / LPG_TILE_ROWS * w_vectors * 512;
  static constexpr int scales_bytes = lpg_gemm8_scales_bytes(tile_n, stage_k);
  static constexpr int full_arrivals = 1; /* on the full mbarrier, beside the bytes */
  static constexpr int x_bytes = TileM * stage_k, x_part = TileM * LPG_GEMM8_X_K;

  /* The MMA step of a stage at which a lane first needs its words 4 v .. 4 v + 3. */
  __device__ static constexpr int first_step(int v) {
    return 4 * v / (2 * lpg_unit_words(Bits)) * lpg_unit_codes(Bits) / 8;
  }
};

/* The work tiles of a cluster, and the CTA's part of K. */
struct gemm8_work : tile_bands<LPG_GEMM8_BAND> {
  int tiles, first_tile, stride;       /* the cluster takes first_tile, first_tile + stride and so on */
  int rank;                            /* in the cluster */
  static constexpr int first_rank = 0; /* of the CTAs that split K */
  int first, stages;                   /* the CTA's stages of K */

  __device__ gemm8_work(const gemm8_args &a)
      : tile_bands{a.plan.n_tiles, a.plan.m_tiles},
        tiles(a.plan.whole),
        first_tile(blockIdx.x / (unsigned)a.plan.split_k),
        stride(a.plan.clusters),
        rank(blockIdx.x % (unsigned)a.plan.split_k),
        first(first_of(a.plan.part, rank)),
        stages(reads_product(a.epilogue) ? count_of(a.plan.part, rank) : 0) {}
};

/* A place in the ring of stages: X, weights and the scales of groups, with two mbarriers a stage. full: a producer lane
 * arrives with the bytes of X's image, or each producer warp where X is read directly; bytes of weights are expected,
 * and with groups the lanes that copy scales arrive as well. empty, 8 bytes on: each consumer warp arrives when it has
 * read the stage. */
struct gemm8_ring {
  uint32_t full, x, codes, scale_data, parity;
  int stage;

  __device__ gemm8_ring(const lpg_gemm8_plan &p, uint32_t base, uint32_t parity)
      : full(base),
        x(base + p.x_ring),
        codes(base + p.w_ring),
        scale_data(base + p.scales_ring),
        parity(parity),
        stage(0) {}

  /* No branch: the compiler would wait for a wgmma in flight. */
  template <class T>
  __device__ void advance(const lpg_gemm8_plan &p) {
    const int turn = ++stage == p.stages, back = turn ? p.stages : 0;
    stage -= back;
    full += 16 - back * 16;
    x += T::x_bytes - back * T::x_bytes;
    codes += T::w_bytes - back * T::w_bytes;
    if (T::grouped) scale_data += T::scales_bytes - back * T::scales_bytes;
    parity ^= turn;
  }
};
static_assert(16 * LPG_GEMM8_MOST_STAGES <= LPG_GEMM8_BARRIER_BYTES, "too many barriers");

/* The scheduler for the work tiles that come as halves (lpg_whole_tiles): those behind the whole ones, two each. */
template <class Work>
struct halves_of : Work {
  int whole;

  __device__ explicit halves_of(const Work &w) : Work(w), whole(w.tiles) {
    this->tiles = 2 * (this->n_tiles * this->m_tiles - whole);
  }
  __device__ int n_tile(int half) const { return Work::n_tile(whole + half / 2); }
  __device__ int m_tile(int half) const { return 2 * Work::m_tile(whole + half / 2) + half % 2; }
  __device__ int2 x_rows_of(int half, int half_m, int m) const { return {m_tile(half) * half_m, m}; }
};

/* The template parameters of a kernel for halves: half the TileM, in stages that have room for whole work tiles. */
template <class Whole>
struct half_traits : Whole {
  using whole = Whole;
  static constexpr int TileM = Whole::TileM / 2;
};

template <class T>
constexpr bool is_half = T::TileM < T::whole::TileM;

}  // namespace
}  // namespace lpg
