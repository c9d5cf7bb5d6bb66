/* Real weights to codes, scales and zeros.
 *
 * Rows are independent, and within a row the groups of one super-group. For every group a few candidates are made: a
 * range of values that the codes shall cover, and the scale and zero (or minimum) that follow from it. They are rounded
 * to their types first, and the codes are then the nearest for the scale and zero as they are stored.
 *
 *   ABSMAX   one candidate, symmetric around zero: the largest magnitude becomes the largest code that has a
 *            counterpart of the other sign. Unsigned types get the middle as zero where there is a zero a group;
 * without any zero they can only hold values >= 0, and smaller ones become 0. MINMAX   one candidate, from the smallest
 * to the largest value. With integer zeros and unsigned minima the range always includes 0. MSE      CLIPS symmetric
 * candidates and, with a zero or minimum a group, as many between smallest and largest, clipped by more and more; the
 * least squared error wins.
 *
 * A scale that is too large for its type becomes the largest finite one, one that is too small the smallest that is not
 * 0. E8M0 scales are rounded up to a power of two, so that nothing clips. The scale of a group of zeros is 1, or 0 if
 * the codes have no zero. */
#include <math.h>
#include <stdlib.h>

#include "grid.h"
#include "pack.h"

/* Clip i keeps 2^(-i / 10) of the range: steps of 7 %, from all to an eighth. */
enum { CLIPS = 31 };
static const double clip_step = 0.93303299153680741;

typedef struct range {
  double low, high;
} range;

/* A number as it is stored, and its value. */
typedef struct stored {
  uint32_t number;
  double value;
} stored;

/* Scale and zero (or minimum) of a group, such that w = (value(code) - zero) * scale + minimum. */
typedef struct fit {
  stored scale, shift; /* shift: whichever of the two below is stored a group */
  double zero, minimum;
} fit;

/* Super scale and super zero: what a scale code and a minimum code of 1 stand for. */
typedef struct units {
  double scale, shift;
} units;

typedef struct quantizer {
  const lpg_plan *plan;
  lpgemm_quantize_method_t method;
  lpg_grid codes, scale_codes, shift_codes; /* the latter two where scales or minima have at most 8 bits */
  double least, most;                       /* of the codes' values */
} quantizer;

static int has_minimum(const quantizer *q) { return q->plan->desc.zero == LPGEMM_ZERO_MINIMUM; }
static int has_shift(const quantizer *q) { return q->plan->desc.zero >= LPGEMM_ZERO_PER_GROUP; }
static int has_integer_zero(const quantizer *q) {
  return q->plan->desc.zero == LPGEMM_ZERO_PER_GROUP && !lpg_is_real(q->plan->desc.zero_type);
}

/* ---- rounding to what is stored ---- */

static stored store_real(lpgemm_dtype_t type, double x) {
  int ebits = lpg_exponent_bits(type), mbits = lpg_low_field(type);
  uint32_t number = lpg_round_float(x, ebits, mbits), infinity = ((1u << ebits) - 1u) << mbits;
  if ((number & infinity) == infinity) number -= 1u; /* the largest finite number */
  stored s = {number, (double)lpgemm_i_value_of(type, number)};
  return s;
}

static stored store_code(const lpg_grid *grid, double unit, double x) {
  int i = lpg_grid_nearest(grid, unit != 0.0 ? x / unit : 0.0);
  stored s = {grid->code[i], grid->value[i] * unit};
  return s;
}

static stored store_power(double x) {
  uint64_t u = lpg_f64_bits(x);
  int64_t code = (int64_t)(u >> 52) - 1023 + 127 + ((u & 0xfffffffffffffULL) != 0);
  code = code < 0 ? 0 : code > 254 ? 254 : code;
  stored s = {(uint32_t)code, (double)lpg_e8m0_to_f32((uint8_t)code)};
  return s;
}

/* The smallest positive number: 1 in every type but E8M0. */
static stored store_smallest(lpgemm_dtype_t type, double unit) {
  return (stored){1, (double)lpgemm_i_value_of(type, 1) * unit};
}

