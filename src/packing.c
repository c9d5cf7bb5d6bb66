/* Making weights: in one piece or in several, and by quantising. Checks arguments and leaves the work to the backend.
 */
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"
#include "pack/pack.h"

lpgemm_status_t lpgemm_packed_size(const lpgemm_weight_desc_t *desc, size_t *bytes) {
  LPG_CHECK(bytes, LPGEMM_NULL_POINTER, "bytes is NULL");
  lpg_packed packed;
  LPG_TRY(lpgemm_i_read_desc(desc, &packed));
  *bytes = (size_t)packed.stack_bytes;
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_memory(lpgemm_handle_t handle, const lpg_packed *packed, const void *memory,
                                    size_t memory_bytes) {
  if (!memory) {
    LPG_CHECK(memory_bytes == 0, LPGEMM_NULL_POINTER, "memory is NULL, but memory_bytes is %zu", memory_bytes);
    return LPGEMM_SUCCESS;
  }
  const uintptr_t align = lpg_blob_align(&handle->device);
  LPG_CHECK((uintptr_t)memory % align == 0, LPGEMM_MISALIGNED, "memory is %p; it must be %d-byte aligned", memory,
            (int)align);
  LPG_CHECK(memory_bytes >= packed->stack_bytes, LPGEMM_BUFFER_TOO_SMALL,
            "memory_bytes is %zu; lpgemm_packed_size() says %llu", memory_bytes,
            (unsigned long long)packed->stack_bytes);
  return LPGEMM_SUCCESS;
}

/* ---- weights that get their rows piece by piece ---- */

enum { WORD_UNITS = 64 };

/* What is known of an expert whose rows come one after the other. */
typedef struct expert_pieces {
  lpg_content content;
  float global_scale;
  int has_order, has_rows;
  int is_whole; /* 1: came as a blob, header and all */
} expert_pieces;

/* Which units of rows are there, a bit each, expert after expert: row tiles, or where rows are pairs the halves of row
 * tiles, those of gates first. */
struct lpg_pieces {
  int64_t units, words; /* of an expert */
  uint64_t *filled;     /* behind the experts */
  expert_pieces expert[];
};

static int64_t unit_rows(const lpg_packed *packed) {
  return packed->desc.rows == LPGEMM_ROWS_PAIRED ? LPG_PAIR_ROWS : LPG_TILE_ROWS;
}

static int64_t halves_of(const lpg_packed *packed) { return packed->desc.rows == LPGEMM_ROWS_PAIRED ? 2 : 1; }

/* The unit in which a row is; of n the end. Each half begins with a unit of its own. */
static int64_t unit_of(const lpg_packed *packed, int64_t row) {
  const int64_t half = packed->outputs > 0 ? row / packed->outputs : 0;
  return half * packed->row_tiles + lpg_ceil_div(row - half * packed->outputs, unit_rows(packed));
}

static int64_t row_of_unit(const lpg_packed *packed, int64_t unit) {
  const int64_t half = packed->row_tiles > 0 ? unit / packed->row_tiles : 0;
  return half * packed->outputs + (unit - half * packed->row_tiles) * unit_rows(packed);
}

lpgemm_status_t lpgemm_i_check_pieces(lpgemm_handle_t handle, lpgemm_weights_t weights) {
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_CHECK(weights, LPGEMM_NULL_POINTER, "weights is NULL; make them with lpgemm_weights_create()");
  LPG_CHECK(!lpgemm_i_is_live(weights, LPG_OBJECT_WEIGHTS), LPGEMM_INVALID_HANDLE,
            "weights %p are finished: no row of them can be packed again", (void *)weights);
  LPG_CHECK(lpgemm_i_is_live(weights, LPG_OBJECT_PIECES), LPGEMM_INVALID_HANDLE,
            "weights %p are none that lpgemm_weights_create() made, or were destroyed", (void *)weights);
  return lpgemm_i_check_device(handle, weights);
}

/* The description of weights that are to be made: a query may leave the codebook open, they may not. */
static lpgemm_status_t read_whole_desc(const lpgemm_weight_desc_t *desc, lpg_packed *packed) {
  LPG_TRY(lpgemm_i_read_desc(desc, packed));
  const int entries = lpg_kind(packed->desc.type) == LPGEMM_KIND_CODEBOOK ? 1 << packed->bits : 0;
  int nonzero = 0;
  for (int i = 0; i < entries; i++) nonzero += packed->desc.codebook[i] != 0.0f;
  LPG_CHECK(entries == 0 || nonzero > 0, LPGEMM_INVALID_ARGUMENT,
            "desc.codebook has only zeros; put the %d values of the codes there: lpgemm_codebook_preset() has some",
            entries);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_expert(lpgemm_weights_t weights, int64_t expert) {
  const int64_t experts = weights->packed.experts;
  LPG_CHECK(expert == 0 || experts > 1, LPGEMM_INVALID_ARGUMENT, "expert is %lld; one matrix has expert 0 only",
            (long long)expert);
  LPG_CHECK(expert >= 0 && expert < experts, LPGEMM_INVALID_ARGUMENT, "expert is %lld; the stack has experts 0 to %lld",
            (long long)expert, (long long)(experts - 1));
  return LPGEMM_SUCCESS;
}

/* The bits of a word that stand for units [first, end). */
static uint64_t bits_of(int64_t word, int64_t first, int64_t end) {
  const int64_t from = word * WORD_UNITS, low = first > from ? first - from : 0;
  const int64_t high = end - from < WORD_UNITS ? end - from : WORD_UNITS;
  return (high == WORD_UNITS ? ~UINT64_C(0) : (UINT64_C(1) << high) - 1) & ~((UINT64_C(1) << low) - 1);
}

static uint64_t *filled_of(const struct lpg_pieces *pieces, int64_t expert) {
  return pieces->filled + expert * pieces->words;
}

/* The first unit whose bit is `state`; `end` if there is none. */
static int64_t find_unit(const uint64_t *filled, int64_t first, int64_t end, int state) {
  for (int64_t word = first / WORD_UNITS; first < end && word <= (end - 1) / WORD_UNITS; word++) {
    const uint64_t bits = bits_of(word, first, end) & (state ? filled[word] : ~filled[word]);
    for (int64_t i = 0; bits && i < WORD_UNITS; i++) {
      if (bits >> i & 1) return word * WORD_UNITS + i;
    }
  }
  return end;
}

static void fill_units(uint64_t *filled, int64_t first, int64_t end) {
  for (int64_t word = first / WORD_UNITS; first < end && word <= (end - 1) / WORD_UNITS; word++) {
    filled[word] |= bits_of(word, first, end);
  }
}

/* That a piece may begin with a row: where units and blocks of rows do, counted in its half. */
static lpgemm_status_t check_edge(const lpg_packed *packed, int64_t row) {
  const int64_t group = packed->desc.group_n, unit = group ? group : unit_rows(packed);
  const int64_t in_half = packed->outputs > 0 ? row % packed->outputs : 0;
  LPG_CHECK(in_half % unit == 0, LPGEMM_INVALID_ARGUMENT,
            "first_row is %lld; a piece begins at a multiple of %lld rows%s: the nearest are %lld and %lld",
            (long long)row, (long long)unit, halves_of(packed) > 1 ? " of a half" : "",
            (long long)(row - in_half % unit), (long long)(row - in_half % unit + unit));
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_check_rows(lpgemm_weights_t weights, int64_t expert, int64_t first_row, int64_t rows) {
  const lpg_packed *packed = &weights->packed;
  const int64_t n = packed->desc.n, end_row = first_row + rows;
  LPG_TRY(check_expert(weights, expert));
  LPG_CHECK(first_row >= 0 && first_row <= n, LPGEMM_INVALID_SIZE, "first_row is %lld; it must be 0 to n = %lld",
            (long long)first_row, (long long)n);
  LPG_CHECK(rows >= 0 && rows <= n - first_row, LPGEMM_INVALID_SIZE, "rows is %lld; from row %lld on there are %lld",
            (long long)rows, (long long)first_row, (long long)(n - first_row));
  LPG_TRY(check_edge(packed, first_row));
  const int64_t group = packed->desc.group_n, unit = group ? group : unit_rows(packed);
  const int64_t in_half = packed->outputs > 0 ? end_row % packed->outputs : 0;
  LPG_CHECK(in_half % unit == 0, LPGEMM_INVALID_ARGUMENT,
            "rows is %lld; a piece ends at a multiple of %lld rows, or at the last row%s, %lld", (long long)rows,
            (long long)unit, halves_of(packed) > 1 ? " of a half" : "",
            (long long)((end_row < packed->outputs ? packed->outputs : n) - 1));
  const uint64_t *filled = filled_of(weights->pieces, expert);
  const int64_t end = unit_of(packed, end_row);
  const int64_t twice = rows > 0 ? find_unit(filled, unit_of(packed, first_row), end, 1) : end;
  LPG_CHECK(twice == end, LPGEMM_INVALID_ARGUMENT, "row %lld was packed before; each row is packed once",
            (long long)row_of_unit(packed, twice));
  return LPGEMM_SUCCESS;
}

void lpgemm_i_add_rows(lpgemm_weights_t weights, int64_t expert, int64_t first_row, int64_t rows,
                       const lpg_content *content) {
  expert_pieces *e = &weights->pieces->expert[expert];
  fill_units(filled_of(weights->pieces, expert), unit_of(&weights->packed, first_row),
             unit_of(&weights->packed, first_row + rows));
  e->has_order = 1;
  e->has_rows |= rows > 0;
  lpgemm_i_add_content(&e->content, content);
}

lpgemm_status_t lpgemm_i_take_order(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t expert,
                                    const int32_t *order) {
  const lpg_section *section = &weights->packed.section[LPG_SECTION_COLUMN_ORDER];
  uint8_t *own = lpg_blob_of_expert(weights, expert) + section->offset;
  if (section->bytes == 0) return LPGEMM_SUCCESS;
  if (!weights->pieces->expert[expert].has_order) { /* until rows are there that have it */
    return handle->backend->copy_in(handle, own, order, (size_t)section->bytes);
  }
  LPG_CHECK(handle->backend->equals(handle, own, order, (size_t)section->bytes), LPGEMM_INVALID_ARGUMENT,
            "source.column_order is not that of the rows before; a matrix has one order");
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_take_scale(lpgemm_weights_t weights, int64_t expert, float global_scale) {
  expert_pieces *e = &weights->pieces->expert[expert];
  LPG_CHECK(!e->has_rows || e->global_scale == global_scale, LPGEMM_INVALID_ARGUMENT,
            "the part stands for a scale of %g, and the rows before for %g: give the weights row_scales",
            (double)global_scale, (double)e->global_scale);
  e->global_scale = global_scale;
  return LPGEMM_SUCCESS;
}

/* ---- making them ---- */

static lpgemm_status_t make_pieces(const lpg_packed *packed, struct lpg_pieces **out) {
  const int64_t units = halves_of(packed) * packed->row_tiles, words = lpg_ceil_div(units, WORD_UNITS);
  const size_t list = sizeof(struct lpg_pieces) + (size_t)packed->experts * sizeof(expert_pieces);
  struct lpg_pieces *pieces = calloc(1, list + (size_t)(packed->experts * words) * sizeof(uint64_t));
  LPG_CHECK(pieces, LPGEMM_OUT_OF_MEMORY, "no memory for the list of %lld row tiles",
            (long long)(packed->experts * packed->row_tiles));
  pieces->units = units;
  pieces->words = words;
  pieces->filled = (uint64_t *)(void *)((uint8_t *)pieces + list);
  for (int64_t e = 0; e < packed->experts; e++) pieces->expert[e].global_scale = packed->desc.global_scale;
  *out = pieces;
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t create(lpgemm_handle_t handle, const lpg_packed *packed, void *memory, lpgemm_weights_t *out) {
  lpgemm_weights_t w;
  LPG_TRY(lpgemm_i_open_weights(handle, packed, memory, &w));
  lpgemm_status_t status = make_pieces(packed, &w->pieces);
  for (int64_t e = 0; e < packed->experts && status == LPGEMM_SUCCESS; e++) {
    status = handle->backend->begin(handle, packed, lpg_blob_of_expert(w, e));
  }
  if (status != LPGEMM_SUCCESS) lpgemm_i_release_weights(w);
  if (status == LPGEMM_SUCCESS) *out = w;
  return status;
}

/* ---- pieces ---- */

enum { PAIRED_BAND = 32 << 20 }; /* bytes of rows that are packed as a plain matrix before they become pairs */

/* Rows from .. from + rows - 1 of a piece, all in one half, from output `output` on. */
static lpgemm_status_t pack_half(lpgemm_handle_t handle, const lpg_packed *packed, int half, int64_t output,
                                 int64_t from, int64_t rows, uint8_t *blob, lpg_pack_fn *pack, void *context,
                                 lpg_content *content) {
  lpgemm_weight_desc_t desc = packed->desc;
  lpg_packed own;
  void *memory;
  lpg_content part = {0};
  desc.n = rows;
  desc.rows = LPGEMM_ROWS_PLAIN;
  desc.experts = 0;
  LPG_TRY(lpgemm_i_make_packed(&desc, &own));
  LPG_TRY(handle->backend->allocate(handle->device.index, (size_t)own.total_bytes, &memory));
  const lpg_section *order = &own.section[LPG_SECTION_COLUMN_ORDER];
  lpgemm_status_t status = handle->backend->begin(handle, &own, memory);
  if (status == LPGEMM_SUCCESS && order->bytes) { /* packing reads it where it lies */
    status = handle->backend->copy_in(handle, (uint8_t *)memory + order->offset,
                                      blob + packed->section[LPG_SECTION_COLUMN_ORDER].offset, (size_t)order->bytes);
  }
  if (status == LPGEMM_SUCCESS) status = pack(handle, &own, 0, memory, from, rows, &part, context);
  if (status == LPGEMM_SUCCESS) {
    status = handle->backend->pair_rows(handle, &own, memory, packed, half, output, blob);
  }
  if (status == LPGEMM_SUCCESS) status = handle->backend->synchronize(handle);
  handle->backend->release(handle->device.index, memory);
  part.payload_hash = 0; /* of other words */
  part.is_whole = 0;
  if (status == LPGEMM_SUCCESS) lpgemm_i_add_content(content, &part);
  return status;
}

lpgemm_status_t lpgemm_i_pack_piece(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t expert, int64_t first_row,
                                    int64_t rows, lpg_pack_fn *pack, void *context, lpg_content *content) {
  const lpg_packed *packed = &weights->packed;
  uint8_t *blob = lpg_blob_of_expert(weights, expert);
  if (packed->desc.rows == LPGEMM_ROWS_PLAIN) return pack(handle, packed, first_row, blob, 0, rows, content, context);
  const int64_t row_bytes = (int64_t)(packed->total_bytes / (uint64_t)(packed->n_padded + 1)) + 1;
  const int64_t unit = packed->desc.group_n ? packed->desc.group_n : LPG_TILE_ROWS;
  const int64_t most = lpg_round_up(PAIRED_BAND / row_bytes + 1, unit);
  for (int64_t from = 0, count; from < rows; from += count) {
    const int64_t row = first_row + from, half = row / packed->outputs, output = row - half * packed->outputs;
    count = packed->outputs - output < most ? packed->outputs - output : most;
    if (count > rows - from) count = rows - from;
    LPG_TRY(pack_half(handle, packed, (int)half, output, from, count, blob, pack, context, content));
  }
  return LPGEMM_SUCCESS;
}

/* Some rows of a source, as pack_rows() of a backend takes one that has just these. */
static lpgemm_status_t pack_source(lpgemm_handle_t handle, const lpg_packed *packed, int64_t first_row, uint8_t *blob,
                                   int64_t from, int64_t rows, lpg_content *content, void *context) {
  lpg_source source = *(const lpg_source *)context;
  int32_t *order = NULL;
  if (rows < source.rows) { /* by number: arrays stay what they are */
    order = malloc((size_t)rows * sizeof *order);
    LPG_CHECK(order, LPGEMM_OUT_OF_MEMORY, "no memory for the numbers of %lld rows", (long long)rows);
    for (int64_t i = 0; i < rows; i++) order[i] = (int32_t)lpg_source_row(context, from + i);
    source.arrays.row_order = order;
    source.arrays.row_order_bytes = (size_t)rows * sizeof *order;
    source.rows = rows;
  }
  const lpgemm_status_t status = handle->backend->pack_rows(handle, packed, &source, first_row, blob, content);
  free(order);
  return status;
}

/* Rows of a source that was checked. */
static lpgemm_status_t pack_rows(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t expert, int64_t first_row,
                                 lpg_source *source) {
  lpg_content content = {0};
  LPG_TRY(lpgemm_i_take_order(handle, weights, expert, source->arrays.column_order));
  LPG_TRY(lpgemm_i_pack_piece(handle, weights, expert, first_row, source->rows, pack_source, source, &content));
  lpgemm_i_add_rows(weights, expert, first_row, source->rows, &content);
  return LPGEMM_SUCCESS;
}

/* Completes the blobs; nothing of them may be missing. */
static lpgemm_status_t finish(lpgemm_handle_t handle, lpgemm_weights_t weights) {
  for (int64_t i = 0; i < weights->packed.experts; i++) {
    expert_pieces *e = &weights->pieces->expert[i];
    lpg_packed packed = weights->packed;
    packed.desc.global_scale = e->global_scale;
    if (!e->is_whole) LPG_TRY(handle->backend->finish(handle, &packed, lpg_blob_of_expert(weights, i), &e->content));
    lpgemm_i_add_expert(&weights->content, weights->packed.experts, i, &e->content);
  }
  return LPGEMM_SUCCESS;
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
  LPG_TRY(read_whole_desc(desc, &packed));
  LPG_TRY(check_memory(handle, &packed, memory, memory_bytes));
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
  LPG_TRY(lpgemm_i_check_rows(weights, expert, first_row, rows));
  lpg_source checked;
  LPG_TRY(lpgemm_i_open_source(&weights->packed, source, rows, &checked));
  int32_t before;
  LPG_TRY(lpgemm_i_enter(handle, &before));
  lpgemm_status_t status = pack_rows(handle, weights, expert, first_row, &checked);
  lpgemm_i_leave(handle, before);
  return status;
}

lpgemm_status_t lpgemm_stack_expert(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t expert, const void *bytes,
                                    size_t size, uint32_t flags) {
  LPG_TRY(lpgemm_i_check_pieces(handle, weights));
  LPG_TRY(check_expert(weights, expert));
  LPG_CHECK(bytes, LPGEMM_NULL_POINTER, "bytes is NULL");
  LPG_CHECK((flags & ~(uint32_t)LPGEMM_LOAD_SKIP_CHECKSUM) == 0, LPGEMM_INVALID_ARGUMENT,
            "flags is 0x%x; it must be 0 or LPGEMM_LOAD_SKIP_CHECKSUM", (unsigned)flags);
  expert_pieces *e = &weights->pieces->expert[expert];
  const struct lpg_pieces *pieces = weights->pieces;
  LPG_CHECK(!e->is_whole && find_unit(filled_of(pieces, expert), 0, pieces->units, 1) == pieces->units,
            LPGEMM_INVALID_ARGUMENT, "expert %lld has rows already; each is packed once", (long long)expert);
  lpg_packed packed;
  lpg_content content;
  LPG_TRY(lpgemm_i_check_blob(bytes, size, (flags & LPGEMM_LOAD_SKIP_CHECKSUM) != 0, &packed, &content));
  LPG_CHECK(lpgemm_i_same_stack(&weights->packed, &packed), LPGEMM_INVALID_ARGUMENT,
            "the blob has another description than the stack; only global_scale may differ");
  int32_t before;
  LPG_TRY(lpgemm_i_enter(handle, &before));
  const lpgemm_status_t status = handle->backend->copy_in(handle, lpg_blob_of_expert(weights, expert), bytes, size);
  lpgemm_i_leave(handle, before);
  LPG_TRY(status);
  fill_units(filled_of(pieces, expert), 0, pieces->units);
  e->content = content;
  e->global_scale = packed.desc.global_scale;
  e->has_order = e->has_rows = e->is_whole = 1;
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_complete(lpgemm_weights_t weights, int64_t expert) {
  const lpg_packed *packed = &weights->packed;
  const struct lpg_pieces *pieces = weights->pieces;
  const uint64_t *filled = filled_of(pieces, expert);
  const int64_t units = pieces->units, first = find_unit(filled, 0, units, 0);
  const int64_t end = first < units ? find_unit(filled, first, units, 1) : first;
  char of_expert[48] = "";
  if (packed->experts > 1) snprintf(of_expert, sizeof of_expert, " of expert %lld", (long long)expert);
  LPG_CHECK(first == units, LPGEMM_INVALID_ARGUMENT, "rows %lld to %lld%s were not packed yet",
            (long long)row_of_unit(packed, first),
            (long long)((end == units ? packed->desc.n : row_of_unit(packed, end)) - 1), of_expert);
  LPG_CHECK(pieces->expert[expert].has_order || packed->section[LPG_SECTION_COLUMN_ORDER].bytes == 0,
            LPGEMM_INVALID_ARGUMENT,
            "desc.n is 0, so no row brought source.column_order%s; give it with a piece of 0 rows", of_expert);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_weights_finish(lpgemm_handle_t handle, lpgemm_weights_t weights) {
  LPG_TRY(lpgemm_i_check_pieces(handle, weights));
  for (int64_t e = 0; e < weights->packed.experts; e++) LPG_TRY(check_complete(weights, e));
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
  LPG_TRY(read_whole_desc(desc, &packed));
  LPG_CHECK(packed.experts == 1, LPGEMM_INVALID_ARGUMENT,
            "desc.experts is %lld; a stack is packed expert by expert: lpgemm_weights_create(), lpgemm_pack_rows(), "
            "lpgemm_weights_finish()",
            (long long)packed.experts);
  LPG_TRY(lpgemm_i_open_source(&packed, source, packed.desc.n, &checked));
  LPG_TRY(check_memory(handle, &packed, memory, memory_bytes));
  int32_t before;
  lpgemm_weights_t w;
  LPG_TRY(lpgemm_i_enter(handle, &before));
  lpgemm_status_t status = create(handle, &packed, memory, &w);
  if (status == LPGEMM_SUCCESS) {
    status = pack_rows(handle, w, 0, 0, &checked);
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
  LPG_TRY(read_whole_desc(desc, &packed));
  LPG_CHECK(
      lpg_format_version(&packed.desc) == LPG_FORMAT_PLAIN && packed.experts == 1, LPGEMM_NOT_SUPPORTED,
      "desc has experts %d, rows %d, columns %d, row_scales %s and group_n %lld; quantising makes plain matrices: "
      "all must be 0",
      packed.desc.experts, (int)packed.desc.rows, (int)packed.desc.columns, lpgemm_dtype_name(packed.desc.row_scales),
      (long long)packed.desc.group_n);
  LPG_CHECK((int)method >= 0 && method <= LPGEMM_QUANTIZE_MSE, LPGEMM_INVALID_ARGUMENT,
            "method is %d; it must be an LPGEMM_QUANTIZE_ value", (int)method);
  LPG_CHECK(lpg_is_real(w_type), LPGEMM_INVALID_TYPE, "w_type is %s; it must be f32, f16 or bf16",
            lpgemm_dtype_name(w_type));
  LPG_CHECK(w || packed.desc.n == 0 || packed.desc.k == 0, LPGEMM_NULL_POINTER, "w is NULL");
  LPG_CHECK((uintptr_t)w % (uintptr_t)lpg_bytes(w_type) == 0, LPGEMM_MISALIGNED,
            "w is %p; it must be aligned to its element type %s", w, lpgemm_dtype_name(w_type));
  if (ldw == 0) ldw = packed.desc.k;
  LPG_TRY(lpgemm_i_check_ld("ldw", ldw, "k", packed.desc.k, packed.desc.n));
  LPG_TRY(check_memory(handle, &packed, memory, memory_bytes));
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
