/* Random checkpoints, and their formulas. */
#include "checkpoint.h"

#include <math.h>

#include "test.h"

const checkpoint_spec checkpoint_specs[] = {
    {"gptq-2", CHECKPOINT_GPTQ, 80, 320, 32, 2, 0},
    {"gptq-3", CHECKPOINT_GPTQ, 96, 224, 32, 3, 0},
    {"gptq-4", CHECKPOINT_GPTQ, 200, 336, 48, 4, 0},
    {"gptq-8", CHECKPOINT_GPTQ, 76, 192, 64, 8, 0},
    {"gptq-row", CHECKPOINT_GPTQ, 72, 136, 0, 4, 0},
    {"gptq-v2", CHECKPOINT_GPTQ, 136, 256, 64, 4, V2},
    {"gptq-order", CHECKPOINT_GPTQ, 136, 256, 32, 4, ORDERED},
    {"gptq-order-3", CHECKPOINT_GPTQ, 96, 288, 96, 3, ORDERED | V2},
    {"awq", CHECKPOINT_AWQ, 152, 328, 0, 4, 0},
    {"awq-128", CHECKPOINT_AWQ, 136, 384, 128, 4, 0},
    {"awq-gemv", CHECKPOINT_AWQ_GEMV, 100, 640, 64, 4, 0},
    {"awq-gemv-fast", CHECKPOINT_AWQ_GEMV_FAST, 72, 640, 32, 4, 0},
    {"packed-1", CHECKPOINT_PACKED, 40, 200, 0, 1, 0},
    {"packed-2", CHECKPOINT_PACKED, 40, 208, 16, 2, ZEROS},
    {"packed-3", CHECKPOINT_PACKED, 70, 320, 64, 3, ZEROS},
    {"packed-3-words", CHECKPOINT_PACKED, 70, 320, 64, 3, ZEROS | WORDS},
    {"packed-4", CHECKPOINT_PACKED, 130, 4 * 61, 0, 4, 0},
    {"packed-4-order", CHECKPOINT_PACKED, 66, 256, 32, 4, ORDERED},
    {"packed-5", CHECKPOINT_PACKED, 66, 192, 64, 5, ZEROS},
    {"packed-5-words", CHECKPOINT_PACKED, 66, 192, 64, 5, ZEROS | WORDS},
    {"packed-6-words", CHECKPOINT_PACKED, 66, 192, 64, 6, WORDS},
    {"packed-7", CHECKPOINT_PACKED, 66, 192, 32, 7, ZEROS},
    {"packed-8", CHECKPOINT_PACKED, 66, 193, 0, 8, 0},
    {"int8-tensor", CHECKPOINT_INT8, 66, 150, 0, 8, 0},
    {"int8-row", CHECKPOINT_INT8, 66, 150, -1, 8, 0},
    {"int8-zeros", CHECKPOINT_INT8, 66, 150, -1, 8, ZEROS},
    {"fp8-tensor", CHECKPOINT_FP8, 70, 90, 0, 8, 0},
    {"fp8-row", CHECKPOINT_FP8, 70, 90, -1, 8, 0},
    {"fp8-block", CHECKPOINT_FP8, 300, 330, 128, 8, 0},
    {"nvfp4", CHECKPOINT_NVFP4, 70, 208, 16, 4, 0},
    {"nvfp4-modelopt", CHECKPOINT_NVFP4, 70, 200, 16, 4, V2},
    {"mxfp4", CHECKPOINT_MXFP, 70, 208, 32, 4, 0},
    {"mxfp6", CHECKPOINT_MXFP, 70, 208, 32, 6, 0},
    {"mxfp8", CHECKPOINT_MXFP, 70, 208, 32, 8, 0},
    {"gpt-oss", CHECKPOINT_BLOCKS, 70, 224, 32, 4, 0},
    {"bitsandbytes", CHECKPOINT_BITSANDBYTES, 70, 192, 64, 4, 0},
    {"bitsandbytes-nested", CHECKPOINT_BITSANDBYTES, 300, 192, 64, 4, NESTED},
    {"bitsandbytes-crossing", CHECKPOINT_BITSANDBYTES, 33, 240, 64, 4, 0},
    {"hqq-1", CHECKPOINT_HQQ, 64, 192, 64, 1, 0},
    {"hqq-2", CHECKPOINT_HQQ, 72, 192, 64, 2, 0},
    {"hqq-3", CHECKPOINT_HQQ, 71, 192, 64, 3, 0},
    {"hqq-4", CHECKPOINT_HQQ, 70, 192, 32, 4, 0},
    {"hqq-5", CHECKPOINT_HQQ, 70, 192, 64, 5, 0},
    {"hqq-6", CHECKPOINT_HQQ, 70, 192, 64, 6, 0},
    {"hqq-8", CHECKPOINT_HQQ, 70, 192, 64, 8, 0},
    {"bitnet", CHECKPOINT_BITNET, 84, 150, 0, 2, 0},
    {"bitnet-auto", CHECKPOINT_BITNET, 84, 150, 0, 2, V2},
};
const int checkpoint_spec_count = sizeof checkpoint_specs / sizeof checkpoint_specs[0];

