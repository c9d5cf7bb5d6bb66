/* A copy of X of a byte a number in fp16, for kernels that cannot widen it on its way. */
#ifndef LPG_KERNELS_WIDEN_H
#define LPG_KERNELS_WIDEN_H

#include "../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers between the rows of the copy: whole pieces of 16 bytes. */
static inline int64_t lpg_widened_pitch(const lpg_problem *problem) { return (problem->plan->desc.k + 7) / 8 * 8; }

/* Bytes of the copy; 0 where X needs none. */
static inline size_t lpg_widened_bytes(const lpg_problem *problem) {
  if (lpg_bytes(problem->x_type) != 1) return 0;
  return (size_t)(problem->m * lpg_widened_pitch(problem) * 2);
}

/* If X is of a byte a number: makes the copy, and lets the call have it as its X. */
lpgemm_status_t lpgemm_i_cuda_widen(lpg_call *call, void *copy);
lpgemm_status_t lpgemm_i_cuda_prepare_widen(void);

#ifdef __cplusplus
}
#endif

#endif
