/* The last step of an item whose K is cut into parts: every team of warps of every block of threads of the cluster puts
 * its sums into its block's shared memory, and each block adds up all parts' of some of the tokens, in a fixed order.
 * The sums lie where the stages were, so the warps that copy take part as well: stages may be filled again only when
 * the sums have been read. */
#pragma once

#include "../prim/async.cuh"
#include "../prim/barrier.cuh"
#include "../prim/cluster.cuh"
#include "store.cuh"

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

/* The sums of all parts: of each block of threads in turn those of its Parts, sums[part][token][row]. */
template <class T, int Parts>
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

  __device__ uint32_t place(int block, int part, int token, int row) const {
    return address_in_block(sums + ((part * T::Tokens + token) * stride + row) * 4, first_rank + block);
  }

  template <int Tokens>
  __device__ void ones(float (&sum)[Tokens], int token, int step, int tokens, int row) const {
#pragma unroll
    for (int i = 0; i < Tokens; i++) sum[i] = 0.0f;
#pragma unroll 2
    for (int block = 0; block < blocks; block++) {
#pragma unroll
      for (int part = 0; part < Parts; part++) {
#pragma unroll
        for (int i = 0; i < Tokens; i++) {
          sum[i] = add(sum[i], load_one_at(place(block, part, min(token + i * step, tokens - 1), row)));
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
      for (int part = 0; part < Parts; part++) {
#pragma unroll
        for (int i = 0; i < Tokens; i++) {
          const float4 one = load_four_at(place(block, part, min(token + i * step, tokens - 1), row));
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

/* Puts a warp's sums of a part where the stages were; part: of the block's. */
template <class T, class Args, class Product>
__device__ inline void put_part(const Args &a, const Product &product, int part, int tokens, uint8_t *memory) {
  constexpr int stride = lpg_sums_stride(T::rows);
  const int row = threadIdx.x / 32 % T::team_warps * T::row_tiles * LPG_TILE_ROWS;
  float *const sums = (float *)(memory + a.plan.sums) + part * T::Tokens * stride;
#pragma unroll 1
  for (int first = 0; first < tokens; first += LPG_PASS_TOKENS) {
    put_sums<T>(product, sums + first * stride, stride, row, first);
  }
}

/* Adds up what all blocks of the cluster have put there, and stores it. */
template <class T, int Parts, class Args, class Work>
__device__ inline void add_parts(const Args &a, const Work &w, int item, int tokens, const float *factors,
                                 uint8_t *memory) {
  __syncwarp();
  cluster_arrive();
  cluster_wait();
  const int own = (int)((unsigned)(tokens + a.plan.slices - 1) / (unsigned)a.plan.slices), from = w.rank * own;
  const uint32_t sums = shared_address(memory + a.plan.sums);
  const cluster_sums<T, Parts> all = {sums + from * lpg_sums_stride(T::rows) * 4, a.plan.slices, w.first_rank,
                                      a.epilogue.y_type == LPGEMM_I32};
  store_sums<T, T::rows, 32 * T::warps>(a, all, min(own, tokens - from), threadIdx.x, factors,
                                        w.token_item(item) * T::Tokens + from, w.row_item(item) * T::rows);
  __syncwarp();
  cluster_arrive_only();
  cluster_wait();
}

template <class T, class Args, class Work>
__device__ inline int item_tokens(const Args &a, const Work &w, int item) {
  return max(min(T::Tokens, a.m - w.token_item(item) * T::Tokens), 0);
}

template <class T, class Args, class Work, class Product>
__device__ inline void store_parts(const Args &a, const Work &w, int item, const Product &product, const float *factors,
                                   uint8_t *memory) {
  const int tokens = item_tokens<T>(a, w, item);
  threads_meet(parts_are_multiplied, 32 * T::warps); /* now the stages have been read */
  put_part<T>(a, product, threadIdx.x / 32 / T::team_warps, tokens, memory);
  add_parts<T, T::teams>(a, w, item, tokens, factors, memory);
}

/* The same where a block's one team has had two parts. */
template <class T, class Args, class Work, class Product>
__device__ inline void store_two_parts(const Args &a, const Work &w, int item, const Product &first,
                                       const Product &second, const float *factors, uint8_t *memory) {
  static_assert(T::teams == 1, "parts are one team's");
  const int tokens = item_tokens<T>(a, w, item);
  threads_meet(parts_are_multiplied, 32 * T::warps);
  put_part<T>(a, first, 0, tokens, memory);
  put_part<T>(a, second, 1, tokens, memory);
  add_parts<T, 2>(a, w, item, tokens, factors, memory);
}

}  // namespace
}  // namespace lpg
