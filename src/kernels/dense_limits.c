#include "dense_limits.h"

#include <math.h>

#include "expand.h"

/* With fewer rows of X than this it never pays to expand the weights, and nobody shall provide a workspace for it. */
enum { LEAST_ROWS = 33 };

static int make_plan(const lpg_problem *problem, const lpg_device *device, int wgmma, lpg_dense_plan *plan) {
  const int finds = lpgemm_i_expand_scaling(problem->plan, problem->x_type).finds;
  return lpg_dense_make_plan(problem->plan, problem->m, lpg_bytes(problem->x_type), finds, wgmma, device, plan);
}

const char *lpgemm_i_dense_refuses(const lpg_problem *problem, const lpg_device *device, int wgmma) {
  lpg_dense_plan plan;
  if (problem->m < LEAST_ROWS) return "it expands the weights, which takes 33 rows to pay";
  const char *reason = lpgemm_i_expand_refuses(problem);
  if (reason) return reason;
  return make_plan(problem, device, wgmma, &plan) ? NULL : "the rows are too long for its workspace";
}

size_t lpgemm_i_dense_workspace(const lpg_problem *problem, const lpg_device *device, int wgmma) {
  lpg_dense_plan plan;
  if (!make_plan(problem, device, wgmma, &plan)) return 0;
  plan.chunk_items = lpg_dense_most_items(&plan);
  return (size_t)lpg_dense_chunk_bytes(&plan);
}

double lpgemm_i_dense_estimate(const lpg_problem *problem, const lpg_device *device, int wgmma) {
  lpg_dense_plan plan;
  return make_plan(problem, device, wgmma, &plan) ? lpg_dense_cost(&plan, device) / 1000.0 : HUGE_VAL;
}
