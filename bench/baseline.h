/* The dense product that a case is measured against. */
#ifndef BENCH_BASELINE_H
#define BENCH_BASELINE_H

#include "machine.h"

/* Times Y = X . W^T of one type with weights rotated like those of the cases, and checks it. A product that was timed
 * before is not timed again. */
bench_error bench_baseline(const bench_machine *machine, lpgemm_dtype_t type, int64_t m, int64_t n, int64_t k,
                           int threads, bench_time *time, double *rms_error);

/* Frees what is kept from case to case. */
void bench_free_baseline(const bench_machine *machine);

#endif
