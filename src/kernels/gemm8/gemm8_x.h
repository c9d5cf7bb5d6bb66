/* What a call of gemm8 makes first: the image of X, the sums of its rows, factors and offsets of rows of weights. */
#ifndef LPG_KERNELS_GEMM8_X_H
#define LPG_KERNELS_GEMM8_X_H

#include "gemm8_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes all of it in the workspace. */
lpgemm_status_t lpgemm_i_gemm8_prepare_call(const lpg_call *call);
/* Loads what that launches. */
lpgemm_status_t lpgemm_i_gemm8_prepare_x(void);

#ifdef __cplusplus
}
#endif

#endif
