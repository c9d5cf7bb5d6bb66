/* Lookups with VPERMB, which looks up 64 bytes in a table of 64: the four tables of a step side by side. Part of
 * lookup.c.
 *
 * A byte of the panel is the index for one row and one lane: the four of a row are neighbours, so one VPDPBUSD adds
 * them up, times 2^bit, to the row's 32-bit sum. */
#ifndef LPG_LUT_PANEL_H
#define LPG_LUT_PANEL_H

#include "split3.h"

/* Sum i = 8 * (g / 4) + 4 * h + g % 4 is that of row g + 8 * h of a tile. */
static inline int sum_row(int i) { return i / 8 * 4 + i % 4 + i / 4 % 2 * 8; }
static inline int index_byte(int i, int t) { return i * LPG_LUT_LANES + t; }

INLINE __m512 sort(__m512 slots) {
  return _mm512_permutexvar_ps(_mm512_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15), slots);
}

INLINE void sort_slots(const float *slots, float *sorted) { _mm512_store_ps(sorted, sort(_mm512_load_ps(slots))); }

/* The values of a section that are fp16, as most scales are: not through memory. */
INLINE void load_halves(const uint8_t *at, double *values) {
  const __m512 sorted = sort(_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)at)));
  _mm512_store_pd(values, _mm512_cvtps_pd(_mm512_castps512_ps256(sorted)));
  _mm512_store_pd(values + 8, _mm512_cvtps_pd(_mm512_extractf32x8_ps(sorted, 1)));
}

/* ---- from the packed form to indices ----
 *
 * A vector is what the lanes t = 0..3 of one g hold: 16 bytes a lane, two qwords w, in each a word of row g and one of
 * row g + 8 (h), of 4 bytes j with 8 bits p. Wanted is, for every p, a vector of nibbles of the four bits j. */

/* In each 16 bytes: qword h takes the words w = 0, 1 of its row, bytes reversed as the matrix instruction counts rows
 * from the other end. */
#define GATHER(h) \
  8 + 4 * (h) + 3, 8 + 4 * (h) + 2, 8 + 4 * (h) + 1, 8 + 4 * (h), 4 * (h) + 3, 4 * (h) + 2, 4 * (h) + 1, 4 * (h)
static const uint8_t row_words[16] = {GATHER(0), GATHER(1)};
#undef GATHER

/* From bytes (t, h, p) to (p / 4, h, p % 4, t). */
#define FOUR_LANES(first) (first), (first) + 16, (first) + 32, (first) + 48
#define FOUR_BITS(first) FOUR_LANES(first), FOUR_LANES((first) + 1), FOUR_LANES((first) + 2), FOUR_LANES((first) + 3)
static const uint8_t by_bit[64] = {FOUR_BITS(0), FOUR_BITS(8), FOUR_BITS(4), FOUR_BITS(12)};
#undef FOUR_BITS
#undef FOUR_LANES

/* out[p]: low nibbles are indices of words w = 0, high ones of w = 1. */
INLINE void transpose_bits(const __m512i in[8], __m512i out[8]) {
  const __m512i gather = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)row_words));
  const __m512i spread = _mm512_loadu_si512(by_bit), unit = _mm512_set1_epi64((int64_t)0x8040201008040201u);
  __m512i a[8], b[8];
