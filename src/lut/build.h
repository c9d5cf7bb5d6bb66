/* Building the tables of one block. Part of lookup.c, so that it is compiled for its instruction sets. */
#ifndef LPG_LUT_BUILD_H
#define LPG_LUT_BUILD_H

#include <math.h>

#include "lut.h"

/* Converts `count` numbers from element `first` of an array. */
static void load_floats(lpgemm_dtype_t type, const void *array, int64_t first, int count, float *out) {
  int done = 0;
  if (type == LPGEMM_F32) {
    memcpy(out, (const float *)array + first, (size_t)count * sizeof *out);
    return;
  }
#if defined(__AVX512F__)
  for (; type == LPGEMM_F16 && done + 16 <= count; done += 16) {
    const uint16_t *halves = (const uint16_t *)array + first + done;
    _mm512_storeu_ps(out + done, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)halves)));
  }
#endif
#if defined(__F16C__)
  for (; type == LPGEMM_F16 && done + 8 <= count; done += 8) {
    const uint16_t *halves = (const uint16_t *)array + first + done;
    _mm256_storeu_ps(out + done, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)halves)));
  }
#endif
#if defined(LPG_LUT_NEON)
  for (; type == LPGEMM_F16 && done + 4 <= count; done += 4) {
    const uint16x4_t halves = vld1_u16((const uint16_t *)array + first + done);
    vst1q_f32(out + done, vcvt_f32_f16(vreinterpret_f16_u16(halves)));
  }
#endif
  if (type == LPGEMM_BF16) {
    for (; done < count; done++) out[done] = lpg_bf16_to_f32(((const uint16_t *)array)[first + done]);
  }
  for (; done < count; done++) out[done] = lpg_load(type, array, first + done);
}

/* What an activation may lose, relative to itself. EXACT has K * 2^-23 for it, of which this is a quarter; types of X
 * with short mantissas lose more or nothing, so they are always exact. */
static double tolerance(int64_t k) { return 0x1p-25 * (double)(k < 2048 ? k : 2048); }

/* The unit, a power of two with |x| < 2^LPG_LUT_BITS units for all finite x. */
static double choose_unit(const float *x) {
  uint32_t top = 0;
  for (int i = 0; i < LPG_LUT_K; i++) {
    uint32_t magnitude = lpg_f32_bits(x[i]) & 0x7fffffffu;
    magnitude = magnitude < 0x7f800000u ? magnitude : 0;
    top = magnitude > top ? magnitude : top;
  }
  int exponent = (int)(top >> 23) - 126; /* |x| < 2^exponent, of subnormal numbers as well */
  return lpg_bits_f64((uint64_t)(exponent - LPG_LUT_BITS + 1023) << 52);
}

/* Rounds x to integers q; those that lose too much, infinities and NaN are kept out of the tables. */
static void round_block(double tolerated, lpg_lut_block *b, int32_t *q) {
  const double rounder = 0x1.8p52; /* adding it leaves an integer */
  double inverse = 1.0 / b->unit;
  int32_t lost[LPG_LUT_K];
  for (int i = 0; i < LPG_LUT_K; i++) {
    double x = (double)b->x[i] * inverse, rounded = (x + rounder) - rounder;
    int fits = fabs(rounded - x) <= tolerated * fabs(x);
    q[i] = (int32_t)(fits ? rounded : 0.0);
    lost[i] = !fits;
  }
  for (int i = 0; i < LPG_LUT_K; i++) b->any_kept |= lost[i];
  for (int i = 0; b->any_kept && i < LPG_LUT_K; i++) b->kept[i / 32] |= (uint32_t)lost[i] << i % 32;
}

/* The table of four activations, cut into digits. */
static inline void build_table(int32_t q0, int32_t q1, int32_t q2, int32_t q3, uint32_t bias, uint8_t *digits) {
  uint32_t entry[LPG_LUT_ENTRIES];
  for (int e = 0; e < LPG_LUT_ENTRIES / 2; e++) {
    uint32_t sum = (uint32_t)((e & 1 ? q0 : -q0) + (e & 2 ? q1 : -q1) + (e & 4 ? q2 : -q2) - q3);
    entry[e] = bias + sum;
    entry[LPG_LUT_ENTRIES - 1 - e] = bias - sum;
  }
  for (int d = 0; d < LPG_LUT_DIGITS; d++) {
    for (int e = 0; e < LPG_LUT_ENTRIES; e++) {
      digits[d * LPG_LUT_LANES * LPG_LUT_ENTRIES + e] = (uint8_t)(entry[e] >> 8 * d);
    }
  }
}

/* x: `columns` numbers from element `first` on. With or without tables. */
static void build_block(double tolerated, lpgemm_dtype_t type, const void *x, int64_t first, int columns, int tables,
                        lpg_lut_block *b) {
  int32_t q[LPG_LUT_K];
  uint32_t used = 0;
  memset(b->x, 0, sizeof *b - offsetof(lpg_lut_block, x));
  load_floats(type, x, first, columns, b->x);
  b->unit = choose_unit(b->x);
  round_block(tolerated, b, q);
  for (int step = 0; step < LPG_LUT_STEPS; step++) {
    const int32_t *of_step = q + step * LPG_STEP_K;
    int64_t sum = 0;
    for (int i = 0; i < LPG_STEP_K; i++) {
      sum += of_step[i];
      used |= (uint32_t)of_step[i];
    }
    b->before[step + 1] = b->before[step] + (double)sum;
    for (int t = 0; tables && t < LPG_LUT_LANES; t++) {
      build_table(of_step[lpg_lut_column(t, 0)], of_step[lpg_lut_column(t, 1)], of_step[lpg_lut_column(t, 2)],
                  of_step[lpg_lut_column(t, 3)], lpg_lut_bias(t), b->digit[step][0][t]);
    }
  }
  while (b->first < LPG_LUT_DIGITS - 1 && (used & 0xffu) == 0) {
    used >>= 8;
    b->first++;
  }
}

/* Block `block` of a row of X that starts with element `row`. */
static void build_part(int64_t k, const void *x, lpgemm_dtype_t type, int64_t row, int64_t block, int tables,
                       lpg_lut_block *b) {
  int64_t first = block * LPG_LUT_K, left = k - first;
  build_block(tolerance(k), type, x, row + first, (int)(left < LPG_LUT_K ? left : LPG_LUT_K), tables, b);
}

#endif
