#include "decode_estimate.h"

#include <math.h>

#include "decode_plan.h"

/* Measured on an H200, 2026-11-22, at 57344 x 8192 and 8192 x 8192: u4 with groups of 128 and m = 1, 8 and 16; the
 * factor of scales and zeros with groups of 16 and 32, NVFP4, Q4_K and Q6_K. An SM decodes and multiplies so many
 * weights a microsecond; a pass takes so many microseconds to start. */
typedef struct decode_cost {
  int rows;
  double start, decode, multiply;
} decode_cost;

static const decode_cost of_8 = {8, 6.0, 64000.0, 4000000.0}, of_16 = {16, 8.0, 64000.0, 2700000.0};

/* How much longer a pass takes for its scales and zeros: small groups, zeros, two levels, minima of two levels. */
static double slower_by_numbers(const lpg_plan *plan) {
  const lpgemm_weight_desc_t *d = &plan->desc;
  const int granule = lpg_decode_granule(plan);
  const int shifted = d->zero == LPGEMM_ZERO_PER_GROUP || d->zero == LPGEMM_ZERO_MINIMUM;
  return 1.0 +
         (granule == 1   ? 0.25
          : granule == 2 ? 0.15
                         : 0.0) +
         (shifted ? 0.2 : 0.0) + (d->super_scale_type ? 0.1 : 0.0) + (d->super_zero_type ? 0.9 : 0.0);
}

static double estimate(const lpg_problem *problem, const lpg_device *device, const decode_cost *cost) {
  const double m = (double)problem->m, n = (double)problem->plan->desc.n, k = (double)problem->plan->desc.k;
  const double passes = ceil(m / cost->rows), units = device->units > 0 ? device->units : 1.0;
  const double work = n * k * (passes * slower_by_numbers(problem->plan) / cost->decode + m / cost->multiply);
  return passes * cost->start + work / units;
}

double lpgemm_i_decode_8_estimate(const lpg_problem *problem, const lpg_device *device) {
  return estimate(problem, device, &of_8);
}

double lpgemm_i_decode_16_estimate(const lpg_problem *problem, const lpg_device *device) {
  return estimate(problem, device, &of_16);
}
