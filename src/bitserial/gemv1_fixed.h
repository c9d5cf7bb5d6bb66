/* Activations as fixed point, and as columns of bits beside weights that stay packed: docs/bitserial.md. Plain
 * arithmetic, for C and CUDA.
 *
 * 128 columns of a row of X, a chunk, share a power of two 2^e above their largest magnitude. A number x of them
 * becomes the integer a = x / unit rounded, unit = 2^(e - digits + 1), in two's complement of `digits` bits. Beside bit
 * i of a weight's code the binary operand holds in column q bit q - i of a, and the column counts 2^q; the sign's bit
 * has columns of its own, one for each i, that count -2^(digits - 1 + i). All columns together are 24. */
#ifndef LPG_BITSERIAL_GEMV1_FIXED_H
#define LPG_BITSERIAL_GEMV1_FIXED_H

#include "../kernels/operand/x_fixed.h"

enum { LPG_PLANES = 24 }; /* columns of bits a row of X: three tensor-core blocks of 8 */

/* Bits of a number, its sign among them. */
LPG_FN int lpg_fixed_digits(int bits) { return LPG_PLANES + 2 - 2 * bits; }

/* What column q counts: a power of two, of the sign's bit negative. */
LPG_FN int32_t lpg_plane_weight(int bits, int q) { return q < LPG_PLANES - bits ? 1 << q : -(1 << (q - (bits - 1))); }

/* What column q holds beside bit i of a code. */
LPG_FN uint32_t lpg_plane_bit(int bits, uint32_t a, int i, int q) {
  const int digits = lpg_fixed_digits(bits), sign = q - (LPG_PLANES - bits);
  if (sign >= 0) return sign == i ? a >> (digits - 1) & 1u : 0u;
  return q - i >= 0 && q - i < digits - 1 ? a >> (q - i) & 1u : 0u;
}

#endif
