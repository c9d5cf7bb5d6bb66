/* The two 16-bit types of X, f16_x and bf16_x: their fields, arithmetic on pairs, and their MMA instructions. A pair is
 * two values in a 32-bit word, the first in the low half. */
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../../layouts/number.h"
#include "../prim/mma.cuh"
#include "../prim/wgmma.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The same 16 bits in both halves. */
LPG_FN uint32_t both(uint32_t half) { return half * 0x00010001u; }

/* a * b + c of pairs, for the host. */
template <lpgemm_dtype_t Type>
__host__ inline uint32_t fma_on_host(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result = 0;
  for (int shift = 0; shift < 32; shift += 16) {
    const uint16_t half[3] = {(uint16_t)(a >> shift), (uint16_t)(b >> shift), (uint16_t)(c >> shift)};
    const double sum = (double)lpg_load(Type, half, 0) * lpg_load(Type, half, 1) + lpg_load(Type, half, 2);
    result |= (uint32_t)(Type == LPGEMM_F16 ? lpg_f64_to_f16(sum) : lpg_f64_to_bf16(sum)) << shift;
  }
  return result;
}

struct f16_x {
  using mma = mma_f16;
  using wgmma = wgmma_f16;
  static constexpr int mantissa = 10, exponent = 5, bias = 15;

  __host__ __device__ static __half2 in(uint32_t pair) { return *(__half2 *)&pair; }
  __host__ __device__ static uint32_t out(__half2 pair) { return *(uint32_t *)&pair; }
  __host__ __device__ static uint32_t fma(uint32_t a, uint32_t b, uint32_t c) {
#ifdef __CUDA_ARCH__
    return out(__hfma2(in(a), in(b), in(c)));
#else
    return fma_on_host<LPGEMM_F16>(a, b, c);
#endif
  }
  __host__ __device__ static uint32_t subtract(uint32_t a, uint32_t b) { return out(__hsub2(in(a), in(b))); }
  __host__ __device__ static uint32_t multiply(uint32_t a, uint32_t b) { return out(__hmul2(in(a), in(b))); }
  __host__ __device__ static uint32_t round(float x) { return both(__half_as_ushort(__float2half_rn(x))); }
  __device__ static uint32_t round_two(float first, float second) { return out(__floats2half2_rn(first, second)); }
  __device__ static float widen(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
  /* x < 256, in both halves: x is the mantissa under the exponent of 1024. */
  __device__ static uint32_t small_integer(uint32_t x) { return subtract(x * 0x10001u + 0x64006400u, 0x64006400u); }
};

struct bf16_x {
  using mma = mma_bf16;
  using wgmma = wgmma_bf16;
  static constexpr int mantissa = 7, exponent = 8, bias = 127;

  __host__ __device__ static __nv_bfloat162 in(uint32_t pair) { return *(__nv_bfloat162 *)&pair; }
  __host__ __device__ static uint32_t out(__nv_bfloat162 pair) { return *(uint32_t *)&pair; }
  __host__ __device__ static uint32_t fma(uint32_t a, uint32_t b, uint32_t c) {
#ifdef __CUDA_ARCH__
    return out(__hfma2(in(a), in(b), in(c)));
#else
    return fma_on_host<LPGEMM_BF16>(a, b, c);
#endif
  }
  __host__ __device__ static uint32_t subtract(uint32_t a, uint32_t b) { return out(__hsub2(in(a), in(b))); }
  __host__ __device__ static uint32_t multiply(uint32_t a, uint32_t b) { return out(__hmul2(in(a), in(b))); }
  __host__ __device__ static uint32_t round(float x) { return both(__bfloat16_as_ushort(__float2bfloat16_rn(x))); }
  __device__ static uint32_t round_two(float first, float second) { return out(__floats2bfloat162_rn(first, second)); }
  __device__ static float widen(uint16_t bits) { return lpg_bf16_to_f32(bits); }
  /* x < 256, in both halves: x is the mantissa under the exponent of 2^23; bf16 holds all its 8 bits. */
  __device__ static uint32_t small_integer(uint32_t x) {
    return __byte_perm(lpg_f32_bits(lpg_bits_f32(x | 0x4b000000u) - 0x1p23f), 0, 0x3232);
  }
};

/* 2^e in both halves; e: a normal exponent. */
template <class X>
LPG_FN uint32_t power_pair(int e) {
  return both((uint32_t)(e + X::bias) << X::mantissa);
}

/* 2^(code - 127 + exponent) in both halves; what is too small is 0, and code 255 is NaN. */
template <class X>
__device__ inline uint32_t power_of_code(uint32_t code, int exponent) {
  const uint32_t field = (uint32_t)max((int)code + exponent - 127 + X::bias, 0);
  return code == 255 ? both(0x7fff) : field * both(1u << X::mantissa);
}

/* A pair of fp32 numbers as the sum of two pairs of X's type. */
template <class X>
__device__ inline uint2 two_parts(float first, float second) {
  const uint32_t two = X::round_two(first, second);
  return make_uint2(two, X::round_two(first - X::widen((uint16_t)two), second - X::widen((uint16_t)(two >> 16))));
}

}  // namespace
}  // namespace lpg
