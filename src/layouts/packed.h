/* The packed form as a whole: which sections a matrix has, where they start, and the header in front of them.
 * FORMAT.md is the specification. */
#ifndef LPG_LAYOUTS_PACKED_H
#define LPG_LAYOUTS_PACKED_H

#include "lpgemm.h"
#include "number.h"
#include "tile.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  LPG_FORMAT_PLAIN = 1, /* what every reader reads: written wherever it says all */
  LPG_FORMAT_LATEST = 2,
  LPG_LAYOUT_TILE16 = 1, /* tile.h */
  LPG_HEADER_BYTES = 512,
  LPG_SECTION_ALIGN = 256,
  LPG_AT_GLOBAL_SCALE = 92, /* in a header: what kernels read of it */
  LPG_MOST_EXPERTS = 4096   /* of a stack */
};

typedef enum lpg_section_id {
  LPG_SECTION_CODES,
  LPG_SECTION_SCALES,
  LPG_SECTION_ZEROS, /* zeros or minima */
  LPG_SECTION_SUPER_SCALES,
  LPG_SECTION_SUPER_ZEROS,
  LPG_SECTION_ROW_EXPONENTS,
  LPG_SECTION_COLUMN_ORDER,
  LPG_SECTION_ROW_SCALES,
  LPG_SECTIONS
} lpg_section_id;

typedef struct lpg_section {
  uint64_t offset, bytes; /* from the start of the header; bytes = 0: absent */
} lpg_section;

/* Values that a group axis has: per group, or per super-group. */
typedef struct lpg_axis {
  int64_t k;             /* columns that share a value; at least 16 */
  int64_t count, padded; /* values of a row: real ones, and with those of padding columns */
} lpg_axis;

/* What the codes stand for, less a fixed zero; before scales, minima and zeros of groups. */
typedef struct lpg_values {
  double most, least;         /* the largest and the smallest magnitude that is finite and not 0; 0: there is none */
  int in_f16, in_i8, in_e4m3; /* 1 if the type holds them all */
} lpg_values;

/* Everything that follows from a description; of a stack all but the last but two is of one of its experts. */
typedef struct lpg_packed {
  lpgemm_weight_desc_t desc; /* normalised: size set, global_scale never 0, what says nothing 0 (group_n, x_k, experts
                                of one matrix) */
  int bits;
  int64_t x_k;                /* columns of X, of which an ordered matrix may multiply some */
  int64_t n_padded, k_padded; /* multiples of 16 and of lpg_tile_k(bits) */
  int64_t row_tiles, k_tiles;
  lpg_axis group, super;
  int64_t scale_rows, scale_tiles, tiles_a_scale; /* rows of arrays of scales; row tiles of their sections; and row
                                                     tiles of the matrix to one of those: more than 1 with group_n */
  lpg_section section[LPG_SECTIONS];
  uint64_t total_bytes;
  int64_t experts, outputs; /* 1 for one matrix; numbers of a row of Y: n, or half of it for PAIRED rows */
  uint64_t stack_bytes;     /* of all experts */
  lpg_values values;
} lpg_packed;

/* What the header says beyond the description. */
typedef struct lpg_content {
  uint32_t scale_span; /* largest difference, within a row, between the binary exponents of two non-zero scales; 255 if
                          larger, not finite or outside the row exponent's range */
  uint64_t payload_hash;
  int is_whole; /* 1: of the whole payload; 0: while rows are packed, of their codes */
} lpg_content;

/* What the codes of a type stand for (values.c). */
lpg_values lpgemm_i_values_of(const lpgemm_weight_desc_t *desc);

/* The largest finite magnitude, of weights or of scales and zeros; the codebook is for codebooks only. */
double lpgemm_i_largest_value(lpgemm_dtype_t type, const float *codebook);

/* Checks a description, every field of it, and makes the plan. */
lpgemm_status_t lpgemm_i_make_packed(const lpgemm_weight_desc_t *desc, lpg_packed *packed);

/* The axis that a section's values run along. */
LPG_FN const lpg_axis *lpg_section_axis(const lpg_packed *packed, lpg_section_id id) {
  return id == LPG_SECTION_SUPER_SCALES || id == LPG_SECTION_SUPER_ZEROS ? &packed->super : &packed->group;
}

/* The type of a section's values, 0 if the section is absent or holds no numbers. */
LPG_FN lpgemm_dtype_t lpg_section_type(const lpgemm_weight_desc_t *desc, lpg_section_id id) {
  return id == LPG_SECTION_SCALES         ? desc->scale_type
         : id == LPG_SECTION_ZEROS        ? desc->zero_type
         : id == LPG_SECTION_SUPER_SCALES ? desc->super_scale_type
         : id == LPG_SECTION_SUPER_ZEROS  ? desc->super_zero_type
                                          : 0;
}

/* The version that a matrix is written with. */
LPG_FN int lpg_format_version(const lpgemm_weight_desc_t *desc) {
  return desc->columns != LPGEMM_COLUMNS_PLAIN || desc->row_scales || desc->group_n || desc->rows != LPGEMM_ROWS_PLAIN
             ? LPG_FORMAT_LATEST
             : LPG_FORMAT_PLAIN;
}

