/* The sum of a token's slots: rows of the experts' outputs, by router weights. A thread has 16 bytes of a row of Y; it
 * asks for several slots' at once, and adds them in the order of the slots. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "experts.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int combine_threads = 128, at_once = 8;

struct combine_args {
  lpg_combine call;
  int partial_vectors, y_vectors, c_vectors; /* rows can be read and written in pieces of 16 bytes */
};

/* Numbers of a row: `each` of them, from `first` on, as many as there are. */
template <class T>
struct piece {
  static constexpr int each = 16 / sizeof(T);
  alignas(16) T value[each];

  __device__ void clear() { *(uint4 *)value = make_uint4(0, 0, 0, 0); }
  __device__ void load(const void *row, int64_t first, int64_t n, bool vectors) {
    const T *const from = (const T *)row + first;
    if (vectors && first + each <= n) {
      *(uint4 *)value = *(const uint4 *)from;
      return;
    }
#pragma unroll
    for (int i = 0; i < each; i++) value[i] = first + i < n ? from[i] : (T)0;
  }
  __device__ void store(void *row, int64_t first, int64_t n, bool vectors) const {
    T *const to = (T *)row + first;
    if (vectors && first + each <= n) {
      *(uint4 *)to = *(const uint4 *)value;
      return;
    }
#pragma unroll
    for (int i = 0; i < each; i++) {
      if (first + i < n) to[i] = value[i];
    }
  }
};

template <lpgemm_dtype_t Type, class T>
__device__ inline float widen_one(T bits) {
  if constexpr (Type == LPGEMM_F32) {
    return lpg_bits_f32(bits);
  } else if constexpr (Type == LPGEMM_F16) {
    return __half2float(__ushort_as_half(bits));
  } else {
    return lpg_bits_f32((uint32_t)bits << 16);
  }
}

template <lpgemm_dtype_t Type, class T>
__device__ inline T round_one(float v) {
  if constexpr (Type == LPGEMM_F32) {
    return lpg_f32_bits(v);
  } else if constexpr (Type == LPGEMM_F16) {
    return __half_as_ushort(__float2half_rn(v));
  } else {
    return __bfloat16_as_ushort(__float2bfloat16_rn(v));
  }
}

template <lpgemm_dtype_t Type, class T>
static __global__ void __launch_bounds__(combine_threads) combine_kernel(const combine_args a) {
  using row_piece = piece<T>;
  const lpg_combine &o = a.call;
  const int64_t first = ((int64_t)blockIdx.x * combine_threads + threadIdx.x) * row_piece::each;
  pdl_launch_next();
  pdl_wait();
  if (first >= o.n) return;
  const float beta = !o.c ? 0.0f : o.device_beta ? *o.device_beta : o.beta;
  for (int64_t t = blockIdx.y; t < o.m; t += gridDim.y) {
    float sum[row_piece::each] = {};
    const int32_t *const position = o.position + t * o.top_k;
    const float *const weights = o.weight ? o.weight + t * o.top_k : nullptr;
    for (int j = 0; j < o.top_k; j += at_once) {
      row_piece part[at_once];
      float weight[at_once];
      bool there[at_once];
#pragma unroll
      for (int i = 0; i < at_once; i++) {
        const int at = j + i < o.top_k ? position[j + i] : -1;
        there[i] = at >= 0 && at < o.slots;
        weight[i] = 1.0f;
        part[i].clear();
        if (!there[i]) continue;
        if (weights) weight[i] = weights[j + i];
        part[i].load((const T *)o.partial + at * o.ld, first, o.n, a.partial_vectors);
      }
#pragma unroll
      for (int i = 0; i < at_once; i++) {
        if (!there[i]) continue;
#pragma unroll
        for (int k = 0; k < row_piece::each; k++) {
          sum[k] = __fadd_rn(sum[k], __fmul_rn(weight[i], widen_one<Type>(part[i].value[k])));
        }
      }
    }
    row_piece out;
    if (beta != 0.0f) {
      out.load((const T *)o.c + t * o.ldc, first, o.n, a.c_vectors);
#pragma unroll
      for (int k = 0; k < row_piece::each; k++) {
        sum[k] = __fadd_rn(sum[k], __fmul_rn(beta, widen_one<Type>(out.value[k])));
      }
    }
#pragma unroll
    for (int k = 0; k < row_piece::each; k++) out.value[k] = round_one<Type, T>(sum[k]);
    out.store((T *)o.y + t * o.ldy, first, o.n, a.y_vectors);
  }
}

template <lpgemm_dtype_t Type, class T>
static lpgemm_status_t combine(const lpg_device *device, const lpg_combine &call, void *stream) {
  const auto vectors = [](const void *at, int64_t ld) {
    return (int)((uintptr_t)at % 16 == 0 && ld * (int64_t)sizeof(T) % 16 == 0);
  };
  const combine_args a = {call, vectors(call.partial, call.ld), vectors(call.y, call.ldy), vectors(call.c, call.ldc)};
  const dim3 grid((unsigned)lpg_ceil_div(call.n, combine_threads * piece<T>::each),
                  (unsigned)(call.m < 65535 ? call.m : 65535));
  return launch_cluster((const void *)combine_kernel<Type, T>, grid, 1, combine_threads, 0, stream, a,
                        may_follow(device));
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_combine(const lpg_device *device, const lpg_combine *call, cudaStream_t stream) {
  if (call->m == 0 || call->n == 0) return LPGEMM_SUCCESS;
  switch (call->y_type) {
    case LPGEMM_F32: return lpg::combine<LPGEMM_F32, uint32_t>(device, *call, stream);
    case LPGEMM_F16: return lpg::combine<LPGEMM_F16, uint16_t>(device, *call, stream);
    default: return lpg::combine<LPGEMM_BF16, uint16_t>(device, *call, stream);
  }
}

lpgemm_status_t lpgemm_i_cuda_load_combine(void) {
  LPG_TRY(lpg::allow_shared((const void *)lpg::combine_kernel<LPGEMM_F32, uint32_t>, 0));
  LPG_TRY(lpg::allow_shared((const void *)lpg::combine_kernel<LPGEMM_F16, uint16_t>, 0));
  return lpg::allow_shared((const void *)lpg::combine_kernel<LPGEMM_BF16, uint16_t>, 0);
}
