/* The cost model: a start, then decoding and multiplying, spread over all threads or SMs. */
#include "cost.h"

#include <math.h>

#include "dispatch.h"

/* Batch invariance asks for one kernel whatever the number of rows, so the model must not see it. */
enum { INVARIANT_ROWS = 32 };

static const lpg_cost *find_row(const char *name) {
  for (size_t i = 0; i < sizeof lpg_costs / sizeof lpg_costs[0]; i++) {
    if (strcmp(lpg_costs[i].name, name) == 0) return &lpg_costs[i];
  }
  return NULL;
}

double lpgemm_i_estimate(const lpg_kernel *kernel, const lpg_problem *problem, const lpg_device *device) {
  if (kernel->estimate) {
    lpg_problem p = *problem;
    if (p.batch_invariant) p.m = INVARIANT_ROWS;
    return kernel->estimate(&p, device);
  }
  const lpg_cost *row = find_row(kernel->cost);
  if (!row) return HUGE_VAL;
  double m = problem->batch_invariant ? INVARIANT_ROWS : (double)problem->m;
  double n = (double)problem->weights->desc.n, k = (double)problem->weights->desc.k;
  double units = (device->sms > 0 || device->threads > 0)
                     ? (double)(device->backend == LPGEMM_BACKEND_CUDA ? device->sms : device->threads)
                     : 1.0;
  if (row->rows > 0) { /* whole tiles */
    units = fmin(units, fmax(1.0, ceil(n / row->rows) * ceil(m / row->tokens)));
    m = ceil(m / row->tokens) * row->tokens;
  }
  units *= lpg_pace_of(device->pace.alu);
  return row->start + n * k * (1.0 / row->decode + m / row->multiply) / units;
}
