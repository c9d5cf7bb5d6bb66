/* Lookups with TBL, which looks up 16 bytes in a table of 16. Part of lookup.c.
 *
 * 16 bytes of the panel are the indices of 16 rows for one lane. What a lane finds is added up in 16 bits, a row each,
 * and lanes in 32. */
#ifndef LPG_LUT_PANEL_H
#define LPG_LUT_PANEL_H

#include "split3.h"

static inline int sum_row(int i) { return i; }
static inline int index_byte(int i, int t) { return t * LPG_TILE_ROWS + i; }

INLINE void sort_slots(const float *slots, float *sorted) {
  for (int i = 0; i < LPG_TILE_ROWS / 2; i += 4) {
    const float32x4x2_t rows = vld2q_f32(slots + 2 * i);
    vst1q_f32(sorted + i, rows.val[0]);
    vst1q_f32(sorted + LPG_TILE_ROWS / 2 + i, rows.val[1]);
  }
}

/* ---- from the packed form to indices ----
 *
 * A vector is what lane t of one g holds: two qwords w, in each a word of row g and one of row g + 8 (h), of 4 bytes j
 * with 8 bits p. Wanted is, for every w and p, a vector of nibbles of the four bits j. */

/* Swaps the numbers of bytes with the two lower bits of the places in a byte: then nibbles are indices. */
static inline uint8x16_t swap_bits(uint8x16_t bytes) {
  uint32x4_t x = vreinterpretq_u32_u8(bytes);
  uint32x4_t changed = vandq_u32(veorq_u32(x, vshrq_n_u32(x, 7)), vdupq_n_u32(0x00aa00aa));
  x = veorq_u32(x, veorq_u32(changed, vshlq_n_u32(changed, 7)));
  changed = vandq_u32(veorq_u32(x, vshrq_n_u32(x, 14)), vdupq_n_u32(0x0000cccc));
  return vreinterpretq_u8_u32(veorq_u32(x, veorq_u32(changed, vshlq_n_u32(changed, 14))));
}

