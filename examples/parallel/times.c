/* How long a block takes, its products alone, and its sums over ranks alone. */
#include <stdlib.h>

#include "parallel.h"

/* So many blocks with weights of their own, as the layers of a model; all else they share. */
typedef struct layers {
  rank *r;
  block *b; /* [count] */
  int count;
  int64_t m;
  const float *tokens;
  float *zeros;
} layers;

/* ---- weights that no cache keeps ---- */

static void copy_weights(lpgemm_handle_t handle, const linear *from, linear *to, int count) {
  lpgemm_weights_info_t info = {.size = sizeof info};
  TRY(lpgemm_weights_info(from->weights, &info));
  void *bytes = get_memory(info.packed_bytes);
  TRY(lpgemm_serialize(handle, from->weights, bytes, info.packed_bytes));
  for (int i = 0; i < count; i++) {
    TRY(lpgemm_deserialize(handle, bytes, info.packed_bytes, LPGEMM_LOAD_COPY | LPGEMM_LOAD_SKIP_CHECKSUM,
                           &to[i].weights));
  }
  free(bytes);
}

static void open_copies(layers *l) {
  const block *own = &l->r->b;
  const linear *from[LAYERS] = {&own->qkv, &own->o, &own->gate_up, &own->down};
  linear *copy = get_memory((size_t)(LAYERS * l->count) * sizeof *copy);
  l->b = get_memory((size_t)l->count * sizeof *l->b);
  for (int i = 0; i < LAYERS; i++) copy_weights(own->handle, from[i], copy + i * l->count, l->count - 1);
  for (int c = 0; c < l->count; c++) {
    linear *to[LAYERS] = {&l->b[c].qkv, &l->b[c].o, &l->b[c].gate_up, &l->b[c].down};
    l->b[c] = *own;
    for (int i = 0; i < LAYERS && c > 0; i++) to[i]->weights = copy[i * l->count + c - 1].weights;
  }
  free(copy);
}

static void close_copies(layers *l) {
  for (int c = 1; c < l->count; c++) {
    linear *own[LAYERS] = {&l->b[c].qkv, &l->b[c].o, &l->b[c].gate_up, &l->b[c].down};
    for (int i = 0; i < LAYERS; i++) TRY(lpgemm_weights_destroy(own[i]->weights));
  }
  free(l->b);
}

/* ---- work, and from where it begins ---- */

static void start_with_tokens(void *context) {
  const layers *l = context;
  const block *b = &l->r->b;
  b->on->set_position(b, (int32_t)(b->context - b->rows < l->m ? b->context - l->m : b->rows));
  b->on->upload(b->x, l->tokens, l->m * b->shape.hidden);
}

/* Sums of zeros stay zeros, however often. */
static void start_with_zeros(void *context) {
  const layers *l = context;
  const block *b = &l->r->b;
  b->on->upload(b->x, l->zeros, l->m * b->shape.hidden);
}

static void do_blocks(void *context) {
  const layers *l = context;
  for (int i = 0; i < l->count; i++) block_forward(&l->b[i], l->m);
}

static void do_products(void *context) {
  const layers *l = context;
  for (int i = 0; i < l->count; i++) {
    const block *b = &l->b[i];
    b->multiply(b, &b->qkv, l->m, b->normed, b->heads_in, 0);
    b->multiply(b, &b->o, l->m, b->heads_out, b->x, b->rank == 0);
    b->multiply(b, &b->gate_up, l->m, b->normed, b->gate_and_up, 0);
    b->multiply(b, &b->down, l->m, b->gated, b->x, b->rank == 0);
  }
}

static void do_sums(void *context) {
  const layers *l = context;
  const block *b = &l->r->b;
  for (int i = 0; i < 2 * l->count; i++) b->reduce(b, b->x, l->m * b->shape.hidden, b->on->type);
}

void time_block(rank *r, const float *tokens) {
  const options *o = r->job->o;
  const engine *e = r->engine;
  layers l = {.r = r, .count = r->job->copies, .tokens = tokens};
  l.zeros = calloc((size_t)(most_rows(o) * o->shape.hidden), sizeof *l.zeros);
  if (!l.zeros) fail("no memory for tokens");
  open_copies(&l);
  for (int i = 0; i < o->row_counts; i++) {
    timing *time = &r->job->report[r->index].time[i];
    int in_graph = o->rows[i] < MOST_ROWS_IN_GRAPH; /* a prefill's rows differ from call to call */
    l.m = o->rows[i];
    time->block = e->time(r, do_blocks, &l, start_with_tokens, in_graph) / l.count;
    time->products = e->time(r, do_products, &l, start_with_tokens, in_graph) / l.count;
    if (r->b.reduce) time->sums = e->time(r, do_sums, &l, start_with_zeros, in_graph) / l.count;
  }
  close_copies(&l);
  free(l.zeros);
}
