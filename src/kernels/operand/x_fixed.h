/* X as fixed point, for C and CUDA: 128 k of a row of X, a chunk, share a power of two 2^e above their largest
 * magnitude. With P bits, sign included, a value x becomes the integer x / unit, rounded, where unit = 2^(e - P +
 * 1). */
#ifndef LPG_KERNELS_FIXED_POINT_H
#define LPG_KERNELS_FIXED_POINT_H

#include "../../internal.h"

enum {
  LPG_CHUNK_K = 128,        /* k's of X that share a unit */
  LPG_LEAST_EXPONENT = -102 /* keeps units of up to 25 bits normal numbers of fp32 */
};

/* The e of a chunk whose largest magnitude has these fp32 bits: 2^e is above it. */
LPG_FN int lpg_fixed_exponent(uint32_t most) {
  const int e = (int)(most >> 23) - 126;
  return e > LPG_LEAST_EXPONENT ? e : LPG_LEAST_EXPONENT;
}

/* 1 if the chunk has an infinity or NaN: then its integers are 0 and its unit is NaN. */
LPG_FN int lpg_is_not_finite(uint32_t most) { return most >= 0x7f800000u; }

/* The fp32 bits of 2^p; p: a normal exponent. */
LPG_FN uint32_t lpg_power_bits(int p) { return (uint32_t)(p + 127) << 23; }

#endif
