/* Arrangements with codes in words of 32 or 16 bits: GPTQ, AWQ and the older one of compressed-tensors. */
#ifndef LPG_IMPORT_AT_WORDS_H
#define LPG_IMPORT_AT_WORDS_H

#include "../pack/at.h"

/* Field `index` of a stream of words that lie `line` words apart; it may straddle two of them. */
LPG_BITS_FN uint32_t lpg_word_field(const uint8_t *words, int64_t line, int64_t index, int bits) {
  const uint32_t run = (uint32_t)index / 32u, in_run = (uint32_t)index % 32u * (uint32_t)bits;
  const uint8_t *at = words + (int64_t)(run * (uint32_t)bits + in_run / 32u) * line * 4; /* 32 fields: `bits` words */
  const int shift = (int)(in_run % 32);
  uint32_t field = lpg_load32(at) >> shift;
  if (shift + bits > 32) field |= lpg_load32(at + line * 4) << (32 - shift);
  return field & ((1u << bits) - 1u);
}

/* Field `index` of words that have whole fields only. */
LPG_BITS_FN uint32_t lpg_whole_field(const uint8_t *words, int64_t line, uint32_t index, int bits) {
  const uint32_t each = 32u / (uint32_t)bits;
  return lpg_load32(words + index / each * line * 4) >> (int)(index % each) * bits & ((1u << bits) - 1u);
}

/* ---- GPTQ: a stream along K for each row; words of neighbouring rows are neighbours, `line` is N ---- */

LPG_BITS_FN uint32_t lpg_at_gptq_code(const lpg_at *a, int bits, int64_t n, int64_t k) {
  return lpg_word_field(a->codes + n * 4, a->line, k, bits);
}

LPG_BITS_FN lpg_codes16 lpg_at_gptq_codes(const lpg_at *a, int bits, int64_t n, int64_t k) {
  const uint32_t bit = (uint32_t)k % 32u * (uint32_t)bits, row = (uint32_t)k / 32u * (uint32_t)bits + bit / 32u;
  const uint8_t *from = a->codes + ((int64_t)row * a->line + n) * 4;
  uint32_t word[5] = LPG_ZERO;
  for (int i = 0; i < (bits + 1) / 2; i++) word[i] = lpg_load32(from + i * a->line * 4);
  if (bits == 3 && bit % 32 != 0) { /* half a word on */
    word[0] = word[0] >> 16 | word[1] << 16;
    word[1] >>= 16;
  }
  return lpg_sixteen_fields(word, bits);
}

/* ---- AWQ "gemm": a word has one column of eight rows; `line` is N / 8 ---- */

LPG_FN int lpg_awq_shift(int64_t n) { return 4 * (int)((n & 7) / 2 + (n & 1) * 4); }

LPG_BITS_FN uint32_t lpg_at_awq_code(const lpg_at *a, int bits, int64_t n, int64_t k) {
  (void)bits;
  return lpg_load32(a->codes + (k * a->line + n / 8) * 4) >> lpg_awq_shift(n) & 15u;
}

LPG_BITS_FN lpg_codes16 lpg_at_awq_codes(const lpg_at *a, int bits, int64_t n, int64_t k) {
  const uint8_t *from = a->codes + (k * a->line + n / 8) * 4;
  const int shift = lpg_awq_shift(n);
  lpg_codes16 c = LPG_ZERO;
  (void)bits;
  for (int i = 0; i < 16; i++) c.word[i / 4] |= (lpg_load32(from + i * a->line * 4) >> shift & 15u) << i % 4 * 8;
  return c;
}

/* ---- AWQ "gemv_fast": 64 columns of 4 rows are 128 bytes. 32 columns of a row are eight words of 16 bits, of which
 * word h has in field r column 8 r + h ---- */

LPG_BITS_FN lpg_codes16 lpg_at_awq_fast_codes(const lpg_at *a, int bits, int64_t n, int64_t k) {
  const uint32_t column = (uint32_t)k, row = (uint32_t)n;
  const int64_t at = (int64_t)(row / 4u) * a->k * 2 + column / 64u * 128u + row % 4u * 32u + column % 64u / 32u * 16u;
  const lpg_codes16 from = lpg_load16_bytes(a->codes + at, 16);
  lpg_codes16 c = LPG_ZERO;
  (void)bits;
  for (int i = 0; i < 4; i++) {
    const int shift = (int)(column % 32u / 8u) * 4 + i / 2 * 4;
    const uint32_t low = from.word[i % 2 * 2] >> shift & 0x000f000fu,
                   high = from.word[i % 2 * 2 + 1] >> shift & 0x000f000fu;
    c.word[i] = (low & 0xffu) | low >> 8 | (high & 0xffu) << 16 | (high & 0xff0000u) << 8;
  }
  return c;
}

LPG_BITS_FN uint32_t lpg_at_awq_fast_code(const lpg_at *a, int bits, int64_t n, int64_t k) {
  const lpg_codes16 c = lpg_at_awq_fast_codes(a, bits, n, k / 16 * 16);
  return lpg_code_of(&c, (int)(k % 16));
}

/* ---- compressed-tensors before its dense stream: as many whole fields as a word has room for ---- */

LPG_BITS_FN uint32_t lpg_at_words_code(const lpg_at *a, int bits, int64_t n, int64_t k) {
  return lpg_whole_field(a->codes + n * a->line * 4, 1, (uint32_t)k, bits);
}

LPG_BITS_FN lpg_codes16 lpg_at_words_codes(const lpg_at *a, int bits, int64_t n, int64_t k) {
  lpg_codes16 c = LPG_ZERO;
  for (int i = 0; i < 16; i++) c.word[i / 4] |= lpg_at_words_code(a, bits, n, k + i) << i % 4 * 8;
  return c;
}

#endif
