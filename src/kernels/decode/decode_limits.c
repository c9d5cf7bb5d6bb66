#include "decode_limits.h"

#include <math.h>

#include "decode_plan.h"

/* fp16 has no exponent for the largest values of such a type; e5m2 is a part of fp16. */
static int exceeds_fp16(lpgemm_dtype_t type) {
  int e = lpg_exponent_bits(type);
  return lpg_kind(type) == LPGEMM_KIND_FLOAT && (e > 5 || (e == 5 && type != LPGEMM_E5M2));
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

const char *lpgemm_i_decoders_refuse(const lpg_problem *problem) {
  const lpg_plan *plan = problem->plan;
  const lpgemm_weight_desc_t *d = &plan->desc;
  int is_codebook = lpg_kind(d->type) == LPGEMM_KIND_CODEBOOK;
  if (lpg_half_type(problem->x_type) == LPGEMM_F16 && exceeds_fp16(d->type))
    return "the weights' type has values beyond fp16";
  if (is_codebook && spans_too_far(d)) return "the codebook's values are too far apart or too far from 1";
  if (!lpg_is_integer_kind(d->type) && d->zero != LPGEMM_ZERO_NONE) return "it takes zeros of integer weights only";
  if (d->super_scale_type && plan->super.count > 1 && plan->super.k % LPG_BLOCK_K != 0) {
    return "it takes super-groups of multiples of 256 columns only";
  }
  if (plan->n_padded > INT32_MAX / 2 || plan->k_padded > INT32_MAX / 4) return "it takes no matrix as large as this";
  return NULL;
}

static const char *refuses(const lpg_problem *problem, const lpg_device *device, int columns) {
  const lpg_plan *plan = problem->plan;
  const char *reason = lpgemm_i_decoders_refuse(problem);
  if (reason) return reason;
  /* Integers count from a zero, and codebooks of two are decoded as integers. */
  const int may_shift = lpg_is_integer_kind(plan->desc.type) || plan->bits == 1;
  for (int shifted = 0; shifted <= may_shift; shifted++) {
    lpg_decode_kind kind = lpg_decode_kind_of(plan, columns, shifted, shifted);
    if (plan->row_tiles > 0 && !lpg_decode_fits(&kind, plan, columns, device)) {
      return "the GPU has too little shared memory for it";
    }
  }
  return NULL;
}

const char *lpgemm_i_decode_8_refuses(const lpg_problem *problem, const lpg_device *device) {
  return refuses(problem, device, 8);
}

const char *lpgemm_i_decode_16_refuses(const lpg_problem *problem, const lpg_device *device) {
  return refuses(problem, device, 16);
}
