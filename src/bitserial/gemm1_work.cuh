/* gemm1's arguments, its work tiles, and the way from their sums to outputs. */
#pragma once

#include "../kernels/epilogue/epilogue.cuh"
#include "../kernels/operand/x_type.cuh"
#include "../kernels/plan/scheduler.cuh"
#include "gemm1_images.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct gemm1_args {
  lpg_gemm1_plan plan;
  const uint8_t *x_image, *w_image; /* images of all rows of X; of the chunk of W */
  const int32_t *x_sums, *scale_data;
  int32_t first_tile, tiles; /* tiles of 256 rows of W: the chunk's first, and how many it has */
  int32_t n, m;
  int32_t step; /* step of W times step of X */
  epilogue_args epilogue;
};

/* The work tiles of a cluster. Its CTAs have the same rows of W and other rows of X. */
struct gemm1_work {
  tile_bands<LPG_GEMM1_BAND> bands;
  int tiles, cluster, rank; /* rank: of the CTA in its cluster */
  int p, q, k_stages;
  bool reads;

  __device__ gemm1_work(const gemm1_args &a)
      : bands{a.tiles, a.plan.m_tiles},
        tiles(a.tiles * a.plan.m_tiles),
        cluster(a.plan.cluster),
        rank(blockIdx.x % (unsigned)a.plan.cluster),
        p(a.plan.p),
        q(a.plan.q),
        k_stages(a.plan.k_stages),
        reads(reads_product(a.epilogue)) {}

  __device__ int m_tile(int tile) const { return bands.m_tile(tile) * cluster + rank; }

  /* At a level i + j, the planes i of W for which j = level - i is a plane of X. */
  __device__ int first_plane(int level) const { return max(level - (q - 1), 0); }
  __device__ int last_plane(int level) const { return min(level, p - 1); }
  __device__ int levels() const { return reads ? p + q - 1 : 0; }
};

/* Stores a warp's 16 rows of X by 256 rows of W: sum[4 j + i] is of row 8 j + 2 t + i % 2 of W and of row g + 8 (i / 2)
 * of X. */
struct gemm1_store {
  const gemm1_args &a;
  const int32_t *scale_data; /* of the work tile's rows of W, in shared memory */
  uint8_t *area;             /* the warp's own: 16 rows of X, LPG_GEMM1_PITCH bytes apart */
  int m, n, lane;            /* m: the warp's first row of X; n: the work tile's first row of W */
  int32_t x_sum[2];          /* sums of the stored codes of the lane's rows of X */

  __device__ gemm1_store(const gemm1_args &args, const int32_t *scale_data, uint8_t *area, int m, int n, int lane)
      : a(args), scale_data(scale_data), area(area), m(m), n(n), lane(lane) {
#pragma unroll
    for (int i = 0; i < 2; i++) x_sum[i] = m + lane / 4 + 8 * i < a.m ? a.x_sums[m + lane / 4 + 8 * i] : 0;
  }

  /* Value `which` (gemm1_images.h) of row 8 j + 2 t and the next one. */
  __device__ int2 values_of(int which, int j) const {
    return *(const int2 *)(scale_data + which * LPG_GEMM1_TILE_N + 8 * j + lane % 4 * 2);
  }

  /* Sums of products of values from sums of products of stored codes, for two rows whose first two values are `own` and
   * `by_sum`; upper: row g + 8 of X instead of g. */
  __device__ int2 whole(const int (&sum)[128], int j, int upper, int2 own, int2 by_sum) const {
    const auto of = [&](int s, int first, int second) {
      return (int)((unsigned)a.step * (unsigned)s + (unsigned)first + (unsigned)second * (unsigned)x_sum[upper]);
    };
    return make_int2(of(sum[4 * j + 2 * upper], own.x, by_sum.x), of(sum[4 * j + 2 * upper + 1], own.y, by_sum.y));
  }

  /* 16-bit outputs that are only scaled: 64 rows of W at a time, 128 bytes of a row of X. */
  template <class X>
  __device__ void store_halves(const int (&sum)[128]) const {
    const epilogue_args &e = a.epilogue;
    uint16_t *const y = (uint16_t *)e.y;
    float x_scale[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      x_scale[i] = e.alpha * e.global_scale * (m + lane / 4 + 8 * i < a.m ? x_scale_of(e, m + lane / 4 + 8 * i) : 0.0f);
    }
#pragma unroll
    for (int part = 0; part < 4; part++) {
      __syncwarp();
#pragma unroll
      for (int j = 0; j < 8; j++) {
        const int2 own = values_of(0, part * 8 + j), by_sum = values_of(1, part * 8 + j);
        const int2 bits = values_of(2, part * 8 + j);
        const float2 scale = make_float2(__int_as_float(bits.x), __int_as_float(bits.y));
#pragma unroll
        for (int upper = 0; upper < 2; upper++) {
          const int2 v = whole(sum, part * 8 + j, upper, own, by_sum);
          const auto scaled = [&](int x, float f) { return (float)x * f * x_scale[upper]; };
          *(uint32_t *)(area + (lane / 4 + 8 * upper) * LPG_GEMM1_PITCH + (8 * j + lane % 4 * 2) * 2) =
              X::round_two(scaled(v.x, scale.x), scaled(v.y, scale.y));
        }
      }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int x_row = i * 4 + lane / 8;
        if (m + x_row < a.m) {
          *(uint4 *)(y + (int64_t)(m + x_row) * e.ldy + n + part * 64 + lane % 8 * 8) =
              *(const uint4 *)(area + x_row * LPG_GEMM1_PITCH + lane % 8 * 16);
        }
      }
    }
  }

  /* All others: 32 rows of W at a time, one a lane. */
  __device__ void store_any(const int (&sum)[128]) const {
    const epilogue_args &e = a.epilogue;
#pragma unroll
    for (int part = 0; part < 8; part++) {
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 8; i++) {
        *(int2 *)(area + (lane / 4 + 8 * (i % 2)) * LPG_GEMM1_PITCH + (i / 2 * 8 + lane % 4 * 2) * 4) =
            whole(sum, part * 4 + i / 2, i % 2, values_of(0, part * 4 + i / 2), values_of(1, part * 4 + i / 2));
      }
      __syncwarp();
      const int row = n + part * 32 + lane;
      const float scale = __int_as_float(scale_data[2 * LPG_GEMM1_TILE_N + part * 32 + lane]);
#pragma unroll 1
      for (int x_row = 0; row < a.n && x_row < 16 && m + x_row < a.m; x_row++) {
        const int v = *(const int *)(area + x_row * LPG_GEMM1_PITCH + lane * 4);
        if (e.y_type == LPGEMM_I32) {
          store_integer(e, m + x_row, row, v);
        } else {
          store_real(e, m + x_row, row, (float)v * scale);
        }
      }
    }
  }

  __device__ void store(const int (&sum)[128]) const {
    const epilogue_args &e = a.epilogue;
    const bool whole_vectors = e.only_scales && ((uintptr_t)e.y | e.ldy * 2) % 16 == 0 && n + LPG_GEMM1_TILE_N <= a.n;
    if (whole_vectors && e.y_type == LPGEMM_F16) {
      store_halves<f16_x>(sum);
    } else if (whole_vectors && e.y_type == LPGEMM_BF16) {
      store_halves<bf16_x>(sum);
    } else {
      store_any(sum);
    }
  }
};
static_assert(LPG_GEMM1_PITCH >= 64 * 2 && LPG_GEMM1_PITCH >= 32 * 4, "the area holds a part");

}  // namespace
}  // namespace lpg