/* x > 0. */
static stored store_scale(const quantizer *q, double unit, double x) {
  lpgemm_dtype_t type = q->plan->desc.scale_type;
  if (type == 0) return (stored){0, 1.0};
  if (type == LPGEMM_E8M0) return store_power(x);
  stored s = lpg_is_real(type) ? store_real(type, x) : store_code(&q->scale_codes, unit, x);
  return s.value > 0.0 ? s : store_smallest(type, unit);
}

/* The scale of a group that has no magnitude: 0 / 1 as the codes need it to give 0 for it. */
static stored store_no_scale(const quantizer *q, double zero) {
  lpgemm_dtype_t type = q->plan->desc.scale_type;
  int exact = q->codes.value[lpg_grid_nearest(&q->codes, zero)] == zero;
  if (type == 0) return (stored){0, 1.0};
  if (type == LPGEMM_E8M0) return store_power(exact ? 1.0 : 0.0);
  if (q->plan->desc.super_scale_type) return store_code(&q->scale_codes, 1.0, 0.0);
  return lpg_is_real(type) ? store_real(type, exact) : store_code(&q->scale_codes, 1.0, exact);
}

static stored store_shift(const quantizer *q, double unit, double x) {
  lpgemm_dtype_t type = q->plan->desc.zero_type;
  if (lpg_is_real(type)) return store_real(type, x);
  if (has_minimum(q)) return store_code(&q->shift_codes, unit, x);
  uint32_t largest = lpgemm_i_largest_number(q->plan, LPG_SECTION_ZEROS);
  if (type == LPGEMM_U8 && largest > UINT8_MAX) largest = UINT8_MAX;
  double zero = lpg_round_even(lpg_clamp(x, 0.0, (double)largest));
  return (stored){(uint32_t)zero, zero};
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
static double centre(const quantizer *q, range r) {
  const lpgemm_weight_desc_t *d = &q->plan->desc;
  if (!has_shift(q)) return (double)d->zero_constant;
  if (lpg_kind(d->type) != LPGEMM_KIND_UINT) return 0.0;
  if (q->plan->bits > 1) return (double)(1 << (q->plan->bits - 1));
  if (!has_integer_zero(q)) return 0.5;
  return r.high >= -r.low ? 0.0 : 1.0; /* one bit holds one sign */
}

/* Symmetric around zero, with `keep` of the largest magnitude. */
static cover cover_symmetric(const quantizer *q, range r, double keep) {
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
static cover cover_between(const quantizer *q, range r, double mean, double keep) {
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

/* The candidate that clips nothing. */
static cover cover_all(const quantizer *q, range r) {
  int between = q->method == LPGEMM_QUANTIZE_MINMAX || (q->method == LPGEMM_QUANTIZE_MSE && has_shift(q));
  return between ? cover_between(q, r, 0.0, 1.0) : cover_symmetric(q, r, 1.0);
}

static double wanted_minimum(const cover *c) { return c->real - c->code * c->scale; }

/* From what a candidate asks for to what is stored. A minimum, which may have few bits, is rounded first, and the scale
 * then covers what is left; likewise a zero that its type cannot hold. */
static fit settle(const quantizer *q, units u, const cover *c) {
  fit f = {{0, 0.0}, {0, 0.0}, (double)q->plan->desc.zero_constant, 0.0};
  double scale = c->scale;
  if (has_minimum(q)) {
    f.shift = store_shift(q, u.shift, wanted_minimum(c));
    f.minimum = f.shift.value;
    range rest = {c->r.low - f.minimum, c->r.high - f.minimum};
    scale = covering_scale(rest, q->least, q->most);
  } else if (has_shift(q)) {
    double zero = scale > 0.0 ? c->code - c->real / store_scale(q, u.scale, scale).value : c->code;
    f.shift = store_shift(q, u.shift, zero);
    f.zero = f.shift.value;
    if (fabs(f.zero - zero) > 1.0) scale = covering_scale(c->r, q->least - f.zero, q->most - f.zero);
  }
  f.scale = scale > 0.0 ? store_scale(q, u.scale, scale) : store_no_scale(q, f.zero);
  return f;
}

/* ---- one group ---- */

static int nearest(const quantizer *q, const fit *f, double x) {
  double wanted = f->scale.value != 0.0 ? (x - f->minimum) / f->scale.value + f->zero : f->zero;
  return lpg_grid_nearest(&q->codes, wanted);
}

static double squared_error(const quantizer *q, const fit *f, const double *x, int64_t count) {
  double sum = 0.0;
  for (int64_t i = 0; i < count; i++) {
    double value = q->codes.value[nearest(q, f, x[i])];
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

static fit best_fit(const quantizer *q, units u, const double *x, int64_t count) {
  range r = range_of(x, count);
  cover all = cover_all(q, r);
  fit best = settle(q, u, &all), last = best;
  if (q->method != LPGEMM_QUANTIZE_MSE) return best;
  double mean = mean_of(x, count), least = squared_error(q, &best, x, count);
  for (int between = 0; between <= has_shift(q); between++) {
    double keep = 1.0;
    for (int i = 0; i < CLIPS; i++, keep *= clip_step) {
      cover c = between ? cover_between(q, r, mean, keep) : cover_symmetric(q, r, keep);
      fit f = settle(q, u, &c);
      if (f.scale.number == last.scale.number && f.shift.number == last.shift.number) continue;
      last = f;
      double error = squared_error(q, &f, x, count);
      if (error < least) {
        least = error;
        best = f;
      }
    }
  }
  return best;
}

/* ---- one row ---- */

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t super_of(const lpg_plan *plan, int64_t j) { return j * plan->group.k / plan->super.k; }

/* Columns of group j. */
static int64_t group_size(const lpg_plan *plan, int64_t j) {
  return smaller(plan->group.k, plan->desc.k - j * plan->group.k);
}

static void put(const quantizer *q, lpg_section_id id, int64_t row, int64_t index, uint32_t number, uint8_t *blob) {
  if (q->plan->section[id].bytes == 0) return;
  lpg_line line = lpgemm_i_line(q->plan, id, row);
  lpgemm_i_put_number(&line, blob, index, number);
}

/* The super scale and super zero of groups first .. end - 1, with which the largest code reaches the largest scale and
 * minimum that the groups ask for. With unsigned minimum codes the super zero has the sign of that minimum. */
static units make_units(const quantizer *q, int64_t row, int64_t first, int64_t end, const double *x, uint8_t *blob) {
  const lpg_plan *plan = q->plan;
  double scale = 0.0, shift = 0.0;
  for (int64_t j = first; j < end; j++) {
    cover c = cover_all(q, range_of(x + j * plan->group.k, group_size(plan, j)));
    if (c.scale > scale) scale = c.scale;
    if (fabs(wanted_minimum(&c)) > fabs(shift)) shift = wanted_minimum(&c);
  }
  double top = q->scale_codes.value[q->scale_codes.count - 1];
  stored super = store_real(plan->desc.super_scale_type, scale > 0.0 ? scale / top : 1.0);
  if (super.value == 0.0) super = store_smallest(plan->desc.super_scale_type, 1.0);
  put(q, LPG_SECTION_SUPER_SCALES, row, super_of(plan, first), super.number, blob);
  units u = {super.value, 1.0};
  if (plan->desc.super_zero_type) {
    int signed_codes = q->shift_codes.first < 0.0;
    top = q->shift_codes.value[q->shift_codes.count - 1];
    super = store_real(plan->desc.super_zero_type, (signed_codes ? fabs(shift) : shift) / top);
    put(q, LPG_SECTION_SUPER_ZEROS, row, super_of(plan, first), super.number, blob);
    u.shift = super.value;
  }
  return u;
}

/* codes: k_padded bytes. */
static void quantize_row(const quantizer *q, int64_t row, const double *x, uint8_t *codes, uint8_t *blob) {
  const lpg_plan *plan = q->plan;
  units u = {1.0, 1.0};
  for (int64_t j = 0, end = 0; j < plan->group.count; j++) {
    if (plan->desc.super_scale_type && j == end) {
      while (end < plan->group.count && super_of(plan, end) == super_of(plan, j)) end++;
      u = make_units(q, row, j, end, x, blob);
    }
    const double *group = x + j * plan->group.k;
    int64_t count = group_size(plan, j);
    fit f = best_fit(q, u, group, count);
    put(q, LPG_SECTION_SCALES, row, j, f.scale.number, blob);
    put(q, LPG_SECTION_ZEROS, row, j, f.shift.number, blob);
    for (int64_t i = 0; i < count; i++) codes[j * plan->group.k + i] = q->codes.code[nearest(q, &f, group[i])];
  }
}

static void put_row(const lpg_plan *plan, int64_t row, const uint8_t *codes, uint8_t *blob) {
  int64_t tile_k = lpg_tile_k(plan->bits);
  for (int64_t tile = 0; tile < plan->k_tiles; tile++) {
    uint8_t *to = blob + plan->section[LPG_SECTION_CODES].offset +
                  lpg_tile_offset(plan->bits, plan->k_tiles, row / LPG_TILE_ROWS, tile);
    lpgemm_i_put_codes(plan->desc.type, codes + tile * tile_k, (int)(row % LPG_TILE_ROWS), to);
  }
}

/* ---- the matrix ---- */

static lpgemm_status_t check_finite(const lpg_plan *plan, const void *w, lpgemm_dtype_t w_type, int64_t ldw) {
  for (int64_t row = 0; row < plan->desc.n; row++) {
    for (int64_t column = 0; column < plan->desc.k; column++) {
      float x = lpg_load(w_type, w, row * ldw + column);
      LPG_CHECK(x - x == 0.0f, LPGEMM_INVALID_ARGUMENT,
                "w holds %g at row %lld, column %lld; weights to quantise must be finite", (double)x, (long long)row,
                (long long)column);
    }
  }
  return LPGEMM_SUCCESS;
}

static void make_quantizer(const lpg_plan *plan, lpgemm_quantize_method_t method, quantizer *q) {
  memset(q, 0, sizeof *q);
  q->plan = plan;
  q->method = method;
  lpgemm_i_make_grid(plan->desc.type, plan->desc.codebook, &q->codes);
  q->least = q->codes.value[0];
  q->most = q->codes.value[q->codes.count - 1];
  if (lpg_bits(plan->desc.scale_type) <= 8) lpgemm_i_make_grid(plan->desc.scale_type, NULL, &q->scale_codes);
  if (lpg_bits(plan->desc.zero_type) <= 8) lpgemm_i_make_grid(plan->desc.zero_type, NULL, &q->shift_codes);
}

lpgemm_status_t lpgemm_i_quantize_host(const lpg_plan *plan, lpgemm_quantize_method_t method, const void *w,
                                       lpgemm_dtype_t w_type, int64_t ldw, uint8_t *blob, lpg_content *content) {
  quantizer q;
  make_quantizer(plan, method, &q);
  LPG_CHECK(method != LPGEMM_QUANTIZE_MINMAX || has_shift(&q), LPGEMM_INVALID_ARGUMENT,
            "method is LPGEMM_QUANTIZE_MINMAX, but desc.zero is %d; it needs a zero or a minimum a group",
            (int)plan->desc.zero);
  LPG_TRY(check_finite(plan, w, w_type, ldw));
  size_t k = (size_t)plan->desc.k, k_padded = (size_t)plan->k_padded;
  double *x = (double *)malloc(k * sizeof *x + k_padded + 1);
  LPG_CHECK(x, LPGEMM_OUT_OF_MEMORY, "no memory for %zu bytes of scratch", k * sizeof *x + k_padded + 1);
  uint8_t *codes = (uint8_t *)(x + k);
  memset(codes, lpg_padding_code(plan->desc.type), k_padded);
  lpgemm_i_clear_numbers(plan, blob);
  for (int64_t row = 0; row < plan->desc.n; row++) {
    for (int64_t i = 0; i < plan->desc.k; i++) {
      x[i] = (double)lpg_load(w_type, w, row * ldw + i) / (double)plan->desc.global_scale;
    }
    quantize_row(&q, row, x, codes, blob);
    put_row(plan, row, codes, blob);
  }
  memset(codes, lpg_padding_code(plan->desc.type), k_padded);
  for (int64_t row = plan->desc.n; row < plan->n_padded; row++) put_row(plan, row, codes, blob);
  free(x);
  lpgemm_i_seal(plan, blob, content);
  return LPGEMM_SUCCESS;
}
