/* The two activation types of the tensor cores as what decoding needs of them: where their bits lie, arithmetic on
 * pairs, and the product. A pair is two numbers in a 32-bit word, the first in the low half. */
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../layouts/number.h"
#include "prim/mma.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The same 16 bits in both halves. */
LPG_FN uint32_t both(uint32_t half) { return half * 0x00010001u; }

struct f16_x {
  using mma = mma_f16;
  static constexpr int mantissa = 10, exponent = 5, bias = 15;

  __device__ static __half2 in(uint32_t pair) { return *(__half2 *)&pair; }
  __device__ static uint32_t out(__half2 pair) { return *(uint32_t *)&pair; }
  __device__ static uint32_t fma(uint32_t a, uint32_t b, uint32_t c) { return out(__hfma2(in(a), in(b), in(c))); }
  __device__ static uint32_t subtract(uint32_t a, uint32_t b) { return out(__hsub2(in(a), in(b))); }
  __device__ static uint32_t multiply(uint32_t a, uint32_t b) { return out(__hmul2(in(a), in(b))); }
  __device__ static uint32_t round(float x) { return both(__half_as_ushort(__float2half_rn(x))); }
  __device__ static uint32_t round_two(float first, float second) { return out(__floats2half2_rn(first, second)); }
  __device__ static float widen(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
};

struct bf16_x {
  using mma = mma_bf16;
  static constexpr int mantissa = 7, exponent = 8, bias = 127;

  __device__ static __nv_bfloat162 in(uint32_t pair) { return *(__nv_bfloat162 *)&pair; }
  __device__ static uint32_t out(__nv_bfloat162 pair) { return *(uint32_t *)&pair; }
  __device__ static uint32_t fma(uint32_t a, uint32_t b, uint32_t c) { return out(__hfma2(in(a), in(b), in(c))); }
  __device__ static uint32_t subtract(uint32_t a, uint32_t b) { return out(__hsub2(in(a), in(b))); }
  __device__ static uint32_t multiply(uint32_t a, uint32_t b) { return out(__hmul2(in(a), in(b))); }
  __device__ static uint32_t round(float x) { return both(__bfloat16_as_ushort(__float2bfloat16_rn(x))); }
  __device__ static uint32_t round_two(float first, float second) { return out(__floats2bfloat162_rn(first, second)); }
  __device__ static float widen(uint16_t bits) { return lpg_bf16_to_f32(bits); }
};

/* 2^e as a pair, e within the normal exponents. */
template <class X>
LPG_FN uint32_t power_pair(int e) {
  return both((uint32_t)(e + X::bias) << X::mantissa);
}

}  // namespace
}  // namespace lpg
