/* Lookups with VPSHUFB, which looks up 16 bytes in a table of 16, in each half of a vector. Part of lookup.c.
 *
 * 16 bytes of the panel are the indices of 16 rows for one lane. Bytes are added up as 16-bit words: the whole words,
 * and their upper bytes once more, which taken off leave the lower ones. */
#ifndef LPG_LUT_PANEL_H
#define LPG_LUT_PANEL_H

#include "split3.h"

static inline int sum_row(int i) { return i; }
static inline int index_byte(int i, int t) { return t * LPG_TILE_ROWS + i; }

INLINE void sort_slots(const float *slots, float *sorted) {
  const __m256i from = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
  __m256 low = _mm256_permutevar8x32_ps(_mm256_load_ps(slots), from);
  __m256 high = _mm256_permutevar8x32_ps(_mm256_load_ps(slots + 8), from);
  _mm256_store_ps(sorted, _mm256_permute2f128_ps(low, high, 0x20));
  _mm256_store_ps(sorted + 8, _mm256_permute2f128_ps(low, high, 0x31));
}

/* ---- from the packed form to indices ----
 *
 * A vector is what two of the lanes t = 0..3 of one g hold: 16 bytes a lane, two qwords w, in each a word of row g and
 * one of row g + 8 (h), of 4 bytes j with 8 bits p. Wanted is, for every w and p, a vector of nibbles of the four bits
 * j. */

/* Swaps the numbers of bytes with the two lower bits of the places in a byte: then nibbles are indices. */
static inline __m256i swap_bits(__m256i x) {
  const __m256i odd = _mm256_set1_epi32(0x00aa00aa), upper = _mm256_set1_epi32(0x0000cccc);
  __m256i changed = _mm256_and_si256(_mm256_xor_si256(x, _mm256_srli_epi32(x, 7)), odd);
  x = _mm256_xor_si256(x, _mm256_xor_si256(changed, _mm256_slli_epi32(changed, 7)));
  changed = _mm256_and_si256(_mm256_xor_si256(x, _mm256_srli_epi32(x, 14)), upper);
  return _mm256_xor_si256(x, _mm256_xor_si256(changed, _mm256_slli_epi32(changed, 14)));
}

/* out[4 w + p % 4]: low nibbles are indices of the bits p = 0..3, high ones of p = 4..7. */
INLINE void transpose_bits(const __m256i in[8], __m256i out[8]) {
  const __m256i h_last =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15));
  __m256i a[8], b[8];
