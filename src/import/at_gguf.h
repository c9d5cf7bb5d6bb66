/* GGUF's blocks: codes and numbers of one block, for each type but those with grids (at_iq.h). b is a block, j a column
 * of it and a multiple of 16, i a group of it. docs/formats.md has the layouts. */
#ifndef LPG_IMPORT_AT_GGUF_H
#define LPG_IMPORT_AT_GGUF_H

#include "../layouts/packed.h"
#include "../pack/at.h"

LPG_FN lpg_codes16 lpg_merge16(lpg_codes16 a, lpg_codes16 b, int shift) {
  for (int i = 0; i < 4; i++) a.word[i] |= b.word[i] << shift;
  return a;
}

/* A word at an address that is a multiple of 2. */
LPG_BITS_FN uint32_t lpg_load32_by_16(const uint8_t *from) { return lpg_load16(from) | lpg_load16(from + 2) << 16; }

/* 32 nibbles in 16 bytes: the low ones, then the high ones. */
LPG_BITS_FN lpg_codes16 lpg_half_nibbles(const uint8_t *from, int align, int second) {
  return lpg_byte_fields(lpg_load16_bytes(from, align), 4 * second, 4);
}

/* With a fifth bit each, which lie in a word. */
LPG_BITS_FN lpg_codes16 lpg_half_fives(const uint8_t *nibbles, int align, uint32_t fifth, int second) {
  lpg_codes16 c = lpg_half_nibbles(nibbles, align, second);
  for (int i = 0; i < 4; i++) c.word[i] |= lpg_four_bits(fifth >> (16 * second + 4 * i)) << 4;
  return c;
}

/* Codes of 2 bits of 256 columns: four planes of 32 columns in 32 bytes, twice. */
LPG_BITS_FN lpg_codes16 lpg_plane2(const uint8_t *from, int align, int j) {
  return lpg_byte_fields(lpg_load16_bytes(from + j / 128 * 32 + j % 32, align), j % 128 / 32 * 2, 2);
}

/* One bit of 256 columns: eight planes of 32 columns in 32 bytes. */
LPG_BITS_FN lpg_codes16 lpg_plane1(const uint8_t *from, int align, int j) {
  return lpg_byte_fields(lpg_load16_bytes(from + j % 32, align), j / 32, 1);
}

/* Nibbles of 256 columns: two planes of 32 columns in 32 bytes, four times. */
LPG_BITS_FN lpg_codes16 lpg_plane4(const uint8_t *from, int align, int j) {
  return lpg_byte_fields(lpg_load16_bytes(from + j / 64 * 32 + j % 32, align), j % 64 / 32 * 4, 4);
}

LPG_BITS_FN lpg_codes16 lpg_q6_k_codes(const uint8_t *b, int j) {
  const lpg_codes16 low = lpg_byte_fields(lpg_load16_bytes(b + j / 128 * 64 + j % 64, 2), j % 128 / 64 * 4, 4);
  return lpg_merge16(low, lpg_plane2(b + 128, 2, j), 4);
}

LPG_BITS_FN lpg_codes16 lpg_nvfp4_codes(const uint8_t *b, int j) {
  const uint32_t first = lpg_load32(b + 4 + j / 2), second = lpg_load32(b + 8 + j / 2);
  lpg_codes16 c;
  c.word[0] = first & 0x0f0f0f0fu, c.word[1] = second & 0x0f0f0f0fu;
  c.word[2] = first >> 4 & 0x0f0f0f0fu, c.word[3] = second >> 4 & 0x0f0f0f0fu;
  return c;
}

LPG_BITS_FN lpg_codes16 lpg_q1_0_codes(const uint8_t *b, int j) {
  const uint32_t bits = lpg_load16(b + 2 + j / 8);
  lpg_codes16 c;
  for (int i = 0; i < 4; i++) c.word[i] = lpg_four_bits(bits >> 4 * i);
  return c;
}

LPG_BITS_FN lpg_codes16 lpg_q2_0_codes(const uint8_t *b, int j) {
  uint32_t word[2] = LPG_ZERO;
  word[0] = lpg_load32_by_16(b + 2 + j / 4);
  return lpg_sixteen_fields(word, 2);
}

/* A byte is 256 / 243 of a number of five trits, rounded up: times a power of 3, modulo 256, it begins with the trit of
 * that place, which times 3 makes it the upper byte. Four bytes at once, the even and the odd ones. */
LPG_FN uint32_t lpg_four_trits(uint32_t bytes, uint32_t power) {
  const uint32_t even = ((bytes & 0x00ff00ffu) * power & 0x00ff00ffu) * 3u >> 8 & 0x00030003u;
  const uint32_t odd = ((bytes >> 8 & 0x00ff00ffu) * power & 0x00ff00ffu) * 3u >> 8 & 0x00030003u;
  return even | odd << 8;
}

LPG_FN uint32_t lpg_power_of_3(int place) {
  return place == 0 ? 1u : place == 1 ? 3u : place == 2 ? 9u : place == 3 ? 27u : 81u;
}

LPG_BITS_FN lpg_codes16 lpg_tq1_0_codes(const uint8_t *b, int j) {
  lpg_codes16 c = LPG_ZERO;
  if (j >= 240) { /* four places of four bytes */
    const uint32_t four = lpg_load32_by_16(b + 48);
    for (int i = 0; i < 4; i++) c.word[i] = lpg_four_trits(four, lpg_power_of_3(i));
    return c;
  }
  c = lpg_load16_bytes(j < 160 ? b + j % 32 : b + 32, 2);
  const uint32_t power = lpg_power_of_3(j < 160 ? j / 32 : (j - 160) / 16);
  for (int i = 0; i < 4; i++) c.word[i] = lpg_four_trits(c.word[i], power);
  return c;
}

/* ---- numbers of groups ---- */

/* Q4_K and Q5_K: eight scales and eight minima of 6 bits in 12 bytes. */
LPG_BITS_FN uint32_t lpg_k_six(const uint8_t *a, int minimum, int i) {
  if (i < 4) return lpg_load8(a + 4 * minimum + i) & 63u;
  return (lpg_load8(a + 4 + i) >> 4 * minimum & 15u) | lpg_load8(a + 4 * minimum + i - 4) >> 6 << 4;
}

LPG_BITS_FN uint32_t lpg_q3_k_scale(const uint8_t *b, int i) {
  const uint32_t low = lpg_load8(b + 96 + i % 8) >> i / 8 * 4 & 15u,
                 high = lpg_load8(b + 104 + i % 4) >> i / 4 * 2 & 3u;
  return ((low | high << 4) - 32u) & 255u;
}

LPG_BITS_FN uint32_t lpg_iq4_xs_scale(const uint8_t *b, int i) {
  const uint32_t low = lpg_load8(b + 4 + i / 2) >> i % 2 * 4 & 15u, high = lpg_load16(b + 2) >> 2 * i & 3u;
  return ((low | high << 4) - 32u) & 255u;
}

/* e4m3's NaN means 0 here; it becomes e4m3's other zero, as the importer on the host has it. */
LPG_BITS_FN uint32_t lpg_nvfp4_scale(const uint8_t *b, int i) {
  const uint32_t scale = lpg_load8(b + i) & 0x7fu;
  return scale == 0x7f ? 0x80 : scale;
}

#endif
