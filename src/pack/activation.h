/* Quantising one activation and choosing the scale, for host and device. */
#ifndef LPG_PACK_ACTIVATION_H
#define LPG_PACK_ACTIVATION_H

#include <float.h>
#include <math.h>

#include "../layouts/number.h"

/* The scale that takes `most`, the largest magnitude, to the largest number of the type; NaN stays NaN. Where it is
 * below fp32's normal range it is rounded up, so that it is never 0 and nothing is clipped. */
LPG_BITS_FN float lpg_activation_scale(double most, lpgemm_dtype_t type) {
  if (most == 0.0) return 1.0f;
  double scale = most / (type == LPGEMM_I8 ? 127.0 : 448.0);
  if (scale < (double)FLT_MIN) scale = ceil(ldexp(scale, 149)) * ldexp(1.0, -149);
  return (float)scale;
}

/* x / scale to the nearest code, ties to even, saturating; 0 if the scale is NaN. E4M3 is the lower half of the sixteen
 * binades of a format with five exponent bits: their codes agree when the bias, 15 and not 7, is made up for. */
LPG_BITS_FN uint8_t lpg_activation_code(lpgemm_dtype_t type, double x, float scale) {
  if (!(scale == scale)) return 0;
  double v = x / (double)scale;
  if (type == LPGEMM_I8) {
    v = nearbyint(v);
    return (uint8_t)(int8_t)(v > 127.0 ? 127.0 : v < -127.0 ? -127.0 : v);
  }
  uint32_t code = lpg_round_float(fabs(v) / 256.0, 5, 3);
  return (uint8_t)((code > 0x7eu ? 0x7eu : code) | (v < 0.0 ? 0x80u : 0u));
}

#endif
