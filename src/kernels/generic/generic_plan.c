/* The planner of generic, which takes every legal problem. There is one way to cut a problem. */
#include <math.h>

#include "../plan/partition.h"
#include "../plan/rates.h"
#include "generic_plan.h"

/* H200, 2026-11-20, u4 with groups of 128, m = 1 and 4096: microseconds of a call that does next to nothing; weights
 * that an SM dequantises and products that it adds up, a microsecond. And the products of a CTA that has an SM to
 * itself, 2026-11-24, e6m1, 33 and 36 work tiles of 18k to 21k columns: it waits for what it reads, since nobody else
 * has work meanwhile. */
typedef struct generic_cost {
  double start, dequantise, multiply, alone;
} generic_cost;
static const generic_cost small_tiles = {4.0, 4000.0, 9000.0, 9000.0}, large_tiles = {4.0, 800.0, 77000.0, 30000.0};

/* The smaller of the two always has room, on every GPU that there is. */
static const char *refuses(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  const int64_t needed = LPG_GENERIC_SHARED + lpg_expert_rows_bytes(problem->experts);
  if (self->tile_n < 64 || !problem->experts || device->shared_memory >= needed) return NULL;
  return "shared memory has no room for so many experts";
}

static int cut(const lpg_problem *problem, const lpg_device *device, int i, double least, void *state, void *plan,
               double *ns) {
  (void)problem, (void)device, (void)least, (void)state, (void)plan;
  *ns = 0.0;
  return i > 0 ? LPG_NO_MORE : LPG_CANDIDATE;
}

static void finish(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, const void *plan,
                   double ns, lpg_launch *launch) {
  const generic_cost *cost = self->cost;
  const double n = (double)problem->weights->desc.n, k = (double)problem->weights->desc.k;
  const lpg_expected_rows rows = lpg_expected_rows_of(problem->m, problem->experts);
  const double n_tiles = ceil(n / self->tile_n);
  const double m_tiles =
      problem->experts ? lpg_expected_tiles(&rows, self->tile_m) : ceil((double)problem->m / self->tile_m);
  const double sms = fmin(device->sms > 0 ? device->sms : 1.0, fmax(1.0, n_tiles * m_tiles));
  (void)plan, (void)ns;
  launch->tile_n = self->tile_n;
  launch->tile_m = self->tile_m;
  launch->work_tiles = (int64_t)(n_tiles * m_tiles);
  launch->clusters = (int32_t)fmin(n_tiles * fmin(m_tiles, 65535.0), INT32_MAX);
  launch->threads = 256;
  const double all = n * k * (rows.used / cost->dequantise + m_tiles * self->tile_m / cost->multiply) / sms;
  launch->us = cost->start + fmax(all, k * self->tile_n * self->tile_m / cost->alone) / lpgemm_i_alu_speed(device);
}

#define PLANNER(rows_w, rows_x, costs)                                                                     \
  const lpg_planner lpgemm_i_generic_##rows_w##x##rows_x##_planner = {.refuses = refuses,                  \
                                                                      .cut = cut,                          \
                                                                      .finish = finish,                    \
                                                                      .no_plan = "",                       \
                                                                      .mma = LPG_MMA_NONE,                 \
                                                                      .dequantises = LPG_DEQUANT_PER_TILE, \
                                                                      .tile_n = rows_w,                    \
                                                                      .tile_m = rows_x,                    \
                                                                      .cost = &costs};
PLANNER(16, 8, small_tiles)
PLANNER(64, 64, large_tiles)
