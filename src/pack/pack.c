/* From the arrays of a checkpoint to packed rows. */
#include "pack.h"
#include "sections.h"

/* ---- codes ---- */

/* Of 2 * n codes that stand side by side from every multiple of 16 * n bits on, the upper n move to the middle. */
LPG_INLINE uint64_t split(uint64_t codes, int bits, int n) {
  const uint64_t ones = n == 4 ? 1 : n == 2 ? 0x0000000100000001ULL : 0x0001000100010001ULL;
  const uint64_t low = ((UINT64_C(1) << n * bits) - 1) * ones;
  return (codes & low) | (codes >> n * bits & low) << 8 * n;
}

/* Codes of a bit stream from bit `at` on, one a byte, 8 at a time: they fill `bits` bytes, or one more if they begin
 * inside a byte. */
LPG_INLINE void expand_eights(const uint8_t *stream, uint64_t at, int bits, int64_t count, uint8_t *codes) {
  const int shift = (int)(at % 8);
  const uint8_t *from = stream + at / 8;
  for (int64_t i = 0; i + 8 <= count; i += 8, from += bits) {
    uint64_t eight = 0;
    memcpy(&eight, from, (size_t)bits);
    if (shift > 0) eight = eight >> shift | (uint64_t)from[bits] << (8 * bits - shift);
    eight = split(eight, bits, 4);
    eight = split(eight, bits, 2);
    eight = split(eight, bits, 1);
    memcpy(codes + i, &eight, sizeof eight);
  }
}

static void expand_bits(const uint8_t *stream, uint64_t at, int bits, int64_t count, uint8_t *codes) {
  switch (bits) {
    case 1: expand_eights(stream, at, 1, count, codes); break;
    case 2: expand_eights(stream, at, 2, count, codes); break;
    case 3: expand_eights(stream, at, 3, count, codes); break;
    case 4: expand_eights(stream, at, 4, count, codes); break;
    case 5: expand_eights(stream, at, 5, count, codes); break;
    case 6: expand_eights(stream, at, 6, count, codes); break;
    case 7: expand_eights(stream, at, 7, count, codes); break;
    default: expand_eights(stream, at, 8, count, codes); break;
  }
  for (int64_t i = count / 8 * 8; i < count; i++) codes[i] = lpg_stream_code(stream, at + (uint64_t)(i * bits), bits);
}

/* Codes of stored columns [column, column + count) of a row of the source: in place if they lie there one a byte, else
 * in `buffer`. */
static const uint8_t *source_codes(const lpg_packed *packed, const lpg_source *source, int64_t row, int64_t column,
                                   int64_t count, uint8_t *buffer) {
  const uint8_t *codes = source->arrays.codes;
  const int32_t *order = packed->desc.columns ? source->arrays.column_order + column : NULL;
  const int64_t first = lpg_source_row(source, row) * source->arrays.codes_ld;
  const int in_bytes = source->arrays.code_layout == LPGEMM_CODES_BYTES, bits = packed->bits;
  if (in_bytes && !order) return codes + first + column;
  if (in_bytes) {
    for (int64_t i = 0; i < count; i++) buffer[i] = codes[first + order[i]];
  } else if (order) {
    for (int64_t i = 0; i < count; i++) {
      buffer[i] = lpg_stream_code(codes, (uint64_t)(first + order[i]) * (uint64_t)bits, bits);
    }
  } else {
    expand_bits(codes, (uint64_t)(first + column) * (uint64_t)bits, bits, count, buffer);
  }
  return buffer;
}

/* Nothing of it is above the mask. Eight at a time; the rest of a short row is looked at twice. */
static int is_within(const uint8_t *codes, int64_t count, uint8_t mask) {
  const uint64_t masks = mask * 0x0101010101010101ULL;
  uint64_t all = 0, eight;
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    memcpy(&eight, codes + i, sizeof eight);
    all |= eight;
  }
  for (; i < count; i++) all |= codes[i];
  return (all & ~masks) == 0;
}

/* Which one of a row tile is too wide: the first by rows. */
static void find_wide_code(const lpg_packed *packed, const lpg_source *source, int64_t first, int64_t rows,
                           lpg_refusal *refusal) {
  const uint8_t mask = (uint8_t)((1u << packed->bits) - 1u);
  for (int64_t row = first; row < first + rows; row++) {
    for (int64_t column = 0; column < packed->desc.k; column++) {
      uint8_t buffer;
      const uint8_t code = *source_codes(packed, source, row, column, 1, &buffer);
      if (code <= mask) continue;
      const int64_t at = packed->desc.columns ? source->arrays.column_order[column] : column;
      *refusal = (lpg_refusal){LPG_SECTION_CODES, code, lpg_source_row(source, row), at};
      return;
    }
  }
}

