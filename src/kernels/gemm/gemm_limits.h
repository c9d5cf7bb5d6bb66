/* What the wide kernels do not take, and how they scale weights. */
#ifndef LPG_KERNELS_WIDE_LIMITS_H
#define LPG_KERNELS_WIDE_LIMITS_H

#include "gemm_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How scales meet weights. */
typedef struct lpg_wide_scaling {
  int on_rows;  /* one scale a row, on its sums */
  int exponent; /* else the largest scale of a row is brought near 2^exponent */
  lpg_wide_form form;
} lpg_wide_scaling;

/* scale_span: of the weights' content, as in lpg_problem. */
lpg_wide_scaling lpgemm_i_wide_scaling(const lpg_plan *weights, lpgemm_dtype_t activations, uint32_t scale_span);

/* Digits that scales give away so that products with integer zeros of groups are exact in fp32. */
int lpgemm_i_wide_lost_digits(const lpg_plan *weights);

/* For a copy of X, if it needs one, and for lines. */
size_t lpgemm_i_wide_workspace(const lpg_problem *problem, const lpg_device *device);

/* Microseconds. */
double lpgemm_i_wide_estimate(const lpg_problem *problem, const lpg_device *device);

/* The plan and the item (of LPG_WIDE_ITEMS) that take the least time, and that time; 0, and HUGE_VAL, if there is none.
 * x_has_map: the tensor memory accelerator can read X. */
int lpgemm_i_wide_choose(const lpg_plan *weights, int64_t m, lpg_wide_form form, const lpg_device *device, int parts,
                         int x_has_map, lpg_wide_plan *plan, int *item, double *cost);

/* The parts of K of calls whose rows must not depend on M, whatever M is. */
int lpgemm_i_wide_invariant_parts(const lpg_plan *weights, lpg_wide_form form, const lpg_device *device);

/* NULL, or why the problem is not for them. */
const char *lpgemm_i_wide_refuses(const lpg_problem *problem, const lpg_device *device);

/* Makes lines of scales and zeros, and the factors that take rows' sums back from them. */
lpgemm_status_t lpgemm_i_cuda_wide_lines(const lpg_call *call, float *factors, void *lines);
lpgemm_status_t lpgemm_i_cuda_prepare_wide_lines(void);

#ifdef __cplusplus
}
#endif

#endif
