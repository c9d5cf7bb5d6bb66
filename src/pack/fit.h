/* The scale and zero (or minimum) of a group with which its codes come near to real weights: the arithmetic of the
 * quantiser, in fp64, for host and device.
 *
 * For every group a few candidates are made: a range of values that the codes shall cover, and the scale and zero (or
 * minimum) that follow from it. They are rounded to their types first, and the codes are then the nearest for the scale
 * and zero as they are stored.
 *
 * The method ABSMAX makes one candidate, symmetric around zero: the largest magnitude becomes the largest code that has
 * a counterpart of the other sign. Unsigned types get the middle as zero where there is a zero a group; without any
 * zero they can only hold values >= 0, and smaller ones become 0.
 *
 * The method MINMAX makes one candidate, from the smallest to the largest value. With integer zeros and unsigned minima
 * the range always includes 0.
 *
 * The method MSE makes LPG_CLIPS symmetric candidates and, with a zero or minimum a group, as many between smallest and
 * largest, clipped by more and more; the least squared error wins. With two levels the super scales of either kind are
 * tried, and those win that leave less error in the whole super-group.
 *
 * A scale that is too large for its type becomes the largest finite one, one that is too small the smallest that is not
 * 0. E8M0 scales are rounded up to a power of two, so that nothing clips. The scale of a group of zeros is 1, or 0 if
 * the codes have no zero. */
#ifndef LPG_PACK_FIT_H
#define LPG_PACK_FIT_H

#include <math.h>

#include "grid.h"
#include "pack.h"
#include "sections.h"

typedef struct lpg_quantizer {
  const lpg_packed *packed;
  lpgemm_quantize_method_t method;
  lpg_grid codes, scale_codes, shift_codes; /* the latter two where scales or minima have at most 8 bits */
  double least, most;                       /* of the codes' values */
} lpg_quantizer;

/* A number as it is stored, and its value. */
typedef struct lpg_stored {
  uint32_t number;
  double value;
} lpg_stored;

LPG_BITS_FN lpg_stored lpg_make_stored(uint32_t number, double value) {
  lpg_stored s;
  s.number = number;
  s.value = value;
  return s;
}

/* Scale and zero (or minimum) of a group, such that w = (value(code) - zero) * scale + minimum. */
typedef struct lpg_fit {
  lpg_stored scale, shift; /* shift: whichever of the two below is stored a group */
  double zero, minimum;
  double error; /* MSE: the sum of squared errors */
} lpg_fit;

/* Super scale and super zero: what a scale code and a minimum code of 1 stand for. */
typedef struct lpg_units {
  lpg_stored scale, shift;
} lpg_units;

/* The units of one level. */
LPG_BITS_FN lpg_units lpg_no_units(void) {
  lpg_units u = {{0, 1.0}, {0, 1.0}};
  return u;
}

/* Columns of group j. */
LPG_BITS_FN int64_t lpg_group_size(const lpg_packed *packed, int64_t j) {
  int64_t rest = packed->desc.k - j * packed->group.k;
  return rest < packed->group.k ? rest : packed->group.k;
}

/* The code value that would be exact for x. */
LPG_BITS_FN double lpg_wanted_code(const lpg_fit *f, double x) {
  return f->scale.value != 0.0 ? (x - f->minimum) / f->scale.value + f->zero : f->zero;
}

/* Checks the method and makes the tables; they hold no pointer but the plan. */
LPG_EXTERN_C lpgemm_status_t lpgemm_i_make_quantizer(const lpg_packed *packed, lpgemm_quantize_method_t method,
                                                     lpg_quantizer *q);

/* Clip i keeps 2^(-i / 10) of the range: steps of 7 %, from all to an eighth. */
enum { LPG_CLIPS = 31 };
#define LPG_CLIP_STEP 0.93303299153680741

typedef struct lpg_range {
  double low, high;
} lpg_range;

