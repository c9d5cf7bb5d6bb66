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

/* Of several ranks each has a part of the inputs of such a layer, so what it gets is a part of a sum. The first rank
 * adds its part to the tokens, the others write theirs in the place of the tokens; the sum is the new tokens. */
static void add_to_tokens(const block *b, const linear *layer, int64_t m, const void *in) {
  b->multiply(b, layer, m, in, b->x, b->rank == 0);
  if (b->reduce) b->reduce(b, b->x, m * layer->n, b->on->type);
}

/* Nothing here allocates or synchronises: on CUDA it may be captured as it is. With many ranks some may have no heads,
 * or nothing of the FFN: products by nothing are 0. */
void block_forward(const block *b, int64_t m) {
  const machine *on = b->on;
  on->rms_norm(b, m, b->x, b->attention_gain, b->normed);
  b->multiply(b, &b->qkv, m, b->normed, b->heads_in, 0);
  if (b->shape.heads > 0) {
    on->rope(b, m);
    on->attention(b, m);
  }
  add_to_tokens(b, &b->o, m, b->heads_out);

  on->rms_norm(b, m, b->x, b->ffn_gain, b->normed);
  b->multiply(b, &b->gate_up, m, b->normed, b->gate_and_up, 0);
  if (b->shape.ffn > 0) on->swiglu(b, m);
  add_to_tokens(b, &b->down, m, b->gated);
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
  size_t bytes = (size_t)(rows * columns) * b->on->bytes;
  return b->on->allocate(bytes > 0 ? bytes : 1); /* a rank without heads has good pointers all the same */
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
  const block_shape *whole = &b->model, *s = &b->shape;
  int64_t queries = whole->heads * HEAD, keys = whole->kv_heads * HEAD;
  int64_t unit = queries / whole->kv_heads; /* the queries of a head of keys and values stay together */
  load_rows(b, &b->qkv, (rows_of[]){{queries, unit}, {keys, HEAD}, {keys, HEAD}}, 3, whole->hidden, bits, 1);
  load_columns(b, &b->o, whole->hidden, queries, unit, bits, 4);
  load_rows(b, &b->gate_up, (rows_of[]){{whole->ffn, GROUP}, {whole->ffn, GROUP}}, 2, whole->hidden, bits, 5);
  load_columns(b, &b->down, whole->hidden, whole->ffn, GROUP, bits, 7); /* cut where gate and up are */
  b->shape = (block_shape){
      .hidden = whole->hidden, .heads = b->o.k / HEAD, .kv_heads = b->qkv.of[1].rows / HEAD, .ffn = b->down.k};
  b->multiply = block_multiply;
  prepare(b);

  int64_t rows = (b->rows + 15) / 16 * 16; /* whole tiles of tensor cores */
  b->attention_gain = random_gain(b, 8);
  b->ffn_gain = random_gain(b, 9);
  b->x = activations(b, rows, s->hidden);
  b->normed = activations(b, rows, s->hidden);
  b->heads_in = activations(b, rows, b->qkv.n);
  b->heads_out = activations(b, rows, s->heads * HEAD);
  b->gate_and_up = activations(b, rows, 2 * s->ffn);
  b->gated = activations(b, rows, s->ffn);
  b->keys = activations(b, b->context, s->kv_heads * HEAD);
  b->values = activations(b, b->context, s->kv_heads * HEAD);
  b->position = b->on->allocate(sizeof *b->position);
}

void block_close(block *b) {
  linear *layers[] = {&b->qkv, &b->o, &b->gate_up, &b->down};
  void *memory[] = {b->workspace, b->attention_gain, b->ffn_gain, b->x,    b->normed, b->heads_in,
                    b->heads_out, b->gate_and_up,    b->gated,    b->keys, b->values, b->position};
  TRY(lpgemm_set_workspace(b->handle, NULL, 0));
  for (int i = 0; i < 4; i++) unload(layers[i]);
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) b->on->release(memory[i]);
}
