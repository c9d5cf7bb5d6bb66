/* One product by lpgemm_run(): packed copies, check against fp64 and the reference kernel, time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "baseline.h"
#include "operands.h"
#include "run.h"

enum { MAX_KERNELS = 4096 };

/* ---- kernels ---- */

/* What the library estimates for a call by a kernel, in microseconds; negative if the kernel cannot do it. */
static double estimate(const bench_machine *machine, const lpgemm_run_args_t *args, const char *kernel) {
  lpgemm_run_args_t forced = *args;
  char text[256];
  double us = -1;
  forced.kernel = kernel;
  if (lpgemm_explain(machine->handle, &forced, text, sizeof text) != LPGEMM_SUCCESS) return -1;
  const char *about = strstr(text, "about ");
  return about && sscanf(about, "about %lf", &us) == 1 ? us : -1;
}

/* Of the kernels with that name or of that family the one that the library estimates fastest for a call; not `except`,
 * unless that is NULL or there is no other. */
static bench_error find_kernel(const bench_machine *machine, const lpgemm_run_args_t *args, const char *wanted,
                               const char *except, char name[64], char family[32]) {
  size_t count = 0;
  BENCH_LPGEMM(lpgemm_list_kernels(NULL, 0, &count));
  BENCH_CHECK(count <= MAX_KERNELS, "%zu kernels", count);
  lpgemm_kernel_info_t *list = calloc(count, sizeof *list);
  BENCH_CHECK(list, "out of memory");
  for (size_t i = 0; i < count; i++) list[i].size = sizeof *list;
  lpgemm_status_t status = lpgemm_list_kernels(list, count, &count);
  double best = -1;
  for (size_t i = 0; status == LPGEMM_SUCCESS && i < count; i++) {
    if (list[i].backend != machine->backend || !list[i].available) continue;
    if (strcmp(list[i].name, wanted) != 0 && strcmp(list[i].family, wanted) != 0) continue;
    double us = estimate(machine, args, list[i].name);
    if (except && strcmp(list[i].name, except) == 0) us += us < 0 ? 0 : 1e30;
    if (us < 0 || (best >= 0 && us >= best)) continue;
    best = us;
    snprintf(name, 64, "%s", list[i].name);
    snprintf(family, 32, "%s", list[i].family);
  }
  free(list);
  BENCH_CHECK(status == LPGEMM_SUCCESS, "lpgemm_list_kernels: %s", lpgemm_last_error());
  BENCH_CHECK(best >= 0, "no kernel that is called '%s', or of that family, can do this here", wanted);
  return NULL;
}

/* The kernel that a call takes: the first word of its explanation; and its plan. */
static bench_error chosen_kernel(const bench_machine *machine, const lpgemm_run_args_t *args, char name[64],
                                 char family[32], char plan[256]) {
  char text[512];
  BENCH_LPGEMM(lpgemm_explain(machine->handle, args, text, sizeof text));
  const char *line = strstr(text, "  plan: ");
  if (line) snprintf(plan, 256, "%.*s", (int)strcspn(line + 8, "\n"), line + 8);
  text[strcspn(text, ":")] = 0;
  return find_kernel(machine, args, text, NULL, name, family);
}

static bench_error check(bench_operands *g, const bench_case *c, bench_result *r) {
  bench_product p = bench_product_of(g, c, 0);
  char name[64], family[32];
  BENCH_TRY(bench_run_into(g, g->args.kernel, g->y));
  bench_error error = bench_check_samples(g->machine, &p, &r->rms_error);
  BENCH_CHECK(!error, "%s: %s", r->kernel, error);
  snprintf(r->checked, sizeof r->checked, "sampled outputs by fp64");
  if (c->checks_samples) return NULL;
  g->args.prepared_x = NULL;
  g->args.prepared_x_bytes = 0;
  BENCH_TRY(find_kernel(g->machine, &g->args, g->machine->reference, r->kernel, name, family));
  if (strcmp(name, r->kernel) == 0) return NULL; /* it would be compared with itself */
  BENCH_TRY(bench_run_into(g, name, g->other_y));
  error = bench_check_all(g->machine, &p, g->other_y);
  BENCH_CHECK(!error, "%s: %s", r->kernel, error);
  snprintf(r->checked, sizeof r->checked, "sampled outputs by fp64, all by %s", family);
  return NULL;
}

static bench_error time_call(bench_operands *g, bench_result *r) {
  const double start = bench_now();
  BENCH_TRY(g->machine->time_host(bench_launch_product, g, &r->time));
  r->spent.time = bench_now() - start;
  return NULL;
}

static bench_error run(bench_operands *g, const bench_case *c, bench_result *r) {
  char forced[64], family[32];
  if (c->kernel[0]) {
    BENCH_TRY(find_kernel(g->machine, &g->args, c->kernel, NULL, forced, family));
    g->args.kernel = forced;
  }
  BENCH_TRY(bench_bind_workspace(g, &g->args)); /* the choice depends on it */
  BENCH_TRY(chosen_kernel(g->machine, &g->args, r->kernel, r->family, r->plan));
  if (c->gives_prepared || c->operation == BENCH_PREPARE) BENCH_TRY(bench_prepare_x(g));
  const lpgemm_run_args_t args = g->args; /* check() goes on without prepared X */
  double start = bench_now();
  BENCH_TRY(check(g, c, r));
  g->args = args;
  r->spent.check = bench_now() - start;
  BENCH_TRY(bench_bind_workspace(g, &g->args));
  const bench_program product = {bench_launch_product, g, g->weights->copies};
  if (c->operation == BENCH_PREPARE) return g->machine->time(bench_launch_prepare, g, 1, &r->time);
  return c->operation == BENCH_CALL ? time_call(g, r) : bench_time_product(g->machine, c, &product, r);
}

/* ---- weights are kept while cases use the same ---- */

static bench_weights kept;

void bench_free_gemm(const bench_machine *machine) { bench_free_weights(machine, &kept); }

bench_error bench_run_gemm(const bench_machine *machine, const bench_case *c, bench_result *r) {
  const int has_norms = kept.norm != NULL;
  if (!kept.copy || (!has_norms && !c->checks_samples) || memcmp(&kept.desc, &c->desc, sizeof kept.desc) != 0) {
    double start = bench_now();
    bench_free_gemm(machine);
    bench_error error = (c->checks_samples ? bench_rotate_weights : bench_make_weights)(machine, &c->desc, &kept);
    r->spent.weights = bench_now() - start;
    if (error) bench_free_gemm(machine);
    BENCH_TRY(error);
  }
  bench_operands g;
  bench_error error = bench_make_operands(machine, &kept, c, &g);
  if (!error) error = run(&g, c, r);
  bench_free_operands(&g);
  return error;
}
