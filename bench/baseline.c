#include "baseline.h"

#include <stdlib.h>

#include "check.h"

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
} dense;

static bench_error launch(void *context, int64_t i) {
  const dense *d = context;
  const void *w = (const char *)slab.memory + (size_t)(i % d->copies) * d->stride;
  return d->machine->multiply(d->type, d->m, d->n, d->k, w, d->x, d->y);
}

static bench_error check_and_time(dense *d, bench_time *time, double *rms_error) {
  bench_product p = {.m = d->m, .n = d->n, .k = d->k, .ldx = d->k, .x_type = d->type, .y_type = bench_blas_y(d->type)};
  p.x = d->x;
  p.y = d->y;
  p.dense_seed = W_SEED;
  BENCH_TRY(d->machine->fill(d->type, d->x, d->m * d->k, X_SEED));
  BENCH_TRY(d->machine->poison(d->y, (size_t)(d->m * d->n) * 4));
  BENCH_TRY(launch(d, 0));
  BENCH_TRY(d->machine->synchronize());
  bench_error error = bench_check_samples(d->machine, &p, rms_error);
  BENCH_CHECK(!error, "%s: %s", d->machine->blas, error);
  return d->machine->time(launch, d, d->copies, time);
}

static bench_error measure(const bench_machine *machine, lpgemm_dtype_t type, int64_t m, int64_t n, int64_t k,
                           bench_time *time, double *rms_error) {
  dense d = {machine, type, m, n, k, 0, 0, NULL, NULL};
  size_t element = (size_t)lpgemm_dtype_bits(type) / 8;
  d.stride = (size_t)(n * k) * element;
  d.copies = (int64_t)(machine->rotate_bytes / d.stride) + 1;
  BENCH_TRY(need_slab(machine, type, (size_t)d.copies * d.stride));
  BENCH_TRY(machine->allocate((size_t)(m * k) * element, &d.x));
  bench_error error = machine->allocate((size_t)(m * n) * 4, &d.y);
  if (!error) error = check_and_time(&d, time, rms_error);
  machine->release(d.y);
  machine->release(d.x);
  return error;
}

/* ---- what was timed ---- */

typedef struct entry {
  lpgemm_dtype_t type;
  int64_t m, n, k;
  int threads;
  bench_time time;
  double rms_error;
} entry;

bench_error bench_baseline(const bench_machine *machine, lpgemm_dtype_t type, int64_t m, int64_t n, int64_t k,
                           int threads, bench_time *time, double *rms_error) {
  static entry *known;
  static int count;
  for (int i = 0; i < count; i++) {
    const entry *e = &known[i];
    if (e->type != type || e->m != m || e->n != n || e->k != k || e->threads != threads) continue;
    *time = e->time;
    *rms_error = e->rms_error;
    return NULL;
  }
  BENCH_TRY(measure(machine, type, m, n, k, time, rms_error));
  entry *more = realloc(known, (size_t)(count + 1) * sizeof *more);
  BENCH_CHECK(more, "out of memory");
  known = more;
  known[count++] = (entry){type, m, n, k, threads, *time, *rms_error};
  return NULL;
}
