/* How gemm scales weights: which mode a problem takes, and what that mode cannot do. */
#include "gemm_mode.h"

#include <math.h>

#include "../operand/scaled.h"

/* ---- scales ---- */

/* The stored integer that stands for zero. */
static double center_of(const lpgemm_weight_desc_t *d) {
  const double zero = d->zero == LPGEMM_ZERO_CONSTANT ? (double)d->zero_constant : 0.0;
  return (zero - lpg_integer_offset(d->type)) / lpg_integer_step(d->type);
}

/* 1 if some code stands for exactly the zero, so that it is taken off the codes. */
static int takes_zero_off(const lpgemm_weight_desc_t *d) {
  const double center = center_of(d);
  return floor(center) == center && center >= 0.0 && center <= ldexp(1.0, lpg_bits(d->type));
}

/* Zeros that slots have room for: bytes. */
static int small_zeros(const lpgemm_weight_desc_t *d) {
  if (d->zero == LPGEMM_ZERO_PER_GROUP) return d->zero_type == LPGEMM_U8;
  return takes_zero_off(d) && center_of(d) < 256.0;
}

/* How far apart, as powers of two, the scaled weights of a row may be. */
static int reach_of(const lpg_packed *weights, uint32_t scale_span) {
  const lpg_values *v = &weights->values;
  return v->most > 0.0 ? lpg_power_above(v->most) - ilogb(v->least) + (int)scale_span : 0;
}

/* Powers of two from near the bound of a row's weights to normal numbers of X's type. */
static int room_of(lpgemm_dtype_t x_type) { return x_type == LPGEMM_BF16 ? 126 : 28; }

/* Whether weights with rests that the kernel makes keep the digits of X's type. Its bound of a row is up to four times
 * what the weights reach, for which fp16 must have room; bf16 needs no bound. */
static int has_room_for_rests(const lpg_packed *weights, lpgemm_dtype_t x_type, uint32_t scale_span) {
  return reach_of(weights, scale_span) <= room_of(x_type) - (x_type == LPGEMM_BF16 ? 0 : 2);
}

/* K-quants whose lower level is bytes, a k block a super-group: LEVELS_32 or LEVELS_16, or PREPARED. */
static lpg_gemm_scales levels_of(const lpg_packed *weights, lpgemm_dtype_t x_type, uint32_t scale_span) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  const int minima = d->zero == LPGEMM_ZERO_MINIMUM;
  const lpg_gemm_scales mode = minima ? LPG_GEMM_SCALES_LEVELS_32 : LPG_GEMM_SCALES_LEVELS_16;
  const int fits = d->super_scale_type == LPGEMM_F16 && weights->super.k == LPG_BLOCK_K &&
                   lpg_integer_step(d->type) == 1 && d->group_n == 0 && takes_zero_off(d) &&
                   (minima ? d->scale_type == LPGEMM_UINT(6) && d->zero_type == LPGEMM_UINT(6) &&
                                 d->super_zero_type == LPGEMM_F16 && weights->group.k == 32
                           : d->zero != LPGEMM_ZERO_PER_GROUP && d->scale_type == LPGEMM_I8 && weights->group.k == 16);
  return fits && lpg_gemm_scales_exist(mode, x_type == LPGEMM_BF16, LPG_GEMM_INTEGERS, weights->bits) &&
                 has_room_for_rests(weights, x_type, scale_span)
             ? mode
             : LPG_GEMM_SCALES_PREPARED;
}

/* RESTS, or PREPARED. With fp16 scales no weight leaves the range of bf16. */
static lpg_gemm_scales rests_of(const lpg_packed *weights, lpgemm_dtype_t x_type, uint32_t scale_span) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  const int has_zeros = d->zero == LPGEMM_ZERO_PER_GROUP || d->zero == LPGEMM_ZERO_MINIMUM;
  const int is_whole = weights->group.count <= 1 || (weights->group.k >= 32 && LPG_BLOCK_K % weights->group.k == 0);
  const int fits = d->scale_type == LPGEMM_F16 && d->super_scale_type == 0 && d->group_n == 0 && is_whole &&
                   (!has_zeros || (d->zero_type == LPGEMM_F16 && lpg_kind(d->type) != LPGEMM_KIND_BIPOLAR));
  const int bf16 = x_type == LPGEMM_BF16, has_room = bf16 || has_room_for_rests(weights, x_type, scale_span);
  return fits && has_room && lpg_gemm_scales_exist(LPG_GEMM_SCALES_RESTS, bf16, LPG_GEMM_INTEGERS, weights->bits)
             ? LPG_GEMM_SCALES_RESTS
             : LPG_GEMM_SCALES_PREPARED;
}

