/* What kernels of the CPU cost, and the planners that follow from it: there is one way to run each. */
#ifndef LPG_CPU_COST_H
#define LPG_CPU_COST_H

#include "../internal.h"

/* start: microseconds of a call that does next to nothing. dequantise, multiply: weights that a thread dequantises, and
 * products that it adds up, a microsecond. tile_n, tile_m: rows of W and of X that a thread takes together; with fewer
 * such tiles than threads the others wait; 0: no matter. group: nanoseconds for a group of a row beyond one for every
 * 128 columns. The rest is no matter where it is 0. exact: as multiply, at EXACT for X that is no bytes (three digits,
 * dot_x.h; finer tables, lut). bytes: what values that need all 8 bits of a byte (dot_bytes.h) leave of these numbers;
 * rounded: of them where X is rounded. digit: how much longer a digit of codebooks takes to dequantise than a code,
 * where it is not twice. row: weights a microsecond where a row of X meets codes as they lie (dot_row.h). narrow: as
 * multiply, in groups of fewer than narrow_k columns. column: nanoseconds in which a column of a row of X is made
 * ready. */
typedef struct lpg_cpu_cost {
  double start, dequantise, multiply, tile_n, tile_m, group, exact, bytes, rounded, digit, row, narrow, narrow_k,
      column;
} lpg_cpu_cost;

int lpgemm_i_cpu_cut(const lpg_problem *problem, const lpg_device *device, int i, double least, void *state, void *plan,
                     double *ns);
void lpgemm_i_cpu_finish(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device,
                         const void *plan, double ns, lpg_launch *launch);

/* Defines lpgemm_i_NAME_planner with such a cost; what follows are more fields of it. */
#define LPG_CPU_PLANNER(name, costs, ...)         \
  static const lpg_cpu_cost name##_cost = costs;  \
  const lpg_planner lpgemm_i_##name##_planner = { \
      .cut = lpgemm_i_cpu_cut, .finish = lpgemm_i_cpu_finish, .no_plan = "", .cost = &name##_cost, __VA_ARGS__};
#define LPG_CPU_COST(...) \
  { __VA_ARGS__ }

#endif
