/* What the decode kernels do not take, beyond the sets of their records. */
#ifndef LPG_KERNELS_GEMV_LIMITS_H
#define LPG_KERNELS_GEMV_LIMITS_H

#include "../../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL, or why the problem is not for a kernel of up to 8 or 16 columns of X. */
const char *lpgemm_i_gemv_8_refuses(const lpg_problem *problem, const lpg_device *device);
const char *lpgemm_i_gemv_16_refuses(const lpg_problem *problem, const lpg_device *device);

#ifdef __cplusplus
}
#endif

#endif
