/* The same products by dequantised weights, summed in fp64: plain C, and slow. */
#include <stdlib.h>

#include "block.h"

enum { LANES = 8 };

static double dot(const float *x, const float *w, int64_t k) {
  double lane[LANES] = {0}, sum = 0.0;
  for (int64_t i = 0; i < k; i += LANES) {
    for (int l = 0; l < LANES; l++) lane[l] += (double)x[i + l] * (double)w[i + l];
  }
  for (int l = 0; l < LANES; l++) sum += lane[l];
  return sum;
}

/* Dequantises at every call: the largest layer alone is 470 MB in fp32. */
void multiply_dense(const block *b, const linear *layer, int64_t m, const void *x, void *y, int add) {
  float *w = get_memory((size_t)(layer->n * layer->k) * sizeof *w);
  TRY(lpgemm_unpack_weights(b->handle, layer->weights, LPGEMM_F32, w, 0));
  for (int64_t n = 0; n < layer->n; n++) {
    for (int64_t row = 0; row < m; row++) {
      float *out = (float *)y + row * layer->n + n;
      *out = (float)(dot((const float *)x + row * layer->k, w + n * layer->k, layer->k) + (add ? (double)*out : 0.0));
    }
  }
  free(w);
}
