/* Products of bytes by SDOT, which adds up four in 32 bits: ARMv8.2 with the dot product instructions. Part of
 * dot_ops.h.
 *
 * It takes signed bytes on both sides. Weights of up to 7 bits are that already; those of 8 bits are multiplied less
 * 128, and 128 times the sum of X, by one more SDOT for 16 columns, is added. X stays in one register for 16 columns:
 * SDOT takes four bytes of it for all rows by their place.
 *
 * SMMLA multiplies twice as much, but wants eight columns of a row side by side and gives sums of two rows by two:
 * what puts them in place takes as many instructions as are saved (docs/kernels/generic.md). */
#ifndef LPG_CPU_DOT_OPS_NEON_H
#define LPG_CPU_DOT_OPS_NEON_H

#include <arm_neon.h>

enum { LPG_DOT_ROWS = 4, LPG_DOT_LINES = 6, LPG_DOT_CENTERS = 0 };

/* sums[line][part] += a quad, the `place`-th of the columns in x. */
#define LPG_DOT_ADD_QUAD(place)                                                                                 \
  for (int p = 0; p < LPG_DOT_PARTS; p++) {                                                                     \
    const int8x16_t w = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(panel + (place)*64 + p * 16), vdupq_n_u8(flip))); \
    for (int r = 0; r < lines; r++) {                                                                           \
      sums[r][p] = (vint)vdotq_laneq_s32((int32x4_t)sums[r][p], w, of_x[r], place);                             \
    }                                                                                                           \
  }

INLINE void add_quads(int bits, int quads, int lines, const uint8_t *panel, const int8_t *x, int64_t stride,
                      vint sums[][LPG_DOT_PARTS]) {
  const uint8_t flip = bits == 8 ? 128 : 0;
  int32x4_t sum_of_x[LPG_DOT_LINES];
  for (int r = 0; r < lines; r++) sum_of_x[r] = vdupq_n_s32(0);
#pragma GCC unroll 2
  for (int q = 0; q < quads; q += 4, panel += 4 * 64) {
    int8x16_t of_x[LPG_DOT_LINES];
    for (int r = 0; r < lines; r++) {
      of_x[r] = vld1q_s8(x + r * stride + 4 * q);
      if (bits == 8) sum_of_x[r] = vdotq_s32(sum_of_x[r], of_x[r], vdupq_n_s8(64)); /* a half: 128 is none */
    }
    LPG_DOT_ADD_QUAD(0)
    LPG_DOT_ADD_QUAD(1)
    LPG_DOT_ADD_QUAD(2)
    LPG_DOT_ADD_QUAD(3)
  }
  for (int r = 0; bits == 8 && r < lines; r++) {
    const vint less = (vint)vdupq_n_s32(2 * vaddvq_s32(sum_of_x[r]));
    for (int p = 0; p < LPG_DOT_PARTS; p++) sums[r][p] += less;
  }
}

/* The sum of the products of the halves. */
INLINE vint multiply_16(vint a, vint b) {
  const int16x8_t x = vreinterpretq_s16_s32((int32x4_t)a), y = vreinterpretq_s16_s32((int32x4_t)b);
  return (vint)vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
}

INLINE vint add_products(int bits, vuint w, vint x, vint sums) {
  const uint8x16_t codes = (uint8x16_t)w;
  const int8x16_t bytes = (int8x16_t)x;
  if (bits < 8) return (vint)vdotq_s32((int32x4_t)sums, vreinterpretq_s8_u8(codes), bytes);
  const int8x16_t less = vreinterpretq_s8_u8(veorq_u8(codes, vdupq_n_u8(128)));
  const int32x4_t half = vdotq_s32(vdupq_n_s32(0), bytes, vdupq_n_s8(64));
  return (vint)vdotq_s32((int32x4_t)sums, less, bytes) + 2 * (vint)half;
}

INLINE vuint look_up(const uint8_t table[16], vuint codes) {
  return (vuint)vqtbl1q_u8(vld1q_u8(table), (uint8x16_t)codes);
}

#endif
