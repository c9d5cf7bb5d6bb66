/* Which weights can be expanded, and how their scales meet them. */
#include <math.h>

#include "../operand/expand.h"
#include "../operand/limits.h"
#include "dequant_plan.h"

/* Powers of two that bound what a scale multiplies: magnitudes of at most 2^top, and 0 or at least 2^low. */
typedef struct magnitudes {
  int top, low;
} magnitudes;

static magnitudes magnitudes_of(const lpg_packed *weights) {
  const lpg_values *v = &weights->values;
  magnitudes m = {0, 0};
  if (v->most == 0.0) return m;
  m.top = ilogb(v->most) + (ldexp(1.0, ilogb(v->most)) < v->most);
  m.low = ilogb(v->least);
  return m;
}

/* The normal numbers of fp16: 2^LEAST and more, below 2^(MOST + 1). */
enum { LEAST = -14, MOST = 15 };

static int is_halved(const lpgemm_weight_desc_t *d) {
  return lpg_is_halved(d->type, LPGEMM_F16) && d->zero == LPGEMM_ZERO_NONE;
}

static int is_8_bits(lpgemm_dtype_t type) { return lpg_bytes(type) == 1; }

/* 1 if all values less the zero are exact in int8, e4m3 or fp16, there as halves maybe. */
static int is_exact(const lpg_packed *weights, lpgemm_dtype_t type) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  if (d->zero == LPGEMM_ZERO_MINIMUM) return 0;
  if (d->zero == LPGEMM_ZERO_PER_GROUP) { /* integers are one of the codes or one above */
    return lpg_kind(d->type) == LPGEMM_KIND_UINT && lpg_is_integer_kind(d->zero_type) &&
           weights->bits <= (type == LPGEMM_F16  ? 8
                             : type == LPGEMM_I8 ? 7
                                                 : 4);
  }
  return type == LPGEMM_F16  ? weights->values.in_f16 || is_halved(d)
         : type == LPGEMM_I8 ? weights->values.in_i8
                             : weights->values.in_e4m3;
}

/* Why scaled weights may leave fp16's normal numbers, even if every row is multiplied by a power of two; else NULL. */
static const char *exceeds_fp16(const lpg_problem *problem) {
  const magnitudes m = magnitudes_of(problem->weights);
  if (m.top - m.low > MOST - 1 - LEAST) return "the weights' values are too far apart for the type of X";
  if (m.top - m.low + (int)problem->scale_span > MOST - 1 - LEAST) {
    return "the scales of a row are too far apart to be multiplied in the type of X";
  }
  return NULL;
}

lpg_expand_scaling lpgemm_i_expand_scaling(const lpg_problem *problem, lpgemm_dtype_t type) {
  const lpg_packed *weights = problem->weights;
  const lpgemm_weight_desc_t *d = &weights->desc;
  const magnitudes m = magnitudes_of(weights);
  const int is_fp16 = type == LPGEMM_F16, exact = is_fp16 && is_exact(weights, type);
  const int differs = d->zero == LPGEMM_ZERO_MINIMUM || d->zero == LPGEMM_ZERO_PER_GROUP;
  const int one_scale = d->scale_type == 0 || (weights->group.count <= 1 && weights->super.count <= 1);
  const int whole_stages = weights->group.count <= 1 || weights->group.k % (LPG_DEQUANT_STAGE_BYTES / 2) == 0;
  lpg_expand_scaling s;
  s.on_rows = d->zero != LPGEMM_ZERO_MINIMUM && one_scale &&
              !(is_fp16 && (differs || (!exact && (m.top > MOST || m.low < LEAST))));
  s.top = is_fp16 ? MOST - 1 - m.top : 0; /* a scale may be almost twice the power of two of its exponent */
  s.in_table = !s.on_rows && (is_8_bits(type) || (exact && whole_stages && exceeds_fp16(problem) != NULL));
  s.halved = is_fp16 && (s.on_rows || s.in_table) && is_halved(d);
  s.finds = is_fp16 && !s.on_rows && !s.in_table && differs;
  return s;
}

static const char *refuses_8_bits(const lpg_problem *problem, lpgemm_dtype_t type) {
  const lpg_packed *packed = problem->weights;
  if (packed->desc.zero == LPGEMM_ZERO_MINIMUM) return "it takes no minima with activations of 8 bits";
  if (!is_exact(packed, type)) return "the weights less their zeros are not exact in the 8 bits of the activations";
  if (!lpgemm_i_expand_scaling(problem, type).on_rows && packed->group.k % 128 != 0) {
    return "with activations of 8 bits it takes groups of multiples of 128 columns only";
  }
  if (type == LPGEMM_I8 && packed->k_padded > INT32_MAX / (128 * 128))
    return "sums of so many columns may not be int32";
  return NULL;
}

const char *lpgemm_i_expand_refuses(const lpg_problem *problem, lpgemm_dtype_t type) {
  const lpg_packed *weights = problem->weights;
  if (weights->n_padded > INT32_MAX / 2 || weights->k_padded > INT32_MAX / 4 || problem->m > INT32_MAX / 2) {
    return "it takes no matrix as large as this";
  }
  if (is_8_bits(type)) return refuses_8_bits(problem, type);
  if (type != LPGEMM_F16) return NULL;
  const lpg_expand_scaling scaling = lpgemm_i_expand_scaling(problem, type);
  return scaling.on_rows || scaling.in_table ? NULL : exceeds_fp16(problem);
}

enum { LEAST_ROWS = 33 };

const char *lpgemm_i_expand_does_not_pay(const lpg_problem *problem) {
  return problem->m < LEAST_ROWS && !lpgemm_i_dequantisers_refuse(problem)
             ? "it expands the weights, which takes 33 rows to pay"
             : NULL;
}

lpgemm_dtype_t lpgemm_i_expand_image(const lpg_problem *problem, lpgemm_dtype_t type, int wgmma) {
  return type == LPGEMM_F16 && wgmma && lpgemm_i_expand_refuses(problem, type) ? LPGEMM_F32 : type;
}
