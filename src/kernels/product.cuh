/* How the wide kernels multiply a step of 16 columns: weights in registers by a stage of X in shared memory. Sums lie in
 * registers alike: of row tile r and tokens 8 j .. 8 j + 7, D of the tensor cores is sum[r][4 j .. 4 j + 3]. */
#pragma once

#include "activation_type.cuh"
#include "prim/async.cuh"
#include "prim/barrier.cuh"
#include "prim/bulk.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

template <class T>
struct product_sums {
  float sum[T::row_tiles][T::Tokens / 2];

  __device__ void clear() {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int i = 0; i < T::Tokens / 2; i++) sum[r][i] = 0.0f;
    }
  }
};

/* Four warps at once, beside the threads (sm_90a). */
template <class T>
struct wgmma_product : product_sums<T> {
  static constexpr int wide_registers = 232, few_registers = 40; /* of who multiplies, of who copies */

  static constexpr int load_arrivals = 1;

  /* A warp brings a stage of weights: each of the first row_tiles lanes so many bytes. */
  __device__ static void load_stage(uint32_t to, const uint8_t *from, int bytes, uint32_t full, int lane,
                                    int row_tiles) {
    __syncwarp();
    if (lane == 0) arrive_with_bytes(full, bytes * row_tiles);
    __syncwarp();
    if (lane < row_tiles && bytes > 0) copy_bulk(to, from, bytes, full);
  }

  /* When this returns, the step before is done: its weights' registers and its X are free. */
  __device__ void multiply(const uint32_t (&weights)[T::row_tiles][4], uint32_t x, int step, int) {
    wgmma_fence();
    const uint64_t rows = swizzled_rows(x + step * 32);
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) T::X::wgmma::multiply(this->sum[r], weights[r], rows);
    wgmma_commit();
    wgmma_wait<1>();
  }

  __device__ void finish() { wgmma_wait<0>(); }
};

/* A warp for itself (sm_80 and later). */
template <class T>
struct mma_product : product_sums<T> {
  static constexpr int wide_registers = 0, few_registers = 0;
  static constexpr int load_arrivals = 32;

  __device__ static void load_stage(uint32_t to, const uint8_t *from, int bytes, uint32_t full, int lane,
                                    int row_tiles) {
    for (int r = 0; r < row_tiles; r++) {
      const uint32_t tile = __shfl_sync(0xffffffffu, to, r);
      const uint8_t *const codes = (const uint8_t *)__shfl_sync(0xffffffffu, (uint64_t)from, r);
      for (int at = lane * 16; at < bytes; at += 512) copy16_async(tile + at, codes + at);
    }
    arrive_when_copied(full);
  }

  __device__ void multiply(const uint32_t (&weights)[T::row_tiles][4], uint32_t x, int step, int lane) {
    const int row = lane % 8 + lane / 16 * 8, piece = step * 2 + lane / 8 % 2;
    const uint32_t from = x + row * 128 + ((piece ^ row % 8) << 4);
#pragma unroll
    for (int j = 0; j < T::Tokens / 16; j++) {
      uint32_t b[4]; /* of 16 tokens */
      load_matrices(keep(from + j * 16 * 128), b);
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) {
        float(&sum)[T::Tokens / 2] = this->sum[r];
        T::X::mma::multiply(*(float(*)[4])&sum[8 * j], weights[r], b[0], b[1]);
        T::X::mma::multiply(*(float(*)[4])&sum[8 * j + 4], weights[r], b[2], b[3]);
      }
    }
  }

  __device__ void finish() {}
};

}  // namespace
}  // namespace lpg