/* Rows [first, first + rows) of the source, at most 16, become row tile `tile`. Returns its part of the payload's hash,
 * taken of every tile while it is in the cache; *within is 0 if a code is too wide. */
static uint64_t pack_row_tile(const lpg_packed *packed, const lpg_source *source, int64_t first, int64_t rows,
                              int64_t tile, uint8_t *section, int *within) {
  const int64_t tile_k = lpg_tile_k(packed->bits), bytes = lpg_tile_bytes(packed->bits);
  const uint8_t mask = (uint8_t)((1u << packed->bits) - 1u);
  uint8_t buffer[LPG_TILE_ROWS][LPG_LONGEST_TILE_ROW];
  const uint8_t *codes[LPG_TILE_ROWS];
  uint64_t hash = 0;
  for (int64_t k_tile = 0; k_tile < packed->k_tiles; k_tile++) {
    const int64_t column = k_tile * tile_k, left = packed->desc.k - column, count = left < tile_k ? left : tile_k;
    const int64_t offset = lpg_tile_offset(packed->bits, packed->k_tiles, tile, k_tile);
    for (int64_t row = 0; row < LPG_TILE_ROWS; row++) {
      codes[row] = buffer[row];
      if (row < rows) codes[row] = source_codes(packed, source, first + row, column, count, buffer[row]);
      if (row < rows && !is_within(codes[row], count, mask)) *within = 0;
      if (row < rows && count == tile_k) continue;
      const int64_t real = row < rows ? count : 0;
      if (codes[row] != buffer[row]) memcpy(buffer[row], codes[row], (size_t)real);
      memset(buffer[row] + real, lpg_padding_code(packed->desc.type), (size_t)(tile_k - real));
      codes[row] = buffer[row];
    }
    lpgemm_i_put_tile(packed->desc.type, codes, section + offset);
    hash += lpgemm_i_hash_part(section + offset, (uint64_t)offset, (uint64_t)bytes);
  }
  return hash;
}

/* ---- scales and zeros ---- */

LPG_INLINE uint32_t load_number(int bytes, const void *array, int64_t i) {
  switch (bytes) {
    case 1: return ((const uint8_t *)array)[i];
    case 2: return ((const uint16_t *)array)[i];
    default: return ((const uint32_t *)array)[i];
  }
}

/* `count` numbers of `bytes` bytes, `ld` apart, into a line. Returns how many were not too large. */
LPG_INLINE int64_t put_line(int bytes, const void *array, int64_t first, int64_t ld, int64_t count, uint32_t largest,
                            lpg_line line, uint8_t *blob) {
  if (line.bytes > 0) line.bytes = bytes; /* it is; so the compiler knows */
  for (int64_t j = 0; j < count; j++) {
    const uint32_t number = load_number(bytes, array, first + j * ld);
    if (number > largest) return j;
    lpg_put_number(&line, blob, j, number);
  }
  return count;
}

/* The numbers of one row of the source's array, or of rows that share them: into all 16 slots then. 0: one is too
 * large. */
static int pack_line(const lpg_packed *packed, const lpg_source *source, lpg_section_id id, int64_t from, int64_t row,
                     uint8_t *blob, lpg_refusal *refusal) {
  const int64_t ld = lpg_source_ld(source, id), count = lpg_section_axis(packed, id)->count;
  const int is_row_major = source->arrays.order == LPGEMM_ROW_MAJOR, slots = packed->desc.group_n ? LPG_TILE_ROWS : 1;
  const int64_t first = is_row_major ? from * ld : from, step = is_row_major ? 1 : ld;
  const int bytes = lpg_bytes(lpg_section_type(&packed->desc, id));
  const void *array = lpgemm_i_source_array(&source->arrays, id);
  const uint32_t largest = lpg_largest_number(packed, id);
  for (int slot = 0; slot < slots; slot++) {
    const lpg_line line = lpg_line_of(packed, id, row + slot);
    int64_t put;
    switch (bytes) {
      case 1: put = put_line(1, array, first, step, count, largest, line, blob); break;
      case 2: put = put_line(2, array, first, step, count, largest, line, blob); break;
      default: put = put_line(4, array, first, step, count, largest, line, blob); break;
    }
    if (put == count) continue;
    *refusal = (lpg_refusal){id, load_number(bytes, array, first + put * step), from, put};
    return 0;
  }
  return 1;
}

