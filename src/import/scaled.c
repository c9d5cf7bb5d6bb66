/* One byte a code with scales beside: int8 and fp8 of compressed-tensors, of ModelOpt, and of DeepSeek with its scales
 * of 128 by 128 blocks, whose name says inverse although they multiply. */
#include "bits.h"
#include "import.h"

enum { USUAL_BLOCK = 128 };

/* ---- what the tensors say ---- */

/* How many rows or columns a block has so that `count` blocks cover `size`; 0 if that cannot be told. */
static int64_t block_size(int64_t size, int64_t count, int64_t wanted) {
  if (count == 1) return size;
  if (count == size) return 1;
  if (wanted && lpg_ceil_div(size, wanted) == count) return wanted;
  if (lpg_ceil_div(size, USUAL_BLOCK) == count) return USUAL_BLOCK;
  return size % count == 0 ? size / count : 0;
}

/* part->variant: rows of W that share a row of scales. */
static lpgemm_status_t set_blocks(const lpgemm_import_t *import, const lpgemm_tensor_t *scale, const int64_t *shape,
                                  lpg_part *part) {
  const int64_t n = part->desc.n, k = part->desc.k;
  char text[LPG_SHAPE_TEXT];
  const int64_t rows = block_size(n, shape[0], import->group_k), columns = block_size(k, shape[1], import->group_k);
  LPG_CHECK(
      rows && columns, LPGEMM_INVALID_ARGUMENT,
      "%s is %s, and no block of one size covers [%lld][%lld] with so many: set group_k to the columns of a block",
      scale->name, lpgemm_i_shape_text(scale, text), (long long)n, (long long)k);
  part->variant = (int32_t)rows;
  part->desc.group_n = rows % LPG_TILE_ROWS == 0 && rows < n ? rows : 0;
  if (shape[1] == 1) return LPGEMM_SUCCESS;
  lpgemm_import_t with_group = *import;
  with_group.group_k = columns;
  return lpgemm_i_set_group(&with_group, shape[1], scale->name, part);
}

/* Codes and scales may have experts in front. */
static lpgemm_status_t find_scales(const lpgemm_import_t *import, const lpgemm_tensor_t *scale, int stack, int zeros,
                                   lpg_part *part) {
  const int64_t n = part->desc.n, experts = stack ? part->codes->shape[0] : 1;
  char text[LPG_SHAPE_TEXT];
  int64_t shape[2] = {1, 1};
  LPG_CHECK(scale->dims <= stack + 2 && (!stack || scale->dims == 0 || scale->shape[0] == experts), LPGEMM_INVALID_SIZE,
            "%s is %s, which fits no matrix of %lld rows%s", scale->name, lpgemm_i_shape_text(scale, text),
            (long long)n, stack ? " with as many experts as weight" : "");
  for (int i = stack; i < scale->dims; i++) shape[i - stack] = scale->shape[i];
  if (shape[0] * shape[1] == 1 && !zeros && scale->type != LPGEMM_U8) {
    return lpgemm_i_global_scale(scale, import->expert, experts, 0, part);
  }
  LPG_TRY(set_blocks(import, scale, shape, part));
  part->scales = scale;
  part->desc.scale_type = scale->type == LPGEMM_U8 ? LPGEMM_E8M0 : scale->type;
  part->scale_data = (const uint8_t *)scale->data;
  if (stack && scale->dims > 0) {
    part->scale_data += import->expert * shape[0] * shape[1] * lpg_bytes(part->desc.scale_type);
  }
  return LPGEMM_SUCCESS;
}

