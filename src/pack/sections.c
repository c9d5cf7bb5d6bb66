/* What finishes a blob. */
#include "sections.h"

#include "pack.h"

void lpgemm_i_clear_numbers(const lpg_packed *packed, uint8_t *blob) {
  uint64_t first = LPG_HEADER_BYTES + packed->section[LPG_SECTION_CODES].bytes;
  memset(blob + first, 0, packed->total_bytes - first);
}

void lpgemm_i_seal(const lpg_packed *packed, uint8_t *blob, uint64_t hashed, uint64_t hash, lpg_content *content) {
  content->scale_span = 0;
  if (packed->section[LPG_SECTION_ROW_EXPONENTS].bytes > 0) {
    uint8_t *exponents = blob + packed->section[LPG_SECTION_ROW_EXPONENTS].offset;
    for (int64_t row = 0; row < packed->desc.n; row++) {
      lpg_exponents found = lpg_scan_exponents(packed, blob, row, 0, 1);
      exponents[row] = (uint8_t)lpg_row_exponent_of(found);
      if (lpg_span_of(found) > content->scale_span) content->scale_span = lpg_span_of(found);
    }
  }
  uint64_t rest = packed->total_bytes - LPG_HEADER_BYTES - hashed;
  content->payload_hash = hash + lpgemm_i_hash_part(blob + LPG_HEADER_BYTES + hashed, hashed, rest);
  lpgemm_i_write_header(packed, content, blob);
}
