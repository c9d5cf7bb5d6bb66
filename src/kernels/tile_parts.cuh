/* The last step of an item whose K is cut into parts: every team of warps of every block of threads of the cluster puts
 * its sums into its block's shared memory, and each block adds up all parts' of some of the tokens, in a fixed order.
 * The sums lie where the stages were, so the warps that copy take part as well: stages may be filled again only when
 * the sums have been read. */
#pragma once

#include "prim/async.cuh"
#include "prim/barrier.cuh"
#include "prim/cluster.cuh"
#include "tile_store.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

enum { parts_are_multiplied = 1 }; /* the barrier of the block's warps that multiply */

/* What the warps that copy do meanwhile. */
__device__ inline void wait_for_parts() {
  __syncwarp();
  cluster_arrive();
  cluster_wait();
  cluster_arrive_only();
  cluster_wait();
}

/* The sums of all parts: of each block of threads in turn those of its teams, sums[team][token][row]. */
template <class T>
struct cluster_sums {
  static constexpr int stride = lpg_sums_stride(T::rows);
  uint32_t sums; /* address, of the first token to add up */
  int blocks, first_rank;
  bool keeps_integers; /* sums of integers: they are stored as such, as bits; else as fp32 */

  __device__ static float add(float a, float b) {
    return T::integer_sums ? __int_as_float(__float_as_int(a) + __float_as_int(b)) : a + b;
  }
  __device__ float as_stored(float sum) const {
    return T::integer_sums && !keeps_integers ? (float)__float_as_int(sum) : sum;
  }

  __device__ uint32_t place(int block, int team, int token, int row) const {
    return address_in_block(sums + ((team * T::Tokens + token) * stride + row) * 4, first_rank + block);
  }

  template <int Tokens>
  __device__ void ones(float (&sum)[Tokens], int token, int step, int tokens, int row) const {
#pragma unroll
    for (int i = 0; i < Tokens; i++) sum[i] = 0.0f;
#pragma unroll 2
    for (int block = 0; block < blocks; block++) {
#pragma unroll
      for (int team = 0; team < T::teams; team++) {
#pragma unroll
        for (int i = 0; i < Tokens; i++) {
          sum[i] = add(sum[i], load_one_at(place(block, team, min(token + i * step, tokens - 1), row)));
        }
      }
    }
#pragma unroll
    for (int i = 0; i < Tokens; i++) sum[i] = as_stored(sum[i]);
  }

  __device__ float one(int token, int row) const {
    float sum[1];
    ones(sum, token, 1, token + 1, row);
    return sum[0];
  }

  template <int Tokens>
  __device__ void fours(float4 (&sum)[Tokens], int token, int step, int tokens, int row) const {
#pragma unroll
    for (int i = 0; i < Tokens; i++) sum[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 2
    for (int block = 0; block < blocks; block++) {
#pragma unroll
      for (int team = 0; team < T::teams; team++) {
#pragma unroll
        for (int i = 0; i < Tokens; i++) {
          const float4 one = load_four_at(place(block, team, min(token + i * step, tokens - 1), row));
          sum[i] = make_float4(add(sum[i].x, one.x), add(sum[i].y, one.y), add(sum[i].z, one.z), add(sum[i].w, one.w));
        }
      }
    }
#pragma unroll
    for (int i = 0; i < Tokens; i++) {
      sum[i] = make_float4(as_stored(sum[i].x), as_stored(sum[i].y), as_stored(sum[i].z), as_stored(sum[i].w));
    }
  }
};

template <class T, class Args, class Work, class Product>
__device__ inline void store_parts(const Args &a, const Work &w, int item, const Product &product, const float *factors,
                                   uint8_t *memory) {
  const int first_token = w.token_item(item) * T::Tokens, tokens = max(min(T::Tokens, a.m - first_token), 0);
  const int warp = threadIdx.x / 32, row = warp % T::team_warps * T::row_tiles * LPG_TILE_ROWS;
  float *const sums = (float *)(memory + a.plan.sums);
  threads_meet(parts_are_multiplied, 32 * T::warps); /* now the stages have been read */
#pragma unroll 1
  for (int first = 0; first < tokens; first += LPG_PASS_TOKENS) {
    put_sums<T>(product, sums + (warp / T::team_warps * T::Tokens + first) * cluster_sums<T>::stride,
                cluster_sums<T>::stride, row, first);
  }
  __syncwarp();
  cluster_arrive();
  cluster_wait();
  const int own = (int)((unsigned)(tokens + a.plan.slices - 1) / (unsigned)a.plan.slices), from = w.rank * own;
  const cluster_sums<T> all = {shared_address(sums) + from * cluster_sums<T>::stride * 4, a.plan.slices, w.first_rank,
                               a.epilogue.y_type == LPGEMM_I32};
  store_sums<T, T::rows, 32 * T::warps>(a, all, min(own, tokens - from), threadIdx.x, factors, first_token + from,
                                        w.row_item(item) * T::rows);
  __syncwarp();
  cluster_arrive_only();
  cluster_wait();
}

}  // namespace
}  // namespace lpg
