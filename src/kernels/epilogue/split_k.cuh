/* The last step of a work tile whose K is cut into parts: every team of warps of every CTA of the cluster puts
 * its sums into its block's shared memory, and each block adds up all parts' of some of the rows of X, in a fixed
 * order. The sums lie where the stages were, so the producer warps take part as well: stages may be filled again only
 * when the sums have been read. */
#pragma once

#include "../prim/async.cuh"
#include "../prim/barrier.cuh"
#include "../prim/cluster.cuh"
#include "store.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

enum { parts_are_multiplied = 1 }; /* the barrier of the block's consumer warps */

/* What the producer warps do meanwhile. */
__device__ inline void wait_for_parts() {
  __syncwarp();
  cluster_arrive();
  cluster_wait();
  cluster_arrive_only();
  cluster_wait();
}

/* The sums of all parts: of each CTA in turn those of its Parts, sums[part][row of X][row]. */
template <class T, int Parts>
struct cluster_sums {
  static constexpr int stride = lpg_sums_stride(T::tile_n);
  uint32_t sums; /* address, of the first row of X to add up */
  int blocks, first_rank;
  bool keeps_integers; /* sums of integers: they are stored as such, as bits; else as fp32 */

  __device__ static float add(float a, float b) {
    return T::integer_sums ? __int_as_float(__float_as_int(a) + __float_as_int(b)) : a + b;
  }
  __device__ float as_stored(float sum) const {
    return T::integer_sums && !keeps_integers ? (float)__float_as_int(sum) : sum;
  }

  __device__ uint32_t place(int block, int part, int x_row, int row) const {
    return address_in_block(sums + ((part * T::TileM + x_row) * stride + row) * 4, first_rank + block);
  }

  template <int TileM>
  __device__ void ones(float (&sum)[TileM], int x_row, int step, int x_rows, int row) const {
#pragma unroll
    for (int i = 0; i < TileM; i++) sum[i] = 0.0f;
#pragma unroll 2
    for (int block = 0; block < blocks; block++) {
#pragma unroll
      for (int part = 0; part < Parts; part++) {
#pragma unroll
        for (int i = 0; i < TileM; i++) {
          sum[i] = add(sum[i], load_one_at(place(block, part, min(x_row + i * step, x_rows - 1), row)));
        }
      }
    }
#pragma unroll
    for (int i = 0; i < TileM; i++) sum[i] = as_stored(sum[i]);
  }

  __device__ float one(int x_row, int row) const {
    float sum[1];
    ones(sum, x_row, 1, x_row + 1, row);
    return sum[0];
  }

  template <int TileM>
  __device__ void fours(float4 (&sum)[TileM], int x_row, int step, int x_rows, int row) const {
#pragma unroll
    for (int i = 0; i < TileM; i++) sum[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 2
    for (int block = 0; block < blocks; block++) {
#pragma unroll
      for (int part = 0; part < Parts; part++) {
#pragma unroll
        for (int i = 0; i < TileM; i++) {
          const float4 one = load_four_at(place(block, part, min(x_row + i * step, x_rows - 1), row));
          sum[i] = make_float4(add(sum[i].x, one.x), add(sum[i].y, one.y), add(sum[i].z, one.z), add(sum[i].w, one.w));
        }
      }
    }
#pragma unroll
    for (int i = 0; i < TileM; i++) {
      sum[i] = make_float4(as_stored(sum[i].x), as_stored(sum[i].y), as_stored(sum[i].z), as_stored(sum[i].w));
    }
  }
};

/* Puts a warp's sums of a part where the stages were; part: of the block's. */
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

/* Adds up what all blocks of the cluster have put there, and stores it. */
template <class T, int Parts, class Args, class Work>
__device__ inline void add_parts(const Args &a, const Work &w, int tile, int x_rows, const float *factors,
                                 uint8_t *memory) {
  __syncwarp();
  cluster_arrive();
  cluster_wait();
  const int own = (int)((unsigned)(x_rows + a.plan.split_k - 1) / (unsigned)a.plan.split_k), from = w.rank * own;
  const uint32_t sums = shared_address(memory + a.plan.sums);
  const cluster_sums<T, Parts> all = {sums + from * lpg_sums_stride(T::tile_n) * 4, a.plan.split_k, w.first_rank,
                                      a.epilogue.y_type == LPGEMM_I32};
  store_sums<T, T::tile_n, 32 * T::warps>(a, all, min(own, x_rows - from), threadIdx.x, factors,
                                          w.m_tile(tile) * T::TileM + from, w.n_tile(tile) * T::tile_n);
  __syncwarp();
  cluster_arrive_only();
  cluster_wait();
}

template <class T, class Args, class Work>
__device__ inline int tile_tokens(const Args &a, const Work &w, int tile) {
  return max(min(T::TileM, a.m - w.m_tile(tile) * T::TileM), 0);
}

template <class T, class Args, class Work, class Product>
__device__ inline void store_parts(const Args &a, const Work &w, int tile, const Product &product, const float *factors,
                                   uint8_t *memory) {
  const int x_rows = tile_tokens<T>(a, w, tile);
  threads_meet(parts_are_multiplied, 32 * T::warps); /* now the stages have been read */
  put_part<T>(a, product, threadIdx.x / 32 / T::team_warps, x_rows, memory);
  add_parts<T, T::teams>(a, w, tile, x_rows, factors, memory);
}

/* The same where a block's one team has had two parts. */
template <class T, class Args, class Work, class Product>
__device__ inline void store_two_parts(const Args &a, const Work &w, int tile, const Product &first,
                                       const Product &second, const float *factors, uint8_t *memory) {
  static_assert(T::teams == 1, "parts are one team's");
  const int x_rows = tile_tokens<T>(a, w, tile);
  threads_meet(parts_are_multiplied, 32 * T::warps);
  put_part<T>(a, first, 0, x_rows, memory);
  put_part<T>(a, second, 1, x_rows, memory);
  add_parts<T, 2>(a, w, tile, x_rows, factors, memory);
}

}  // namespace
}  // namespace lpg
