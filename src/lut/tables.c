/* Building the tables. */
#include <math.h>

#include "lut.h"

size_t lpgemm_i_lut_bytes(int64_t m, int64_t k) {
  size_t rows = (size_t)m, steps = (size_t)lpg_ceil_div(k, LPG_STEP_K), step = LPG_LUT_STEP * sizeof(double);
  if (steps > 0 && rows > SIZE_MAX / step / steps) return SIZE_MAX;
  return rows * steps * step;
}

/* 1 if a double holds every sum that the kernel makes of these activations and integer weights of at most 4 bits. With
 * u = 2^-44 of a power of two above the largest one, 16 multiples of u below 2^44 u times weights below 32 stay below
 * 2^53 u. The limit keeps the sums within fp32's range, for products in two parts; NaN fails the comparison. */
static int sums_are_exact(const double x[LPG_STEP_K]) {
  const double limit = 0x1p100;
  double top = 0.0;
  for (int i = 0; i < LPG_STEP_K; i++) {
    if (!(fabs(x[i]) < limit)) return 0;
    top = fmax(top, fabs(x[i]));
  }
  int exponent;
  (void)frexp(top, &exponent);
  double shift = ldexp(1.5, 52 + exponent - 44); /* adding it rounds to a multiple of u */
  for (int i = 0; i < LPG_STEP_K; i++) {
    if ((x[i] + shift) - shift != x[i]) return 0;
  }
  return 1;
}

static void build_lane(const double *x, int t, double *entry) {
  for (int e = 0; e < LPG_LUT_ENTRIES; e++) {
    entry[e] = x[lpg_lut_column(t, 3)];
    for (int j = 0; j < 3; j++) entry[e] += e >> j & 1 ? x[lpg_lut_column(t, j)] : -x[lpg_lut_column(t, j)];
  }
}

static void keep_lane(const double *x, int t, double *entry) {
  for (int j = 0; j < 4; j++) {
    entry[j] = x[lpg_lut_column(t, j)];
    entry[4 + j] = (double)NAN;
  }
}

static void build_step(const double x[LPG_STEP_K], double *table) {
  int exact = sums_are_exact(x);
  for (int t = 0; t < LPG_LUT_LANES; t++, table += LPG_LUT_ENTRIES) {
    if (exact) {
      build_lane(x, t, table);
    } else {
      keep_lane(x, t, table);
    }
  }
}

void lpgemm_i_lut_build_host(int64_t m, int64_t k, const void *x, lpgemm_dtype_t x_type, int64_t ldx, void *tables) {
  double *table = tables;
  for (int64_t row = 0; row < m; row++) {
    for (int64_t first = 0; first < k; first += LPG_STEP_K, table += LPG_LUT_STEP) {
      double values[LPG_STEP_K] = {0};
      for (int i = 0; i < LPG_STEP_K && first + i < k; i++)
        values[i] = (double)lpg_load(x_type, x, row * ldx + first + i);
      build_step(values, table);
    }
  }
}
