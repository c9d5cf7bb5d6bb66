/* Making weights: in one piece or in several, and by quantising. Checks arguments and leaves the work to the backend.
 */
#include <stdlib.h>

#include "internal.h"
#include "pack/pack.h"

lpgemm_status_t lpgemm_packed_size(const lpgemm_weight_desc_t *desc, size_t *bytes) {
  LPG_CHECK(bytes, LPGEMM_NULL_POINTER, "bytes is NULL");
  lpg_packed packed;
  LPG_TRY(lpgemm_i_read_desc(desc, &packed));
  *bytes = (size_t)packed.total_bytes;
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_memory(const lpg_packed *packed, const void *memory, size_t memory_bytes) {
  if (!memory) {
    LPG_CHECK(memory_bytes == 0, LPGEMM_NULL_POINTER, "memory is NULL, but memory_bytes is %zu", memory_bytes);
    return LPGEMM_SUCCESS;
  }
  LPG_CHECK((uintptr_t)memory % 256 == 0, LPGEMM_MISALIGNED, "memory is %p; it must be 256-byte aligned", memory);
  LPG_CHECK(memory_bytes >= packed->total_bytes, LPGEMM_BUFFER_TOO_SMALL,
            "memory_bytes is %zu; lpgemm_packed_size() says %llu", memory_bytes,
            (unsigned long long)packed->total_bytes);
  return LPGEMM_SUCCESS;
}

/* ---- weights that get their rows piece by piece ---- */

enum { WORD_TILES = 64 };

/* Row tiles that are there, a bit each. */
struct lpg_pieces {
  int has_order;
  uint64_t filled[];
};

lpgemm_status_t lpgemm_i_check_pieces(lpgemm_handle_t handle, lpgemm_weights_t weights) {
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_CHECK(weights, LPGEMM_NULL_POINTER, "weights is NULL; make them with lpgemm_weights_create()");
  LPG_CHECK(!lpgemm_i_is_live(weights, LPG_OBJECT_WEIGHTS), LPGEMM_INVALID_HANDLE,
            "weights %p are finished: no row of them can be packed again", (void *)weights);
  LPG_CHECK(lpgemm_i_is_live(weights, LPG_OBJECT_PIECES), LPGEMM_INVALID_HANDLE,
            "weights %p are none that lpgemm_weights_create() made, or were destroyed", (void *)weights);
  return lpgemm_i_check_device(handle, weights);
}

/* The bits of a word that stand for row tiles [first, end). */
static uint64_t bits_of(int64_t word, int64_t first, int64_t end) {
  const int64_t from = word * WORD_TILES, low = first > from ? first - from : 0;
  const int64_t high = end - from < WORD_TILES ? end - from : WORD_TILES;
  return (high == WORD_TILES ? ~UINT64_C(0) : (UINT64_C(1) << high) - 1) & ~((UINT64_C(1) << low) - 1);
}

/* The first row tile whose bit is `state`; `end` if there is none. */
static int64_t find_tile(const struct lpg_pieces *pieces, int64_t first, int64_t end, int state) {
  for (int64_t word = first / WORD_TILES; first < end && word <= (end - 1) / WORD_TILES; word++) {
    const uint64_t bits = bits_of(word, first, end) & (state ? pieces->filled[word] : ~pieces->filled[word]);
    for (int64_t i = 0; bits && i < WORD_TILES; i++) {
      if (bits >> i & 1) return word * WORD_TILES + i;
    }
  }
  return end;
}

static int64_t tiles_of(int64_t rows) { return lpg_ceil_div(rows, LPG_TILE_ROWS); }

lpgemm_status_t lpgemm_i_check_rows(lpgemm_weights_t weights, int64_t first_row, int64_t rows) {
  const int64_t n = weights->packed.desc.n, group = weights->packed.desc.group_n, unit = group ? group : LPG_TILE_ROWS;
  LPG_CHECK(first_row >= 0 && first_row <= n, LPGEMM_INVALID_SIZE, "first_row is %lld; it must be 0 to n = %lld",
            (long long)first_row, (long long)n);
  LPG_CHECK(rows >= 0 && rows <= n - first_row, LPGEMM_INVALID_SIZE, "rows is %lld; from row %lld on there are %lld",
            (long long)rows, (long long)first_row, (long long)(n - first_row));
  LPG_CHECK(first_row % unit == 0, LPGEMM_INVALID_ARGUMENT,
            "first_row is %lld; a piece begins at a multiple of %lld rows: the nearest are %lld and %lld",
            (long long)first_row, (long long)unit, (long long)(first_row - first_row % unit),
            (long long)(first_row - first_row % unit + unit));
  LPG_CHECK(rows % unit == 0 || first_row + rows == n, LPGEMM_INVALID_ARGUMENT,
            "rows is %lld; a piece ends at a multiple of %lld rows, or at the last row, %lld", (long long)rows,
            (long long)unit, (long long)(n - 1));
  const int64_t end = tiles_of(first_row + rows);
  const int64_t twice = find_tile(weights->pieces, first_row / LPG_TILE_ROWS, end, 1);
  LPG_CHECK(twice == end, LPGEMM_INVALID_ARGUMENT, "row %lld was packed before; each row is packed once",
            (long long)(twice * LPG_TILE_ROWS));
  return LPGEMM_SUCCESS;
}

void lpgemm_i_add_rows(lpgemm_weights_t weights, int64_t first_row, int64_t rows, const lpg_content *content) {
  const int64_t first = first_row / LPG_TILE_ROWS, end = tiles_of(first_row + rows);
  for (int64_t word = first / WORD_TILES; first < end && word <= (end - 1) / WORD_TILES; word++) {
    weights->pieces->filled[word] |= bits_of(word, first, end);
  }
  weights->pieces->has_order = 1;
  lpgemm_i_add_content(&weights->content, content);
}

lpgemm_status_t lpgemm_i_take_order(lpgemm_handle_t handle, lpgemm_weights_t weights, const int32_t *order) {
  const lpg_section *section = &weights->packed.section[LPG_SECTION_COLUMN_ORDER];
  uint8_t *own = weights->memory + section->offset;
  if (section->bytes == 0) return LPGEMM_SUCCESS;
  if (!weights->pieces->has_order) { /* until rows are there that have it */
    return handle->backend->copy_in(handle, own, order, (size_t)section->bytes);
  }
  LPG_CHECK(handle->backend->equals(handle, own, order, (size_t)section->bytes), LPGEMM_INVALID_ARGUMENT,
            "source.column_order is not that of the rows before; a matrix has one order");
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t create(lpgemm_handle_t handle, const lpg_packed *packed, void *memory, lpgemm_weights_t *out) {
  lpgemm_weights_t w;
  LPG_TRY(lpgemm_i_open_weights(handle, packed, memory, &w));
  const size_t words = (size_t)lpg_ceil_div(packed->row_tiles, WORD_TILES);
  w->pieces = calloc(1, sizeof *w->pieces + words * sizeof w->pieces->filled[0]);
  lpgemm_status_t status = w->pieces ? LPGEMM_SUCCESS : LPGEMM_OUT_OF_MEMORY;
  if (status == LPGEMM_SUCCESS) status = handle->backend->begin(handle, packed, w->memory);
  if (status != LPGEMM_SUCCESS) lpgemm_i_release_weights(w);
  LPG_CHECK(status != LPGEMM_OUT_OF_MEMORY, status, "no memory for the list of %lld row tiles",
            (long long)packed->row_tiles);
  if (status == LPGEMM_SUCCESS) *out = w;
  return status;
}

/* Rows of a source that was checked. */
static lpgemm_status_t pack_rows(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t first_row,
                                 const lpg_source *source) {
  lpg_content content = {0};
  LPG_TRY(lpgemm_i_take_order(handle, weights, source->arrays.column_order));
  LPG_TRY(handle->backend->pack_rows(handle, &weights->packed, source, first_row, weights->memory, &content));
  lpgemm_i_add_rows(weights, first_row, source->rows, &content);
  return LPGEMM_SUCCESS;
}

/* Completes the blob; nothing of it may be missing. */
static lpgemm_status_t finish(lpgemm_handle_t handle, lpgemm_weights_t weights) {
  return handle->backend->finish(handle, &weights->packed, weights->memory, &weights->content);
}

static void forget_pieces(lpgemm_weights_t weights) {
  free(weights->pieces);
  weights->pieces = NULL;
}

/* ---- the calls ---- */

lpgemm_status_t lpgemm_weights_create(lpgemm_handle_t handle, const lpgemm_weight_desc_t *desc, void *memory,
                                      size_t memory_bytes, lpgemm_weights_t *weights) {
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_CHECK(weights, LPGEMM_NULL_POINTER, "weights is NULL; pass the address of an lpgemm_weights_t");
  lpg_packed packed;
  LPG_TRY(lpgemm_i_read_desc(desc, &packed));
  LPG_TRY(check_memory(&packed, memory, memory_bytes));
  int32_t before;
  lpgemm_weights_t w = NULL;
  LPG_TRY(lpgemm_i_enter(handle, &before));
  lpgemm_status_t status = create(handle, &packed, memory, &w);
  if (status == LPGEMM_SUCCESS) {
    status = lpgemm_i_live_add(w, LPG_OBJECT_PIECES);
    if (status != LPGEMM_SUCCESS) lpgemm_i_release_weights(w);
  }
  lpgemm_i_leave(handle, before);
  if (status == LPGEMM_SUCCESS) *weights = w;
  return status;
}

lpgemm_status_t lpgemm_pack_rows(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t expert, int64_t first_row,
                                 int64_t rows, const lpgemm_weight_source_t *source) {
  LPG_TRY(lpgemm_i_check_pieces(handle, weights));
  LPG_CHECK(expert == 0, LPGEMM_INVALID_ARGUMENT, "expert is %lld; one matrix has expert 0 only", (long long)expert);
  LPG_TRY(lpgemm_i_check_rows(weights, first_row, rows));
  lpg_source checked;
  LPG_TRY(lpgemm_i_open_source(&weights->packed, source, rows, &checked));
  int32_t before;
  LPG_TRY(lpgemm_i_enter(handle, &before));
  lpgemm_status_t status = pack_rows(handle, weights, first_row, &checked);
  lpgemm_i_leave(handle, before);
  return status;
}

lpgemm_status_t lpgemm_weights_finish(lpgemm_handle_t handle, lpgemm_weights_t weights) {
  LPG_TRY(lpgemm_i_check_pieces(handle, weights));
  const lpg_packed *packed = &weights->packed;
  const int64_t first = find_tile(weights->pieces, 0, packed->row_tiles, 0);
  const int64_t end = first < packed->row_tiles ? find_tile(weights->pieces, first, packed->row_tiles, 1) : first;
  const int64_t last = end == packed->row_tiles ? packed->desc.n : end * LPG_TILE_ROWS;
  LPG_CHECK(first == packed->row_tiles, LPGEMM_INVALID_ARGUMENT, "rows %lld to %lld were not packed yet",
            (long long)(first * LPG_TILE_ROWS), (long long)(last - 1));
  LPG_CHECK(weights->pieces->has_order || packed->section[LPG_SECTION_COLUMN_ORDER].bytes == 0, LPGEMM_INVALID_ARGUMENT,
            "desc.n is 0, so no row brought source.column_order; give it with a piece of 0 rows");
  int32_t before;
  LPG_TRY(lpgemm_i_enter(handle, &before));
  lpgemm_status_t status = finish(handle, weights);
  lpgemm_i_leave(handle, before);
  LPG_TRY(status);
  forget_pieces(weights);
  lpgemm_i_live_remove(weights, LPG_OBJECT_PIECES);
  LPG_TRY(lpgemm_i_live_add(weights, LPG_OBJECT_WEIGHTS));
  return lpgemm_prepare(handle, weights, INT32_MAX);
}

lpgemm_status_t lpgemm_pack_weights(lpgemm_handle_t handle, const lpgemm_weight_desc_t *desc,
                                    const lpgemm_weight_source_t *source, void *memory, size_t memory_bytes,
                                    lpgemm_weights_t *weights) {
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_CHECK(weights, LPGEMM_NULL_POINTER, "weights is NULL; pass the address of an lpgemm_weights_t");
  lpg_packed packed;
  lpg_source checked;
  LPG_CHECK(source, LPGEMM_NULL_POINTER, "source is NULL");
  LPG_TRY(lpgemm_i_read_desc(desc, &packed));
  LPG_TRY(lpgemm_i_open_source(&packed, source, packed.desc.n, &checked));
  LPG_TRY(check_memory(&packed, memory, memory_bytes));
  int32_t before;
  lpgemm_weights_t w;
  LPG_TRY(lpgemm_i_enter(handle, &before));
  lpgemm_status_t status = create(handle, &packed, memory, &w);
  if (status == LPGEMM_SUCCESS) {
    status = pack_rows(handle, w, 0, &checked);
    if (status == LPGEMM_SUCCESS) status = finish(handle, w);
    forget_pieces(w);
    status = lpgemm_i_close_weights(handle, w, status, weights);
  }
  lpgemm_i_leave(handle, before);
  return status;
}

lpgemm_status_t lpgemm_quantize_weights(lpgemm_handle_t handle, const lpgemm_weight_desc_t *desc,
                                        lpgemm_quantize_method_t method, const void *w, lpgemm_dtype_t w_type,
                                        int64_t ldw, void *memory, size_t memory_bytes, lpgemm_weights_t *weights) {
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_CHECK(weights, LPGEMM_NULL_POINTER, "weights is NULL; pass the address of an lpgemm_weights_t");
  lpg_packed packed;
  LPG_TRY(lpgemm_i_read_desc(desc, &packed));
  LPG_CHECK(lpg_format_version(&packed.desc) == LPG_FORMAT_PLAIN, LPGEMM_NOT_SUPPORTED,
            "desc has columns %d, row_scales %s and group_n %lld; quantising makes plain matrices: all must be 0",
            (int)packed.desc.columns, lpgemm_dtype_name(packed.desc.row_scales), (long long)packed.desc.group_n);
  LPG_CHECK((int)method >= 0 && method <= LPGEMM_QUANTIZE_MSE, LPGEMM_INVALID_ARGUMENT,
            "method is %d; it must be an LPGEMM_QUANTIZE_ value", (int)method);
  LPG_CHECK(lpg_is_real(w_type), LPGEMM_INVALID_TYPE, "w_type is %s; it must be f32, f16 or bf16",
            lpgemm_dtype_name(w_type));
  LPG_CHECK(w || packed.desc.n == 0 || packed.desc.k == 0, LPGEMM_NULL_POINTER, "w is NULL");
  LPG_CHECK((uintptr_t)w % (uintptr_t)lpg_bytes(w_type) == 0, LPGEMM_MISALIGNED,
            "w is %p; it must be aligned to its element type %s", w, lpgemm_dtype_name(w_type));
  if (ldw == 0) ldw = packed.desc.k;
  LPG_TRY(lpgemm_i_check_ld("ldw", ldw, "k", packed.desc.k, packed.desc.n));
  LPG_TRY(check_memory(&packed, memory, memory_bytes));
  int32_t before;
  lpgemm_weights_t made;
  LPG_TRY(lpgemm_i_enter(handle, &before));
  lpgemm_status_t status = lpgemm_i_open_weights(handle, &packed, memory, &made);
  if (status == LPGEMM_SUCCESS) {
    status = handle->backend->quantize(handle, &packed, method, w, w_type, ldw, made->memory, &made->content);
    status = lpgemm_i_close_weights(handle, made, status, weights);
  }
  lpgemm_i_leave(handle, before);
  return status;
}
