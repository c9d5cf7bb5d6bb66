/* Loops of the checks over the cores of the host. */
#ifndef BENCH_PARALLEL_H
#define BENCH_PARALLEL_H

#include <stdint.h>

/* Does the work of indices first to end - 1. */
typedef void (*bench_range)(void *context, int64_t first, int64_t end);

/* Cuts 0 to count - 1 into one range a core and returns when all are done. A thread that cannot be had costs time
 * only. */
void bench_parallel(int64_t count, bench_range body, void *context);

#endif