/* ---- making tensors ---- */

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t group_of(const checkpoint_spec *s) { return s->group > 0 ? s->group : s->k; }
static int64_t groups_of(const checkpoint_spec *s) { return ceil_div(s->k, group_of(s)); }

/* Random bytes; the sizes that are not there are 0. */
static void *add(checkpoint *c, const char *name, lpgemm_dtype_t type, int bits, const int64_t shape[4], int dims) {
  lpgemm_tensor_t *t = &c->tensor[c->import.count++];
  int64_t numbers = 1;
  *t = (lpgemm_tensor_t){.name = name, .type = type, .dims = dims};
  for (int i = 0; i < dims; i++) numbers *= t->shape[i] = shape[i];
  t->bytes = (size_t)(numbers * bits / 8);
  uint8_t *data = test_alloc(t->bytes);
  for (size_t i = 0; i < t->bytes; i++) data[i] = (uint8_t)test_random();
  t->data = data;
  return data;
}

static void *add2(checkpoint *c, const char *name, lpgemm_dtype_t type, int bits, int64_t rows, int64_t columns) {
  const int64_t shape[4] = {rows, columns};
  return add(c, name, type, bits, shape, 2);
}

/* Scales of moderate size, none of them 0. */
static void add_scales(checkpoint *c, const char *name, lpgemm_dtype_t type, int64_t rows, int64_t columns) {
  uint8_t *data = add2(c, name, type, type == LPGEMM_F32 ? 32 : 16, rows, columns);
  for (int64_t i = 0; i < rows * columns; i++) {
    const float f = (float)test_uniform(0.01, 0.1);
    const uint16_t h = (uint16_t)(type == LPGEMM_F16 ? test_between(0x2000, 0x2fff) : test_between(0x3c00, 0x3dff));
    memcpy(data + i * (type == LPGEMM_F32 ? 4 : 2), type == LPGEMM_F32 ? (const void *)&f : &h,
           type == LPGEMM_F32 ? 4 : 2);
  }
}

static void add_global(checkpoint *c, const char *name, int divides) {
  const int64_t shape[4] = {1};
  float *data = add(c, name, LPGEMM_F32, 32, shape, 1);
  *data = (float)test_uniform(0.5, 3.0);
  c->global = divides ? (float)(1.0 / (double)*data) : *data;
}

/* Equal groups in random order. */
static void add_order(checkpoint *c, const char *name) {
  const int64_t k = c->spec.k, shape[4] = {k};
  int32_t *group = add(c, name, LPGEMM_I32, 32, shape, 1);
  for (int64_t i = 0; i < k; i++) group[i] = (int32_t)(i / group_of(&c->spec));
  for (int64_t i = k - 1; c->spec.flags & ORDERED && i > 0; i--) {
    const int64_t j = test_between(0, i);
    const int32_t swapped = group[i];
    group[i] = group[j], group[j] = swapped;
  }
}

static void make_gptq(checkpoint *c) {
  const checkpoint_spec *s = &c->spec;
  c->import.format = s->flags & V2 ? LPGEMM_FORMAT_GPTQ_V2 : LPGEMM_FORMAT_GPTQ;
  add2(c, "qweight", LPGEMM_I32, 32, ceil_div(s->k * s->bits, 32), s->n);
  add2(c, "qzeros", LPGEMM_I32, 32, groups_of(s), ceil_div(s->n * s->bits, 32));
  add_scales(c, "scales", LPGEMM_F16, groups_of(s), s->n);
  add_order(c, "g_idx");
}

