/* Times calls by a steady clock. */
#ifndef BENCH_HOST_TIMER_H
#define BENCH_HOST_TIMER_H

#include "machine.h"

/* finish waits for what a launch started; NULL if launches are done when they return. */
bench_error bench_host_time(bench_launch launch, void *context, int64_t rotation, bench_error (*finish)(void),
                            bench_time *time);

/* The same in a hurry: machine.h. */
bench_error bench_host_time_quickly(bench_launch launch, void *context, int64_t rotation, bench_error (*finish)(void),
                                    double enough_us, bench_time *time);

/* What a launch costs the host: 200 of them back to back, few enough that the device's queue never fills, and the wait
 * for what they started not counted. */
bench_error bench_host_cost(bench_launch launch, void *context, bench_error (*finish)(void), bench_time *time);

#endif
