#include "gemm1_limits.h"

#include <math.h>

#include "../kernels/operand/limits.h"
#include "gemm1_images.h"

/* With fewer rows of X than this images never pay, and nobody shall provide a workspace for them. */
enum { LEAST_ROWS = 33 };

/* bytes: 1 where codes stay bytes. */
static int make_plan(const lpg_problem *problem, const lpg_device *device, int bytes, lpg_planes_plan *plan) {
  return lpg_planes_make_plan(problem->plan, problem->m, lpg_bits(problem->x_type), bytes, device, plan);
}

static const char *refuses(const lpg_problem *problem, const lpg_device *device, int bytes) {
  lpg_planes_plan unused;
  const char *reason = lpgemm_i_integers_refuse(problem);
  if (reason) return reason;
  if (problem->m < LEAST_ROWS) return "it makes images of the operands, which takes 33 rows to pay";
  return make_plan(problem, device, bytes, &unused) ? NULL : "the rows are too long for its workspace";
}

static size_t workspace(const lpg_problem *problem, const lpg_device *device, int bytes) {
  lpg_planes_plan plan;
  if (!make_plan(problem, device, bytes, &plan)) return 0;
  return (size_t)lpg_planes_workspace(&plan, lpg_planes_most_items(&plan));
}

/* Of a chunk of so many row items. */
static double chunk_cost(const lpg_planes_plan *p, int32_t row_items, double units) {
  const int64_t rounds = ((int64_t)row_items * p->token_items + p->groups - 1) / p->groups;
  const double bytes = (double)(row_items * lpg_planes_w_bytes(p));
  return 3.0 + bytes / (units * 10000.0) + (double)rounds * (p->p * p->q * p->k_stages * 0.75 + 2.5);
}

static double estimate(const lpg_problem *problem, const lpg_device *device, int bytes) {
  lpg_planes_plan p;
  if (!make_plan(problem, device, bytes, &p)) return HUGE_VAL;
  const double units = device->units > 0 ? device->units : 1.0;
  const double x = (double)problem->m * (double)problem->plan->desc.k;
  const int32_t chunks = p.chunk_items > 0 ? p.row_items / p.chunk_items : 0;
  const int32_t left = p.row_items - chunks * p.chunk_items;
  return 3.0 + x * (1.0 + 0.15 * p.q) / (units * 27000.0) + chunks * chunk_cost(&p, p.chunk_items, units) +
         (left > 0 ? chunk_cost(&p, left, units) : 0.0);
}

#define FORM(name, bytes)                                                                       \
  const char *lpgemm_i_##name##_refuses(const lpg_problem *problem, const lpg_device *device) { \
    return refuses(problem, device, bytes);                                                     \
  }                                                                                             \
  size_t lpgemm_i_##name##_workspace(const lpg_problem *problem, const lpg_device *device) {    \
    return workspace(problem, device, bytes);                                                   \
  }                                                                                             \
  double lpgemm_i_##name##_estimate(const lpg_problem *problem, const lpg_device *device) {     \
    return estimate(problem, device, bytes);                                                    \
  }
FORM(planes, 0)
FORM(bytes, 1)
#undef FORM
