/* All linear layers of a model for one step of decoding: in every layer q, k and v joined, o, gate and up joined, and
 * down, each layer with weights of its own, one after the other in CUDA graphs of some 10 ms. What lies between them is
 * left out: each product has an X of its own. Each is checked against fp64. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "limit.h"
#include "operands.h"
#include "run.h"

enum { PRODUCTS = 4 };

typedef struct model {
  bench_case one[PRODUCTS]; /* a case of each product */
  bench_weights weights[PRODUCTS];
  bench_operands operands[PRODUCTS];
  void *workspace;
} model;

static void set_products(const bench_case *c, model *m) {
  const int64_t inter = c->desc.n / 2, hidden = c->desc.k;
  const int64_t n[PRODUCTS] = {c->qkv, hidden, 2 * inter, hidden}, k[PRODUCTS] = {hidden, hidden, hidden, inter};
  for (int i = 0; i < PRODUCTS; i++) {
    m->one[i] = *c;
    m->one[i].operation = BENCH_GEMM;
    m->one[i].desc.n = n[i];
    m->one[i].desc.k = k[i];
  }
}

/* A copy of the weights for each layer. */
static bench_error make_product(const bench_machine *machine, const bench_case *c, bench_weights *w,
                                bench_operands *o) {
  bench_machine rotating = *machine;
  size_t packed;
  BENCH_LPGEMM(lpgemm_packed_size(&c->desc, &packed));
  rotating.rotate_bytes = (packed + 256) * (size_t)c->layers; /* copies are aligned */
  BENCH_TRY(bench_rotate_weights(&rotating, &c->desc, w));
  BENCH_CHECK(w->copies >= c->layers, "there is memory for %lld of %d layers", (long long)w->copies, c->layers);
  return bench_make_operands(machine, w, c, o);
}

static bench_error check_product(const bench_case *c, bench_operands *o, bench_result *r) {
  double rms_error = 0;
  BENCH_TRY(bench_run_into(o, NULL, o->y));
  const bench_product p = bench_product_of(o, c, 0);
  BENCH_TRY(bench_check_samples(o->machine, &p, &rms_error));
  r->rms_error = fmax(r->rms_error, rms_error);
  return NULL;
}

/* Adds a product to what the record says of the model. */
static bench_error describe(const bench_case *c, const bench_operands *o, bench_result *r) {
  char text[512];
  BENCH_LPGEMM(lpgemm_explain(o->machine->handle, &o->args, text, sizeof text));
  text[strcspn(text, ":")] = 0;
  const size_t at = strlen(r->plan);
  snprintf(r->plan + at, sizeof r->plan - at, "%s%lldx%lld %.40s", at ? ", " : "", (long long)c->desc.n,
           (long long)c->desc.k, text);
  r->bytes = (at ? r->bytes : 0) + c->layers * bench_ideal_bytes(c);
  return NULL;
}

/* One workspace, as large as the largest that a product needs. */
static bench_error bind_workspace(model *m) {
  const bench_machine *machine = m->operands[0].machine;
  size_t most = 0;
  for (int i = 0; i < PRODUCTS; i++) {
    const lpgemm_run_args_t *args = &m->operands[i].args;
    size_t bytes;
    BENCH_LPGEMM(lpgemm_workspace_size(machine->handle, args->weights, args->m, args, &bytes));
    if (bytes > most) most = bytes;
  }
  if (most) BENCH_TRY(machine->allocate(most, &m->workspace));
  BENCH_LPGEMM(lpgemm_set_workspace(machine->handle, m->workspace, most));
  return NULL;
}

/* A layer. */
static bench_error launch(void *context, int64_t i) {
  model *m = context;
  for (int p = 0; p < PRODUCTS; p++) BENCH_TRY(bench_launch_product(&m->operands[p], i % m->one[p].layers));
  return NULL;
}

/* A layer's time becomes that of all. */
static void take_layers(int32_t layers, bench_time *time) {
  time->us *= layers;
  time->us_min *= layers;
  time->us_max *= layers;
  time->nodes *= layers;
}

static bench_error run(const bench_machine *machine, const bench_case *c, model *m, bench_result *r) {
  for (int i = 0; i < PRODUCTS; i++) {
    BENCH_TRY(make_product(machine, &m->one[i], &m->weights[i], &m->operands[i]));
    bench_error error = check_product(&m->one[i], &m->operands[i], r);
    BENCH_CHECK(!error, "%lld x %lld: %s", (long long)m->one[i].desc.n, (long long)m->one[i].desc.k, error);
  }
  snprintf(r->checked, sizeof r->checked, "sampled outputs of each product by fp64");
  BENCH_TRY(bind_workspace(m));
  for (int i = 0; i < PRODUCTS; i++) BENCH_TRY(describe(&m->one[i], &m->operands[i], r));
  BENCH_TRY(machine->time(launch, m, c->layers, &r->time));
  take_layers(c->layers, &r->time);
  r->limit_us = 1e-3 * r->bytes / machine->read_gbps;
  return NULL;
}

bench_error bench_run_token(const bench_machine *machine, const bench_case *c, bench_result *r) {
  model m = {.workspace = NULL};
  set_products(c, &m);
  bench_error error = run(machine, c, &m, r);
  for (int i = 0; i < PRODUCTS; i++) {
    if (m.operands[i].machine) bench_free_operands(&m.operands[i]);
    bench_free_weights(machine, &m.weights[i]);
  }
  lpgemm_set_workspace(machine->handle, NULL, 0);
  machine->release(m.workspace);
  return error;
}
