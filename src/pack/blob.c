/* Checks the bytes of a packed matrix that may come from anywhere. The header comes first: the plan that it gives fits
 * the blob exactly, so that everything after it stays within the bytes. */
#include "pack.h"
#include "sections.h"

static int all_zero(const uint8_t *bytes, uint64_t count) {
  uint8_t all = 0;
  for (uint64_t i = 0; i < count; i++) all |= bytes[i];
  return all == 0;
}

/* ---- padding ---- */

static lpgemm_status_t check_gaps(const lpg_packed *packed, const uint8_t *bytes) {
  uint64_t end = LPG_HEADER_BYTES;
  for (int id = 0; id <= LPG_SECTIONS; id++) {
    uint64_t next = id < LPG_SECTIONS ? packed->section[id].offset : packed->total_bytes;
    if (next == 0) continue; /* absent */
    LPG_CHECK(all_zero(bytes + end, next - end), LPGEMM_CORRUPT_DATA,
              "the padding between byte %llu and byte %llu is not zero", (unsigned long long)end,
              (unsigned long long)next);
    if (id < LPG_SECTIONS) end = next + packed->section[id].bytes;
  }
  return LPGEMM_SUCCESS;
}

/* Rows n .. n_padded - 1, and columns k .. k_padded - 1 of the others. */
static lpgemm_status_t check_code_padding(const lpg_packed *packed, const uint8_t *bytes) {
  if (packed->section[LPG_SECTION_CODES].bytes == 0) return LPGEMM_SUCCESS; /* a header may claim any number of rows */
  int tile_k = lpg_tile_k(packed->bits);
  uint8_t codes[LPG_LONGEST_TILE_ROW], padding = lpg_padding_code(packed->desc.type);
  for (int64_t row = 0; row < packed->n_padded; row++) {
    int64_t real = lpg_row_of_packed(packed, row) >= 0 ? packed->desc.k : 0;
    for (int64_t tile = real / tile_k; tile < packed->k_tiles; tile++) {
      const uint8_t *from = bytes + packed->section[LPG_SECTION_CODES].offset +
                            lpg_tile_offset(packed->bits, packed->k_tiles, row / LPG_TILE_ROWS, tile);
      lpgemm_i_get_codes(packed->desc.type, from, (int)(row % LPG_TILE_ROWS), codes);
      for (int64_t i = tile * tile_k < real ? real - tile * tile_k : 0; i < tile_k; i++) {
        LPG_CHECK(codes[i] == padding, LPGEMM_CORRUPT_DATA,
                  "the code of padding row %lld, column %lld is not stored as 0", (long long)row,
                  (long long)(tile * tile_k + i));
      }
    }
  }
  return LPGEMM_SUCCESS;
}

/* Rows that share scales have the same ones in all 16 slots of a block; pairs in the 8 of each half. */
static lpgemm_status_t check_shared(const lpg_packed *packed, const uint8_t *bytes, lpg_section_id id) {
  const lpg_axis *axis = lpg_section_axis(packed, id);
  const uint32_t largest = lpg_largest_number(packed, id);
  for (int64_t block = 0; block < packed->scale_tiles; block++) {
    const int64_t row = block * packed->tiles_a_scale * LPG_TILE_ROWS;
    const int together = packed->desc.rows == LPGEMM_ROWS_PAIRED ? LPG_PAIR_ROWS : LPG_TILE_ROWS;
    for (int slot = 0; slot < LPG_TILE_ROWS; slot++) {
      const lpg_line line = lpg_line_of(packed, id, row + slot);
      const lpg_line first = lpg_line_of(packed, id, row + slot - slot % together);
      for (int64_t j = 0; j < axis->padded; j++) {
        const uint32_t number = lpg_get_number(&line, bytes, j), most = j < axis->count ? largest : 0;
        LPG_CHECK(
            number <= most && number == lpg_get_number(&first, bytes, j), LPGEMM_CORRUPT_DATA,
            "section %d holds %u at row %lld, group %lld; at most %u is legal there, and the same for all rows of "
            "the block",
            (int)id, (unsigned)number, (long long)(row + slot), (long long)j, (unsigned)most);
      }
    }
  }
  return LPGEMM_SUCCESS;
}

