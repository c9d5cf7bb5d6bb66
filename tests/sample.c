#include "sample.h"

#include <math.h>

#include "test.h"

/* ---- types and descriptions ---- */

lpgemm_dtype_t sample_type(int i) {
  if (i < 8) return LPGEMM_UINT((uint32_t)i + 1);
  if (i < 15) return LPGEMM_INT((uint32_t)i - 6);
  if (i < 23) return LPGEMM_BIPOLAR((uint32_t)i - 14);
  if (i < 27) return LPGEMM_CODEBOOK((uint32_t)i - 22);
  i -= 27;
  uint32_t bits = 3;
  while (i >= (int)bits - 1) i -= (int)bits++ - 1;
  return LPGEMM_FLOAT((uint32_t)i + 1, bits - 2 - (uint32_t)i);
}

const lpgemm_dtype_t sample_scale[] = {0, LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32, LPGEMM_E8M0, LPGEMM_E4M3};

lpgemm_handle_t sample_handle(void) {
  lpgemm_config_t config = {.size = sizeof config};
  config.backend = test_backend();
  config.num_threads = 1;
  lpgemm_handle_t handle = NULL;
  CHECK_STATUS(lpgemm_create(&handle, &config), LPGEMM_SUCCESS);
  return handle;
}

lpgemm_weight_desc_t sample_desc(int64_t n, int64_t k, lpgemm_dtype_t type, int64_t group_k,
                                 lpgemm_dtype_t scale_type) {
  lpgemm_weight_desc_t desc = {.size = sizeof desc};
  desc.n = n;
  desc.k = k;
  desc.type = type;
  desc.group_k = group_k;
  desc.scale_type = scale_type;
  if (LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_CODEBOOK) {
    for (int i = 0; i < 1 << lpgemm_dtype_bits(type); i++) desc.codebook[i] = 0.37f * (float)i - 1.9f;
  }
  return desc;
}

lpgemm_weight_desc_t sample_desc_zeros(int64_t n, int64_t k, lpgemm_dtype_t type, int64_t group_k,
                                       lpgemm_dtype_t scale_type, lpgemm_dtype_t zero_type) {
  lpgemm_weight_desc_t desc = sample_desc(n, k, type, group_k, scale_type);
  desc.zero = LPGEMM_ZERO_PER_GROUP;
  desc.zero_type = zero_type;
  return desc;
}

lpgemm_weight_desc_t sample_desc_q4k(int64_t n, int64_t k) {
  lpgemm_weight_desc_t desc = sample_desc(n, k, LPGEMM_UINT(4), 32, LPGEMM_UINT(6));
  desc.super_k = 256;
  desc.super_scale_type = LPGEMM_F16;
  desc.zero = LPGEMM_ZERO_MINIMUM;
  desc.zero_type = LPGEMM_UINT(6);
  desc.super_zero_type = LPGEMM_F16;
  return desc;
}

lpgemm_dtype_t sample_part_type(const lpgemm_weight_desc_t *desc, lpgemm_part_t part) {
  switch (part) {
    case LPGEMM_PART_SCALES: return desc->scale_type;
    case LPGEMM_PART_ZEROS: return desc->zero_type;
    case LPGEMM_PART_SUPER_SCALES: return desc->super_scale_type;
    case LPGEMM_PART_SUPER_ZEROS: return desc->super_zero_type;
    case LPGEMM_PART_ROW_SCALES: return desc->row_scales;
    case LPGEMM_PART_COLUMN_ORDER: return desc->columns ? LPGEMM_I32 : 0;
  }
  return 0;
}

static int64_t part_k(const lpgemm_weight_desc_t *desc, lpgemm_part_t part) {
  return part <= LPGEMM_PART_ZEROS ? desc->group_k : desc->super_k;
}

int64_t sample_x_k(const lpgemm_weight_desc_t *desc) { return desc->x_k ? desc->x_k : desc->k; }

int64_t sample_part_rows(const lpgemm_weight_desc_t *desc, lpgemm_part_t part) {
  if (part == LPGEMM_PART_COLUMN_ORDER) return 1;
  if (part == LPGEMM_PART_ROW_SCALES || desc->group_n <= 1) return desc->n;
  return (desc->n + desc->group_n - 1) / desc->group_n;
}

