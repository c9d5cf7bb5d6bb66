/* Micro-scaled floats: NVFP4 of compressed-tensors and of ModelOpt, MXFP4, 6 and 8, and the stacks of gpt-oss. Codes
 * are streams along K, low bits first. */
#include "bits.h"
#include "import.h"

enum { NV_GROUP = 16, MX_GROUP = 32, BLOCK_BYTES = 16 /* of gpt-oss: 32 numbers */ };

static const lpgemm_dtype_t bytes_or_e2m1[] = {LPGEMM_U8, LPGEMM_FLOAT(2, 1), 0}, e4m3[] = {LPGEMM_E4M3, 0},
                            powers[] = {LPGEMM_U8, LPGEMM_E8M0, 0}, real[] = {LPGEMM_F32, LPGEMM_BF16, LPGEMM_F16, 0};

/* A matrix in a tensor of `dims` dimensions, or an expert's in one of more. */
static lpgemm_status_t find_expert(const lpgemm_import_t *import, const lpgemm_tensor_t *t, int dims,
                                   const int64_t **shape, int64_t *experts) {
  char text[LPG_SHAPE_TEXT];
  const int stack = t->dims == dims + 1;
  LPG_CHECK(stack || t->dims == dims, LPGEMM_INVALID_SIZE,
            "%s is %s; it must have %d dimensions, or one more for experts", t->name, lpgemm_i_shape_text(t, text),
            dims);
  *experts = stack ? t->shape[0] : 1;
  *shape = t->shape + stack;
  LPG_CHECK(import->expert < *experts, LPGEMM_INVALID_ARGUMENT, "expert is %lld, but %s is %s: there are %lld",
            (long long)import->expert, t->name, lpgemm_i_shape_text(t, text), (long long)*experts);
  return LPGEMM_SUCCESS;
}

/* Sets the sizes of codes in rows of `row_bytes`, and finds scales of [N][ceil(K / group)]. */
static lpgemm_status_t set_matrix(const lpgemm_import_t *import, int64_t row_bytes, int bits, int64_t group,
                                  int64_t experts, lpg_part *part) {
  char text[LPG_SHAPE_TEXT];
  const int64_t n = part->desc.n, k = part->desc.k, groups = lpg_ceil_div(k, group);
  const lpgemm_tensor_t *s = part->scales;
  const int stack = experts > 1 || s->dims == 3;
  LPG_CHECK(s->dims == 2 + stack && (!stack || s->shape[0] == experts) && s->shape[stack] == n &&
                s->shape[stack + 1] == groups,
            LPGEMM_INVALID_SIZE,
            "%s is %s, but N = %lld and %lld columns of %d bits in groups of %lld need %s[%lld][%lld]", s->name,
            lpgemm_i_shape_text(s, text), (long long)n, (long long)k, bits, (long long)group, stack ? "[experts]" : "",
            (long long)n, (long long)groups);
  LPG_CHECK(import->group_k == 0 || import->group_k == group, LPGEMM_INVALID_ARGUMENT,
            "group_k is %lld, but this format has groups of %lld", (long long)import->group_k, (long long)group);
  LPG_CHECK(import->bits == 0 || import->bits == bits, LPGEMM_INVALID_ARGUMENT, "bits is %d, but %s and %s say %d",
            (int)import->bits, part->codes->name, s->name, bits);
  part->desc.group_k = k > group ? group : 0;
  part->code_data = (const uint8_t *)part->codes->data + import->expert * n * row_bytes;
  part->scale_data = (const uint8_t *)s->data + import->expert * n * groups;
  return LPGEMM_SUCCESS;
}

/* ---- NVFP4 ---- */

static lpgemm_status_t open_nvfp4(const lpgemm_import_t *import, lpg_part *part) {
  const lpgemm_tensor_t *scale = lpgemm_i_tensor(import, "weight_scale"), *global;
  char text[LPG_SHAPE_TEXT];
  LPG_CHECK(!scale || scale->dims != 1, LPGEMM_NOT_SUPPORTED,
            "weight_scale is one-dimensional: this is a swizzled copy; convert the checkpoint before swizzling");
  const char *codes, *factor;
  LPG_TRY(lpgemm_i_need_one_of(import, "weight_packed", "weight", &codes));
  LPG_TRY(lpgemm_i_need_one_of(import, "weight_global_scale", "weight_scale_2", &factor));
  const int divides = strcmp(factor, "weight_global_scale") == 0;
  LPG_TRY(lpgemm_i_need_tensor(import, codes, bytes_or_e2m1, &part->codes));
  LPG_TRY(lpgemm_i_need_tensor(import, "weight_scale", e4m3, &part->scales));
  LPG_TRY(lpgemm_i_need_tensor(import, factor, real, &global));
  const int64_t *shape;
  int64_t experts;
  LPG_TRY(find_expert(import, part->codes, 2, &shape, &experts));
  const int numbers = part->codes->type != LPGEMM_U8;
  LPG_CHECK(!numbers || shape[1] % 2 == 0, LPGEMM_INVALID_SIZE, "%s is %s; K must be even", part->codes->name,
            lpgemm_i_shape_text(part->codes, text));
  part->desc.n = shape[0];
  part->desc.k = numbers ? shape[1] : shape[1] * 2;
  part->desc.type = LPGEMM_FLOAT(2, 1);
  part->desc.scale_type = LPGEMM_E4M3;
  LPG_TRY(lpgemm_i_global_scale(global, import->expert, experts, divides, part));
  return set_matrix(import, part->desc.k / 2, 4, NV_GROUP, experts, part);
}

/* ---- MXFP ---- */

