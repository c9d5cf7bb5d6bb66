/* Quantising activations on the GPU, to the bytes of src/cpu/activations.c: a block a row. For a scale of the whole
 * tensor a first kernel collects the largest magnitude in the place of the scale. */
#include <cuda_fp16.h>

#include "../cuda/cuda.h"
#include "../pack/activation.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct quantize_args {
  int64_t m, k, ldx, ldo;
  const void *x;
  lpgemm_dtype_t x_type, out_type;
  void *out;
  float *scale;
  int one_scale;
};

/* Eight numbers of a row from k on, as far as there are; those that are not there are 0. */
struct eight {
  float x[8];

  __device__ eight(const quantize_args &a, int64_t row, int64_t k) {
    const int bytes = lpg_bytes(a.x_type);
    const uint8_t *from = (const uint8_t *)a.x + (row * a.ldx + k) * bytes;
    alignas(16) uint32_t word[8] = {};
    if ((uintptr_t)from % 16 == 0 && k + 8 <= a.k) {
      *(uint4 *)word = *(const uint4 *)from;
      if (bytes == 4) *(uint4 *)(word + 4) = *(const uint4 *)(from + 16);
    } else {
      for (int i = 0; i < 8 && k + i < a.k; i++) {
        if (bytes == 4) word[i] = ((const uint32_t *)from)[i];
        if (bytes == 2) word[i / 2] |= (uint32_t)((const uint16_t *)from)[i] << i % 2 * 16;
      }
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const uint32_t half = word[i / 2] >> i % 2 * 16;
      x[i] = a.x_type == LPGEMM_F32    ? lpg_bits_f32(word[i])
             : a.x_type == LPGEMM_BF16 ? lpg_bits_f32(half << 16)
                                       : __half2float(__ushort_as_half((unsigned short)half));
    }
  }
};

/* A magnitude as bits, which order like the numbers. no_sign: only numbers of no sign count. */
__device__ inline uint32_t magnitude_bits(float x, bool no_sign) {
  const uint32_t bits = lpg_f32_bits(x), magnitude = bits & 0x7fffffffu;
  return no_sign && bits != magnitude && magnitude < 0x7f800000u ? 0u : magnitude;
}

/* The largest magnitude of a row as bits; NaN and infinity come out as NaN, the largest. */
__device__ inline uint32_t largest_bits(const quantize_args &a, int64_t row) {
  __shared__ uint32_t of_warp[8];
  const bool no_sign = lpg_kind(a.out_type) == LPGEMM_KIND_UINT;
  uint32_t most = 0;
#pragma unroll 4
  for (int64_t k = threadIdx.x * 8; k < a.k; k += 256 * 8) {
    const eight numbers(a, row, k);
#pragma unroll
    for (int i = 0; i < 8; i++) most = max(most, magnitude_bits(numbers.x[i], no_sign));
  }
  if (most >= 0x7f800000u) most = 0x7fc00000u;
  most = __reduce_max_sync(0xffffffffu, most);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = most;
  __syncthreads();
  for (int i = 0; i < 8; i++) most = max(most, of_warp[i]);
  return most;
}

__device__ inline float scale_of(const quantize_args &a, uint32_t most_bits) {
  return lpg_activation_scale((double)lpg_bits_f32(most_bits), a.out_type);
}

static __global__ void __launch_bounds__(256) tensor_largest_kernel(const quantize_args a) {
  for (int64_t row = blockIdx.x; row < a.m; row += gridDim.x) {
    const uint32_t most = largest_bits(a, row);
    if (threadIdx.x == 0) atomicMax((unsigned *)a.scale, most);
  }
}

static __global__ void tensor_scale_kernel(const quantize_args a) {
  a.scale[0] = scale_of(a, lpg_f32_bits(a.scale[0]));
}

/* The code of x as lpg_activation_code() gives it, which divides in fp64: `quotient`, x / scale to a few units of fp32,
 * says which code it is unless it lies next to a tie. */
