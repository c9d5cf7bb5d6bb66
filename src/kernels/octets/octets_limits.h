/* What the kernels for int8 by integer weights do not take. */
#ifndef LPG_KERNELS_OCTETS_LIMITS_H
#define LPG_KERNELS_OCTETS_LIMITS_H

#include "octets_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL, or why the problem is not for them. */
const char *lpgemm_i_octets_refuses(const lpg_problem *problem, const lpg_device *device);

/* For the image of X. */
size_t lpgemm_i_octets_workspace(const lpg_problem *problem, const lpg_device *device);

/* Microseconds. */
double lpgemm_i_octets_estimate(const lpg_problem *problem, const lpg_device *device);

/* Makes the image of X, and behind it the sums of its rows. */
lpgemm_status_t lpgemm_i_octets_bring_x(const lpg_call *call);
lpgemm_status_t lpgemm_i_octets_prepare_x(void);

#ifdef __cplusplus
}
#endif

#endif
