#include "gemm8_skinny_limits.h"

#include <math.h>

#include "../operand/limits.h"
#include "gemm8_skinny_plan.h"

static const char *few_refuses(const lpg_problem *problem, const lpg_device *device, int tokens) {
  lpg_few_plan unused;
  double cost = 0.0;
  const char *reason = lpgemm_i_integers_refuse(problem);
  if (reason) return reason;
  return lpg_few_make_plan(problem->plan, problem->m, tokens, device, &unused, &cost)
             ? NULL
             : "the rows are too long for shared memory";
}

static double few_estimate(const lpg_problem *problem, const lpg_device *device, int tokens) {
  lpg_few_plan p;
  double ns = 0.0;
  if (!lpg_few_make_plan(problem->plan, problem->m, tokens, device, &p, &ns)) return HUGE_VAL;
  /* What the plan's cost leaves out, the same for all plans. Storing: 4096 x 4096 by 64 rows, 1 and 2 bits
   * (bench/results/h200-planes.json), by rows of Y at odd places more; and rows of X at odd places, which come byte by
   * byte (both: seven problems of bench/results/h200-regret.json). */
  const lpgemm_weight_desc_t *d = &problem->plan->desc;
  const double store = (d->n % 4 ? 7.5e-6 : 2.5e-6) * (double)problem->m * (double)d->n;
  const double item_rows = problem->m < tokens ? (double)problem->m : (double)tokens;
  const double odd_x = d->k % 16 ? 4e-5 * item_rows * (double)d->k : 0.0;
  return ns / 1000.0 + store + odd_x;
}

#define TOKENS(tokens)                                                                                \
  const char *lpgemm_i_few_##tokens##_refuses(const lpg_problem *problem, const lpg_device *device) { \
    return few_refuses(problem, device, tokens);                                                      \
  }                                                                                                   \
  double lpgemm_i_few_##tokens##_estimate(const lpg_problem *problem, const lpg_device *device) {     \
    return few_estimate(problem, device, tokens);                                                     \
  }
TOKENS(8)
TOKENS(16)
TOKENS(32)
TOKENS(64)
#undef TOKENS
