/* GGUF: its table of block types, and the reader of one matrix. */
#include "gguf.h"

#include <math.h>

#include "gguf_bits.h"

/* ---- the types ---- */

#define F16_GROUPS(type_, group) .type = (type_), .group_k = (group), .scale_type = LPGEMM_F16
#define TWO_LEVELS(type_, group, scale) \
  .type = (type_), .group_k = (group), .super_k = 256, .scale_type = (scale), .super_scale_type = LPGEMM_F16
#define CONSTANT(value) .zero = LPGEMM_ZERO_CONSTANT, .zero_constant = (value)
#define MINIMUM .zero = LPGEMM_ZERO_MINIMUM, .zero_type = LPGEMM_F16
#define MINIMUM_OF(type_) .zero = LPGEMM_ZERO_MINIMUM, .zero_type = (type_), .super_zero_type = LPGEMM_F16
#define IQ4_TABLE .codebook = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
#define IQ3_TABLE .codebook = {4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62}
#define IQ2_TABLE .codebook = {8, 25, 43, 0, -8, -25, -43, 0}
#define IQ1_TABLE .codebook = {-7, 1, 9, 0, -9, -1, 7, 0}
#define REMOVED "was removed from GGUF"
#define PLAIN "is no quantised matrix"
#define INTERNAL "is never in files: it is for activations"

/* Whole numbers in the codebooks of IQ1 to IQ3, and what is left in global_scale, so that the super scale is the file's
 * own f16. */
