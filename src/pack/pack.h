/* Moves weights into the packed form and back, on the host. The CPU backend works on these blobs directly; the CUDA
 * backend has its own functions that write the same bytes. */
#ifndef LPG_PACK_H
#define LPG_PACK_H

#include "../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- packing: rows of a source, in bands that threads may share out ---- */

/* A caller's source, checked, with its leading dimensions resolved. */
struct lpg_source {
  lpgemm_weight_source_t arrays;
  int64_t rows;        /* that it brings */
  int64_t source_rows; /* that its arrays must have: more, if row_order takes some of them */
};

/* Copies and checks a source of `rows` rows of the plan: that every array that the plan needs is there with enough
 * bytes, and that no other one is given. It may lie anywhere: only orders are read. */
lpgemm_status_t lpgemm_i_open_source(const lpg_packed *packed, const lpgemm_weight_source_t *arrays, int64_t rows,
                                     lpg_source *source);

/* The bytes of its codes, and of an array of a section, that packing reads. */
uint64_t lpgemm_i_codes_bytes(const lpg_packed *packed, const lpg_source *source);
uint64_t lpgemm_i_array_bytes(const lpg_packed *packed, const lpg_source *source, lpg_section_id id);

/* That the order of an ordered matrix has each column at most once. It may have any alignment. */
lpgemm_status_t lpgemm_i_check_order(const char *name, const void *order, const lpg_packed *packed);
lpgemm_status_t lpgemm_i_check_blob_order(const lpg_packed *packed, const void *order); /* CORRUPT_DATA */

/* Rows of a source: from one that is a multiple of 16 and of group_n on, up to another such or the last one. */
typedef struct lpg_band {
  int64_t first, rows;
} lpg_band;

/* The number that stops packing, where the source has it. */
typedef struct lpg_refusal {
  lpg_section_id id; /* CODES: a code */
  uint32_t number;
  int64_t row, column; /* or group */
} lpg_refusal;

/* A blob on the host is begun, gets its order, gets all its rows, in any order and in any number of pieces, and is
 * finished. Nothing of a piece touches other rows, so threads may pack pieces side by side; each piece gives a part of
 * the content, the parts are added up, and the sum is what finishing completes. A row tile's codes are in the payload's
 * hash when it is packed.
 *
 * Rows [band->first, band->first + band->rows) of the source, whose row 0 is row first_row of the matrix. 0: *refusal
 * says why not; the rows may be packed again then. */
void lpgemm_i_begin_host(const lpg_packed *packed, uint8_t *blob);
void lpgemm_i_put_order(const lpg_packed *packed, const int32_t *order, uint8_t *blob);
int lpgemm_i_pack_band(const lpg_packed *packed, const lpg_source *source, int64_t first_row, const lpg_band *band,
                       uint8_t *blob, lpg_content *content, lpg_refusal *refusal);
/* Rows of a plain blob become a part of one half of a paired one (lpg_backend.pair_rows). */
void lpgemm_i_pair_rows_host(const lpg_packed *own, const uint8_t *rows, const lpg_packed *packed, int half,
                             int64_t output, uint8_t *blob);
void lpgemm_i_add_content(lpg_content *sum, const lpg_content *part);
void lpgemm_i_finish_host(const lpg_packed *packed, uint8_t *blob, lpg_content *content);

/* All rows of a source, with the sentence of a refusal. */
lpgemm_status_t lpgemm_i_pack_rows_host(const lpg_packed *packed, const lpg_source *source, int64_t first_row,
                                        uint8_t *blob, lpg_content *content);

/* All of it on one thread: a source of the whole matrix. */
lpgemm_status_t lpgemm_i_pack_host(const lpg_packed *packed, const lpg_source *source, uint8_t *blob,
                                   lpg_content *content);

/* ---- and back ---- */

/* out_type U8: codes as they came in; F32, F16, BF16: exact values, rounded once. */
void lpgemm_i_unpack_host(const lpg_packed *packed, const uint8_t *blob, lpgemm_dtype_t out_type, void *out,
                          int64_t ldo);

/* Row-major dense array of a section's values as they came in, or row scales or the column order; lpgemm_i_part_bytes()
 * long. */
uint64_t lpgemm_i_part_bytes(const lpg_packed *packed, lpg_section_id id);
void lpgemm_i_unpack_part_host(const lpg_packed *packed, const uint8_t *blob, lpg_section_id id, void *out);

/* Quantises real weights and packs them: a plain matrix without row scales and group_n. Allocates scratch for one row,
 * 9 bytes a column. On failure nothing is written to blob. */
