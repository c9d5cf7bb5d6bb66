#include "convert_formula.h"

#include <math.h>
#include <string.h>

static const lpgemm_tensor_t *find(const lpgemm_import_t *import, const char *name) {
  for (size_t i = 0; i < import->count; i++) {
    if (strcmp(import->tensors[i].name, name) == 0) return &import->tensors[i];
  }
  return NULL;
}

/* ---- numbers ---- */

static uint32_t word_at(const lpgemm_tensor_t *t, int64_t i) {
  uint32_t word;
  memcpy(&word, (const uint8_t *)t->data + 4 * i, sizeof word);
  return word;
}

/* A float of some exponent and mantissa bits, without regard to infinities and NaN. */
static double small_float(uint32_t bits, int exponent, int mantissa) {
  const int e = (int)(bits >> mantissa & ((1u << exponent) - 1)), bias = (1 << (exponent - 1)) - 1;
  const double m = (double)(bits & ((1u << mantissa) - 1));
  const double value = e ? ldexp(m + (double)(1 << mantissa), e - bias - mantissa) : ldexp(m, 1 - bias - mantissa);
  return bits >> (exponent + mantissa) & 1 ? -value : value;
}

static double real_at(const lpgemm_tensor_t *t, int64_t i) {
  const uint8_t *data = t->data;
  if (t->type == LPGEMM_F32) {
    float value;
    memcpy(&value, data + 4 * i, sizeof value);
    return (double)value;
  }
  const uint32_t bits = (uint32_t)data[2 * i] | (uint32_t)data[2 * i + 1] << 8;
  return t->type == LPGEMM_BF16 ? small_float(bits, 8, 7) : small_float(bits, 5, 10);
}

/* Field j of a stream of 32-bit words, `step` words apart. */
static uint32_t field_at(const lpgemm_tensor_t *t, int64_t first, int64_t step, int64_t j, int bits) {
  const int64_t word = j * bits / 32;
  const int shift = (int)(j * bits % 32);
  uint64_t two = word_at(t, first + word * step);
  if (shift + bits > 32) two |= (uint64_t)word_at(t, first + (word + 1) * step) << 32;
  return (uint32_t)(two >> shift) & ((1u << bits) - 1u);
}

static int64_t groups_of(const lpgemm_weight_desc_t *d) {
  return d->group_k ? (d->k + d->group_k - 1) / d->group_k : 1;
}

static int64_t group_of(const lpgemm_weight_desc_t *d, int64_t k) { return d->group_k ? k / d->group_k : 0; }

/* ---- GPTQ ---- */

static double gptq_zero(const lpgemm_import_t *import, int64_t n, int64_t columns, int64_t group, int bits) {
  const lpgemm_tensor_t *zeros = find(import, "qzeros");
  const int64_t first = group * columns;
  if (import->format == LPGEMM_FORMAT_GPTQ_V2) return field_at(zeros, first, 1, n, bits);
  if (bits == 3) return (field_at(zeros, first, 1, n, bits) + 1) & 7;
  const uint32_t one = bits == 2 ? 0x55555555u : bits == 4 ? 0x11111111u : 0x01010101u;
  const uint32_t word = word_at(zeros, first + n * bits / 32) + one;
  return word >> n * bits % 32 & ((1u << bits) - 1u);
}

static void gptq_row(const lpgemm_import_t *import, const lpgemm_weight_desc_t *d, int64_t n, double *terms,
                     float *values) {
  const lpgemm_tensor_t *codes = find(import, "qweight"), *scales = find(import, "scales"),
                        *order = find(import, "g_idx");
  const int bits = lpgemm_dtype_bits(d->type);
  const int64_t groups = groups_of(d);
  for (int64_t g = 0; g < groups; g++) {
    terms[2 * g] = real_at(scales, g * d->n + n);
    terms[2 * g + 1] = gptq_zero(import, n, (d->n * bits + 31) / 32, g, bits);
  }
  for (int64_t k = 0; k < d->k; k++) {
    const int64_t g = d->columns == LPGEMM_COLUMNS_ORDERED ? (int64_t)word_at(order, k) : group_of(d, k);
    values[k] = (float)(((double)field_at(codes, n, d->n, k, bits) - terms[2 * g + 1]) * terms[2 * g]);
  }
}

/* ---- AWQ ---- */

static uint32_t awq_field(const lpgemm_tensor_t *t, int64_t row, int64_t n, int64_t columns) {
  static const int field[] = {0, 4, 1, 5, 2, 6, 3, 7};
  return word_at(t, row * (columns / 8) + n / 8) >> 4 * field[n % 8] & 15;
}

static void awq_row(const lpgemm_import_t *import, const lpgemm_weight_desc_t *d, int64_t n, double *terms,
                    float *values) {
  const lpgemm_tensor_t *codes = find(import, "qweight"), *zeros = find(import, "qzeros"),
                        *scales = find(import, "scales");
  for (int64_t g = 0; g < groups_of(d); g++) {
    terms[2 * g] = real_at(scales, g * d->n + n);
    terms[2 * g + 1] = awq_field(zeros, g, n, d->n);
  }
  for (int64_t k = 0; k < d->k; k++) {
    const int64_t g = group_of(d, k);
    values[k] = (float)(((double)awq_field(codes, k, n, d->n) - terms[2 * g + 1]) * terms[2 * g]);
  }
}

