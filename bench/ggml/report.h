/* Lines of a comparison: a table on the screen, and a record in JSON. */
#ifndef BENCH_GGML_REPORT_H
#define BENCH_GGML_REPORT_H

#include <stdint.h>
#include <stdio.h>

/* By the root mean square of the outputs. */
typedef struct report_error {
  double rms, most;
} report_error;

typedef struct report_row {
  const char *type, *level;
  char kernel[64];
  int64_t n, k, m;
  int repacked;          /* ggml has packed the weights anew */
  double us, ggml_us;    /* CPU time of a call */
  report_error error[2]; /* lpgemm's and ggml's */
} report_row;

typedef struct report {
  FILE *file; /* NULL: no record */
  const char *path;
  int rows;
  double logs[2], most[2]; /* of the ratios of FAST and EXACT */
  int counts[2];
} report;

void report_begin(report *to, const char *path, int threads, const char *ggml);
void report_add(report *to, const report_row *row);
void report_end(report *to);

#endif
