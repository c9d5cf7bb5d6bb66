/* One product by lpgemm_run(): packed copies, check against fp64 and the reference kernel, time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "random.h"
#include "run.h"

enum { X_SEED = 3, X_SCALE_SEED = 4, MAX_KERNELS = 4096 };

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

/* The kernel that a call takes: the first word of its explanation. */
static bench_error chosen_kernel(const bench_machine *machine, const lpgemm_run_args_t *args, char name[64],
                                 char family[32]) {
  char text[256];
  BENCH_LPGEMM(lpgemm_explain(machine->handle, args, text, sizeof text));
  text[strcspn(text, ":")] = 0;
  return find_kernel(machine, args, text, NULL, name, family);
}

/* ---- operands ---- */

typedef struct gemm {
  const bench_machine *machine;
  const bench_weights *weights;
  lpgemm_run_args_t args;
  int64_t ldx;
  size_t y_bytes;
  void *x, *y, *other_y, *x_scale, *workspace;
  float *host_x_scale;
  size_t workspace_bytes;
} gemm;

/* 8-bit activations are scaled to about [-1, 1], a scale a row or one. */
static bench_error make_x_scale(gemm *g, const bench_case *c) {
  if (c->x_scale_mode == LPGEMM_X_SCALE_NONE) return NULL;
  size_t count = c->x_scale_mode == LPGEMM_X_SCALE_ROW ? (size_t)c->m : 1;
  float largest =
      c->x_type == LPGEMM_E4M3 || c->x_type == LPGEMM_E5M2 ? 2.0f : (float)((1 << lpgemm_dtype_bits(c->x_type)) - 1);
  g->host_x_scale = malloc(count * sizeof(float));
  BENCH_CHECK(g->host_x_scale, "out of memory");
  for (size_t i = 0; i < count; i++) {
    g->host_x_scale[i] = (1.0f + (float)(bench_random(X_SCALE_SEED, i) % 256) / 256.0f) / largest;
  }
  BENCH_TRY(g->machine->allocate(count * sizeof(float), &g->x_scale));
  return g->machine->copy(g->x_scale, g->host_x_scale, count * sizeof(float));
}

static bench_error make_operands(gemm *g, const bench_case *c) {
  const bench_machine *machine = g->machine;
  g->ldx = c->desc.k + c->x_gap;
  size_t x_bytes = (size_t)(c->m * g->ldx) * (size_t)((lpgemm_dtype_bits(c->x_type) + 7) / 8);
  g->y_bytes = (size_t)(c->m * c->desc.n) * (size_t)(lpgemm_dtype_bits(c->y_type) / 8);
  BENCH_TRY(machine->allocate(x_bytes, &g->x));
  BENCH_TRY(machine->allocate(g->y_bytes, &g->y));
  BENCH_TRY(machine->allocate(g->y_bytes, &g->other_y));
  BENCH_TRY(machine->fill(c->x_type, g->x, c->m * g->ldx, X_SEED));
  BENCH_TRY(make_x_scale(g, c));
  g->args.weights = g->weights->copy[0];
  g->args.m = c->m;
  g->args.x = g->x;
  g->args.ldx = g->ldx;
  g->args.x_type = c->x_type;
  g->args.y = g->y;
  g->args.y_type = c->y_type;
  g->args.x_scale = g->x_scale;
  g->args.x_scale_mode = c->x_scale_mode;
  g->args.batch_invariant = c->batch_invariant;
  return NULL;
}

static void free_operands(gemm *g) {
  void *memory[] = {g->x, g->y, g->other_y, g->x_scale, g->workspace};
  lpgemm_set_workspace(g->machine->handle, NULL, 0);
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) g->machine->release(memory[i]);
  free(g->host_x_scale);
}

/* ---- runs ---- */

/* A workspace of just the size that the call needs. */
static bench_error bind_workspace(gemm *g, const lpgemm_run_args_t *args) {
  size_t bytes;
  BENCH_LPGEMM(lpgemm_workspace_size(g->machine->handle, args->weights, args->m, args, &bytes));
  g->machine->release(g->workspace);
  g->workspace = NULL;
  if (bytes) BENCH_TRY(g->machine->allocate(bytes, &g->workspace));
  BENCH_LPGEMM(lpgemm_set_workspace(g->machine->handle, g->workspace, bytes));
  return NULL;
}