LPG_BITS_FN int lpg_has_minimum(const lpg_quantizer *q) { return q->packed->desc.zero == LPGEMM_ZERO_MINIMUM; }
LPG_BITS_FN int lpg_has_shift(const lpg_quantizer *q) { return q->packed->desc.zero >= LPGEMM_ZERO_PER_GROUP; }
LPG_BITS_FN int lpg_has_integer_zero(const lpg_quantizer *q) {
  return q->packed->desc.zero == LPGEMM_ZERO_PER_GROUP && !lpg_is_real(q->packed->desc.zero_type);
}

/* ---- rounding to what is stored ---- */

LPG_BITS_FN lpg_stored lpg_store_real(lpgemm_dtype_t type, double x) {
  int ebits = lpg_exponent_bits(type), mbits = lpg_low_field(type);
  uint32_t number = lpg_round_float(x, ebits, mbits), infinity = ((1u << ebits) - 1u) << mbits;
  if ((number & infinity) == infinity) number -= 1u; /* the largest finite number */
  return lpg_make_stored(number, (double)lpg_number_value(type, number));
}

LPG_BITS_FN lpg_stored lpg_store_code(const lpg_grid *grid, double unit, double x) {
  int i = lpg_grid_nearest(grid, unit != 0.0 ? x / unit : 0.0);
  return lpg_make_stored(grid->code[i], grid->value[i] * unit);
}

/* E8M0, rounded up. */
LPG_BITS_FN lpg_stored lpg_store_power(double x) {
  uint64_t u = lpg_f64_bits(x);
  int code = (int)(u >> 52) - 1023 + 127 + ((u & 0xfffffffffffffULL) != 0);
  code = code < 0 ? 0 : code > 254 ? 254 : code;
  return lpg_make_stored((uint32_t)code, (double)lpg_e8m0_to_f32((uint8_t)code));
}

/* The smallest positive number: 1 in every type but E8M0. */
LPG_BITS_FN lpg_stored lpg_store_smallest(lpgemm_dtype_t type, double unit) {
  return lpg_make_stored(1, (double)lpg_number_value(type, 1) * unit);
}

/* x > 0. */
LPG_BITS_FN lpg_stored lpg_store_scale(const lpg_quantizer *q, double unit, double x) {
  lpgemm_dtype_t type = q->packed->desc.scale_type;
  if (type == 0) return lpg_make_stored(0, 1.0);
  if (type == LPGEMM_E8M0) return lpg_store_power(x);
  lpg_stored s = lpg_is_real(type) ? lpg_store_real(type, x) : lpg_store_code(&q->scale_codes, unit, x);
  return s.value > 0.0 ? s : lpg_store_smallest(type, unit);
}

/* The scale of a group without magnitude: 1 if the codes have the value `zero`, which gives 0 then, else 0. */
LPG_BITS_FN lpg_stored lpg_store_no_scale(const lpg_quantizer *q, double zero) {
  lpgemm_dtype_t type = q->packed->desc.scale_type;
  double scale = lpg_grid_round(&q->codes, zero) == zero ? 1.0 : 0.0;
  if (type == 0) return lpg_make_stored(0, 1.0);
  if (type == LPGEMM_E8M0) return lpg_store_power(scale);
  if (q->packed->desc.super_scale_type) return lpg_store_code(&q->scale_codes, 1.0, 0.0);
  return lpg_is_real(type) ? lpg_store_real(type, scale) : lpg_store_code(&q->scale_codes, 1.0, scale);
}

/* A zero or a minimum. */
LPG_BITS_FN lpg_stored lpg_store_shift(const lpg_quantizer *q, double unit, double x) {
  lpgemm_dtype_t type = q->packed->desc.zero_type;
  if (lpg_is_real(type)) return lpg_store_real(type, x);
  if (lpg_has_minimum(q)) return lpg_store_code(&q->shift_codes, unit, x);
  uint32_t largest = lpg_largest_number(q->packed, LPG_SECTION_ZEROS);
  if (type == LPGEMM_U8 && largest > UINT8_MAX) largest = UINT8_MAX;
  double zero = lpg_round_even(lpg_clamp(x, 0.0, (double)largest));
  return lpg_make_stored((uint32_t)zero, zero);
}

/* ---- candidates ---- */

/* What a candidate asks for: codes that cover `r` with steps of `scale`, the code value `code` standing for `real`. */
typedef struct lpg_cover {
  lpg_range r;
  double scale, code, real;
} lpg_cover;

