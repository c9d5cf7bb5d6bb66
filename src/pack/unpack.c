/* From a packed matrix back to codes, values, scales and zeros. */
#include "pack.h"
#include "sections.h"

/* ---- values ---- */

/* Copies `count` numbers of so many bytes each, those that the codes name. */
static void look_up(const void *table, const uint8_t *codes, int64_t count, int bytes, void *out) {
  for (int64_t i = 0; i < count; i++) {
    if (bytes == 2) {
      memcpy((uint8_t *)out + i * 2, (const uint8_t *)table + codes[i] * 2, 2);
    } else {
      memcpy((uint8_t *)out + i * 4, (const uint8_t *)table + codes[i] * 4, 4);
    }
  }
}

/* Values of columns first .. first + count - 1 of a row, which lie in one group. A group with more columns than there
 * are codes takes them from a table, so that a code is rounded once. */
static void group_values(const lpg_packed *packed, const uint8_t *blob, int64_t row, int64_t first, int64_t count,
                         const uint8_t *codes, lpgemm_dtype_t out_type, void *out, int64_t at) {
  const lpg_group_terms g = lpg_terms_at(packed, blob, row, first);
  const int bytes = lpg_bytes(out_type);
  union {
    float four[256];
    uint16_t two[256];
  } table;
  if (count >= 1 << packed->bits) {
    for (uint32_t code = 0; code < 1u << packed->bits; code++) {
      lpg_store_f64(out_type, &table, code, lpg_weight_value(&g, code));
    }
    look_up(&table, codes, count, bytes, (uint8_t *)out + at * bytes);
    return;
  }
  for (int64_t i = 0; i < count; i++) lpg_store_f64(out_type, out, at + i, lpg_weight_value(&g, codes[i]));
}

/* ---- the matrix ---- */

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Puts `count` numbers, those of the stored columns from `first` on, where the source had them. */
static void put_in_order(const lpg_packed *packed, const uint8_t *blob, int64_t first, int64_t count, int bytes,
                         const void *numbers, uint8_t *row) {
  for (int64_t i = 0; i < count; i++) {
    uint8_t *to = row + lpg_source_column(packed, blob, first + i) * bytes;
    memcpy(to, (const uint8_t *)numbers + i * bytes, (size_t)bytes);
  }
}

/* Columns first .. end - 1 of a packed row, all in one tile, as codes or as values. */
static void unpack_columns(const lpg_packed *packed, const uint8_t *blob, int64_t row, int64_t first, int64_t end,
                           lpgemm_dtype_t out_type, void *out) {
  uint8_t codes[LPG_LONGEST_TILE_ROW];
  const uint8_t *from =
      blob + packed->section[LPG_SECTION_CODES].offset +
      lpg_tile_offset(packed->bits, packed->k_tiles, row / LPG_TILE_ROWS, first / lpg_tile_k(packed->bits));
  lpgemm_i_get_codes(packed->desc.type, from, (int)(row % LPG_TILE_ROWS), codes);
  if (out_type == LPGEMM_U8) {
    memcpy(out, codes, (size_t)(end - first));
    return;
  }
  for (int64_t column = first, next; column < end; column = next) {
    next = smaller((column / packed->group.k + 1) * packed->group.k, end);
    group_values(packed, blob, row, column, next - column, codes + (column - first), out_type, out, column - first);
  }
}

void lpgemm_i_unpack_host(const lpg_packed *packed, const uint8_t *blob, lpgemm_dtype_t out_type, void *out,
                          int64_t ldo) {
  const int tile_k = lpg_tile_k(packed->bits), bytes = lpg_bytes(out_type);
  for (int64_t row = 0; row < packed->desc.n; row++) {
    uint8_t *to = (uint8_t *)out + row * ldo * bytes;
    const int64_t at = lpg_packed_row(packed, row);
    if (packed->x_k > packed->desc.k) memset(to, 0, (size_t)packed->x_k * (size_t)bytes);
    for (int64_t first = 0; first < packed->desc.k; first += tile_k) {
      const int64_t end = smaller(first + tile_k, packed->desc.k);
      if (!packed->desc.columns) {
        unpack_columns(packed, blob, at, first, end, out_type, to + first * bytes);
        continue;
      }
      union {
        float four[LPG_LONGEST_TILE_ROW];
        uint16_t two[LPG_LONGEST_TILE_ROW];
        uint8_t one[LPG_LONGEST_TILE_ROW];
      } numbers;
      unpack_columns(packed, blob, at, first, end, out_type, &numbers);
      put_in_order(packed, blob, first, end - first, bytes, &numbers, to);
    }
  }
}

/* ---- scales and zeros ---- */

uint64_t lpgemm_i_part_bytes(const lpg_packed *packed, lpg_section_id id) {
  if (id == LPG_SECTION_ROW_SCALES) return packed->desc.row_scales ? (uint64_t)packed->desc.n * 4 : 0;
  if (id == LPG_SECTION_COLUMN_ORDER) return packed->desc.columns ? (uint64_t)packed->desc.k * 4 : 0;
  uint64_t numbers = (uint64_t)packed->scale_rows * (uint64_t)lpg_section_axis(packed, id)->count;
  return numbers * (uint64_t)lpg_bytes(lpg_section_type(&packed->desc, id));
}

void lpgemm_i_unpack_part_host(const lpg_packed *packed, const uint8_t *blob, lpg_section_id id, void *out) {
  int bytes = lpg_bytes(lpg_section_type(&packed->desc, id));
  uint8_t *to = (uint8_t *)out;
  if (id == LPG_SECTION_ROW_SCALES) {
    for (int64_t row = 0; row < packed->desc.n; row++) {
      memcpy(to + 4 * row, blob + packed->section[id].offset + 4 * lpg_packed_row(packed, row), 4);
    }
    return;
  }
  if (id == LPG_SECTION_COLUMN_ORDER) {
    memcpy(out, blob + packed->section[id].offset, (size_t)lpgemm_i_part_bytes(packed, id));
    return;
  }
  const int64_t step = packed->desc.group_n ? packed->desc.group_n : 1;
  for (int64_t row = 0; row < packed->desc.n; row += step) {
    lpg_line line = lpg_line_of(packed, id, lpg_packed_row(packed, row));
    for (int64_t j = 0; j < lpg_section_axis(packed, id)->count; j++) {
      uint32_t number = lpg_get_number(&line, blob, j);
      for (int i = 0; i < bytes; i++) *to++ = (uint8_t)(number >> 8 * i);
    }
  }
}