static int64_t padded_words(const checkpoint_spec *s) {
  const int64_t words = ceil_div(groups_of(s), 8), unit = s->group == 64 ? 2 : s->group == 32 ? 4 : 1;
  return ceil_div(words, unit) * unit;
}

static void make_awq(checkpoint *c) {
  const checkpoint_spec *s = &c->spec;
  const int64_t z = padded_words(s);
  if (s->kind == CHECKPOINT_AWQ) {
    c->import.format = LPGEMM_FORMAT_AWQ;
    add2(c, "qweight", LPGEMM_I32, 32, s->k, s->n / 8);
    add2(c, "qzeros", LPGEMM_I32, 32, groups_of(s), s->n / 8);
    add_scales(c, "scales", LPGEMM_F16, groups_of(s), s->n);
  } else if (s->kind == CHECKPOINT_AWQ_GEMV) {
    c->import.format = LPGEMM_FORMAT_AWQ_GEMV;
    add2(c, "qweight", LPGEMM_I32, 32, s->n, s->k / 8);
    add2(c, "qzeros", LPGEMM_I32, 32, s->n, z);
    add_scales(c, "scales", LPGEMM_F16, s->n, 8 * z);
  } else {
    c->import.format = LPGEMM_FORMAT_AWQ_GEMV_FAST;
    add2(c, "qweight", LPGEMM_I16, 16, s->n / 4, s->k);
    add_scales(c, "qzeros", LPGEMM_F16, 8 * z, s->n);
    add_scales(c, "scales", LPGEMM_F16, 8 * z, s->n);
  }
}

static int64_t words_of(const checkpoint_spec *s, int64_t codes) {
  return s->flags & WORDS ? ceil_div(codes, 32 / s->bits) : ceil_div(codes * s->bits, 32);
}

static void make_packed(checkpoint *c) {
  const checkpoint_spec *s = &c->spec;
  const int64_t two[4] = {2};
  c->import.format = LPGEMM_FORMAT_PACK_QUANTIZED;
  c->import.bits = s->bits;
  add2(c, "weight_packed", LPGEMM_I32, 32, s->n, words_of(s, s->k));
  int64_t *shape = add(c, "weight_shape", LPGEMM_I64, 64, two, 1);
  shape[0] = s->n, shape[1] = s->k;
  add_scales(c, "weight_scale", LPGEMM_BF16, s->n, groups_of(s));
  if (s->flags & ZEROS) add2(c, "weight_zero_point", LPGEMM_I32, 32, words_of(s, s->n), groups_of(s));
  if (s->flags & ORDERED) add_order(c, "weight_g_idx");
}

static void make_scaled(checkpoint *c) {
  const checkpoint_spec *s = &c->spec;
  c->import.format = LPGEMM_FORMAT_INT8_FP8;
  add2(c, "weight", s->kind == CHECKPOINT_INT8 ? LPGEMM_I8 : LPGEMM_E4M3, 8, s->n, s->k);
  if (s->group == 0) {
    add_global(c, "weight_scale", 0);
  } else if (s->group < 0) {
    add_scales(c, "weight_scale", LPGEMM_BF16, s->n, 1);
    if (s->flags & ZEROS) add2(c, "weight_zero_point", LPGEMM_I8, 8, s->n, 1);
  } else {
    add_scales(c, "weight_scale_inv", LPGEMM_F32, ceil_div(s->n, s->group), groups_of(s));
  }
}

static void make_powers(checkpoint *c, const char *name, const int64_t *shape, int dims) {
  uint8_t *power = add(c, name, LPGEMM_U8, 8, shape, dims);
  for (size_t i = 0; i < c->tensor[c->import.count - 1].bytes; i++) power[i] = (uint8_t)test_between(110, 130);
}

