/* Activations as fixed point: plain arithmetic, for C and CUDA. 128 columns of a row of X, a chunk, share a power of
 * two 2^e above their largest magnitude; with P digits, the sign among them, a number x of them becomes the integer x /
 * unit rounded, unit = 2^(e - P + 1). */
#ifndef LPG_KERNELS_FIXED_POINT_H
#define LPG_KERNELS_FIXED_POINT_H

#include "../../internal.h"

enum {
  LPG_CHUNK_K = 128,        /* columns of X that share a unit */
  LPG_LEAST_EXPONENT = -102 /* so that units are normal numbers of fp32, with up to 25 digits */
};

/* The e of a chunk whose largest magnitude has these bits in fp32: 2^e is above it. */
LPG_FN int lpg_fixed_exponent(uint32_t most) {
  const int e = (int)(most >> 23) - 126;
  return e > LPG_LEAST_EXPONENT ? e : LPG_LEAST_EXPONENT;
}

/* 1 if the chunk has an infinity or NaN: then its numbers become 0 and its unit NaN. */
LPG_FN int lpg_is_not_finite(uint32_t most) { return most >= 0x7f800000u; }

/* 2^p, a normal number of fp32, as its bits. */
LPG_FN uint32_t lpg_power_bits(int p) { return (uint32_t)(p + 127) << 23; }

#endif
