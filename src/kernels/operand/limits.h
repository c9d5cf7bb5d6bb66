/* What no kernel can make operands of, whatever its family. */
#ifndef LPG_KERNELS_OPERAND_LIMITS_H
#define LPG_KERNELS_OPERAND_LIMITS_H

#include "../../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL, or why the dequantisers (dequant.cuh) are not for the weights and X. */
const char *lpgemm_i_dequantisers_refuse(const lpg_problem *problem);

/* NULL, or why no kernel for integers by integers takes it: sums must be int32, scaled once. */
const char *lpgemm_i_integers_refuse(const lpg_problem *problem);

#ifdef __cplusplus
}
#endif

#endif
