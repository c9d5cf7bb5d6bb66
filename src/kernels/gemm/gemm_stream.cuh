/* gemm: stream-K, how the parts of a work tile come together that clusters have after dealing out its k blocks.
 *
 * A cluster has a run of k blocks: the end of one work tile, perhaps whole ones, and the beginning of another. Who has
 * a work tile's beginning stores it, after adding the sums of the clusters that come next, in their order. These have
 * multiplied their parts first of all, so nobody waits long, and who is waited for does not wait itself.
 *
 * A warp's sums lie in the workspace as its lanes hold them: the same warp of the other CTA has the same rows. */
#pragma once

#include "../prim/flag.cuh"
#include "gemm_mma.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Where a CTA's warp has its sums and its flag. */
template <class T>
struct stream_slot {
  float4 *sums; /* of the lane */
  uint64_t *flag;

  __device__ stream_slot(const gemm_args &a, int cta) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    static_assert(T::warps <= LPG_GEMM_STREAM_FLAGS && T::tile_n * T::TileM * 4 <= LPG_GEMM_STREAM_SUMS, "they fit");
    sums = a.stream_sums + (int64_t)cta * (LPG_GEMM_STREAM_SUMS / 16) + warp * (T::TileM / 8 * 32) + lane;
    flag = a.stream_flags + cta * LPG_GEMM_STREAM_FLAGS + warp;
  }

  /* Of the j-th eight rows of X. */
  __device__ float4 *at(int j) const { return sums + j * 32; }
};

template <class T>
__device__ inline void store_partials(const gemm_args &a, const gemm_product<T> &product, int x_rows) {
  const stream_slot<T> own(a, blockIdx.x);
#pragma unroll
  for (int j = 0; j < T::TileM / 8; j++) {
    if (8 * j >= x_rows) break;
    const float *const sum = &product.sum[0][4 * j];
    __stcg(own.at(j), make_float4(sum[0], sum[1], sum[2], sum[3]));
  }
  __syncwarp();
  if (threadIdx.x % 32 == 0) raise_flag(own.flag, a.stream_number);
}

/* Adds another CTA's sums, some rows of X at a time: their loads are under way together. */
template <class T>
__device__ inline void add_partials_of(const stream_slot<T> &other, int x_rows, gemm_product<T> &product) {
  constexpr int batch = 4; /* eights of rows of X */
#pragma unroll
  for (int first = 0; first < T::TileM / 8; first += batch) {
    float4 part[batch];
    if (8 * first >= x_rows) break;
#pragma unroll
    for (int j = 0; j < batch; j++) {
      part[j] = 8 * (first + j) < x_rows ? __ldcg(other.at(first + j)) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
#pragma unroll
    for (int j = 0; j < batch; j++) {
      float *const sum = &product.sum[0][4 * (first + j)];
      sum[0] += part[j].x;
      sum[1] += part[j].y;
      sum[2] += part[j].z;
      sum[3] += part[j].w;
    }
  }
}

/* Adds the sums of the work tile's k blocks from `block` on. */
template <class T>
__device__ inline void add_partials(const gemm_args &a, const gemm_work &w, int tile, int block, int x_rows,
                                    gemm_product<T> &product) {
  const int first = (tile - w.tiles) * a.plan.blocks, end = first + a.plan.blocks;
  int unit = first + block;
#pragma unroll 1
  for (int cluster = w.first_tile + 1; unit < end; cluster++) {
    const stream_slot<T> other(a, cluster * w.multicast + w.multicast_rank);
    wait_flag(other.flag, a.stream_number);
    add_partials_of<T>(other, x_rows, product);
    __syncwarp();
    if (threadIdx.x % 32 == 0) *other.flag = 0; /* a graph raises it to the same number again */
    unit = first_of(a.plan.stream, cluster + 1);
  }
}

}  // namespace
}  // namespace lpg