static const lpg_ggml types[] = {
    {0, "F32", NULL, PLAIN},
    {1, "F16", NULL, PLAIN},
    {2, "Q4_0", &lpgemm_i_q4_0, NULL, 32, 18, 0, -1, {F16_GROUPS(LPGEMM_UINT(4), 32), CONSTANT(8)}},
    {3, "Q4_1", &lpgemm_i_q4_1, NULL, 32, 20, 0, 2, {F16_GROUPS(LPGEMM_UINT(4), 32), MINIMUM}},
    {4, "Q4_2", NULL, REMOVED},
    {5, "Q4_3", NULL, REMOVED},
    {6, "Q5_0", &lpgemm_i_q5_0, NULL, 32, 22, 0, -1, {F16_GROUPS(LPGEMM_UINT(5), 32), CONSTANT(16)}},
    {7, "Q5_1", &lpgemm_i_q5_1, NULL, 32, 24, 0, 2, {F16_GROUPS(LPGEMM_UINT(5), 32), MINIMUM}},
    {8, "Q8_0", &lpgemm_i_q8_0, NULL, 32, 34, 0, -1, {F16_GROUPS(LPGEMM_INT(8), 32)}},
    {9, "Q8_1", NULL, INTERNAL},
    {10,
     "Q2_K",
     &lpgemm_i_q2_k,
     NULL,
     256,
     84,
     80,
     82,
     {TWO_LEVELS(LPGEMM_UINT(2), 16, LPGEMM_UINT(4)), MINIMUM_OF(LPGEMM_UINT(4))}},
    {11, "Q3_K", &lpgemm_i_q3_k, NULL, 256, 110, 108, -1, {TWO_LEVELS(LPGEMM_UINT(3), 16, LPGEMM_I8), CONSTANT(4)}},
    {12,
     "Q4_K",
     &lpgemm_i_q4_k,
     NULL,
     256,
     144,
     0,
     2,
     {TWO_LEVELS(LPGEMM_UINT(4), 32, LPGEMM_UINT(6)), MINIMUM_OF(LPGEMM_UINT(6))}},
    {13,
     "Q5_K",
     &lpgemm_i_q5_k,
     NULL,
     256,
     176,
     0,
     2,
     {TWO_LEVELS(LPGEMM_UINT(5), 32, LPGEMM_UINT(6)), MINIMUM_OF(LPGEMM_UINT(6))}},
    {14, "Q6_K", &lpgemm_i_q6_k, NULL, 256, 210, 208, -1, {TWO_LEVELS(LPGEMM_UINT(6), 16, LPGEMM_I8), CONSTANT(32)}},
    {15, "Q8_K", NULL, INTERNAL},
    {16,
     "IQ2_XXS",
     &lpgemm_i_iq2_xxs,
     NULL,
     256,
     66,
     0,
     -1,
     {TWO_LEVELS(LPGEMM_CODEBOOK(3), 32, LPGEMM_I8), IQ2_TABLE, .global_scale = 0.125f}},
    {17,
     "IQ2_XS",
     &lpgemm_i_iq2_xs,
     NULL,
     256,
     74,
     0,
     -1,
     {TWO_LEVELS(LPGEMM_CODEBOOK(3), 16, LPGEMM_I8), IQ2_TABLE, .global_scale = 0.125f}},
    {18,
     "IQ3_XXS",
     &lpgemm_i_iq3_xxs,
     NULL,
     256,
     98,
     0,
     -1,
     {TWO_LEVELS(LPGEMM_CODEBOOK(4), 32, LPGEMM_I8), IQ3_TABLE, .global_scale = 0.25f}},
    {19,
     "IQ1_S",
     &lpgemm_i_iq1_s,
     NULL,
     256,
     50,
     0,
     -1,
     {TWO_LEVELS(LPGEMM_CODEBOOK(3), 32, LPGEMM_I8), IQ1_TABLE, .global_scale = 0.125f}},
    {20, "IQ4_NL", &lpgemm_i_q4_0, NULL, 32, 18, 0, -1, {F16_GROUPS(LPGEMM_CODEBOOK(4), 32), IQ4_TABLE}},
    {21, "IQ3_S", &lpgemm_i_iq3_s, NULL, 256, 110, 0, -1, {TWO_LEVELS(LPGEMM_BIPOLAR(4), 32, LPGEMM_I8)}},
    {22,
     "IQ2_S",
     &lpgemm_i_iq2_s,
     NULL,
     256,
     82,
     0,
     -1,
     {TWO_LEVELS(LPGEMM_CODEBOOK(3), 16, LPGEMM_I8), IQ2_TABLE, .global_scale = 0.125f}},
    {23, "IQ4_XS", &lpgemm_i_iq4_xs, NULL, 256, 136, 0, -1, {TWO_LEVELS(LPGEMM_CODEBOOK(4), 32, LPGEMM_I8), IQ4_TABLE}},
    {24, "I8", NULL, PLAIN},
    {25, "I16", NULL, PLAIN},
    {26, "I32", NULL, PLAIN},
    {27, "I64", NULL, PLAIN},
    {28, "F64", NULL, PLAIN},
    {29,
     "IQ1_M",
     &lpgemm_i_iq1_m,
     NULL,
     256,
     56,
     -1,
     -1,
     {TWO_LEVELS(LPGEMM_CODEBOOK(3), 16, LPGEMM_I8), IQ1_TABLE, .global_scale = 0.125f}},
    {30, "BF16", NULL, PLAIN},
    {31, "Q4_0_4_4", NULL, REMOVED},
    {32, "Q4_0_4_8", NULL, REMOVED},
    {33, "Q4_0_8_8", NULL, REMOVED},
    {34, "TQ1_0", &lpgemm_i_tq1_0, NULL, 256, 54, 52, -1, {F16_GROUPS(LPGEMM_UINT(2), 256), CONSTANT(1)}},
    {35, "TQ2_0", &lpgemm_i_tq2_0, NULL, 256, 66, 64, -1, {F16_GROUPS(LPGEMM_UINT(2), 256), CONSTANT(1)}},
    {36, "IQ4_NL_4_4", NULL, REMOVED},
    {37, "IQ4_NL_4_8", NULL, REMOVED},
    {38, "IQ4_NL_8_8", NULL, REMOVED},
    {39,
     "MXFP4",
     &lpgemm_i_mxfp4,
     NULL,
     32,
     17,
     -1,
     -1,
     {.type = LPGEMM_FLOAT(2, 1), .group_k = 32, .scale_type = LPGEMM_E8M0}},
    {40,
     "NVFP4",
     &lpgemm_i_nvfp4,
     NULL,
     64,
     36,
     -1,
     -1,
     {.type = LPGEMM_FLOAT(2, 1), .group_k = 16, .scale_type = LPGEMM_E4M3}},
    {41, "Q1_0", &lpgemm_i_q1_0, NULL, 128, 18, 0, -1, {F16_GROUPS(LPGEMM_BIPOLAR(1), 128)}},
    {42, "Q2_0", &lpgemm_i_q2_0, NULL, 64, 18, 0, -1, {F16_GROUPS(LPGEMM_UINT(2), 64), CONSTANT(1)}},
};

