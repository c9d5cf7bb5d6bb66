#include "baseline.h"

#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "clock.h"

enum { W_SEED = 21, X_SEED = 22 };

/* ---- random weights, kept from case to case: any matrix of a type is cut out of one slab ---- */

static struct {
  void *memory;
  size_t bytes;
  lpgemm_dtype_t type;
} slab;

static bench_error need_slab(const bench_machine *machine, lpgemm_dtype_t type, size_t bytes) {
  if (slab.type == type && slab.bytes >= bytes) return NULL;
  bench_free_baseline(machine);
  BENCH_TRY(machine->allocate(bytes, &slab.memory));
  slab.bytes = bytes;
  slab.type = type;
  return machine->fill(type, slab.memory, (int64_t)(bytes / (size_t)(lpgemm_dtype_bits(type) / 8)), W_SEED);
}

void bench_free_baseline(const bench_machine *machine) {
  machine->release(slab.memory);
  slab.memory = NULL;
  slab.bytes = 0;
  slab.type = 0;
}

/* ---- one product ---- */

typedef struct dense {
  const bench_machine *machine;
  lpgemm_dtype_t type;
  int64_t m, n, k, copies;
  size_t stride; /* bytes from one copy of W to the next */
  void *x, *y;
  double rms_error;
} dense;

static bench_error launch(void *context, int64_t i) {
  const dense *d = context;
  const void *w = (const char *)slab.memory + (size_t)(i % d->copies) * d->stride;
  return d->machine->multiply(d->type, d->m, d->n, d->k, w, d->x, d->y);
}

static bench_error check(dense *d) {
  bench_product p = {.m = d->m, .n = d->n, .k = d->k, .ldx = d->k, .x_type = d->type, .y_type = bench_blas_y(d->type)};
  p.x = d->x;
  p.y = d->y;
  p.dense_seed = W_SEED;
  BENCH_TRY(d->machine->fill(d->type, d->x, d->m * d->k, X_SEED));
  BENCH_TRY(d->machine->poison(d->y, (size_t)(d->m * d->n) * 4));
  BENCH_TRY(launch(d, 0));
  BENCH_TRY(d->machine->synchronize());
  bench_error error = bench_check_samples(d->machine, &p, &d->rms_error);
  BENCH_CHECK(!error, "%s: %s", d->machine->blas, error);
  return NULL;
}

/* After a failure too, free_dense() frees what is there. */
static bench_error make_dense(const bench_machine *machine, lpgemm_dtype_t type, const bench_case *c, dense *d) {
  *d = (dense){machine, type, c->m, c->desc.n, c->desc.k, 0, 0, NULL, NULL, 0};
  size_t element = (size_t)lpgemm_dtype_bits(type) / 8;
  d->stride = (size_t)(d->n * d->k) * element;
  d->copies = (int64_t)(machine->rotate_bytes / d->stride) + 1;
  BENCH_TRY(need_slab(machine, type, (size_t)d->copies * d->stride));
  BENCH_TRY(machine->allocate((size_t)(d->m * d->k) * element, &d->x));
  BENCH_TRY(machine->allocate((size_t)(d->m * d->n) * 4, &d->y));
  return check(d);
}

static void free_dense(dense *d) {
  d->machine->release(d->y);
  d->machine->release(d->x);
}

/* ---- bursts, each once ---- */

typedef struct entry {
  lpgemm_dtype_t type;
  int64_t m, n, k;
  int threads;
  bench_time time;
  double rms_error;
} entry;

static entry *known;
static int known_count;

static const entry *find(lpgemm_dtype_t type, const bench_case *c) {
  for (int i = 0; i < known_count; i++) {
    const entry *e = &known[i];
    if (e->type == type && e->m == c->m && e->n == c->desc.n && e->k == c->desc.k && e->threads == c->threads) return e;
  }
  return NULL;
}

static bench_error burst(const bench_machine *machine, lpgemm_dtype_t type, const bench_case *c, bench_time *time,
                         double *rms_error) {
  dense d;
  const entry *before = find(type, c);
  if (before) {
    *time = before->time;
    *rms_error = before->rms_error;
    return NULL;
  }
  bench_error error = make_dense(machine, type, c, &d);
  if (!error) error = machine->time(launch, &d, d.copies, time);
  free_dense(&d);
  BENCH_TRY(error);
  *rms_error = d.rms_error;
  entry *more = realloc(known, (size_t)(known_count + 1) * sizeof *more);
  BENCH_CHECK(more, "out of memory");
  known = more;
  known[known_count++] = (entry){type, c->m, c->desc.n, c->desc.k, c->threads, *time, *rms_error};
  return NULL;
}

/* ---- a product and its baseline ---- */

/* That of the CPU is fp32 whatever the case's types are. */
static lpgemm_dtype_t type_of(const bench_machine *machine, const bench_case *c) {
  return machine->backend == LPGEMM_BACKEND_CPU ? LPGEMM_F32 : c->baseline;
}

static void note(bench_result *r, bench_error error) {
  snprintf(r->baseline_note, sizeof r->baseline_note, "%s", error);
}

static bench_error time_bursts(const bench_machine *machine, const bench_case *c, const bench_program *product,
                               bench_result *r) {
  double rms_error, start = bench_now();
  BENCH_TRY(machine->time(product->launch, product->context, product->rotation, &r->time));
  r->spent.time = bench_now() - start;
  if (c->baseline == 0) return NULL;
  start = bench_now();
  bench_error error = burst(machine, type_of(machine, c), c, &r->baseline, &rms_error);
  if (error) note(r, error);
  r->spent.baseline = bench_now() - start;
  return NULL;
}

static bench_error time_sustained(const bench_machine *machine, const bench_case *c, const bench_program *product,
                                  bench_result *r) {
  dense d = {.machine = machine};
  bench_program program[2] = {*product};
  bench_time time[2];
  double start = bench_now();
  bench_error missing = c->baseline ? make_dense(machine, type_of(machine, c), c, &d) : NULL;
  const int programs = c->baseline && !missing ? 2 : 1;
  if (missing) note(r, missing);
  r->spent.baseline = bench_now() - start;
  program[1] = (bench_program){launch, &d, d.copies};
  start = bench_now();
  bench_error error = machine->time_sustained(program, programs, machine->turn_seconds, time);
  r->spent.time = bench_now() - start;
  free_dense(&d);
  BENCH_TRY(error);
  r->time = time[0];
  if (programs == 2) r->baseline = time[1];
  return NULL;
}

static int is_sustained(const bench_machine *machine, const bench_case *c) {
  return machine->time_sustained && c->m > BENCH_BURST_ROWS;
}

bench_error bench_time_product(const bench_machine *machine, const bench_case *c, const bench_program *product,
                               bench_result *r) {
  return (is_sustained(machine, c) ? time_sustained : time_bursts)(machine, c, product, r);
}

bench_error bench_time_baseline(const bench_machine *machine, const bench_case *c, bench_result *r) {
  dense d;
  if (!is_sustained(machine, c)) return burst(machine, c->baseline, c, &r->time, &r->rms_error);
  bench_error error = make_dense(machine, c->baseline, c, &d);
  const bench_program program = {launch, &d, d.copies};
  if (!error) error = machine->time_sustained(&program, 1, machine->turn_seconds, &r->time);
  free_dense(&d);
  r->rms_error = d.rms_error;
  return error;
}
