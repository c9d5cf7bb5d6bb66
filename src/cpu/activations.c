/* Quantises activations to integers or e4m3 with one scale a row or one for all. */
#include <math.h>

#include "../pack/activation.h"
#include "cpu.h"

/* The largest magnitude of a row, or the largest number where only those of no sign count; NaN if an element is not
 * finite. */
static double largest(lpgemm_dtype_t type, const void *x, int64_t first, int64_t k, int no_sign) {
  double most = 0.0;
  for (int64_t i = 0; i < k; i++) {
    double v = (double)lpg_load(type, x, first + i);
    if (!isfinite(v)) return (double)NAN;
    if (!no_sign) v = fabs(v);
    if (v > most) most = v;
  }
  return most;
}

void lpgemm_i_quantize_activations_host(int64_t m, int64_t k, const void *x, lpgemm_dtype_t x_type, int64_t ldx,
                                        lpgemm_dtype_t out_type, void *out, int64_t ldo, float *scale,
                                        lpgemm_x_scale_t mode) {
  const int no_sign = lpg_kind(out_type) == LPGEMM_KIND_UINT;
  double all = 0.0;
  for (int64_t i = 0; i < m; i++) {
    double most = largest(x_type, x, i * ldx, k, no_sign);
    if (mode == LPGEMM_X_SCALE_ROW) scale[i] = lpg_activation_scale(most, out_type);
    if (!isnan(all) && !(most <= all)) all = most; /* a NaN stays */
  }
  if (mode == LPGEMM_X_SCALE_TENSOR) scale[0] = lpg_activation_scale(all, out_type);
  for (int64_t i = 0; i < m; i++) {
    float s = scale[mode == LPGEMM_X_SCALE_ROW ? i : 0];
    for (int64_t j = 0; j < k; j++) {
      ((uint8_t *)out)[i * ldo + j] = lpg_activation_code(out_type, (double)lpg_load(x_type, x, i * ldx + j), s);
    }
  }
}
