/* Arrangements with fields in bytes: bitsandbytes, HQQ and BitNet. */
#ifndef LPG_IMPORT_AT_BYTES_H
#define LPG_IMPORT_AT_BYTES_H

#include "../pack/at.h"

/* ---- bitsandbytes: the even column in the high nibble; K is a multiple of 16 ---- */

LPG_BITS_FN lpg_codes16 lpg_at_nf4_codes(const lpg_at *a, int bits, int64_t n, int64_t k) {
  const uint8_t *from = a->codes + (n * a->k + k) / 2;
  uint32_t word[3] = LPG_ZERO;
  for (int i = 0; i < 2; i++) {
    const uint32_t x = lpg_load32(from + 4 * i);
    word[i] = (x & 0x0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0fu);
  }
  return lpg_sixteen_fields(word, bits);
}

LPG_BITS_FN uint32_t lpg_at_nf4_code(const lpg_at *a, int bits, int64_t n, int64_t k) {
  (void)bits;
  return lpg_load8(a->codes + (n * a->k + k) / 2) >> (k % 2 ? 0 : 4) & 15u;
}

/* ---- HQQ: the matrix is a list of groups; line i has groups i, i + lines, ..., the first in the highest bits ---- */

typedef struct lpg_hqq_place {
  int64_t number; /* of the byte, or word */
  int shift;
} lpg_hqq_place;

LPG_BITS_FN lpg_hqq_place lpg_find_hqq(const lpg_at *a, int bits, int64_t n, int64_t k) {
  const uint32_t group = (uint32_t)a->group, lines = (uint32_t)a->lines;
  const uint32_t index = (uint32_t)n * ((uint32_t)a->k / group) + (uint32_t)k / group;
  const int part = (int)(index / lines);
  lpg_hqq_place p;
  p.number = (int64_t)(index % lines) * group + (uint32_t)k % group;
  p.shift = bits == 3 ? 27 - 3 * part : 8 - bits * (part + 1);
  return p;
}

LPG_BITS_FN uint32_t lpg_at_hqq_code(const lpg_at *a, int bits, int64_t n, int64_t k) {
  const lpg_hqq_place p = lpg_find_hqq(a, bits, n, k);
  const uint32_t from = bits == 3 ? lpg_load32(a->codes + p.number * 4) : lpg_load8(a->codes + p.number);
  return from >> p.shift & ((1u << bits) - 1u);
}

LPG_BITS_FN lpg_codes16 lpg_at_hqq_codes(const lpg_at *a, int bits, int64_t n, int64_t k) {
  const lpg_hqq_place p = lpg_find_hqq(a, bits, n, k);
  lpg_codes16 c = LPG_ZERO;
  if (bits != 3) return lpg_byte_fields(lpg_load16_anywhere(a->codes + p.number), p.shift, bits);
  for (int i = 0; i < 16; i++) {
    c.word[i / 4] |= (lpg_load32(a->codes + (p.number + i) * 4) >> p.shift & 7u) << i % 4 * 8;
  }
  return c;
}

/* ---- BitNet: a byte has one column of four rows, which lie a quarter of the matrix apart ---- */

LPG_BITS_FN uint32_t lpg_at_bitnet_code(const lpg_at *a, int bits, int64_t n, int64_t k) {
  const uint32_t row = (uint32_t)n, lines = (uint32_t)a->lines;
  (void)bits;
  return lpg_load8(a->codes + (int64_t)(row % lines) * a->k + k) >> 2 * (int)(row / lines) & 3u;
}

LPG_BITS_FN lpg_codes16 lpg_at_bitnet_codes(const lpg_at *a, int bits, int64_t n, int64_t k) {
  const uint32_t row = (uint32_t)n, lines = (uint32_t)a->lines;
  return lpg_byte_fields(lpg_load16_anywhere(a->codes + (int64_t)(row % lines) * a->k + k), 2 * (int)(row / lines),
                         bits);
}

#endif
