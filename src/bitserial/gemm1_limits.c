#include "gemm1_limits.h"

#include <math.h>

#include "../kernels/operand/limits.h"
#include "gemm1_images.h"

/* With fewer rows of X than this images never pay, and nobody shall provide a workspace for them. */
enum { LEAST_ROWS = 33 };

static int make_plan(const lpg_problem *problem, const lpg_device *device, lpg_gemm1_plan *plan) {
  return lpg_gemm1_make_plan(problem->weights, problem->m, lpg_bits(problem->x_type), device, plan);
}

const char *lpgemm_i_gemm1_refuses(const lpg_problem *problem, const lpg_device *device) {
  lpg_gemm1_plan unused;
  const char *reason = lpgemm_i_integers_refuse(problem);
  if (reason) return reason;
  if (problem->m < LEAST_ROWS) return "it makes images of the operands, which takes 33 rows to pay";
  return make_plan(problem, device, &unused) ? NULL : "the rows are too long for its workspace";
}

size_t lpgemm_i_gemm1_workspace(const lpg_problem *problem, const lpg_device *device) {
  lpg_gemm1_plan plan;
  if (!make_plan(problem, device, &plan)) return 0;
  return (size_t)lpg_gemm1_workspace(&plan, lpg_gemm1_most_tiles(&plan));
}

/* Of a chunk of so many row work tiles. */
static double chunk_cost(const lpg_gemm1_plan *p, int32_t n_tiles, double units) {
  const int64_t rounds = ((int64_t)n_tiles * p->m_tiles + p->clusters - 1) / p->clusters;
  const double bytes = (double)(n_tiles * lpg_gemm1_w_bytes(p));
  return 3.0 + bytes / (units * 10000.0) + (double)rounds * (p->p * p->q * p->k_stages * 0.75 + 2.5);
}

double lpgemm_i_gemm1_estimate(const lpg_problem *problem, const lpg_device *device) {
  lpg_gemm1_plan p;
  if (!make_plan(problem, device, &p)) return HUGE_VAL;
  const double units = device->sms > 0 ? device->sms : 1.0;
  const double x = (double)problem->m * (double)problem->weights->desc.k;
  const int32_t chunks = p.chunk_tiles > 0 ? p.n_tiles / p.chunk_tiles : 0;
  const int32_t left = p.n_tiles - chunks * p.chunk_tiles;
  return 3.0 + x * (1.0 + 0.15 * p.q) / (units * 27000.0) + chunks * chunk_cost(&p, p.chunk_tiles, units) +
         (left > 0 ? chunk_cost(&p, left, units) : 0.0);
}
