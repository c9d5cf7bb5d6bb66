/* Which scales and zeros fp32 is good enough for. */
#ifndef LPG_CPU_RANGE_H
#define LPG_CPU_RANGE_H

#include <float.h>
#include <math.h>

#include "../layouts/packed.h"

/* What value * scale and a minimum may be where they are not 0, so that a difference of two of them, at most 48 bits
 * below, keeps its digits, and a sum of products stays finite. */
#define LPG_TINY 0x1p-75f
#define LPG_HUGE 0x1p75f

/* Magnitudes that numbers other than 0 may have. */
typedef struct lpg_magnitudes {
  float low, high;
} lpg_magnitudes;

/* Of the 16 numbers of a row tile. Bits of magnitudes are ordered as the magnitudes are, NaN above all; 0 wraps to the
 * largest number. */
static inline int lpg_is_within(lpg_magnitudes r, const float *values) {
  uint32_t low = lpg_f32_bits(r.low), smallest = UINT32_MAX, largest = 0;
  for (int i = 0; i < LPG_TILE_ROWS; i++) {
    uint32_t magnitude = lpg_f32_bits(values[i]) & 0x7fffffffu, but_not_0 = magnitude - 1u;
    smallest = but_not_0 < smallest ? but_not_0 : smallest;
    largest = magnitude > largest ? magnitude : largest;
  }
  return smallest >= low - (low > 0) && largest <= lpg_f32_bits(r.high);
}

/* Magnitudes of the values of a type's codes; with zeros, which are subtracted from them, at least those of fp16. */
static inline lpg_magnitudes lpg_magnitudes_of_values(const lpg_packed *packed) {
  const lpgemm_weight_desc_t *d = &packed->desc;
  lpg_magnitudes r = {FLT_MAX, 0.0f};
  for (uint32_t code = 0; code < 1u << packed->bits; code++) {
    float v = fabsf(lpg_code_value(d->type, code, d->codebook));
    if (!(v > 0.0f && v <= FLT_MAX)) continue;
    r.low = fminf(r.low, v);
    r.high = fmaxf(r.high, v);
  }
  if (d->zero == LPGEMM_ZERO_CONSTANT || d->zero == LPGEMM_ZERO_PER_GROUP) {
    r.low = fminf(r.low, 0x1p-24f);
    r.high = fmaxf(r.high, 0x1p30f);
  }
  return r;
}

/* The ranges are all of fp32 unless the global scale takes weights from beyond it into it: one above 1 the tiny ones,
 * one below 1 the huge ones; scales of rows may do both. */
static inline void lpg_choose_ranges(const lpg_packed *packed, lpg_magnitudes *scale, lpg_magnitudes *zero) {
  int is_minimum = packed->desc.zero == LPGEMM_ZERO_MINIMUM;
  float global = fabsf(packed->desc.global_scale);
  lpg_magnitudes values = lpg_magnitudes_of_values(packed), all = {0.0f, FLT_MAX}, minima = {LPG_TINY, LPG_HUGE};
  lpg_magnitudes zeros = is_minimum ? minima : values;
  int is_huge = values.high > 0x1p100f; /* a value minus a zero may be beyond fp32 */
  const int may_grow = global > 1.0f || packed->desc.row_scales, may_shrink = global < 1.0f || packed->desc.row_scales;
  *scale = *zero = all;
  if (may_grow) {
    scale->low = LPG_TINY / values.low;
    zero->low = zeros.low;
  }
  if (may_shrink || is_huge) scale->high = LPG_HUGE / values.high;
  if (may_shrink || is_huge || !is_minimum) zero->high = zeros.high;
}

#endif
