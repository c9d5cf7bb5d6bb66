#include <math.h>

#include "packed.h"

/* 1 if a float holds the number exactly: at most `largest`, with so many bits of mantissa from `least` on, a power of
 * two, and the same step below. */
static int fits(double value, double largest, int mantissa, double least) {
  const double magnitude = fabs(value), steps = magnitude / least * (double)(1 << mantissa);
  if (magnitude > largest) return 0;
  return magnitude < least ? floor(steps) == steps : lpg_f64_bits(magnitude) << (12 + mantissa) == 0;
}

/* 1 if a type holds the value; infinities and NaN, which only floats have, count where the type has them. */
static int is_in_i8(double value) { return value >= -128.0 && value <= 127.0 && floor(value) == value; }
static int is_in_f16(double value) { return !isfinite(value) || fits(value, 65504.0, 10, 0x1p-14); }
static int is_in_e4m3(double value) { return isnan(value) || fits(value, 448.0, 3, 0x1p-6); }

double lpgemm_i_largest_value(lpgemm_dtype_t type, const float *codebook) {
  double most = 0.0;
  for (uint32_t code = 0; code < 1u << lpg_bits(type); code++) {
    const double magnitude = fabs((double)lpg_code_value(type, code, codebook));
    if (magnitude > most && magnitude < INFINITY) most = magnitude;
  }
  return most;
}

/* Of integers that stand side by side: e4m3 has all up to 16, and no odd one beyond. */
static lpg_values of_integers(double low, double high) {
  const double most = fmax(fabs(low), fabs(high));
  const int has_one = (low <= 1.0 && high >= 1.0) || (low <= -1.0 && high >= -1.0);
  return (lpg_values){most, has_one ? 1.0 : fmin(fabs(low), fabs(high)), most <= 2048.0, low >= -128.0 && high <= 127.0,
                      most <= 16.0};
}

lpg_values lpgemm_i_values_of(const lpgemm_weight_desc_t *d) {
  const double zero = d->zero == LPGEMM_ZERO_CONSTANT ? (double)d->zero_constant : 0.0;
  const int symmetric =
      lpg_kind(d->type) == LPGEMM_KIND_FLOAT && zero == 0.0; /* then the upper half says nothing new */
  if (lpg_is_integer_kind(d->type) && lpg_integer_step(d->type) == 1 && floor(zero) == zero) {
    const double low = (double)lpg_integer_offset(d->type) - zero;
    return of_integers(low, low + (double)((1 << lpg_bits(d->type)) - 1));
  }
  lpg_values v = {0.0, 0.0, 1, 1, 1};
  for (uint32_t code = 0; code < 1u << (lpg_bits(d->type) - symmetric); code++) {
    const double value = (double)lpg_code_value(d->type, code, d->codebook) - zero, magnitude = fabs(value);
    v.in_f16 = v.in_f16 && is_in_f16(value);
    v.in_i8 = v.in_i8 && is_in_i8(value);
    v.in_e4m3 = v.in_e4m3 && is_in_e4m3(value);
    if (!isfinite(value) || magnitude == 0.0) continue;
    if (magnitude > v.most) v.most = magnitude;
    if (v.least == 0.0 || magnitude < v.least) v.least = magnitude;
  }
  return v;
}
