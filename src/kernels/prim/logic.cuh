/* Small integer and conversion operations that need one particular instruction, and hints to the compiler. */
#ifndef LPG_PRIM_LOGIC_CUH
#define LPG_PRIM_LOGIC_CUH

#include <cstdint>

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* (a & mask) | bits in one lop3. `bits` should be in a register (in_register), since an instruction takes only one
 * constant. */
__host__ __device__ inline uint32_t and_or(uint32_t a, uint32_t mask, uint32_t bits) {
#ifdef __CUDA_ARCH__
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(a), "r"(mask), "r"(bits));
  return result;
#else
  return (a & mask) | bits;
#endif
}

/* (a & mask) ^ bits in one lop3. */
__device__ inline uint32_t and_xor(uint32_t a, uint32_t mask, uint32_t bits) {
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(result) : "r"(a), "r"(mask), "r"(bits));
  return result;
}

/* A constant that the compiler must keep in a register, since it does not see that it is constant. */
__host__ __device__ inline uint32_t in_register(uint32_t constant) {
#ifdef __CUDA_ARCH__
  uint32_t result;
  asm("mov.b32 %0, %1;" : "=r"(result) : "r"(constant));
  return result;
#else
  return constant;
#endif
}

/* Two e4m3 bytes, the low or the high two of a word, as two fp16 values. */
__device__ inline uint32_t e4m3_values(uint32_t word, bool upper) {
  uint32_t values;
  if (upper) {
    asm("{\n\t.reg .b16 low, high;\n\tmov.b32 {low, high}, %1;\n\tcvt.rn.f16x2.e4m3x2 %0, high;\n\t}"
        : "=r"(values)
        : "r"(word));
  } else {
    asm("{\n\t.reg .b16 low, high;\n\tmov.b32 {low, high}, %1;\n\tcvt.rn.f16x2.e4m3x2 %0, low;\n\t}"
        : "=r"(values)
        : "r"(word));
  }
  return values;
}

/* x rounded to TF32: of the bits of fp32 the upper 19. */
__device__ inline uint32_t tf32_value(float x) {
  uint32_t value;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(value) : "f"(x));
  return value;
}

/* The upper 19 of the 32 bits of x: TF32, rounded toward zero. */
__device__ inline uint32_t upper_tf32(float x) { return __float_as_uint(x) & 0xffffe000u; }

/* 1 / x to some 22 bits; where x is subnormal, infinity. */
__device__ inline float reciprocal(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/* A value that all lanes have. The compiler then knows that it is the same in the whole warp: what is computed from it
 * can be in uniform registers, and branches on it do not diverge. */
__device__ inline int same_in_warp(int x) { return __shfl_sync(0xffffffffu, x, 0); }

/* The same value, but the compiler knows nothing about it: it keeps it instead of computing it again. */
__device__ inline int keep(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
__device__ inline uint32_t keep(uint32_t x) { return (uint32_t)keep((int)x); }
__device__ inline float keep(float x) {
  asm volatile("" : "+f"(x));
  return x;
}

}  // namespace
}  // namespace lpg

#endif
