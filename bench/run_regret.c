/* How much slower the automatic choice is than the best kernel there is: every kernel that may be chosen for a product
 * is timed, forced, in a hurry. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operands.h"
#include "run.h"

enum {
  TEXT_BYTES = 1 << 17,
  SAMPLES = 256,
  ROTATE_LESS = 4 /* times fewer bytes of weights than other cases: still several times any cache */
};
static const double slow_factor = 3, launch_us = 20; /* of the best, and what a launch without a graph takes more */

typedef struct candidates {
  bench_candidate item[BENCH_CANDIDATES];
  int count;
  char chosen[64];
} candidates;

/* ---- which ---- */

static bench_error add_candidate(candidates *all, bench_candidate c) {
  BENCH_CHECK(all->count < BENCH_CANDIDATES, "more than %d kernels can do it", (int)BENCH_CANDIDATES);
  all->item[all->count++] = c;
  return NULL;
}

/* "gemv.u4.f16.16x8.sm80: chosen, the cheapest by the cost model, about 12.3 us"; the plan below it, and the
 * lines of kernels that cannot do it, or only when forced, are no candidates. */
static bench_error read_line(const char *line, candidates *all) {
  const char *colon = strchr(line, ':'), *about = strstr(line, "about ");
  if (!colon || !about) return NULL;
  const int chosen = strncmp(colon, ": chosen,", 9) == 0;
  if (!chosen && strncmp(colon, ": possible, ", 12) != 0) return NULL; /* not "when forced", "with a workspace" */
  bench_candidate c = {.us = -1};
  snprintf(c.name, sizeof c.name, "%.*s", (int)(colon - line), line);
  BENCH_CHECK(sscanf(about, "about %lf", &c.estimate) == 1, "no estimate in '%s'", line);
  if (chosen) memcpy(all->chosen, c.name, sizeof all->chosen);
  return add_candidate(all, c);
}

static int by_estimate(const void *a, const void *b) {
  const bench_candidate *x = a, *y = b;
  return (x->estimate > y->estimate) - (x->estimate < y->estimate);
}

static bench_error read_candidates(char *text, candidates *all) {
  char *rest = NULL;
  *all = (candidates){.count = 0};
  for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
    BENCH_TRY(read_line(line, all));
  }
  BENCH_CHECK(all->chosen[0], "no kernel was chosen");
  qsort(all->item, (size_t)all->count, sizeof all->item[0], by_estimate);
  return NULL;
}

static bench_error find_candidates(bench_operands *o, candidates *all) {
  char *text = malloc(TEXT_BYTES);
  BENCH_CHECK(text, "out of memory");
  lpgemm_status_t status = lpgemm_explain(o->machine->handle, &o->args, text, TEXT_BYTES);
  bench_error error = status ? bench_fail("lpgemm_explain: %s", lpgemm_last_error()) : read_candidates(text, all);
  free(text);
  return error;
}

static bench_candidate *find(candidates *all, const char *name) {
  for (int i = 0; i < all->count; i++) {
    if (strcmp(all->item[i].name, name) == 0) return &all->item[i];
  }
  return NULL;
}

/* ---- times ---- */

static bench_error time_candidate(bench_operands *o, bench_candidate *c, double best_us, bench_time *time) {
  o->args.kernel = c->name;
  const double enough = best_us > 0 ? slow_factor * best_us + launch_us : HUGE_VAL;
  bench_error error = o->machine->time_quickly(bench_launch_product, o, o->weights->copies, enough, time);
  o->args.kernel = NULL;
  BENCH_CHECK(!error, "%s: %s", c->name, error);
  c->us = time->us;
  c->replays = time->replays;
  return NULL;
}

static void set_best(bench_regret *regret, const bench_candidate *best) {
  regret->best_us = best->us;
  snprintf(regret->best, sizeof regret->best, "%s", best->name);
}

