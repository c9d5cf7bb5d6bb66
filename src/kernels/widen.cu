/* Copies X of a byte a number to fp16. */
#include "widen.h"

#include "../cuda/cuda.h"
#include "widen.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct widen_args {
  const uint8_t *x;
  int64_t ldx, pitch; /* of X and of the copy */
  int m, k;
  lpgemm_dtype_t x_type;
  uint8_t *out;
};

/* A thread has eight numbers. */
static __global__ void __launch_bounds__(256) widen_kernel(const widen_args a) {
  const int k = (blockIdx.x * 256 + threadIdx.x) * 8;
  if (k >= a.k) return;
  for (int64_t row = blockIdx.y; row < a.m; row += gridDim.y) {
    const uint8_t *from = a.x + row * a.ldx + k;
    uint2 bytes;
    if ((uintptr_t)from % 8 == 0 && k + 8 <= a.k) {
      bytes = *(const uint2 *)from;
    } else {
      const auto at = [&](int j) { return k + j < a.k ? (uint32_t)from[j] << 8 * (j % 4) : 0u; };
      bytes = make_uint2(at(0) | at(1) | at(2) | at(3), at(4) | at(5) | at(6) | at(7));
    }
    *(uint4 *)(a.out + (row * a.pitch + k) * 2) = widen_eight(a.x_type, bytes);
  }
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_widen(lpg_call *call, void *copy) {
  const lpg_problem &problem = call->problem;
  if (lpg_bytes(problem.x_type) != 1) return LPGEMM_SUCCESS;
  const int64_t pitch = lpg_widened_pitch(&problem), m = problem.m;
  const lpg::widen_args args = {(const uint8_t *)call->x,  call->ldx,      pitch,          (int)m,
                                (int)problem.plan->desc.k, problem.x_type, (uint8_t *)copy};
  call->x = copy;
  call->ldx = pitch;
  if (call->skip_product) return LPGEMM_SUCCESS;
  const dim3 grid((unsigned)lpg_ceil_div(pitch, 256 * 8), (unsigned)(m < 65535 ? m : 65535));
  return lpg::launch((const void *)lpg::widen_kernel, grid, 256, 0, call->stream, args);
}

lpgemm_status_t lpgemm_i_cuda_prepare_widen(void) { return lpg::allow_shared((const void *)lpg::widen_kernel, 0); }
