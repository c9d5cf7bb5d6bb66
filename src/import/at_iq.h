/* GGUF's IQ types as codes and numbers: 16 codes are two vectors of 8, or four of 4, which indices name in a grid, with
 * signs. As in at_gguf.h; iq.c says what the codes are. */
#ifndef LPG_IMPORT_AT_IQ_H
#define LPG_IMPORT_AT_IQ_H

#include "at_gguf.h"

/* Entries of the grid of a type; 0: it has none. */
LPG_FN int lpg_grid_entries(int type) {
  switch (type) {
    case 16:
    case 18: return 256;
    case 17:
    case 21: return 512;
    case 22: return 1024;
    case 19:
    case 29: return 2048;
    default: return 0;
  }
}

/* Kernels have the grid in shared memory. */
LPG_BITS_FN uint32_t lpg_grid_entry(const lpg_at *a, uint32_t index) { return a->grid[index]; }

/* Eight signs of which seven are stored. */
LPG_BITS_FN uint32_t lpg_eighth_sign(uint32_t seven) {
  seven &= 127u;
#ifdef __CUDA_ARCH__
  return seven + ((unsigned)__popc(seven) << 7 & 128u);
#else
  uint32_t x = seven ^ seven >> 4;
  x ^= x >> 2;
  return seven | ((x ^ x >> 1) & 1u) << 7;
#endif
}

/* A byte's four fields of 2 bits, one a byte. */
LPG_FN uint32_t lpg_four_twos(uint32_t byte) {
  const uint32_t two = byte * 0x1001u & 0x000f000fu;
  return two * 0x41u & 0x03030303u;
}

/* Four signs become bit 2 of four bytes. */
LPG_FN uint32_t lpg_four_signs(uint32_t four) { return (four & 15u) * 0x00810204u & 0x04040404u; }

/* Eight fields of 2 bits, and eight signs at bit 2. */
LPG_FN void lpg_put_eight(lpg_codes16 *c, int vector, uint32_t eight, uint32_t signs) {
  c->word[2 * vector] = lpg_four_twos(eight & 255u) | lpg_four_signs(signs);
  c->word[2 * vector + 1] = lpg_four_twos(eight >> 8) | lpg_four_signs(signs >> 4);
}

LPG_BITS_FN lpg_codes16 lpg_iq2_xxs_codes(const lpg_at *a, const uint8_t *b, int j) {
  const uint8_t *group = b + 2 + j / 32 * 8;
  const int v = j % 32 / 8; /* 0 or 2 */
  const uint32_t two = lpg_load16(group + v), signs = lpg_load32_by_16(group + 4) >> 7 * v;
  lpg_codes16 c = LPG_ZERO;
  lpg_put_eight(&c, 0, lpg_grid_entry(a, two & 255u), lpg_eighth_sign(signs));
  lpg_put_eight(&c, 1, lpg_grid_entry(a, two >> 8), lpg_eighth_sign(signs >> 7));
  return c;
}

LPG_BITS_FN lpg_codes16 lpg_iq2_xs_codes(const lpg_at *a, const uint8_t *b, int j) {
  lpg_codes16 c = LPG_ZERO;
  for (int i = 0; i < 2; i++) {
    const uint32_t q = lpg_load16(b + 2 + 2 * (j / 8 + i));
    lpg_put_eight(&c, i, lpg_grid_entry(a, q & 511u), lpg_eighth_sign(q >> 9));
  }
  return c;
}

LPG_BITS_FN lpg_codes16 lpg_iq2_s_codes(const lpg_at *a, const uint8_t *b, int j) {
  lpg_codes16 c = LPG_ZERO;
  for (int i = 0; i < 2; i++) {
    const int v = j / 8 + i;
    const uint32_t index = lpg_load8(b + 2 + v) | (lpg_load8(b + 66 + v / 4) >> 2 * (v % 4) & 3u) << 8;
    lpg_put_eight(&c, i, lpg_grid_entry(a, index), lpg_load8(b + 34 + v));
  }
  return c;
}

