/* Moves weights into the packed form and back, on the host. The CPU backend works on these blobs directly; the CUDA
 * backend has its own functions that write the same bytes. */
#ifndef LPG_PACK_H
#define LPG_PACK_H

#include "../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks that every array that the plan needs is there with enough bytes, and that no other one is given. The source
 * may lie anywhere: no byte of it is read. codes_ld is resolved, as lpgemm_pack_weights() does. */
lpgemm_status_t lpgemm_i_check_source(const lpg_packed *packed, const lpgemm_weight_source_t *source);

/* The bytes of a checked source's codes that packing reads. */
uint64_t lpgemm_i_codes_bytes(const lpg_packed *packed, const lpgemm_weight_source_t *source);

/* Writes the whole blob (plan->total_bytes, header included) after checking every code. On failure nothing is written.
 */
lpgemm_status_t lpgemm_i_pack_host(const lpg_packed *packed, const lpgemm_weight_source_t *source, uint8_t *blob,
                                   lpg_content *content);

/* out_type U8: codes as they came in; F32, F16, BF16: exact values, rounded once. */
void lpgemm_i_unpack_host(const lpg_packed *packed, const uint8_t *blob, lpgemm_dtype_t out_type, void *out,
                          int64_t ldo);

/* Row-major dense array of a section's values as they came in; lpgemm_i_part_bytes() long. */
uint64_t lpgemm_i_part_bytes(const lpg_packed *packed, lpg_section_id id);
void lpgemm_i_unpack_part_host(const lpg_packed *packed, const uint8_t *blob, lpg_section_id id, void *out);

/* Quantises real weights and packs them. Allocates scratch for one row, 9 bytes a column. On failure nothing
 * is written to blob. */
lpgemm_status_t lpgemm_i_quantize_host(const lpg_packed *packed, lpgemm_quantize_method_t method, const void *w,
                                       lpgemm_dtype_t w_type, int64_t ldw, uint8_t *blob, lpg_content *content);

/* The whole check of lpgemm_validate(), with the payload's checksum unless skip_checksum. */
lpgemm_status_t lpgemm_i_check_blob(const uint8_t *bytes, uint64_t size, int skip_checksum, lpg_packed *packed,
                                    lpg_content *content);

/* ---- what the files of this folder share ---- */

enum { LPG_LONGEST_TILE_ROW = 256 }; /* codes, over all widths */

/* One row of a tile, lpg_tile_k(bits) codes one a byte as the API has them, into the tile and back. The type gives the
 * width and says whether stored codes are offset binary. */
void lpgemm_i_put_codes(lpgemm_dtype_t type, const uint8_t *codes, int row, uint8_t *tile);
void lpgemm_i_get_codes(lpgemm_dtype_t type, const uint8_t *tile, int row, uint8_t *codes);

/* The code whose stored form is 0: what padding columns and rows hold. */
static inline uint8_t lpg_padding_code(lpgemm_dtype_t type) { return (uint8_t)lpg_stored_flip(type); }

/* Makes the payload behind the codes zero: its padding has to be. */
void lpgemm_i_clear_numbers(const lpg_packed *packed, uint8_t *blob);

/* Finishes a blob whose codes, scales and zeros are in place: row exponents, payload hash, header. hash is that of the
 * payload's first `hashed` bytes. */
void lpgemm_i_seal(const lpg_packed *packed, uint8_t *blob, uint64_t hashed, uint64_t hash, lpg_content *content);

/* The array that a section's numbers come from. */
const void *lpgemm_i_source_array(const lpgemm_weight_source_t *source, lpg_section_id id);

/* Refusals, with their sentences: INVALID_CODE, INVALID_CODE, INVALID_ARGUMENT. */
lpgemm_status_t lpgemm_i_refuse_code(const lpg_packed *packed, uint8_t code, int64_t row, int64_t column);
lpgemm_status_t lpgemm_i_refuse_number(const lpg_packed *packed, lpg_section_id id, uint32_t number, int64_t row,
                                       int64_t group);
lpgemm_status_t lpgemm_i_refuse_weight(float value, int64_t row, int64_t column);

#ifdef __cplusplus
}
#endif

#endif
