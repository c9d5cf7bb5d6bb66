/* compressed-tensors, pack-quantized: codes along K in 32-bit words. Two arrangements go by one name: a dense stream of
 * bits, and before that as many whole fields as a word has room for. */
#include "bits.h"
#include "import.h"

enum { DENSE = 1, WHOLE_FIELDS = 2 };

static int64_t words_for(int variant, int64_t codes, int bits) {
  return variant == DENSE ? lpg_ceil_div(codes * bits, 32) : lpg_ceil_div(codes, 32 / bits);
}

/* ---- what the tensors say ---- */

/* The one width with which so many columns fill so many words; 0 if there is none or more than one. */
static int bits_of(int64_t k, int64_t words) {
  int found = 0;
  for (int b = 1; b <= 8; b++) {
    if (words_for(DENSE, k, b) != words && words_for(WHOLE_FIELDS, k, b) != words) continue;
    if (found) return 0;
    found = b;
  }
  return found;
}

/* So few columns that they fill one word are the same in both arrangements, but their zeros are not. */
static lpgemm_status_t find_variant(const lpg_part *part, int bits, int64_t words, int has_zeros, int *variant) {
  const int64_t k = part->desc.k, dense = words_for(DENSE, k, bits), whole = words_for(WHOLE_FIELDS, k, bits);
  *variant = words == dense ? DENSE : WHOLE_FIELDS;
  if (words != dense && dense != whole) {
    LPG_CHECK(
        words == whole, LPGEMM_INVALID_SIZE,
        "weight_packed: %d bits in %lld words for %lld columns is dense, in %lld one field a code: %lld is neither",
        bits, (long long)dense, (long long)k, (long long)whole, (long long)words);
  }
  LPG_CHECK(words == dense || words == whole, LPGEMM_INVALID_SIZE,
            "weight_packed has %lld words a row, but weight_shape says %lld columns: %d bits need %lld",
            (long long)words, (long long)k, bits, (long long)dense);
  LPG_CHECK(
      dense != whole || 32 % bits == 0 || (k <= 32 / bits && !has_zeros), LPGEMM_NOT_SUPPORTED,
      "weight_packed has %lld words for %lld columns of %d bits, as many dense as with one field a code: which of "
      "both it is cannot be told; pack the layer again with more columns",
      (long long)words, (long long)k, bits);
  return LPGEMM_SUCCESS;
}

/* One number, one a row, or one a group. */
static lpgemm_status_t read_scales(const lpgemm_import_t *import, const lpgemm_tensor_t *scale,
                                   const lpgemm_tensor_t *g_idx, lpg_part *part) {
  const int64_t n = part->desc.n, elements = lpgemm_i_elements(scale);
  char shape[LPG_SHAPE_TEXT];
  if (elements == 1 && n > 1) return lpgemm_i_global_scale(scale, 0, 1, 0, part);
  LPG_CHECK(elements % n == 0 && scale->dims >= 1 && scale->dims <= 2 && scale->shape[0] == n, LPGEMM_INVALID_SIZE,
            "weight_scale is %s; it must be [N][groups], and weight_shape says N = %lld",
            lpgemm_i_shape_text(scale, shape), (long long)n);
  part->scales = scale;
  part->desc.scale_type = scale->type;
  return lpgemm_i_set_order(import, g_idx, elements / n, "weight_scale", part);
}

