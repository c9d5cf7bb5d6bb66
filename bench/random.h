/* Random numbers by index: element i of an array depends on the seed and on i alone, on the host and on the device. */
#ifndef BENCH_RANDOM_H
#define BENCH_RANDOM_H

#include <stdint.h>
#include <string.h>

#include "lpgemm.h"

#if defined(__CUDACC__)
#define BENCH_FN static __host__ __device__ inline
#else
#define BENCH_FN static inline
#endif

BENCH_FN uint32_t bench_random(uint64_t seed, uint64_t i) {
  uint64_t h = (seed + 1) * 0x9e3779b97f4a7c15ULL ^ (i + 1) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ h >> 29) * 0x94d049bb133111ebULL;
  h = (h ^ h >> 32) * 0xd6e8feb86659fd93ULL;
  return (uint32_t)(h >> 32);
}

/* A float's bits as fp16's, cut, for magnitudes below 65504; what fp16 has no normal number for becomes 0. */
BENCH_FN uint32_t bench_cut_to_half(uint32_t bits) {
  uint32_t sign = bits >> 16 & 0x8000u, e = bits >> 23 & 255u;
  return e <= 112u ? sign : sign | (e - 112u) << 10 | (bits >> 13 & 0x3ffu);
}

/* The bits of one number: reals are uniform in [-1, 1]; integers and codebook entries are any code, INT sign-extended
 * to 32 bits; small floats are any code, but those with 4 and more exponent bits stay below 2 in magnitude, so that
 * there is no infinity, no NaN and no product beyond fp16. */
BENCH_FN uint32_t bench_random_number(lpgemm_dtype_t type, uint32_t h) {
  uint32_t low = type & 255u, ebits = type >> 8 & 255u, kind = type >> 16;
  if (kind == LPGEMM_KIND_REAL) {
    float value = (float)(int32_t)h * 4.656612873077392578125e-10f;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return type == LPGEMM_F32 ? bits : type == LPGEMM_BF16 ? bits >> 16 : bench_cut_to_half(bits);
  }
  if (kind == LPGEMM_KIND_INT) return (uint32_t)((int32_t)h >> (32 - low));
  if (kind != LPGEMM_KIND_FLOAT) return h >> (32 - low);
  uint32_t code = h >> (31 - ebits - low);
  if (ebits < 4) return code;
  uint32_t bias = (1u << (ebits - 1)) - 1u, field = (bias < 8u ? 0u : bias - 8u) + (h & 7u);
  return (code & (1u << (ebits + low))) | field << low | (code & ((1u << low) - 1u));
}

#endif