lpgemm_status_t lpgemm_i_quantize_host(const lpg_packed *packed, lpgemm_quantize_method_t method, const void *w,
                                       lpgemm_dtype_t w_type, int64_t ldw, uint8_t *blob, lpg_content *content);

/* The whole check of lpgemm_validate(), with the payload's checksum unless skip_checksum. */
lpgemm_status_t lpgemm_i_check_blob(const uint8_t *bytes, uint64_t size, int skip_checksum, lpg_packed *packed,
                                    lpg_content *content);

/* ---- stacks ---- */

/* Adds what the header of an expert says to what is said of the stack. */
void lpgemm_i_add_expert(lpg_content *sum, int64_t experts, int64_t expert, const lpg_content *one);

/* 1 if one of each may lie in the same stack: nothing but global scales and content differs. */
int lpgemm_i_same_stack(const lpg_packed *a, const lpg_packed *b);

/* How many blobs like the first one `size` bytes are; 1 where that does not come out, for the checks of one blob to
 * refuse. Of the bytes it reads the first header, if there is one. */
int64_t lpgemm_i_experts_of(const uint8_t *bytes, uint64_t size);

/* lpgemm_i_check_blob() for a stack, which one blob is too; and lpgemm_i_read_header() for one of `size` bytes whose
 * headers were put together. */
lpgemm_status_t lpgemm_i_check_stack(const uint8_t *bytes, uint64_t size, int skip_checksum, lpg_packed *packed,
                                     lpg_content *content);
lpgemm_status_t lpgemm_i_check_headers(const uint8_t *headers, uint64_t size, int64_t experts, lpg_packed *packed,
                                       lpg_content *content);

/* ---- what the files of this folder share ---- */

/* With constant arguments loops and branches fold away. */
#if defined(__GNUC__)
#define LPG_INLINE static inline __attribute__((always_inline))
#else
#define LPG_INLINE static inline
#endif

enum { LPG_LONGEST_TILE_ROW = 256 }; /* codes, over all widths */

/* One row of a tile, lpg_tile_k(bits) codes one a byte as the API has them, into the tile and back. The type gives the
 * width and says whether stored codes are offset binary. */
void lpgemm_i_put_codes(lpgemm_dtype_t type, const uint8_t *codes, int row, uint8_t *tile);
void lpgemm_i_put_tile(lpgemm_dtype_t type, const uint8_t *const codes[LPG_TILE_ROWS], uint8_t *tile);
void lpgemm_i_get_codes(lpgemm_dtype_t type, const uint8_t *tile, int row, uint8_t *codes);

/* The code whose stored form is 0: what padding columns and rows hold. */
static inline uint8_t lpg_padding_code(lpgemm_dtype_t type) { return (uint8_t)lpg_stored_flip(type); }

/* Writes the row exponents of some rows whose scales are in place; returns their part of scale_span. */
uint32_t lpgemm_i_put_exponents(const lpg_packed *packed, int64_t first_row, int64_t rows, uint8_t *blob);

/* The array that a section's numbers come from. */
const void *lpgemm_i_source_array(const lpgemm_weight_source_t *source, lpg_section_id id);

/* Its leading dimension; and the row of the arrays that becomes row i. */
static inline int64_t lpg_source_ld(const lpg_source *source, lpg_section_id id) {
  return id == LPG_SECTION_SUPER_SCALES || id == LPG_SECTION_SUPER_ZEROS ? source->arrays.super_ld
                                                                         : source->arrays.scales_ld;
}
static inline int64_t lpg_source_row(const lpg_source *source, int64_t i) {
  return source->arrays.row_order ? source->arrays.row_order[i] : i;
}

/* The code at a bit of a stream. */
static inline uint8_t lpg_stream_code(const uint8_t *stream, uint64_t at, int bits) {
  const int shift = (int)(at % 8);
  unsigned code = (unsigned)stream[at / 8] >> shift;
  if (shift + bits > 8) code |= (unsigned)stream[at / 8 + 1] << (8 - shift);
  return (uint8_t)(code & ((1u << bits) - 1u));
}

/* Refusals, with their sentences: INVALID_CODE of the first three, INVALID_ARGUMENT. */
lpgemm_status_t lpgemm_i_refuse(const lpg_packed *packed, const lpg_refusal *refusal);
lpgemm_status_t lpgemm_i_refuse_code(const lpg_packed *packed, uint8_t code, int64_t row, int64_t column);
lpgemm_status_t lpgemm_i_refuse_number(const lpg_packed *packed, lpg_section_id id, uint32_t number, int64_t row,
                                       int64_t group);
lpgemm_status_t lpgemm_i_refuse_weight(float value, int64_t row, int64_t column);

#ifdef __cplusplus
}
#endif

#endif