/* ---- pack-quantized ---- */

static uint32_t packed_field(const lpgemm_tensor_t *t, int64_t first, int64_t step, int64_t j, int bits, int dense) {
  const int each = 32 / bits;
  if (dense) return field_at(t, first, step, j, bits);
  return word_at(t, first + j / each * step) >> j % each * bits & ((1u << bits) - 1u);
}

static void packed_row(const lpgemm_import_t *import, const lpgemm_weight_desc_t *d, int64_t n, double *terms,
                       float *values) {
  const lpgemm_tensor_t *codes = find(import, "weight_packed"), *scales = find(import, "weight_scale"),
                        *zeros = find(import, "weight_zero_point"), *order = find(import, "weight_g_idx");
  const int bits = lpgemm_dtype_bits(d->type);
  const int64_t groups = groups_of(d), words = codes->shape[1];
  const int dense = words == (d->k * bits + 31) / 32;
  const int one = scales->bytes / (scales->type == LPGEMM_F32 ? 4 : 2) == 1;
  for (int64_t g = 0; g < groups; g++) {
    terms[2 * g] = real_at(scales, one ? 0 : n * groups + g);
    terms[2 * g + 1] = zeros ? packed_field(zeros, g, groups, n, bits, dense) : (double)(1 << (bits - 1));
  }
  for (int64_t k = 0; k < d->k; k++) {
    int64_t g = group_of(d, k);
    if (d->columns == LPGEMM_COLUMNS_ORDERED) g = word_at(order, order->type == LPGEMM_I64 ? 2 * k : k);
    const double code = packed_field(codes, n * words, 1, k, bits, dense);
    values[k] = (float)((code - terms[2 * g + 1]) * terms[2 * g]);
  }
}

/* ---- int8 and fp8 ---- */

static double byte_value(lpgemm_dtype_t type, uint32_t byte) {
  if (type == LPGEMM_I8) return byte < 128 ? (double)byte : (double)byte - 256;
  if (type == LPGEMM_E4M3) return (byte & 127) == 127 ? (double)NAN : small_float(byte, 4, 3);
  if ((byte & 124) == 124) return byte & 3 ? (double)NAN : byte & 128 ? -(double)INFINITY : (double)INFINITY;
  return small_float(byte, 5, 2);
}

static const lpgemm_tensor_t *scale_of(const lpgemm_import_t *import) {
  const lpgemm_tensor_t *scale = find(import, "weight_scale");
  return scale ? scale : find(import, "weight_scale_inv");
}

static void scaled_row(const lpgemm_import_t *import, const lpgemm_weight_desc_t *d, int64_t n, float *values) {
  const lpgemm_tensor_t *codes = find(import, "weight"), *scale = scale_of(import);
  const int64_t numbers = (int64_t)scale->bytes / (scale->type == LPGEMM_F32 ? 4 : 2), groups = groups_of(d);
  const int64_t rows = numbers / groups, block = rows == d->n ? 1 : d->group_k; /* only square blocks are read */
  const uint8_t *row = (const uint8_t *)codes->data + n * d->k;
  for (int64_t k = 0; k < d->k; k++) {
    const int64_t at = numbers == 1 ? 0 : n / block * groups + group_of(d, k);
    values[k] = (float)(byte_value(codes->type, row[k]) * real_at(scale, at));
  }
}

/* ---- all of them ---- */

static int has_reals(const lpgemm_tensor_t *t) {
  return t && (t->type == LPGEMM_F32 || t->type == LPGEMM_F16 || t->type == LPGEMM_BF16);
}

int convert_has_formula(const lpgemm_import_t *import, const lpgemm_weight_desc_t *desc) {
  switch (import->format) {
    case LPGEMM_FORMAT_GPTQ:
    case LPGEMM_FORMAT_GPTQ_V2:
    case LPGEMM_FORMAT_AWQ: return has_reals(find(import, "scales"));
    case LPGEMM_FORMAT_PACK_QUANTIZED: return has_reals(find(import, "weight_scale"));
    case LPGEMM_FORMAT_INT8_FP8: {
      const lpgemm_tensor_t *scale = scale_of(import);
      const int64_t numbers = scale ? (int64_t)scale->bytes / (scale->type == LPGEMM_F32 ? 4 : 2) : 0;
      const int64_t groups = groups_of(desc), rows = groups ? numbers / groups : 0;
      const int square = desc->group_k && rows == (desc->n + desc->group_k - 1) / desc->group_k;
      return has_reals(scale) && !find(import, "weight_zero_point") && (numbers == 1 || rows == desc->n || square);
    }
    default: return 0;
  }
}

void convert_formula_row(const lpgemm_import_t *import, const lpgemm_weight_desc_t *desc, int64_t row, double *terms,
                         float *values) {
  switch (import->format) {
    case LPGEMM_FORMAT_GPTQ:
    case LPGEMM_FORMAT_GPTQ_V2: gptq_row(import, desc, row, terms, values); break;
    case LPGEMM_FORMAT_AWQ: awq_row(import, desc, row, terms, values); break;
    case LPGEMM_FORMAT_PACK_QUANTIZED: packed_row(import, desc, row, terms, values); break;
    default: scaled_row(import, desc, row, values); break;
  }
}