/* Runs a kernel (NULL: the automatic choice) into a poisoned y. */
static bench_error run_into(gemm *g, const char *kernel, void *y) {
  lpgemm_run_args_t args = g->args;
  args.kernel = kernel;
  args.y = y;
  BENCH_TRY(bind_workspace(g, &args));
  BENCH_TRY(g->machine->poison(y, g->y_bytes));
  BENCH_LPGEMM(lpgemm_run(g->machine->handle, &args));
  return g->machine->synchronize();
}

static bench_error launch(void *context, int64_t i) {
  const gemm *g = context;
  lpgemm_run_args_t args = g->args;
  args.weights = g->weights->copy[i % g->weights->copies];
  BENCH_LPGEMM(lpgemm_run(g->machine->handle, &args));
  return NULL;
}

static bench_error check(gemm *g, const bench_case *c, bench_result *r) {
  bench_product p = {.m = c->m, .n = c->desc.n, .k = c->desc.k, .ldx = g->ldx, .x_type = c->x_type};
  p.y_type = c->y_type;
  p.x = g->x;
  p.y = g->y;
  p.x_scale = g->host_x_scale;
  p.x_scale_mode = c->x_scale_mode;
  p.weights = g->weights;
  char name[64], family[32];
  BENCH_TRY(run_into(g, g->args.kernel, g->y));
  bench_error error = bench_check_samples(g->machine, &p, &r->rms_error);
  BENCH_CHECK(!error, "%s: %s", r->kernel, error);
  snprintf(r->checked, sizeof r->checked, "sampled outputs by fp64");
  BENCH_TRY(find_kernel(g->machine, &g->args, g->machine->reference, r->kernel, name, family));
  if (strcmp(name, r->kernel) == 0) return NULL; /* it would be compared with itself */
  BENCH_TRY(run_into(g, name, g->other_y));
  error = bench_check_all(g->machine, &p, g->other_y);
  BENCH_CHECK(!error, "%s: %s", r->kernel, error);
  snprintf(r->checked, sizeof r->checked, "sampled outputs by fp64, all by %s", family);
  return NULL;
}

static bench_error run(gemm *g, const bench_case *c, bench_result *r) {
  char forced[64], family[32];
  BENCH_TRY(make_operands(g, c));
  if (c->kernel[0]) {
    BENCH_TRY(find_kernel(g->machine, &g->args, c->kernel, NULL, forced, family));
    g->args.kernel = forced;
  }
  BENCH_TRY(bind_workspace(g, &g->args)); /* the choice depends on it */
  BENCH_TRY(chosen_kernel(g->machine, &g->args, r->kernel, r->family));
  double start = bench_now();
  BENCH_TRY(check(g, c, r));
  r->spent.check = bench_now() - start;
  BENCH_TRY(bind_workspace(g, &g->args));
  start = bench_now();
  BENCH_TRY(c->operation == BENCH_CALL ? g->machine->time_host(launch, g, &r->time)
                                       : g->machine->time(launch, g, g->weights->copies, &r->time));
  r->spent.time = bench_now() - start;
  return NULL;
}

/* ---- weights are kept while cases use the same ---- */

static bench_weights kept;

void bench_free_gemm(const bench_machine *machine) { bench_free_weights(machine, &kept); }

bench_error bench_run_gemm(const bench_machine *machine, const bench_case *c, bench_result *r) {
  if (!kept.copy || memcmp(&kept.desc, &c->desc, sizeof kept.desc) != 0) {
    double start = bench_now();
    bench_free_gemm(machine);
    bench_error error = bench_make_weights(machine, &c->desc, &kept);
    r->spent.weights = bench_now() - start;
    if (error) bench_free_gemm(machine);
    BENCH_TRY(error);
  }
  gemm g = {.machine = machine, .weights = &kept, .args = {.size = sizeof g.args}};
  bench_error error = run(&g, c, r);
  free_operands(&g);
  return error;
}
