#include "gemv_estimate.h"

#include <math.h>

#include "gemv_plan.h"

/* Fitted to the suite sweep and to bench/results/h200-decode.json (H200, 2026-11-22; every type, 2048 x 2048 to 57344 x
 * 8192, m = 1 to 16 a pass). A pass starts in some microseconds, more of them with more rows; of each weight an SM
 * brings the bytes or decodes the code, which takes longer counts, and behind that the products with the rows of X are
 * hidden in part. */
enum { BYTES = 39500, MULTIPLY = 760000 }; /* of an SM, a microsecond */

/* Weights that an SM decodes in a microsecond; integers of more than 4 bits are read more slowly than that. */
static double dequant_rate(lpgemm_dtype_t type) {
  const int bits = lpg_bits(type);
  if (lpg_kind(type) == LPGEMM_KIND_FLOAT) {
    return bits <= 4 ? 54500.0 : bits <= 6 ? 44000.0 : bits == 7 ? 36000.0 : 29500.0;
  }
  if (lpg_kind(type) == LPGEMM_KIND_CODEBOOK && bits > 1) return 47000.0;
  return bits == 1 ? 88000.0 : bits == 2 ? 79000.0 : bits == 3 ? 66000.0 : 62000.0;
}

static int has_shift(const lpg_packed *weights) {
  return weights->desc.zero == LPGEMM_ZERO_PER_GROUP || weights->desc.zero == LPGEMM_ZERO_MINIMUM;
}

/* How much longer dequantising takes for scales and zeros: small groups, zeros of small groups, two levels. */
static double slower_by_scales(const lpg_packed *weights) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  const int scale_group = lpg_gemv_scale_steps(weights);
  const double groups = scale_group == 1 ? 0.45 : scale_group == 2 ? 0.18 : 0.0;
  const double zeros = !has_shift(weights) || scale_group > 2 ? 0.0 : d->super_zero_type ? 0.25 : 0.7;
  return 1.0 + groups + zeros + (d->super_scale_type ? 0.6 : 0.0);
}

/* Microseconds of a pass of so many rows, beside its weights. */
static double start_of(const lpg_problem *problem, double pass_rows, int rows) {
  const double filled = (pass_rows - 1.0) / (0.4 * rows);
  return 4.4 + 1.1 * fmin(1.0, filled) + (lpg_bytes(problem->x_type) == 1 ? 0.1 * pass_rows : 0.0) +
         (has_shift(problem->weights) ? 2.0 : 0.0);
}

/* How much longer weights take to load: bipolar ones, for which a product more is added up, and where rows are few
 * and long, in parts of K that have sums to add (60 random problems of them, H200, 2026-11-23). */
static double slower_by_kind(const lpgemm_weight_desc_t *d, int rows) {
  const double bipolar = lpg_kind(d->type) != LPGEMM_KIND_BIPOLAR ? 1.0 : rows > 8 ? 1.45 : 1.25;
  const double long_rows = log2(fmax(1.0, (double)d->k) / (8.0 * fmax(1.0, (double)d->n)));
  return bipolar * (1.0 + 0.08 * fmax(0.0, long_rows));
}

/* speed: at which weights are loaded, of that with 8 rows. */
static double estimate(const lpg_problem *problem, const lpg_device *device, int rows, double speed) {
  const lpg_packed *packed = problem->weights;
  const double units = device->sms > 0 ? device->sms : 1.0, m = (double)problem->m, passes = ceil(m / rows);
  const double weights = (double)packed->desc.n * (double)packed->desc.k / units;
  const double read = (double)packed->total_bytes / units / (BYTES * lpg_pace_of(device->pace.read));
  const double decode = weights / (dequant_rate(packed->desc.type) * lpg_pace_of(device->pace.alu));
  const double slower = slower_by_scales(packed), slowest = read > decode * slower ? read : decode * slower;
  const double load = passes * slowest * slower_by_kind(&packed->desc, rows) * (has_shift(packed) ? 1.2 : 1.0) / speed;
  return passes * start_of(problem, passes > 0 ? m / passes : 1.0, rows) +
         hypot(load, m * weights / (MULTIPLY * lpg_pace_of(device->pace.mma)));
}

double lpgemm_i_gemv_8_estimate(const lpg_problem *problem, const lpg_device *device) {
  return estimate(problem, device, 8, 1.0);
}

double lpgemm_i_gemv_16_estimate(const lpg_problem *problem, const lpg_device *device) {
  return estimate(problem, device, 16, 0.83);
}