/* out[4 w + p % 4]: low nibbles are indices of the bits p = 0..3, high ones of p = 4..7. */
INLINE void transpose_bits(const uint8x16_t in[8], uint8x16_t out[8]) {
  uint8x16_t a[8], b[8];
#pragma GCC unroll 8
  for (int g = 0; g < 8; g++) a[g] = swap_bits(in[g]);
#pragma GCC unroll 4
  for (int g = 0; g < 4; g++) { /* b[4 w + g % 4]: g / 4 is in */
    b[g] = vzip1q_u8(a[g], a[g + 4]);
    b[4 + g] = vzip2q_u8(a[g], a[g + 4]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) { /* a[4 w + 2 h + g % 2]: g / 2 % 2 is in */
    const int from = i / 2 * 4 + i % 2;
    a[from] = vzip1q_u8(b[from], b[from + 2]);
    a[from + 2] = vzip2q_u8(b[from], b[from + 2]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) { /* b[4 w + 2 h + p / 2 % 2]: all of g is in */
    b[2 * i] = vzip1q_u8(a[2 * i], a[2 * i + 1]);
    b[2 * i + 1] = vzip2q_u8(a[2 * i], a[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) { /* w = i / 2, p / 2 % 2 = i % 2: rows g, then g + 8 */
    const uint64x2_t first = vreinterpretq_u64_u8(b[i / 2 * 4 + i % 2]);
    const uint64x2_t second = vreinterpretq_u64_u8(b[i / 2 * 4 + 2 + i % 2]);
    out[2 * i] = vreinterpretq_u8_u64(vzip1q_u64(first, second));
    out[2 * i + 1] = vreinterpretq_u8_u64(vzip2q_u64(first, second));
  }
}

/* Steps and planes of a vector's bits: bit p of word w is plane p % width of step w * far + p / width. */
INLINE void store_indices(const uint8x16_t in[8], int bits, int width, int far, int t, panel_step *panel) {
  uint8x16_t planes[8];
  transpose_bits(in, planes);
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) {
    const int low = i % 4, high = low + 4, step = i / 4 * far;
    uint8_t *near_low = panel[step + low / width].index[low % width] + t * LPG_TILE_ROWS;
    uint8_t *near_high = panel[step + high / width].index[high % width] + t * LPG_TILE_ROWS;
    if (low % width < bits) vst1q_u8(near_low, vandq_u8(planes[i], vdupq_n_u8(15)));
    if (high % width < bits) vst1q_u8(near_high, vshrq_n_u8(planes[i], 4));
  }
}

INLINE void make_panel_of(int bits, int tiles, const uint8_t *tile, panel_step *panel) {
  for (int i = 0; i < LPG_LUT_LANES * tiles; i++) {
    const int t = i % LPG_LUT_LANES;
    const uint8_t *at = tile + i / LPG_LUT_LANES * lpg_tile_bytes(bits) + t * 16;
    panel_step *to = panel + i / LPG_LUT_LANES * (lpg_tile_k(bits) / LPG_STEP_K);
    uint8x16_t in[4][8];
#pragma GCC unroll 8
    for (int g = 0; g < 8; g++, at += 64) {
      if (bits == 3) {
        split_words three[3], four[4];
        memcpy(&three[0], at, 16);
        memcpy(&three[1], at + 512, 16);
        memcpy(&three[2], at + 1024, 16);
        split3(three, four);
        for (int o = 0; o < 4; o++) in[o][g] = (uint8x16_t)four[o];
      } else {
        in[0][g] = vld1q_u8(at);
      }
    }
    if (bits == 3) {
      for (int o = 0; o < 4; o++) store_indices(in[o], 3, 4, 8, t, to + 2 * o);
    } else {
      store_indices(in[0], bits, bits, 8 / bits, t, to);
    }
  }
}

/* ---- lookups ---- */

/* 2^8 times digit `top` plus the one below it, as far as they are there, of all rows. */
INLINE void store_pairs(uint32x4_t (*sums)[4], int top, int32_t *out) {
  for (int i = 0; i < 4; i++) {
    uint32x4_t sum = vdupq_n_u32(0);
    if (top >= 0) sum = vshlq_n_u32(sums[top][i], 8);
    if (top >= 1) sum = vaddq_u32(sum, sums[top - 1][i]);
    vst1q_s32(out + 4 * i, vreinterpretq_s32_u32(sum));
  }
}

INLINE void add_lookups(int bits, int digits, const panel_step *panel, const lpg_lut_block *b, int first, int end,
                        lut_sums *sums) {
  uint32x4_t all[LPG_LUT_DIGITS][4];
  for (int d = 0; d < digits; d++) all[d][0] = all[d][1] = all[d][2] = all[d][3] = vdupq_n_u32(0);
  for (int t = 0; t < LPG_LUT_LANES; t++) {
    uint16x8_t low[LPG_LUT_DIGITS], high[LPG_LUT_DIGITS]; /* rows below 8 and above: at most 16 * 15 * 255 < 2^16 */
    for (int d = 0; d < digits; d++) low[d] = high[d] = vdupq_n_u16(0);
    for (int bit = bits - 1; bit >= 0; bit--) {
#pragma GCC unroll 4
      for (int d = 0; d < digits; d++) {
        low[d] = vaddq_u16(low[d], low[d]);
        high[d] = vaddq_u16(high[d], high[d]);
      }
      for (int step = first; step < end; step++) {
        const uint8x16_t indices = vld1q_u8(panel[step].index[bit] + t * LPG_TILE_ROWS);
#pragma GCC unroll 4
        for (int d = 0; d < digits; d++) {
          const uint8x16_t found = vqtbl1q_u8(vld1q_u8(b->digit[step][LPG_LUT_DIGITS - digits + d][t]), indices);
          low[d] = vaddw_u8(low[d], vget_low_u8(found));
          high[d] = vaddw_high_u8(high[d], found);
        }
      }
    }
#pragma GCC unroll 4
    for (int d = 0; d < digits; d++) {
      all[d][0] = vaddw_u16(all[d][0], vget_low_u16(low[d]));
      all[d][1] = vaddw_high_u16(all[d][1], low[d]);
      all[d][2] = vaddw_u16(all[d][2], vget_low_u16(high[d]));
      all[d][3] = vaddw_high_u16(all[d][3], high[d]);
    }
  }
  store_pairs(all, digits - 1, sums->upper);
  store_pairs(all, digits - 3, sums->lower);
}

#endif
