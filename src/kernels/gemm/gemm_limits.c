#include "gemm_limits.h"

#include <math.h>

#include "../operand/limits.h"
#include "../operand/x_copy.h"

/* ---- what is multiplied by a scale ---- */

/* Powers of two that bound it, as the kernel has it: magnitudes of at most 2^top, and 0 or at least 2^low. */
typedef struct magnitudes {
  int top, low;
} magnitudes;

/* The smallest t with x <= 2^t. */
static int power_above(double x) {
  int e = ilogb(x);
  return ldexp(1.0, e) < x ? e + 1 : e;
}

/* Integers less their zeros, which are integers. A group's zero is one of the codes or one above. */
static magnitudes integer_magnitudes(const lpgemm_weight_desc_t *d) {
  const int bits = lpg_bits(d->type);
  const double zero = d->zero == LPGEMM_ZERO_CONSTANT ? (double)d->zero_constant : 0.0;
  const double least = lpg_integer_offset(d->type), most = least + lpg_integer_step(d->type) * (ldexp(1.0, bits) - 1.0);
  const double reach = fmax(fabs(least - zero), fabs(most - zero));
  magnitudes m = {bits, 0};
  if (reach > 0.0 && power_above(reach) > m.top) m.top = power_above(reach);
  return m;
}

/* fp16 leaves floats but e4m3 where they lie in its own fields, off by the ratio of the biases, and brings codebooks'
 * largest value near 2^15; with bf16 floats are themselves, and the largest value is below 1. */
static magnitudes real_magnitudes(const lpgemm_weight_desc_t *d, lpgemm_dtype_t x_type) {
  const int bf16 = x_type == LPGEMM_BF16;
  magnitudes m = {bf16 ? 0 : 15, bf16 ? 0 : 14};
  if (lpg_kind(d->type) == LPGEMM_KIND_FLOAT) {
    const int e = lpg_exponent_bits(d->type), bias = (1 << (e - 1)) - 1;
    const int off = bf16 || d->type == LPGEMM_E4M3 ? 0 : 15 - bias;
    m.top = (1 << e) - bias - off;
    m.low = 1 - bias - off - lpg_low_field(d->type);
    return m;
  }
  double most = 0.0, least = INFINITY;
  for (int i = 0; i < 1 << lpg_bits(d->type); i++) {
    const double magnitude = fabs((double)d->codebook[i]);
    if (magnitude > most) most = magnitude;
    if (magnitude > 0.0 && magnitude < least) least = magnitude;
  }
  if (most > 0.0) m.low = m.top - 1 - ilogb(most) + ilogb(least);
  return m;
}

static magnitudes magnitudes_of(const lpgemm_weight_desc_t *d, lpgemm_dtype_t x_type) {
  return lpg_is_integer_kind(d->type) ? integer_magnitudes(d) : real_magnitudes(d, x_type);
}

/* ---- scales ---- */

/* fp16: products with the largest scale stay below 2^15. */
static int scale_exponent(const lpgemm_weight_desc_t *d, lpgemm_dtype_t x_type) {
  const int top = magnitudes_of(d, x_type).top;
  return x_type == LPGEMM_BF16 ? 0 : top < 0 ? 14 : 14 - top;
}

/* The largest difference of the exponents of a row's scales with which no scaled weight falls below the normal numbers
 * of X's type, and with which, where a scale is the sum of two numbers, the products with the second one are known to
 * an eighth of that rounding. */
static int span_limit(const lpgemm_weight_desc_t *d, lpgemm_dtype_t x_type) {
  const int exponent = scale_exponent(d, x_type), product = magnitudes_of(d, x_type).low + exponent;
  const int least = x_type == LPGEMM_BF16 ? -126 : -14, digits = x_type == LPGEMM_BF16 ? 8 : 11;
  if (d->scale_type == x_type) return product - least;
  const int products = product - least - 4, rests = exponent - least - digits + 8;
  return products < rests ? products : rests;
}

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

