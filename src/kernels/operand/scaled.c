#include "scaled.h"

#include <math.h>

#include "limits.h"

/* Powers of two that bound what is multiplied by a scale, as the kernels have it: magnitudes of at most 2^top, and 0 or
 * at least 2^low. */
typedef struct magnitudes {
  int top, low;
} magnitudes;

/* Integers less their zeros, which are integers. A group's zero is one of the codes or one above. */
static magnitudes integer_magnitudes(const lpgemm_weight_desc_t *d) {
  const int bits = lpg_bits(d->type);
  const double zero = d->zero == LPGEMM_ZERO_CONSTANT ? (double)d->zero_constant : 0.0;
  const double least = lpg_integer_offset(d->type), most = least + lpg_integer_step(d->type) * (ldexp(1.0, bits) - 1.0);
  const double reach = fmax(fabs(least - zero), fabs(most - zero));
  magnitudes m = {bits, 0};
  if (reach > 0.0 && lpg_power_above(reach) > m.top) m.top = lpg_power_above(reach);
  return m;
}

/* fp16 leaves floats but e4m3 where they lie in its own fields, off by the ratio of the biases, and brings codebooks'
 * largest value near 2^15; with bf16 floats are themselves (the power of their fields is taken off elsewhere), and
 * the largest value is below 1. */
static magnitudes real_magnitudes(const lpgemm_weight_desc_t *d, lpgemm_dtype_t x_type) {
  const int bf16 = x_type == LPGEMM_BF16;
  magnitudes m = {bf16 ? 0 : 15, bf16 ? 0 : 14};
  if (lpg_kind(d->type) == LPGEMM_KIND_FLOAT) {
    const int e = lpg_exponent_bits(d->type), bias = (1 << (e - 1)) - 1;
    const int off = lpg_is_halved(d->type, x_type) ? 1 : bf16 || d->type == LPGEMM_E4M3 ? 0 : 15 - bias;
    m.top = (1 << e) - bias - off;
    m.low = 1 - bias - off - lpg_low_field(d->type);
    return m;
  }
  double most = 0.0, least = INFINITY;
  for (int i = 0; i < 1 << lpg_bits(d->type); i++) {
    const double magnitude = fabs((double)d->codebook[i]);
    if (magnitude > most) most = magnitude;
    if (magnitude > 0.0 && magnitude < least) least = magnitude;
  }
  if (most > 0.0) m.low = m.top - 1 - ilogb(most) + ilogb(least);
  return m;
}

static magnitudes magnitudes_of(const lpgemm_weight_desc_t *d, lpgemm_dtype_t x_type) {
  return lpg_is_integer_kind(d->type) ? integer_magnitudes(d) : real_magnitudes(d, x_type);
}

int lpgemm_i_scale_exponent(const lpgemm_weight_desc_t *d, lpgemm_dtype_t x_type) {
  const int top = magnitudes_of(d, x_type).top;
  return x_type == LPGEMM_BF16 ? 0 : top < 0 ? 14 : 14 - top;
}

int lpgemm_i_scale_span_limit(const lpgemm_weight_desc_t *d, lpgemm_dtype_t x_type, int is_sum, int exponent,
                              int field_power) {
  const int product = magnitudes_of(d, x_type).low + exponent - field_power;
  const int least = x_type == LPGEMM_BF16 ? -126 : -14, digits = x_type == LPGEMM_BF16 ? 8 : 11;
  if (!is_sum) return product < exponent ? product - least : exponent - least;
  const int products = product - least - 4, low_parts = exponent - least - digits + 8;
  return products < low_parts ? products : low_parts;
}