enum { TYPES = (int)(sizeof types / sizeof types[0]) };

const lpg_ggml *lpgemm_i_ggml(int number) { return number >= 0 && number < TYPES ? &types[number] : NULL; }

lpgemm_status_t lpgemm_i_find_ggml(int number, const lpg_ggml **type) {
  const lpg_ggml *found = lpgemm_i_ggml(number);
  LPG_CHECK(found, LPGEMM_INVALID_TYPE, "GGUF type %d is not a type of this library: it has those of 0 to %d", number,
            TYPES - 1);
  LPG_CHECK(found->ops, LPGEMM_INVALID_TYPE, "GGUF type %d (%s) %s", number, found->name, found->why);
  *type = found;
  return LPGEMM_SUCCESS;
}

/* ---- the reader ---- */

/* [n][k], or [experts][n][k]: the three, each checked so that no product of bytes overflows. */
static lpgemm_status_t check_shape(const lpgemm_import_t *import, const lpgemm_tensor_t *t, const lpg_ggml *type,
                                   int64_t *experts, int64_t *n, int64_t *k) {
  LPG_CHECK(t->dims == 2 || t->dims == 3, LPGEMM_INVALID_SIZE,
            "weight has %d dimensions; a matrix has 2, a stack of experts 3", (int)t->dims);
  const int64_t *shape = t->shape + (t->dims - 2);
  *experts = t->dims == 3 ? t->shape[0] : 1;
  *n = shape[0];
  *k = shape[1];
  LPG_CHECK(*experts >= 0 && *n >= 0 && *k >= 0, LPGEMM_INVALID_SIZE, "weight has a negative size");
  LPG_CHECK(*k % type->block == 0, LPGEMM_INVALID_SIZE,
            "weight has %lld columns, but %s has blocks of %d: k must be a multiple", (long long)*k, type->name,
            type->block);
  LPG_CHECK(import->expert >= 0 && import->expert < *experts, LPGEMM_INVALID_ARGUMENT,
            "expert is %lld, but weight has %lld matrices", (long long)import->expert, (long long)*experts);
  int64_t row = *k / type->block, most = (INT64_C(1) << 62) / type->bytes;
  int fits = row <= most && (row == 0 || *n <= most / row);
  LPG_CHECK(fits && (row == 0 || *n == 0 || *experts <= most / row / *n), LPGEMM_SIZE_OVERFLOW,
            "weight has %lld x %lld x %lld numbers: too many to address", (long long)*experts, (long long)*n,
            (long long)*k);
  return LPGEMM_SUCCESS;
}

