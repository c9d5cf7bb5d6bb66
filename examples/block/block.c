/* The block, written once for both backends: this is what an engine does with lpgemm. */
#include "block.h"

#include <stdlib.h>

/* ---- for every token ---- */

/* One call for a linear layer. The residual sum is part of it (beta = 1, C = Y), so that no kernel of its own reads and
 * writes the tokens again; a bias would be args.bias, an activation of all outputs args.activation. */
void block_multiply(const block *b, const linear *layer, int64_t m, const void *x, void *y, int add) {
  static const float one = 1.0f;
  lpgemm_run_args_t args = {.size = sizeof args, .weights = layer->weights, .m = m};
  args.x = x;
  args.x_type = b->on->type;
  args.y = y;
  args.y_type = b->on->type;
  if (add) {
    args.beta = &one; /* a host scalar is read at the call: a captured graph keeps its value */
    args.c = y;
  }
  TRY(lpgemm_run(b->handle, &args));
}

/* Nothing here allocates or synchronises: on CUDA it may be captured as it is. */
void block_forward(const block *b, int64_t m) {
  const machine *on = b->on;
  on->rms_norm(b, m, b->x, b->attention_gain, b->normed);
  b->multiply(b, &b->qkv, m, b->normed, b->heads_in, 0);
  on->rope(b, m);
  on->attention(b, m);
  b->multiply(b, &b->o, m, b->heads_out, b->x, 1);

  on->rms_norm(b, m, b->x, b->ffn_gain, b->normed);
  b->multiply(b, &b->gate_up, m, b->normed, b->gate_and_up, 0);
  on->swiglu(b, m);
  b->multiply(b, &b->down, m, b->gated, b->x, 1);
}

/* ---- once, when the model is loaded ---- */

/* Kernels are loaded before anything is captured, and one workspace serves all layers of a handle: it is as large as
 * the largest that any of them asks for. Without it everything runs too, perhaps on slower kernels. */
static void prepare(block *b) {
  const linear *layers[] = {&b->qkv, &b->o, &b->gate_up, &b->down};
  lpgemm_run_args_t args = {.size = sizeof args, .x_type = b->on->type, .y_type = b->on->type};
  size_t most = 0;
  for (int i = 0; i < 4; i++) {
    size_t bytes;
    TRY(lpgemm_workspace_size(b->handle, layers[i]->weights, b->rows, &args, &bytes));
    TRY(lpgemm_prepare(b->handle, layers[i]->weights, b->rows));
    if (bytes > most) most = bytes;
  }
  b->workspace = most > 0 ? b->on->allocate(most) : NULL;
  TRY(lpgemm_set_workspace(b->handle, b->workspace, most));
}

static void *activations(const block *b, int64_t rows, int64_t columns) {
  return b->on->allocate((size_t)(rows * columns) * b->on->bytes);
}

static void *random_gain(const block *b, uint64_t seed) {
  float *gain = get_memory((size_t)b->shape.hidden * sizeof *gain);
  void *memory = activations(b, 1, b->shape.hidden);
  random_numbers(gain, b->shape.hidden, 0.75f, 1.25f, seed);
  b->on->upload(memory, gain, b->shape.hidden);
  free(gain);
  return memory;
}

void block_open(block *b, int bits) {
  const block_shape *s = &b->shape;
  int64_t qkv = (s->heads + 2 * s->kv_heads) * HEAD, rows = (b->rows + 15) / 16 * 16; /* whole tiles of tensor cores */
  random_layer(b->handle, &b->qkv, qkv, s->hidden, bits, 1);
  random_layer(b->handle, &b->o, s->hidden, s->hidden, bits, 2);
  random_layer(b->handle, &b->gate_up, 2 * s->ffn, s->hidden, bits, 3); /* gates, then ups */
  random_layer(b->handle, &b->down, s->hidden, s->ffn, bits, 4);
  b->multiply = block_multiply;
  prepare(b);

  b->attention_gain = random_gain(b, 5);
  b->ffn_gain = random_gain(b, 6);
  b->x = activations(b, rows, s->hidden);
  b->normed = activations(b, rows, s->hidden);
  b->heads_in = activations(b, rows, qkv);
  b->heads_out = activations(b, rows, s->hidden);
  b->gate_and_up = activations(b, rows, 2 * s->ffn);
  b->gated = activations(b, rows, s->ffn);
  b->keys = activations(b, b->context, s->kv_heads * HEAD);
  b->values = activations(b, b->context, s->kv_heads * HEAD);
  b->position = b->on->allocate(sizeof *b->position);
}

void block_close(block *b) {
  const linear *layers[] = {&b->qkv, &b->o, &b->gate_up, &b->down};
  void *memory[] = {b->workspace, b->attention_gain, b->ffn_gain, b->x,    b->normed, b->heads_in,
                    b->heads_out, b->gate_and_up,    b->gated,    b->keys, b->values, b->position};
  TRY(lpgemm_set_workspace(b->handle, NULL, 0));
  for (int i = 0; i < 4; i++) TRY(lpgemm_weights_destroy(layers[i]->weights));
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) b->on->release(memory[i]);
}
