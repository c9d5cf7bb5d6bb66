/* Split-K reduction of a work tile, through the shared memory of the cluster.
 *
 * K is cut among the CTAs of a cluster, and in a CTA among its teams of consumer warps. Each team writes its partial
 * sums to its CTA's shared memory. After a cluster barrier each CTA adds up the partials of all parts for some of the
 * rows of X, in a fixed order, and stores them. A second cluster barrier ends the reading. The partials may lie where
 * the stages were: so no stage may be filled between the two barriers, and the producer warps wait at both. */
#pragma once

#include "../prim/async.cuh"
#include "../prim/barrier.cuh"
#include "../prim/cluster.cuh"
#include "../prim/named_barriers.h"
#include "store.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The producer warps take part in both cluster barriers. */
__device__ inline void wait_for_parts() {
  __syncwarp();
  cluster_arrive();
  cluster_wait();
  cluster_arrive_only();
  cluster_wait();
}

/* Reads the sums of all parts: those of each CTA in turn, and of each of its Parts, sums[part][row of X][row]. */
template <class T, int Parts>
struct cluster_sums {
  static constexpr int stride = lpg_sums_stride(T::tile_n);
  uint32_t sums; /* address of the first row of X that this CTA adds up */
  int ctas, first_rank;
  bool keeps_integers; /* integer sums: store them as they are (as bits); else as fp32 */

  __device__ static float add(float a, float b) {
    return T::integer_sums ? __int_as_float(__float_as_int(a) + __float_as_int(b)) : a + b;
  }
  __device__ float as_stored(float sum) const {
    return T::integer_sums && !keeps_integers ? (float)__float_as_int(sum) : sum;
  }

  __device__ uint32_t place(int cta, int part, int x_row, int row) const {
    return address_in_block(sums + ((part * T::TileM + x_row) * stride + row) * 4, first_rank + cta);
  }

  /* As own_sums::take() in store.cuh, but rows from x_rows on repeat the last: there is no room behind a CTA's share.
   */
  template <int Count, int Columns>
  __device__ void take(float (&sum)[Count][Columns], int x_row, int step, int x_rows, int row) const {
#pragma unroll
    for (int i = 0; i < Count * Columns; i++) sum[i / Columns][i % Columns] = 0.0f;
#pragma unroll 2
    for (int cta = 0; cta < ctas; cta++) {
#pragma unroll
      for (int part = 0; part < Parts; part++) {
#pragma unroll
        for (int i = 0; i < Count; i++) {
          const uint32_t from = place(cta, part, min(x_row + i * step, x_rows - 1), row);
          if constexpr (Columns == 4) {
            const float4 four = load_four_at(from);
            const float one[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (int c = 0; c < 4; c++) sum[i][c] = add(sum[i][c], one[c]);
          } else {
            sum[i][0] = add(sum[i][0], load_one_at(from));
          }
        }
      }
    }
#pragma unroll
    for (int i = 0; i < Count * Columns; i++) {
      sum[i / Columns][i % Columns] = as_stored(sum[i / Columns][i % Columns]);
    }
  }
};

/* Writes a warp's sums of part `part` of its CTA to shared memory. */
template <class T, class Args, class Product>
__device__ inline void put_part(const Args &a, const Product &product, int part, int x_rows, uint8_t *memory) {
  constexpr int stride = lpg_sums_stride(T::tile_n);
  const int row = threadIdx.x / 32 % T::team_warps * T::row_tiles * LPG_TILE_ROWS;
  float *const sums = (float *)(memory + a.plan.sums) + part * T::TileM * stride;
#pragma unroll 1
  for (int first = 0; first < x_rows; first += LPG_PASS_ROWS) {
    put_sums<T>(product, sums + first * stride, stride, row, first);
  }
}

/* Adds up what all CTAs of the cluster have written, and stores the outputs. */
template <class T, int Parts, class Args, class Work>
__device__ inline void add_parts(const Args &a, const Work &w, int tile, int x_rows, const float *factors,
                                 uint8_t *memory) {
  __syncwarp();
  cluster_arrive();
  cluster_wait();
  const int own = (int)((unsigned)(x_rows + a.plan.split_k - 1) / (unsigned)a.plan.split_k), from = w.rank * own;
  const uint32_t sums = shared_address(memory + a.plan.sums);
  tile_place place = place_of<T>(a, w, tile);
  place.m += from;
  const cluster_sums<T, Parts> all = {sums + from * lpg_sums_stride(T::tile_n) * 4, a.plan.split_k, w.first_rank,
                                      a.epilogue.y_type == LPGEMM_I32};
  store_rows<T, T::tile_n, 32 * T::warps, Work>(a, all, min(own, x_rows - from), threadIdx.x, factors, place);
  __syncwarp();
  cluster_arrive_only();
  cluster_wait();
}

template <class T, class Args, class Work>
__device__ inline int tile_x_rows(const Args &a, const Work &w, int tile) {
  const tile_place place = place_of<T>(a, w, tile);
  return max(min(T::TileM, place.m_end - place.m), 0);
}

template <class T, class Args, class Work, class Product>
__device__ inline void store_parts(const Args &a, const Work &w, int tile, const Product &product, const float *factors,
                                   uint8_t *memory) {
  const int x_rows = tile_x_rows<T>(a, w, tile);
  threads_meet(parts_are_multiplied, 32 * T::warps); /* all warps have read the last stages */
  put_part<T>(a, product, threadIdx.x / 32 / T::team_warps, x_rows, memory);
  add_parts<T, T::teams>(a, w, tile, x_rows, factors, memory);
}

/* The same for a CTA with one team that has multiplied two parts. */
template <class T, class Args, class Work, class Product>
__device__ inline void store_two_parts(const Args &a, const Work &w, int tile, const Product &first,
                                       const Product &second, const float *factors, uint8_t *memory) {
  static_assert(T::teams == 1, "parts are one team's");
  const int x_rows = tile_x_rows<T>(a, w, tile);
  threads_meet(parts_are_multiplied, 32 * T::warps);
  put_part<T>(a, first, 0, x_rows, memory);
  put_part<T>(a, second, 1, x_rows, memory);
  add_parts<T, 2>(a, w, tile, x_rows, factors, memory);
}

}  // namespace
}  // namespace lpg
