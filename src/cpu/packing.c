/* Packing rows on all threads of a handle: a band of rows is a task. */
#include "../pack/pack.h"

#include <stdatomic.h>

#include "cpu.h"

enum { BAND_CODES = 1 << 18 }; /* of a task, at least a unit of rows: some hundred microseconds */

typedef struct job {
  const lpg_packed *packed;
  const lpg_source *source;
  int64_t first_row, band_rows;
  uint8_t *blob;
  atomic_uint_fast64_t hash, scale_span;
  atomic_int_fast64_t refused; /* the first band that was */
} job;

static lpg_band band_of(const job *j, int64_t index) {
  const int64_t first = index * j->band_rows, left = j->source->rows - first;
  return (lpg_band){first, left < j->band_rows ? left : j->band_rows};
}

static void lower(atomic_int_fast64_t *least, int64_t value) {
  int_fast64_t seen = atomic_load(least);
  while (value < seen && !atomic_compare_exchange_weak(least, &seen, value)) continue;
}

static void raise_to(atomic_uint_fast64_t *most, uint64_t value) {
  uint_fast64_t seen = atomic_load(most);
  while (value > seen && !atomic_compare_exchange_weak(most, &seen, value)) continue;
}

static void pack_task(void *context, int64_t index, void *unused) {
  job *j = context;
  const lpg_band band = band_of(j, index);
  lpg_content content;
  lpg_refusal refusal;
  (void)unused;
  if (atomic_load(&j->refused) < index) return;
  if (!lpgemm_i_pack_band(j->packed, j->source, j->first_row, &band, j->blob, &content, &refusal)) {
    lower(&j->refused, index);
    return;
  }
  atomic_fetch_add(&j->hash, content.payload_hash);
  raise_to(&j->scale_span, content.scale_span);
}

lpgemm_status_t lpgemm_i_pack_rows_parallel(lpgemm_handle_t handle, const lpg_packed *packed, const lpg_source *source,
                                            int64_t first_row, uint8_t *blob, lpg_content *content) {
  const int64_t unit = LPG_TILE_ROWS * packed->tiles_a_scale, codes = unit * (packed->k_padded + LPG_STEP_K);
  job j = {.packed = packed, .source = source, .first_row = first_row, .blob = blob};
  j.band_rows = packed->k_tiles > 0 ? lpg_ceil_div(BAND_CODES, codes) * unit : lpg_round_up(source->rows + 1, unit);
  const int64_t bands = lpg_ceil_div(source->rows, j.band_rows);
  atomic_init(&j.hash, 0);
  atomic_init(&j.scale_span, 0);
  atomic_init(&j.refused, INT64_MAX);
  LPG_TRY(lpgemm_i_parallel(handle->pool, bands, pack_task, &j));
  const int64_t refused = atomic_load(&j.refused);
  if (refused < bands) { /* once more, for what was wrong: a worker's last error is not the caller's */
    const lpg_band band = band_of(&j, refused);
    lpg_refusal refusal = {LPG_SECTION_CODES, 0, 0, 0};
    (void)lpgemm_i_pack_band(packed, source, first_row, &band, blob, content, &refusal);
    return lpgemm_i_refuse(packed, &refusal);
  }
  content->payload_hash = atomic_load(&j.hash);
  content->scale_span = (uint32_t)atomic_load(&j.scale_span);
  return LPGEMM_SUCCESS;
}