int64_t sample_part_columns(const lpgemm_weight_desc_t *desc, lpgemm_part_t part) {
  if (sample_part_type(desc, part) == 0) return 0;
  if (part == LPGEMM_PART_ROW_SCALES) return 1;
  if (part == LPGEMM_PART_COLUMN_ORDER) return desc->k;
  int64_t columns = part_k(desc, part);
  return columns ? (desc->k + columns - 1) / columns : 1;
}

/* ---- values, written apart from the library's ---- */

double sample_code_value(lpgemm_dtype_t type, uint32_t code, const float *codebook) {
  int bits = lpgemm_dtype_bits(type), e = (int)(type >> 8 & 255), m = (int)(type & 255);
  switch (LPGEMM_DTYPE_KIND(type)) {
    case LPGEMM_KIND_UINT: return code;
    case LPGEMM_KIND_INT: return code < 1u << (bits - 1) ? (double)code : (double)code - ldexp(1.0, bits);
    case LPGEMM_KIND_CODEBOOK: return (double)codebook[code];
    case LPGEMM_KIND_SCALE: return code == 255 ? (double)NAN : ldexp(1.0, (int)code - 127);
    case LPGEMM_KIND_BIPOLAR: {
      double sum = 0;
      for (int i = 0; i < bits; i++) sum += (code >> i & 1 ? 1.0 : -1.0) * ldexp(1.0, i);
      return sum;
    }
    default: break;
  }
  double sign = code >> (e + m) & 1 ? -1.0 : 1.0;
  int exponent = (int)(code >> m) & ((1 << e) - 1), bias = (1 << (e - 1)) - 1;
  double fraction = (double)(code & ((1u << m) - 1));
  int ieee = LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_REAL || type == LPGEMM_E5M2;
  if (ieee && exponent == (1 << e) - 1) return fraction > 0 ? (double)NAN : sign * (double)INFINITY;
  if (type == LPGEMM_E4M3 && exponent == 15 && fraction > 6) return (double)NAN;
  if (exponent == 0) return sign * ldexp(fraction, 1 - bias - m);
  return sign * ldexp(1.0 + ldexp(fraction, -m), exponent - bias);
}

static int element_bytes(lpgemm_dtype_t type) { return (lpgemm_dtype_bits(type) + 7) / 8; }

static uint32_t element(lpgemm_dtype_t type, const void *array, int64_t i) {
  uint32_t code = 0;
  memcpy(&code, (const uint8_t *)array + i * element_bytes(type), (size_t)element_bytes(type));
  return code;
}

static float part_value(const sample *s, lpgemm_part_t part, int64_t n, int64_t k) {
  lpgemm_dtype_t type = sample_part_type(&s->desc, part);
  if (type == 0) return 1.0f;
  int64_t columns = part_k(&s->desc, part);
  if (s->desc.group_n > 1) n /= s->desc.group_n;
  int64_t at = n * sample_part_columns(&s->desc, part) + (columns ? k / columns : 0);
  return (float)sample_code_value(type, element(type, s->part[part], at), NULL);
}

int64_t sample_column(const sample *s, int64_t stored) {
  const int32_t *order = s->part[LPGEMM_PART_COLUMN_ORDER];
  return order ? order[stored] : stored;
}

sample_value sample_weight(const sample *s, int64_t n, int64_t k) {
  const lpgemm_weight_desc_t *d = &s->desc;
  float code = (float)sample_code_value(d->type, s->codes[n * sample_x_k(d) + sample_column(s, k)], d->codebook);
  float scale = part_value(s, LPGEMM_PART_SCALES, n, k), super_scale = part_value(s, LPGEMM_PART_SUPER_SCALES, n, k);
  float global = d->global_scale == 0.0f ? 1.0f : d->global_scale, zero = 0.0f, super_zero = 1.0f;
  float row_scale = d->row_scales ? ((const float *)s->part[LPGEMM_PART_ROW_SCALES])[n] : 1.0f;
  if (d->zero == LPGEMM_ZERO_CONSTANT) zero = d->zero_constant;
  if (d->zero >= LPGEMM_ZERO_PER_GROUP) zero = part_value(s, LPGEMM_PART_ZEROS, n, k);
  if (d->zero == LPGEMM_ZERO_MINIMUM) super_zero = part_value(s, LPGEMM_PART_SUPER_ZEROS, n, k);
  sample_value v = {0, 0.0, {0, {0}}};
  if (!isfinite(code) || !isfinite(scale)) {
    double w = d->zero == LPGEMM_ZERO_MINIMUM ? (double)code * (double)scale + (double)zero
                                              : ((double)code - (double)zero) * (double)scale;
    v.other = w * (double)super_scale * (double)global * (double)row_scale;
    return v;
  }
  v.finite = 1;
  exact w = exact_of(code);
  if (d->zero != LPGEMM_ZERO_MINIMUM) w = exact_add(w, exact_of(-zero));
  w = exact_times(exact_times(w, scale), super_scale);
  if (d->zero == LPGEMM_ZERO_MINIMUM) w = exact_add(w, exact_times(exact_of(zero), super_zero));
  v.value = exact_times(exact_times(w, global), row_scale);
  return v;
}