static void make_micro(checkpoint *c) {
  const checkpoint_spec *s = &c->spec;
  const int64_t scales[4] = {s->n, groups_of(s)}, stack[4] = {3, s->n, s->k / 32, 16},
                stacked[4] = {3, s->n, s->k / 32};
  c->import.format = s->kind == CHECKPOINT_NVFP4 ? LPGEMM_FORMAT_NVFP4 : LPGEMM_FORMAT_MXFP;
  if (s->kind == CHECKPOINT_BLOCKS) {
    add(c, "blocks", LPGEMM_U8, 8, stack, 4);
    make_powers(c, "scales", stacked, 3);
    c->import.expert = 2;
  } else if (s->kind == CHECKPOINT_NVFP4) {
    add2(c, s->flags & V2 ? "weight" : "weight_packed", LPGEMM_U8, 8, s->n, s->k / 2);
    uint8_t *scale = add(c, "weight_scale", LPGEMM_E4M3, 8, scales, 2);
    for (int64_t i = 0; i < scales[0] * scales[1]; i++) scale[i] = (uint8_t)test_between(0, 0x7e);
    add_global(c, s->flags & V2 ? "weight_scale_2" : "weight_global_scale", !(s->flags & V2));
  } else if (s->bits == 8) {
    add2(c, "weight", LPGEMM_E4M3, 8, s->n, s->k);
    make_powers(c, "weight_scale", scales, 2);
  } else {
    add2(c, "weight_packed", LPGEMM_U8, 8, s->n, s->k * s->bits / 8);
    make_powers(c, "weight_scale", scales, 2);
  }
}

static void make_bitsandbytes(checkpoint *c) {
  const checkpoint_spec *s = &c->spec;
  const int64_t blocks = ceil_div(s->n * s->k, s->group), one[4] = {blocks}, nested[4] = {ceil_div(blocks, 256)};
  const int64_t entries[4] = {16}, map[4] = {256};
  char json[256];
  const int length =
      snprintf(json, sizeof json,
               "{\"quant_type\": \"nf4\", \"blocksize\": %lld, \"dtype\": \"bfloat16\", \"shape\": [%lld, %lld]%s}",
               (long long)s->group, (long long)s->n, (long long)s->k,
               s->flags & NESTED ? ", \"nested_blocksize\": 256, \"nested_offset\": 0.03125" : "");
  const int64_t text[4] = {length};
  c->import.format = LPGEMM_FORMAT_BITSANDBYTES;
  add2(c, "weight", LPGEMM_U8, 8, s->n * s->k / 2, 1);
  memcpy(add(c, "weight.quant_state.bitsandbytes__nf4", LPGEMM_U8, 8, text, 1), json, (size_t)length);
  float *table = add(c, "weight.quant_map", LPGEMM_F32, 32, entries, 1);
  CHECK_STATUS(lpgemm_codebook_preset("nf4", table), LPGEMM_SUCCESS);
  if (s->flags & NESTED) {
    add(c, "weight.absmax", LPGEMM_U8, 8, one, 1);
    float *large = add(c, "weight.nested_absmax", LPGEMM_F32, 32, nested, 1);
    for (int64_t i = 0; i < nested[0]; i++) large[i] = (float)test_uniform(0.1, 0.2);
    float *values = add(c, "weight.nested_quant_map", LPGEMM_F32, 32, map, 1);
    for (int i = 0; i < 256; i++) values[i] = (float)test_uniform(-1, 1);
  } else {
    float *absmax = add(c, "weight.absmax", LPGEMM_F32, 32, one, 1);
    for (int64_t i = 0; i < blocks; i++) absmax[i] = (float)test_uniform(0.1, 0.2);
  }
}

static void add_setting(checkpoint *c, const char *name, int32_t value) {
  const int64_t none[4] = {0};
  int32_t *data = add(c, name, LPGEMM_I32, 32, none, 0);
  *data = value;
}

static void make_hqq(checkpoint *c) {
  const checkpoint_spec *s = &c->spec;
  const int64_t all = s->n * groups_of(s), two[4] = {2};
  const int64_t rows = s->bits == 3 ? ceil_div(all, 10) : s->bits >= 5 ? all : ceil_div(all, 8 / s->bits);
  c->import.format = LPGEMM_FORMAT_HQQ;
  uint8_t *codes = add2(c, "W_q", s->bits == 3 ? LPGEMM_I32 : LPGEMM_U8, s->bits == 3 ? 32 : 8, rows, s->group);
  for (int64_t i = 0; s->bits >= 5 && i < rows * s->group; i++) codes[i] &= (uint8_t)((1 << s->bits) - 1);
  add_scales(c, "scale", LPGEMM_F16, all, 1);
  add_scales(c, "zero", LPGEMM_F16, all, 1);
  int64_t *shape = add(c, "shape", LPGEMM_I64, 64, two, 1);
  shape[0] = s->n, shape[1] = s->k;
  add_setting(c, "nbits", s->bits);
  add_setting(c, "group_size", (int32_t)s->group);
  add_setting(c, "axis", 1);
}

