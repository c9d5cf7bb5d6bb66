/* Quantises activations to int8 or e4m3 with one scale a row or one for all. */
#include <float.h>
#include <math.h>

#include "cpu.h"

/* The largest magnitude of a row; NaN if an element is not finite. */
static double largest(lpgemm_dtype_t type, const void *x, int64_t first, int64_t k) {
  double most = 0.0;
  for (int64_t i = 0; i < k; i++) {
    double v = fabs((double)lpg_load(type, x, first + i));
    if (!isfinite(v)) return (double)NAN;
    if (v > most) most = v;
  }
  return most;
}

/* The scale that takes `most` to `top`. Where it is below fp32's normal range it is rounded up, so that it is never 0
 * and nothing is clipped. */
static float choose_scale(double most, double top) {
  if (most == 0.0) return 1.0f;
  double scale = most / top;
  if (scale < (double)FLT_MIN) scale = ceil(ldexp(scale, 149)) * ldexp(1.0, -149);
  return (float)scale;
}

/* Nearest even, saturating. E4M3 is the lower half of the sixteen binades of a format with five exponent bits: their
 * codes agree when the bias, 15 and not 7, is made up for. */
static uint8_t quantize(lpgemm_dtype_t type, double v) {
  if (type == LPGEMM_I8) {
    v = nearbyint(v);
    return (uint8_t)(int8_t)(v > 127.0 ? 127.0 : v < -127.0 ? -127.0 : v);
  }
  uint32_t code = lpg_round_float(fabs(v) / 256.0, 5, 3);
  return (uint8_t)((code > 0x7eu ? 0x7eu : code) | (v < 0.0 ? 0x80u : 0u));
}

void lpgemm_i_quantize_activations_host(int64_t m, int64_t k, const void *x, lpgemm_dtype_t x_type, int64_t ldx,
                                        lpgemm_dtype_t out_type, void *out, int64_t ldo, float *scale,
                                        lpgemm_x_scale_t mode) {
  double top = out_type == LPGEMM_I8 ? 127.0 : 448.0, all = 0.0;
  for (int64_t i = 0; i < m; i++) {
    double most = largest(x_type, x, i * ldx, k);
    if (mode == LPGEMM_X_SCALE_ROW) scale[i] = choose_scale(most, top);
    if (!isnan(all) && !(most <= all)) all = most; /* a NaN stays */
  }
  if (mode == LPGEMM_X_SCALE_TENSOR) scale[0] = choose_scale(all, top);
  for (int64_t i = 0; i < m; i++) {
    double s = (double)scale[mode == LPGEMM_X_SCALE_ROW ? i : 0];
    for (int64_t j = 0; j < k; j++) {
      double v = isnan(s) ? 0.0 : (double)lpg_load(x_type, x, i * ldx + j) / s;
      ((uint8_t *)out)[i * ldo + j] = quantize(out_type, v);
    }
  }
}