/* The smallest scale with which values from `least` to `most` cover a range, as far as their signs allow. */
LPG_BITS_FN double lpg_covering_scale(lpg_range r, double least, double most) {
  double scale = 0.0;
  if (r.high > 0.0 && most > 0.0) scale = r.high / most;
  if (r.low < 0.0 && least < 0.0 && r.low / least > scale) scale = r.low / least;
  return scale;
}

/* The code value that stands for 0 in a symmetric candidate. */
LPG_BITS_FN double lpg_centre(const lpg_quantizer *q, lpg_range r) {
  const lpgemm_weight_desc_t *d = &q->packed->desc;
  if (!lpg_has_shift(q)) return (double)d->zero_constant;
  if (lpg_kind(d->type) != LPGEMM_KIND_UINT) return 0.0;
  if (q->packed->bits > 1) return (double)(1 << (q->packed->bits - 1));
  if (!lpg_has_integer_zero(q)) return 0.5;
  return r.high >= -r.low ? 0.0 : 1.0; /* one bit holds one sign */
}

/* Symmetric around zero, with `keep` of the largest magnitude. */
LPG_BITS_FN lpg_cover lpg_cover_symmetric(const lpg_quantizer *q, lpg_range r, double keep) {
  lpg_cover c = {{r.low * keep, r.high * keep}, 0.0, lpg_centre(q, r), 0.0};
  double below = c.code - q->least, above = q->most - c.code;
  if (below > 0.0 && above > 0.0) {
    double magnitude = c.r.high > -c.r.low ? c.r.high : -c.r.low;
    c.r.low = -magnitude;
    c.r.high = magnitude;
    c.scale = magnitude / (below < above ? below : above);
  } else {
    c.scale = lpg_covering_scale(c.r, -below, above);
  }
  return c;
}

/* From the smallest to the largest value, with `keep` of the distance of each from the mean. */
LPG_BITS_FN lpg_cover lpg_cover_between(const lpg_quantizer *q, lpg_range r, double mean, double keep) {
  lpg_cover c = {{mean + (r.low - mean) * keep, mean + (r.high - mean) * keep}, 0.0, q->least, 0.0};
  int unsigned_minimum = lpg_has_minimum(q) && lpg_kind(q->packed->desc.zero_type) == LPGEMM_KIND_UINT;
  if (lpg_has_integer_zero(q) || unsigned_minimum || c.r.low == c.r.high) {
    if (c.r.low > 0.0) c.r.low = 0.0;
    if (c.r.high < 0.0) c.r.high = 0.0;
  }
  c.real = c.r.low;
  if (q->most > q->least) c.scale = (c.r.high - c.r.low) / (q->most - q->least);
  return c;
}

/* The candidate of either kind that clips nothing. */
LPG_BITS_FN lpg_cover lpg_cover_all(const lpg_quantizer *q, lpg_range r, int between) {
  return between ? lpg_cover_between(q, r, 0.0, 1.0) : lpg_cover_symmetric(q, r, 1.0);
}

LPG_BITS_FN int lpg_starts_between(const lpg_quantizer *q) {
  return q->method != LPGEMM_QUANTIZE_ABSMAX && lpg_has_shift(q);
}

LPG_BITS_FN double lpg_wanted_minimum(const lpg_cover *c) { return c->real - c->code * c->scale; }

/* From what a candidate asks for to what is stored. A minimum, which may have few bits, is rounded first, and the scale
 * then covers what is left; likewise after a zero that its type cannot hold. */
