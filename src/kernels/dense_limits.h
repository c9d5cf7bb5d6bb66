/* What the kernels that expand weights first take, need and cost. wgmma: 1 for the form of sm_90a. */
#ifndef LPG_KERNELS_DENSE_LIMITS_H
#define LPG_KERNELS_DENSE_LIMITS_H

#include "../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL, or why the problem is not for them. */
const char *lpgemm_i_dense_refuses(const lpg_problem *problem, const lpg_device *device, int wgmma);

/* Bytes of the largest chunk; the same for every number of rows. */
size_t lpgemm_i_dense_workspace(const lpg_problem *problem, const lpg_device *device, int wgmma);

/* Microseconds. */
double lpgemm_i_dense_estimate(const lpg_problem *problem, const lpg_device *device, int wgmma);

#ifdef __cplusplus
}
#endif

#endif
