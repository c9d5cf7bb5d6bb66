/* X as fixed point, and as bit columns that are multiplied with packed weights of 1 and 2 bits (docs/bitserial.md).
 * Plain arithmetic for C and CUDA.
 *
 * 128 k of a row of X, a chunk, share a unit (x_fixed.h). A value x becomes the integer a = x / unit, rounded, in two's
 * complement of `digits` bits. Operand B of the binary MMA has 24 columns for a row of X. Against bit i of a code,
 * column q holds bit q - i of a and counts 2^q. The sign bit has columns of its own, one for each i; they count
 * -2^(digits - 1 + i). */
#ifndef LPG_BITSERIAL_GEMV1_FIXED_H
#define LPG_BITSERIAL_GEMV1_FIXED_H

#include "../kernels/operand/x_fixed.h"

enum { LPG_PLANES = 24 }; /* bit columns of a row of X: three MMA blocks of 8 */

/* Bits of an integer, the sign bit included. */
LPG_FN int lpg_fixed_digits(int bits) { return LPG_PLANES + 2 - 2 * bits; }

/* What column q counts: a power of two, negative for the sign bit. */
LPG_FN int32_t lpg_plane_weight(int bits, int q) { return q < LPG_PLANES - bits ? 1 << q : -(1 << (q - (bits - 1))); }

/* What column q holds against bit i of a code. */
LPG_FN uint32_t lpg_plane_bit(int bits, uint32_t a, int i, int q) {
  const int digits = lpg_fixed_digits(bits), sign = q - (LPG_PLANES - bits);
  if (sign >= 0) return sign == i ? a >> (digits - 1) & 1u : 0u;
  return q - i >= 0 && q - i < digits - 1 ? a >> (q - i) & 1u : 0u;
}

#endif
