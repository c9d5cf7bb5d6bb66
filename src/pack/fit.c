/* For every group a few candidates are made: a range of values that the codes shall cover, and the scale and zero (or
 * minimum) that follow from it. They are rounded to their types first, and the codes are then the nearest for the scale
 * and zero as they are stored.
 *
 *   ABSMAX   one candidate, symmetric around zero: the largest magnitude becomes the largest code that has a
 *            counterpart of the other sign. Unsigned types get the middle as zero where there is a zero a group;
 * without any zero they can only hold values >= 0, and smaller ones become 0. MINMAX   one candidate, from the smallest
 * to the largest value. With integer zeros and unsigned minima the range always includes 0. MSE      CLIPS symmetric
 * candidates and, with a zero or minimum a group, as many between smallest and largest, clipped by more and more; the
 * least squared error wins. With two levels the super scales of either kind are tried, and those win that leave less
 * error in the whole super-group.
 *
 * A scale that is too large for its type becomes the largest finite one, one that is too small the smallest that is not
 * 0. E8M0 scales are rounded up to a power of two, so that nothing clips. The scale of a group of zeros is 1, or 0 if
 * the codes have no zero. */
#include "fit.h"

#include <math.h>

/* Clip i keeps 2^(-i / 10) of the range: steps of 7 %, from all to an eighth. */
enum { CLIPS = 31 };
static const double clip_step = 0.93303299153680741;

typedef struct range {
  double low, high;
} range;

static int has_minimum(const lpg_quantizer *q) { return q->plan->desc.zero == LPGEMM_ZERO_MINIMUM; }
static int has_shift(const lpg_quantizer *q) { return q->plan->desc.zero >= LPGEMM_ZERO_PER_GROUP; }
static int has_integer_zero(const lpg_quantizer *q) {
  return q->plan->desc.zero == LPGEMM_ZERO_PER_GROUP && !lpg_is_real(q->plan->desc.zero_type);
}

lpgemm_status_t lpgemm_i_make_quantizer(const lpg_plan *plan, lpgemm_quantize_method_t method, lpg_quantizer *q) {
  memset(q, 0, sizeof *q);
  q->plan = plan;
  q->method = method;
  LPG_CHECK(method != LPGEMM_QUANTIZE_MINMAX || has_shift(q), LPGEMM_INVALID_ARGUMENT,
            "method is LPGEMM_QUANTIZE_MINMAX, but desc.zero is %d; it needs a zero (%d) or a minimum (%d) a group",
            (int)plan->desc.zero, (int)LPGEMM_ZERO_PER_GROUP, (int)LPGEMM_ZERO_MINIMUM);
  lpgemm_i_make_grid(plan->desc.type, plan->desc.codebook, &q->codes);
  q->least = q->codes.value[0];
  q->most = q->codes.value[q->codes.count - 1];
  if (lpg_bytes(plan->desc.scale_type) == 1) lpgemm_i_make_grid(plan->desc.scale_type, NULL, &q->scale_codes);
  if (lpg_bytes(plan->desc.zero_type) == 1) lpgemm_i_make_grid(plan->desc.zero_type, NULL, &q->shift_codes);
  return LPGEMM_SUCCESS;
}

/* ---- rounding to what is stored ---- */

static lpg_stored store_real(lpgemm_dtype_t type, double x) {
  int ebits = lpg_exponent_bits(type), mbits = lpg_low_field(type);
  uint32_t number = lpg_round_float(x, ebits, mbits), infinity = ((1u << ebits) - 1u) << mbits;
  if ((number & infinity) == infinity) number -= 1u; /* the largest finite number */
  return (lpg_stored){number, (double)lpgemm_i_value_of(type, number)};
}

static lpg_stored store_code(const lpg_grid *grid, double unit, double x) {
  int i = lpg_grid_nearest(grid, unit != 0.0 ? x / unit : 0.0);
  return (lpg_stored){grid->code[i], grid->value[i] * unit};
}

/* E8M0, rounded up. */
static lpg_stored store_power(double x) {
  uint64_t u = lpg_f64_bits(x);
  int code = (int)(u >> 52) - 1023 + 127 + ((u & 0xfffffffffffffULL) != 0);
  code = code < 0 ? 0 : code > 254 ? 254 : code;
  return (lpg_stored){(uint32_t)code, (double)lpg_e8m0_to_f32((uint8_t)code)};
}

/* The smallest positive number: 1 in every type but E8M0. */
static lpg_stored store_smallest(lpgemm_dtype_t type, double unit) {
  return (lpg_stored){1, (double)lpgemm_i_value_of(type, 1) * unit};
}

/* x > 0. */
static lpg_stored store_scale(const lpg_quantizer *q, double unit, double x) {
  lpgemm_dtype_t type = q->plan->desc.scale_type;
  if (type == 0) return (lpg_stored){0, 1.0};
  if (type == LPGEMM_E8M0) return store_power(x);
  lpg_stored s = lpg_is_real(type) ? store_real(type, x) : store_code(&q->scale_codes, unit, x);
  return s.value > 0.0 ? s : store_smallest(type, unit);
}

