/* What the wide kernels do not take, and how they scale weights. */
#ifndef LPG_KERNELS_GEMM_LIMITS_H
#define LPG_KERNELS_GEMM_LIMITS_H

#include "gemm_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How scales meet weights. */
typedef struct lpg_gemm_scaling {
  int on_rows;  /* one scale a row, on its sums */
  int exponent; /* else the largest scale of a row is loaded near 2^exponent */
  lpg_gemm_scales form;
} lpg_gemm_scaling;

/* scale_span: of the weights' content, as in lpg_problem. */
lpg_gemm_scaling lpgemm_i_gemm_scaling(const lpg_packed *weights, lpgemm_dtype_t activations, uint32_t scale_span);

/* Digits that scales give away so that products with integer zeros of groups are exact in fp32. */
int lpgemm_i_gemm_lost_digits(const lpg_packed *weights);

/* For a copy of X, if it needs one, and for lines. */
size_t lpgemm_i_gemm_workspace(const lpg_problem *problem, const lpg_device *device);

/* Microseconds. */
double lpgemm_i_gemm_estimate(const lpg_problem *problem, const lpg_device *device);

/* The plan and the work tile (of LPG_GEMM_TILES) that take the least time, and that time; 0, and HUGE_VAL, if there is
 * none. x_has_map: TMA can read X. */
int lpgemm_i_gemm_choose(const lpg_packed *weights, int64_t m, lpg_gemm_scales form, const lpg_device *device,
                         int parts, int x_has_map, lpg_gemm_plan *plan, int *tile, double *cost);

/* The parts of K of calls whose rows must not depend on M, whatever M is. */
int lpgemm_i_gemm_invariant_parts(const lpg_packed *weights, lpg_gemm_scales form, const lpg_device *device);

/* NULL, or why the problem is not for them. */
const char *lpgemm_i_gemm_refuses(const lpg_problem *problem, const lpg_device *device);

/* Makes lines of scales and zeros, and the factors that take rows' sums back from them. */
lpgemm_status_t lpgemm_i_cuda_gemm_lines(const lpg_call *call, float *factors, void *lines);
lpgemm_status_t lpgemm_i_cuda_prepare_gemm_lines(void);

#ifdef __cplusplus
}
#endif

#endif
