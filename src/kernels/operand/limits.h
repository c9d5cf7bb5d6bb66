/* What no kernel can make operands of, whatever its family. */
#ifndef LPG_KERNELS_OPERAND_LIMITS_H
#define LPG_KERNELS_OPERAND_LIMITS_H

#include "../../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* log2 of the row tiles that share scales and zeros, for kernels that shift; all of them: a shift by 31. -1: it is no
 * power of two. */
static inline int lpg_scale_shift(const lpg_packed *packed) {
  if (packed->tiles_a_scale >= packed->row_tiles && packed->tiles_a_scale > 1) return 31;
  int shift = 0;
  while (INT64_C(1) << shift < packed->tiles_a_scale) shift++;
  return INT64_C(1) << shift == packed->tiles_a_scale ? shift : -1;
}

/* Floats of 5 exponent bits that have a number where fp16 has infinity: fp16 holds the half of each of their values,
 * and sums take the 2. */
LPG_FN int lpg_is_halved(lpgemm_dtype_t weights, lpgemm_dtype_t x_type) {
  return x_type != LPGEMM_BF16 && lpg_kind(weights) == LPGEMM_KIND_FLOAT && lpg_exponent_bits(weights) == 5 &&
         weights != LPGEMM_E5M2;
}

/* NULL, or why the dequantisers (dequant.cuh) are not for the weights and X. */
const char *lpgemm_i_dequantisers_refuse(const lpg_problem *problem);

/* NULL, or why no kernel for integers by integers takes it: sums must be int32, scaled once. */
const char *lpgemm_i_integers_refuse(const lpg_problem *problem);

#ifdef __cplusplus
}
#endif

#endif
