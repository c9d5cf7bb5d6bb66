/* Weights that are scaled in X's type before they are multiplied (gemm, stripe): scales of a row are multiplied by a
 * power of two that comes off the row's sums. */
#ifndef LPG_KERNELS_OPERAND_SCALED_H
#define LPG_KERNELS_OPERAND_SCALED_H

#include <math.h>

#include "../../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The smallest t with x <= 2^t. */
static inline int lpg_power_above(double x) {
  const int e = ilogb(x);
  return ldexp(1.0, e) < x ? e + 1 : e;
}

/* The largest scale of a row is brought near 2^this. With fp16 products with it stay below 2^15. */
int lpgemm_i_scale_exponent(const lpgemm_weight_desc_t *d, lpgemm_dtype_t x_type);

/* The largest difference of the exponents of a row's scales with which no scale and no scaled weight falls below the
 * normal numbers of X's type. is_sum: a scale is taken for the sum of two numbers; then products with the second one
 * are known to an eighth of that rounding, too. exponent: the scales'; field_power: log2 of what the dequantiser leaves
 * to them. */
int lpgemm_i_scale_span_limit(const lpgemm_weight_desc_t *d, lpgemm_dtype_t x_type, int is_sum, int exponent,
                              int field_power);

#ifdef __cplusplus
}
#endif

#endif
