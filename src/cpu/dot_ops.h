/* Products of bytes for each instruction set: what dot.c needs beyond the vectors of gcc and clang. Part of dot.c.
 *
 * A quad is four columns: a vector of the panel has, for V rows of W, four unsigned bytes each, and a row of X the four
 * signed bytes that meet them. A row tile is LPG_DOT_PARTS such vectors. LPG_DOT_ROWS and LPG_DOT_LINES are how many
 * rows of X, and how many lines of bytes (a row has one or several), are multiplied at once at most. */
#ifndef LPG_CPU_DOT_OPS_H
#define LPG_CPU_DOT_OPS_H

#include "unpack.h"

/* CENTERED: a class of bytes beside their widths, those of 8 bits less 128. */
enum { LPG_DOT_PARTS = LPG_TILE_ROWS / V, LPG_DOT_CENTERED = 9 };

/* For each of the V rows the four bytes of a row of X. */
INLINE vint spread(const int8_t *x) {
  int32_t four;
  memcpy(&four, x, sizeof four);
  return (vint){0} + four;
}

INLINE vint load_bytes(const uint8_t *p) {
  vint v;
  memcpy(&v, p, sizeof v);
  return v;
}

#if defined(__AVX512VNNI__)
#define LPG_DOT_NO_CLASSES /* the instruction adds up in 32 bits, whatever the width of the weights */
enum { LPG_DOT_ROWS = 8, LPG_DOT_LINES = 12, LPG_DOT_CENTERS = 0 };

/* sums[row][part] += over `quads` quads. */
INLINE void add_quads(int bits, int quads, int rows, const uint8_t *panel, const int8_t *x, int64_t stride,
                      vint sums[][LPG_DOT_PARTS]) {
  (void)bits;
#pragma GCC unroll 8
  for (int q = 0; q < quads; q++) {
    const __m512i w = _mm512_load_si512(panel + q * 64);
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) {
      sums[r][0] = (vint)_mm512_dpbusd_epi32((__m512i)sums[r][0], w, (__m512i)spread(x + r * stride + 4 * q));
    }
  }
}

/* The sum of the products of the halves. */
INLINE vint multiply_16(vint a, vint b) { return (vint)_mm512_madd_epi16((__m512i)a, (__m512i)b); }

INLINE vuint look_up(const uint8_t table[16], vuint codes) {
  const __m512i all = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)table));
  return (vuint)_mm512_shuffle_epi8(all, (__m512i)codes);
}

#elif defined(__AVX2__)
enum { LPG_DOT_ROWS = 4, LPG_DOT_LINES = 4, LPG_DOT_CENTERS = 1 };

/* VPMADDUBSW adds two products in 16 bits, which hold so many of these sums: 2 (2^bits - 1) 128 each. 8 bits are two
 * nibbles, the upper one times 16. */
INLINE int sums_of_16_bits(int bits) { return bits == 7 ? 1 : bits == 6 ? 2 : bits == 5 ? 4 : 8; }

