/* What the lookup kernels do not take, beyond the sets of their records, and what they cost. */
#ifndef LPG_LUT_GPU_LIMITS_H
#define LPG_LUT_GPU_LIMITS_H

#include "../../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL, or why the problem is not for them. */
const char *lpgemm_i_lut_gpu_refuses(const lpg_problem *problem, const lpg_device *device);

/* Microseconds. */
double lpgemm_i_lut_gpu_estimate(const lpg_problem *problem, const lpg_device *device);

/* 1 for weights whose scales are fp16 or none and whose zero is fixed: the fast form of the kernels. */
int lpgemm_i_lut_gpu_is_common(const lpg_packed *weights);

#ifdef __cplusplus
}
#endif

#endif
