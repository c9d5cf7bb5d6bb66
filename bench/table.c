#include "table.h"

#include <math.h>

#include "clock.h"

/* A number, or a dash for what is not known. */
static void put(FILE *file, int width, int digits, double value) {
  if (isfinite(value)) {
    fprintf(file, " %*.*f", width, digits, value);
  } else {
    fprintf(file, " %*s", width, "-");
  }
}

static void put_time(FILE *file, const bench_time *time) {
  put(file, 10, 2, time->us);
  put(file, 5, 0, bench_known(time->mhz));
  put(file, 4, 0, bench_known(time->watts));
}

void bench_print_head(FILE *file, const bench_run *run) {
  const bench_machine *m = run->machine;
  fprintf(file, "suite %s on %s %s %s, commit %s\n", run->suite, m->device, m->driver, m->runtime, bench_commit());
  if (isfinite(m->read_gbps)) fprintf(file, "read %.0f GB/s, copy %.0f GB/s\n", m->read_gbps, m->copy_gbps);
  if (run->void_because) fprintf(file, "VOID: %s\n", run->void_because);
  if (m->time_sustained) {
    fprintf(file, "up to %d rows in bursts, then at the clock of sustained work, settled by %s\n", BENCH_BURST_ROWS,
            m->settled_by);
  }
  fprintf(file, "%-64s %10s %5s %4s %9s %6s %10s %5s %4s %7s %7s  %s\n", "case", "us", "MHz", "W", "limit", "eff",
          m->blas, "MHz", "W", "ratio", "GB/s", "kernel");
}

static void print_regret(FILE *file, const bench_result *r) {
  const bench_regret *regret = &r->regret;
  fprintf(file, "    regret %.3f: the best of %d, %s, takes %.2f us", bench_regret_of(r), regret->tried, regret->best,
          regret->best_us);
  if (regret->tuned[0]) fprintf(file, "; tuned %.3f, %s", bench_tuned_regret_of(r), regret->tuned);
  fputc('\n', file);
}

void bench_print_case(FILE *file, const bench_case *c, const bench_result *r) {
  fprintf(file, "%-64s", c->name);
  if (r->error[0]) {
    fprintf(file, " FAILED: %s\n", r->error);
  } else {
    put_time(file, &r->time);
    put(file, 9, 2, r->limit_us);
    put(file, 6, 3, bench_efficiency(r));
    put_time(file, &r->baseline);
    put(file, 7, 2, bench_ratio(r));
    put(file, 7, 0, bench_gbps(r));
    fprintf(file, "  %s\n", r->kernel);
    if (c->operation == BENCH_REGRET) print_regret(file, r);
    if (r->baseline_note[0]) fprintf(file, "    no baseline: %s\n", r->baseline_note);
  }
  fflush(file);
}

/* Geometric means over the cases with `rows` rows, or all with rows = 0. */
static void print_means(FILE *file, const bench_run *run, int64_t rows) {
  double eff = 0, ratio = 0;
  int effs = 0, ratios = 0;
  for (int i = 0; i < run->count; i++) {
    const bench_result *r = &run->results[i];
    if (!run->done[i] || r->error[0] || (rows && run->cases[i].m != rows)) continue;
    if (isfinite(bench_efficiency(r))) eff += log(bench_efficiency(r)), effs++;
    if (isfinite(bench_ratio(r))) ratio += log(bench_ratio(r)), ratios++;
  }
  if (effs + ratios == 0) return;
  fprintf(file, "geometric mean%s", rows ? "" : " of all");
  if (rows) fprintf(file, ", M = %lld", (long long)rows);
  if (effs) fprintf(file, ": eff %.3f (%d cases)", exp(eff / effs), effs);
  if (ratios) fprintf(file, "%s ratio %.2f (%d cases)", effs ? "," : ":", exp(ratio / ratios), ratios);
  fputc('\n', file);
}

/* 1 if no case before `index` that ran has as many rows. */
static int first_with_rows(const bench_run *run, int index) {
  for (int i = 0; i < index; i++) {
    if (run->done[i] && run->cases[i].m == run->cases[index].m) return 0;
  }
  return 1;
}

/* The geometric mean, the share of up to 10 %, the worst; `of` is untuned or tuned. */
static void print_regrets(FILE *file, const bench_run *run, const char *of, double (*regret)(const bench_result *)) {
  double sum = 0, worst = 0;
  int count = 0, near = 0, worst_case = 0;
  for (int i = 0; i < run->count; i++) {
    const bench_result *r = &run->results[i];
    if (!run->done[i] || r->error[0] || run->cases[i].operation != BENCH_REGRET || !isfinite(regret(r))) continue;
    sum += log(regret(r));
    near += regret(r) <= 1.1;
    count++;
    if (regret(r) <= worst) continue;
    worst = regret(r);
    worst_case = i;
  }
  if (count == 0) return;
  fprintf(file, "regret %s: geometric mean %.4f, within 10 %% for %.1f %% of %d, worst %.3f (%s)\n", of,
          exp(sum / count), 100.0 * near / count, count, worst, run->cases[worst_case].name);
}

void bench_print_summary(FILE *file, const bench_run *run) {
  int ran = 0, failed = 0;
  bench_spent sum = {0, 0, 0, 0};
  for (int i = 0; i < run->count; i++) {
    const bench_spent *s = &run->results[i].spent;
    ran += run->done[i];
    failed += run->done[i] && run->results[i].error[0];
    sum = (bench_spent){sum.weights + s->weights, sum.check + s->check, sum.time + s->time, sum.baseline + s->baseline};
  }
  for (int i = 0; i < run->count; i++) {
    if (run->done[i] && first_with_rows(run, i)) print_means(file, run, run->cases[i].m);
  }
  print_means(file, run, 0);
  print_regrets(file, run, "untuned", bench_regret_of);
  print_regrets(file, run, "tuned", bench_tuned_regret_of);
  fprintf(file, "seconds: %.1f for weights, %.1f for checks, %.1f for times, %.1f for %s by itself\n", sum.weights,
          sum.check, sum.time, sum.baseline, run->machine->blas);
  fprintf(file, "%d cases, %d failed%s\n", ran, failed, run->void_because ? ", VOID" : "");
}