/* The scale of a group without magnitude: 1 if the codes have the value `zero`, which gives 0 then, else 0. */
static lpg_stored store_no_scale(const lpg_quantizer *q, double zero) {
  lpgemm_dtype_t type = q->plan->desc.scale_type;
  double scale = lpg_grid_round(&q->codes, zero) == zero ? 1.0 : 0.0;
  if (type == 0) return (lpg_stored){0, 1.0};
  if (type == LPGEMM_E8M0) return store_power(scale);
  if (q->plan->desc.super_scale_type) return store_code(&q->scale_codes, 1.0, 0.0);
  return lpg_is_real(type) ? store_real(type, scale) : store_code(&q->scale_codes, 1.0, scale);
}

/* A zero or a minimum. */
static lpg_stored store_shift(const lpg_quantizer *q, double unit, double x) {
  lpgemm_dtype_t type = q->plan->desc.zero_type;
  if (lpg_is_real(type)) return store_real(type, x);
  if (has_minimum(q)) return store_code(&q->shift_codes, unit, x);
  uint32_t largest = lpgemm_i_largest_number(q->plan, LPG_SECTION_ZEROS);
  if (type == LPGEMM_U8 && largest > UINT8_MAX) largest = UINT8_MAX;
  double zero = lpg_round_even(lpg_clamp(x, 0.0, (double)largest));
  return (lpg_stored){(uint32_t)zero, zero};
}

/* ---- candidates ---- */

/* What a candidate asks for: codes that cover `r` with steps of `scale`, the code value `code` standing for `real`. */
typedef struct cover {
  range r;
  double scale, code, real;
} cover;

/* The smallest scale with which values from `least` to `most` cover a range, as far as their signs allow. */
static double covering_scale(range r, double least, double most) {
  double scale = 0.0;
  if (r.high > 0.0 && most > 0.0) scale = r.high / most;
  if (r.low < 0.0 && least < 0.0 && r.low / least > scale) scale = r.low / least;
  return scale;
}

/* The code value that stands for 0 in a symmetric candidate. */
static double centre(const lpg_quantizer *q, range r) {
  const lpgemm_weight_desc_t *d = &q->plan->desc;
  if (!has_shift(q)) return (double)d->zero_constant;
  if (lpg_kind(d->type) != LPGEMM_KIND_UINT) return 0.0;
  if (q->plan->bits > 1) return (double)(1 << (q->plan->bits - 1));
  if (!has_integer_zero(q)) return 0.5;
  return r.high >= -r.low ? 0.0 : 1.0; /* one bit holds one sign */
}

/* Symmetric around zero, with `keep` of the largest magnitude. */
static cover cover_symmetric(const lpg_quantizer *q, range r, double keep) {
  cover c = {{r.low * keep, r.high * keep}, 0.0, centre(q, r), 0.0};
  double below = c.code - q->least, above = q->most - c.code;
  if (below > 0.0 && above > 0.0) {
    double magnitude = c.r.high > -c.r.low ? c.r.high : -c.r.low;
    c.r = (range){-magnitude, magnitude};
    c.scale = magnitude / (below < above ? below : above);
  } else {
    c.scale = covering_scale(c.r, -below, above);
  }
  return c;
}

/* From the smallest to the largest value, with `keep` of the distance of each from the mean. */
static cover cover_between(const lpg_quantizer *q, range r, double mean, double keep) {
  cover c = {{mean + (r.low - mean) * keep, mean + (r.high - mean) * keep}, 0.0, q->least, 0.0};
  int unsigned_minimum = has_minimum(q) && lpg_kind(q->plan->desc.zero_type) == LPGEMM_KIND_UINT;
  if (has_integer_zero(q) || unsigned_minimum || c.r.low == c.r.high) {
    if (c.r.low > 0.0) c.r.low = 0.0;
    if (c.r.high < 0.0) c.r.high = 0.0;
  }
  c.real = c.r.low;
  if (q->most > q->least) c.scale = (c.r.high - c.r.low) / (q->most - q->least);
  return c;
}

/* The candidate of either kind that clips nothing. */
static cover cover_all(const lpg_quantizer *q, range r, int between) {
  return between ? cover_between(q, r, 0.0, 1.0) : cover_symmetric(q, r, 1.0);
}

static int starts_between(const lpg_quantizer *q) { return q->method != LPGEMM_QUANTIZE_ABSMAX && has_shift(q); }

static double wanted_minimum(const cover *c) { return c->real - c->code * c->scale; }

/* From what a candidate asks for to what is stored. A minimum, which may have few bits, is rounded first, and the scale
 * then covers what is left; likewise after a zero that its type cannot hold. */
