/* What it costs the host to choose a kernel for a problem that the handle has not seen. lpgemm_supports() chooses anew
 * each time, as the first lpgemm_run() of a problem does. */
#include <stdio.h>

#include "run.h"

typedef struct asking {
  lpgemm_handle_t handle;
  const bench_case *problem;
} asking;

static bench_error ask(void *context, int64_t i) {
  const asking *a = context;
  const bench_case *c = a->problem;
  (void)i;
  BENCH_LPGEMM(lpgemm_supports(a->handle, &c->desc, c->x_type, c->y_type, c->m));
  return NULL;
}

bench_error bench_run_choose(const bench_machine *machine, const bench_case *c, bench_result *r) {
  asking a = {machine->handle, c};
  snprintf(r->kernel, sizeof r->kernel, "%s", bench_operation_name(c->operation));
  snprintf(r->checked, sizeof r->checked, "there is a kernel");
  return machine->time_host(ask, &a, &r->time);
}
