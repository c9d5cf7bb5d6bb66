/* The kernels that copy X to rows that begin at multiples of 16 bytes; 8-bit X becomes fp16, or stays as it is, and
 * fp16 and 8-bit X become fp32 for TF32. */
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

/* A thread makes 8 fp32 of each row that its CTA copies. */
template <bool Bytes>
static __global__ void __launch_bounds__(256) x_copy_f32_kernel(const x_copy_args a) {
  constexpr int count = Bytes ? 8 : 16;
  const int64_t at = blockIdx.x * 256 + threadIdx.x, first = at * count;
  if (first >= a.k_bytes) return;
  for (int64_t row = blockIdx.y; row < a.m; row += gridDim.y) {
    uint32_t word[count / 4];
    load_anywhere<count>(a.x + row * a.row_bytes, first, a.k_bytes, word);
    uint4 eight;
    if constexpr (Bytes) {
      eight = widen_eight(a.x_type, make_uint2(word[0], word[1]), a.k_bytes - first);
    } else {
      eight = make_uint4(word[0], word[1], word[2], word[3]);
    }
    float4 *const to = (float4 *)(a.out + row * a.pitch) + 2 * at;
    const float2 one = __half22float2(f16_x::in(eight.x)), two = __half22float2(f16_x::in(eight.y));
    to[0] = make_float4(one.x, one.y, two.x, two.y);
    if ((2 * at + 1) * 16 >= a.pitch) continue;
    const float2 three = __half22float2(f16_x::in(eight.z)), four = __half22float2(f16_x::in(eight.w));
    to[1] = make_float4(three.x, three.y, four.x, four.y);
  }
}

/* From elements of so many bytes to elements of so many. */
static const void *copy_kernel(int from, int to) {
  if (to == 4) return from == 1 ? (const void *)x_copy_f32_kernel<true> : (const void *)x_copy_f32_kernel<false>;
  return from != to ? (const void *)x_copy_kernel<true> : (const void *)x_copy_kernel<false>;
}

/* To rows of `pitch` elements of so many bytes. */
static lpgemm_status_t launch_copy(const lpg_call *call, int bytes, int64_t pitch, void *copy) {
  const lpg_problem &problem = call->problem;
  const int x_bytes = (int)lpg_bytes(problem.x_type);
  const int64_t m = problem.m, k_bytes = problem.weights->desc.k * x_bytes;
  const x_copy_args args = {(const uint8_t *)call->x, call->ldx * x_bytes, pitch * bytes, k_bytes, (int)m,
                            problem.x_type,           (uint8_t *)copy};
  const int each = bytes == 4 ? 32 : 16; /* bytes of a thread */
  const dim3 grid((unsigned)lpg_ceil_div(pitch * bytes, 256 * each), (unsigned)(m < 65535 ? m : 65535));
  return launch(copy_kernel(x_bytes, bytes), grid, 256, 0, call->stream, args);
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_align_x(const lpg_call *call, void *copy) {
  return lpg::launch_copy(call, (int)lpg_bytes(call->problem.x_type), call->problem.weights->desc.k, copy);
}

lpgemm_status_t lpgemm_i_cuda_copy_x(lpg_call *call, int bytes, void *copy) {
  const lpg_problem &problem = call->problem;
  const int x_bytes = (int)lpg_bytes(problem.x_type);
  const bool widens = x_bytes != bytes;
  const bool aligned = (uintptr_t)call->x % 16 == 0 && call->ldx * x_bytes % 16 == 0;
  if (lpg_x_copy_bytes(&problem, bytes) == 0 || (!widens && aligned)) return LPGEMM_SUCCESS;
  const int64_t pitch = lpg_x_copy_pitch(&problem, bytes);
  if (!call->skip_product) LPG_TRY(lpg::launch_copy(call, bytes, pitch, copy));
  call->x = copy;
  call->ldx = pitch;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_cuda_prepare_copy_x(void) {
  LPG_TRY(lpg::allow_shared(lpg::copy_kernel(1, 1), 0));
  LPG_TRY(lpg::allow_shared(lpg::copy_kernel(1, 2), 0));
  LPG_TRY(lpg::allow_shared(lpg::copy_kernel(2, 2), 0));
  LPG_TRY(lpg::allow_shared(lpg::copy_kernel(1, 4), 0));
  return lpg::allow_shared(lpg::copy_kernel(2, 4), 0);
}