static void make_bitnet(checkpoint *c) {
  const checkpoint_spec *s = &c->spec;
  c->import.format = s->flags & V2 ? LPGEMM_FORMAT_BITNET_AUTO : LPGEMM_FORMAT_BITNET;
  add2(c, "weight", LPGEMM_U8, 8, s->n / 4, s->k);
  add_global(c, "weight_scale", !(s->flags & V2));
}

void checkpoint_make(checkpoint *c, const checkpoint_spec *spec) {
  memset(c, 0, sizeof *c);
  c->spec = *spec;
  c->global = 1.0f;
  c->import.size = sizeof c->import;
  c->import.tensors = c->tensor;
  switch (spec->kind) {
    case CHECKPOINT_GPTQ: make_gptq(c); break;
    case CHECKPOINT_AWQ:
    case CHECKPOINT_AWQ_GEMV:
    case CHECKPOINT_AWQ_GEMV_FAST: make_awq(c); break;
    case CHECKPOINT_PACKED: make_packed(c); break;
    case CHECKPOINT_INT8:
    case CHECKPOINT_FP8: make_scaled(c); break;
    case CHECKPOINT_BITSANDBYTES: make_bitsandbytes(c); break;
    case CHECKPOINT_HQQ: make_hqq(c); break;
    case CHECKPOINT_BITNET: make_bitnet(c); break;
    default: make_micro(c); break;
  }
}

void checkpoint_free(checkpoint *c) {
  for (size_t i = 0; i < c->import.count; i++) test_free((void *)(uintptr_t)c->tensor[i].data);
}

lpgemm_tensor_t *checkpoint_tensor(checkpoint *c, const char *name) {
  for (size_t i = 0; i < c->import.count; i++) {
    if (strcmp(c->tensor[i].name, name) == 0) return &c->tensor[i];
  }
  test_fail(__FILE__, __LINE__, "no tensor %s", name);
  return &c->tensor[0];
}

/* ---- numbers ---- */

static const uint8_t *data_of(const checkpoint *c, const char *name) {
  for (size_t i = 0; i < c->import.count; i++) {
    if (strcmp(c->tensor[i].name, name) == 0) return c->tensor[i].data;
  }
  return NULL;
}

static double real_at(const checkpoint *c, const char *name, int64_t i) {
  const uint8_t *data = data_of(c, name);
  float f;
  memcpy(&f, data + 4 * i, 4);
  return (double)f;
}

static double half_at(const checkpoint *c, const char *name, int64_t i) {
  uint16_t h;
  memcpy(&h, data_of(c, name) + 2 * i, 2);
  return ldexp((h & 0x3ff) | 0x400, (h >> 10 & 31) - 25); /* positive and normal */
}

static double bfloat_at(const checkpoint *c, const char *name, int64_t i) {
  const uint8_t *data = data_of(c, name) + 2 * i;
  const uint32_t bits = (uint32_t)data[0] << 16 | (uint32_t)data[1] << 24;
  float f;
  memcpy(&f, &bits, 4);
  return (double)f;
}

/* A sign, an exponent, a mantissa; only E4M3 has NaN here. */
static double float_value(unsigned code, int e, int m) {
  const int exponent = (int)(code >> m) & ((1 << e) - 1), mantissa = (int)code & ((1 << m) - 1),
            bias = (1 << (e - 1)) - 1;
  if (e == 4 && m == 3 && (code & 0x7f) == 0x7f) return NAN;
  const double value = exponent ? ldexp(mantissa | 1 << m, exponent - bias - m) : ldexp(mantissa, 1 - bias - m);
  return code >> (e + m) & 1 ? -value : value;
}

/* Bits [first, first + count) of words that lie `stride` words apart, bit by bit. */
static int bits_at(const void *words, int64_t stride, int64_t first, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; i++) {
    uint32_t word;
    memcpy(&word, (const uint8_t *)words + (first + i) / 32 * stride * 4, 4);
    value |= (word >> (first + i) % 32 & 1) << i;
  }
  return (int)value;
}

/* The same of bytes. */
static int byte_bits_at(const uint8_t *bytes, int64_t first, int count) {
  int value = 0;
  for (int i = 0; i < count; i++) value |= (bytes[(first + i) / 8] >> (first + i) % 8 & 1) << i;
  return value;
}

/* ---- formulas ---- */