static lpgemm_status_t read_zeros(const lpgemm_tensor_t *zeros, int bits, lpg_part *part) {
  lpgemm_weight_desc_t *d = &part->desc;
  d->zero = LPGEMM_ZERO_CONSTANT, d->zero_constant = (float)(1 << (bits - 1));
  if (!zeros) return LPGEMM_SUCCESS;
  const int64_t groups = d->group_k ? lpg_ceil_div(d->k, d->group_k) : 1;
  LPG_TRY(lpgemm_i_need_matrix(zeros, words_for(part->variant, d->n, bits), groups, "%d bits, N = %lld and %lld groups",
                               bits, (long long)d->n, (long long)groups));
  d->zero = LPGEMM_ZERO_PER_GROUP, d->zero_type = LPGEMM_U8, d->zero_constant = 0.0f;
  part->zeros = zeros;
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t open_packed(const lpgemm_import_t *import, lpg_part *part) {
  static const lpgemm_dtype_t words[] = {LPGEMM_I32, LPGEMM_U32, 0}, ints[] = {LPGEMM_I64, LPGEMM_I32, 0},
                              reals[] = {LPGEMM_BF16, LPGEMM_F16, LPGEMM_F32, 0};
  const lpgemm_tensor_t *packed, *shape, *scale, *zeros, *g_idx;
  char text[LPG_SHAPE_TEXT];
  LPG_TRY(lpgemm_i_no_stack(import, "pack-quantized"));
  LPG_TRY(lpgemm_i_need_tensor(import, "weight_packed", words, &packed));
  LPG_TRY(lpgemm_i_need_tensor(import, "weight_shape", ints, &shape));
  LPG_TRY(lpgemm_i_need_tensor(import, "weight_scale", reals, &scale));
  LPG_TRY(lpgemm_i_may_have_tensor(import, "weight_zero_point", words, &zeros));
  LPG_TRY(lpgemm_i_may_have_tensor(import, "weight_g_idx", ints, &g_idx));
  LPG_CHECK(lpgemm_i_elements(shape) == 2, LPGEMM_INVALID_SIZE, "weight_shape is %s; it must be [2]",
            lpgemm_i_shape_text(shape, text));
  const int64_t n = lpgemm_i_integer(shape, 0), k = lpgemm_i_integer(shape, 1);
  LPG_CHECK(n > 0 && k > 0 && n <= INT32_MAX && k <= INT32_MAX, LPGEMM_CORRUPT_DATA,
            "weight_shape says %lld by %lld; both must be 1 to 2^31 - 1", (long long)n, (long long)k);
  LPG_CHECK(packed->dims == 2 && packed->shape[0] == n, LPGEMM_INVALID_SIZE,
            "weight_packed is %s, but weight_shape says N = %lld rows", lpgemm_i_shape_text(packed, text),
            (long long)n);
  const int bits = import->bits ? import->bits : bits_of(k, packed->shape[1]);
  LPG_CHECK(
      bits >= 1 && bits <= 8, LPGEMM_INVALID_ARGUMENT,
      "bits is %d, and weight_packed with %lld words for %lld columns fits no width, or more than one: set it to 1 "
      "to 8",
      (int)import->bits, (long long)packed->shape[1], (long long)k);
  part->desc.n = n, part->desc.k = k;
  part->desc.type = LPGEMM_UINT(bits);
  part->codes = packed;
  LPG_TRY(find_variant(part, bits, packed->shape[1], zeros != NULL, &part->variant));
  LPG_TRY(read_scales(import, scale, g_idx, part));
  return read_zeros(zeros, bits, part);
}

/* ---- codes and numbers ---- */

static void read_codes(const lpg_part *part, int64_t row, int64_t rows, uint8_t *codes) {
  const int bits = lpg_bits(part->desc.type), each = 32 / bits;
  const int64_t k = part->desc.k, words = part->codes->shape[1];
  for (int64_t i = 0; i < rows; i++) {
    const uint8_t *from = part->code_data + (row + i) * words * 4;
    if (part->variant == DENSE) {
      lpg_expand_any(from, k, bits, codes + i * k);
      continue;
    }
    for (int64_t w = 0, at = 0; at < k; w++, at += each) {
      uint32_t word = lpg_get32(from + w * 4);
      int64_t count = k - at < each ? k - at : each;
      for (int64_t j = 0; j < count; j++) codes[i * k + at + j] = (uint8_t)(word >> j * bits & ((1u << bits) - 1u));
    }
  }
}

/* Zeros are packed down N, each column of them as a row of codes is. */
static uint8_t zero_at(const lpg_part *part, int64_t n, int64_t g) {
  const int bits = lpg_bits(part->desc.type), each = 32 / bits;
  const int64_t next = part->zeros->shape[1] * 4;
  const uint8_t *column = part->zero_data + g * 4;
  if (part->variant == DENSE) return (uint8_t)lpg_field_at(column, next, n, bits);
  return (uint8_t)(lpg_get32(column + n / each * next) >> n % each * bits & ((1u << bits) - 1u));
}

static void read_numbers(const lpg_part *part, lpg_section_id id, int64_t row, int64_t rows, void *out) {
  const int64_t groups = part->desc.group_k ? lpg_ceil_div(part->desc.k, part->desc.group_k) : 1;
  if (id == LPG_SECTION_SCALES) {
    const int64_t bytes = groups * lpg_bytes(part->desc.scale_type);
    memcpy(out, part->scale_data + row * bytes, (size_t)(rows * bytes));
    return;
  }
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t g = 0; g < groups; g++) ((uint8_t *)out)[i * groups + g] = zero_at(part, row + i, g);
  }
}

const lpg_reader lpgemm_i_read_compressed = {LPGEMM_FORMAT_PACK_QUANTIZED, "pack-quantized", open_packed, read_codes,
                                             read_numbers};
