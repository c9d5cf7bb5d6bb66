/* The record of a run: one JSON file that tools/bench_tables.py and tools/bench_plot.py read. */
#ifndef BENCH_RECORD_H
#define BENCH_RECORD_H

#include "machine.h"

typedef struct bench_run {
  const char *suite;
  const bench_machine *machine;
  const char *void_because; /* NULL, or why nothing of it counts */
  const bench_case *cases;
  const bench_result *results;
  const char *done; /* [count]: 1 = this case ran */
  int count;
  int64_t seed;     /* that drawn cases have instead of the suite's; 0: the suite's */
  const char *part; /* "1/5"; NULL: all */
} bench_run;

/* The commit that this program was built from; LPGEMM_COMMIT in the environment overrides it. */
const char *bench_commit(void);

/* Replaces the file as a whole or not at all. */
bench_error bench_write_record(const bench_run *run, const char *path);

#endif
