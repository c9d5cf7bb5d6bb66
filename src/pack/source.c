/* Where the parts of a source lie, checked as far as that can be done without reading codes and numbers. */
#include "pack.h"
#include "sections.h"

typedef struct part {
  const char *name;
  const void *data;
  size_t bytes;
} part;

static part source_part(const lpgemm_weight_source_t *source, lpg_section_id id) {
  switch (id) {
    case LPG_SECTION_SCALES: return (part){"scales", source->scales, source->scales_bytes};
    case LPG_SECTION_ZEROS: return (part){"zeros", source->zeros, source->zeros_bytes};
    case LPG_SECTION_SUPER_SCALES: return (part){"super_scales", source->super_scales, source->super_scales_bytes};
    case LPG_SECTION_COLUMN_ORDER: return (part){"column_order", source->column_order, source->column_order_bytes};
    case LPG_SECTION_ROW_SCALES: return (part){"row_scales", source->row_scales, source->row_scales_bytes};
    default: return (part){"super_zeros", source->super_zeros, source->super_zeros_bytes};
  }
}

const void *lpgemm_i_source_array(const lpgemm_weight_source_t *source, lpg_section_id id) {
  return source_part(source, id).data;
}

/* ---- sizes ---- */

/* Rows of the source's arrays of scales and zeros. */
static int64_t scale_rows(const lpg_packed *packed, int64_t rows) {
  return packed->desc.group_n ? lpg_ceil_div(rows, packed->desc.group_n) : rows;
}

uint64_t lpgemm_i_codes_bytes(const lpg_packed *packed, const lpg_source *source) {
  const int64_t rows = source->source_rows, k = packed->desc.k > 0 ? packed->x_k : 0;
  uint64_t codes = rows > 0 && k > 0 ? (uint64_t)((rows - 1) * source->arrays.codes_ld + k) : 0;
  uint64_t bits = source->arrays.code_layout == LPGEMM_CODES_BITS ? (uint64_t)packed->bits : 8;
  return (codes * bits + 7) / 8;
}

uint64_t lpgemm_i_array_bytes(const lpg_packed *packed, const lpg_source *source, lpg_section_id id) {
  const int64_t rows = scale_rows(packed, source->source_rows), count = lpg_section_axis(packed, id)->count;
  const int is_row_major = source->arrays.order == LPGEMM_ROW_MAJOR;
  const int64_t lines = is_row_major ? rows : count, of_line = is_row_major ? count : rows;
  if (id == LPG_SECTION_ROW_SCALES) return packed->desc.row_scales ? (uint64_t)source->source_rows * 4 : 0;
  if (id == LPG_SECTION_COLUMN_ORDER) return packed->desc.columns ? (uint64_t)packed->desc.k * 4 : 0;
  if (lines == 0 || of_line == 0) return 0;
  return (uint64_t)((lines - 1) * lpg_source_ld(source, id) + of_line) *
         (uint64_t)lpg_bytes(lpg_section_type(&packed->desc, id));
}

/* ---- checks ---- */

