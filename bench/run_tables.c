/* lpgemm_lut_precompute(): what tables of m rows of X cost, apart from the calls that read them. */
#include <stdio.h>
#include <string.h>

#include "../tests/ref/gemm_ref.h"
#include "run.h"

enum { X_SEED = 47 };

typedef struct building {
  const bench_machine *machine;
  const bench_case *c;
  size_t bytes;
  void *x, *tables, *again;
} building;

static bench_error build_into(const building *b, void *tables) {
  BENCH_LPGEMM(
      lpgemm_lut_precompute(b->machine->handle, b->c->m, b->c->desc.k, b->x, b->c->x_type, 0, tables, b->bytes));
  return NULL;
}

static bench_error build(void *context, int64_t i) {
  (void)i;
  return build_into(context, ((const building *)context)->tables);
}

/* That they are right is seen by products with tables=given. */
static bench_error run(building *b, bench_result *r) {
  const bench_machine *machine = b->machine;
  const int64_t numbers = b->c->m * b->c->desc.k;
  BENCH_LPGEMM(lpgemm_lut_size(machine->handle, b->c->m, b->c->desc.k, &b->bytes));
  BENCH_TRY(machine->allocate((size_t)(numbers * ref_bytes(b->c->x_type)), &b->x));
  BENCH_TRY(machine->allocate(b->bytes, &b->tables));
  BENCH_TRY(machine->allocate(b->bytes, &b->again));
  BENCH_TRY(machine->fill(b->c->x_type, b->x, numbers, X_SEED));
  BENCH_TRY(machine->poison(b->again, b->bytes));
  BENCH_TRY(build_into(b, b->tables));
  BENCH_TRY(build_into(b, b->again));
  BENCH_CHECK(memcmp(b->tables, b->again, b->bytes) == 0, "the same tables, made twice, differ");
  snprintf(r->checked, sizeof r->checked, "the same bytes twice");
  return machine->time(build, b, 1, &r->time);
}

bench_error bench_run_tables(const bench_machine *machine, const bench_case *c, bench_result *r) {
  building b = {.machine = machine, .c = c};
  BENCH_CHECK(machine->backend == LPGEMM_BACKEND_CPU, "tables are made on the CPU only");
  snprintf(r->kernel, sizeof r->kernel, "%s", bench_operation_name(c->operation));
  bench_error error = run(&b, r);
  machine->release(b.x);
  machine->release(b.tables);
  machine->release(b.again);
  return error;
}
