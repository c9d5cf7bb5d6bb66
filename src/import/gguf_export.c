/* Packed weights back to blocks of GGUF, for types that hold just these numbers. */
#include <stdlib.h>

#include "gguf.h"
#include "gguf_bits.h"

/* ---- does the type hold them? ---- */

/* Both types 0 where there is no such part. */
static lpgemm_status_t same_type(const lpg_ggml *type, const char *field, lpgemm_dtype_t has, lpgemm_dtype_t needs) {
  LPG_CHECK(has == needs, LPGEMM_NOT_SUPPORTED, "desc.%s of these weights is %s, but %s has %s", field,
            lpgemm_dtype_name(has), type->name, lpgemm_dtype_name(needs));
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t same_size(const lpg_ggml *type, const char *field, int64_t has, int64_t needs) {
  LPG_CHECK(has == needs, LPGEMM_NOT_SUPPORTED, "desc.%s of these weights is %lld, but %s has %lld", field,
            (long long)has, type->name, (long long)needs);
  return LPGEMM_SUCCESS;
}

/* Columns of a group, where 0 and what is beyond the row stand for the whole row. */
static int64_t columns_of(int64_t group, int64_t k) { return group == 0 || group > k ? k : group; }

static lpgemm_status_t same_number(const lpg_ggml *type, const char *field, float has, float needs) {
  LPG_CHECK(has == needs, LPGEMM_NOT_SUPPORTED, "desc.%s of these weights is %g, but %s has %g", field, (double)has,
            type->name, (double)needs);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_fit(const lpgemm_weight_desc_t *d, int number, const lpg_ggml **found) {
  LPG_TRY(lpgemm_i_find_ggml(number, found));
  LPG_CHECK(
      d->experts == 0 && d->rows == LPGEMM_ROWS_PLAIN, LPGEMM_NOT_SUPPORTED,
      "the weights are a stack of experts or have LPGEMM_ROWS_PAIRED; blocks are made of one matrix with plain rows");
  const lpg_ggml *type = *found;
  const lpgemm_weight_desc_t *needs = &type->desc;
  LPG_CHECK(type->ops->write, LPGEMM_NOT_SUPPORTED, "%s was expanded by the import: its blocks cannot be given back",
            type->name);
  LPG_TRY(same_type(type, "type", d->type, needs->type));
  LPG_TRY(same_type(type, "scale_type", d->scale_type, needs->scale_type));
  LPG_TRY(same_type(type, "super_scale_type", d->super_scale_type, needs->super_scale_type));
  LPG_CHECK(d->k % type->block == 0, LPGEMM_NOT_SUPPORTED,
            "these weights have %lld columns, but %s has blocks of %d: k must be a multiple", (long long)d->k,
            type->name, type->block);
  if (d->k > 0) LPG_TRY(same_size(type, "group_k", columns_of(d->group_k, d->k), needs->group_k));
  if (d->k > 0 && needs->super_k) LPG_TRY(same_size(type, "super_k", columns_of(d->super_k, d->k), needs->super_k));
  LPG_TRY(same_size(type, "zero", (int64_t)d->zero, (int64_t)needs->zero));
  LPG_TRY(same_type(type, "zero_type", d->zero_type, needs->zero_type));
  LPG_TRY(same_type(type, "super_zero_type", d->super_zero_type, needs->super_zero_type));
  LPG_TRY(same_number(type, "zero_constant", d->zero_constant, needs->zero_constant));
  for (int i = 0; i < 16; i++) {
    LPG_CHECK(d->codebook[i] == needs->codebook[i], LPGEMM_NOT_SUPPORTED,
              "desc.codebook[%d] of these weights is %g, but %s has %g", i, (double)d->codebook[i], type->name,
              (double)needs->codebook[i]);
  }
  LPG_CHECK(number == LPG_GGML_NVFP4 || d->global_scale == 1.0f, LPGEMM_NOT_SUPPORTED,
            "desc.global_scale of these weights is %g, and blocks of %s have no place for it", (double)d->global_scale,
            type->name);
  LPG_CHECK(d->columns == LPGEMM_COLUMNS_PLAIN, LPGEMM_NOT_SUPPORTED,
            "the columns of these weights are ordered, and GGUF keeps no order");
  LPG_TRY(same_type(type, "row_scales", d->row_scales, 0));
  LPG_TRY(same_size(type, "group_n", d->group_n, 0));
  return LPGEMM_SUCCESS;
}

static size_t blocks_bytes(const lpgemm_weight_desc_t *d, const lpg_ggml *type, int64_t rows) {
  return (size_t)rows * (size_t)(d->k / type->block) * (size_t)type->bytes; /* at most 2^46: see make_packed */
}

lpgemm_status_t lpgemm_export_size(lpgemm_weights_t weights, int ggml, size_t *bytes) {
  LPG_TRY(lpgemm_i_check_weights(weights));
  LPG_CHECK(bytes, LPGEMM_NULL_POINTER, "bytes is NULL");
  const lpgemm_weight_desc_t *d = &weights->packed.desc;
  const lpg_ggml *type;
  LPG_TRY(check_fit(d, ggml, &type));
  *bytes = blocks_bytes(d, type, d->n);
  return LPGEMM_SUCCESS;
}

/* ---- bands of rows ---- */

enum { BAND_BYTES = 1 << 22 }; /* of codes, about; a device answers in as many pieces */

static const lpg_section_id sections[] = {LPG_SECTION_SCALES, LPG_SECTION_ZEROS, LPG_SECTION_SUPER_SCALES,
                                          LPG_SECTION_SUPER_ZEROS};
enum { SECTIONS = 4 };

/* Row tiles follow one another in every section, so that a band of them is a matrix of its own. */
static lpgemm_status_t band_of(const lpg_packed *whole, int64_t row, int64_t rows, lpg_packed *band) {
  lpgemm_weight_desc_t desc = whole->desc;
  desc.n = rows;
  LPG_TRY(lpgemm_i_make_packed(&desc, band));
  for (int id = 0; id < LPG_SECTIONS; id++) {
    const lpg_section *section = &whole->section[id];
    if (section->bytes == 0) continue;
    band->section[id].offset =
        section->offset + section->bytes / (uint64_t)whole->row_tiles * (uint64_t)(row / LPG_TILE_ROWS);
  }
  return LPGEMM_SUCCESS;
}

/* Codes and numbers of a band in scratch memory. */
typedef struct lpg_rows {
  uint8_t *codes, *numbers[LPG_SECTIONS];
} lpg_rows;

static lpgemm_status_t read_band(lpgemm_handle_t handle, lpgemm_weights_t weights, const lpg_packed *band,
                                 const lpg_rows *to) {
  LPG_TRY(handle->backend->unpack(handle, band, weights->memory, LPGEMM_U8, to->codes, band->desc.k));
  for (int i = 0; i < SECTIONS; i++) {
    lpg_section_id id = sections[i];
    if (!to->numbers[id]) continue;
    LPG_TRY(handle->backend->unpack_part(handle, band, weights->memory, id, to->numbers[id]));
  }
  return LPGEMM_SUCCESS;
}

/* Bytes of a block's numbers in a section. */
static int numbers_bytes(const lpg_ggml *type, lpg_section_id id) {
  return lpg_block_numbers(type, id) * lpg_bytes(lpg_section_type(&type->desc, id));
}

static int write_block(const lpg_ggml *type, const lpg_block *from, uint8_t *block) {
  if (type->scale_at >= 0) memcpy(block + type->scale_at, from->numbers[lpg_scale_section(type)], 2);
  if (type->minimum_at >= 0) {
    uint32_t flip = type->desc.super_zero_type ? 0x8000u : 0; /* K-quants subtract their minima */
    lpg_put16(block + type->minimum_at, lpg_get16(from->numbers[lpg_minimum_section(type)]) ^ flip);
  }
  return type->ops->write(from, block);
}

static lpgemm_status_t write_band(const lpg_ggml *type, const lpg_rows *from, int64_t first_row, int64_t rows,
                                  int64_t row_blocks, uint8_t *out) {
  for (int64_t i = 0; i < rows * row_blocks; i++, out += type->bytes) {
    lpg_block block = {from->codes + i * type->block, {NULL}};
    for (int s = 0; s < SECTIONS; s++) {
      lpg_section_id id = sections[s];
      if (from->numbers[id]) block.numbers[id] = from->numbers[id] + i * numbers_bytes(type, id);
    }
    LPG_CHECK(write_block(type, &block, out), LPGEMM_NOT_SUPPORTED,
              "row %lld, columns from %lld: a scale is outside what %s can hold",
              (long long)(first_row + i / row_blocks), (long long)(i % row_blocks * type->block), type->name);
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t export_rows(lpgemm_handle_t handle, lpgemm_weights_t weights, const lpg_ggml *type,
                                   int64_t band_rows, const lpg_rows *scratch, uint8_t *out) {
  const lpg_packed *whole = &weights->packed;
  for (int64_t row = 0; row < whole->desc.n; row += band_rows) {
    int64_t rows = whole->desc.n - row < band_rows ? whole->desc.n - row : band_rows;
    lpg_packed band;
    LPG_TRY(band_of(whole, row, rows, &band));
    LPG_TRY(read_band(handle, weights, &band, scratch));
    LPG_TRY(
        write_band(type, scratch, row, rows, whole->desc.k / type->block, out + blocks_bytes(&whole->desc, type, row)));
  }
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_export(lpgemm_handle_t handle, lpgemm_weights_t weights, int ggml, void *out, size_t out_bytes) {
  LPG_TRY(lpgemm_i_check_pair(handle, weights));
  const lpgemm_weight_desc_t *d = &weights->packed.desc;
  const lpg_ggml *type;
  LPG_TRY(check_fit(d, ggml, &type));
  size_t bytes = blocks_bytes(d, type, d->n);
  LPG_CHECK(out_bytes >= bytes, LPGEMM_BUFFER_TOO_SMALL, "out_bytes is %zu; lpgemm_export_size() says %zu", out_bytes,
            bytes);
  if (bytes == 0) return LPGEMM_SUCCESS;
  LPG_CHECK(out, LPGEMM_NULL_POINTER, "out is NULL");
  int64_t band = lpg_round_up(d->k < BAND_BYTES ? BAND_BYTES / d->k : 1, LPG_TILE_ROWS);
  if (band > d->n) band = d->n;
  size_t blocks = (size_t)band * (size_t)(d->k / type->block), total = blocks * (size_t)type->block;
  for (int i = 0; i < SECTIONS; i++) {
    if (lpg_section_type(d, sections[i])) total += blocks * (size_t)numbers_bytes(type, sections[i]);
  }
  uint8_t *memory = malloc(total);
  LPG_CHECK(memory, LPGEMM_OUT_OF_MEMORY, "no memory for %zu bytes of scratch", total);
  lpg_rows scratch = {memory, {NULL}};
  uint8_t *next = memory + blocks * (size_t)type->block; /* blocks of 16 codes at least: aligned for all numbers */
  for (int i = 0; i < SECTIONS; i++) {
    if (!lpg_section_type(d, sections[i])) continue;
    scratch.numbers[sections[i]] = next;
    next += blocks * (size_t)numbers_bytes(type, sections[i]);
  }
  int32_t before;
  lpgemm_status_t status = lpgemm_i_enter(handle, &before);
  if (status == LPGEMM_SUCCESS) {
    status = export_rows(handle, weights, type, band, &scratch, out);
    lpgemm_i_leave(handle, before);
  }
  free(memory);
  return status;
}
