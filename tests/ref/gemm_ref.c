#include "gemm_ref.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- number formats ---- */

static int field_a(lpgemm_dtype_t type) { return (int)(type >> 8 & 255); }
static int field_b(lpgemm_dtype_t type) { return (int)(type & 255); }

/* (-1)^s * (e == 0 ? 2^(1-bias) * m / 2^Y : 2^(e-bias) * (1 + m / 2^Y)) */
static double float_value(uint32_t code, int exponent_bits, int mantissa_bits, int has_infinity) {
  int s = (int)(code >> (exponent_bits + mantissa_bits) & 1);
  int e = (int)(code >> mantissa_bits) & ((1 << exponent_bits) - 1);
  int m = (int)(code & ((1u << mantissa_bits) - 1));
  int bias = (1 << (exponent_bits - 1)) - 1;
  double fraction = ldexp(m, -mantissa_bits), value;
  if (has_infinity && e == (1 << exponent_bits) - 1) {
    value = m ? (double)NAN : (double)INFINITY;
  } else {
    value = e == 0 ? ldexp(fraction, 1 - bias) : ldexp(1 + fraction, e - bias);
  }
  return s ? -value : value;
}

double ref_value(lpgemm_dtype_t type, uint32_t code, const float *codebook) {
  int bits = field_b(type);
  int64_t sum = 0;
  switch (LPGEMM_DTYPE_KIND(type)) {
    case LPGEMM_KIND_UINT: return code;
    case LPGEMM_KIND_INT:
      for (int i = 0; i < bits; i++) sum += (int64_t)(code >> i & 1) << i;
      return (double)(code >> (bits - 1) & 1 ? sum - ((int64_t)1 << bits) : sum);
    case LPGEMM_KIND_BIPOLAR:
      for (int i = 0; i < bits; i++) sum += (2 * (int64_t)(code >> i & 1) - 1) * ((int64_t)1 << i);
      return (double)sum;
    case LPGEMM_KIND_CODEBOOK: return (double)codebook[code];
    case LPGEMM_KIND_FLOAT:
      if (type == LPGEMM_E4M3 && (code & 127) == 127) return (double)NAN;
      return float_value(code, field_a(type), bits, type == LPGEMM_E5M2);
    case LPGEMM_KIND_SCALE: return code == 255 ? (double)NAN : ldexp(1, (int)code - 127);
    default: return float_value(code, field_a(type), bits, 1);
  }
}

int64_t ref_bytes(lpgemm_dtype_t type) {
  if (type == LPGEMM_F32 || type == LPGEMM_I32) return 4;
  return type == LPGEMM_F16 || type == LPGEMM_BF16 || type == LPGEMM_U16 ? 2 : 1;
}

static uint32_t load_bits(int64_t bytes, const void *array, int64_t i) {
  uint32_t u32;
  uint16_t u16;
  switch (bytes) {
    case 4: memcpy(&u32, (const char *)array + 4 * i, 4); return u32;
    case 2: memcpy(&u16, (const char *)array + 2 * i, 2); return u16;
    default: return ((const uint8_t *)array)[i];
  }
}

static void store_bits(int64_t bytes, void *array, int64_t i, uint32_t code) {
  uint16_t u16 = (uint16_t)code;
  switch (bytes) {
    case 4: memcpy((char *)array + 4 * i, &code, 4); break;
    case 2: memcpy((char *)array + 2 * i, &u16, 2); break;
    default: ((uint8_t *)array)[i] = (uint8_t)code; break;
  }
}

double ref_load(lpgemm_dtype_t type, const void *array, int64_t i) {
  return ref_value(type, load_bits(ref_bytes(type), array, i), NULL);
}

double ref_epsilon(lpgemm_dtype_t type) { return ldexp(1, -field_b(type) - 1); }

double ref_smallest(lpgemm_dtype_t type) { return ldexp(1, 2 - (1 << (field_a(type) - 1)) - field_b(type)); }

double ref_overflow(lpgemm_dtype_t type) {
  int bias = (1 << (field_a(type) - 1)) - 1;
  return ldexp(2 - ref_epsilon(type), bias);
}

double ref_round(lpgemm_dtype_t type, double x) {
  if (!isfinite(x) || x == 0) return x;
  if (fabs(x) >= ref_overflow(type)) return copysign((double)INFINITY, x);
  int bias = (1 << (field_a(type) - 1)) - 1, e;
  frexp(x, &e); /* |x| is in [2^(e-1), 2^e) */
  int step = (e - 1 < 1 - bias ? 1 - bias : e - 1) - field_b(type);
  return ldexp(nearbyint(ldexp(x, -step)), step);
}

