/* Bit logic that the compiler does not put into one instruction by itself. */
#pragma once

#include <cstdint>

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* (a & mask) | bits in one instruction: `bits` stays in a register, since only one operand may be a constant. */
__host__ __device__ inline uint32_t and_or(uint32_t a, uint32_t mask, uint32_t bits) {
#ifdef __CUDA_ARCH__
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(a), "r"(mask), "r"(bits));
  return result;
#else
  return (a & mask) | bits;
#endif
}

/* (a & mask) ^ bits, likewise. */
__device__ inline uint32_t and_xor(uint32_t a, uint32_t mask, uint32_t bits) {
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(result) : "r"(a), "r"(mask), "r"(bits));
  return result;
}

/* A constant that the compiler takes for a variable, so that it is kept in a register. */
__host__ __device__ inline uint32_t in_register(uint32_t constant) {
#ifdef __CUDA_ARCH__
  uint32_t result;
  asm("mov.b32 %0, %1;" : "=r"(result) : "r"(constant));
  return result;
#else
  return constant;
#endif
}

/* Two bytes of e4m3, the lower or upper ones of a word, as two fp16 numbers. */
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

/* A number that all lanes have, as one that the compiler knows to be the same: what follows from it needs no lane's
 * register, and branches on it are nobody's divergence. */
__device__ inline int same_in_warp(int x) { return __shfl_sync(0xffffffffu, x, 0); }

/* The same number, about which the compiler knows nothing: it keeps it instead of computing it again. */
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
