/* Lines of a suite that are drawn, not written. */
#ifndef BENCH_RANDOM_CASES_H
#define BENCH_RANDOM_CASES_H

#include "common.h"

typedef bench_error (*bench_add_line)(void *context, char *line);

/* "random count=300 seed=7 work=4e11 rows=8192 size=32768 within=12": draws `count` lines of the operation regret with
 * sizes up to these and at most so many multiply-adds, and hands each with the other words of this one to `add`. */
bench_error bench_draw_lines(char *text, bench_add_line add, void *context);

#endif
