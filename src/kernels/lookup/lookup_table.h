/* What a table of the lookup kernels has, and how packed words select from it (docs/lut.md): plain arithmetic, for C
 * and CUDA.
 *
 * Tables belong to chunks of 128 columns. The 32 columns of a chunk that one lane t of the packed form holds make a
 * plane of 32 bits for each bit of the weights; each of its eight nibbles is that bit of four columns, and selects one
 * of 16 sums of these activations as integers: entry e is the sum of +q where e has a one and of -q where it has none.
 */
#ifndef LPG_KERNELS_LOOKUP_TABLE_H
#define LPG_KERNELS_LOOKUP_TABLE_H

#include "../fixed_point.h"

enum {
  LPG_TABLE_ENTRIES = 16,
  LPG_TABLES = 8 /* of a lane and chunk: one a nibble */
};

/* Digits of the integers, the sign among them: the most for which sums of a chunk fit 32 bits, wherever the zero is
 * among the codes. Activations have no more than 11 digits of their own, so that none becomes 2^(precision - 1). */
LPG_FN int lpg_table_precision(int bits) { return bits == 1 ? 24 : 22; }

/* Words of a lane's row for a chunk: its units, in their order. From them the plane of bit `bit`. */
LPG_FN uint32_t lpg_plane_of(int bits, const uint32_t *units, int bit) {
  if (bits == 1) return units[0];
  return bit == 0 ? (units[0] & 0x55555555u) | (units[1] << 1 & 0xaaaaaaaau)
                  : (units[0] >> 1 & 0x55555555u) | (units[1] & 0xaaaaaaaau);
}

/* The column of a chunk whose bits are bit i of nibble `nibble` of lane t's planes: of a step of 16 columns byte j of a
 * word has the lane's j-th in the order 2t, 2t + 8, 2t + 1, 2t + 9. */
LPG_FN int lpg_table_column(int bits, int nibble, int t, int i) {
  const int byte = nibble / 2, at = nibble % 2 * 4 + i; /* of the byte's bits */
  const int step = bits == 1 ? at : at / 2 + at % 2 * 4;
  return 16 * step + 2 * t + byte % 2 * 8 + byte / 2;
}

LPG_FN int32_t lpg_table_entry(const int32_t *q, int e) {
  int32_t sum = 0;
  for (int i = 0; i < 4; i++) sum += e >> i & 1 ? q[i] : -q[i];
  return sum;
}

#endif
