/* What the tables of the GPU's lut hold, and how packed words select from them (docs/lut.md). Plain arithmetic for C
 * and CUDA.
 *
 * Tables belong to chunks of 128 k. The 32 k of a chunk that lane t of the packed form holds make a bit plane of 32
 * bits for each bit of the weights. Each of its eight nibbles has that bit of four k, and selects one of 16 sums of
 * these elements of X as integers: entry e is the sum of +q where e has a one and of -q where it has a zero. */
#ifndef LPG_LUT_GPU_TABLE_H
#define LPG_LUT_GPU_TABLE_H

#include "../../kernels/operand/x_fixed.h"

enum {
  LPG_TABLE_ENTRIES = 16,
  LPG_TABLES = 8,        /* of a lane t and a chunk: one a nibble */
  LPG_TABLE_COARSE = 20, /* bits of precision with which the magnitudes of a chunk are added up, to find its unit */
  LPG_TABLE_LEAST = -126 /* least exponent of a unit: a normal number of fp32 */
};

/* The magnitudes of a chunk add up to at most 2^digits units, plus half a unit each for rounding. Then products with
 * codes, counted in half codes from any zero among them, add up to less than 2^31. */
LPG_FN int lpg_table_digits(int bits) { return 30 - bits; }

/* The exponent of the unit of a chunk whose magnitudes are below 2^e. sum: what they add up to, in units of 2^(e -
 * LPG_TABLE_COARSE), each rounded up, as fp32 bits. */
LPG_FN int lpg_table_unit(int bits, int e, uint32_t sum) {
  const int unit = e - LPG_TABLE_COARSE + lpg_fixed_exponent(sum) - lpg_table_digits(bits);
  return unit > LPG_TABLE_LEAST ? unit : LPG_TABLE_LEAST;
}

/* In fields of 2 * shift bits: `low` gets the lower halves (mask) of both words, its own below those of `high`; `high`
 * gets the upper halves. */
LPG_FN void lpg_exchange_halves(uint32_t *low, uint32_t *high, int shift, uint32_t mask) {
  const uint32_t a = *low, b = *high;
  *low = (a & mask) | (b << shift & ~mask);
  *high = (a >> shift & mask) | (b & ~mask);
}

/* Turns a lane's words of a row for a chunk, in their order, into its bit planes, the lowest bit first. */
LPG_FN void lpg_words_to_planes(int bits, uint32_t *word) {
  if (bits == 3) { /* bit 3i + j of a half word is of field i of word j; bit 15 of the pair that is spread out */
    const uint32_t first = 0x12491249u, second = first << 1, third = 0x49244924u, last = 0x80008000u;
    const uint32_t a = word[0], b = word[1], c = word[2];
    word[0] = (a & (first | last)) | (b << 1 & second) | (c << 2 & third);
    word[1] = (a >> 1 & first) | (b & (second | last)) | (c << 1 & third);
    word[2] = (a >> 2 & first) | (b >> 1 & second) | (c & (third | last));
    return;
  }
  if (bits == 4) {
    lpg_exchange_halves(&word[0], &word[2], 2, 0x33333333u);
    lpg_exchange_halves(&word[1], &word[3], 2, 0x33333333u);
    lpg_exchange_halves(&word[2], &word[3], 1, 0x55555555u);
  }
  if (bits > 1) lpg_exchange_halves(&word[0], &word[1], 1, 0x55555555u);
}

/* The k, within its chunk, of bit i of nibble `nibble` of lane t's planes. In each half word bit `at` comes from word
 * at % bits: from the field that begins at bit at - at % bits; with 3 bits from field at / 3, and bit 15 from a pair of
 * its own. */
LPG_FN int lpg_table_column(int bits, int nibble, int t, int i) {
  const int odd = nibble / 4, at = nibble % 4 * 4 + i, word = at % bits, field = at - word;
  const int pair = bits != 3 ? 2 * (field % 8 / bits) + field / 8 : at == 15 ? 15 : 5 * word + at / 3;
  const int unit = bits != 3 ? word * (LPG_CHUNK_K / bits) : 0;
  return unit + pair / 2 * 16 + pair % 2 * 8 + 2 * t + odd;
}

LPG_FN int32_t lpg_table_entry(const int32_t *q, int e) {
  int32_t sum = 0;
  for (int i = 0; i < 4; i++) sum += e >> i & 1 ? q[i] : -q[i];
  return sum;
}

#endif
