/* Turns packed integer weights into images of bit planes, and scales and zeros into what the rows' sums need
 * (gemm1_images.h).
 *
 *   a CTA has a row tile; its warps take k blocks in turn, as they are packed:
 *     the lane's words of a row and half of the k block become the words of its planes: the same bits in another order
 *   then, from the sum of each row's codes: its two addends and its scale */
#include "../cuda/cuda.h"
#include "../kernels/operand/bit_planes.h"
#include "../kernels/operand/scales_any.cuh"
#include "../kernels/prim/async.cuh"
#include "gemm1_images.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct w_planes_args {
  const uint8_t *codes;
  int64_t row_bytes;   /* bytes of the codes of a row tile */
  int32_t row_vectors; /* the same in vectors of 512 bytes */
  int32_t n, k, k_stages, first_row_tile;
  groups_args groups;
  lpg_integer_line w, x;
  uint8_t *image;
  int32_t *scale_data;
};

constexpr int w_warps = 8, tile_row_tiles = LPG_GEMM1_TILE_N / LPG_TILE_ROWS;

/* Half a k block (128 k) of one of the lane's two rows; returns the sum of its stored codes. `to`: the row in the image
 * of the first plane and stage. */
template <int Bits>
__device__ inline int half_planes(const w_planes_args &a, const uint32_t *word, int block, int half, int row, int t,
                                  uint8_t *to) {
  const int left = a.k - block * LPG_BIT_PLANES_BLOCK_K - half * LPG_BIT_PLANES_HALF_K;
  const uint32_t there = left >= LPG_BIT_PLANES_HALF_K ? 0xffffffffu : lpg_bit_planes_columns_left(t, left);
  int sum = 0;
  const int stage = block / 4, piece = block % 4 * 2 + half;
#pragma unroll
  for (int plane = 0; plane < Bits; plane++) {
    const uint32_t bits = lpg_bit_planes_of_weights(Bits, word, 2, plane);
    *(uint32_t *)(to + ((int64_t)plane * a.k_stages + stage) * LPG_GEMM1_W_BYTES + (piece ^ row % 8) * 16 + t * 4) =
        bits;
    sum += __popc(bits & there) << plane;
  }
  return sum;
}

/* The three values of a row from the sum of its stored codes. */
__device__ inline void store_row_scales(const w_planes_args &a, int row_of_chunk, int row, int stored_sum) {
  int32_t *const to = a.scale_data + row_of_chunk / LPG_GEMM1_TILE_N * (LPG_GEMM1_SCALES * LPG_GEMM1_TILE_N) +
                      row_of_chunk % LPG_GEMM1_TILE_N;
  const group_scales g = row < a.n ? group_at(a.groups, row, 0) : group_scales{0.0, 0.0};
  const uint32_t own = (uint32_t)(a.w.offset - (int)g.zero), k = (uint32_t)a.k;
  const uint32_t sum = (uint32_t)stored_sum;
  to[0] = (int32_t)((uint32_t)a.x.offset * ((uint32_t)a.w.step * sum + k * own));
  to[LPG_GEMM1_TILE_N] = (int32_t)((uint32_t)a.x.step * own);
  to[2 * LPG_GEMM1_TILE_N] = __float_as_int((float)g.scale);
}