LPG_BITS_FN lpg_fit lpg_settle(const lpg_quantizer *q, const lpg_units *u, const lpg_cover *c) {
  lpg_fit f = {{0, 0.0}, {0, 0.0}, (double)q->packed->desc.zero_constant, 0.0, 0.0};
  double scale = c->scale;
  if (lpg_has_minimum(q)) {
    f.shift = lpg_store_shift(q, u->shift.value, lpg_wanted_minimum(c));
    f.minimum = f.shift.value;
    lpg_range rest = {c->r.low - f.minimum, c->r.high - f.minimum};
    scale = lpg_covering_scale(rest, q->least, q->most);
  } else if (lpg_has_shift(q)) {
    double zero = scale > 0.0 ? c->code - c->real / lpg_store_scale(q, u->scale.value, scale).value : c->code;
    f.shift = lpg_store_shift(q, u->shift.value, zero);
    f.zero = f.shift.value;
    if (fabs(f.zero - zero) > 1.0) scale = lpg_covering_scale(c->r, q->least - f.zero, q->most - f.zero);
  }
  f.scale = scale > 0.0 ? lpg_store_scale(q, u->scale.value, scale) : lpg_store_no_scale(q, f.zero);
  return f;
}

/* ---- one group ---- */

/* A sum of `enough` or more means: no better. */
LPG_BITS_FN double lpg_squared_error(const lpg_quantizer *q, const lpg_fit *f, const double *x, int64_t count,
                                     double enough) {
  double sum = 0.0;
  for (int64_t i = 0; i < count && sum < enough; i++) {
    double value = lpg_grid_round(&q->codes, lpg_wanted_code(f, x[i]));
    double error = (value - f->zero) * f->scale.value + f->minimum - x[i];
    sum += error * error;
  }
  return sum;
}

LPG_BITS_FN lpg_range lpg_range_of(const double *x, int64_t count) {
  lpg_range r = {count > 0 ? x[0] : 0.0, count > 0 ? x[0] : 0.0};
  for (int64_t i = 1; i < count; i++) {
    if (x[i] < r.low) r.low = x[i];
    if (x[i] > r.high) r.high = x[i];
  }
  return r;
}

LPG_BITS_FN double lpg_mean_of(const double *x, int64_t count) {
  double sum = 0.0;
  for (int64_t i = 0; i < count; i++) sum += x[i];
  return count > 0 ? sum / (double)count : 0.0;
}

LPG_BITS_FN lpg_fit lpg_fit_group(const lpg_quantizer *q, const lpg_units *units, const double *x, int64_t count) {
  lpg_range r = lpg_range_of(x, count);
  lpg_cover all = lpg_cover_all(q, r, lpg_starts_between(q));
  lpg_fit best = lpg_settle(q, units, &all), last = best;
  if (q->method != LPGEMM_QUANTIZE_MSE) return best;
  best.error = lpg_squared_error(q, &best, x, count, HUGE_VAL);
  double mean = lpg_mean_of(x, count);
  for (int between = 0; between <= lpg_has_shift(q); between++) {
    double keep = 1.0;
    for (int i = 0; i < LPG_CLIPS; i++, keep *= LPG_CLIP_STEP) {
      lpg_cover c = between ? lpg_cover_between(q, r, mean, keep) : lpg_cover_symmetric(q, r, keep);
      lpg_fit f = lpg_settle(q, units, &c);
      if (f.scale.number == last.scale.number && f.shift.number == last.shift.number) continue;
      last = f;
      f.error = lpg_squared_error(q, &f, x, count, best.error);
      if (f.error < best.error) best = f;
    }
  }
  return best;
}

/* ---- units ---- */

/* The units with which the largest code reaches the largest scale and the largest minimum that the groups ask for. With
 * unsigned minimum codes the super zero has the sign of that minimum. */
LPG_BITS_FN lpg_units lpg_units_for(const lpg_quantizer *q, const double *x, int64_t first, int64_t end, int between) {
  const lpg_packed *packed = q->packed;
  double scale = 0.0, shift = 0.0;
  for (int64_t j = first; j < end; j++) {
    lpg_cover c = lpg_cover_all(q, lpg_range_of(x + j * packed->group.k, lpg_group_size(packed, j)), between);
    if (c.scale > scale) scale = c.scale;
    if (fabs(lpg_wanted_minimum(&c)) > fabs(shift)) shift = lpg_wanted_minimum(&c);
  }
  lpg_units u = lpg_no_units();
  scale /= q->scale_codes.value[q->scale_codes.count - 1];
  u.scale = lpg_store_real(packed->desc.super_scale_type, scale > 0.0 ? scale : 1.0);
  if (u.scale.value == 0.0) u.scale = lpg_store_smallest(packed->desc.super_scale_type, 1.0);
  if (packed->desc.super_zero_type) {
    int signed_codes = q->shift_codes.first < 0.0;
    shift /= q->shift_codes.value[q->shift_codes.count - 1];
    u.shift = lpg_store_real(packed->desc.super_zero_type, signed_codes ? fabs(shift) : shift);
  }
  return u;
}

