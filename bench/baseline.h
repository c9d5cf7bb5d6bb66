/* Products and the dense product that they are measured against, whose weights rotate like those of the cases. From 65
 * rows on both are timed at the clock of sustained work where the machine has one, else in bursts. */
#ifndef BENCH_BASELINE_H
#define BENCH_BASELINE_H

#include "machine.h"

/* Times the product of a case and its baseline, if it has one; the baseline is checked first. In bursts a baseline that
 * was timed before is not timed again. One that is not there is no failure: the note says why. */
bench_error bench_time_product(const bench_machine *machine, const bench_case *c, const bench_program *product,
                               bench_result *r);

/* The baseline alone, as the result's own time. */
bench_error bench_time_baseline(const bench_machine *machine, const bench_case *c, bench_result *r);

/* Frees what is kept from case to case. */
void bench_free_baseline(const bench_machine *machine);

#endif
