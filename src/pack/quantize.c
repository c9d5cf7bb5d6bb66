/* Real weights to a packed matrix. Rows are independent; fit.h says what becomes of a group. */
#include "fit.h"

#include <stdlib.h>

lpgemm_status_t lpgemm_i_make_quantizer(const lpg_packed *packed, lpgemm_quantize_method_t method, lpg_quantizer *q) {
  memset(q, 0, sizeof *q);
  q->packed = packed;
  q->method = method;
  LPG_CHECK(method != LPGEMM_QUANTIZE_MINMAX || lpg_has_shift(q), LPGEMM_INVALID_ARGUMENT,
            "method is LPGEMM_QUANTIZE_MINMAX, but desc.zero is %d; it needs a zero (%d) or a minimum (%d) a group",
            (int)packed->desc.zero, (int)LPGEMM_ZERO_PER_GROUP, (int)LPGEMM_ZERO_MINIMUM);
  lpgemm_i_make_grid(packed->desc.type, packed->desc.codebook, &q->codes);
  q->least = q->codes.value[0];
  q->most = q->codes.value[q->codes.count - 1];
  if (lpg_bytes(packed->desc.scale_type) == 1) lpgemm_i_make_grid(packed->desc.scale_type, NULL, &q->scale_codes);
  if (lpg_bytes(packed->desc.zero_type) == 1) lpgemm_i_make_grid(packed->desc.zero_type, NULL, &q->shift_codes);
  return LPGEMM_SUCCESS;
}

static void put_row(const lpg_packed *packed, int64_t row, const uint8_t *codes, uint8_t *blob) {
  int64_t tile_k = lpg_tile_k(packed->bits);
  for (int64_t tile = 0; tile < packed->k_tiles; tile++) {
    uint8_t *to = blob + packed->section[LPG_SECTION_CODES].offset +
                  lpg_tile_offset(packed->bits, packed->k_tiles, row / LPG_TILE_ROWS, tile);
    lpgemm_i_put_codes(packed->desc.type, codes + tile * tile_k, (int)(row % LPG_TILE_ROWS), to);
  }
}

/* ---- the matrix ---- */

lpgemm_status_t lpgemm_i_refuse_weight(float value, int64_t row, int64_t column) {
  LPG_CHECK(0, LPGEMM_INVALID_ARGUMENT, "w holds %g at row %lld, column %lld; weights to quantise must be finite",
            (double)value, (long long)row, (long long)column);
}

static lpgemm_status_t check_finite(const lpg_packed *packed, const void *w, lpgemm_dtype_t w_type, int64_t ldw) {
  for (int64_t row = 0; row < packed->desc.n; row++) {
    for (int64_t column = 0; column < packed->desc.k; column++) {
      float x = lpg_load(w_type, w, row * ldw + column);
      if (!(x - x == 0.0f)) return lpgemm_i_refuse_weight(x, row, column);
    }
  }
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_quantize_host(const lpg_packed *packed, lpgemm_quantize_method_t method, const void *w,
                                       lpgemm_dtype_t w_type, int64_t ldw, uint8_t *blob, lpg_content *content) {
  lpg_quantizer q;
  LPG_TRY(lpgemm_i_make_quantizer(packed, method, &q));
  LPG_TRY(check_finite(packed, w, w_type, ldw));
  size_t k = (size_t)packed->desc.k, k_padded = (size_t)packed->k_padded;
  double *x = (double *)malloc(k * sizeof *x + k_padded + 1); /* + 1: never 0 bytes */
  LPG_CHECK(x, LPGEMM_OUT_OF_MEMORY, "no memory for %zu bytes of scratch", k * sizeof *x + k_padded);
  uint8_t *codes = (uint8_t *)(x + k);
  memset(codes, lpg_padding_code(packed->desc.type), k_padded);
  lpgemm_i_begin_host(packed, blob);
  for (int64_t row = 0; row < packed->desc.n; row++) {
    for (int64_t i = 0; i < packed->desc.k; i++) {
      x[i] = (double)lpg_load(w_type, w, row * ldw + i) / (double)packed->desc.global_scale;
    }
    for (int64_t j = 0, end; j < packed->group.count; j = end) {
      end = lpg_groups_end(packed, j);
      lpg_quantize_groups(&q, row, j, end, x, codes, blob);
    }
    put_row(packed, row, codes, blob);
  }
  memset(codes, lpg_padding_code(packed->desc.type), k_padded);
  for (int64_t row = packed->desc.n; row < packed->n_padded; row++) put_row(packed, row, codes, blob);
  free(x);
  content->scale_span = lpgemm_i_put_exponents(packed, 0, packed->desc.n, blob);
  content->payload_hash = lpgemm_i_hash(blob + LPG_HEADER_BYTES, packed->section[LPG_SECTION_CODES].bytes);
  lpgemm_i_finish_host(packed, blob, content);
  return LPGEMM_SUCCESS;
}
