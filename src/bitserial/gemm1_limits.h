/* What the kernels for integers by integers take, need and cost: those of planes of bits, those of codes that stay
 * bytes, and those for few rows. */
#ifndef LPG_BITSERIAL_GEMM1_LIMITS_H
#define LPG_BITSERIAL_GEMM1_LIMITS_H

#include "gemm1_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL, or why the problem is not for them. */
const char *lpgemm_i_gemm1_refuses(const lpg_problem *problem, const lpg_device *device);

/* Bytes of the images of X and of the largest chunk of weights. */
size_t lpgemm_i_gemm1_workspace(const lpg_problem *problem, const lpg_device *device);

/* Microseconds. */
double lpgemm_i_gemm1_estimate(const lpg_problem *problem, const lpg_device *device);

#ifdef __cplusplus
}
#endif

#endif
