#include "gemm8_limits.h"

#include <math.h>

#include "../operand/x_copy.h"

/* The largest magnitude of a weight, whatever the zero of its row is: from 0 to 2^bits where rows have one each. */
static int64_t largest_weight(const lpgemm_weight_desc_t *d) {
  const int64_t low = lpg_integer_offset(d->type), high = low + (1 << lpg_bits(d->type)) - 1;
  const int64_t constant = d->zero == LPGEMM_ZERO_CONSTANT ? (int64_t)d->zero_constant : 0;
  const int64_t most = d->zero == LPGEMM_ZERO_PER_GROUP ? (int64_t)1 << lpg_bits(d->type) : constant;
  const int64_t above = high - constant, below = most - low;
  return above > below ? above : below;
}

/* NULL, or why scales and zeros that come with the stages are not for them. */
static const char *refuses_groups(const lpg_problem *problem, lpg_gemm8_mode form) {
  const lpg_packed *packed = problem->weights;
  const lpgemm_weight_desc_t *d = &packed->desc;
  if (d->scale_type != LPGEMM_F16 && d->scale_type != LPGEMM_BF16)
    return "it takes scales of groups as fp16 and bf16 only";
  if (packed->group.count > 1 &&
      (packed->group.k % LPG_GEMM8_X_K != 0 || (packed->group.k & (packed->group.k - 1)) != 0)) {
    return "it takes groups of 128, 256, 512 ... columns and whole rows only";
  }
  if (form.by_e4m3 || form.become == LPG_GEMM8_CENTERED) return NULL;
  const int bytes = d->zero == LPGEMM_ZERO_PER_GROUP
                        ? d->zero_type == LPGEMM_U8 && lpg_kind(d->type) == LPGEMM_KIND_UINT
                        : lpg_gemm8_zero(d) >= 0 && lpg_gemm8_zero(d) <= 128;
  return bytes && packed->bits < 8 ? NULL : "the weights of groups less their zeros are no signed bytes";
}

/* NULL, or why the weights less their zeros are not for e4m3. */
static const char *refuses_e4m3(const lpg_packed *weights) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  static const char *const zeros = "with e4m3 it takes zeros of unsigned weights from 0 to 16 only";
  if (lpg_kind(d->type) == LPGEMM_KIND_FLOAT) {
    if (d->zero != LPGEMM_ZERO_NONE) return "it takes zeros of integer weights only";
    const int fits = lpg_exponent_bits(d->type) <= 4 && lpg_low_field(d->type) <= 3;
    return fits && (weights->bits < 8 || d->type == LPGEMM_E4M3) ? NULL : "the weights' values are not exact in e4m3";
  }
  if (weights->bits > 4) return "the weights' values are not exact in e4m3";
  if (d->zero == LPGEMM_ZERO_PER_GROUP) {
    return d->zero_type == LPGEMM_U8 && lpg_kind(d->type) == LPGEMM_KIND_UINT ? NULL : zeros;
  }
  return lpg_gemm8_zero(d) >= 0 && lpg_gemm8_zero(d) <= 16 ? NULL : zeros;
}

const char *lpgemm_i_gemm8_refuses(const lpg_problem *problem, const lpg_device *device) {
  const lpg_packed *packed = problem->weights;
  const lpgemm_weight_desc_t *d = &packed->desc;
  if (d->k == 0 || d->n == 0 || problem->m == 0) return "there is nothing to multiply";
  if (d->zero == LPGEMM_ZERO_CONSTANT &&
      !(fabsf(d->zero_constant) <= 65536.0f && floorf(d->zero_constant) == d->zero_constant)) {
    return "the weights' zeros are no integers";
  }
  const lpg_gemm8_mode form = lpg_gemm8_mode_of(packed, problem->x_type);
  if (!form.by_e4m3 && !lpg_x_is_int8(problem->x_type)) return "the activations' codes are not the numbers as int8";
  if (lpg_kind(d->type) == LPGEMM_KIND_BIPOLAR) return "it takes no bipolar weights";
  if (d->zero == LPGEMM_ZERO_MINIMUM || (d->zero == LPGEMM_ZERO_PER_GROUP && lpg_is_real(d->zero_type))) {
    return "the weights' zeros are no integers";
  }
  if (lpg_gemm8_promotes(form) && problem->batch_invariant) return "its sums may depend on the number of rows";
  const char *reason = form.by_e4m3 ? refuses_e4m3(packed) : NULL;
  if (!reason && form.grouped) reason = refuses_groups(problem, form);
  if (reason) return reason;
  if (packed->n_padded > INT32_MAX / 2 || packed->k_padded > INT32_MAX / 4 || problem->m > INT32_MAX / 2) {
    return "it takes no matrix as large as this";
  }
  if (!lpg_gemm8_promotes(form) && d->k > INT32_MAX / (128 * largest_weight(d)))
    return "sums of so many columns may not be int32";
  return lpg_gemm8_fits(packed, problem->x_type, problem->m, device) ? NULL : "it does not fit shared memory";
}

size_t lpgemm_i_gemm8_workspace(const lpg_problem *problem, const lpg_device *device) {
  (void)device;
  return (size_t)lpg_gemm8_workspace_of(problem->weights, problem->m).bytes;
}

double lpgemm_i_gemm8_estimate(const lpg_problem *problem, const lpg_device *device) {
  lpg_gemm8_plan plan;
  int tile;
  double ns = 0.0;
  if (!lpg_gemm8_choose(problem->weights, problem->x_type, problem->m, device, &plan, &tile, &ns)) return HUGE_VAL;
  const int promotes = lpg_gemm8_promotes(lpg_gemm8_mode_of(problem->weights, problem->x_type));
  const double units = device->sms > 0 ? device->sms : 1.0;
  const double x = (double)problem->m * (double)problem->weights->desc.k / (units * 12000.0);
  const double few = problem->m <= 8 ? 1.12 : 1.0; /* there `decode` takes up to so much less than it says */
  const double slow = 1.0 + 0.28 * (ns < 3e5 ? ns / 3e5 : 1.0); /* of what is long: clocks fall */
  return (4.0 + x + ns / 1000.0 * (promotes ? slow : 1.0)) * few;
}