#pragma GCC unroll 8
  for (int g = 0; g < 8; g++) a[g] = _mm256_shuffle_epi8(swap_bits(in[g]), h_last);
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) { /* b[2 i + w]: g % 2 is in */
    b[2 * i] = _mm256_unpacklo_epi8(a[2 * i], a[2 * i + 1]);
    b[2 * i + 1] = _mm256_unpackhi_epi8(a[2 * i], a[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) { /* a[4 (g / 4) + 2 w + p / 2 % 2]: g / 2 % 2 is in */
    int from = i / 2 * 4 + i % 2, to = i / 2 * 4 + 2 * (i % 2);
    a[to] = _mm256_unpacklo_epi16(b[from], b[from + 2]);
    a[to + 1] = _mm256_unpackhi_epi16(b[from], b[from + 2]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    out[2 * i] = _mm256_unpacklo_epi32(a[i], a[4 + i]);
    out[2 * i + 1] = _mm256_unpackhi_epi32(a[i], a[4 + i]);
  }
}

/* Steps and planes of a vector's bits: bit p of word w is plane p % width of step w * far + p / width. half: of a plane
 * of the panel. */
INLINE void store_indices(const __m256i in[8], int bits, int width, int far, int half, panel_step *panel) {
  const __m256i nibble = _mm256_set1_epi8(15);
  __m256i planes[8];
  transpose_bits(in, planes);
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) {
    int low = i % 4, high = low + 4, step = i / 4 * far;
    __m256i above = _mm256_srli_epi16(planes[i], 4);
    __m256i *near_low = (__m256i *)(void *)(panel[step + low / width].index[low % width] + 32 * half);
    __m256i *near_high = (__m256i *)(void *)(panel[step + high / width].index[high % width] + 32 * half);
    if (low % width < bits) _mm256_store_si256(near_low, _mm256_and_si256(planes[i], nibble));
    if (high % width < bits) _mm256_store_si256(near_high, _mm256_and_si256(above, nibble));
  }
}

INLINE void make_panel_of(int bits, int tiles, const uint8_t *tile, panel_step *panel) {
  for (int i = 0; i < 2 * tiles; i++) {
    const uint8_t *at = tile + i / 2 * lpg_tile_bytes(bits) + i % 2 * 32;
    panel_step *to = panel + i / 2 * (lpg_tile_k(bits) / LPG_STEP_K);
    __m256i in[4][8];
#pragma GCC unroll 8
    for (int g = 0; g < 8; g++, at += 64) {
      if (bits == 3) {
        split_words three[3], four[4];
        memcpy(&three[0], at, 32);
        memcpy(&three[1], at + 512, 32);
        memcpy(&three[2], at + 1024, 32);
        split3(three, four);
        for (int o = 0; o < 4; o++) in[o][g] = (__m256i)four[o];
      } else {
        in[0][g] = _mm256_loadu_si256((const __m256i *)(const void *)at);
      }
    }
    if (bits == 3) {
      for (int o = 0; o < 4; o++) store_indices(in[o], 3, 4, 8, i % 2, to + 2 * o);
    } else {
      store_indices(in[0], bits, bits, 8 / bits, i % 2, to);
    }
  }
}

/* ---- lookups ---- */

/* Adds the 16-bit sums of both halves of a vector, one for every two rows, to 32-bit ones. */
static inline __m256i widen_and_add(__m256i words, __m256i sums) {
  sums = _mm256_add_epi32(sums, _mm256_cvtepu16_epi32(_mm256_castsi256_si128(words)));
  return _mm256_add_epi32(sums, _mm256_cvtepu16_epi32(_mm256_extracti128_si256(words, 1)));
}

/* 2^8 times digit `top` plus the one below it, as far as they are there, of all rows. */
INLINE void store_pairs(const __m256i *even, const __m256i *odd, int top, int32_t *out) {
  __m256i sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()}, *to = (__m256i *)(void *)out;
  if (top >= 0) {
    sum[0] = _mm256_slli_epi32(even[top], 8);
    sum[1] = _mm256_slli_epi32(odd[top], 8);
  }
  if (top >= 1) {
    sum[0] = _mm256_add_epi32(sum[0], even[top - 1]);
    sum[1] = _mm256_add_epi32(sum[1], odd[top - 1]);
  }
  __m256i low = _mm256_unpacklo_epi32(sum[0], sum[1]), high = _mm256_unpackhi_epi32(sum[0], sum[1]);
  _mm256_store_si256(to, _mm256_permute2x128_si256(low, high, 0x20));
  _mm256_store_si256(to + 1, _mm256_permute2x128_si256(low, high, 0x31));
}

INLINE void add_lookups(int bits, int digits, const panel_step *panel, const lpg_lut_block *b, int first, int end,
                        lut_sums *sums) {
  __m256i even[LPG_LUT_DIGITS], odd[LPG_LUT_DIGITS];
  for (int d = 0; d < digits; d++) even[d] = odd[d] = _mm256_setzero_si256();
  for (int half = 0; half < 2; half++) {
    __m256i words[LPG_LUT_DIGITS], upper[LPG_LUT_DIGITS]; /* at most 16 steps * 15 * 255 < 2^16 in each byte's sum */
    for (int d = 0; d < digits; d++) words[d] = upper[d] = _mm256_setzero_si256();
    for (int bit = bits - 1; bit >= 0; bit--) {
#pragma GCC unroll 4
      for (int d = 0; d < digits; d++) {
        words[d] = _mm256_add_epi16(words[d], words[d]);
        upper[d] = _mm256_add_epi16(upper[d], upper[d]);
      }
      for (int step = first; step < end; step++) {
        const __m256i *index = (const __m256i *)(const void *)(panel[step].index[bit] + 32 * half);
        __m256i indices = _mm256_load_si256(index);
#pragma GCC unroll 4
        for (int d = 0; d < digits; d++) {
          const uint8_t *table = b->digit[step][LPG_LUT_DIGITS - digits + d][2 * half];
          __m256i found = _mm256_shuffle_epi8(_mm256_load_si256((const __m256i *)(const void *)table), indices);
          words[d] = _mm256_add_epi16(words[d], found);
          upper[d] = _mm256_add_epi16(upper[d], _mm256_srli_epi16(found, 8));
        }
      }
    }
#pragma GCC unroll 4
    for (int d = 0; d < digits; d++) {
      even[d] = widen_and_add(_mm256_sub_epi16(words[d], _mm256_slli_epi16(upper[d], 8)), even[d]);
      odd[d] = widen_and_add(upper[d], odd[d]);
    }
  }
  store_pairs(even, odd, digits - 1, sums->upper);
  store_pairs(even, odd, digits - 3, sums->lower);
}

#endif
