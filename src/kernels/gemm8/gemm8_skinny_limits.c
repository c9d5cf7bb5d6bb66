#include "gemm8_skinny_limits.h"

#include <math.h>

#include "../operand/limits.h"
#include "gemm8_skinny_plan.h"

static const char *skinny8_refuses(const lpg_problem *problem, const lpg_device *device, int x_rows) {
  lpg_skinny8_plan unused;
  double cost = 0.0;
  const char *reason = lpgemm_i_integers_refuse(problem);
  if (reason) return reason;
  return lpg_skinny8_make_plan(problem->weights, problem->m, x_rows, device, &unused, &cost)
             ? NULL
             : "the rows are too long for shared memory";
}

static double skinny8_estimate(const lpg_problem *problem, const lpg_device *device, int x_rows) {
  lpg_skinny8_plan p;
  double ns = 0.0;
  if (!lpg_skinny8_make_plan(problem->weights, problem->m, x_rows, device, &p, &ns)) return HUGE_VAL;
  /* What the plan's cost leaves out, the same for all plans. Storing: 4096 x 4096 by 64 rows, 1 and 2 bits
   * (bench/results/h200-planes.json), by rows of Y at odd places more; and rows of X at odd places, which come byte by
   * byte (both: seven problems of bench/results/h200-regret.json). */
  const lpgemm_weight_desc_t *d = &problem->weights->desc;
  const double store = (d->n % 4 ? 7.5e-6 : 2.5e-6) * (double)problem->m * (double)d->n;
  const double tile_rows = problem->m < x_rows ? (double)problem->m : (double)x_rows;
  const double odd_x = d->k % 16 ? 4e-5 * tile_rows * (double)d->k : 0.0;
  return ns / 1000.0 + store + odd_x;
}

#define TOKENS(x_rows)                                                                                    \
  const char *lpgemm_i_skinny8_##x_rows##_refuses(const lpg_problem *problem, const lpg_device *device) { \
    return skinny8_refuses(problem, device, x_rows);                                                      \
  }                                                                                                       \
  double lpgemm_i_skinny8_##x_rows##_estimate(const lpg_problem *problem, const lpg_device *device) {     \
    return skinny8_estimate(problem, device, x_rows);                                                     \
  }
TOKENS(8)
TOKENS(16)
TOKENS(32)
TOKENS(64)
#undef TOKENS