/* ---- random matrices ---- */

static uint32_t draw(const lpgemm_weight_desc_t *d, lpgemm_part_t part) {
  lpgemm_dtype_t type = sample_part_type(d, part);
  int bits = lpgemm_dtype_bits(d->type);
  if (type == LPGEMM_U8 || type == LPGEMM_U16) {
    int64_t largest = INT64_C(1) << bits;
    return (uint32_t)test_between(0, type == LPGEMM_U8 && largest > 255 ? 255 : largest);
  }
  if (type == LPGEMM_E8M0) return (uint32_t)test_between(110, 135);
  if (type == LPGEMM_E4M3) {
    uint32_t code = (uint32_t)test_between(0, 255);
    return (code & 0x7f) == 0x7f ? code - 1 : code;
  }
  if (LPGEMM_DTYPE_KIND(type) != LPGEMM_KIND_REAL) return (uint32_t)test_between(0, (1 << lpgemm_dtype_bits(type)) - 1);
  float value = (float)ldexp(test_uniform(1.0, 2.0), (int)test_between(-6, 3));
  if (test_between(0, 3) == 0) value = -value;
  return exact_round(exact_of(value), type == LPGEMM_F16 ? 5 : 8, (int)(type & 255));
}

/* The first k of a shuffle of x_k columns. */
static void draw_order(const lpgemm_weight_desc_t *desc, int32_t *order) {
  const int64_t x_k = sample_x_k(desc);
  int32_t *all = test_alloc((size_t)x_k * sizeof *all);
  for (int64_t i = 0; i < x_k; i++) all[i] = (int32_t)i;
  for (int64_t i = 0; i < desc->k; i++) {
    const int64_t other = test_between(i, x_k - 1);
    const int32_t taken = all[other];
    all[other] = all[i];
    all[i] = order[i] = taken;
  }
  test_free(all);
}

void sample_make(sample *s, const lpgemm_weight_desc_t *desc) {
  memset(s, 0, sizeof *s);
  s->desc = *desc;
  s->source.size = sizeof s->source;
  int64_t count = desc->n * sample_x_k(desc);
  s->codes = test_alloc((size_t)count);
  for (int64_t i = 0; i < count; i++) s->codes[i] = (uint8_t)(test_random() >> (64 - lpgemm_dtype_bits(desc->type)));
  for (int part = LPGEMM_PART_SCALES; part < SAMPLE_PARTS; part++) {
    lpgemm_dtype_t type = sample_part_type(desc, (lpgemm_part_t)part);
    if (type == 0) continue;
    int64_t values = sample_part_rows(desc, (lpgemm_part_t)part) * sample_part_columns(desc, (lpgemm_part_t)part);
    s->part_bytes[part] = (size_t)(values * element_bytes(type));
    s->part[part] = test_alloc(s->part_bytes[part]);
    s->source_part[part] = test_alloc(s->part_bytes[part]);
    if (part == LPGEMM_PART_COLUMN_ORDER) draw_order(desc, s->part[part]);
    for (int64_t i = 0; i < values && part != LPGEMM_PART_COLUMN_ORDER; i++) {
      uint32_t code = draw(desc, (lpgemm_part_t)part);
      memcpy((uint8_t *)s->part[part] + i * element_bytes(type), &code, (size_t)element_bytes(type));
    }
  }
  sample_lay_out(s, LPGEMM_CODES_BYTES, 0, LPGEMM_ROW_MAJOR);
}

void sample_free(sample *s) {
  test_free(s->codes);
  test_free(s->source_codes);
  for (int part = 0; part < SAMPLE_PARTS; part++) {
    test_free(s->part[part]);
    test_free(s->source_part[part]);
  }
  memset(s, 0, sizeof *s);
}

