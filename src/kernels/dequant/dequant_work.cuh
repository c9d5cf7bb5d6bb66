/* What both dense kernels of dequant share: arguments, number types, work tiles, factors of rows. */
#pragma once

#include "../epilogue/store.cuh"
#include "../operand/expand.h"
#include "../operand/scales_any.cuh"
#include "../operand/x_rows.cuh"
#include "../operand/x_type.cuh"
#include "../plan/scheduler.cuh"
#include "dequant_plan.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct dequant_args {
  lpg_dequant_plan plan;
  const uint8_t *image; /* of the chunk of W */
  lpg_expand_scaling scaling;
  const float *scale_data; /* what was found while the chunk was dequantised (dequant_expand.h) */
  const int8_t *exponents; /* of rows; NULL: all 0 */
  groups_args groups;
  int32_t first_tile, tiles; /* tiles of 256 rows of W: the chunk's first, and how many it has */
  int32_t n, m, k;
  int64_t ldx;
  const void *x;
  epilogue_args epilogue;
};

/* Types of a product: of the image and of X, and of the sums; the MMA for them. */
template <class X>
struct half_types {
  using sum = float;
  using mma = typename X::mma;
  static constexpr lpgemm_dtype_t image = X::exponent == 5 ? LPGEMM_F16 : LPGEMM_BF16;
  static constexpr bool wide_range = X::exponent == 8;
  struct wgmma {
    __device__ static void multiply(float (&d)[64], uint64_t a, uint64_t rows, bool adds) {
      X::wgmma::multiply(d, a, rows, adds);
    }
  };
};
using f16_types = half_types<f16_x>;
using bf16_types = half_types<bf16_x>;

/* For X of fp16 and 8 bits, which are fp32 in a copy. */
struct tf32_types {
  using sum = float;
  using wgmma = wgmma_tf32;
  static constexpr lpgemm_dtype_t image = LPGEMM_F32;
  static constexpr bool wide_range = true;
};

struct i8_types {
  using sum = int;
  using mma = mma_i8;
  using wgmma = wgmma_i8;
  static constexpr lpgemm_dtype_t image = LPGEMM_I8;
  static constexpr bool wide_range = true;
};

template <class Wgmma>
struct fp8_types {
  using sum = float;
  using wgmma = Wgmma;
  static constexpr lpgemm_dtype_t image = LPGEMM_E4M3;
  static constexpr bool wide_range = true;
};
using e4m3_types = fp8_types<wgmma_e4m3>;
using e5m2_types = fp8_types<wgmma_e4m3_by_e5m2>;

/* Promotes: the sums of each stage are scaled and added in fp32. For a table of groups' scales; and for fp8, since the
 * tensor cores add up its products with fewer bits than fp32 has. */
template <class Types_, bool Promotes_>
struct dequant_traits {
  using Types = Types_;
  static constexpr bool Promotes = Promotes_;
  static constexpr bool integer_sums = Types::image == LPGEMM_I8 && !Promotes; /* for integer outputs */
  static constexpr int warps = LPG_DEQUANT_WARPS, row_tiles = 2, tile_n = LPG_DEQUANT_TILE_N,
                       TileM = LPG_DEQUANT_TILE_M;
  static constexpr int teams = 1, team_warps = warps; /* as split_k.cuh wants it */
  static constexpr int x_bytes = lpg_bytes(Types::image);
  static constexpr int stage_k = LPG_DEQUANT_STAGE_BYTES / x_bytes, steps = 4; /* of a stage; a step is 32 bytes */
};

/* A warp's sums, as store.cuh takes them. */
template <class T, class Sum>
struct dequant_sums {
  Sum sum[T::row_tiles][T::TileM / 2];

  __device__ void clear() {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int i = 0; i < T::TileM / 2; i++) sum[r][i] = 0;
    }
  }
};

/* The work tiles of a cluster. Its CTAs: split_k for the first rows of X, then split_k for the next rows of X. */
struct dequant_work {
  static constexpr bool is_placed = false;
  tile_bands<LPG_DEQUANT_BAND> bands;
  int tiles, first_n_tile, multicast, split_k;
  int stride;                /* clusters of the grid; each takes every stride-th work tile */
  int m_rank, rank;          /* which rows of X the CTA has, and which part of K */
  int first_rank;            /* in the cluster, of the CTAs that have the other parts of K for these rows of X */
  int first_stage, k_stages; /* of the part of K */

  __device__ dequant_work(const dequant_args &a)
      : bands{a.tiles, a.plan.m_tiles},
        tiles(a.tiles * a.plan.m_tiles),
        first_n_tile(a.first_tile),
        multicast(a.plan.multicast),
        split_k(a.plan.split_k),
        stride(gridDim.x / (unsigned)a.plan.cluster) {
    const int in_cluster = blockIdx.x % (unsigned)a.plan.cluster;
    const lpg_partition stages = lpg_partition_of(a.plan.k_stages, split_k);
    m_rank = (unsigned)in_cluster / (unsigned)split_k;
    rank = in_cluster - m_rank * split_k;
    first_rank = in_cluster - rank;
    first_stage = first_of(stages, rank);
    k_stages = reads_product(a.epilogue) ? count_of(stages, rank) : 0;
  }

  __device__ int n_tile(int tile) const { return first_n_tile + bands.n_tile(tile); }
  __device__ int m_tile(int tile) const { return bands.m_tile(tile) * multicast + m_rank; }
  __device__ int2 x_rows_of(int tile, int tile_m, int m) const { return {m_tile(tile) * tile_m, m}; }

  /* The CTAs of the cluster with the same rows of W and the same part of K: as bits; and the rank in the cluster of the
   * one with rows of X number i. */
  __device__ uint16_t sharers() const { return (uint16_t)((multicast > 1 ? 1 | 1 << split_k : 1) << rank); }
  __device__ int sharer(int i) const { return i * split_k + rank; }

  /* Where the CTA's part of K begins in a work tile's image. */
  __device__ const uint8_t *image(const dequant_args &a, int tile) const {
    return a.image + (bands.n_tile(tile) * (int64_t)a.plan.k_stages + first_stage) * LPG_DEQUANT_W_BYTES;
  }
};

/* The factor of a row's sums. */
template <class Types>
__device__ inline float row_factor(const dequant_args &a, int row, int row_of_chunk) {
  if (row >= a.n) return 0.0f;
  const float whole = a.scaling.halved ? 2.0f : 1.0f;
  if (a.scaling.on_rows) return (float)group_at(a.groups, row, 0).scale * whole;
  if (Types::wide_range || a.scaling.in_table) return whole;
  if (a.scaling.finds) return a.scale_data[row_of_chunk];
  return ldexpf(1.0f, (a.exponents ? a.exponents[row] : 0) - a.scaling.top);
}

/* Writes the factors of a work tile's rows to shared memory: each warp those of its own rows, which only it reads. */
template <class T>
__device__ inline void load_factors(const dequant_args &a, const dequant_work &w, int tile, int warp, int lane,
                                    float *factors) {
  const int row = warp * T::row_tiles * LPG_TILE_ROWS + lane;
  factors[row] = w.k_stages == 0 ? 0.0f
                                 : row_factor<typename T::Types>(a, w.n_tile(tile) * T::tile_n + row,
                                                                 w.bands.n_tile(tile) * T::tile_n + row);
  __syncwarp();
}
static_assert(2 * LPG_TILE_ROWS == 32, "a lane has a row");

}  // namespace
}  // namespace lpg
