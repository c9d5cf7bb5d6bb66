/* lpgemm-bench: times a suite of cases, checks every one of them, and records what came out.
 *
 * usage: lpgemm-bench --suite NAME [--filter REGEX] [--backend cpu|cuda] [--record FILE] [--data DIR] [--seed S]
 *                     [--count N] [--part I/N] [--done FILE] [--turn SECONDS] [--benchmark_...]
 *
 * docs/benchmarks.md says what is measured and how. The exit code is 0 only if every case was right and the run is not
 * void. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "gbench.h"
#include "part.h"
#include "run.h"
#include "suite.h"
#include "table.h"

/* ---- the command line ---- */

typedef struct options {
  const char *suite, *filter, *record, *data, *backend, *seed, *count, *part, *done, *turn;
  int own_format; /* Google Benchmark prints, and the table goes to stderr */
  int list, help;
} options;

static const char usage[] =
    "usage: lpgemm-bench --suite NAME [--filter REGEX] [--backend cpu|cuda] [--record FILE] [--data DIR]\n"
    "                    [--seed S] [--count N] [--part I/N] [--done FILE] [--turn SECONDS]\n"
    "                    [--benchmark_format=json] [--benchmark_out=FILE] [--benchmark_list_tests]\n"
    "       lpgemm-bench --help\n"
    "NAME is a file of DIR/bench/suites/ without .txt; DIR is . by default. FILE is written as JSON.\n"
    "S and N replace the seed and the number of drawn cases. --part runs every N-th case from the I-th on, without "
    "those\n"
    "that the record of --done has. SECONDS is the most that a program runs at a time from 65 rows on.\n"
    "docs/benchmarks.md says what is measured. The exit code is 0 if every case was right and the run is not void.\n";

static int starts(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* Options of Google Benchmark are looked at here and taken by gbench_start(). */
static bench_error read_options(int argc, char **argv, options *o) {
  *o = (options){.data = "."};
  struct {
    const char *name, **value;
  } known[] = {{"--suite", &o->suite}, {"--filter", &o->filter}, {"--backend", &o->backend}, {"--record", &o->record},
               {"--data", &o->data},   {"--seed", &o->seed},     {"--count", &o->count},     {"--part", &o->part},
               {"--done", &o->done},   {"--turn", &o->turn}};
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--help") == 0) {
      o->help = 1;
      return NULL;
    }
    if (starts(argv[i], "--benchmark_format")) o->own_format = 1;
    if (starts(argv[i], "--benchmark_list_tests")) o->list = 1;
    if (starts(argv[i], "--benchmark_")) continue;
    size_t k = 0;
    while (k < sizeof known / sizeof known[0] && strcmp(argv[i], known[k].name)) k++;
    BENCH_CHECK(k < sizeof known / sizeof known[0], "'%s' is no option\n%s", argv[i], usage);
    BENCH_CHECK(i + 1 < argc, "%s needs a value\n%s", argv[i], usage);
    *known[k].value = argv[++i];
  }
  BENCH_CHECK(o->suite, "--suite is missing\n%s", usage);
  BENCH_CHECK(!o->backend || !strcmp(o->backend, "cpu") || !strcmp(o->backend, "cuda"),
              "the backend is cpu or cuda, not '%s'", o->backend);
  return NULL;
}

static bench_error start_gbench(int argc, char **argv, const options *o) {
  char filter[512];
  char **copy = calloc((size_t)argc + 2, sizeof *copy);
  BENCH_CHECK(copy, "out of memory");
  int count = 0;
  copy[count++] = argv[0];
  for (int i = 1; i < argc; i++) {
    if (starts(argv[i], "--benchmark_")) copy[count++] = argv[i];
  }
  snprintf(filter, sizeof filter, "--benchmark_filter=%s", o->filter ? o->filter : "");
  if (o->filter) copy[count++] = filter;
  gbench_start(&count, copy);
  const char *unknown = count > 1 ? copy[1] : NULL;
  free(copy);
  BENCH_CHECK(!unknown, "'%s' is no option of Google Benchmark", unknown);
  return NULL;
}

/* ---- the run ---- */

static bench_machine machine;
static bench_case *cases;
static bench_result *results;
static char *done;
static FILE *table;
static bench_run this_run;
static const char *record; /* path, or NULL */

static void run_case(void *context, gbench_report *report) {
  bench_case *c = context;
  bench_result *r = &results[c - cases];
  bench_run_case(&machine, c, r);
  done[c - cases] = 1;
  bench_print_case(table, c, r);
  if (record) bench_write_record(&this_run, record); /* a run may be cut short; its end says it if this fails */
  if (r->error[0]) {
    report->error = r->error;
    return;
  }
  const struct {
    const char *name;
    double value;
  } counters[] = {{"us", r->time.us},
                  {"limit_us", r->limit_us},
                  {"eff", bench_efficiency(r)},
                  {"baseline_us", r->baseline.us},
                  {"ratio", bench_ratio(r)},
                  {"gbps", bench_gbps(r)},
                  {"tflops", bench_tflops(c, r)},
                  {"rms_error", r->rms_error},
                  {"mhz", bench_known(r->time.mhz)},
                  {"watts", bench_known(r->time.watts)},
                  {"baseline_mhz", bench_known(r->baseline.mhz)},
                  {"baseline_watts", bench_known(r->baseline.watts)}};
  for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
    if (!isfinite(counters[i].value)) continue;
    report->counter[report->counters].name = counters[i].name;
    report->counter[report->counters++].value = counters[i].value;
  }
  report->seconds = r->time.us * 1e-6;
  report->label = r->kernel;
}