static lpgemm_status_t check_bytes(const char *name, const void *data, uint64_t bytes, uint64_t needed) {
  LPG_CHECK(data != NULL || needed == 0, LPGEMM_NULL_POINTER, "source.%s is NULL, but the description needs %llu bytes",
            name, (unsigned long long)needed);
  LPG_CHECK(bytes >= needed, LPGEMM_BUFFER_TOO_SMALL, "source.%s_bytes is %llu; the description needs %llu", name,
            (unsigned long long)bytes, (unsigned long long)needed);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_aligned(const char *name, const void *data, lpgemm_dtype_t type) {
  LPG_CHECK((uintptr_t)data % (uintptr_t)lpg_bytes(type) == 0, LPGEMM_MISALIGNED,
            "source.%s is %p; an array of %s must be aligned to %d bytes", name, data, lpgemm_dtype_name(type),
            lpg_bytes(type));
  return LPGEMM_SUCCESS;
}

/* An array that the description has or has not. */
static lpgemm_status_t check_part(const lpg_packed *packed, const lpg_source *source, lpg_section_id id,
                                  lpgemm_dtype_t type) {
  const part p = source_part(&source->arrays, id);
  LPG_CHECK(type != 0 || (p.data == NULL && p.bytes == 0), LPGEMM_INVALID_ARGUMENT,
            "source.%s is given, but desc has none; set it in desc, or leave source.%s NULL and source.%s_bytes 0",
            p.name, p.name, p.name);
  if (type == 0) return LPGEMM_SUCCESS;
  LPG_TRY(check_bytes(p.name, p.data, p.bytes, lpgemm_i_array_bytes(packed, source, id)));
  return p.data ? check_aligned(p.name, p.data, type) : LPGEMM_SUCCESS;
}

static lpgemm_status_t resolve_ld(const lpg_packed *packed, const lpg_source *source, const char *name,
                                  lpg_section_id scales, lpg_section_id zeros, int64_t *ld) {
  const lpg_axis *axis = lpg_section_axis(packed, scales);
  const int is_read = lpg_section_type(&packed->desc, scales) || lpg_section_type(&packed->desc, zeros);
  const int is_row_major = source->arrays.order == LPGEMM_ROW_MAJOR;
  const int64_t rows = scale_rows(packed, source->source_rows);
  const int64_t lines = is_row_major ? rows : axis->count, of_line = is_row_major ? axis->count : rows;
  LPG_CHECK(*ld != 0 || is_row_major || !is_read || !source->arrays.row_order, LPGEMM_INVALID_ARGUMENT,
            "%s is 0, but with source.row_order and LPGEMM_COLUMN_MAJOR it must say how many rows the arrays have",
            name);
  if (*ld == 0) *ld = of_line;
  return lpgemm_i_check_ld(name, *ld, is_row_major ? "the number of groups" : "the number of rows", of_line, lines);
}

static lpgemm_status_t check_row_order(const lpg_packed *packed, lpg_source *source) {
  const int32_t *order = source->arrays.row_order;
  const int64_t group = packed->desc.group_n;
  source->source_rows = source->rows;
  LPG_CHECK(order || source->arrays.row_order_bytes == 0, LPGEMM_NULL_POINTER,
            "source.row_order is NULL, but source.row_order_bytes is %zu", source->arrays.row_order_bytes);
  if (!order) return LPGEMM_SUCCESS;
  LPG_TRY(check_bytes("row_order", order, source->arrays.row_order_bytes, (uint64_t)source->rows * 4));
  LPG_TRY(check_aligned("row_order", order, LPGEMM_F32));
  source->source_rows = 0;
  for (int64_t i = 0; i < source->rows; i++) {
    LPG_CHECK(order[i] >= 0, LPGEMM_INVALID_ARGUMENT, "source.row_order[%lld] is %d; a row is 0 or more", (long long)i,
              order[i]);
    LPG_CHECK(
        group == 0 || order[i] / group == order[i - i % group] / group, LPGEMM_INVALID_ARGUMENT,
        "source.row_order[%lld] is %d, a row of another block of desc.group_n = %lld than %d, with which it would "
        "share scales",
        (long long)i, order[i], (long long)group, order[i - i % group]);
    if (order[i] >= source->source_rows) source->source_rows = (int64_t)order[i] + 1;
  }
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_open_source(const lpg_packed *packed, const lpgemm_weight_source_t *arrays, int64_t rows,
                                     lpg_source *source) {
  lpgemm_weight_source_t *a = &source->arrays;
  LPG_CHECK(arrays, LPGEMM_NULL_POINTER, "source is NULL");
  LPG_TRY(lpgemm_i_copy_struct(a, sizeof *a, offsetof(lpgemm_weight_source_t, column_order), arrays, "source"));
  LPG_TRY(lpgemm_i_check_reserved(a->reserved, 4, "source"));
  source->rows = rows;
  LPG_CHECK(a->code_layout == LPGEMM_CODES_BYTES || a->code_layout == LPGEMM_CODES_BITS, LPGEMM_INVALID_ARGUMENT,
            "source.code_layout is %d; it must be LPGEMM_CODES_BYTES or LPGEMM_CODES_BITS", (int)a->code_layout);
  LPG_CHECK(a->order == LPGEMM_ROW_MAJOR || a->order == LPGEMM_COLUMN_MAJOR, LPGEMM_INVALID_ARGUMENT,
            "source.order is %d; it must be LPGEMM_ROW_MAJOR or LPGEMM_COLUMN_MAJOR", (int)a->order);
  LPG_TRY(check_row_order(packed, source));
  if (a->codes_ld == 0) a->codes_ld = packed->x_k;
  LPG_TRY(lpgemm_i_check_ld("source.codes_ld", a->codes_ld, packed->desc.x_k ? "desc.x_k" : "desc.k", packed->x_k,
                            source->source_rows));
  LPG_TRY(check_bytes("codes", a->codes, a->codes_bytes, lpgemm_i_codes_bytes(packed, source)));
  LPG_TRY(resolve_ld(packed, source, "source.scales_ld", LPG_SECTION_SCALES, LPG_SECTION_ZEROS, &a->scales_ld));
  LPG_TRY(
      resolve_ld(packed, source, "source.super_ld", LPG_SECTION_SUPER_SCALES, LPG_SECTION_SUPER_ZEROS, &a->super_ld));
  for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++) {
    LPG_TRY(check_part(packed, source, (lpg_section_id)id, lpg_section_type(&packed->desc, (lpg_section_id)id)));
  }
  LPG_TRY(check_part(packed, source, LPG_SECTION_ROW_SCALES, packed->desc.row_scales));
  LPG_TRY(check_part(packed, source, LPG_SECTION_COLUMN_ORDER, packed->desc.columns ? LPGEMM_I32 : 0));
  return packed->desc.columns ? lpgemm_i_check_order("source.column_order", a->column_order, packed) : LPGEMM_SUCCESS;
}

/* ---- what reading finds ---- */

lpgemm_status_t lpgemm_i_refuse_code(const lpg_packed *packed, uint8_t code, int64_t row, int64_t column) {
  LPG_CHECK(0, LPGEMM_INVALID_CODE,
            "source.codes holds 0x%02x at row %lld, column %lld; a code of %s is at most 0x%02x%s", (unsigned)code,
            (long long)row, (long long)column, lpgemm_dtype_name(packed->desc.type), (1u << packed->bits) - 1u,
            lpg_kind(packed->desc.type) == LPGEMM_KIND_INT ? " (mask off the sign extension)" : "");
}

lpgemm_status_t lpgemm_i_refuse_number(const lpg_packed *packed, lpg_section_id id, uint32_t number, int64_t row,
                                       int64_t group) {
  static const lpgemm_weight_source_t nothing;
  LPG_CHECK(0, LPGEMM_INVALID_CODE, "source.%s holds %u at row %lld, group %lld; the largest legal number there is %u",
            source_part(&nothing, id).name, (unsigned)number, (long long)row, (long long)group,
            (unsigned)lpg_largest_number(packed, id));
}
