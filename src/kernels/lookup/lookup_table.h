/* What a table of the lookup kernels has, and how packed words select from it (docs/lut.md): plain arithmetic, for C
 * and CUDA.
 *
 * A nibble of a packed word of 1, 2 or 4 bits is 4 codes, 2 codes or one. Its 16 values select from a table of the
 * sums of q * (2 * code - most), where most = 2^bits - 1 and q are activations as integers. Turning all bits of the
 * nibble round negates the sum, so entries 0 to 7 make the table: entry 15 - e is -entry e. An entry is cut into four
 * digits of 7 bits, each a byte, so that a byte permutation looks up four nibbles in the bytes of one digit. */
#ifndef LPG_KERNELS_LOOKUP_TABLE_H
#define LPG_KERNELS_LOOKUP_TABLE_H

#include "../fixed_point.h"

enum {
  LPG_TABLE_ENTRIES = 8,
  LPG_TABLE_BYTES = 32,  /* 4 digits of them */
  LPG_TABLE_LANES = 32,  /* tables of 32 bits of a row: 8 nibbles, 4 lanes t. Table 4 * nibble + t */
  LPG_DIGIT_BITS = 7,    /* bit 7 is clear: a byte permutation makes bytes of it where bit 3 of a nibble is set */
  LPG_TOP_DIGIT = 63,    /* the top digit, -63 to 63, is stored with this on it */
  LPG_TOP_TO_FIRST = 129 /* 128 less than nothing: stored, with this on it, it is the digit less 64, as a signed byte */
};

/* Digits of the integers, the sign among them: the most for which entries have at most 63 as their top digit. */
LPG_FN int lpg_table_precision(int bits) { return bits == 4 ? 24 : 25; }

/* Which of the 128 / bits columns of a unit (a word of each of four lanes t) code `i` of table `table` is. */
LPG_FN int lpg_table_column(int bits, int table, int i) {
  const int nibble = table / 4, t = table % 4, byte = nibble / 2;
  return 16 * (nibble % 2 * (4 / bits) + i) + 2 * t + byte % 2 * 8 + byte / 2;
}

/* Entry e, 0 to 15, of the integers of a table's codes. */
LPG_FN int32_t lpg_table_entry(int bits, const int32_t *q, int e) {
  const int most = (1 << bits) - 1;
  int32_t sum = 0;
  for (int i = 0; i < 4 / bits; i++) sum += q[i] * (2 * (e >> (i * bits) & most) - most);
  return sum;
}

/* Its digits, the lowest in the lowest byte. */
LPG_FN uint32_t lpg_table_digits(int32_t entry) {
  const uint32_t low = (uint32_t)entry;
  return (low & 0x7fu) | (low << 1 & 0x7f00u) | (low << 2 & 0x7f0000u) |
         (((uint32_t)(entry >> 3 * LPG_DIGIT_BITS) + LPG_TOP_DIGIT) << 24);
}

/* Nibbles of two words side by side: those of a in the low halves of bytes, of b in the high ones; first the nibbles
 * with even numbers, then those with odd ones. */
LPG_FN uint32_t lpg_even_nibbles(uint32_t a, uint32_t b) { return (a & 0x0f0f0f0fu) | (b << 4 & 0xf0f0f0f0u); }
LPG_FN uint32_t lpg_odd_nibbles(uint32_t a, uint32_t b) { return (a >> 4 & 0x0f0f0f0fu) | (b & 0xf0f0f0f0u); }

#endif