static double gptq(const checkpoint *c, int64_t n, int64_t k) {
  const checkpoint_spec *s = &c->spec;
  const int64_t g = bits_at(data_of(c, "g_idx"), 1, 32 * k, 32), words = ceil_div(s->n * s->bits, 32);
  const int code = bits_at(data_of(c, "qweight") + 4 * n, s->n, k * s->bits, s->bits);
  const uint8_t *zeros = data_of(c, "qzeros") + 4 * g * words;
  int zero = bits_at(zeros, 1, n * s->bits, s->bits);
  if (!(s->flags & V2)) { /* add one to the field, and the carries of the fields below it in its word */
    if (s->bits == 3) {
      zero = (zero + 1) % 8;
    } else {
      uint64_t word = (uint32_t)bits_at(zeros, 1, n * s->bits / 32 * 32, 32);
      for (int bit = 0; bit < 32; bit += s->bits) word += UINT64_C(1) << bit;
      zero = (int)(word >> n * s->bits % 32) & ((1 << s->bits) - 1);
    }
  }
  return (code - zero) * half_at(c, "scales", g * s->n + n);
}

static double awq(const checkpoint *c, int64_t n, int64_t k) {
  static const int column[8] = {0, 2, 4, 6, 1, 3, 5, 7};
  const checkpoint_spec *s = &c->spec;
  const int64_t g = k / group_of(s);
  int field = 0;
  while (column[field] != n % 8) field++;
  const int code = bits_at(data_of(c, "qweight"), 1, 32 * (k * (s->n / 8) + n / 8) + 4 * field, 4);
  const int zero = bits_at(data_of(c, "qzeros"), 1, 32 * (g * (s->n / 8) + n / 8) + 4 * field, 4);
  return (code - zero) * half_at(c, "scales", g * s->n + n);
}

static double awq_gemv(const checkpoint *c, int64_t n, int64_t k) {
  const checkpoint_spec *s = &c->spec;
  const int64_t g = k / group_of(s), z = padded_words(s);
  const int code = bits_at(data_of(c, "qweight"), 1, 4 * (n * s->k + k), 4);
  const int zero = bits_at(data_of(c, "qzeros"), 1, 4 * (n * z * 8 + g), 4);
  return (code - zero) * half_at(c, "scales", n * 8 * z + g);
}

static double awq_gemv_fast(const checkpoint *c, int64_t n, int64_t k) {
  const checkpoint_spec *s = &c->spec;
  const int64_t g = k / group_of(s);
  /* which of the 256 elements of 4 rows and 64 columns it is: column 8r + 2p + q of 32 lies at 8p + 4q + r */
  const int64_t in32 = k % 32, r = in32 / 8, p = in32 % 8 / 2, q = in32 % 2;
  const int64_t element = n % 4 * 64 + k % 64 / 32 * 32 + 8 * p + 4 * q + r;
  uint16_t word;
  memcpy(&word, data_of(c, "qweight") + 2 * (n / 4 * s->k + k / 64 * 64 + element / 4), 2);
  return (word >> element % 4 * 4 & 15) * half_at(c, "scales", g * s->n + n) + half_at(c, "qzeros", g * s->n + n);
}

static double packed(const checkpoint *c, int64_t n, int64_t k) {
  const checkpoint_spec *s = &c->spec;
  const int bits = s->bits, each = 32 / bits;
  const int64_t words = words_of(s, s->k);
  int64_t g = k / group_of(s);
  if (s->flags & ORDERED) g = bits_at(data_of(c, "weight_g_idx"), 1, 32 * k, 32);
  const int in_words = (s->flags & WORDS) != 0;
  const int64_t code_at = in_words ? k / each * 32 + k % each * bits : k * bits;
  const int64_t zero_at = in_words ? n / each * 32 + n % each * bits : n * bits;
  const int value = bits_at(data_of(c, "weight_packed") + 4 * n * words, 1, code_at, bits) - (1 << (bits - 1));
  int zero = 0;
  if (s->flags & ZEROS) {
    zero = bits_at(data_of(c, "weight_zero_point") + 4 * g, groups_of(s), zero_at, bits) - (1 << (bits - 1));
  }
  return (value - zero) * bfloat_at(c, "weight_scale", n * groups_of(s) + g);
}

