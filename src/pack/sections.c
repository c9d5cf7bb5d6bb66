/* What finishes a blob. */
#include "sections.h"

#include "pack.h"

void lpgemm_i_begin_host(const lpg_packed *packed, uint8_t *blob) {
  uint64_t first = LPG_HEADER_BYTES + packed->section[LPG_SECTION_CODES].bytes;
  memset(blob, 0, LPG_HEADER_BYTES);
  memset(blob + first, 0, packed->total_bytes - first);
}

/* As lpg_scan_exponents() for a whole row of scales on two levels, whose codes are small integers: of the groups under
 * one super scale only the smallest and the largest count, for exponents are in the order of magnitudes. */
static lpg_exponents scan_two_levels(const lpg_packed *packed, const uint8_t *blob, int64_t row) {
  const lpg_line scales = lpg_line_of(packed, LPG_SECTION_SCALES, row),
                 supers = lpg_line_of(packed, LPG_SECTION_SUPER_SCALES, row);
  lpg_exponents found = lpg_no_exponents();
  for (int64_t j = 0, s = 0; j < packed->group.count; s++) {
    /* a super-group that is the whole row ends with its padding, which need not be the end of a group */
    const int64_t all = lpg_ceil_div((s + 1) * packed->super.k, packed->group.k);
    const int64_t end = all < packed->group.count ? all : packed->group.count;
    const float super = lpg_line_value(&supers, blob, s);
    uint32_t least = UINT32_MAX, most = 0;
    for (; j < end; j++) {
      const uint32_t code = lpg_get_number(&scales, blob, j);
      const uint32_t magnitude = scales.type == LPGEMM_I8 && code > 127 ? 256 - code : code;
      if (magnitude > most) most = magnitude;
      if (magnitude != 0 && magnitude < least) least = magnitude;
    }
    if (!(super - super == 0.0f)) {
      found.bad = 1;
    } else if (most != 0 && super != 0.0f) {
      const float high = super * (float)most;
      if (!(high - high == 0.0f)) return lpg_scan_exponents(packed, blob, row, 0, 1);
      const int from = lpg_exponent_of(super * (float)least), to = lpg_exponent_of(high);
      if (from < found.low) found.low = from;
      if (to > found.high) found.high = to;
    }
  }
  return found;
}

static lpg_exponents scan_row(const lpg_packed *packed, const uint8_t *blob, int64_t row) {
  const lpgemm_dtype_t type = packed->desc.scale_type;
  const int small = type == LPGEMM_UINT(4) || type == LPGEMM_UINT(6) || type == LPGEMM_I8;
  return packed->desc.super_scale_type && small ? scan_two_levels(packed, blob, row)
                                                : lpg_scan_exponents(packed, blob, row, 0, 1);
}

uint32_t lpgemm_i_put_exponents(const lpg_packed *packed, int64_t first_row, int64_t rows, uint8_t *blob) {
  uint32_t span = 0;
  if (packed->section[LPG_SECTION_ROW_EXPONENTS].bytes == 0) return 0;
  uint8_t *exponents = blob + packed->section[LPG_SECTION_ROW_EXPONENTS].offset;
  lpg_exponents found = lpg_no_exponents();
  for (int64_t row = first_row; row < first_row + rows; row++) {
    const int is_shared = packed->desc.group_n && row > first_row && row % packed->desc.group_n != 0;
    if (!is_shared) found = scan_row(packed, blob, row);
    exponents[row] = (uint8_t)lpg_row_exponent_of(found);
    if (lpg_span_of(found) > span) span = lpg_span_of(found);
  }
  return span;
}

void lpgemm_i_add_content(lpg_content *sum, const lpg_content *part) {
  sum->payload_hash += part->payload_hash;
  sum->is_whole |= part->is_whole;
  if (part->scale_span > sum->scale_span) sum->scale_span = part->scale_span;
}

void lpgemm_i_finish_host(const lpg_packed *packed, uint8_t *blob, lpg_content *content) {
  const int is_paired = packed->desc.rows == LPGEMM_ROWS_PAIRED; /* words have codes of both halves: none hashed them */
  const uint64_t hashed = is_paired ? 0 : packed->section[LPG_SECTION_CODES].bytes;
  const uint64_t rest = packed->total_bytes - LPG_HEADER_BYTES - hashed;
  content->payload_hash += lpgemm_i_hash_part(blob + LPG_HEADER_BYTES + hashed, hashed, rest);
  lpgemm_i_write_header(packed, content, blob);
}