template <int Bits>
__global__ void __launch_bounds__(w_warps * 32) w_planes_kernel(const __grid_constant__ w_planes_args a) {
  __shared__ int sums[LPG_TILE_ROWS];
  const int row_tile = a.first_row_tile + blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int g = lane / 4, t = lane % 4, first_row = blockIdx.x % tile_row_tiles * LPG_TILE_ROWS;
  if (threadIdx.x < LPG_TILE_ROWS) sums[threadIdx.x] = 0;
  __syncthreads();
  constexpr int batch = Bits <= 2 ? 4 : Bits <= 4 ? 2 : 1;
  uint8_t *const image =
      a.image + blockIdx.x / tile_row_tiles * ((int64_t)Bits * a.k_stages * LPG_GEMM1_W_BYTES) + (first_row + g) * 128;
  const uint8_t *const codes = a.codes + (int64_t)row_tile * a.row_bytes + lane * 16;
  const bool inside = row_tile * LPG_TILE_ROWS < a.n;
  int sum[2] = {0, 0};
#pragma unroll 1
  for (int first = warp; inside && first * LPG_BIT_PLANES_BLOCK_K < a.k; first += w_warps * batch) {
    uint32_t word[batch][4 * Bits];
#pragma unroll
    for (int i = 0; i < batch; i++) { /* all loads start before the first is needed */
      const int vector = (first + i * w_warps) * Bits;
#pragma unroll
      for (int v = 0; v < Bits; v++) {
#pragma unroll
        for (int j = 0; j < 4; j++) word[i][4 * v + j] = 0;
        load16_if_more(a.row_vectors, vector + v, codes + (int64_t)(vector + v) * 512, word[i] + 4 * v);
      }
    }
#pragma unroll
    for (int i = 0; i < 4 * batch; i++) {
      const int block = first + i / 4 * w_warps, half = i / 2 % 2, upper = i % 2;
      if (block * LPG_BIT_PLANES_BLOCK_K + half * LPG_BIT_PLANES_HALF_K >= a.k) continue;
      sum[upper] += half_planes<Bits>(a, word[i / 4] + half * Bits * 2 + upper, block, half, g + 8 * upper, t,
                                      image + upper * 8 * 128);
    }
  }
#pragma unroll
  for (int upper = 0; upper < 2; upper++) {
    sum[upper] += __shfl_xor_sync(0xffffffffu, sum[upper], 1);
    sum[upper] += __shfl_xor_sync(0xffffffffu, sum[upper], 2);
    if (t == 0) atomicAdd(&sums[g + 8 * upper], sum[upper]);
  }
  __syncthreads();
  if (threadIdx.x < LPG_TILE_ROWS) {
    store_row_scales(a, blockIdx.x * LPG_TILE_ROWS + threadIdx.x, row_tile * LPG_TILE_ROWS + threadIdx.x,
                     sums[threadIdx.x]);
  }
}

static const void *w_planes_kernel_of(int bits) {
  switch (bits) {
    case 1: return (const void *)w_planes_kernel<1>;
    case 2: return (const void *)w_planes_kernel<2>;
    case 3: return (const void *)w_planes_kernel<3>;
    case 4: return (const void *)w_planes_kernel<4>;
    case 5: return (const void *)w_planes_kernel<5>;
    case 6: return (const void *)w_planes_kernel<6>;
    case 7: return (const void *)w_planes_kernel<7>;
    default: return (const void *)w_planes_kernel<8>;
  }
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_gemm1_make_w_planes(const lpg_call *call, const lpg_gemm1_plan *plan, int32_t first,
                                             int32_t count, void *image, int32_t *scale_data) {
  const lpg_packed &weights = *call->problem.weights;
  lpg::w_planes_args a = {};
  a.codes = call->section[LPG_SECTION_CODES];
  a.row_bytes = weights.k_tiles * lpg_tile_bytes(weights.bits);
  a.row_vectors = (int32_t)(a.row_bytes / 512);
  a.n = (int32_t)weights.desc.n;
  a.k = (int32_t)weights.desc.k;
  a.k_stages = plan->k_stages;
  a.first_row_tile = first * lpg::tile_row_tiles;
  a.groups = lpg::make_groups(*call);
  a.w = lpg_weight_line(weights.desc.type, 0);
  a.x = lpg_x_line(call->problem.x_type, 0);
  a.image = (uint8_t *)image;
  a.scale_data = scale_data;
  return lpg::launch(lpg::w_planes_kernel_of(weights.bits), dim3((unsigned)(count * lpg::tile_row_tiles)),
                     lpg::w_warps * 32, 0, call->stream, a);
}

lpgemm_status_t lpgemm_i_gemm1_prepare_images(void) {
  for (int bits = 1; bits <= 8; bits++) LPG_TRY(lpg::allow_shared(lpg::w_planes_kernel_of(bits), 0));
  return lpgemm_i_gemm1_prepare_x();
}
