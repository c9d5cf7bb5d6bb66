/* The kernel that copies X to rows that begin at multiples of 16 bytes; 8-bit X becomes fp16, or stays as it is. */
#include "x_copy.h"

#include "../../cuda/cuda.h"
#include "x_widen.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct x_copy_args {
  const uint8_t *x;
  int64_t row_bytes, pitch; /* row pitch of X and of the copy, in bytes */
  int64_t k_bytes;          /* bytes of a row of X */
  int m;
  lpgemm_dtype_t x_type;
  uint8_t *out;
};

/* Bytes first .. first + Count - 1 of a row, from any address, as words; those beyond `end` are zero. */
template <int Count>
__device__ inline void load_anywhere(const uint8_t *row, int64_t first, int64_t end, uint32_t (&word)[Count / 4]) {
  const uint8_t *const from = row + first;
  const int off = (uintptr_t)from % 4;
  if (first + Count + 3 < end) { /* all words that hold these bytes belong to X */
    const uint32_t *const words = (const uint32_t *)(from - off);
    uint32_t next = words[0];
#pragma unroll
    for (int i = 0; i < Count / 4; i++) {
      const uint32_t here = next;
      next = off ? words[i + 1] : i + 1 < Count / 4 ? words[i + 1] : 0;
      word[i] = __funnelshift_r(here, next, 8 * off);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < Count / 4; i++) {
    word[i] = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      if (first + 4 * i + j < end) word[i] |= (uint32_t)from[4 * i + j] << 8 * j;
    }
  }
}

/* A thread makes 16 bytes of each row that its CTA copies. */
template <bool Widens>
static __global__ void __launch_bounds__(256) x_copy_kernel(const x_copy_args a) {
  constexpr int count = Widens ? 8 : 16;
  const int64_t first = (int64_t)(blockIdx.x * 256 + threadIdx.x) * count;
  if (first >= a.k_bytes) return;
  for (int64_t row = blockIdx.y; row < a.m; row += gridDim.y) {
    uint32_t word[count / 4];
    load_anywhere<count>(a.x + row * a.row_bytes, first, a.k_bytes, word);
    uint4 *const to = (uint4 *)(a.out + row * a.pitch) + first / count;
    if constexpr (Widens) {
      *to = widen_eight(a.x_type, make_uint2(word[0], word[1]), a.k_bytes - first);
    } else {
      *to = make_uint4(word[0], word[1], word[2], word[3]);
    }
  }
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_copy_x(lpg_call *call, int bytes, void *copy) {
  const lpg_problem &problem = call->problem;
  const int x_bytes = (int)lpg_bytes(problem.x_type);
  const bool widens = x_bytes != bytes;
  const bool aligned = (uintptr_t)call->x % 16 == 0 && call->ldx * x_bytes % 16 == 0;
  if (lpg_x_copy_bytes(&problem, bytes) == 0 || (!widens && aligned)) return LPGEMM_SUCCESS;
  const int64_t pitch = lpg_x_copy_pitch(&problem, bytes), m = problem.m;
  const lpg::x_copy_args args = {
      (const uint8_t *)call->x, call->ldx * x_bytes, pitch * bytes, problem.weights->desc.k * x_bytes, (int)m,
      problem.x_type,           (uint8_t *)copy};
  call->x = copy;
  call->ldx = pitch;
  if (call->skip_product) return LPGEMM_SUCCESS;
  const dim3 grid((unsigned)lpg_ceil_div(pitch * bytes, 256 * 16), (unsigned)(m < 65535 ? m : 65535));
  return lpg::launch(widens ? (const void *)lpg::x_copy_kernel<true> : (const void *)lpg::x_copy_kernel<false>, grid,
                     256, 0, call->stream, args);
}

lpgemm_status_t lpgemm_i_cuda_prepare_copy_x(void) {
  LPG_TRY(lpg::allow_shared((const void *)lpg::x_copy_kernel<true>, 0));
  return lpg::allow_shared((const void *)lpg::x_copy_kernel<false>, 0);
}
