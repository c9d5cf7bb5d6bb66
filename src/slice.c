/* A run of some rows of W: the call of all rows, with everything that runs along N moved to the first of them. Row
 * tiles lie one after the other in every section, so kernels see a smaller matrix and know of nothing. */
#include "internal.h"

lpgemm_status_t lpgemm_i_check_slice(lpgemm_handle_t handle, const lpg_packed *packed, lpgemm_run_args_t *args) {
  const int64_t n = packed->desc.n, unit = LPG_TILE_ROWS * packed->tiles_a_scale;
  if (args->n_begin == 0 && args->n_end == 0) args->n_end = n;
  LPG_CHECK(
      (args->n_begin == 0 && args->n_end == n) || (packed->desc.rows == LPGEMM_ROWS_PLAIN && packed->experts == 1),
      LPGEMM_NOT_SUPPORTED,
      "n_begin is %lld and n_end %lld of n = %lld; slices are of one matrix with LPGEMM_ROWS_PLAIN",
      (long long)args->n_begin, (long long)args->n_end, (long long)n);
  const long long begin = args->n_begin, end = args->n_end;
  LPG_CHECK(begin >= 0 && begin <= end && end <= n, LPGEMM_INVALID_SIZE,
            "n_begin is %lld and n_end %lld; they must be a range within 0 .. n = %lld", begin, end, (long long)n);
  LPG_CHECK(begin % unit == 0 || begin == n, LPGEMM_INVALID_SIZE,
            "n_begin is %lld; it must be a multiple of %lld (16, or group_n if that is more), or n = %lld", begin,
            (long long)unit, (long long)n);
  LPG_CHECK(end % unit == 0 || end == n, LPGEMM_INVALID_SIZE,
            "n_end is %lld; it must be a multiple of %lld (16, or group_n if that is more), or n = %lld", end,
            (long long)unit, (long long)n);
  LPG_CHECK(handle->device.backend == LPGEMM_BACKEND_CPU || end - begin == n, LPGEMM_NOT_SUPPORTED,
            "n_begin is %lld and n_end %lld of n = %lld; only the CPU backend computes some of the rows", begin, end,
            (long long)n);
  return LPGEMM_SUCCESS;
}

/* Bytes of a section in front of a row that begins a tile of scales. */
static int64_t bytes_before(const lpg_packed *packed, lpg_section_id id, int64_t row) {
  switch (id) {
    case LPG_SECTION_CODES: return lpg_tile_offset(packed->bits, packed->k_tiles, row / LPG_TILE_ROWS, 0);
    case LPG_SECTION_ROW_EXPONENTS: return row;
    case LPG_SECTION_ROW_SCALES: return row * (int64_t)sizeof(float);
    case LPG_SECTION_COLUMN_ORDER: return 0;
    default:
      return lpg_value_offset(lpg_section_type(&packed->desc, id), lpg_section_axis(packed, id)->padded,
                              lpg_scale_row(packed, row), 0);
  }
}

void lpgemm_i_slice(lpg_call *call, int64_t begin, int64_t end, lpg_packed *part) {
  const lpg_packed *whole = call->problem.weights;
  *part = *whole;
  part->desc.n = end - begin;
  part->row_tiles = lpg_ceil_div(part->desc.n, LPG_TILE_ROWS);
  part->n_padded = part->row_tiles * LPG_TILE_ROWS;
  part->scale_tiles = lpg_ceil_div(part->row_tiles, part->tiles_a_scale);
  part->scale_rows = part->desc.group_n ? lpg_ceil_div(part->desc.n, part->desc.group_n) : part->desc.n;
  for (int i = 0; i < LPG_SECTIONS; i++) { /* offsets too: from where one section lies the others are found */
    if (!call->section[i]) continue;
    const int64_t bytes = bytes_before(whole, (lpg_section_id)i, begin);
    part->section[i].offset += (uint64_t)bytes;
    call->section[i] += bytes;
  }
  call->problem.weights = part;
  call->row_scales = (const float *)(const void *)call->section[LPG_SECTION_ROW_SCALES];
  call->y = (uint8_t *)call->y + begin * lpg_bytes(call->problem.y_type);
  if (call->c) call->c = (const uint8_t *)call->c + begin * lpg_bytes(call->problem.y_type);
  if (call->bias) call->bias = (const uint8_t *)call->bias + begin * lpg_bytes(call->bias_type);
}
