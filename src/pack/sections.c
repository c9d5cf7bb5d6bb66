/* What finishes a blob. */
#include "sections.h"

#include "pack.h"

void lpgemm_i_begin_host(const lpg_packed *packed, uint8_t *blob) {
  uint64_t first = LPG_HEADER_BYTES + packed->section[LPG_SECTION_CODES].bytes;
  memset(blob, 0, LPG_HEADER_BYTES);
  memset(blob + first, 0, packed->total_bytes - first);
}

uint32_t lpgemm_i_put_exponents(const lpg_packed *packed, int64_t first_row, int64_t rows, uint8_t *blob) {
  uint32_t span = 0;
  if (packed->section[LPG_SECTION_ROW_EXPONENTS].bytes == 0) return 0;
  uint8_t *exponents = blob + packed->section[LPG_SECTION_ROW_EXPONENTS].offset;
  lpg_exponents found = lpg_no_exponents();
  for (int64_t row = first_row; row < first_row + rows; row++) {
    const int is_shared = packed->desc.group_n && row > first_row && row % packed->desc.group_n != 0;
    if (!is_shared) found = lpg_scan_exponents(packed, blob, row);
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
