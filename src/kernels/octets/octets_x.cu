/* X of int8 to the image that the tensor cores read: octets_plan.h. */
#include "../../bitserial/planes_slice.h"
#include "../../cuda/cuda.h"
#include "../prim/follow.cuh"
#include "octets_limits.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct bring_x_args {
  const uint8_t *x;
  int64_t ldx, stage_bytes; /* stage_bytes: of 128 columns of the image */
  int32_t k, stages;
  uint8_t *image;
  int32_t *sums;
};

constexpr int bring_warps = 8;

/* 16 columns from k0 on; what is beyond the row is zero. */
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

/* A block of threads has a token, eight lanes 128 of its columns. */
static __global__ void __launch_bounds__(32 * bring_warps) bring_x_kernel(const bring_x_args a) {
  __shared__ int sums[bring_warps];
  let_next_start();
  wait_for_previous();
  const int token = blockIdx.x, piece = threadIdx.x % 8;
  const uint8_t *const row = a.x + token * a.ldx;
  uint8_t *const to = a.image + token * (int64_t)128 + (piece ^ token % 8) * 16;
  int sum = 0;
#pragma unroll 2
  for (int stage = threadIdx.x / 8; stage < a.stages; stage += 4 * bring_warps) {
    uint32_t word[4];
    load_sixteen(row, stage * 128 + piece * 16, a.k, word);
#pragma unroll
    for (int i = 0; i < 4; i++) sum = __dp4a((int)word[i], 0x01010101, sum);
    *(uint4 *)(to + stage * a.stage_bytes) =
        make_uint4(lpg_planes_bytes_of_x(word, 0), lpg_planes_bytes_of_x(word, 1), lpg_planes_bytes_of_x(word, 2),
                   lpg_planes_bytes_of_x(word, 3));
  }
  sum = __reduce_add_sync(0xffffffffu, sum);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int i = 1; i < bring_warps; i++) sum += sums[i];
  a.sums[token] = sum;
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_octets_bring_x(const lpg_call *call) {
  const lpg_plan *weights = call->problem.plan;
  const int64_t m = call->problem.m, bytes = lpg_octets_image_bytes(weights, m), tokens = lpg_octets_tokens(m);
  lpg::bring_x_args a = {};
  a.x = (const uint8_t *)call->x;
  a.ldx = call->ldx;
  a.stage_bytes = tokens * LPG_OCTETS_X_K;
  a.k = (int32_t)weights->desc.k;
  a.stages = (int32_t)(bytes / a.stage_bytes);
  a.image = (uint8_t *)call->workspace;
  a.sums = (int32_t *)(a.image + bytes);
  return lpg::launch_cluster((const void *)lpg::bring_x_kernel, dim3((unsigned)m), 1, 32 * lpg::bring_warps, 0,
                             call->stream, a, true);
}

lpgemm_status_t lpgemm_i_octets_prepare_x(void) { return lpg::allow_shared((const void *)lpg::bring_x_kernel, 0); }
