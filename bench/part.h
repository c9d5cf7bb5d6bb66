/* Which cases of a suite a run takes: one part of several, without those that an earlier record has. */
#ifndef BENCH_PART_H
#define BENCH_PART_H

#include "case.h"

typedef struct bench_part {
  int number, parts; /* from 1 on */
} bench_part;

/* "2/5"; NULL is 1/1. */
bench_error bench_read_part(const char *text, bench_part *part);

/* Parts take the cases in turns, so that each has some of everything. */
static inline int bench_in_part(const bench_part *part, int index) { return index % part->parts == part->number - 1; }

/* Sets skip[i] of each case whose name is in the record at `path`. NULL: none. */
bench_error bench_skip_recorded(const char *path, const bench_case *cases, int count, char *skip);

#endif
