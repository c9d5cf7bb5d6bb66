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

/* sums += the products of bytes of w and x; of several codes of weights, the same times a pair of equal halves. */
INLINE vint add_products(int bits, vuint w, vint x, vint sums) {
  (void)bits;
  return (vint)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)w, (__m512i)x);
}

INLINE vint add_folded_products(vuint w, vint x, vint factors, vint sums) {
  const __m512i two = _mm512_maddubs_epi16((__m512i)w, (__m512i)x);
  return (vint)_mm512_dpwssd_epi32((__m512i)sums, two, (__m512i)factors);
}

/* For each t the words t of lo, twice, and of hi, twice. */
INLINE void spread_quads(const int8_t *lo, const int8_t *hi, int8_t *out) {
  const __m512i place = _mm512_setr_epi32(0, 0, 16, 16, 1, 1, 17, 17, 2, 2, 18, 18, 3, 3, 19, 19);
  const __m512i low = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)lo));
  const __m512i high = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)hi));
  _mm512_storeu_si512(out, _mm512_permutex2var_epi32(low, place, high));
}

/* Pairs of words of a and b in turn. */
INLINE void mix_pairs(const vuint a[LPG_DOT_PARTS], const vuint b[LPG_DOT_PARTS], uint32_t *out) {
  const __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
  _mm512_storeu_si512(out, _mm512_permutex2var_epi64((__m512i)a[0], low, (__m512i)b[0]));
  _mm512_storeu_si512(out + V, _mm512_permutex2var_epi64((__m512i)a[0], high, (__m512i)b[0]));
}

/* Of every four words two of a and two of b: its first or its last ones. */
INLINE vuint take_pairs(vuint a, int last_of_a, vuint b, int last_of_b) {
  const __m512d x = (__m512d)a, y = (__m512d)b;
  if (last_of_a) return (vuint)(last_of_b ? _mm512_unpackhi_pd(x, y) : _mm512_shuffle_pd(x, y, 0x55));
  return (vuint)(last_of_b ? _mm512_shuffle_pd(x, y, 0xaa) : _mm512_unpacklo_pd(x, y));
}

/* Four words, again and again. */
INLINE vint repeat_four(const uint32_t *p) {
  return (vint)_mm512_broadcast_i32x4(_mm_load_si128((const __m128i *)(const void *)p));
}

INLINE vuint look_up(const uint8_t table[16], vuint codes) {
  const __m512i all = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)table));
  return (vuint)_mm512_shuffle_epi8(all, (__m512i)codes);
}

#elif defined(__AVX2__)
#if defined(__AVXVNNI__)
#define LPG_DOT_NO_CLASSES
enum { LPG_DOT_ROWS = 4, LPG_DOT_LINES = 6, LPG_DOT_CENTERS = 0 };

INLINE void add_quads(int bits, int quads, int rows, const uint8_t *panel, const int8_t *x, int64_t stride,
                      vint sums[][LPG_DOT_PARTS]) {
  (void)bits;
#pragma GCC unroll 8
  for (int q = 0; q < quads; q++) {
    const __m256i w[LPG_DOT_PARTS] = {(__m256i)load_bytes(panel + q * 64), (__m256i)load_bytes(panel + q * 64 + 32)};
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
      const __m256i four = (__m256i)spread(x + r * stride + 4 * q);
#pragma GCC unroll 2
      for (int p = 0; p < LPG_DOT_PARTS; p++) {
        sums[r][p] = (vint)_mm256_dpbusd_avx_epi32((__m256i)sums[r][p], w[p], four);
      }
    }
  }
}

INLINE vint add_products(int bits, vuint w, vint x, vint sums) {
  (void)bits;
  return (vint)_mm256_dpbusd_avx_epi32((__m256i)sums, (__m256i)w, (__m256i)x);
}

INLINE vint add_folded_products(vuint w, vint x, vint factors, vint sums) {
  const __m256i two = _mm256_maddubs_epi16((__m256i)w, (__m256i)x);
  return (vint)_mm256_dpwssd_avx_epi32((__m256i)sums, two, (__m256i)factors);
}
#else
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

/* bits: up to 7, or CENTERED, with which two products fit 16 bits. */
INLINE vint add_products(int bits, vuint w, vint x, vint sums) {
  const __m256i centered = _mm256_xor_si256((__m256i)w, _mm256_set1_epi8(-128));
  const __m256i two = bits == LPG_DOT_CENTERED
                          ? _mm256_maddubs_epi16(_mm256_abs_epi8(centered), _mm256_sign_epi8((__m256i)x, centered))
                          : _mm256_maddubs_epi16((__m256i)w, (__m256i)x);
  return sums + (vint)_mm256_madd_epi16(two, _mm256_set1_epi16(1));
}

