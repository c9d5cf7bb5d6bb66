/* Quantising one activation and choosing the scale, for host and device. */
#ifndef LPG_PACK_ACTIVATION_H
#define LPG_PACK_ACTIVATION_H

#include <float.h>
#include <math.h>

#include "../layouts/number.h"

/* The largest number of the type. */
LPG_BITS_FN int lpg_activation_top(lpgemm_dtype_t type) {
  if (!lpg_is_integer_kind(type)) return 448; /* e4m3 */
  return lpg_integer_offset(type) + lpg_integer_step(type) * ((1 << lpg_bits(type)) - 1);
}

/* The scale that takes `most`, the largest magnitude (unsigned codes: the largest number), to the largest number of the
 * type; of a NaN the one NaN that every processor writes with the same bits. Where it is below fp32's normal range it
 * is rounded up, so that it is never 0 and nothing is clipped. Zeros get 1, but bipolar numbers are never zero: there
 * it is the scale that is. */
LPG_BITS_FN float lpg_activation_scale(double most, lpgemm_dtype_t type) {
  if (!(most == most)) return lpg_bits_f32(0x7fc00000u); /* a GPU's arithmetic makes 0x7fffffff */
  if (most == 0.0) return lpg_kind(type) == LPGEMM_KIND_BIPOLAR ? 0.0f : 1.0f;
  double scale = most / (double)lpg_activation_top(type);
  if (scale < (double)FLT_MIN) scale = ceil(ldexp(scale, 149)) * ldexp(1.0, -149);
  return (float)scale;
}

/* x / scale to the nearest code, ties to even, saturating; 0 if the scale is NaN or 0. E4M3 is the lower half of the
 * sixteen binades of a format with five exponent bits: their codes agree when the bias, 15 and not 7, is made up for.
 */
LPG_BITS_FN uint8_t lpg_activation_code(lpgemm_dtype_t type, double x, float scale) {
  if (!(scale == scale) || scale == 0.0f) return 0;
  double v = x / (double)scale;
  if (lpg_is_integer_kind(type)) {
    const double top = (double)lpg_activation_top(type), low = lpg_kind(type) == LPGEMM_KIND_INT ? -top : 0.0;
    v = nearbyint(lpg_kind(type) == LPGEMM_KIND_BIPOLAR ? (v + top) / 2.0 : v);
    return (uint8_t)(int)(v > top ? top : v < low ? low : v);
  }
  uint32_t code = lpg_round_float(fabs(v) / 256.0, 5, 3);
  return (uint8_t)((code > 0x7eu ? 0x7eu : code) | (v < 0.0 ? 0x80u : 0u));
}

#endif
