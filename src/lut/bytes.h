/* Tables of 8 bits with a scale each, for the level FAST, made of a block's digits by the call that uses them. Part of
 * lookup.c.
 *
 * An entry is a byte less 128, times the scale of its table, times a unit of the block. A scale is an integer small
 * enough that it still fits 7 bits when it is multiplied by what the uppermost plane of the weights counts: then one
 * VPDPBUSD adds up the lookups of four lanes with their scales. */
#ifndef LPG_LUT_BYTES_H
#define LPG_LUT_BYTES_H

#include "lut.h"

enum { LPG_LUT_BYTE_BIAS = 128, LPG_LUT_MOST_BYTE = 127, LPG_LUT_HALF = LPG_LUT_ENTRIES / 2 };

typedef struct lut_bytes {
  _Alignas(LPG_LUT_ALIGN) uint8_t entry[LPG_LUT_STEPS][LPG_LUT_LANES][LPG_LUT_ENTRIES];
  uint32_t scale[LPG_LUT_STEPS];     /* that of lane t in byte t */
  int32_t before[LPG_LUT_STEPS + 1]; /* sum of the scales of all steps before this one */
  double unit;                       /* in the block's units of q */
} lut_bytes;

/* The first half of a table, and the largest magnitude there is in it. */
static inline int32_t read_half(const lpg_lut_block *b, int step, int t, int32_t *entry) {
  int32_t most = 0;
  for (int e = 0; e < LPG_LUT_HALF; e++) {
    uint32_t biased = 0;
    for (int d = 0; d < LPG_LUT_DIGITS; d++) biased |= (uint32_t)b->digit[step][d][t][e] << 8 * d;
    entry[e] = (int32_t)(biased - lpg_lut_bias(t));
    int32_t magnitude = entry[e] < 0 ? -entry[e] : entry[e];
    most = magnitude > most ? magnitude : most;
  }
  return most;
}

static void shorten_block(int bits, const lpg_lut_block *b, lut_bytes *out) {
  int32_t entry[LPG_LUT_STEPS][LPG_LUT_LANES][LPG_LUT_HALF], most[LPG_LUT_STEPS][LPG_LUT_LANES], largest = 1;
  for (int step = 0; step < LPG_LUT_STEPS; step++) {
    for (int t = 0; t < LPG_LUT_LANES; t++) {
      most[step][t] = read_half(b, step, t, entry[step][t]);
      largest = most[step][t] > largest ? most[step][t] : largest;
    }
  }
  const int most_scale = 127 >> (bits - 1);
  const float unit = (float)largest / (float)(LPG_LUT_MOST_BYTE * most_scale), inverse = 1.0f / unit;
  out->unit = (double)unit;
  out->before[0] = 0;
  for (int step = 0; step < LPG_LUT_STEPS; step++) {
    out->scale[step] = 0;
    out->before[step + 1] = out->before[step];
    for (int t = 0; t < LPG_LUT_LANES; t++) {
      const float wanted = (float)most[step][t] * inverse * (1.0f / LPG_LUT_MOST_BYTE);
      int scale = (int)wanted + 1; /* so that no entry is beyond a byte */
      if (scale > most_scale) scale = most_scale;
      const float factor = inverse / (float)scale, rounder = 0x1.8p23f; /* adding it leaves an integer */
      for (int e = 0; e < LPG_LUT_HALF; e++) {
        const int byte = (int)(((float)entry[step][t][e] * factor + rounder) - rounder);
        out->entry[step][t][e] = (uint8_t)(LPG_LUT_BYTE_BIAS + byte);
        out->entry[step][t][LPG_LUT_ENTRIES - 1 - e] = (uint8_t)(LPG_LUT_BYTE_BIAS - byte);
      }
      out->scale[step] |= (uint32_t)scale << 8 * t;
      out->before[step + 1] += scale;
    }
  }
}

#endif