INLINE vint add_folded_products(vuint w, vint x, vint factors, vint sums) {
  return sums + (vint)_mm256_madd_epi16(_mm256_maddubs_epi16((__m256i)w, (__m256i)x), (__m256i)factors);
}
#endif

INLINE vint multiply_16(vint a, vint b) { return (vint)_mm256_madd_epi16((__m256i)a, (__m256i)b); }

INLINE void spread_quads(const int8_t *lo, const int8_t *hi, int8_t *out) {
  const __m128i low = _mm_loadu_si128((const __m128i *)(const void *)lo);
  const __m128i high = _mm_loadu_si128((const __m128i *)(const void *)hi);
  const __m128i a = _mm_unpacklo_epi32(low, low), b = _mm_unpacklo_epi32(high, high);
  const __m128i c = _mm_unpackhi_epi32(low, low), d = _mm_unpackhi_epi32(high, high);
  __m128i *to = (__m128i *)(void *)out;
  _mm_storeu_si128(to, _mm_unpacklo_epi64(a, b));
  _mm_storeu_si128(to + 1, _mm_unpackhi_epi64(a, b));
  _mm_storeu_si128(to + 2, _mm_unpacklo_epi64(c, d));
  _mm_storeu_si128(to + 3, _mm_unpackhi_epi64(c, d));
}

INLINE void mix_pairs(const vuint a[LPG_DOT_PARTS], const vuint b[LPG_DOT_PARTS], uint32_t *out) {
#pragma GCC unroll 2
  for (int p = 0; p < 2; p++) {
    const __m256i even = _mm256_unpacklo_epi64((__m256i)a[p], (__m256i)b[p]);
    const __m256i odd = _mm256_unpackhi_epi64((__m256i)a[p], (__m256i)b[p]);
    __m256i *to = (__m256i *)(void *)(out + 2 * p * V);
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even, odd, 0x31));
  }
}

INLINE vuint take_pairs(vuint a, int last_of_a, vuint b, int last_of_b) {
  const __m256d x = (__m256d)a, y = (__m256d)b;
  if (last_of_a) return (vuint)(last_of_b ? _mm256_unpackhi_pd(x, y) : _mm256_shuffle_pd(x, y, 0x5));
  return (vuint)(last_of_b ? _mm256_shuffle_pd(x, y, 0xa) : _mm256_unpacklo_pd(x, y));
}

INLINE vint repeat_four(const uint32_t *p) {
  return (vint)_mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)(const void *)p));
}

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

INLINE vint add_products(int bits, vuint w, vint x, vint sums) {
  (void)bits;
  for (int i = 0; i < 4; i++) sums += (vint)(w >> (uint32_t)(8 * i) & 255u) * (x << (24 - 8 * i) >> 24);
  return sums;
}

INLINE vuint look_up(const uint8_t table[16], vuint codes) {
  uint8_t bytes[4 * V];
  memcpy(bytes, &codes, sizeof bytes);
  for (int i = 0; i < 4 * V; i++) bytes[i] = table[bytes[i]];
  memcpy(&codes, bytes, sizeof bytes);
  return codes;
}
#endif

#if !defined(__AVX2__) /* V is four */
INLINE vint add_folded_products(vuint w, vint x, vint factors, vint sums) {
  return sums + add_products(8, w, x, (vint){0}) * (factors & 0xffff);
}

INLINE void spread_quads(const int8_t *lo, const int8_t *hi, int8_t *out) {
  for (int i = 0; i < LPG_TILE_ROWS; i++) memcpy(out + 4 * i, (i & 2 ? hi : lo) + i / 4 * 4, 4);
}

INLINE void mix_pairs(const vuint a[LPG_DOT_PARTS], const vuint b[LPG_DOT_PARTS], uint32_t *out) {
  for (int i = 0; i < LPG_TILE_ROWS / 2; i++) {
    memcpy(out + 4 * i, (const uint32_t *)(const void *)a + 2 * i, 8);
    memcpy(out + 4 * i + 2, (const uint32_t *)(const void *)b + 2 * i, 8);
  }
}

INLINE vuint take_pairs(vuint a, int last_of_a, vuint b, int last_of_b) {
  return (vuint){a[2 * last_of_a], a[2 * last_of_a + 1], b[2 * last_of_b], b[2 * last_of_b + 1]};
}

INLINE vint repeat_four(const uint32_t *p) {
  vint four;
  memcpy(&four, p, sizeof four);
  return four;
}
#endif

#endif