LPG_BITS_FN double lpg_total_error(const lpg_quantizer *q, const lpg_units *units, const double *x, int64_t first,
                                   int64_t end) {
  double sum = 0.0;
  for (int64_t j = first; j < end; j++) {
    sum += lpg_fit_group(q, units, x + j * q->packed->group.k, lpg_group_size(q->packed, j)).error;
  }
  return sum;
}

LPG_BITS_FN lpg_units lpg_fit_units(const lpg_quantizer *q, const double *x, int64_t first, int64_t end) {
  lpg_units units = lpg_units_for(q, x, first, end, lpg_starts_between(q));
  if (q->method != LPGEMM_QUANTIZE_MSE || !lpg_has_shift(q)) return units;
  lpg_units symmetric = lpg_units_for(q, x, first, end, 0);
  int better = lpg_total_error(q, &symmetric, x, first, end) < lpg_total_error(q, &units, x, first, end);
  return better ? symmetric : units;
}

/* ---- one row ---- */

LPG_BITS_FN void lpg_put_if_there(const lpg_packed *packed, lpg_section_id id, int64_t row, int64_t index,
                                  uint32_t number, uint8_t *blob) {
  if (packed->section[id].bytes == 0) return;
  lpg_line line = lpg_line_of(packed, id, row);
  lpg_put_number(&line, blob, index, number);
}

LPG_BITS_FN int64_t lpg_super_of(const lpg_packed *packed, int64_t j) { return j * packed->group.k / packed->super.k; }

/* Codes of group j. */
LPG_BITS_FN void lpg_quantize_group(const lpg_quantizer *q, const lpg_fit *fit, const double *x, int64_t j,
                                    uint8_t *codes) {
  int64_t first = j * q->packed->group.k;
  for (int64_t i = first; i < first + lpg_group_size(q->packed, j); i++) {
    codes[i] = q->codes.code[lpg_grid_nearest(&q->codes, lpg_wanted_code(fit, x[i]))];
  }
}

/* The groups that must be seen together: those of the super-group that starts at group `first`, or `first` alone.
 * Returns the group behind them. */
LPG_BITS_FN int64_t lpg_groups_end(const lpg_packed *packed, int64_t first) {
  int64_t end = first + 1;
  if (!packed->desc.super_scale_type) return end;
  while (end < packed->group.count && lpg_super_of(packed, end) == lpg_super_of(packed, first)) end++;
  return end;
}

/* Quantises the groups first .. end - 1, as lpg_groups_end() gives them, of a row x: its codes, and scales and zeros
 * into the blob. */
LPG_BITS_FN void lpg_quantize_groups(const lpg_quantizer *q, int64_t row, int64_t first, int64_t end, const double *x,
                                     uint8_t *codes, uint8_t *blob) {
  const lpg_packed *packed = q->packed;
  lpg_units units = lpg_no_units();
  if (packed->desc.super_scale_type) {
    units = lpg_fit_units(q, x, first, end);
    lpg_put_if_there(packed, LPG_SECTION_SUPER_SCALES, row, lpg_super_of(packed, first), units.scale.number, blob);
    lpg_put_if_there(packed, LPG_SECTION_SUPER_ZEROS, row, lpg_super_of(packed, first), units.shift.number, blob);
  }
  for (int64_t j = first; j < end; j++) {
    lpg_fit fit = lpg_fit_group(q, &units, x + j * packed->group.k, lpg_group_size(packed, j));
    lpg_put_if_there(packed, LPG_SECTION_SCALES, row, j, fit.scale.number, blob);
    lpg_put_if_there(packed, LPG_SECTION_ZEROS, row, j, fit.shift.number, blob);
    lpg_quantize_group(q, &fit, x, j, codes);
  }
}

#endif