void sample_lay_out(sample *s, lpgemm_code_layout_t layout, int64_t codes_ld, lpgemm_order_t order) {
  const lpgemm_weight_desc_t *d = &s->desc;
  const int64_t x_k = sample_x_k(d);
  int64_t ld = codes_ld ? codes_ld : x_k;
  int bits = lpgemm_dtype_bits(d->type), step = layout == LPGEMM_CODES_BITS ? bits : 8;
  int64_t last = d->n > 0 && x_k > 0 ? (d->n - 1) * ld + x_k : 0; /* one past the last code */
  test_free(s->source_codes);
  s->source.code_layout = layout;
  s->source.codes_ld = codes_ld;
  s->source.codes_bytes = (size_t)((last * step + 7) / 8);
  s->source_codes = test_alloc(s->source.codes_bytes);
  memset(s->source_codes, 0xff, s->source.codes_bytes);
  s->source.codes = s->source_codes;
  for (int64_t n = 0; n < d->n; n++) {
    for (int64_t k = 0; k < x_k; k++) {
      for (int bit = 0; bit < step; bit++) {
        int64_t at = (n * ld + k) * step + bit;
        if (!(s->codes[n * x_k + k] >> bit & 1)) s->source_codes[at / 8] &= (uint8_t) ~(1u << (at % 8));
      }
    }
  }
  s->source.order = order;
  for (int part = LPGEMM_PART_SCALES; part < SAMPLE_PARTS; part++) {
    int64_t columns = sample_part_columns(d, (lpgemm_part_t)part);
    size_t bytes = (size_t)element_bytes(sample_part_type(d, (lpgemm_part_t)part));
    const int64_t rows = sample_part_rows(d, (lpgemm_part_t)part);
    const int is_turned = order == LPGEMM_COLUMN_MAJOR && part <= LPGEMM_PART_SUPER_ZEROS;
    for (int64_t i = 0; i < rows * columns; i++) {
      int64_t to = is_turned ? i % columns * rows + i / columns : i;
      memcpy((uint8_t *)s->source_part[part] + (size_t)to * bytes, (uint8_t *)s->part[part] + (size_t)i * bytes, bytes);
    }
  }
  s->source.scales = s->source_part[LPGEMM_PART_SCALES];
  s->source.scales_bytes = s->part_bytes[LPGEMM_PART_SCALES];
  s->source.zeros = s->source_part[LPGEMM_PART_ZEROS];
  s->source.zeros_bytes = s->part_bytes[LPGEMM_PART_ZEROS];
  s->source.super_scales = s->source_part[LPGEMM_PART_SUPER_SCALES];
  s->source.super_scales_bytes = s->part_bytes[LPGEMM_PART_SUPER_SCALES];
  s->source.super_zeros = s->source_part[LPGEMM_PART_SUPER_ZEROS];
  s->source.super_zeros_bytes = s->part_bytes[LPGEMM_PART_SUPER_ZEROS];
  s->source.row_scales = s->source_part[LPGEMM_PART_ROW_SCALES];
  s->source.row_scales_bytes = s->part_bytes[LPGEMM_PART_ROW_SCALES];
  s->source.column_order = s->source_part[LPGEMM_PART_COLUMN_ORDER];
  s->source.column_order_bytes = s->part_bytes[LPGEMM_PART_COLUMN_ORDER];
}

lpgemm_weights_t sample_pack(lpgemm_handle_t handle, const sample *s) {
  lpgemm_weights_t weights = NULL;
  CHECK_STATUS(lpgemm_pack_weights(handle, &s->desc, &s->source, NULL, 0, &weights), LPGEMM_SUCCESS);
  return weights;
}

uint8_t *sample_blob(lpgemm_handle_t handle, lpgemm_weights_t weights, size_t *size) {
  lpgemm_weights_info_t info = {.size = sizeof info};
  lpgemm_status_t status = lpgemm_weights_info(weights, &info);
  CHECK_STATUS(status, LPGEMM_SUCCESS);
  if (status != LPGEMM_SUCCESS) return NULL;
  uint8_t *blob = test_alloc(info.packed_bytes);
  CHECK_STATUS(lpgemm_serialize(handle, weights, blob, info.packed_bytes), LPGEMM_SUCCESS);
  *size = info.packed_bytes;
  return blob;
}
