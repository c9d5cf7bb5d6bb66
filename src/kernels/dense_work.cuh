/* What the kernels that multiply expanded weights have in common: their arguments, and who does which items. */
#pragma once

#include "activation_type.cuh"
#include "blocks.cuh"
#include "expand.h"
#include "groups.cuh"
#include "tile_store.cuh"
#include "x_rows.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct dense_args {
  lpg_dense_plan plan;
  const uint8_t *image; /* of the chunk */
  lpg_expand_scaling scaling;
  const float *found;      /* scaling.finds: what comes off the sums of the chunk's rows */
  const int8_t *exponents; /* of rows; NULL: all 0 */
  groups_args groups;
  int32_t first_item, items;  /* of rows: the chunk's first, and how many it has */
  int32_t n, m, k;
  int64_t ldx;
  const void *x;
  epilogue_args epilogue;
};

template <class X_>
struct dense_traits {
  using X = X_;
  static constexpr int warps = LPG_DENSE_WARPS, row_tiles = 2, rows = LPG_DENSE_ROWS, Tokens = LPG_DENSE_TOKENS;
  static constexpr int x_bytes = 2, stage_k = LPG_DENSE_STAGE_BYTES / x_bytes, steps = stage_k / LPG_STEP_K;
};

/* A warp's sums as tile_store.cuh takes them. */
template <class T>
struct dense_sums {
  float sum[T::row_tiles][T::Tokens / 2];

  __device__ void clear() {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int i = 0; i < T::Tokens / 2; i++) sum[r][i] = 0.0f;
    }
  }
};

/* The items of a cluster; each of its blocks of threads has other tokens. */
struct dense_work {
  item_bands<LPG_DENSE_BAND> bands;
  int items, first_row_item, cluster, block; /* block: in the cluster */
  int k_stages;
  static constexpr int rank = 0; /* nobody shares an item's sums */

  __device__ dense_work(const dense_args &a)
      : bands{a.items, a.plan.token_items}, items(a.items * a.plan.token_items), first_row_item(a.first_item),
        cluster(a.plan.cluster), block(blockIdx.x % (unsigned)a.plan.cluster),
        k_stages(reads_product(a.epilogue) ? a.plan.k_stages : 0) {}

  __device__ int row_item(int item) const { return first_row_item + bands.row_item(item); }
  __device__ int token_item(int item) const { return bands.token_item(item) * cluster + block; }

  /* Of an item's image: where it begins. */
  __device__ const uint8_t *image(const dense_args &a, int item) const {
    return a.image + bands.row_item(item) * ((int64_t)a.plan.k_stages * LPG_DENSE_W_BYTES);
  }
};

/* What a row's sums are multiplied by. */
template <class X>
__device__ inline float row_factor(const dense_args &a, int row, int row_of_chunk) {
  if (row >= a.n) return 0.0f;
  if (a.scaling.on_rows) return (float)group_at(a.groups, row, 0).scale;
  if (X::exponent == 8) return 1.0f;
  if (a.scaling.finds) return a.found[row_of_chunk];
  return ldexpf(1.0f, (a.exponents ? a.exponents[row] : 0) - a.scaling.top);
}

/* Brings the factors of an item's rows to shared memory: those of the warp, which reads no others. */
template <class T>
__device__ inline void load_factors(const dense_args &a, const dense_work &w, int item, int warp, int lane,
                                    float *factors) {
  const int row = warp * T::row_tiles * LPG_TILE_ROWS + lane;
  factors[row] = row_factor<typename T::X>(a, w.row_item(item) * T::rows + row, w.bands.row_item(item) * T::rows + row);
  __syncwarp();
}
static_assert(2 * LPG_TILE_ROWS == 32, "a lane has a row");

}  // namespace
}  // namespace lpg