static lpg_gemm_scales form_of(const lpg_packed *weights, lpgemm_dtype_t x_type, int on_rows) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  const lpg_gemm_weights kind = lpg_gemm_weights_of(d->type);
  const int is_integer = kind == LPG_GEMM_INTEGERS, bf16 = x_type == LPGEMM_BF16, bits = weights->bits;
  const int zeros = d->zero == LPGEMM_ZERO_PER_GROUP, large = weights->group.count <= 1 || weights->group.k >= 128;
  lpg_gemm_scales form = LPG_GEMM_SCALES_PREPARED;
  if ((is_integer && !zeros && !takes_zero_off(d)) || (d->super_scale_type && !on_rows)) return form;
  if (d->zero == LPGEMM_ZERO_MINIMUM || (zeros && lpg_kind(d->type) != LPGEMM_KIND_UINT)) return form;
  if (on_rows || d->scale_type == x_type) {
    form = large                    ? zeros ? LPG_GEMM_SCALES_ZEROS : LPG_GEMM_SCALES_GROUP
           : weights->group.k >= 32 ? LPG_GEMM_SCALES_SMALL
                                    : LPG_GEMM_SCALES_PREPARED;
  } else if (d->scale_type == LPGEMM_E4M3) {
    form = LPG_GEMM_SCALES_E4M3;
  } else if (d->scale_type == LPGEMM_E8M0 && (large || weights->group.k >= 32)) {
    form = LPG_GEMM_SCALES_E8M0;
  } else if (d->scale_type == LPGEMM_F16 && large) {
    form = LPG_GEMM_SCALES_SPLIT;
  }
  if (lpg_gemm_reads_zeros(form, is_integer) && !small_zeros(d)) return LPG_GEMM_SCALES_PREPARED;
  const int rows = form == LPG_GEMM_SCALES_GROUP && on_rows;
  if (rows && lpg_gemm_scales_exist(LPG_GEMM_SCALES_ROW, bf16, kind, bits)) return LPG_GEMM_SCALES_ROW;
  return lpg_gemm_scales_exist(form, bf16, kind, bits) ? form : LPG_GEMM_SCALES_PREPARED;
}

/* Scales of a row between 2^10 and 2^16: weights that dequantiser.cuh scales at once are rounded once then, as the
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

lpg_gemm_scaling lpgemm_i_gemm_scaling(const lpg_packed *weights, lpgemm_dtype_t activations, uint32_t scale_span) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  const lpgemm_dtype_t x_type = lpg_half_type(activations);
  lpg_gemm_scaling s;
  s.on_rows = d->scale_type == 0 || (weights->group.count <= 1 && weights->super.count <= 1);
  s.exponent = scale_exponent(d, x_type);
  s.form = form_of(weights, x_type, s.on_rows);
  if (s.form == LPG_GEMM_SCALES_GROUP && is_near(weights, x_type, scale_span)) {
    s.form = LPG_GEMM_SCALES_NEAR;
    s.exponent = NEAR_EXPONENT;
  }
  if (s.form == LPG_GEMM_SCALES_PREPARED) s.on_rows = 0;
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
static const char *refuses_lines(const lpg_packed *packed, lpgemm_dtype_t x_type, uint32_t scale_span) {
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
  if (lpg_gemm_lines_bytes(packed) > LPG_GEMM_MOST_LINE_BYTES) return "its scales and zeros take too much workspace";
  const lpg_values *v = &packed->values;
  int room = x_type == LPGEMM_BF16 ? 126 : 28; /* from near the bound of a row's weights to normal numbers */
  if (d->super_scale_type &&
      lpg_gemm_scale_groups(packed) > LPG_GEMM_LINES_KEPT) { /* it takes the largest codes for granted */
    room -= d->scale_type == LPGEMM_E4M3 ? 17 : lpg_bits(d->scale_type);
  }
  if (v->most > 0.0 && power_above(v->most) - ilogb(v->least) + (int)scale_span > room) {
    return "the scales of a row are too far apart to be multiplied in the type of X";
  }
  return NULL;
}

/* ---- plans ---- */