/* Zeros, where there are any, are signed like the codes: both become unsigned. */
static lpgemm_status_t find_zeros(const lpgemm_tensor_t *zeros, const lpgemm_tensor_t *scale, lpg_part *part) {
  char text[LPG_SHAPE_TEXT];
  LPG_CHECK(
      part->desc.type == LPGEMM_I8 && lpgemm_i_elements(zeros) == lpgemm_i_elements(scale) && part->codes->dims == 2,
      LPGEMM_INVALID_SIZE, "weight_zero_point is %s; only a matrix of i8 has zeros, as many as scales",
      lpgemm_i_shape_text(zeros, text));
  part->zeros = zeros;
  part->desc.type = LPGEMM_U8;
  part->desc.zero = LPGEMM_ZERO_PER_GROUP, part->desc.zero_type = LPGEMM_U8;
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t open_scaled(const lpgemm_import_t *import, lpg_part *part) {
  static const lpgemm_dtype_t codes[] = {LPGEMM_I8, LPGEMM_E4M3, LPGEMM_E5M2, 0}, signed_bytes[] = {LPGEMM_I8, 0},
                              scales[] = {LPGEMM_F32, LPGEMM_BF16, LPGEMM_F16, LPGEMM_E8M0, LPGEMM_U8, 0};
  const lpgemm_tensor_t *scale, *zeros;
  char text[LPG_SHAPE_TEXT];
  LPG_TRY(lpgemm_i_need_tensor(import, "weight", codes, &part->codes));
  const lpgemm_tensor_t *weight = part->codes;
  const char *name;
  LPG_TRY(lpgemm_i_need_one_of(import, "weight_scale_inv", "weight_scale", &name));
  LPG_TRY(lpgemm_i_need_tensor(import, name, scales, &scale));
  LPG_TRY(lpgemm_i_may_have_tensor(import, "weight_zero_point", signed_bytes, &zeros));
  const int stack = weight->dims == 3;
  LPG_CHECK(weight->dims == 2 || stack, LPGEMM_INVALID_SIZE, "weight is %s; it must be [N][K], or [experts][N][K]",
            lpgemm_i_shape_text(weight, text));
  LPG_CHECK(import->expert < (stack ? weight->shape[0] : 1), LPGEMM_INVALID_ARGUMENT,
            "expert is %lld, but weight is %s: there are %lld", (long long)import->expert,
            lpgemm_i_shape_text(weight, text), (long long)(stack ? weight->shape[0] : 1));
  const int64_t n = part->desc.n = weight->shape[stack], k = part->desc.k = weight->shape[stack + 1];
  part->desc.type = weight->type;
  LPG_CHECK(n <= INT32_MAX && k <= INT32_MAX, LPGEMM_SIZE_OVERFLOW,
            "weight is %s; at most 2^31 - 1 rows and columns fit", lpgemm_i_shape_text(weight, text));
  part->code_data = (const uint8_t *)weight->data + import->expert * n * k;
  LPG_TRY(find_scales(import, scale, stack, zeros != NULL, part));
  return zeros ? find_zeros(zeros, scale, part) : LPGEMM_SUCCESS;
}

/* ---- codes and numbers ---- */

static void read_codes(const lpg_part *part, int64_t row, int64_t rows, uint8_t *codes) {
  const int64_t k = part->desc.k;
  memcpy(codes, part->code_data + row * k, (size_t)(rows * k));
  if (part->zeros) {
    for (int64_t i = 0; i < rows * k; i++) codes[i] ^= 0x80u;
  }
}

static void read_numbers(const lpg_part *part, lpg_section_id id, int64_t row, int64_t rows, void *out) {
  const lpgemm_tensor_t *from = part->scales; /* zeros are arranged like them */
  const int stack = part->codes->dims == 3;
  const int64_t columns = from->dims == stack + 2 ? from->shape[stack + 1] : 1;
  const int64_t bytes = columns * (id == LPG_SECTION_SCALES ? lpg_bytes(part->desc.scale_type) : 1);
  const uint8_t *data = id == LPG_SECTION_SCALES ? part->scale_data : part->zero_data;
  for (int64_t i = 0; i < rows; i++) {
    memcpy((uint8_t *)out + i * bytes, data + (row + i) / part->variant * bytes, (size_t)bytes);
  }
  if (id == LPG_SECTION_ZEROS) {
    for (int64_t i = 0; i < rows * bytes; i++) ((uint8_t *)out)[i] ^= 0x80u;
  }
}

const lpg_reader lpgemm_i_read_scaled = {LPGEMM_FORMAT_INT8_FP8, "int8 or fp8", open_scaled, read_codes, read_numbers};
