/* From the arrays of a checkpoint to a packed matrix. */
#include "pack.h"
#include "sections.h"

/* ---- where the parts of a source lie ---- */

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
    default: return (part){"super_zeros", source->super_zeros, source->super_zeros_bytes};
  }
}

const void *lpgemm_i_source_array(const lpgemm_weight_source_t *source, lpg_section_id id) {
  return source_part(source, id).data;
}

/* ---- checking what can be checked without reading ---- */

static lpgemm_status_t check_bytes(const char *name, const void *data, uint64_t bytes, uint64_t needed) {
  LPG_CHECK(data != NULL || needed == 0, LPGEMM_NULL_POINTER, "source.%s is NULL, but the description needs %llu bytes",
            name, (unsigned long long)needed);
  LPG_CHECK(bytes >= needed, LPGEMM_BUFFER_TOO_SMALL, "source.%s_bytes is %llu; the description needs %llu", name,
            (unsigned long long)bytes, (unsigned long long)needed);
  return LPGEMM_SUCCESS;
}

uint64_t lpgemm_i_codes_bytes(const lpg_packed *packed, const lpgemm_weight_source_t *source) {
  int64_t n = packed->desc.n, k = packed->desc.k;
  uint64_t codes = n > 0 && k > 0 ? (uint64_t)((n - 1) * source->codes_ld + k) : 0;
  uint64_t bits = source->code_layout == LPGEMM_CODES_BITS ? (uint64_t)packed->bits : 8;
  return (codes * bits + 7) / 8;
}

static lpgemm_status_t check_codes(const lpg_packed *packed, const lpgemm_weight_source_t *source) {
  LPG_TRY(lpgemm_i_check_ld("source.codes_ld", source->codes_ld, "desc.k", packed->desc.k, packed->desc.n));
  return check_bytes("codes", source->codes, source->codes_bytes, lpgemm_i_codes_bytes(packed, source));
}

static lpgemm_status_t check_part(const lpg_packed *packed, const lpgemm_weight_source_t *source, lpg_section_id id) {
  lpgemm_dtype_t type = lpg_section_type(&packed->desc, id);
  part p = source_part(source, id);
  LPG_CHECK(type != 0 || (p.data == NULL && p.bytes == 0), LPGEMM_INVALID_ARGUMENT,
            "source.%s is given, but the description has none; it must be NULL and source.%s_bytes 0", p.name, p.name);
  LPG_TRY(check_bytes(p.name, p.data, p.bytes, lpgemm_i_part_bytes(packed, id)));
  LPG_CHECK(p.data == NULL || (uintptr_t)p.data % (uintptr_t)(type ? lpg_bytes(type) : 1) == 0, LPGEMM_MISALIGNED,
            "source.%s is %p; an array of %s must be aligned to %d bytes", p.name, p.data, lpgemm_dtype_name(type),
            lpg_bytes(type));
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_check_source(const lpg_packed *packed, const lpgemm_weight_source_t *source) {
  LPG_CHECK(source->code_layout == LPGEMM_CODES_BYTES || source->code_layout == LPGEMM_CODES_BITS,
            LPGEMM_INVALID_ARGUMENT, "source.code_layout is %d; it must be LPGEMM_CODES_BYTES or LPGEMM_CODES_BITS",
            (int)source->code_layout);
  LPG_CHECK(source->order == LPGEMM_ROW_MAJOR || source->order == LPGEMM_COLUMN_MAJOR, LPGEMM_INVALID_ARGUMENT,
            "source.order is %d; it must be LPGEMM_ROW_MAJOR or LPGEMM_COLUMN_MAJOR", (int)source->order);
  LPG_TRY(check_codes(packed, source));
  for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++) {
    LPG_TRY(check_part(packed, source, (lpg_section_id)id));
  }
  return LPGEMM_SUCCESS;
}

/* ---- checking what is read ---- */

static const uint8_t *code_row(const lpgemm_weight_source_t *source, int64_t row) {
  return (const uint8_t *)source->codes + row * source->codes_ld;
}

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

/* One-byte codes may be too wide for their type; those of a bit stream cannot. */
static lpgemm_status_t check_code_values(const lpg_packed *packed, const lpgemm_weight_source_t *source) {
  if (source->code_layout == LPGEMM_CODES_BITS || packed->bits == 8) return LPGEMM_SUCCESS;
  unsigned mask = (1u << packed->bits) - 1u;
  for (int64_t row = 0; row < packed->desc.n && packed->desc.k > 0; row++) {
    const uint8_t *code = code_row(source, row);
    uint8_t all = 0;
    for (int64_t column = 0; column < packed->desc.k; column++) all |= code[column];
    if (all <= mask) continue;
    int64_t column = 0;
    while (code[column] <= mask) column++;
    return lpgemm_i_refuse_code(packed, code[column], row, column);
  }
  return LPGEMM_SUCCESS;
}

