/* A few tokens on the CPU: three at once, one more from the cache, and the same four at once by the reference. */
#include <stdio.h>
#include <stdlib.h>

#include "block.h"

enum { TOKENS = CPU_PREFILL + CPU_STEPS };

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
  block b = {.on = &machine_cpu, .model = *shape, .rows = TOKENS, .context = TOKENS};
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
         1e3 * (middle - start), 1e3 * (end - middle) / CPU_STEPS, difference(shape, b.on->type, out, want, TOKENS, 1));

  free(in);
  free(want);
  block_close(&b);
  TRY(lpgemm_destroy(b.handle));
  return out;
}
