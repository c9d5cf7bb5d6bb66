/* What the kernels that multiply expanded weights have in common: their arguments, and who does which items. */
#pragma once

#include "../epilogue/store.cuh"
#include "../operand/scales_any.cuh"
#include "../operand/x_rows.cuh"
#include "../operand/x_type.cuh"
#include "../plan/scheduler.cuh"
#include "dequant_expand.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct dense_args {
  lpg_dense_plan plan;
  const uint8_t *image; /* of the chunk */
  lpg_expand_scaling scaling;
  const float *numbers;    /* what was found while the chunk's weights were expanded: expand.h */
  const int8_t *exponents; /* of rows; NULL: all 0 */
  groups_args groups;
  int32_t first_item, items; /* of rows: the chunk's first, and how many it has */
  int32_t n, m, k;
  int64_t ldx;
  const void *x;
  epilogue_args epilogue;
};

/* What numbers are multiplied: types of the image and of X; sums, integers or not. */
template <class X>
struct half_numbers {
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
using f16_numbers = half_numbers<f16_x>;
using bf16_numbers = half_numbers<bf16_x>;

struct i8_numbers {
  using sum = int;
  using mma = mma_i8;
  using wgmma = wgmma_i8;
  static constexpr lpgemm_dtype_t image = LPGEMM_I8;
  static constexpr bool wide_range = true;
};

template <class Wgmma>
struct fp8_numbers {
  using sum = float;
  using wgmma = Wgmma;
  static constexpr lpgemm_dtype_t image = LPGEMM_E4M3;
  static constexpr bool wide_range = true;
};
using e4m3_numbers = fp8_numbers<wgmma_e4m3>;
using e5m2_numbers = fp8_numbers<wgmma_e4m3_by_e5m2>;

/* Promotes: the sums of a stage are scaled and added to fp32: for scales of groups in a table, and since the tensor
 * cores add up products of fp8 with fewer bits than fp32 has. */
template <class Numbers_, bool Promotes_>
struct dense_traits {
  using Numbers = Numbers_;
  static constexpr bool Promotes = Promotes_;
  static constexpr bool integer_sums = Numbers::image == LPGEMM_I8 && !Promotes; /* for integer outputs */
  static constexpr int warps = LPG_DENSE_WARPS, row_tiles = 2, rows = LPG_DENSE_ROWS, Tokens = LPG_DENSE_TOKENS;
  static constexpr int teams = 1, team_warps = warps; /* as tile_parts.cuh wants it */
  static constexpr int x_bytes = Numbers::image == LPGEMM_F16 || Numbers::image == LPGEMM_BF16 ? 2 : 1;
  static constexpr int stage_k = LPG_DENSE_STAGE_BYTES / x_bytes, steps = 4; /* of a stage: products of 32 bytes */
};

/* A warp's sums, as tile_store.cuh takes them if they are fp32. */
template <class T, class Sum>
struct dense_sums {
  Sum sum[T::row_tiles][T::Tokens / 2];

  __device__ void clear() {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int i = 0; i < T::Tokens / 2; i++) sum[r][i] = 0;
    }
  }
};

/* Integers to what is stored: fp32, or, where the output is int32, the same bits. */
template <class T>
__device__ inline void convert_sums(const dense_args &a, const dense_sums<T, int> &from, dense_sums<T, float> &to) {
  const bool keeps = a.epilogue.y_type == LPGEMM_I32;
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
    for (int i = 0; i < T::Tokens / 2; i++) {
      to.sum[r][i] = keeps ? __int_as_float(from.sum[r][i]) : (float)from.sum[r][i];
    }
  }
}
template <class T>
__device__ inline void convert_sums(const dense_args &, const dense_sums<T, float> &from, dense_sums<T, float> &to) {
  to = from;
}

/* The items of a cluster. Its blocks of threads: of the first tokens one for every slice, of the next ones likewise. */
struct dense_work {
  item_bands<LPG_DENSE_BAND> bands;
  int items, first_row_item, share, slices;
  int stride;                /* clusters that there are, which take items in turn */
  int block, rank;           /* whose tokens the block has, and which slice */
  int first_rank;            /* of the slices of these tokens, in the cluster */
  int first_stage, k_stages; /* of the slice */

  __device__ dense_work(const dense_args &a)
      : bands{a.items, a.plan.token_items},
        items(a.items * a.plan.token_items),
        first_row_item(a.first_item),
        share(a.plan.share),
        slices(a.plan.slices),
        stride(gridDim.x / (unsigned)a.plan.cluster) {
    const int in_cluster = blockIdx.x % (unsigned)a.plan.cluster;
    const lpg_shares stages = lpg_shares_of(a.plan.k_stages, slices);
    block = (unsigned)in_cluster / (unsigned)slices;
    rank = in_cluster - block * slices;
    first_rank = in_cluster - rank;
    first_stage = first_of(stages, rank);
    k_stages = reads_product(a.epilogue) ? count_of(stages, rank) : 0;
  }

  __device__ int row_item(int item) const { return first_row_item + bands.row_item(item); }
  __device__ int token_item(int item) const { return bands.token_item(item) * share + block; }

  /* The blocks of the cluster with the same rows and columns, as bits, and the one of them whose tokens are number i.
   */
  __device__ uint16_t sharers() const { return (uint16_t)((share > 1 ? 1 | 1 << slices : 1) << rank); }
  __device__ int sharer(int i) const { return i * slices + rank; }

  /* Of an item's image: where the slice begins. */
  __device__ const uint8_t *image(const dense_args &a, int item) const {
    return a.image + (bands.row_item(item) * (int64_t)a.plan.k_stages + first_stage) * LPG_DENSE_W_BYTES;
  }
};

/* What a row's sums are multiplied by. */
template <class Numbers>
__device__ inline float row_factor(const dense_args &a, int row, int row_of_chunk) {
  if (row >= a.n) return 0.0f;
  if (a.scaling.on_rows) return (float)group_at(a.groups, row, 0).scale;
  if (Numbers::wide_range || a.scaling.in_table) return 1.0f;
  if (a.scaling.finds) return a.numbers[row_of_chunk];
  return ldexpf(1.0f, (a.exponents ? a.exponents[row] : 0) - a.scaling.top);
}

/* Brings the factors of an item's rows to shared memory: those of the warp, which reads no others. */
template <class T>
__device__ inline void load_factors(const dense_args &a, const dense_work &w, int item, int warp, int lane,
                                    float *factors) {
  const int row = warp * T::row_tiles * LPG_TILE_ROWS + lane;
  factors[row] = w.k_stages == 0 ? 0.0f
                                 : row_factor<typename T::Numbers>(a, w.row_item(item) * T::rows + row,
                                                                   w.bands.row_item(item) * T::rows + row);
  __syncwarp();
}
static_assert(2 * LPG_TILE_ROWS == 32, "a lane has a row");

}  // namespace
}  // namespace lpg
