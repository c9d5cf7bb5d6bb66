/* gemm8: the kernel before gemm8, which writes to the workspace the X image, the sums of the rows of X, and the
 * scale and offset of each row of W (layout: gemm8_plan.h).
 *
 *   The X image: 128 k of all rows of X after one another, each row 128 bytes in the order of packed weights and in
 *   wgmma's 128-byte swizzle. */
#include "../../cuda/cuda.h"
#include "../operand/bit_planes.h"
#include "../prim/pdl.cuh"
#include "gemm8_rows.cuh"
#include "gemm8_x.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct prepare_args {
  const uint8_t *x;
  int64_t ldx, stage_bytes; /* of 128 k of the image */
  int32_t m, k, stages;
  uint8_t *image;
  int32_t *x_sums;
  float *factors;
  int32_t *offsets;
  gemm8_rows rows;
};

constexpr int prepare_warps = 8, prepare_threads = 32 * prepare_warps;
/* Rows so short that a CTA has too little to do, and so many that they fill the GPU, have a warp each: 5 % less time of
 * two such calls (H200, 2026-11-28). */
enum { few_stages = 16, many_rows = 2048 };

/* Loads 16 k from k0 on; beyond the row they are zero. */
__device__ inline void load_sixteen(const uint8_t *row, int k0, int k, uint32_t (&word)[4]) {
  if ((uintptr_t)row % 16 == 0 && k0 + 16 <= k) {
    const uint4 all = *(const uint4 *)(row + k0);
    word[0] = all.x, word[1] = all.y, word[2] = all.z, word[3] = all.w;
    return;
  }
#pragma unroll
  for (int i = 0; i < 16; i++) {
    const uint32_t byte = k0 + i < k ? row[k0 + i] : 0u;
    word[i / 4] = i % 4 ? word[i / 4] | byte << 8 * (i % 4) : byte;
  }
}

/* Threads of a CTA, all or a warp, prepare a row of X, eight lanes 128 k at a time. Of e4m3 the sum of bytes means
 * nothing, and nobody reads it. */
template <int Threads>
__device__ inline void prepare_x_row(const prepare_args &a, int x_row, int thread) {
  const int piece = thread % 8;
  const uint8_t *const row = a.x + x_row * a.ldx;
  uint8_t *const to = a.image + x_row * (int64_t)128 + (piece ^ x_row % 8) * 16;
  int sum = 0;
#pragma unroll 2
  for (int stage = thread / 8; stage < a.stages; stage += Threads / 8) {
    uint32_t word[4];
    load_sixteen(row, stage * 128 + piece * 16, a.k, word);
#pragma unroll
    for (int i = 0; i < 4; i++) sum = __dp4a((int)word[i], 0x01010101, sum);
    *(uint4 *)(to + stage * a.stage_bytes) =
        make_uint4(lpg_bit_planes_x_bytes(word, 0), lpg_bit_planes_x_bytes(word, 1), lpg_bit_planes_x_bytes(word, 2),
                   lpg_bit_planes_x_bytes(word, 3));
  }
  sum = __reduce_add_sync(0xffffffffu, sum);
  if constexpr (Threads > 32) {
    __shared__ int sums[Threads / 32];
    if (thread % 32 == 0) sums[thread / 32] = sum;
    __syncthreads();
    for (int i = 1; i < Threads / 32 && thread == 0; i++) sum += sums[i];
  }
  if (thread == 0) a.x_sums[x_row] = sum;
}

/* Writes the scale of a row of W, and its offset less its zero; 0 beyond the matrix. */
__device__ inline void prepare_w_row(const prepare_args &a, int row) {
  a.factors[row] = row < a.rows.n ? (float)group_at(a.rows.groups, row, 0).scale : 0.0f;
  a.offsets[row] = a.rows.offset_less_zero(row);
}

/* Rows: of X that a CTA prepares, one or one a warp. */
template <int Rows>
static __global__ void __launch_bounds__(prepare_threads) gemm8_prepare_kernel(const __grid_constant__ prepare_args a) {
  pdl_launch_next();
  pdl_wait();
  const int x_ctas = (a.m + Rows - 1) / Rows, cta = blockIdx.x;
  if (cta >= x_ctas) return prepare_w_row(a, (cta - x_ctas) * prepare_threads + threadIdx.x);
  constexpr int threads = prepare_threads / Rows;
  const int x_row = cta * Rows + threadIdx.x / threads;
  if (x_row < a.m) prepare_x_row<threads>(a, x_row, threadIdx.x % threads);
}
static_assert(prepare_threads == LPG_GEMM8_TILE_N, "rows of W come in whole CTAs");

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_gemm8_prepare_call(const lpg_call *call) {
  const lpg_packed *weights = call->problem.weights;
  const lpg_gemm8_workspace at = lpg_gemm8_workspace_of(weights, call->problem.m);
  const lpg_gemm8_mode mode = lpg_gemm8_mode_of(weights, call->problem.x_type);
  const int64_t rows = mode.grouped ? 0 : weights->desc.n; /* rows with one scale and one zero */
  const int64_t tiles = (rows + LPG_GEMM8_TILE_N - 1) / LPG_GEMM8_TILE_N;
  lpg::prepare_args a = {};
  a.x = (const uint8_t *)call->x;
  a.ldx = call->ldx;
  a.m = (int32_t)call->problem.m;
  a.k = (int32_t)weights->desc.k;
  a.stage_bytes = lpg_gemm8_x_rows(a.m) * LPG_GEMM8_X_K;
  a.stages = (int32_t)(at.x_sums / a.stage_bytes);
  a.image = (uint8_t *)call->workspace;
  a.x_sums = (int32_t *)(a.image + at.x_sums);
  a.factors = (float *)(a.image + at.factors);
  a.offsets = (int32_t *)(a.image + at.offsets);
  a.rows = lpg::make_gemm8_rows(*call);
  const bool by_warps = a.stages <= lpg::few_stages && a.m >= lpg::many_rows;
  const int64_t x_ctas = by_warps ? lpg_ceil_div(a.m, lpg::prepare_warps) : a.m;
  const void *const kernel = by_warps ? (const void *)lpg::gemm8_prepare_kernel<lpg::prepare_warps>
                                      : (const void *)lpg::gemm8_prepare_kernel<1>;
  return lpg::launch_cluster(kernel, dim3((unsigned)(x_ctas + tiles)), 1, lpg::prepare_threads, 0, call->stream, a,
                             true);
}

lpgemm_status_t lpgemm_i_gemm8_prepare_x(void) {
  LPG_TRY(lpg::allow_shared((const void *)lpg::gemm8_prepare_kernel<1>, 0));
  return lpg::allow_shared((const void *)lpg::gemm8_prepare_kernel<lpg::prepare_warps>, 0);
}
