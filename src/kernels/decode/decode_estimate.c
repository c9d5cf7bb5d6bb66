#include "decode_estimate.h"

#include <math.h>

#include "decode_plan.h"

/* Fitted to bench/results/h200-decode.json (H200, 2026-11-22; groups of 128 by fp16 from 4096 x 4096 to 57344 x 8192,
 * every type, m = 1 to 16; the factors of scales and zeros: NVFP4, MXFP4, Q4_K, Q6_K). A pass starts in some
 * microseconds; of each weight an SM brings the bytes or decodes the code, which takes longer counts, and behind that
 * the products with the rows of X are hidden in part. */
enum { BYTES = 34900, MULTIPLY = 970000 }; /* of an SM, a microsecond */

/* Weights that an SM decodes in a microsecond; integers of more than 4 bits are read more slowly than that. */
static double decode_rate(lpgemm_dtype_t type) {
  const int bits = lpg_bits(type);
  if (lpg_kind(type) == LPGEMM_KIND_FLOAT) {
    return bits <= 4 ? 54500.0 : bits <= 6 ? 44000.0 : bits == 7 ? 36000.0 : 29500.0;
  }
  if (lpg_kind(type) == LPGEMM_KIND_CODEBOOK && bits > 1) return 47000.0;
  return bits == 1 ? 88000.0 : bits == 2 ? 79000.0 : bits == 3 ? 66000.0 : 62000.0;
}

/* How much longer a pass takes for its scales and zeros: small groups, zeros, two levels, minima of two levels. */
static double slower_by_numbers(const lpg_plan *plan) {
  const lpgemm_weight_desc_t *d = &plan->desc;
  const int granule = lpg_decode_granule(plan);
  const int shifted = d->zero == LPGEMM_ZERO_PER_GROUP || d->zero == LPGEMM_ZERO_MINIMUM;
  return 1.0 +
         (granule == 1   ? 0.35
          : granule == 2 ? 0.15
                         : 0.0) +
         (shifted ? 0.2 : 0.0) + (d->super_scale_type ? 0.1 : 0.0) + (d->super_zero_type ? 0.9 : 0.0);
}

static double estimate(const lpg_problem *problem, const lpg_device *device, int rows, double start) {
  const lpg_plan *plan = problem->plan;
  const double units = device->units > 0 ? device->units : 1.0, m = (double)problem->m, passes = ceil(m / rows);
  const double weights = (double)plan->desc.n * (double)plan->desc.k / units;
  const double read = (double)plan->total_bytes / units / (BYTES * lpg_pace_of(device->pace.read));
  const double decode = weights / (decode_rate(plan->desc.type) * lpg_pace_of(device->pace.alu));
  const double bring = passes * slower_by_numbers(plan) * (read > decode ? read : decode);
  return passes * start + hypot(bring, m * weights / (MULTIPLY * lpg_pace_of(device->pace.mma)));
}

double lpgemm_i_decode_8_estimate(const lpg_problem *problem, const lpg_device *device) {
  return estimate(problem, device, 8, 6.0);
}

double lpgemm_i_decode_16_estimate(const lpg_problem *problem, const lpg_device *device) {
  return estimate(problem, device, 16, 7.8);
}