static uint32_t real_bits(lpgemm_dtype_t type, double x) {
  int bits = field_b(type), bias = (1 << (field_a(type) - 1)) - 1, e;
  uint32_t sign = (uint32_t)(signbit(x) != 0) << (field_a(type) + bits);
  uint32_t top = ((1u << field_a(type)) - 1) << bits;
  double r = fabs(ref_round(type, x));
  if (isnan(r)) return sign | top | 1u << (bits - 1);
  if (isinf(r)) return sign | top;
  frexp(r, &e);
  if (r == 0 || e - 1 < 1 - bias) return sign | (uint32_t)ldexp(r, bias - 1 + bits);
  return sign | ((uint32_t)(e - 1 + bias) << bits) | ((uint32_t)ldexp(r, bits + 1 - e) & ((1u << bits) - 1));
}

/* Nearest of all codes of a type of at most 8 bits; of two equally near ones that with an even code. */
static uint32_t nearest_code(lpgemm_dtype_t type, int bits, double x) {
  uint32_t best = 0;
  double distance = (double)INFINITY;
  for (uint32_t code = 0; code < 1u << bits; code++) {
    double d = fabs(ref_value(type, code, NULL) - x);
    if (isinf(ref_value(type, code, NULL)) || !(d < distance || (d == distance && code % 2 == 0))) continue;
    if (d == distance && best % 2 == 0) continue; /* +0 before -0 */
    best = code;
    distance = d;
  }
  return best;
}

void ref_store(lpgemm_dtype_t type, void *array, int64_t i, double x) {
  int kind = (int)LPGEMM_DTYPE_KIND(type), bits = field_b(type);
  uint32_t code;
  if (kind == LPGEMM_KIND_REAL) {
    code = real_bits(type, x);
  } else if (kind == LPGEMM_KIND_SCALE) {
    code = nearest_code(type, 8, x);
  } else if (kind == LPGEMM_KIND_FLOAT) {
    code = nearest_code(type, 1 + field_a(type) + bits, x);
  } else if (bits > 8) { /* U16, I32 */
    code = (uint32_t)(int64_t)nearbyint(x);
  } else {
    code = nearest_code(type, bits, x);
    if (kind == LPGEMM_KIND_INT && code >> (bits - 1)) code |= 0xffu << bits & 0xff; /* sign-extended */
  }
  store_bits(ref_bytes(type), array, i, code);
}

/* ---- weights ---- */

/* Entry (n, group) of an array of scales or zeros. */
static double entry(const lpgemm_weight_desc_t *desc, lpgemm_order_t order, int64_t ld, lpgemm_dtype_t type,
                    const void *array, int64_t n, int64_t group, int64_t groups) {
  int64_t shared = desc->group_n > 1 ? desc->group_n : 1, rows = (desc->n + shared - 1) / shared;
  if (ld == 0) ld = order == LPGEMM_COLUMN_MAJOR ? rows : groups;
  return ref_load(type, array, order == LPGEMM_COLUMN_MAJOR ? group * ld + n / shared : n / shared * ld + group);
}

int64_t ref_x_k(const lpgemm_weight_desc_t *desc) { return desc->x_k ? desc->x_k : desc->k; }

/* The column of the source, and of X, that is stored as column k. */
static int64_t ref_column(const lpgemm_weight_desc_t *desc, const lpgemm_weight_source_t *source, int64_t k) {
  return desc->columns ? source->column_order[k] : k;
}

static uint32_t source_code(const lpgemm_weight_desc_t *desc, const lpgemm_weight_source_t *source, int bits, int64_t n,
                            int64_t k) {
  int64_t at = n * (source->codes_ld ? source->codes_ld : ref_x_k(desc)) + ref_column(desc, source, k);
  const uint8_t *bytes = source->codes;
  if (source->code_layout == LPGEMM_CODES_BYTES) return bytes[at];
  uint32_t code = 0;
  for (int i = 0; i < bits; i++) {
    int64_t bit = at * bits + i;
    code |= (uint32_t)(bytes[bit / 8] >> bit % 8 & 1) << i;
  }
  return code;
}