#define TILE(tile_m, row_tiles, teams, warps) {tile_m, row_tiles, teams, warps},
static const lpg_gemm_tile tiles[] = {LPG_GEMM_TILES(TILE)};

/* How much longer work tiles take than with 4-bit integers, for which the plan's constants stand: of 128 rows of X at
 * 8192 x 8192 with 2048 rows, and of fewer at 57344 x 8192, 8192 x 28672 and 8192 x 8192 with 32 and 64 (H200,
 * 2026-11-22; 2 bits and e4m3 2026-11-23). */
static double slower_of_128(const lpgemm_weight_desc_t *d, int64_t m) {
  const int bits = lpg_bits(d->type), is_integer = lpg_is_integer_kind(d->type), few = m < 128;
  if (lpg_kind(d->type) == LPGEMM_KIND_CODEBOOK) return few ? 1.1 : 1.15;
  switch (bits) {
    case 1: return few ? 0.87 : 0.92;
    case 2: return few ? 1.0 : 0.98;
    case 3:
    case 4: return 1.0;
    case 5: return 1.1;
    case 6: return few ? 1.03 : 1.07;
    case 7: return few ? 1.18 : 1.26;
    default: return is_integer || d->type == LPGEMM_E4M3 ? 1.08 : few ? 1.2 : 1.24;
  }
}

/* With 256 rows of X weights are dequantised half as often, and that is hidden (H200, 2026-11-23). */
static double slower_by_dequantiser(const lpgemm_weight_desc_t *d, int64_t m, int tile_m) {
  const double slower = slower_of_128(d, m);
  return tile_m == LPG_GEMM_TILE_M ? fmin(slower, 1.0 + 0.3 * (slower - 1.0)) : slower;
}

static int has_tile(const lpg_packed *weights, lpg_gemm_scales form, const lpg_gemm_tile *tile, int multicast) {
  return lpg_gemm_has(form, weights->bits, tile->tile_m, tile->row_tiles, tile->teams, tile->teams * tile->warps) &&
         lpg_gemm_has_multicast(tile->tile_m, tile->row_tiles, multicast);
}

int lpgemm_i_gemm_choose(const lpg_packed *weights, int64_t m, lpg_gemm_scales form, const lpg_device *device,
                         int parts, int x_has_map, lpg_gemm_plan *plan, int *tile, double *cost) {
  int found = 0;
  *cost = HUGE_VAL;
  for (int j = 0; j < LPG_GEMM_MOST_MULTICAST * (int)(sizeof tiles / sizeof tiles[0]); j++) {
    /* Blocks that share X come first, and are taken if others would cost as much: they read less. */
    const int i = j / LPG_GEMM_MOST_MULTICAST, multicast = LPG_GEMM_MOST_MULTICAST - j % LPG_GEMM_MOST_MULTICAST;
    const int tile_m = tiles[i].tile_m;
    if (!has_tile(weights, form, &tiles[i], multicast) || (multicast > 1 && !x_has_map)) continue;
    if (tile_m < 32 && parts <= 0) continue; /* for so few rows there are other kernels */
    if (tile_m == LPG_GEMM_TILE_M && m <= LPG_GEMM_TILE_M / 2)
      continue; /* all rows of X are multiplied, there or not */
    const lpg_gemm_kind kind = lpg_gemm_kind_of(weights, tiles[i], form, multicast);
    const double slower = slower_by_dequantiser(&weights->desc, m, tile_m);
    if (!lpg_gemm_make_plan(&kind, weights, m, device, parts, slower, plan, cost)) continue;
    found = 1;
    *tile = i;
  }
  return found;
}

/* Whether there is a plan at all: with a work tile of few rows of X if with any. */
static int fits(const lpg_packed *weights, lpg_gemm_scales form, const lpg_device *device) {
  for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
    const int tile_m = tiles[i].tile_m;
    if (tile_m < 32 || !has_tile(weights, form, &tiles[i], 1)) continue;
    const lpg_gemm_kind kind = lpg_gemm_kind_of(weights, tiles[i], form, 1);
    lpg_gemm_plan plan;
    double ns = HUGE_VAL;
    if (lpg_gemm_make_plan(&kind, weights, tile_m, device, 0, 1.0, &plan, &ns)) return 1;
  }
  return 0;
}

