/* What plans of gemm cost: nanoseconds, by constants that were measured with each work tile forced. */
#ifndef LPG_KERNELS_GEMM_COST_H
#define LPG_KERNELS_GEMM_COST_H

#include "../plan/rates.h"
#include "gemm_plan.h"

/* The GPU's rates and SMs, and the clock of these against the one of the GPU that costs were fitted to; and whether
 * threads load X, which TMA cannot read. */
typedef struct lpg_gemm_speed {
  const lpg_rates *rates;
  double sms, alu;
  int loads_x;
} lpg_gemm_speed;

/* Nanoseconds of a k block, of reading one while all SMs do, of a work tile and of a call, and how many times as long
 * as that all takes. unused: k blocks of which nothing is loaded and multiplied, behind K's end: part of one. */
typedef struct lpg_gemm_costs {
  const struct gemm_constants *of;
  double sms, block, read, half_block, half_read, tile, start, busy, slower, unused;
} lpg_gemm_costs;

/* Of work tiles of a kind with so many rows of X. */
lpg_gemm_costs lpgemm_i_gemm_costs(const lpg_problem *problem, const lpg_gemm_kind *kind, int x_rows,
                                   const lpg_expected_rows *rows, const lpg_gemm_speed *speed);

/* Nanoseconds that the plan may take: work tiles in turn. */
double lpgemm_i_gemm_cost(const lpg_gemm_plan *p, const lpg_gemm_kind *kind, const lpg_expected_rows *rows,
                          const lpg_gemm_costs *costs);

/* Microseconds that preparing the scales of a chunk, or expanding it, takes. */
double lpgemm_i_gemm_make_us(const lpg_packed *weights, lpg_gemm_scales mode, const lpg_device *device);

#endif