/* A GPU that is slower than its kind is throttled or shared: nothing of such a run counts. */
static const char *void_because(void) {
  static char text[128];
  if (!strstr(machine.device, "H200") || machine.read_gbps >= 4400) return NULL;
  snprintf(text, sizeof text, "the read bandwidth is %.0f GB/s, below 4400 for an H200", machine.read_gbps);
  return text;
}

static void add_context(void) {
  char number[32];
  gbench_context("device", machine.device);
  gbench_context("driver", machine.driver);
  gbench_context("runtime", machine.runtime);
  gbench_context("commit", bench_commit());
  snprintf(number, sizeof number, "%.0f", machine.read_gbps);
  gbench_context("read_gbps", number);
  gbench_context("void", this_run.void_because ? this_run.void_because : "");
}

static bench_error read_count(const char *name, const char *text, int64_t *value) {
  char *end = NULL;
  if (!text) return NULL;
  *value = strtoll(text, &end, 10);
  BENCH_CHECK(*text && !*end && *value >= 1, "%s is '%s', not a number from 1 on", name, text);
  return NULL;
}

/* Registers the cases of this run. */
static bench_error choose_cases(const options *o, int count) {
  char *skip = calloc((size_t)count + 1, 1);
  bench_part part;
  BENCH_CHECK(skip, "out of memory");
  bench_error error = bench_read_part(o->part, &part);
  if (!error) error = bench_skip_recorded(o->done, cases, count, skip);
  for (int i = 0; !error && i < count; i++) {
    if (bench_in_part(&part, i) && !skip[i]) gbench_register(cases[i].name, run_case, &cases[i]);
  }
  free(skip);
  return error;
}

static bench_error read_turn(const options *o) {
  char *end = NULL;
  if (!o->turn) return NULL;
  machine.turn_seconds = strtod(o->turn, &end);
  BENCH_CHECK(!*end && machine.turn_seconds >= 2 * BENCH_WINDOW_SECONDS, "--turn is '%s', not a number from %g on",
              o->turn, 2 * BENCH_WINDOW_SECONDS);
  return NULL;
}

static bench_error open_machine(const options *o) {
  int cuda = o->backend ? strcmp(o->backend, "cuda") == 0 : lpgemm_backend_available(LPGEMM_BACKEND_CUDA);
  BENCH_TRY(cuda ? bench_open_cuda(&machine) : bench_open_cpu(&machine));
  BENCH_TRY(read_turn(o));
  return machine.bandwidth(&machine);
}

static bench_error run_suite(int argc, char **argv, int *failed) {
  options o;
  int count = 0;
  BENCH_TRY(read_options(argc, argv, &o));
  if (o.help) return fputs(usage, stdout), NULL;
  BENCH_TRY(start_gbench(argc, argv, &o));
  bench_draw instead = {0, 0};
  BENCH_TRY(read_count("--seed", o.seed, &instead.seed));
  BENCH_TRY(read_count("--count", o.count, &instead.count));
  BENCH_TRY(bench_read_suite(o.data, o.suite, &instead, &cases, &count));
  results = calloc((size_t)count + 1, sizeof *results);
  done = calloc((size_t)count + 1, 1);
  BENCH_CHECK(results && done, "out of memory");
  BENCH_TRY(choose_cases(&o, count));
  if (o.list) return gbench_run(0), NULL;

  BENCH_TRY(open_machine(&o));
  this_run = (bench_run){o.suite, &machine, void_because(), cases, results, done, count, instead.seed, o.part};
  table = o.own_format ? stderr : stdout;
  record = o.record;
  add_context();
  bench_print_head(table, &this_run);
  int ran = gbench_run(!o.own_format);
  bench_run_done(&machine);
  bench_print_summary(table, &this_run);
  BENCH_CHECK(ran > 0, "no case of the suite %s fits the filter", o.suite);
  for (int i = 0; i < count; i++) *failed += done[i] && results[i].error[0];
  *failed += this_run.void_because != NULL;
  return record ? bench_write_record(&this_run, record) : NULL;
}

int main(int argc, char **argv) {
  int failed = 0;
  bench_error error = run_suite(argc, argv, &failed);
  if (error) fprintf(stderr, "lpgemm-bench: %s\n", error);
  if (machine.handle) bench_close_machine(&machine);
  free(cases);
  free(results);
  free(done);
  return error || failed;
}
