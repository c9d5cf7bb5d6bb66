/* Google Benchmark for C: cases with a time of their own, counters, and its command line and JSON. */
#ifndef BENCH_GBENCH_H
#define BENCH_GBENCH_H

#ifdef __cplusplus
extern "C" {
#endif

enum { GBENCH_COUNTERS = 12 };

typedef struct gbench_report {
  double seconds; /* of one launch */
  struct {
    const char *name;
    double value;
  } counter[GBENCH_COUNTERS];
  int counters;
  const char *label; /* or NULL */
  const char *error; /* NULL, or why there is no time */
} gbench_report;

/* Fills *report, which is all zero. */
typedef void (*gbench_function)(void *context, gbench_report *report);

/* Takes the options that start with --benchmark_ off the command line. */
void gbench_start(int *argc, char **argv);

/* A line of the context in JSON. */
void gbench_context(const char *key, const char *value);

void gbench_register(const char *name, gbench_function function, void *context);

/* Runs the cases that the filter leaves; returns how many. quiet: prints nothing itself (a file of --benchmark_out is
 * still written). */
int gbench_run(int quiet);

#ifdef __cplusplus
}
#endif

#endif
