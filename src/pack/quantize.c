/* Real weights to a packed matrix. Rows are independent; fit.h says what becomes of a group. */
#include "fit.h"

#include <stdlib.h>

lpgemm_status_t lpgemm_i_make_quantizer(const lpg_plan *plan, lpgemm_quantize_method_t method, lpg_quantizer *q) {
  memset(q, 0, sizeof *q);
  q->plan = plan;
  q->method = method;
  LPG_CHECK(method != LPGEMM_QUANTIZE_MINMAX || lpg_has_shift(q), LPGEMM_INVALID_ARGUMENT,
            "method is LPGEMM_QUANTIZE_MINMAX, but desc.zero is %d; it needs a zero (%d) or a minimum (%d) a group",
            (int)plan->desc.zero, (int)LPGEMM_ZERO_PER_GROUP, (int)LPGEMM_ZERO_MINIMUM);
  lpgemm_i_make_grid(plan->desc.type, plan->desc.codebook, &q->codes);
  q->least = q->codes.value[0];
  q->most = q->codes.value[q->codes.count - 1];
  if (lpg_bytes(plan->desc.scale_type) == 1) lpgemm_i_make_grid(plan->desc.scale_type, NULL, &q->scale_codes);
  if (lpg_bytes(plan->desc.zero_type) == 1) lpgemm_i_make_grid(plan->desc.zero_type, NULL, &q->shift_codes);
  return LPGEMM_SUCCESS;
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

lpgemm_status_t lpgemm_i_refuse_weight(float value, int64_t row, int64_t column) {
  LPG_CHECK(0, LPGEMM_INVALID_ARGUMENT, "w holds %g at row %lld, column %lld; weights to quantise must be finite",
            (double)value, (long long)row, (long long)column);
}

static lpgemm_status_t check_finite(const lpg_plan *plan, const void *w, lpgemm_dtype_t w_type, int64_t ldw) {
  for (int64_t row = 0; row < plan->desc.n; row++) {
    for (int64_t column = 0; column < plan->desc.k; column++) {
      float x = lpg_load(w_type, w, row * ldw + column);
      if (!(x - x == 0.0f)) return lpgemm_i_refuse_weight(x, row, column);
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
    for (int64_t j = 0, end; j < plan->group.count; j = end) {
      end = lpg_groups_end(plan, j);
      lpg_quantize_groups(&q, row, j, end, x, codes, blob);
    }
    put_row(plan, row, codes, blob);
  }
  memset(codes, lpg_padding_code(plan->desc.type), k_padded);
  for (int64_t row = plan->desc.n; row < plan->n_padded; row++) put_row(plan, row, codes, blob);
  free(x);
  lpgemm_i_seal(plan, blob, 0, 0, content);
  return LPGEMM_SUCCESS;
}