void ref_weight_row(const lpgemm_weight_desc_t *desc, const lpgemm_weight_source_t *source, int64_t n, double *w) {
  int is_float = LPGEMM_DTYPE_KIND(desc->type) == LPGEMM_KIND_FLOAT;
  int bits = field_b(desc->type) + (is_float ? 1 + field_a(desc->type) : 0);
  int64_t group_k = desc->group_k ? desc->group_k : desc->k, super_k = desc->super_k ? desc->super_k : desc->k;
  int64_t groups = desc->group_k ? (desc->k + group_k - 1) / group_k : 1;
  int64_t supers = desc->super_k ? (desc->k + super_k - 1) / super_k : 1;
  double global = desc->global_scale == 0 ? 1 : (double)desc->global_scale;
  if (source->row_order) n = source->row_order[n];
  if (desc->row_scales) global *= ref_load(LPGEMM_F32, source->row_scales, n);
  double value[256];
  for (uint32_t code = 0; code < 1u << bits; code++) value[code] = ref_value(desc->type, code, desc->codebook);
  for (int64_t g = 0; g < groups && g * group_k < desc->k; g++) {
    int64_t s = g * group_k / super_k;
    long double scale = 1, zero = 0, minimum = 0; /* 64 bits of mantissa where the machine has them */
    if (desc->scale_type)
      scale = entry(desc, source->order, source->scales_ld, desc->scale_type, source->scales, n, g, groups);
    if (desc->super_scale_type)
      scale *= entry(desc, source->order, source->super_ld, desc->super_scale_type, source->super_scales, n, s, supers);
    if (desc->zero == LPGEMM_ZERO_CONSTANT) zero = desc->zero_constant;
    if (desc->zero == LPGEMM_ZERO_PER_GROUP)
      zero = entry(desc, source->order, source->scales_ld, desc->zero_type, source->zeros, n, g, groups);
    if (desc->zero == LPGEMM_ZERO_MINIMUM) {
      minimum = entry(desc, source->order, source->scales_ld, desc->zero_type, source->zeros, n, g, groups);
      if (desc->super_zero_type)
        minimum *=
            entry(desc, source->order, source->super_ld, desc->super_zero_type, source->super_zeros, n, s, supers);
    }
    int64_t end = (g + 1) * group_k < desc->k ? (g + 1) * group_k : desc->k;
    for (int64_t k = g * group_k; k < end; k++) {
      long double product = ((long double)value[source_code(desc, source, bits, n, k)] - zero) * scale;
      w[k] = (double)((product + minimum) * global);
    }
  }
}

/* ---- the product ---- */

double ref_activate(lpgemm_activation_t activation, double v) {
  if (v == -(double)INFINITY && activation != LPGEMM_ACTIVATION_NONE) return 0;
  switch (activation) { /* no default: the compiler names an activation that is missing */
    case LPGEMM_ACTIVATION_NONE: break;
    case LPGEMM_ACTIVATION_RELU: return v < 0 ? 0 : v;
    case LPGEMM_ACTIVATION_GELU_ERF: return v * 0.5 * erfc(-v * 0.70710678118654752440);
    case LPGEMM_ACTIVATION_GELU_TANH: /* v/2 (1 + tanh u) = v / (1 + exp(-2u)) */
      return v / (1 + exp(-2 * 0.79788456080286535588 * (v + 0.044715 * v * v * v)));
    case LPGEMM_ACTIVATION_SILU: return v / (1 + exp(-v));
  }
  return v;
}

static double dot(const double *a, const double *b, int64_t k) {
  double s[4] = {0};
  int64_t i = 0;
  for (; i + 4 <= k; i += 4) {
    for (int j = 0; j < 4; j++) s[j] += a[i + j] * b[i + j];
  }
  for (; i < k; i++) s[0] += a[i] * b[i];
  return (s[0] + s[1]) + (s[2] + s[3]);
}

/* How far quantising to a type may move x in a row whose largest magnitude is `largest`. Integers: half of what is
 * between two of them, which is the largest magnitude by the largest number, for bipolar ones twice that; what is
 * negative becomes 0 if unsigned. E4M3: steps are 2^-3 of the number's power of two, at least 2^-9 of the scale. */
static double half_step(lpgemm_dtype_t type, double x, double largest) {
  double rounding = fabs(x) * 0x1p-22, bits = (double)lpgemm_dtype_bits(type);
  switch (LPGEMM_DTYPE_KIND(type)) {
    case LPGEMM_KIND_INT: return largest / (exp2(bits - 1) - 1) / 2 + rounding;
    case LPGEMM_KIND_BIPOLAR: return largest / (exp2(bits) - 1) + rounding;
    case LPGEMM_KIND_UINT: return (x < 0 ? -x : largest / (exp2(bits) - 1) / 2) + rounding;
    default: return fmax(fabs(x) / 16, largest / 448 / 1024) + rounding;
  }
}

/* One row of X in the order of the stored columns, its magnitudes, and how far quantising inside may move each element.
 */