static double scaled(const checkpoint *c, int64_t n, int64_t k) {
  const checkpoint_spec *s = &c->spec;
  const uint8_t byte = data_of(c, "weight")[n * s->k + k];
  double value = s->kind == CHECKPOINT_INT8 ? (double)(int8_t)byte : float_value(byte, 4, 3);
  if (s->flags & ZEROS) value -= (int8_t)data_of(c, "weight_zero_point")[n];
  if (s->group == 0) return value * (double)c->global;
  if (s->group < 0) return value * bfloat_at(c, "weight_scale", n);
  return value * real_at(c, "weight_scale_inv", n / s->group * groups_of(s) + k / s->group);
}

static double micro(const checkpoint *c, int64_t n, int64_t k) {
  const checkpoint_spec *s = &c->spec;
  const int64_t first = s->kind == CHECKPOINT_BLOCKS ? c->import.expert * s->n : 0, row = first + n;
  const char *names[] = {"blocks", "weight_packed", "weight"};
  const uint8_t *codes = NULL;
  for (int i = 0; i < 3 && !codes; i++) codes = data_of(c, names[i]);
  const int code = byte_bits_at(codes, (row * s->k + k) * s->bits, s->bits);
  const double value = float_value((unsigned)code, s->bits == 8 ? 4 : 2, s->bits == 4 ? 1 : 3);
  const uint8_t *scales = data_of(c, s->kind == CHECKPOINT_BLOCKS ? "scales" : "weight_scale");
  const uint8_t scale = scales[row * groups_of(s) + k / s->group];
  if (s->kind == CHECKPOINT_NVFP4) return value * float_value(scale, 4, 3) * (double)c->global;
  return value * ldexp(1.0, scale - 127);
}

static double bitsandbytes(const checkpoint *c, int64_t n, int64_t k) {
  const checkpoint_spec *s = &c->spec;
  const int64_t at = n * s->k + k, block = at / s->group;
  const int byte = data_of(c, "weight")[at / 2], code = at % 2 ? byte & 15 : byte >> 4;
  if (!(s->flags & NESTED)) return real_at(c, "weight.quant_map", code) * real_at(c, "weight.absmax", block);
  const float entry = (float)real_at(c, "weight.nested_quant_map", data_of(c, "weight.absmax")[block]);
  const float product = entry * (float)real_at(c, "weight.nested_absmax", block / 256);
  const float absmax = product + 0.03125f;
  return real_at(c, "weight.quant_map", code) * (double)absmax;
}

static double hqq(const checkpoint *c, int64_t n, int64_t k) {
  const checkpoint_spec *s = &c->spec;
  const int64_t row = n * groups_of(s) + k / s->group, column = k % s->group, all = s->n * groups_of(s);
  const uint8_t *codes = data_of(c, "W_q");
  int code;
  if (s->bits == 3) {
    const int64_t rows = ceil_div(all, 10);
    code = bits_at(codes, 1, 32 * (row % rows * s->group + column) + 27 - 3 * (row / rows), 3);
  } else if (s->bits >= 5) {
    code = codes[row * s->group + column];
  } else {
    const int64_t rows = ceil_div(all, 8 / s->bits), place = row / rows;
    code = byte_bits_at(codes, 8 * (row % rows * s->group + column) + 8 - s->bits * (place + 1), s->bits);
  }
  return (code - half_at(c, "zero", row)) * half_at(c, "scale", row);
}

static double bitnet(const checkpoint *c, int64_t n, int64_t k) {
  const int64_t quarter = c->spec.n / 4;
  const int code = data_of(c, "weight")[n % quarter * c->spec.k + k] >> 2 * (n / quarter) & 3;
  return (code - 1) * (double)c->global;
}

double checkpoint_value(const checkpoint *c, int64_t n, int64_t k) {
  switch (c->spec.kind) {
    case CHECKPOINT_GPTQ: return gptq(c, n, k);
    case CHECKPOINT_AWQ: return awq(c, n, k);
    case CHECKPOINT_AWQ_GEMV: return awq_gemv(c, n, k);
    case CHECKPOINT_AWQ_GEMV_FAST: return awq_gemv_fast(c, n, k);
    case CHECKPOINT_PACKED: return packed(c, n, k);
    case CHECKPOINT_INT8:
    case CHECKPOINT_FP8: return scaled(c, n, k);
    case CHECKPOINT_BITSANDBYTES: return bitsandbytes(c, n, k);
    case CHECKPOINT_HQQ: return hqq(c, n, k);
    case CHECKPOINT_BITNET: return bitnet(c, n, k);
    default: return micro(c, n, k);
  }
}
