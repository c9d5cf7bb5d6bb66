/* What the kernels that expand weights first take, need and cost. */
#ifndef LPG_KERNELS_DEQUANT_LIMITS_H
#define LPG_KERNELS_DEQUANT_LIMITS_H

#include "../operand/x_copy.h"
#include "dequant_expand.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The words of their names, the type that is multiplied, and 1 for the form of sm_90a. */
#define LPG_DEQUANT_FORMS(FORM)    \
  FORM(f16_sm90a, LPGEMM_F16, 1)   \
  FORM(bf16_sm90a, LPGEMM_BF16, 1) \
  FORM(i8_sm90a, LPGEMM_I8, 1)     \
  FORM(e4m3_sm90a, LPGEMM_E4M3, 1) \
  FORM(e5m2_sm90a, LPGEMM_E4M3, 1) \
  FORM(f16_sm80, LPGEMM_F16, 0)    \
  FORM(bf16_sm80, LPGEMM_BF16, 0)  \
  FORM(i8_sm80, LPGEMM_I8, 0)

/* NULL, or why the problem is not for it; bytes of a copy of X and of the largest chunk; microseconds. */
#define LPG_DEQUANT_DECLARE_(name, image, wgmma)                                                       \
  const char *lpgemm_i_dequant_##name##_refuses(const lpg_problem *problem, const lpg_device *device); \
  size_t lpgemm_i_dequant_##name##_workspace(const lpg_problem *problem, const lpg_device *device);    \
  double lpgemm_i_dequant_##name##_estimate(const lpg_problem *problem, const lpg_device *device);
LPG_DEQUANT_FORMS(LPG_DEQUANT_DECLARE_)

/* Of a copy of X in numbers of so many bytes, so that an image may follow it. */
static inline size_t lpg_dequant_copy_bytes(const lpg_problem *problem, int bytes) {
  return (lpg_x_copy_bytes(problem, bytes) + 1023) / 1024 * 1024;
}

#ifdef __cplusplus
}
#endif

#endif
