/* What the kernels for few rows of codes take and cost. */
#ifndef LPG_KERNELS_SKINNY8_LIMITS_H
#define LPG_KERNELS_SKINNY8_LIMITS_H

#include "../../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The same of the kernels for few rows, in work tiles of 8, 16, 32 or 64; they need no workspace. */
const char *lpgemm_i_skinny8_8_refuses(const lpg_problem *problem, const lpg_device *device);
const char *lpgemm_i_skinny8_16_refuses(const lpg_problem *problem, const lpg_device *device);
const char *lpgemm_i_skinny8_32_refuses(const lpg_problem *problem, const lpg_device *device);
const char *lpgemm_i_skinny8_64_refuses(const lpg_problem *problem, const lpg_device *device);
double lpgemm_i_skinny8_8_estimate(const lpg_problem *problem, const lpg_device *device);
double lpgemm_i_skinny8_16_estimate(const lpg_problem *problem, const lpg_device *device);
double lpgemm_i_skinny8_32_estimate(const lpg_problem *problem, const lpg_device *device);
double lpgemm_i_skinny8_64_estimate(const lpg_problem *problem, const lpg_device *device);

#ifdef __cplusplus
}
#endif

#endif
