/* Real weights to a packed matrix. Rows are independent; fit.c says what becomes of a group. */
#include <stdlib.h>

#include "fit.h"

/* ---- one row ---- */

static void put(const lpg_plan *plan, lpg_section_id id, int64_t row, int64_t index, uint32_t number, uint8_t *blob) {
  if (plan->section[id].bytes == 0) return;
  lpg_line line = lpgemm_i_line(plan, id, row);
  lpgemm_i_put_number(&line, blob, index, number);
}

static int64_t super_of(const lpg_plan *plan, int64_t j) { return j * plan->group.k / plan->super.k; }

/* Codes of group j. */
static void quantize_group(const lpg_quantizer *q, const lpg_fit *fit, const double *x, int64_t j, uint8_t *codes) {
  int64_t first = j * q->plan->group.k;
  for (int64_t i = first; i < first + lpg_group_size(q->plan, j); i++) {
    codes[i] = q->codes.code[lpg_grid_nearest(&q->codes, lpg_wanted_code(fit, x[i]))];
  }
}

/* Codes of a row, and its scales and zeros into the blob. */
static void quantize_row(const lpg_quantizer *q, int64_t row, const double *x, uint8_t *codes, uint8_t *blob) {
  const lpg_plan *plan = q->plan;
  lpg_units units = lpg_no_units();
  for (int64_t j = 0, end = 0; j < plan->group.count; j++) {
    if (plan->desc.super_scale_type && j == end) {
      while (end < plan->group.count && super_of(plan, end) == super_of(plan, j)) end++;
      units = lpgemm_i_fit_units(q, x, j, end);
      put(plan, LPG_SECTION_SUPER_SCALES, row, super_of(plan, j), units.scale.number, blob);
      put(plan, LPG_SECTION_SUPER_ZEROS, row, super_of(plan, j), units.shift.number, blob);
    }
    lpg_fit fit = lpgemm_i_fit_group(q, &units, x + j * plan->group.k, lpg_group_size(plan, j));
    put(plan, LPG_SECTION_SCALES, row, j, fit.scale.number, blob);
    put(plan, LPG_SECTION_ZEROS, row, j, fit.shift.number, blob);
    quantize_group(q, &fit, x, j, codes);
  }
}

static void put_row(const lpg_plan *plan, int64_t row, const uint8_t *codes, uint8_t *blob) {
  int64_t tile_k = lpg_tile_k(plan->bits);
  for (int64_t tile = 0; tile < plan->k_tiles; tile++) {
    uint8_t *to = blob + plan->section[LPG_SECTION_CODES].offset +
                  lpg_tile_offset(plan->bits, plan->k_tiles, row / LPG_TILE_ROWS, tile);
    lpgemm_i_put_codes(plan->desc.type, codes + tile * tile_k, (int)(row % LPG_TILE_ROWS), to);
  }
}

/* ---- the matrix ---- */

static lpgemm_status_t check_finite(const lpg_plan *plan, const void *w, lpgemm_dtype_t w_type, int64_t ldw) {
  for (int64_t row = 0; row < plan->desc.n; row++) {
    for (int64_t column = 0; column < plan->desc.k; column++) {
      float x = lpg_load(w_type, w, row * ldw + column);
      LPG_CHECK(x - x == 0.0f, LPGEMM_INVALID_ARGUMENT,
                "w holds %g at row %lld, column %lld; weights to quantise must be finite", (double)x, (long long)row,
                (long long)column);
    }
  }
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_quantize_host(const lpg_plan *plan, lpgemm_quantize_method_t method, const void *w,
                                       lpgemm_dtype_t w_type, int64_t ldw, uint8_t *blob, lpg_content *content) {
  lpg_quantizer q;
  LPG_TRY(lpgemm_i_make_quantizer(plan, method, &q));
  LPG_TRY(check_finite(plan, w, w_type, ldw));
  size_t k = (size_t)plan->desc.k, k_padded = (size_t)plan->k_padded;
  double *x = (double *)malloc(k * sizeof *x + k_padded + 1); /* + 1: never 0 bytes */
  LPG_CHECK(x, LPGEMM_OUT_OF_MEMORY, "no memory for %zu bytes of scratch", k * sizeof *x + k_padded);
  uint8_t *codes = (uint8_t *)(x + k);
  memset(codes, lpg_padding_code(plan->desc.type), k_padded);
  lpgemm_i_clear_numbers(plan, blob);
  for (int64_t row = 0; row < plan->desc.n; row++) {
    for (int64_t i = 0; i < plan->desc.k; i++) {
      x[i] = (double)lpg_load(w_type, w, row * ldw + i) / (double)plan->desc.global_scale;
    }
    quantize_row(&q, row, x, codes, blob);
    put_row(plan, row, codes, blob);
  }
  memset(codes, lpg_padding_code(plan->desc.type), k_padded);
  for (int64_t row = plan->desc.n; row < plan->n_padded; row++) put_row(plan, row, codes, blob);
  free(x);
  lpgemm_i_seal(plan, blob, content);
  return LPGEMM_SUCCESS;
}
