/* What the kernels that expand weights first take, need and cost. image: the type that is multiplied; wgmma: 1 for the
 * form of sm_90a. */
#ifndef LPG_KERNELS_DENSE_LIMITS_H
#define LPG_KERNELS_DENSE_LIMITS_H

#include "../widen.h"
#include "expand.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL, or why the problem is not for them. */
const char *lpgemm_i_dense_refuses(const lpg_problem *problem, const lpg_device *device, lpgemm_dtype_t image,
                                   int wgmma);

/* Bytes of a copy of X and of the largest chunk. */
size_t lpgemm_i_dense_workspace(const lpg_problem *problem, const lpg_device *device, lpgemm_dtype_t image, int wgmma);

/* Microseconds. */
double lpgemm_i_dense_estimate(const lpg_problem *problem, const lpg_device *device, lpgemm_dtype_t image, int wgmma);

/* Of a copy of X in fp16, so that an image may follow it. */
static inline size_t lpg_dense_copy_bytes(const lpg_problem *problem) {
  return (lpg_widened_bytes(problem) + 1023) / 1024 * 1024;
}

#ifdef __cplusplus
}
#endif

#endif
