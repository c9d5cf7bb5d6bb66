/* HQQ with groups along K (axis 1): the matrix is a list of groups, and a byte, or a word of 3 bits, has the same
 * column of several groups that lie far apart, the first in the highest bits. */
#include <math.h>

#include "bits.h"
#include "import.h"

enum { FIELDS_OF_THREE = 10, TOP_OF_THREE = 27 };

static const lpgemm_dtype_t integers[] = {LPGEMM_I32, LPGEMM_I64, LPGEMM_U8, LPGEMM_I16, LPGEMM_I8, 0},
                            settings[] = {LPGEMM_I32, LPGEMM_I64, LPGEMM_U8, LPGEMM_F32, LPGEMM_F16, LPGEMM_F64, 0},
                            reals[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32, 0};

/* W_q may be stored as another type of the same bytes (view_as_float). */
static const lpgemm_dtype_t anything[] = {LPGEMM_U8, LPGEMM_I32, LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32,
                                          LPGEMM_I8, LPGEMM_I16, LPGEMM_I64, LPGEMM_F64,  0};

/* ---- what the tensors say ---- */

/* A setting with one number; `otherwise` if it is not there. */
static lpgemm_status_t read_setting(const lpgemm_import_t *import, const char *name, double otherwise, double *value) {
  const lpgemm_tensor_t *t;
  char text[LPG_SHAPE_TEXT];
  LPG_TRY(lpgemm_i_may_have_tensor(import, name, settings, &t));
  LPG_CHECK(!t || lpgemm_i_elements(t) == 1, LPGEMM_INVALID_SIZE, "%s is %s; it must be one number", name,
            lpgemm_i_shape_text(t, text));
  *value = t ? lpgemm_i_real(t, 0) : otherwise;
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t read_shape(const lpgemm_import_t *import, lpg_part *part) {
  const lpgemm_tensor_t *shape;
  char text[LPG_SHAPE_TEXT];
  LPG_TRY(lpgemm_i_need_tensor(import, "shape", integers, &shape));
  LPG_CHECK(lpgemm_i_elements(shape) == 2, LPGEMM_INVALID_SIZE, "shape is %s; it must be [2]",
            lpgemm_i_shape_text(shape, text));
  const int64_t n = lpgemm_i_integer(shape, 0), k = lpgemm_i_integer(shape, 1);
  LPG_CHECK(n > 0 && k > 0 && n <= INT32_MAX && k <= INT32_MAX, LPGEMM_CORRUPT_DATA,
            "shape says %lld by %lld; both must be 1 to 2^31 - 1", (long long)n, (long long)k);
  part->desc.n = n, part->desc.k = k;
  return LPGEMM_SUCCESS;
}

/* Rows of bytes (3 bits: of words) that hold the codes of so many groups. */
static int64_t rows_for(int bits, int64_t all_groups) {
  if (bits == 3) return lpg_ceil_div(all_groups, FIELDS_OF_THREE);
  return bits >= 5 ? all_groups : lpg_ceil_div(all_groups, 8 / bits);
}

static lpgemm_status_t set_groups(const lpgemm_import_t *import, double group, lpg_part *part) {
  const int64_t k = part->desc.k;
  LPG_CHECK(group >= 0 && group <= INT32_MAX && group == floor(group), LPGEMM_CORRUPT_DATA,
            "group_size is %g; it must be an integer above 0", group);
  int64_t group_k = group == 0 ? k : (int64_t)group;
  LPG_CHECK(k % group_k == 0, LPGEMM_NOT_SUPPORTED,
            "group_size is %lld, which does not divide %lld columns: groups would cross rows", (long long)group_k,
            (long long)k);
  lpgemm_import_t with_group = *import;
  with_group.group_k = group_k;
  return lpgemm_i_set_group(&with_group, k / group_k, "group_size", part);
}

static int64_t group_of(const lpg_part *part) { return part->desc.group_k ? part->desc.group_k : part->desc.k; }

static lpgemm_status_t check_sizes(const lpg_part *part, int bits) {
  const int64_t group = group_of(part), all = part->desc.n * (part->desc.k / group);
  const uint64_t need = (uint64_t)(rows_for(bits, all) * group * (bits == 3 ? 4 : 1));
  LPG_CHECK(part->codes->bytes == need, LPGEMM_INVALID_SIZE,
            "W_q has %zu bytes, but %d bits of [%lld][%lld] in groups of %lld need %llu", part->codes->bytes, bits,
            (long long)part->desc.n, (long long)part->desc.k, (long long)group, (unsigned long long)need);
  const lpgemm_tensor_t *all_of[] = {part->scales, part->zeros};
  for (int i = 0; i < 2; i++) {
    LPG_CHECK(lpgemm_i_elements(all_of[i]) == all, LPGEMM_INVALID_SIZE,
              "%s has %lld numbers, but there are %lld groups", all_of[i]->name,
              (long long)lpgemm_i_elements(all_of[i]), (long long)all);
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t open_hqq(const lpgemm_import_t *import, lpg_part *part) {
  double bits, axis, group;
  LPG_TRY(lpgemm_i_no_stack(import, "HQQ"));
  LPG_TRY(read_setting(import, "axis", 1, &axis));
  LPG_CHECK(axis == 1, LPGEMM_NOT_SUPPORTED, "HQQ with axis %g has groups down the columns: quantise with axis = 1",
            axis);
  LPG_CHECK(!lpgemm_i_tensor(import, "scale_q") && !lpgemm_i_tensor(import, "zero_q"), LPGEMM_NOT_SUPPORTED,
            "scale_q or zero_q: HQQ whose scales or zeros are quantised themselves is not read; quantise with "
            "quant_scale and quant_zero off");
  LPG_TRY(read_setting(import, "nbits", import->bits, &bits));
  LPG_TRY(read_setting(import, "group_size", (double)import->group_k, &group));
  if (bits == 1.58) bits = 2; /* ternary codes are stored in 2 bits */
  LPG_CHECK(bits == 1 || bits == 2 || bits == 3 || bits == 4 || bits == 5 || bits == 6 || bits == 8,
            LPGEMM_NOT_SUPPORTED, "nbits is %g; HQQ has 1, 2, 3, 4, 5, 6 and 8", bits);
  LPG_TRY(read_shape(import, part));
  LPG_TRY(lpgemm_i_need_tensor(import, "W_q", anything, &part->codes));
  LPG_TRY(lpgemm_i_need_tensor(import, "scale", reals, &part->scales));
  LPG_TRY(lpgemm_i_need_tensor(import, "zero", reals, &part->zeros));
  lpgemm_weight_desc_t *d = &part->desc;
  d->type = LPGEMM_UINT((uint32_t)bits);
  d->scale_type = part->scales->type;
  d->zero = LPGEMM_ZERO_PER_GROUP, d->zero_type = part->zeros->type;
  LPG_TRY(set_groups(import, group, part));
  return check_sizes(part, (int)bits);
}

/* ---- codes and numbers ---- */

/* The codes of one group, from a row of bytes or words. */
static void read_group(const lpg_part *part, int bits, int64_t index, int64_t rows, int64_t group, uint8_t *codes) {
  const uint8_t *from = part->code_data + index % rows * group * (bits == 3 ? 4 : 1);
  const int place = (int)(index / rows);
  if (bits == 3) {
    const int shift = TOP_OF_THREE - 3 * place;
    for (int64_t c = 0; c < group; c++) codes[c] = (uint8_t)(lpg_get32(from + 4 * c) >> shift & 7u);
  } else if (bits >= 5) {
    memcpy(codes, from, (size_t)group);
  } else {
    const int shift = 8 - bits * (place + 1);
    const unsigned mask = (1u << bits) - 1u;
    for (int64_t c = 0; c < group; c++) codes[c] = (uint8_t)(from[c] >> shift & mask);
  }
}

static void read_codes(const lpg_part *part, int64_t row, int64_t rows, uint8_t *codes) {
  const int bits = lpg_bits(part->desc.type);
  const int64_t group = group_of(part), each = part->desc.k / group, stored = rows_for(bits, part->desc.n * each);
  for (int64_t i = 0; i < rows * each; i++) read_group(part, bits, row * each + i, stored, group, codes + i * group);
}

static void read_numbers(const lpg_part *part, lpg_section_id id, int64_t row, int64_t rows, void *out) {
  const int scales = id == LPG_SECTION_SCALES;
  const int64_t bytes =
      part->desc.k / group_of(part) * lpg_bytes(scales ? part->desc.scale_type : part->desc.zero_type);
  memcpy(out, (scales ? part->scale_data : part->zero_data) + row * bytes, (size_t)(rows * bytes));
}

const lpg_reader lpgemm_i_read_hqq = {LPGEMM_FORMAT_HQQ, "HQQ", open_hqq, read_codes, read_numbers};