/* The tensor `scale` beside a matrix: one number, or one for each expert. */
static lpgemm_status_t read_scale(const lpgemm_tensor_t *t, int64_t expert, int64_t experts, lpg_part *part) {
  int64_t count = lpgemm_i_elements(t);
  LPG_CHECK(t->dims <= 1 && (count == 1 || count == experts), LPGEMM_INVALID_SIZE,
            "scale must be one number, or one for each of the %lld matrices of weight", (long long)experts);
  double factor = lpgemm_i_real(t, count == 1 ? 0 : expert);
  LPG_CHECK(isfinite(factor) && factor != 0.0, LPGEMM_CORRUPT_DATA, "scale is %g; it must be finite and not 0", factor);
  double product = factor * (part->desc.global_scale != 0.0f ? (double)part->desc.global_scale : 1.0);
  part->desc.global_scale = (float)product;
  part->global_name = t->name;
  LPG_CHECK((double)part->desc.global_scale == product, LPGEMM_NOT_SUPPORTED,
            "scale is %g: times the factor %g of the block's type it is no f32", factor, product / factor);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t open_gguf(const lpgemm_import_t *import, lpg_part *part) {
  static const lpgemm_dtype_t scale_types[] = {LPGEMM_F32, 0};
  const lpgemm_tensor_t *weight = lpgemm_i_tensor(import, "weight"), *scale;
  LPG_CHECK(weight, LPGEMM_INVALID_ARGUMENT, "there is no tensor weight: a matrix of GGUF is one tensor of that name");
  LPG_CHECK(LPGEMM_DTYPE_KIND(weight->type) == LPGEMM_KIND_GGML, LPGEMM_INVALID_TYPE,
            "weight is %s (0x%x); a quantised matrix of GGUF has a type LPGEMM_GGML(number)",
            lpgemm_dtype_name(weight->type), (unsigned)weight->type);
  const lpg_ggml *type;
  int64_t experts, n, k;
  LPG_TRY(lpgemm_i_find_ggml((int)(weight->type & 0xffff), &type));
  LPG_TRY(check_shape(import, weight, type, &experts, &n, &k));
  uint64_t matrix = (uint64_t)n * (uint64_t)(k / type->block) * (uint64_t)type->bytes;
  LPG_CHECK(weight->bytes == (uint64_t)experts * matrix, LPGEMM_INVALID_SIZE,
            "weight has %zu bytes, but %lld x %lld x %lld of %s, %d bytes for %d columns, need %llu", weight->bytes,
            (long long)experts, (long long)n, (long long)k, type->name, type->bytes, type->block,
            (unsigned long long)(uint64_t)experts * matrix);
  LPG_CHECK(weight->data || matrix == 0, LPGEMM_NULL_POINTER, "weight has no data");
  part->reader = &lpgemm_i_read_gguf;
  part->desc = type->desc;
  part->desc.size = sizeof part->desc;
  part->desc.n = n;
  part->desc.k = k;
  part->codes = weight;
  part->code_data = matrix ? (const uint8_t *)weight->data + (uint64_t)import->expert * matrix : NULL;
  part->variant = type->number;
  LPG_TRY(lpgemm_i_may_have_tensor(import, "scale", scale_types, &scale));
  return scale ? read_scale(scale, import->expert, experts, part) : LPGEMM_SUCCESS;
}

/* Rows follow one another, so that many of them are one run of blocks. */
static const uint8_t *blocks_of(const lpg_part *part, const lpg_ggml *type, int64_t row) {
  return part->code_data + row * (part->desc.k / type->block) * type->bytes;
}

static void read_codes(const lpg_part *part, int64_t row, int64_t rows, uint8_t *codes) {
  const lpg_ggml *type = lpgemm_i_ggml(part->variant);
  int64_t count = rows * (part->desc.k / type->block);
  if (count > 0) type->ops->codes(blocks_of(part, type, row), count, codes);
}

static void read_numbers(const lpg_part *part, lpg_section_id id, int64_t row, int64_t rows, void *out) {
  const lpg_ggml *type = lpgemm_i_ggml(part->variant);
  int64_t count = rows * (part->desc.k / type->block);
  if (count == 0) return;
  const uint8_t *blocks = blocks_of(part, type, row);
  int is_scale = type->scale_at >= 0 && id == lpg_scale_section(type);
  int is_minimum = type->minimum_at >= 0 && id == lpg_minimum_section(type);
  if (!is_scale && !is_minimum) {
    type->ops->numbers(blocks, count, id, out);
    return;
  }
  const uint8_t *from = blocks + (is_scale ? type->scale_at : type->minimum_at);
  uint32_t flip = is_minimum && type->desc.super_zero_type ? 0x8000u : 0; /* K-quants subtract their minima */
  uint8_t *to = out;
  for (int64_t i = 0; i < count; i++) lpg_put16(to + 2 * i, lpg_get16(from + i * type->bytes) ^ flip);
}

const lpg_reader lpgemm_i_read_gguf = {LPGEMM_FORMAT_GGUF, "GGUF", open_gguf, read_codes, read_numbers};
