/* What the kernels for X of 8 bits by weights that become bytes do not take. */
#ifndef LPG_KERNELS_GEMM8_LIMITS_H
#define LPG_KERNELS_GEMM8_LIMITS_H

#include "gemm8_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL, or why the problem is not for them. */
const char *lpgemm_i_gemm8_refuses(const lpg_problem *problem, const lpg_device *device);

/* For the image of X, and what belongs to its rows and those of the weights. */
size_t lpgemm_i_gemm8_workspace(const lpg_problem *problem, const lpg_device *device);

/* Microseconds. */
double lpgemm_i_gemm8_estimate(const lpg_problem *problem, const lpg_device *device);

/* Makes all of it. */
lpgemm_status_t lpgemm_i_gemm8_prepare_call(const lpg_call *call);
/* Loads what that launches. */
lpgemm_status_t lpgemm_i_gemm8_prepare_x(void);

#ifdef __cplusplus
}
#endif

#endif