/* gpt-oss: blocks [experts][N][K / 32][16]. */
static lpgemm_status_t open_blocks(const lpgemm_import_t *import, lpg_part *part) {
  static const lpgemm_dtype_t bytes[] = {LPGEMM_U8, 0};
  char text[LPG_SHAPE_TEXT];
  const int64_t *shape;
  int64_t experts;
  LPG_TRY(lpgemm_i_need_tensor(import, "blocks", bytes, &part->codes));
  LPG_TRY(lpgemm_i_need_tensor(import, "scales", powers, &part->scales));
  LPG_TRY(find_expert(import, part->codes, 3, &shape, &experts));
  LPG_CHECK(shape[2] == BLOCK_BYTES, LPGEMM_INVALID_SIZE, "blocks is %s; blocks have 16 bytes",
            lpgemm_i_shape_text(part->codes, text));
  part->desc.n = shape[0], part->desc.k = shape[1] * MX_GROUP;
  part->desc.type = LPGEMM_FLOAT(2, 1);
  part->desc.scale_type = LPGEMM_E8M0;
  return set_matrix(import, part->desc.k / 2, 4, MX_GROUP, experts, part);
}

/* The width of packed codes follows from how many scales a row has; 0 if it does not. */
static int bits_of(const lpgemm_import_t *import, int64_t row_bytes, int64_t groups) {
  if (import->bits) return import->bits;
  int four = lpg_ceil_div(row_bytes * 2, MX_GROUP) == groups;
  int six = row_bytes % 3 == 0 && lpg_ceil_div(row_bytes / 3 * 4, MX_GROUP) == groups;
  return four == six ? 0 : four ? 4 : 6;
}

static lpgemm_status_t open_packed(const lpgemm_import_t *import, lpg_part *part) {
  char text[LPG_SHAPE_TEXT];
  const int64_t *shape;
  int64_t experts;
  LPG_TRY(lpgemm_i_need_tensor(import, "weight_packed", bytes_or_e2m1, &part->codes));
  LPG_TRY(find_expert(import, part->codes, 2, &shape, &experts));
  const int numbers = part->codes->type != LPGEMM_U8;
  LPG_CHECK(!numbers || shape[1] % 2 == 0, LPGEMM_INVALID_SIZE, "weight_packed is %s; K must be even",
            lpgemm_i_shape_text(part->codes, text));
  const int64_t row_bytes = numbers ? shape[1] / 2 : shape[1];
  int bits = numbers ? 4 : bits_of(import, row_bytes, part->scales->shape[part->scales->dims - 1]);
  LPG_CHECK(
      (bits == 4 || bits == 6) && row_bytes * 8 % bits == 0, LPGEMM_INVALID_ARGUMENT,
      "weight_packed is %s and weight_scale has %lld groups of 32 a row: that is neither 4 nor 6 bits, or both; set "
      "bits",
      lpgemm_i_shape_text(part->codes, text), (long long)part->scales->shape[part->scales->dims - 1]);
  part->desc.n = shape[0], part->desc.k = row_bytes * 8 / bits;
  part->desc.type = bits == 4 ? LPGEMM_FLOAT(2, 1) : LPGEMM_FLOAT(2, 3);
  return set_matrix(import, row_bytes, bits, MX_GROUP, experts, part);
}

static lpgemm_status_t open_mxfp(const lpgemm_import_t *import, lpg_part *part) {
  if (lpgemm_i_tensor(import, "blocks") || lpgemm_i_tensor(import, "scales")) return open_blocks(import, part);
  const char *codes;
  LPG_TRY(lpgemm_i_need_one_of(import, "weight_packed", "weight", &codes));
  char text[LPG_SHAPE_TEXT];
  LPG_TRY(lpgemm_i_need_tensor(import, "weight_scale", powers, &part->scales));
  LPG_CHECK(part->scales->dims >= 2, LPGEMM_NOT_SUPPORTED,
            "weight_scale is %s: this is a swizzled copy; convert the checkpoint before swizzling",
            lpgemm_i_shape_text(part->scales, text));
  part->desc.scale_type = LPGEMM_E8M0;
  if (strcmp(codes, "weight_packed") == 0) return open_packed(import, part);
  const int64_t *shape;
  int64_t experts;
  LPG_TRY(lpgemm_i_need_tensor(import, "weight", e4m3, &part->codes));
  LPG_TRY(find_expert(import, part->codes, 2, &shape, &experts));
  part->desc.n = shape[0], part->desc.k = shape[1];
  part->desc.type = LPGEMM_E4M3;
  return set_matrix(import, shape[1], 8, MX_GROUP, experts, part);
}

/* ---- codes and numbers ---- */

static void read_codes(const lpg_part *part, int64_t row, int64_t rows, uint8_t *codes) {
  const int bits = lpg_bits(part->desc.type);
  const int64_t k = part->desc.k, row_bytes = k * bits / 8;
  for (int64_t i = 0; i < rows; i++) {
    lpg_expand_any(part->code_data + (row + i) * row_bytes, k, bits, codes + i * k);
  }
}

static void read_numbers(const lpg_part *part, lpg_section_id id, int64_t row, int64_t rows, void *out) {
  const int64_t groups = part->desc.group_k ? lpg_ceil_div(part->desc.k, part->desc.group_k) : 1;
  (void)id; /* there are only scales, of a byte */
  memcpy(out, part->scale_data + row * groups, (size_t)(rows * groups));
}

const lpg_reader lpgemm_i_read_nvfp4 = {LPGEMM_FORMAT_NVFP4, "NVFP4", open_nvfp4, read_codes, read_numbers};
const lpg_reader lpgemm_i_read_mxfp = {LPGEMM_FORMAT_MXFP, "MXFP", open_mxfp, read_codes, read_numbers};