LPG_BITS_FN lpg_codes16 lpg_iq3_xxs_codes(const lpg_at *a, const uint8_t *b, int j) {
  const uint32_t signs = lpg_load32_by_16(b + 66 + j / 32 * 4);
  lpg_codes16 c = LPG_ZERO;
  for (int i = 0; i < 2; i++) {
    const int v = j / 8 + i;
    const uint32_t eight = lpg_eighth_sign(signs >> 7 * (v % 4));
    for (int h = 0; h < 2; h++) {
      c.word[2 * i + h] =
          lpg_four_fields(lpg_grid_entry(a, lpg_load8(b + 2 + 2 * v + h)), 3) | lpg_four_bits(eight >> 4 * h) << 3;
    }
  }
  return c;
}

/* The odd number 2 m + 1 is code 8 + m of b4, and its negative that code with all bits inverted. */
LPG_BITS_FN lpg_codes16 lpg_iq3_s_codes(const lpg_at *a, const uint8_t *b, int j) {
  lpg_codes16 c = LPG_ZERO;
  for (int i = 0; i < 2; i++) {
    const int v = j / 8 + i;
    const uint32_t high = lpg_load8(b + 66 + v / 4) >> 2 * (v % 4), signs = lpg_load8(b + 74 + v);
    for (int h = 0; h < 2; h++) {
      const uint32_t index = lpg_load8(b + 2 + 2 * v + h) | (high >> h & 1u) << 8;
      c.word[2 * i + h] =
          (lpg_four_fields(lpg_grid_entry(a, index), 3) | 0x08080808u) ^ lpg_four_bits(signs >> 4 * h) * 15u;
    }
  }
  return c;
}

/* IQ1: trits 0, 1, 2; a vector that is moved down takes the codebook's second half. */
LPG_BITS_FN lpg_codes16 lpg_iq1_s_codes(const lpg_at *a, const uint8_t *b, int j) {
  lpg_codes16 c = LPG_ZERO;
  for (int i = 0; i < 2; i++) {
    const int v = j / 8 + i;
    const uint32_t h = lpg_load16(b + 34 + 2 * (v / 4));
    const uint32_t index = lpg_load8(b + 2 + v) | (h >> 3 * (v % 4) & 7u) << 8;
    lpg_put_eight(&c, i, lpg_grid_entry(a, index), h >> 15 ? 255u : 0u);
  }
  return c;
}

LPG_BITS_FN lpg_codes16 lpg_iq1_m_codes(const lpg_at *a, const uint8_t *b, int j) {
  lpg_codes16 c = LPG_ZERO;
  for (int i = 0; i < 2; i++) {
    const int v = j / 8 + i;
    const uint32_t h = lpg_load8(b + 32 + v / 2) >> 4 * (v % 2);
    lpg_put_eight(&c, i, lpg_grid_entry(a, lpg_load8(b + v) | (h & 7u) << 8), h & 8u ? 255u : 0u);
  }
  return c;
}

/* ---- scales: 2 s + 1 ---- */

LPG_BITS_FN uint32_t lpg_nibble_scale(const uint8_t *from, int i) {
  return 2u * (lpg_load8(from + i / 2) >> i % 2 * 4 & 15u) + 1u;
}

LPG_BITS_FN uint32_t lpg_iq1_m_scale(const uint8_t *b, int i) {
  return 2u * (lpg_load16(b + 48 + i / 4 * 2) >> 3 * (i % 4) & 7u) + 1u;
}

/* Its f16 lies in the highest bits of four words. */
LPG_BITS_FN uint32_t lpg_iq1_m_super(const uint8_t *b) {
  uint32_t half = 0;
  for (int i = 0; i < 4; i++) half |= lpg_load16(b + 48 + 2 * i) >> 12 << 4 * i;
  return half;
}

#endif
