/* What the decode kernels cost: microseconds, for up to 8 or 16 rows of X a pass. */
#ifndef LPG_KERNELS_GEMV_ESTIMATE_H
#define LPG_KERNELS_GEMV_ESTIMATE_H

#include "../../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

double lpgemm_i_gemv_8_estimate(const lpg_problem *problem, const lpg_device *device);
double lpgemm_i_gemv_16_estimate(const lpg_problem *problem, const lpg_device *device);

#ifdef __cplusplus
}
#endif

#endif
