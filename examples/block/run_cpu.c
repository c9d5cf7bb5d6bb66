/* A few tokens on the CPU: three at once, one more from the cache, and the same four at once by the reference. */
#include <stdio.h>
#include <stdlib.h>

#include "block.h"

enum { TOKENS = CPU_PREFILL + CPU_STEPS, LANES = 8 };

/* ---- the reference: dequantised weights, summed in fp64 ---- */

static double dot(const float *x, const float *w, int64_t k) {
  double lane[LANES] = {0}, sum = 0.0;
  for (int64_t i = 0; i < k; i += LANES) {
    for (int l = 0; l < LANES; l++) lane[l] += (double)x[i + l] * (double)w[i + l];
  }
  for (int l = 0; l < LANES; l++) sum += lane[l];
  return sum;
}

/* Dequantises at every call: the largest layer alone is 470 MB in fp32. */
static void multiply_dense(const block *b, const linear *layer, int64_t m, const void *x, void *y, int add) {
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

/* ---- both ---- */

/* Tokens at once from a position of the cache on. */
static void run(const block *b, const float *in, float *out, int32_t position, int64_t tokens) {
  int64_t skip = position * b->shape.hidden, count = tokens * b->shape.hidden;
  b->on->upload(b->x, in + skip, count);
  b->on->set_position(b, position);
  block_forward(b, tokens);
  b->on->download(out + skip, b->x, count);
}

float *run_cpu(const block_shape *shape, int bits) {
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU};
  block b = {.on = &machine_cpu, .shape = *shape, .rows = TOKENS, .context = TOKENS};
  TRY(lpgemm_create(&b.handle, &config));
  block_open(&b, bits);

  float *in = random_tokens(shape, TOKENS), *out = random_tokens(shape, TOKENS), *want = random_tokens(shape, TOKENS);
  double start = seconds();
  run(&b, in, out, 0, CPU_PREFILL);
  double middle = seconds();
  for (int i = 0; i < CPU_STEPS; i++) run(&b, in, out, CPU_PREFILL + i, 1);
  double end = seconds();

  b.multiply = multiply_dense;
  run(&b, in, want, 0, TOKENS);
  printf("CPU, u%d: prefill of %d tokens %.1f ms, a step %.1f ms, difference from fp32 %.1e\n", bits, CPU_PREFILL,
         1e3 * (middle - start), 1e3 * (end - middle) / CPU_STEPS, difference(shape, b.on->type, out, want, TOKENS));

  free(in);
  free(want);
  block_close(&b);
  TRY(lpgemm_destroy(b.handle));
  return out;
}
