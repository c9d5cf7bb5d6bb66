/* Suites: data files that say what to time. */
#ifndef BENCH_SUITE_H
#define BENCH_SUITE_H

#include "case.h"
#include "drawn.h"

/* Reads DATA/bench/suites/NAME.txt, what it includes, and the shapes that it names from DATA/tests/shapes/. The cases
 * are one allocation; cases of the same weights stand together. `instead` replaces the seed and the count of drawn
 * cases. docs/benchmarks.md has the format. */
bench_error bench_read_suite(const char *data, const char *name, const bench_draw *instead, bench_case **cases,
                             int *count);

#endif