static lpg_gemm_scales mode_of(const lpg_packed *weights, lpgemm_dtype_t x_type, int on_rows) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  const lpg_gemm_weights kind = lpg_gemm_weights_of(d->type, x_type);
  const int is_integer = kind == LPG_GEMM_INTEGERS, bf16 = x_type == LPGEMM_BF16, bits = weights->bits;
  const int zeros = d->zero == LPGEMM_ZERO_PER_GROUP, differs = weights->group.count > 1 && (d->scale_type || zeros);
  const int large = !differs || weights->group.k >= 128;
  lpg_gemm_scales mode = LPG_GEMM_SCALES_PREPARED;
  if (d->group_n) return mode;                                     /* whose kernel finds the rows that share them, */
  if (differs && LPG_BLOCK_K % weights->group.k != 0) return mode; /* and the groups of granules */
  if ((is_integer && !zeros && !takes_zero_off(d)) || (d->super_scale_type && !on_rows)) return mode;
  if (d->zero == LPGEMM_ZERO_MINIMUM || (zeros && lpg_kind(d->type) != LPGEMM_KIND_UINT)) return mode;
  if (on_rows || d->scale_type == x_type) {
    mode = large                    ? zeros ? LPG_GEMM_SCALES_ZEROS : LPG_GEMM_SCALES_GROUP
           : weights->group.k >= 32 ? LPG_GEMM_SCALES_SMALL
                                    : LPG_GEMM_SCALES_PREPARED;
  } else if (d->scale_type == LPGEMM_E4M3) {
    mode = LPG_GEMM_SCALES_E4M3;
  } else if (d->scale_type == LPGEMM_E8M0 && (large || weights->group.k >= 32)) {
    mode = LPG_GEMM_SCALES_E8M0;
  } else if (d->scale_type == LPGEMM_F16 && (large || weights->group.k >= 32)) {
    mode = large ? LPG_GEMM_SCALES_SPLIT : LPG_GEMM_SCALES_SPLIT_SMALL;
  }
  if (lpg_gemm_reads_zeros(mode, is_integer) && !small_zeros(d)) return LPG_GEMM_SCALES_PREPARED;
  const int rows = mode == LPG_GEMM_SCALES_GROUP && on_rows;
  if (rows && lpg_gemm_scales_exist(LPG_GEMM_SCALES_ROW, bf16, kind, bits)) return LPG_GEMM_SCALES_ROW;
  return lpg_gemm_scales_exist(mode, bf16, kind, bits) ? mode : LPG_GEMM_SCALES_PREPARED;
}

/* 1 if nothing is left to add to a code less its zero, times its scale: of prepared scales. */
static int has_no_rests(const lpg_packed *weights) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  if (!lpg_is_integer_kind(d->type)) return 1;
  return weights->bits > 1 && d->zero != LPGEMM_ZERO_PER_GROUP && d->zero != LPGEMM_ZERO_MINIMUM && takes_zero_off(d);
}

/* Scales of a row between 2^10 and 2^16: weights that dequant.cuh scales at once are rounded once then, as the
 * center's product is exact. */
enum { NEAR_EXPONENT = 15, NEAR_SPAN = NEAR_EXPONENT - 10 };

static int is_near(const lpg_packed *weights, lpgemm_dtype_t x_type, uint32_t scale_span) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  const int is_integer = lpg_is_integer_kind(d->type);
  if (!is_integer ||
      !lpg_gemm_scales_exist(LPG_GEMM_SCALES_NEAR, x_type == LPGEMM_BF16, LPG_GEMM_INTEGERS, weights->bits))
    return 0;
  const int center = (int)center_of(d);
  return (center & (center - 1)) == 0 && scale_span <= NEAR_SPAN;
}

/* Of e4m3's scales that are large because weights stay in their fields: the power of two for scales of 2^-9, the least,
 * is still a bf16 number. Scales of e8m0 take all of the fields' power. */
enum { FIELDS_EXPONENT = 118 };

lpg_gemm_scaling lpgemm_i_gemm_scaling(const lpg_packed *weights, lpgemm_dtype_t activations, uint32_t scale_span) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  const lpgemm_dtype_t x_type = lpg_half_type(activations);
  lpg_gemm_scaling s;
  s.on_rows = d->scale_type == 0 || (weights->group.count <= 1 && weights->super.count <= 1);
  s.exponent = lpgemm_i_scale_exponent(d, x_type);
  s.field_power = 0;
  s.mode = mode_of(weights, x_type, s.on_rows);
  if (s.mode == LPG_GEMM_SCALES_GROUP && is_near(weights, x_type, scale_span)) {
    s.mode = LPG_GEMM_SCALES_NEAR;
    s.exponent = NEAR_EXPONENT;
  }
  if (s.mode == LPG_GEMM_SCALES_PREPARED && lpg_is_integer_kind(d->type)) {
    s.mode = d->super_scale_type ? levels_of(weights, x_type, scale_span) : rests_of(weights, x_type, scale_span);
  }
  if (lpg_gemm_keeps_fields(s.mode, x_type == LPGEMM_BF16, lpg_gemm_weights_of(d->type, x_type))) {
    s.field_power = lpg_gemm_field_power(lpg_exponent_bits(d->type));
    s.exponent = s.mode == LPG_GEMM_SCALES_E8M0 ? s.field_power : FIELDS_EXPONENT;
  }
  if (s.mode == LPG_GEMM_SCALES_PREPARED && x_type == LPGEMM_BF16 && has_no_rests(weights)) {
    s.mode = LPG_GEMM_SCALES_PREPARED_SPLIT;
  }
  if (lpg_gemm_is_prepared(s.mode) || lpg_gemm_has_rests(s.mode)) s.on_rows = 0;
  return s;
}