/* ---- pairs: outputs 8 * t and following have their gates in rows 0 .. 7 of row tile t, and their ups 8 rows further
 * ---- */

enum { LPG_PAIR_ROWS = LPG_TILE_ROWS / 2 };

/* The packed row of row `row` of the source; and back: -1 for a row of padding. */
LPG_FN int64_t lpg_packed_row(const lpg_packed *packed, int64_t row) {
  if (packed->desc.rows == LPGEMM_ROWS_PLAIN) return row;
  const int64_t half = row >= packed->outputs, output = row - half * packed->outputs;
  return output / LPG_PAIR_ROWS * LPG_TILE_ROWS + half * LPG_PAIR_ROWS + output % LPG_PAIR_ROWS;
}
LPG_FN int64_t lpg_row_of_packed(const lpg_packed *packed, int64_t at) {
  if (packed->desc.rows == LPGEMM_ROWS_PLAIN) return at < packed->desc.n ? at : -1;
  const int64_t half = at % LPG_TILE_ROWS / LPG_PAIR_ROWS;
  const int64_t output = at / LPG_TILE_ROWS * LPG_PAIR_ROWS + at % LPG_PAIR_ROWS;
  return output < packed->outputs ? half * packed->outputs + output : -1;
}

/* The global scale in a header; a stack's experts may differ in it. */
LPG_BITS_FN float lpg_expert_scale(const uint8_t *header) {
  return *(const float *)(const void *)(header + LPG_AT_GLOBAL_SCALE);
}

/* The row whose place the scales and zeros of a row have in their sections: its own, but for rows that share them. */
LPG_FN int64_t lpg_scale_row(const lpg_packed *packed, int64_t row) {
  return row / LPG_TILE_ROWS / packed->tiles_a_scale * LPG_TILE_ROWS + row % LPG_TILE_ROWS;
}

/* Bytes of the 16 values that a row tile has for one group: 16 numbers, UINT(4) two to a byte. */
LPG_FN int lpg_slot_bytes(lpgemm_dtype_t type) { return type == LPGEMM_UINT(4) ? 8 : LPG_TILE_ROWS * lpg_bytes(type); }

/* Offset within its section of the value of (lpg_scale_row(), group index); UINT(4): of the byte, rows 8..15 of a tile
 * in the high half. */
LPG_FN int64_t lpg_value_offset(lpgemm_dtype_t type, int64_t padded, int64_t row, int64_t group) {
  int64_t block = (row / LPG_TILE_ROWS * padded + group) * lpg_slot_bytes(type);
  int slot = lpg_row_slot((int)(row % LPG_TILE_ROWS));
  return block + (type == LPGEMM_UINT(4) ? slot / 2 : slot * lpg_bytes(type));
}

/* Offset of tile (row tile, column tile) within the codes. */
LPG_FN int64_t lpg_tile_offset(int bits, int64_t k_tiles, int64_t row_tile, int64_t k_tile) {
  return (row_tile * k_tiles + k_tile) * lpg_tile_bytes(bits);
}

/* Writes the 512 header bytes. */
void lpgemm_i_write_header(const lpg_packed *packed, const lpg_content *content, uint8_t *header);

/* What a header says of the bytes of its blob; 0 if `size` bytes are not even a header. */
uint64_t lpgemm_i_header_total(const uint8_t *bytes, uint64_t size);

/* Reads and checks a header of an untrusted blob of `size` bytes; on success the plan fits the blob exactly. */
lpgemm_status_t lpgemm_i_read_header(const uint8_t *bytes, uint64_t size, lpg_packed *packed, lpg_content *content);

/* ---- the order-independent checksum: a sum of hashed 64-bit words ---- */

#define LPG_HASH_STEP 0x9e3779b97f4a7c15ULL

/* Of the word with that index; those of neighbours are LPG_HASH_STEP apart. */
LPG_FN uint64_t lpg_hash_key(uint64_t index) { return (index + 1) * LPG_HASH_STEP; }

LPG_FN uint64_t lpg_hash_by_key(uint64_t word, uint64_t key) {
  uint64_t h = word ^ key;
  h = (h ^ h >> 32) * 0xd6e8feb86659fd93ULL;
  h = (h ^ h >> 32) * 0xd6e8feb86659fd93ULL;
  return h ^ h >> 32;
}

LPG_FN uint64_t lpg_hash_word(uint64_t word, uint64_t index) { return lpg_hash_by_key(word, lpg_hash_key(index)); }

/* Of `bytes` bytes, a multiple of 8, read as little-endian words. */
uint64_t lpgemm_i_hash(const uint8_t *data, uint64_t bytes);

/* The part of it that comes from `bytes` bytes, those from `first` on of the whole; both multiples of 8. */
uint64_t lpgemm_i_hash_part(const uint8_t *data, uint64_t first, uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
