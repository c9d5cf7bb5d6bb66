#include "wide_limits.h"

#include <math.h>

#include "decode_limits.h"
#include "wide_plan.h"

/* ---- fixed zeros ---- */

/* What the kernels multiply by a scale is step * d + shift, in X's type: 0 if that has no room for all its digits. */
static int fixed_zero_fits(const lpgemm_weight_desc_t *d, lpgemm_dtype_t x_type) {
  const int digits = x_type == LPGEMM_BF16 ? 8 : 11;
  if (d->zero != LPGEMM_ZERO_CONSTANT) return 1;
  for (int places = 0; places <= 3 && lpg_bits(d->type) + places <= digits; places++) {
    const double scaled = ldexp((double)d->zero_constant, places);
    if (floor(scaled) == scaled) return fabs((double)d->zero_constant) <= ldexp(1.0, lpg_bits(d->type));
  }
  return 0;
}

/* ---- scales ---- */

/* Powers of two that bound what decoders give: |d| < 2^top, and 0 or at least 2^low. */
typedef struct d_range {
  int top, low;
} d_range;

static d_range range_of(const lpgemm_weight_desc_t *desc) {
  d_range r = {lpg_bits(desc->type), -3}; /* integers: less a zero that may have 3 places */
  if (lpg_kind(desc->type) == LPGEMM_KIND_FLOAT) {
    r.top = (1 << lpg_exponent_bits(desc->type)) - 15;
    r.low = -14 - lpg_low_field(desc->type);
  } else if (lpg_kind(desc->type) == LPGEMM_KIND_CODEBOOK) {
    double most = 0.0, least = INFINITY;
    for (int i = 0; i < 1 << lpg_bits(desc->type); i++) {
      const double magnitude = fabs((double)desc->codebook[i]);
      if (magnitude > most) most = magnitude;
      if (magnitude > 0.0 && magnitude < least) least = magnitude;
    }
    r.top = 15;
    r.low = most > 0.0 ? 14 - ilogb(most) + ilogb(least) : 14;
  }
  return r;
}

/* fp16: products with the largest scale stay below 2^15. */
static int scale_exponent(const lpgemm_weight_desc_t *desc, lpgemm_dtype_t x_type) {
  const int top = range_of(desc).top;
  return x_type == LPGEMM_BF16 || top > 14 ? -(x_type != LPGEMM_BF16) * (top - 14) : top < 0 ? 14 : 14 - top;
}

/* The largest difference of the exponents of a row's scales with which no scaled weight, and nothing that a scale
 * lacks, falls below fp16's normal numbers; bf16 has room. */
static int span_limit(const lpgemm_weight_desc_t *desc, lpgemm_dtype_t x_type) {
  if (x_type == LPGEMM_BF16) return 100;
  const int exponent = scale_exponent(desc, x_type), product = range_of(desc).low + exponent + 14, rest = exponent + 11;
  return product < rest ? product : rest;
}

lpg_wide_scaling lpgemm_i_wide_scaling(const lpg_plan *weights, lpgemm_dtype_t x_type) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  const int integers = lpg_is_integer_kind(d->type);
  lpg_wide_scaling s;
  s.on_rows = d->scale_type == 0 || (weights->group.count <= 1 && weights->super.count <= 1);
  s.exponent = scale_exponent(d, x_type);
  s.general = (!s.on_rows && (d->super_scale_type || d->scale_type != x_type)) ||
              (weights->group.count > 1 && weights->group.k < 128) || d->zero == LPGEMM_ZERO_PER_GROUP ||
              lpg_kind(d->type) == LPGEMM_KIND_BIPOLAR ||
              (integers && d->zero == LPGEMM_ZERO_CONSTANT && floorf(d->zero_constant) != d->zero_constant);
  return s;
}

/* ---- refusals ---- */

const char *lpgemm_i_wide_refuses(const lpg_problem *problem, const lpg_device *device) {
  const lpg_plan *plan = problem->plan;
  const lpgemm_weight_desc_t *d = &plan->desc;
  const lpg_wide_scaling scaling = lpgemm_i_wide_scaling(plan, problem->x_type);
  const char *reason = lpgemm_i_decoders_refuse(problem);
  if (reason) return reason;
  if (d->zero == LPGEMM_ZERO_MINIMUM) return "it takes no minima";
  if (d->zero == LPGEMM_ZERO_PER_GROUP &&
      (lpg_kind(d->type) != LPGEMM_KIND_UINT || !lpg_is_integer_kind(d->zero_type))) {
    return "it takes zeros of groups only as integers, of unsigned weights";
  }
  if (!fixed_zero_fits(d, problem->x_type)) return "the zero has too many digits for the type of X";
  if (!scaling.on_rows && (int)problem->scale_span > span_limit(d, problem->x_type)) {
    return "the scales of a row are too far apart to be multiplied in the type of X";
  }
  if (problem->m > INT32_MAX / 2) return "it takes no matrix as large as this";
  const lpg_wide_kind kind = lpg_wide_kind_of(plan, 32, 8, scaling.general);
  lpg_wide_plan p;
  double cost;
  if (!lpg_wide_make_plan(&kind, plan, 32, device, 0, &p, &cost)) {
    return "the GPU has too little shared memory for it";
  }
  return NULL;
}