/* Scales of padding are 0, the others in their range. */
static lpgemm_status_t check_numbers(const lpg_packed *packed, const uint8_t *bytes, lpg_section_id id) {
  if (packed->section[id].bytes == 0) return LPGEMM_SUCCESS;
  if (packed->desc.group_n) return check_shared(packed, bytes, id);
  const lpg_axis *axis = lpg_section_axis(packed, id);
  uint32_t largest = lpg_largest_number(packed, id);
  for (int64_t row = 0; row < packed->n_padded; row++) {
    lpg_line line = lpg_line_of(packed, id, row);
    int64_t real = lpg_row_of_packed(packed, row) >= 0 ? axis->count : 0;
    for (int64_t j = largest == UINT32_MAX ? real : 0; j < axis->padded; j++) {
      uint32_t number = lpg_get_number(&line, bytes, j);
      LPG_CHECK(number <= (j < real ? largest : 0), LPGEMM_CORRUPT_DATA,
                "section %d holds %u at row %lld, group %lld; at most %u is legal there", (int)id, (unsigned)number,
                (long long)row, (long long)j, (unsigned)(j < real ? largest : 0));
    }
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_row_scales(const lpg_packed *packed, const uint8_t *bytes) {
  const lpg_section *section = &packed->section[LPG_SECTION_ROW_SCALES];
  const int64_t last = packed->n_padded - LPG_TILE_ROWS; /* padding is in the last row tile alone */
  for (int64_t row = last > 0 ? last : 0; row < packed->n_padded && section->bytes > 0; row++) {
    LPG_CHECK(lpg_row_of_packed(packed, row) >= 0 || all_zero(bytes + section->offset + 4 * row, 4),
              LPGEMM_CORRUPT_DATA, "the row scale of padding row %lld is not 0", (long long)row);
  }
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_check_blob_order(const lpg_packed *packed, const void *order) {
  lpgemm_status_t status = lpgemm_i_check_order("the column order", order, packed);
  return status == LPGEMM_INVALID_ARGUMENT ? LPGEMM_CORRUPT_DATA : status;
}

/* ---- what is derived from the scales ---- */

static lpgemm_status_t check_row_exponents(const lpg_packed *packed, const uint8_t *bytes, uint32_t scale_span) {
  uint32_t expected = 0;
  const uint8_t *exponents = bytes + packed->section[LPG_SECTION_ROW_EXPONENTS].offset;
  int64_t rows = (int64_t)packed->section[LPG_SECTION_ROW_EXPONENTS].bytes;
  for (int64_t row = 0; row < rows; row++) {
    const int is_real = lpg_row_of_packed(packed, row) >= 0;
    lpg_exponents found = is_real ? lpg_scan_exponents(packed, bytes, row) : lpg_no_exponents();
    int8_t right = lpg_row_exponent_of(found);
    if (lpg_span_of(found) > expected) expected = lpg_span_of(found);
    LPG_CHECK((int8_t)exponents[row] == right, LPGEMM_CORRUPT_DATA, "the exponent of row %lld is %d; its scales say %d",
              (long long)row, (int8_t)exponents[row], right);
  }
  LPG_CHECK(scale_span == expected, LPGEMM_CORRUPT_DATA, "the scale span is %u; the scales say %u",
            (unsigned)scale_span, (unsigned)expected);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_check_blob(const uint8_t *bytes, uint64_t size, int skip_checksum, lpg_packed *packed,
                                    lpg_content *content) {
  lpg_packed p;
  lpg_content c;
  LPG_TRY(lpgemm_i_read_header(bytes, size, &p, &c));
  const lpg_section *order = &p.section[LPG_SECTION_COLUMN_ORDER];
  if (order->bytes > 0) LPG_TRY(lpgemm_i_check_blob_order(&p, bytes + order->offset)); /* always: where to read in X */
  if (!skip_checksum) {
    LPG_CHECK(lpgemm_i_hash(bytes + LPG_HEADER_BYTES, size - LPG_HEADER_BYTES) == c.payload_hash, LPGEMM_CORRUPT_DATA,
              "the payload's checksum is wrong: the file is damaged");
    LPG_TRY(check_gaps(&p, bytes));
    LPG_TRY(check_code_padding(&p, bytes));
    for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++) {
      LPG_TRY(check_numbers(&p, bytes, (lpg_section_id)id));
    }
    LPG_TRY(check_row_scales(&p, bytes));
    LPG_TRY(check_row_exponents(&p, bytes, c.scale_span));
  }
  *packed = p;
  *content = c;
  return LPGEMM_SUCCESS;
}
