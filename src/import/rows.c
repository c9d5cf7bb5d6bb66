/* Reads and packs rows band by band: the codes of one band, one a byte, are all that a thread has in memory. */
#include "rows.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "../cpu/cpu.h"
#include "../pack/pack.h"

enum {
  USUAL_BAND = 1 << 20, /* bytes of codes: what a core's caches hold */
  MOST_BYTES = 48 << 20 /* of all bands at once */
};

/* ---- where a band lies in memory ---- */

/* Of the numbers of a section, those of whole rows of the file: a slice takes some in the middle. */
typedef struct run {
  int64_t offset;       /* in the band's memory */
  int64_t count, first; /* numbers of a row of the file, and the first that the slice takes */
} run;

typedef struct plan {
  const lpg_joined *joined;
  const lpg_packed *packed;
  float global_scale;    /* of the weights: row scales are relative to it */
  int64_t file_k, k0;    /* columns of the file, and the first packed one that is taken */
  int64_t rows;          /* of a band: a multiple of 16 and of group_n */
  run run[LPG_SECTIONS]; /* SCALES to SUPER_ZEROS */
  int64_t row_scales;    /* offset */
  int64_t bytes;         /* of a band */
} plan;

static int64_t add_bytes(plan *p, int64_t bytes) {
  int64_t offset = p->bytes;
  p->bytes += lpg_round_up(bytes, 64);
  return offset;
}

static void plan_bytes(plan *p) {
  const lpgemm_weight_desc_t *file = &p->joined->part[0].desc;
  p->bytes = 0;
  add_bytes(p, p->rows * p->file_k);
  for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++) {
    const int is_super = id == LPG_SECTION_SUPER_SCALES || id == LPG_SECTION_SUPER_ZEROS;
    const int64_t group = is_super ? file->super_k : file->group_k;
    run *r = &p->run[id];
    r->count = group ? lpg_ceil_div(p->file_k, group) : 1;
    r->first = group ? p->k0 / group : 0;
    r->offset = add_bytes(p, p->rows * r->count * lpg_bytes(lpg_section_type(file, (lpg_section_id)id)));
  }
  p->row_scales = add_bytes(p, p->rows * (int64_t)sizeof(float));
}

static lpgemm_status_t make_plan(const lpg_joined *joined, const lpg_packed *packed, plan *p) {
  const int64_t unit = packed->desc.group_n ? packed->desc.group_n : LPG_TILE_ROWS;
  *p = (plan){.joined = joined, .packed = packed, .global_scale = packed->desc.global_scale};
  p->file_k = joined->part[0].desc.k;
  p->k0 = joined->slice[0].k0;
  p->rows = unit > LPG_BAND ? unit : LPG_BAND;
  while (p->rows > unit && p->rows * p->file_k > USUAL_BAND) p->rows = lpg_round_up(p->rows / 2, unit);
  plan_bytes(p);
  LPG_CHECK(p->bytes <= MOST_BYTES, LPGEMM_NOT_SUPPORTED,
            "%lld columns are too many to import: %lld rows at once need %lld bytes, and %d are the limit",
            (long long)p->file_k, (long long)p->rows, (long long)p->bytes, MOST_BYTES);
  return LPGEMM_SUCCESS;
}

/* ---- reading ---- */

/* Rows of one part that lie together in a band. */
typedef struct piece {
  const lpg_part *part;
  int64_t file_row, band_row, rows;
} piece;

static void read_piece(const plan *p, const piece *piece, uint8_t *band) {
  const lpg_part *part = piece->part;
  for (int64_t i = 0; i < piece->rows; i += LPG_BAND) {
    const int64_t rows = piece->rows - i < LPG_BAND ? piece->rows - i : LPG_BAND;
    part->reader->codes(part, piece->file_row + i, rows, band + (piece->band_row + i) * p->file_k);
  }
  const int64_t step = p->packed->desc.group_n ? p->packed->desc.group_n : 1;
  for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++) {
    const int64_t bytes = p->run[id].count * lpg_bytes(lpg_section_type(&part->desc, (lpg_section_id)id));
    uint8_t *to = band + p->run[id].offset;
    if (bytes == 0) continue;
    if (step == 1) {
      part->reader->numbers(part, (lpg_section_id)id, piece->file_row, piece->rows, to + piece->band_row * bytes);
    }
    for (int64_t i = 0; step > 1 && i < piece->rows; i += step) { /* pieces begin where blocks of rows do */
      part->reader->numbers(part, (lpg_section_id)id, piece->file_row + i, 1,
                            to + (piece->band_row + i) / step * bytes);
    }
  }
  for (int64_t i = 0; i < piece->rows; i++) {
    ((float *)(void *)(band + p->row_scales))[piece->band_row + i] = part->desc.global_scale / p->global_scale;
  }
}