static void x_row(const lpgemm_weight_desc_t *desc, const lpgemm_weight_source_t *source, const lpgemm_run_args_t *args,
                  int64_t row, double *x, double *magnitude, double *moved) {
  int64_t k = desc->k, x_k = ref_x_k(desc), ldx = args->ldx ? args->ldx : x_k;
  double scale = args->x_scale_mode == LPGEMM_X_SCALE_TENSOR ? (double)args->x_scale[0]
                 : args->x_scale_mode == LPGEMM_X_SCALE_ROW  ? (double)args->x_scale[row]
                                                             : 1;
  double largest = 0;
  for (int64_t i = 0; i < x_k; i++) { /* also what a part does not multiply */
    double size = fabs(ref_load(args->x_type, args->x, row * ldx + i) * scale);
    if (size > largest) largest = size;
  }
  for (int64_t i = 0; i < k; i++) {
    x[i] = ref_load(args->x_type, args->x, row * ldx + ref_column(desc, source, i)) * scale;
    magnitude[i] = fabs(x[i]);
  }
  /* Half a step. The division by the scale and the scale itself are rounded to fp32. */
  for (int64_t i = 0; i < k; i++) moved[i] = args->quantize_x ? half_step(args->quantize_x, x[i], largest) : 0;
}

static void *need(void *memory) {
  if (memory) return memory;
  fprintf(stderr, "gemm_ref: out of memory\n");
  abort();
}

/* The bound on an output, from that on what the activation gets: v, known up to error. */
static double output_bound(const lpgemm_run_args_t *args, double v, double error, double result) {
  if (args->y_type == LPGEMM_I32) return 0;
  if (!isfinite(v)) error = 0; /* what comes of it is known exactly */
  if (args->activation != LPGEMM_ACTIVATION_NONE && args->activation != LPGEMM_ACTIVATION_RELU) {
    /* v times a factor in [0, 1] that fp32 knows to a few units of 1 */
    error = 1.13 * error + (isfinite(v) ? 8 * 0x1p-24 * fabs(v) : 0);
  }
  return error + ref_epsilon(args->y_type) * (fabs(result) + error) + ref_smallest(args->y_type) / 2;
}

void ref_gemm(const lpgemm_weight_desc_t *desc, const lpgemm_weight_source_t *source, const lpgemm_run_args_t *args,
              double *y, double *bound, double *rounded) {
  int64_t m = args->m, n = desc->n, k = desc->k, ldc = args->ldc ? args->ldc : n;
  double alpha = args->alpha ? (double)*args->alpha : 1, beta = args->beta ? (double)*args->beta : 0;
  lpgemm_dtype_t bias_type = args->bias_type ? args->bias_type : args->y_type;
  size_t elements = (size_t)(m * k) + 1;
  double *x = need(malloc(3 * elements * sizeof *x)), *x_size = x + elements, *x_moved = x_size + elements;
  double *w = need(calloc(2 * ((size_t)k + 1), sizeof *w)), *w_size = w + k + 1;
  if (alpha != 0) {
    for (int64_t i = 0; i < m; i++) x_row(desc, source, args, i, x + i * k, x_size + i * k, x_moved + i * k);
  }
  /* Weights are rounded to the type in which they are multiplied: for X of 8 bits fp16, which holds them. */
  int may_round = args->x_type != LPGEMM_F32 || args->quantize_x;
  double weight_epsilon = ref_epsilon(args->x_type == LPGEMM_BF16 && !args->quantize_x ? LPGEMM_BF16 : LPGEMM_F16);
  int rounds = LPGEMM_DTYPE_KIND(desc->type) == LPGEMM_KIND_CODEBOOK;
  for (int64_t j = 0; j < n; j++) {
    if (alpha != 0) ref_weight_row(desc, source, j, w);
    for (int64_t i = 0; i < k; i++) w_size[i] = fabs(w[i]);
    double b = args->bias ? ref_load(bias_type, args->bias, j) : 0;
    for (int64_t i = 0; i < m; i++) {
      double v = 0, error = 0, rounding = 0;
      if (alpha != 0) {
        double size = dot(x_size + i * k, w_size, k);
        v = alpha * dot(x + i * k, w, k);
        error = fabs(alpha) * (((double)k + 8) * (0x1p-23 * size + 0x1p-149) /* fp32 underflow */);
        if (args->quantize_x) error += fabs(alpha) * dot(x_moved + i * k, w_size, k);
        if (may_round) rounding = fabs(alpha) * weight_epsilon * size;
      }
      double c = beta != 0 ? beta * ref_load(args->y_type, args->c, i * ldc + j) : 0;
      v += c + b;
      error += 8 * 0x1p-23 * (fabs(c) + fabs(b));
      double result = ref_activate(args->activation, v);
      y[i * n + j] = result;
      bound[i * n + j] = output_bound(args, v, error + (rounds ? rounding : 0), result);
      if (rounded) rounded[i * n + j] = output_bound(args, v, error + rounding, result);
    }
  }
  free(x);
  free(w);
}