const char *lpgemm_i_gemm_refuses(const lpg_problem *problem, const lpg_device *device) {
  const lpg_packed *weights = problem->weights;
  const lpgemm_weight_desc_t *d = &weights->desc;
  const lpgemm_dtype_t x_type = lpg_half_type(problem->x_type);
  const lpg_gemm_scaling scaling = lpgemm_i_gemm_scaling(weights, x_type, problem->scale_span);
  const char *reason = lpgemm_i_dequantisers_refuse(problem);
  if (reason) return reason;
  if (scaling.form == LPG_GEMM_SCALES_PREPARED) {
    reason = refuses_lines(weights, x_type, problem->scale_span);
    if (reason) return reason;
  } else if (!scaling.on_rows && (int)problem->scale_span > span_limit(d, x_type)) {
    return "the scales of a row are too far apart to be multiplied in the type of X";
  }
  if (problem->m > INT32_MAX / 2) return "it takes no matrix as large as this";
  return fits(weights, scaling.form, device) ? NULL : "the GPU has too little shared memory for it";
}

/* Microseconds that making lines takes: Q4_K, Q2_K, Q6_K and bipolar weights of 4096 x 4096 to 28672 x 8192 (H200,
 * 2026-11-23). */
static double lines_us(const lpg_packed *weights) {
  const double twice = lpg_gemm_scale_groups(weights) > LPG_GEMM_LINES_KEPT ? 1.85 : 1.0;
  return 3.0 + (double)lpg_gemm_lines_bytes(weights) / 2.5e6 * twice;
}

double lpgemm_i_gemm_estimate(const lpg_problem *problem, const lpg_device *device) {
  const lpg_gemm_scales form = lpgemm_i_gemm_scaling(problem->weights, problem->x_type, problem->scale_span).form;
  const double lines = form == LPG_GEMM_SCALES_PREPARED ? lines_us(problem->weights) : 0.0;
  lpg_gemm_plan plan;
  int tile;
  double ns;
  const int found = lpgemm_i_gemm_choose(problem->weights, problem->m, form, device, 0, 1, &plan, &tile, &ns);
  if (!found) return HUGE_VAL;
  /* 1.5 us: the plan's constants compare plans, and leave out what all of them take on small matrices. */
  return 1.5 + lpg_x_copy_us(problem, 2) + lines + ns / 1000.0;
}

size_t lpgemm_i_gemm_workspace(const lpg_problem *problem, const lpg_device *device) {
  (void)device;
  const lpg_gemm_scaling scaling = lpgemm_i_gemm_scaling(problem->weights, problem->x_type, problem->scale_span);
  const int lines = scaling.form == LPG_GEMM_SCALES_PREPARED;
  return lpg_x_copy_bytes(problem, 2) + (lines ? (size_t)lpg_gemm_lines_bytes(problem->weights) : 0);
}

/* The number that is the least wrong from one row to many, by how many times as long as the best plan it takes. */
int lpgemm_i_gemm_invariant_parts(const lpg_packed *weights, lpg_gemm_scales form, const lpg_device *device) {
  enum { CHOICES = LPG_CLUSTER_SIZES + 1 }; /* powers of two: CTAs of a cluster by one or two teams */
  static const int64_t rows[] = {16, 64, 256, 2048};
  double worst[CHOICES] = {0.0};
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
    double cost[CHOICES], best = HUGE_VAL;
    for (int i = 0; i < CHOICES; i++) {
      lpg_gemm_plan plan;
      int tile;
      lpgemm_i_gemm_choose(weights, rows[r], form, device, 1 << i, 1, &plan, &tile, &cost[i]);
      if (cost[i] < best) best = cost[i];
    }
    for (int i = 0; i < CHOICES; i++) worst[i] = fmax(worst[i], cost[i] / best);
  }
  int least = 0;
  for (int i = 1; i < CHOICES; i++) {
    if (worst[i] < worst[least]) least = i;
  }
  return 1 << least;
}