/* Number `index` of a row, from an array of the API. */
static uint32_t load_number(const lpg_packed *packed, const lpgemm_weight_source_t *source, lpg_section_id id,
                            int64_t row, int64_t index) {
  int64_t count = lpg_section_axis(packed, id)->count;
  int64_t i = source->order == LPGEMM_ROW_MAJOR ? row * count + index : index * packed->desc.n + row;
  const void *data = source_part(source, id).data;
  switch (lpg_bytes(lpg_section_type(&packed->desc, id))) {
    case 1: return ((const uint8_t *)data)[i];
    case 2: return ((const uint16_t *)data)[i];
    default: return ((const uint32_t *)data)[i];
  }
}

static lpgemm_status_t check_numbers(const lpg_packed *packed, const lpgemm_weight_source_t *source,
                                     lpg_section_id id) {
  uint32_t largest = lpg_largest_number(packed, id);
  if (packed->section[id].bytes == 0 || largest == UINT32_MAX) return LPGEMM_SUCCESS;
  for (int64_t row = 0; row < packed->desc.n; row++) {
    for (int64_t j = 0; j < lpg_section_axis(packed, id)->count; j++) {
      uint32_t number = load_number(packed, source, id, row, j);
      if (number > largest) return lpgemm_i_refuse_number(packed, id, number, row, j);
    }
  }
  return LPGEMM_SUCCESS;
}

/* ---- packing ---- */

/* Codes of a bit stream from bit `at` on, one a byte. */
static void expand_bits(const uint8_t *stream, uint64_t at, int bits, int64_t count, uint8_t *codes) {
  for (int64_t i = 0; i < count; i++, at += (uint64_t)bits) {
    int shift = (int)(at % 8);
    unsigned code = (unsigned)stream[at / 8] >> shift;
    if (shift + bits > 8) code |= (unsigned)stream[at / 8 + 1] << (8 - shift);
    codes[i] = (uint8_t)(code & ((1u << bits) - 1u));
  }
}

/* The codes of one row of a tile: in place if they lie in the source as they are needed, else in `buffer`. */
static const uint8_t *tile_codes(const lpg_packed *packed, const lpgemm_weight_source_t *source, int64_t row,
                                 int64_t column, uint8_t *buffer) {
  int tile_k = lpg_tile_k(packed->bits);
  int64_t count = row < packed->desc.n ? packed->desc.k - column : 0;
  if (count > tile_k) count = tile_k;
  int in_bytes = source->code_layout == LPGEMM_CODES_BYTES;
  if (in_bytes && count == tile_k) return code_row(source, row) + column;
  memset(buffer, lpg_padding_code(packed->desc.type), (size_t)tile_k);
  if (count > 0 && in_bytes) {
    memcpy(buffer, code_row(source, row) + column, (size_t)count);
  } else if (count > 0) {
    uint64_t at = (uint64_t)(row * source->codes_ld + column) * (uint64_t)packed->bits;
    expand_bits((const uint8_t *)source->codes, at, packed->bits, count, buffer);
  }
  return buffer;
}

/* Returns the codes' part of the payload's hash, taken of every tile while it is in the cache. */
static uint64_t pack_codes(const lpg_packed *packed, const lpgemm_weight_source_t *source, uint8_t *section) {
  uint8_t buffer[LPG_LONGEST_TILE_ROW];
  uint64_t hash = 0;
  int64_t tile_k = lpg_tile_k(packed->bits), bytes = lpg_tile_bytes(packed->bits);
  for (int64_t i = 0; i < packed->row_tiles * packed->k_tiles; i++) {
    int64_t first_row = i / packed->k_tiles * LPG_TILE_ROWS, column = i % packed->k_tiles * tile_k;
    uint8_t *tile = section + i * bytes;
    for (int row = 0; row < LPG_TILE_ROWS; row++) {
      lpgemm_i_put_codes(packed->desc.type, tile_codes(packed, source, first_row + row, column, buffer), row, tile);
    }
    hash += lpgemm_i_hash_part(tile, (uint64_t)(i * bytes), (uint64_t)bytes);
  }
  return hash;
}

static void pack_numbers(const lpg_packed *packed, const lpgemm_weight_source_t *source, lpg_section_id id,
                         uint8_t *blob) {
  if (packed->section[id].bytes == 0) return;
  for (int64_t row = 0; row < packed->desc.n; row++) {
    lpg_line line = lpg_line_of(packed, id, row);
    for (int64_t j = 0; j < lpg_section_axis(packed, id)->count; j++) {
      lpg_put_number(&line, blob, j, load_number(packed, source, id, row, j));
    }
  }
}

lpgemm_status_t lpgemm_i_pack_host(const lpg_packed *packed, const lpgemm_weight_source_t *source, uint8_t *blob,
                                   lpg_content *content) {
  LPG_TRY(check_code_values(packed, source));
  for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++) {
    LPG_TRY(check_numbers(packed, source, (lpg_section_id)id));
  }
  lpgemm_i_clear_numbers(packed, blob);
  uint64_t hash = pack_codes(packed, source, blob + LPG_HEADER_BYTES);
  for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++) {
    pack_numbers(packed, source, (lpg_section_id)id, blob);
  }
  lpgemm_i_seal(packed, blob, packed->section[LPG_SECTION_CODES].bytes, hash, content);
  return LPGEMM_SUCCESS;
}
