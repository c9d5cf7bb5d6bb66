/* What the wide kernels do not take, and how they scale weights. */
#ifndef LPG_KERNELS_WIDE_LIMITS_H
#define LPG_KERNELS_WIDE_LIMITS_H

#include "wide_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* fp16: products with the largest scale of a row stay below 2^(this + 1). */
enum { LPG_WIDE_TOP = 14 };

/* How scales meet weights. */
typedef struct lpg_wide_scaling {
  int on_rows;  /* one scale a row, on its sums */
  int exponent; /* else the largest scale of a row is brought near 2^exponent */
  int finds;    /* 1: the row's weights instead, whose zeros may be larger: a bound of them is found, call by call */
  lpg_wide_form form;
} lpg_wide_scaling;

lpg_wide_scaling lpgemm_i_wide_scaling(const lpg_plan *weights, lpgemm_dtype_t activations);

/* Of the rows' bounds, if they are found. */
static inline size_t lpg_wide_bound_bytes(const lpg_problem *problem) {
  return lpgemm_i_wide_scaling(problem->plan, problem->x_type).finds ? (size_t)problem->plan->n_padded : 0;
}

/* For a copy of X, and for bounds. */
size_t lpgemm_i_wide_workspace(const lpg_problem *problem, const lpg_device *device);

/* Finds them: of every row, padded ones too, an exponent to be taken for that of its largest scale, where values have
 * magnitudes of at most 2^top. */
lpgemm_status_t lpgemm_i_cuda_wide_bounds(const lpg_call *call, int top, int8_t *exponents);
lpgemm_status_t lpgemm_i_cuda_prepare_wide_bounds(void);

/* Microseconds. */
double lpgemm_i_wide_estimate(const lpg_problem *problem, const lpg_device *device);

/* The parts of K of calls whose rows must not depend on M, whatever M is. */
int lpgemm_i_wide_invariant_parts(const lpg_plan *weights, lpg_wide_form form, const lpg_device *device);

/* NULL, or why the problem is not for them. */
const char *lpgemm_i_wide_refuses(const lpg_problem *problem, const lpg_device *device);

#ifdef __cplusplus
}
#endif

#endif