/* ---- refusals ---- */

/* Digits of a number, and of a product of two. */
static int digits_of(lpgemm_dtype_t type, lpgemm_dtype_t super_type) {
  int digits = 0;
  const lpgemm_dtype_t types[] = {type, super_type};
  for (int i = 0; i < 2; i++) {
    digits += types[i] == 0                   ? 0
              : types[i] == LPGEMM_F32        ? 24
              : types[i] == LPGEMM_F16        ? 11
              : types[i] == LPGEMM_BF16       ? 8
              : lpg_is_integer_kind(types[i]) ? lpg_bits(types[i])
                                              : 4; /* e4m3; e8m0 has fewer */
  }
  return digits;
}

int lpgemm_i_gemm_lost_digits(const lpg_packed *weights) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  if (d->zero != LPGEMM_ZERO_PER_GROUP || !lpg_is_integer_kind(d->zero_type)) return 0;
  const int digits = digits_of(d->scale_type, d->super_scale_type), held = digits < 24 ? digits : 24;
  return held + weights->bits > 24 ? held + weights->bits - 24 : 0;
}

/* Lines: a weight is rounded once in fp32, and once more to X's type, if its rest is exact or, as what a fixed zero
 * leaves, no larger than itself. */
static const char *refuses_prepared(const lpg_packed *packed, lpgemm_dtype_t x_type, int is_split,
                                    uint32_t scale_span) {
  const lpgemm_weight_desc_t *d = &packed->desc;
  const int scale_digits = digits_of(d->scale_type, d->super_scale_type);
  if (d->zero == LPGEMM_ZERO_PER_GROUP || d->zero == LPGEMM_ZERO_MINIMUM) {
    if (lpg_kind(d->type) == LPGEMM_KIND_BIPOLAR) return "it takes no zeros of groups of bipolar weights";
    const int digits = d->zero == LPGEMM_ZERO_MINIMUM      ? digits_of(d->zero_type, d->super_zero_type)
                       : lpg_is_integer_kind(d->zero_type) ? 0
                                                           : digits_of(d->zero_type, 0) + scale_digits;
    if (digits > 24 || (d->zero == LPGEMM_ZERO_MINIMUM && scale_digits > 24)) {
      return "its scales and zeros have too many digits for fp32";
    }
    if (lpgemm_i_gemm_lost_digits(packed) > 0 && d->k < LPG_BLOCK_K)
      return "so short rows need all digits of their scales";
  }
  if (packed->row_tiles > 0 && lpg_gemm_chunk_tiles(packed, LPG_GEMM_SCALES_PREPARED) == 0)
    return "its scales and zeros take too much workspace";
  int room = room_of(x_type);
  if (d->super_scale_type &&
      lpg_gemm_scale_groups(packed) > LPG_GEMM_PREPARED_KEPT) { /* it takes the largest codes for granted */
    room -= d->scale_type == LPGEMM_E4M3 ? 17 : lpg_bits(d->scale_type);
  }
  if (is_split && (d->scale_type == LPGEMM_F32 || d->super_scale_type)) {
    room -= 16; /* the low part of a scale is a normal number too */
  }
  if (reach_of(packed, scale_span) > room) {
    return "the scales of a row are too far apart to be multiplied in the type of X";
  }
  return NULL;
}

const char *lpgemm_i_gemm_scales_refuse(const lpg_problem *problem) {
  const lpg_packed *weights = problem->weights;
  const lpgemm_dtype_t x_type = lpg_half_type(problem->x_type);
  const lpg_gemm_scaling scaling = lpgemm_i_gemm_scaling(weights, x_type, problem->scale_span);
  if (!lpg_gemm_scales_exist(scaling.mode, x_type == LPGEMM_BF16, lpg_gemm_weights_of(weights->desc.type, x_type),
                             weights->bits)) {
    return "the weights' values are too far apart to be scaled in the type of X";
  }
  if (lpg_gemm_is_prepared(scaling.mode)) {
    return refuses_prepared(weights, x_type, scaling.mode == LPG_GEMM_SCALES_PREPARED_SPLIT, problem->scale_span);
  }
  if (lpg_gemm_has_rests(scaling.mode)) return NULL; /* levels_of() and rests_of() know */
  if (!scaling.on_rows &&
      (int)problem->scale_span > lpgemm_i_scale_span_limit(&weights->desc, x_type, weights->desc.scale_type != x_type,
                                                           scaling.exponent, scaling.field_power)) {
    return "the scales of a row are too far apart to be multiplied in the type of X";
  }
  return NULL;
}
