/* What the counts kernels do not take, beyond the sets of their records, and what they cost. */
#ifndef LPG_BITSERIAL_GEMV1_I8_LIMITS_H
#define LPG_BITSERIAL_GEMV1_I8_LIMITS_H

#include "../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL, or why the problem is not for them. */
const char *lpgemm_i_gemv1_i8_refuses(const lpg_problem *problem, const lpg_device *device);

/* Microseconds. */
double lpgemm_i_gemv1_i8_estimate(const lpg_problem *problem, const lpg_device *device);

#ifdef __cplusplus
}
#endif

#endif