__device__ inline uint32_t code_of(lpgemm_dtype_t type, float x, float scale, float quotient) {
  const float magnitude = fabsf(quotient);
  if (lpg_is_integer_kind(type)) {
    const float top = (float)lpg_activation_top(type), low = lpg_kind(type) == LPGEMM_KIND_INT ? -top : 0.0f;
    const float code = lpg_kind(type) == LPGEMM_KIND_BIPOLAR ? (quotient + top) * 0.5f : quotient;
    const float within = fminf(fmaxf(code, low), top), whole = rintf(within), off = fabsf(within - whole);
    if (fabsf(off - 0.5f) > 1e-3f && magnitude == magnitude) return (uint32_t)(int)whole & 0xffu; /* not for NaN */
  } else if (magnitude >= 0x1p-6f && magnitude < 440.0f) { /* three digits of the mantissa stay */
    const uint32_t bits = lpg_f32_bits(magnitude), left = bits & 0xfffffu;
    if (left < 0x80000u - 64u || left > 0x80000u + 64u) {
      const uint32_t rounded = (bits + 0x80000u) >> 20; /* exponent and digits, biased by 127 */
      return (rounded - (120u << 3)) | (lpg_f32_bits(x) >> 24 & 0x80u);
    }
  }
  return lpg_activation_code(type, (double)x, scale);
}

static __global__ void __launch_bounds__(256) quantize_kernel(const quantize_args a) {
  for (int64_t row = blockIdx.x; row < a.m; row += gridDim.x) {
    const float scale = a.one_scale ? a.scale[0] : scale_of(a, largest_bits(a, row)), inverse = 1.0f / scale;
    const bool fast = inverse >= 0x1p-126f && inverse < INFINITY; /* else, and for NaN, all go the long way */
    if (!a.one_scale && threadIdx.x == 0) a.scale[row] = scale;
#pragma unroll 2
    for (int64_t k = threadIdx.x * 8; k < a.k; k += 256 * 8) {
      const eight numbers(a, row, k);
      uint8_t *const to = (uint8_t *)a.out + row * a.ldo + k;
      uint32_t code[8];
#pragma unroll
      for (int i = 0; i < 8; i++)
        code[i] = code_of(a.out_type, numbers.x[i], scale, fast ? numbers.x[i] * inverse : NAN);
      if ((uintptr_t)to % 8 == 0 && k + 8 <= a.k) {
        *(uint2 *)to = make_uint2(code[0] | code[1] << 8 | code[2] << 16 | code[3] << 24,
                                  code[4] | code[5] << 8 | code[6] << 16 | code[7] << 24);
      } else {
#pragma unroll
        for (int i = 0; i < 8; i++) {
          if (k + i < a.k) to[i] = (uint8_t)code[i];
        }
      }
    }
  }
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_quantize_activations(int64_t m, int64_t k, const void *x, lpgemm_dtype_t x_type,
                                                   int64_t ldx, lpgemm_dtype_t out_type, void *out, int64_t ldo,
                                                   float *scale, lpgemm_x_scale_t mode, cudaStream_t stream) {
  const lpg::quantize_args args = {m, k, ldx, ldo, x, x_type, out_type, out, scale, mode == LPGEMM_X_SCALE_TENSOR};
  const dim3 grid((unsigned)(m < 65535 ? m : 65535));
  if (args.one_scale) {
    LPG_CUDA(cudaMemsetAsync(scale, 0, sizeof *scale, stream));
    LPG_TRY(lpg::launch((const void *)lpg::tensor_largest_kernel, grid, 256, 0, stream, args));
    LPG_TRY(lpg::launch((const void *)lpg::tensor_scale_kernel, dim3(1), 1, 0, stream, args));
  }
  return lpg::launch((const void *)lpg::quantize_kernel, grid, 256, 0, stream, args);
}

lpgemm_status_t lpgemm_i_cuda_prepare_activations(void) {
  LPG_TRY(lpg::allow_shared((const void *)lpg::tensor_largest_kernel, 0));
  LPG_TRY(lpg::allow_shared((const void *)lpg::tensor_scale_kernel, 0));
  return lpg::allow_shared((const void *)lpg::quantize_kernel, 0);
}