/* The choice first, then the others, the best by estimate first. */
static bench_error time_all(bench_operands *o, const bench_case *c, candidates *all, bench_result *r) {
  bench_time other;
  bench_regret *regret = &r->regret;
  bench_candidate *chosen = find(all, all->chosen);
  BENCH_TRY(time_candidate(o, chosen, 0, &r->time));
  const bench_candidate *best = chosen;
  for (int i = 0; i < all->count; i++) {
    bench_candidate *next = &all->item[i];
    if (next == chosen) continue;
    if (next->estimate > c->within * all->item[0].estimate) {
      regret->skipped++;
      continue;
    }
    BENCH_TRY(time_candidate(o, next, best->us, &other));
    if (next->us < best->us) best = next;
  }
  regret->tried = all->count - regret->skipped;
  set_best(regret, best);
  return NULL;
}

/* Tunes for this number of rows, and forgets it again. A kernel that was skipped or only tried above, or that only
 * tuning may take, is timed now. */
static bench_error time_tuned(bench_operands *o, candidates *all, bench_result *r) {
  lpgemm_autotune_options_t options = {.size = sizeof options};
  lpgemm_run_args_t args = o->args;
  candidates tuned;
  bench_time time;
  options.args = &args;
  BENCH_LPGEMM(lpgemm_autotune(o->machine->handle, args.weights, &args.m, 1, &options));
  bench_error error = find_candidates(o, &tuned);
  BENCH_LPGEMM(lpgemm_tuning_clear(o->machine->handle));
  BENCH_TRY(error);
  if (!find(all, tuned.chosen)) BENCH_TRY(add_candidate(all, *find(&tuned, tuned.chosen)));
  bench_candidate *chosen = find(all, tuned.chosen);
  if (chosen->us < 0 || chosen->replays == 1) BENCH_TRY(time_candidate(o, chosen, 0, &time));
  if (chosen->us < r->regret.best_us) set_best(&r->regret, chosen);
  snprintf(r->regret.tuned, sizeof r->regret.tuned, "%s", chosen->name);
  r->regret.tuned_us = chosen->us;
  return NULL;
}

static bench_error run(bench_operands *o, const bench_case *c, bench_result *r) {
  candidates all;
  BENCH_TRY(bench_bind_workspace(o, &o->args)); /* the choice depends on it */
  BENCH_TRY(find_candidates(o, &all));
  snprintf(r->kernel, sizeof r->kernel, "%s", all.chosen);
  snprintf(r->family, sizeof r->family, "%.*s", (int)strcspn(all.chosen, "."), all.chosen);

  bench_product p = bench_product_of(o, c, SAMPLES);
  double start = bench_now();
  BENCH_TRY(bench_run_into(o, NULL, o->y));
  bench_error error = bench_check_samples(o->machine, &p, &r->rms_error);
  BENCH_CHECK(!error, "%s: %s", r->kernel, error);
  snprintf(r->checked, sizeof r->checked, "%d sampled outputs of the choice by fp64", (int)SAMPLES);
  r->spent.check = bench_now() - start;

  start = bench_now();
  BENCH_TRY(time_all(o, c, &all, r));
  if (c->tune) BENCH_TRY(time_tuned(o, &all, r));
  r->regret.kernels = all.count;
  memcpy(r->regret.kernel, all.item, sizeof all.item);
  r->spent.time = bench_now() - start;
  return NULL;
}

/* ---- weights are kept while cases use the same ---- */

static bench_weights kept;

void bench_free_regret(const bench_machine *machine) { bench_free_weights(machine, &kept); }

static bench_error make_kept(const bench_machine *machine, const bench_case *c, bench_result *r) {
  if (kept.copy && memcmp(&kept.desc, &c->desc, sizeof kept.desc) == 0) return NULL;
  bench_machine smaller = *machine;
  smaller.rotate_bytes /= ROTATE_LESS;
  double start = bench_now();
  bench_free_regret(machine);
  bench_error error = bench_rotate_weights(&smaller, &c->desc, &kept);
  r->spent.weights = bench_now() - start;
  if (error) bench_free_regret(machine);
  return error;
}

bench_error bench_run_regret(const bench_machine *machine, const bench_case *c, bench_result *r) {
  bench_operands o;
  bench_free_gemm(machine); /* makes room */
  BENCH_TRY(make_kept(machine, c, r));
  bench_error error = bench_make_operands(machine, &kept, c, &o);
  if (!error) error = run(&o, c, r);
  bench_free_operands(&o);
  return error;
}