static lpg_fit settle(const lpg_quantizer *q, const lpg_units *u, const cover *c) {
  lpg_fit f = {{0, 0.0}, {0, 0.0}, (double)q->plan->desc.zero_constant, 0.0, 0.0};
  double scale = c->scale;
  if (has_minimum(q)) {
    f.shift = store_shift(q, u->shift.value, wanted_minimum(c));
    f.minimum = f.shift.value;
    range rest = {c->r.low - f.minimum, c->r.high - f.minimum};
    scale = covering_scale(rest, q->least, q->most);
  } else if (has_shift(q)) {
    double zero = scale > 0.0 ? c->code - c->real / store_scale(q, u->scale.value, scale).value : c->code;
    f.shift = store_shift(q, u->shift.value, zero);
    f.zero = f.shift.value;
    if (fabs(f.zero - zero) > 1.0) scale = covering_scale(c->r, q->least - f.zero, q->most - f.zero);
  }
  f.scale = scale > 0.0 ? store_scale(q, u->scale.value, scale) : store_no_scale(q, f.zero);
  return f;
}

/* ---- one group ---- */

/* A sum of `enough` or more means: no better. */
static double squared_error(const lpg_quantizer *q, const lpg_fit *f, const double *x, int64_t count, double enough) {
  double sum = 0.0;
  for (int64_t i = 0; i < count && sum < enough; i++) {
    double value = lpg_grid_round(&q->codes, lpg_wanted_code(f, x[i]));
    double error = (value - f->zero) * f->scale.value + f->minimum - x[i];
    sum += error * error;
  }
  return sum;
}

static range range_of(const double *x, int64_t count) {
  range r = {count > 0 ? x[0] : 0.0, count > 0 ? x[0] : 0.0};
  for (int64_t i = 1; i < count; i++) {
    if (x[i] < r.low) r.low = x[i];
    if (x[i] > r.high) r.high = x[i];
  }
  return r;
}

static double mean_of(const double *x, int64_t count) {
  double sum = 0.0;
  for (int64_t i = 0; i < count; i++) sum += x[i];
  return count > 0 ? sum / (double)count : 0.0;
}

lpg_fit lpgemm_i_fit_group(const lpg_quantizer *q, const lpg_units *units, const double *x, int64_t count) {
  range r = range_of(x, count);
  cover all = cover_all(q, r, starts_between(q));
  lpg_fit best = settle(q, units, &all), last = best;
  if (q->method != LPGEMM_QUANTIZE_MSE) return best;
  best.error = squared_error(q, &best, x, count, HUGE_VAL);
  double mean = mean_of(x, count);
  for (int between = 0; between <= has_shift(q); between++) {
    double keep = 1.0;
    for (int i = 0; i < CLIPS; i++, keep *= clip_step) {
      cover c = between ? cover_between(q, r, mean, keep) : cover_symmetric(q, r, keep);
      lpg_fit f = settle(q, units, &c);
      if (f.scale.number == last.scale.number && f.shift.number == last.shift.number) continue;
      last = f;
      f.error = squared_error(q, &f, x, count, best.error);
      if (f.error < best.error) best = f;
    }
  }
  return best;
}

/* ---- units ---- */

/* The units with which the largest code reaches the largest scale and the largest minimum that the groups ask for. With
 * unsigned minimum codes the super zero has the sign of that minimum. */
static lpg_units units_for(const lpg_quantizer *q, const double *x, int64_t first, int64_t end, int between) {
  const lpg_plan *plan = q->plan;
  double scale = 0.0, shift = 0.0;
  for (int64_t j = first; j < end; j++) {
    cover c = cover_all(q, range_of(x + j * plan->group.k, lpg_group_size(plan, j)), between);
    if (c.scale > scale) scale = c.scale;
    if (fabs(wanted_minimum(&c)) > fabs(shift)) shift = wanted_minimum(&c);
  }
  lpg_units u = lpg_no_units();
  scale /= q->scale_codes.value[q->scale_codes.count - 1];
  u.scale = store_real(plan->desc.super_scale_type, scale > 0.0 ? scale : 1.0);
  if (u.scale.value == 0.0) u.scale = store_smallest(plan->desc.super_scale_type, 1.0);
  if (plan->desc.super_zero_type) {
    int signed_codes = q->shift_codes.first < 0.0;
    shift /= q->shift_codes.value[q->shift_codes.count - 1];
    u.shift = store_real(plan->desc.super_zero_type, signed_codes ? fabs(shift) : shift);
  }
  return u;
}

static double total_error(const lpg_quantizer *q, const lpg_units *units, const double *x, int64_t first, int64_t end) {
  double sum = 0.0;
  for (int64_t j = first; j < end; j++) {
    sum += lpgemm_i_fit_group(q, units, x + j * q->plan->group.k, lpg_group_size(q->plan, j)).error;
  }
  return sum;
}

lpg_units lpgemm_i_fit_units(const lpg_quantizer *q, const double *x, int64_t first, int64_t end) {
  lpg_units units = units_for(q, x, first, end, starts_between(q));
  if (q->method != LPGEMM_QUANTIZE_MSE || !has_shift(q)) return units;
  lpg_units symmetric = units_for(q, x, first, end, 0);
  int better = total_error(q, &symmetric, x, first, end) < total_error(q, &units, x, first, end);
  return better ? symmetric : units;
}