INLINE void add_nibbles(int bits, int shift, int quads, int rows, const uint8_t *panel, const int8_t *x, int64_t stride,
                        vint sums[][LPG_DOT_PARTS]) {
  const int together = quads < sums_of_16_bits(bits) ? quads : sums_of_16_bits(bits);
  const __m256i ones = _mm256_set1_epi16((short)(1 << shift)), nibble = _mm256_set1_epi8(15);
#pragma GCC unroll 8
  for (int first = 0; first < quads; first += together) {
    __m256i sum[LPG_DOT_ROWS][LPG_DOT_PARTS];
#pragma GCC unroll 8
    for (int q = first; q < first + together; q++) {
      __m256i w[LPG_DOT_PARTS];
#pragma GCC unroll 2
      for (int p = 0; p < LPG_DOT_PARTS; p++) {
        w[p] = (__m256i)load_bytes(panel + q * 64 + p * 32);
        if (shift > 0) w[p] = _mm256_srli_epi16(w[p], 4);
        if (bits == 8) w[p] = _mm256_and_si256(w[p], nibble);
      }
#pragma GCC unroll 4
      for (int r = 0; r < rows; r++) {
        const __m256i four = (__m256i)spread(x + r * stride + 4 * q);
#pragma GCC unroll 2
        for (int p = 0; p < LPG_DOT_PARTS; p++) {
          const __m256i two = _mm256_maddubs_epi16(w[p], four);
          sum[r][p] = q == first ? two : _mm256_add_epi16(sum[r][p], two);
        }
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
#pragma GCC unroll 2
      for (int p = 0; p < LPG_DOT_PARTS; p++) sums[r][p] += (vint)_mm256_madd_epi16(sum[r][p], ones);
    }
  }
}

/* Bytes less 128, by magnitude, and X, which is never -128, with their signs: two products fit 16 bits. */
INLINE void add_centered(int quads, int rows, const uint8_t *panel, const int8_t *x, int64_t stride,
                         vint sums[][LPG_DOT_PARTS]) {
  const __m256i ones = _mm256_set1_epi16(1), center = _mm256_set1_epi8(-128);
#pragma GCC unroll 8
  for (int q = 0; q < quads; q++) {
    __m256i w[LPG_DOT_PARTS], magnitude[LPG_DOT_PARTS];
#pragma GCC unroll 2
    for (int p = 0; p < LPG_DOT_PARTS; p++) {
      w[p] = _mm256_xor_si256((__m256i)load_bytes(panel + q * 64 + p * 32), center);
      magnitude[p] = _mm256_abs_epi8(w[p]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
      const __m256i four = (__m256i)spread(x + r * stride + 4 * q);
#pragma GCC unroll 2
      for (int p = 0; p < LPG_DOT_PARTS; p++) {
        const __m256i two = _mm256_maddubs_epi16(magnitude[p], _mm256_sign_epi8(four, w[p]));
        sums[r][p] += (vint)_mm256_madd_epi16(two, ones);
      }
    }
  }
}

INLINE void add_quads(int bits, int quads, int rows, const uint8_t *panel, const int8_t *x, int64_t stride,
                      vint sums[][LPG_DOT_PARTS]) {
  if (bits == LPG_DOT_CENTERED) {
    add_centered(quads, rows, panel, x, stride, sums);
    return;
  }
  add_nibbles(bits, 0, quads, rows, panel, x, stride, sums);
  if (bits == 8) add_nibbles(bits, 4, quads, rows, panel, x, stride, sums);
}

INLINE vint multiply_16(vint a, vint b) { return (vint)_mm256_madd_epi16((__m256i)a, (__m256i)b); }

INLINE vuint look_up(const uint8_t table[16], vuint codes) {
  const __m256i all = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table));
  return (vuint)_mm256_shuffle_epi8(all, (__m256i)codes);
}

#elif defined(__ARM_FEATURE_DOTPROD)
#include "dot_ops_neon.h"

#else
#define LPG_DOT_NO_CLASSES
enum { LPG_DOT_ROWS = 1, LPG_DOT_LINES = 3, LPG_DOT_CENTERS = 0 };

INLINE void add_quads(int bits, int quads, int rows, const uint8_t *panel, const int8_t *x, int64_t stride,
                      vint sums[][LPG_DOT_PARTS]) {
  (void)bits;
  for (int q = 0; q < quads; q++) {
    for (int r = 0; r < rows; r++) {
      for (int p = 0; p < LPG_DOT_PARTS; p++) {
        const vint w = load_bytes(panel + q * 64 + p * 4 * V);
        for (int i = 0; i < 4; i++) sums[r][p] += (w >> 8 * i & 255) * (int32_t)x[r * stride + 4 * q + i];
      }
    }
  }
}

INLINE vint multiply_16(vint a, vint b) { return (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16); }

INLINE vuint look_up(const uint8_t table[16], vuint codes) {
  uint8_t bytes[4 * V];
  memcpy(bytes, &codes, sizeof bytes);
  for (int i = 0; i < 4 * V; i++) bytes[i] = table[bytes[i]];
  memcpy(&codes, bytes, sizeof bytes);
  return codes;
}
#endif

#endif