static int pack_numbers(const lpg_packed *packed, const lpg_source *source, int64_t first_row, const lpg_band *band,
                        lpg_section_id id, uint8_t *blob, lpg_refusal *refusal) {
  const int64_t step = packed->desc.group_n ? packed->desc.group_n : 1,
                tile = (first_row + band->first) / LPG_TILE_ROWS;
  const uint64_t bytes = (uint64_t)lpg_section_axis(packed, id)->padded *
                         (uint64_t)lpg_slot_bytes(lpg_section_type(&packed->desc, id)); /* of a row tile */
  if (packed->section[id].bytes == 0) return 1;
  const int64_t tiles = lpg_ceil_div(band->rows, LPG_TILE_ROWS * packed->tiles_a_scale);
  memset(blob + packed->section[id].offset + (uint64_t)(tile / packed->tiles_a_scale) * bytes, 0,
         (uint64_t)tiles * bytes); /* a refused band may have left something */
  for (int64_t i = band->first; i < band->first + band->rows; i += step) {
    const int64_t row = lpg_source_row(source, i) / step;
    if (!pack_line(packed, source, id, row, first_row + i, blob, refusal)) return 0;
  }
  return 1;
}

static void pack_row_scales(const lpg_packed *packed, const lpg_source *source, int64_t first_row, const lpg_band *band,
                            uint8_t *blob) {
  if (packed->section[LPG_SECTION_ROW_SCALES].bytes == 0) return;
  uint8_t *to = blob + packed->section[LPG_SECTION_ROW_SCALES].offset;
  for (int64_t i = band->first; i < band->first + band->rows; i++) {
    memcpy(to + 4 * (first_row + i), (const float *)source->arrays.row_scales + lpg_source_row(source, i), 4);
  }
}

/* ---- rows ---- */

int lpgemm_i_pack_band(const lpg_packed *packed, const lpg_source *source, int64_t first_row, const lpg_band *band,
                       uint8_t *blob, lpg_content *content, lpg_refusal *refusal) {
  uint8_t *codes = blob + LPG_HEADER_BYTES;
  uint64_t hash = 0;
  for (int64_t i = band->first, rows; i < band->first + band->rows && packed->k_tiles > 0; i += LPG_TILE_ROWS) {
    int within = 1;
    rows = band->first + band->rows - i < LPG_TILE_ROWS ? band->first + band->rows - i : LPG_TILE_ROWS;
    hash += pack_row_tile(packed, source, i, rows, (first_row + i) / LPG_TILE_ROWS, codes, &within);
    if (within) continue;
    find_wide_code(packed, source, i, rows, refusal);
    return 0;
  }
  for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++) {
    if (!pack_numbers(packed, source, first_row, band, (lpg_section_id)id, blob, refusal)) return 0;
  }
  pack_row_scales(packed, source, first_row, band, blob);
  content->payload_hash = hash;
  content->scale_span = lpgemm_i_put_exponents(packed, first_row + band->first, band->rows, blob);
  return 1;
}

lpgemm_status_t lpgemm_i_refuse(const lpg_packed *packed, const lpg_refusal *r) {
  return r->id == LPG_SECTION_CODES ? lpgemm_i_refuse_code(packed, (uint8_t)r->number, r->row, r->column)
                                    : lpgemm_i_refuse_number(packed, r->id, r->number, r->row, r->column);
}

lpgemm_status_t lpgemm_i_pack_rows_host(const lpg_packed *packed, const lpg_source *source, int64_t first_row,
                                        uint8_t *blob, lpg_content *content) {
  const lpg_band all = {0, source->rows};
  lpg_refusal refusal;
  return lpgemm_i_pack_band(packed, source, first_row, &all, blob, content, &refusal)
             ? LPGEMM_SUCCESS
             : lpgemm_i_refuse(packed, &refusal);
}

void lpgemm_i_put_order(const lpg_packed *packed, const int32_t *order, uint8_t *blob) {
  if (packed->section[LPG_SECTION_COLUMN_ORDER].bytes == 0) return;
  memcpy(blob + packed->section[LPG_SECTION_COLUMN_ORDER].offset, order, (size_t)packed->desc.k * 4);
}

lpgemm_status_t lpgemm_i_pack_host(const lpg_packed *packed, const lpg_source *source, uint8_t *blob,
                                   lpg_content *content) {
  lpgemm_i_begin_host(packed, blob);
  lpgemm_i_put_order(packed, source->arrays.column_order, blob);
  LPG_TRY(lpgemm_i_pack_rows_host(packed, source, 0, blob, content));
  lpgemm_i_finish_host(packed, blob, content);
  return LPGEMM_SUCCESS;
}