/* Rows [first, first + rows) of the joined parts. */
static void read_band(const plan *p, int64_t first, int64_t rows, uint8_t *band) {
  int64_t start = 0;
  for (size_t i = 0; i < p->joined->count; i++) {
    const lpg_slice *s = &p->joined->slice[i];
    const int64_t end = start + s->n1 - s->n0, from = first > start ? first : start;
    const int64_t to = first + rows < end ? first + rows : end;
    if (from < to) {
      const piece here = {&p->joined->part[i], s->n0 + from - start, from - first, to - from};
      read_piece(p, &here, band);
    }
    start = end;
  }
}

/* The band as a source for packing. */
static void set_source(const plan *p, int64_t rows, const uint8_t *band, lpg_source *source) {
  const lpgemm_weight_desc_t *d = &p->packed->desc;
  const int32_t *order = p->joined->part[0].column_order;
  const int64_t lines = d->group_n ? lpg_ceil_div(rows, d->group_n) : rows, skipped = order ? 0 : p->k0;
  lpgemm_weight_source_t *a = &source->arrays;
  *source = (lpg_source){.rows = rows, .source_rows = rows};
  a->size = sizeof *a;
  a->codes = band + skipped, a->codes_bytes = (size_t)(rows * p->file_k - skipped), a->codes_ld = p->file_k;
  a->scales_ld = p->run[LPG_SECTION_SCALES].count, a->super_ld = p->run[LPG_SECTION_SUPER_SCALES].count;
  const void **array[] = {&a->scales, &a->zeros, &a->super_scales, &a->super_zeros};
  size_t *bytes[] = {&a->scales_bytes, &a->zeros_bytes, &a->super_scales_bytes, &a->super_zeros_bytes};
  for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++) {
    const run *r = &p->run[id];
    const int size = lpg_bytes(lpg_section_type(d, (lpg_section_id)id));
    if (size == 0) continue;
    *array[id - LPG_SECTION_SCALES] = band + r->offset + r->first * size;
    *bytes[id - LPG_SECTION_SCALES] = (size_t)((lines * r->count - r->first) * size);
  }
  if (d->row_scales) a->row_scales = band + p->row_scales, a->row_scales_bytes = (size_t)rows * sizeof(float);
  if (order) a->column_order = order + p->k0, a->column_order_bytes = (size_t)d->k * sizeof *order;
}

/* ---- on threads ---- */

typedef struct job {
  const plan *plan;
  int64_t rows, first_row;
  uint8_t *blob, *memory;
  atomic_int_fast64_t next, refused; /* the first band that nobody has; the first that was refused */
  atomic_uint_fast64_t hash, scale_span;
} job;

static int64_t rows_of(const job *j, int64_t index) {
  const int64_t left = j->rows - index * j->plan->rows;
  return left < j->plan->rows ? left : j->plan->rows;
}

static int pack_one(const job *j, int64_t index, uint8_t *memory, lpg_content *content, lpg_refusal *refusal) {
  const int64_t first = index * j->plan->rows, rows = rows_of(j, index);
  const lpg_band all = {0, rows};
  lpg_source source;
  read_band(j->plan, first, rows, memory);
  set_source(j->plan, rows, memory, &source);
  return lpgemm_i_pack_band(j->plan->packed, &source, j->first_row + first, &all, j->blob, content, refusal);
}

/* One a thread: takes bands until there are none. */
static void pack_task(void *context, int64_t thread, void *unused) {
  job *j = context;
  const int64_t bands = lpg_ceil_div(j->rows, j->plan->rows);
  uint8_t *memory = j->memory + thread * j->plan->bytes;
  (void)unused;
  for (int64_t index = atomic_fetch_add(&j->next, 1); index < bands; index = atomic_fetch_add(&j->next, 1)) {
    lpg_content content = {0};
    lpg_refusal refusal;
    if (atomic_load(&j->refused) < index) return;
    if (!pack_one(j, index, memory, &content, &refusal)) {
      int_fast64_t least = atomic_load(&j->refused);
      while (index < least && !atomic_compare_exchange_weak(&j->refused, &least, index)) continue;
      return;
    }
    atomic_fetch_add(&j->hash, content.payload_hash);
    uint_fast64_t most = atomic_load(&j->scale_span);
    while (content.scale_span > most && !atomic_compare_exchange_weak(&j->scale_span, &most, content.scale_span))
      continue;
  }
}