#pragma GCC unroll 8
  for (int g = 0; g < 8; g++) {
    __m512i bits = _mm512_gf2p8affine_epi64_epi8(unit, _mm512_shuffle_epi8(in[g], gather), 0);
    a[g] = _mm512_permutexvar_epi8(spread, bits);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) { /* b[2 i + p / 2 % 2]: g % 2 is in */
    b[2 * i] = _mm512_unpacklo_epi32(a[2 * i], a[2 * i + 1]);
    b[2 * i + 1] = _mm512_unpackhi_epi32(a[2 * i], a[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) { /* a[4 (g / 4) + p % 4]: g / 2 % 2 is in */
    int from = i / 2 * 4 + i % 2, to = i / 2 * 4 + 2 * (i % 2);
    a[to] = _mm512_unpacklo_epi64(b[from], b[from + 2]);
    a[to + 1] = _mm512_unpackhi_epi64(b[from], b[from + 2]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    out[i] = _mm512_inserti64x4(a[i], _mm512_castsi512_si256(a[4 + i]), 1);
    out[4 + i] = _mm512_shuffle_i64x2(a[i], a[4 + i], 0xee);
  }
}

/* Steps and planes of a vector's bits: bit p of word w is plane p % width of step w * far + p / width. */
INLINE void store_indices(const __m512i in[8], int bits, int width, int far, panel_step *panel) {
  const __m512i nibble = _mm512_set1_epi8(15), lane = _mm512_set1_epi32(0x30201000);
  __m512i planes[8];
  transpose_bits(in, planes);
#pragma GCC unroll 8
  for (int p = 0; p < 8; p++) {
    if (p % width >= bits) continue;
    panel_step *near = panel + p / width;
    _mm512_store_si512(near->index[p % width], _mm512_ternarylogic_epi32(planes[p], nibble, lane, 0xea));
    __m512i high = _mm512_srli_epi16(planes[p], 4);
    _mm512_store_si512(near[far].index[p % width], _mm512_ternarylogic_epi32(high, nibble, lane, 0xea));
  }
}

INLINE void make_panel_of(int bits, int tiles, const uint8_t *tile, panel_step *panel) {
  for (int i = 0; i < tiles; i++, tile += lpg_tile_bytes(bits), panel += lpg_tile_k(bits) / LPG_STEP_K) {
    __m512i in[4][8];
#pragma GCC unroll 8
    for (int g = 0; g < 8; g++) {
      const uint8_t *at = tile + g * 64;
      if (bits == 3) {
        split_words three[3], four[4];
        memcpy(&three[0], at, 64);
        memcpy(&three[1], at + 512, 64);
        memcpy(&three[2], at + 1024, 64);
        split3(three, four);
        for (int o = 0; o < 4; o++) in[o][g] = (__m512i)four[o];
      } else {
        in[0][g] = _mm512_loadu_si512(at);
      }
    }
    if (bits == 3) {
      for (int o = 0; o < 4; o++) store_indices(in[o], 3, 4, 8, panel + 2 * o);
    } else {
      store_indices(in[0], bits, bits, 8 / bits, panel);
    }
  }
}

/* ---- lookups ---- */

/* Adds the lookups of one step to the sums of the upper `digits` digits. */
INLINE void add_step(int bits, int digits, const panel_step *panel, const lpg_lut_block *b, int step, __m512i *sum) {
  __m512i table[LPG_LUT_DIGITS];
#pragma GCC unroll 4
  for (int d = 0; d < digits; d++) table[d] = _mm512_load_si512(b->digit[step][LPG_LUT_DIGITS - digits + d]);
#pragma GCC unroll 4
  for (int bit = 0; bit < bits; bit++) {
    __m512i index = _mm512_load_si512(panel[step].index[bit]), weight = _mm512_set1_epi8((char)(1 << bit));
#pragma GCC unroll 4
    for (int d = 0; d < digits; d++) {
      sum[d] = _mm512_dpbusd_epi32(sum[d], _mm512_permutexvar_epi8(index, table[d]), weight);
    }
  }
}

INLINE void add_lookups(int bits, int digits, const panel_step *panel, const lpg_lut_block *b, int first, int end,
                        lut_sums *sums) {
  __m512i sum[LPG_LUT_DIGITS], odd[LPG_LUT_DIGITS]; /* two, to have more additions under way */
#pragma GCC unroll 4
  for (int d = 0; d < digits; d++) sum[d] = odd[d] = _mm512_setzero_si512();
  int step = first;
  for (; step + 2 <= end; step += 2) {
    add_step(bits, digits, panel, b, step, sum);
    add_step(bits, digits, panel, b, step + 1, odd);
  }
  if (step < end) add_step(bits, digits, panel, b, step, sum);
#pragma GCC unroll 4
  for (int d = 0; d < digits; d++) sum[d] = _mm512_add_epi32(sum[d], odd[d]);
  __m512i none = _mm512_setzero_si512(), *from = sum + digits; /* the digits end here */
  __m512i upper = _mm512_add_epi32(_mm512_slli_epi32(from[-1], 8), digits > 1 ? from[-2] : none);
  __m512i lower = _mm512_add_epi32(_mm512_slli_epi32(digits > 2 ? from[-3] : none, 8), digits > 3 ? from[-4] : none);
  _mm512_store_si512(sums->upper, upper);
  _mm512_store_si512(sums->lower, lower);
}

/* The same in tables of bytes, with their scales, into the lower sums: below 2^8 * 2^7 * 64 * 2 of them. */
INLINE void add_bytes(int bits, const panel_step *panel, const lut_bytes *b, int first, int end, lut_sums *sums) {
  __m512i sum[MAX_BITS];
#pragma GCC unroll 4
  for (int bit = 0; bit < bits; bit++) sum[bit] = _mm512_setzero_si512();
  for (int step = first; step < end; step++) {
    __m512i table = _mm512_load_si512(b->entry[step]), scale = _mm512_set1_epi32((int)b->scale[step]);
#pragma GCC unroll 4
    for (int bit = 0; bit < bits; bit++) {
      __m512i found = _mm512_permutexvar_epi8(_mm512_load_si512(panel[step].index[bit]), table);
      sum[bit] = _mm512_dpbusd_epi32(sum[bit], found, _mm512_slli_epi32(scale, (unsigned)bit));
    }
  }
#pragma GCC unroll 4
  for (int bit = 1; bit < bits; bit++) sum[0] = _mm512_add_epi32(sum[0], sum[bit]);
  _mm512_store_si512(sums->upper, _mm512_setzero_si512());
  _mm512_store_si512(sums->lower, sum[0]);
}

#endif
