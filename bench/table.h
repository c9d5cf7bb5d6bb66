/* What a run prints: one line a case, then geometric means. */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stdio.h>

#include "record.h"

void bench_print_head(FILE *file, const bench_run *run);
void bench_print_case(FILE *file, const bench_case *c, const bench_result *r);
void bench_print_summary(FILE *file, const bench_run *run);

#endif