static lpgemm_status_t refuse(const plan *p, int64_t band, const lpg_refusal *r) {
  const int is_code = r->id == LPG_SECTION_CODES;
  LPG_CHECK(0, LPGEMM_INVALID_CODE, "the %s has %s %u at row %lld, %s %lld: its type %s does not hold it",
            p->joined->part[0].reader->name, is_code ? "code" : "number", (unsigned)r->number,
            (long long)(band * p->rows + r->row), is_code ? "column" : "group", (long long)r->column,
            lpgemm_dtype_name(is_code ? p->packed->desc.type : lpg_section_type(&p->packed->desc, r->id)));
}

/* Blobs in host memory: all threads of the handle read and pack side by side. */
static lpgemm_status_t pack_on_host(lpgemm_handle_t handle, const plan *p, int64_t first_row, int64_t rows,
                                    uint8_t *blob, lpg_content *content) {
  const int64_t bands = lpg_ceil_div(rows, p->rows), fit = MOST_BYTES / p->bytes;
  int64_t threads = lpgemm_i_pool_threads(handle->pool);
  if (threads > bands) threads = bands;
  if (threads > fit) threads = fit;
  job j = {.plan = p, .rows = rows, .first_row = first_row};
  j.blob = blob;
  j.memory = aligned_alloc(64, (size_t)(threads * p->bytes));
  LPG_CHECK(j.memory, LPGEMM_OUT_OF_MEMORY, "no memory for %lld bands of %lld bytes", (long long)threads,
            (long long)p->bytes);
  atomic_init(&j.next, 0);
  atomic_init(&j.refused, bands);
  atomic_init(&j.hash, 0);
  atomic_init(&j.scale_span, 0);
  const lpgemm_status_t status = lpgemm_i_parallel(handle->pool, threads, pack_task, &j);
  const int64_t refused = atomic_load(&j.refused);
  lpg_refusal refusal = {0};
  if (status == LPGEMM_SUCCESS && refused < bands)
    (void)pack_one(&j, refused, j.memory, content, &refusal); /* once more, for its place */
  free(j.memory);
  LPG_TRY(status);
  if (refused < bands) return refuse(p, refused, &refusal);
  content->payload_hash = atomic_load(&j.hash);
  content->scale_span = (uint32_t)atomic_load(&j.scale_span);
  return LPGEMM_SUCCESS;
}

/* Other blobs: one band after the other through the backend's own packing. */
static lpgemm_status_t pack_by_backend(lpgemm_handle_t handle, const plan *p, int64_t first_row, int64_t rows,
                                       uint8_t *blob, lpg_content *content) {
  uint8_t *memory = aligned_alloc(64, (size_t)p->bytes);
  lpgemm_status_t status = LPGEMM_SUCCESS;
  LPG_CHECK(memory, LPGEMM_OUT_OF_MEMORY, "no memory for a band of %lld bytes", (long long)p->bytes);
  for (int64_t first = 0; first < rows && status == LPGEMM_SUCCESS; first += p->rows) {
    const int64_t count = rows - first < p->rows ? rows - first : p->rows;
    lpg_content part = {0};
    lpg_source source;
    read_band(p, first, count, memory);
    set_source(p, count, memory, &source);
    status = handle->backend->pack_rows(handle, p->packed, &source, first_row + first, blob, &part);
    if (status == LPGEMM_SUCCESS) lpgemm_i_add_content(content, &part);
  }
  free(memory);
  return status;
}

lpgemm_status_t lpgemm_i_begin_rows(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t expert, int64_t first_row,
                                    const lpg_joined *joined) {
  LPG_TRY(lpgemm_i_check_rows(weights, expert, first_row, joined->desc.n));
  if (!weights->packed.desc.columns) return LPGEMM_SUCCESS;
  /* it needs no check: lpgemm_i_set_order() has made it */
  return lpgemm_i_take_order(handle, weights, expert, joined->part[0].column_order + joined->slice[0].k0);
}

lpgemm_status_t lpgemm_i_import_rows(lpgemm_handle_t handle, const lpg_packed *packed, int64_t first_row,
                                     const lpg_joined *joined, uint8_t *blob, lpg_content *content) {
  plan p;
  LPG_TRY(make_plan(joined, packed, &p));
  return handle->device.backend == LPGEMM_BACKEND_CPU
             ? pack_on_host(handle, &p, first_row, joined->desc.n, blob, content)
             : pack_by_backend(handle, &p, first_row, joined->desc.n, blob, content);
}
