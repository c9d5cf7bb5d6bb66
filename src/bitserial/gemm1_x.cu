/* Turns X, one code a byte, into images of bit planes (gemm1_images.h).
 *
 *   a CTA takes a row of X; its warps take 1024 k in turn:
 *     16 bytes a lane, two's complement turned to offset binary
 *     the lanes of a quad exchange what they hold of 128 k; then a lane makes one word of each plane
 *   then the sum of the row's stored codes */
#include "../cuda/cuda.h"
#include "../kernels/operand/bit_planes.h"
#include "gemm1_images.h"
#include "gemm1_x.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct x_planes_args {
  gemm1_x_codes x;
  int32_t k_stages, q;
  uint8_t *image;
  int32_t *sums;
};

constexpr int x_warps = 4;

/* A transposition in a quad: word `own` of lane `from` becomes word `from` of lane `own`. */
__device__ inline void transpose_quad(uint32_t *word, int t) {
#pragma unroll
  for (int step = 1; step < 4; step *= 2) {
    const bool upper = t & step;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (i & step) continue;
      const uint32_t got = __shfl_xor_sync(0xffffffffu, upper ? word[i] : word[i + step], step);
      if (upper) {
        word[i] = got;
      } else {
        word[i + step] = got;
      }
    }
  }
}

__device__ inline int sum_of(uint32_t word, int sum) { return (int)__dp4a(word, 0x01010101u, (uint32_t)sum); }

/* Makes a stage of all planes of a row of X; returns the sum of its stored codes. */
__device__ inline int make_planes(const x_planes_args &a, const uint8_t *row, int stage, bool aligned, int lane,
                                  uint8_t *to) {
  const int t = lane % 4, k = stage * 1024 + lane / 4 * LPG_BIT_PLANES_HALF_K;
  uint32_t word[2][4];
#pragma unroll
  for (int i = 0; i < 2; i++) a.x.load_sixteen(row, k + (4 * i + t) * 16, aligned, word[i]);
  uint32_t part[8]; /* words of 16 k each: lane t's of the half block */
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 2; i++) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
      sum = sum_of(word[i][j], sum);
      part[4 * i + j] = lpg_bit_planes_x_bytes(word[i], j);
    }
    transpose_quad(part + 4 * i, t);
  }
#pragma unroll 1
  for (int plane = 0; plane < a.q; plane++) {
    *(uint32_t *)(to + (int64_t)plane * a.k_stages * LPG_GEMM1_X_BYTES) = lpg_bit_planes_of_x(part, 0);
#pragma unroll
    for (int s = 0; s < 8; s++) part[s] >>= 1;
  }
  return sum;
}

static __global__ void __launch_bounds__(x_warps * 32) x_planes_kernel(const x_planes_args a) {
  __shared__ int sums[x_warps];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int tile = blockIdx.x / LPG_GEMM1_TILE_M, x_row = blockIdx.x % LPG_GEMM1_TILE_M;
  const uint8_t *const row = a.x.row(blockIdx.x);
  const bool aligned = (uintptr_t)row % 16 == 0;
  uint8_t *const image = a.image + (int64_t)tile * a.q * a.k_stages * LPG_GEMM1_X_BYTES + x_row * 128;
  const int at = (lane / 4 ^ x_row % 8) * 16;
  int sum = 0;
  for (int stage = warp; stage < a.k_stages; stage += x_warps) {
    sum += make_planes(a, row, stage, aligned, lane, image + (int64_t)stage * LPG_GEMM1_X_BYTES + at + lane % 4 * 4);
  }
  sum = __reduce_add_sync(0xffffffffu, sum);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (threadIdx.x == 0) a.sums[blockIdx.x] = sums[0] + sums[1] + sums[2] + sums[3];
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_gemm1_make_x_planes(const lpg_call *call, const lpg_gemm1_plan *plan, void *image,
                                             int32_t *sums) {
  lpg::x_planes_args a = {};
  a.x = lpg::x_codes_of(*call);
  a.k_stages = plan->k_stages;
  a.q = plan->q;
  a.image = (uint8_t *)image;
  a.sums = sums;
  return lpg::launch((const void *)lpg::x_planes_kernel, dim3((unsigned)call->problem.m), lpg::x_warps * 32, 0,
                     call->stream, a);
}

lpgemm_status_t lpgemm_i_gemm1_prepare_x(void) { return lpg::allow_shared((const void *)lpg::x_planes_kernel, 0); }
