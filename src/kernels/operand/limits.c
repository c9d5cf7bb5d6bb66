#include "limits.h"

#include <math.h>

#include "../plan/partition.h"

/* fp16 has no exponents for the values of such a type, nor for halves of them. */
static int exceeds_fp16(lpgemm_dtype_t type) {
  return lpg_kind(type) == LPGEMM_KIND_FLOAT && lpg_exponent_bits(type) > 5;
}

/* The smallest and the largest value must both have all their digits in fp16 (2^-14 to 2^15) when all are multiplied by
 * one power of two; and since that power comes off after the scales, it must not be so far from 1 that sums leave fp32.
 */
static int spans_too_far(const lpgemm_weight_desc_t *desc) {
  float least = INFINITY, most = 0.0f;
  for (int i = 0; i < 1 << lpg_bits(desc->type); i++) {
    float magnitude = fabsf(desc->codebook[i]);
    if (magnitude > most) most = magnitude;
    if (magnitude > 0.0f && magnitude < least) least = magnitude;
  }
  return most > 0.0f && (ldexp((double)least, 28) < (double)most || (double)most > 0x1p15 || (double)most < 0x1p-15);
}

const char *lpgemm_i_dequantisers_refuse(const lpg_problem *problem) {
  const lpg_packed *packed = problem->weights;
  const lpgemm_weight_desc_t *d = &packed->desc;
  int is_codebook = lpg_kind(d->type) == LPGEMM_KIND_CODEBOOK;
  if (lpg_half_type(problem->x_type) == LPGEMM_F16 && exceeds_fp16(d->type))
    return "the weights' type has values beyond fp16";
  if (is_codebook && spans_too_far(d)) return "the codebook's values are too far apart or too far from 1";
  if (!lpg_is_integer_kind(d->type) && d->zero != LPGEMM_ZERO_NONE) return "it takes zeros of integer weights only";
  if (d->super_scale_type && packed->super.count > 1 && packed->super.k % LPG_BLOCK_K != 0) {
    return "it takes super-groups of multiples of 256 columns only";
  }
  if (packed->n_padded > INT32_MAX / 2 || packed->k_padded > INT32_MAX / 4)
    return "it takes no matrix as large as this";
  if (lpg_scale_shift(packed) < 0) return "the number of rows that share scales is no power of two";
  return NULL;
}

/* The largest magnitude of a number of the type less `zero`. */
static int64_t largest(lpgemm_dtype_t type, int64_t zero) {
  const int64_t low = lpg_integer_offset(type);
  const int64_t high = low + (int64_t)lpg_integer_step(type) * ((1 << lpg_bits(type)) - 1);
  return zero - low > high - zero ? zero - low : high - zero;
}

/* The same for the weights, whatever the zero of a row is: from 0 to 2^bits. */
static int64_t largest_weight(const lpgemm_weight_desc_t *d) {
  if (d->zero == LPGEMM_ZERO_CONSTANT) return largest(d->type, (int64_t)d->zero_constant);
  const int64_t low = largest(d->type, 0);
  const int64_t high = d->zero == LPGEMM_ZERO_PER_GROUP ? largest(d->type, 1 << lpg_bits(d->type)) : 0;
  return low > high ? low : high;
}

/* NULL, or why no kernel for integers by integers takes it: sums must be int32, scaled once. */
const char *lpgemm_i_integers_refuse(const lpg_problem *problem) {
  const lpg_packed *packed = problem->weights;
  const lpgemm_weight_desc_t *d = &packed->desc;
  if (d->k == 0 || d->n == 0 || problem->m == 0) return "there is nothing to multiply";
  if ((d->scale_type || d->zero == LPGEMM_ZERO_PER_GROUP) && (packed->group.count > 1 || packed->super.count > 1)) {
    return "it takes one scale and one zero a row only";
  }
  if (d->zero == LPGEMM_ZERO_MINIMUM || (d->zero == LPGEMM_ZERO_PER_GROUP && lpg_is_real(d->zero_type)) ||
      (d->zero == LPGEMM_ZERO_CONSTANT &&
       (fabsf(d->zero_constant) > 65536.0f || floorf(d->zero_constant) != d->zero_constant))) {
    return "the weights' zeros are no integers";
  }
  if (packed->n_padded > INT32_MAX / 2 || packed->k_padded > INT32_MAX / 4 || problem->m > INT32_MAX / 2) {
    return "it takes no matrix as large as this";
  }
  if (d->k > INT32_MAX / (largest_weight(d) * largest(problem->x_type, 0))) {
    return "sums of so many columns may not be int32";
  }
  return NULL;
}
