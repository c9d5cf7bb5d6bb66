#include "host_timer.h"

#include <math.h>

enum { MAX_REPLAYS = 51, COST_CALLS = 200, COST_WARM = 3, COST_REPLAYS = 21 };

typedef struct effort {
  int least_replays;
  double warm_seconds, replay_seconds, seconds;
  double enough_us; /* no replay of what takes longer */
} effort;

static bench_error run(bench_launch launch, void *context, int64_t first, int64_t count, bench_error (*finish)(void)) {
  for (int64_t i = 0; i < count; i++) {
    BENCH_TRY(launch(context, first + i));
    if (finish) BENCH_TRY(finish());
  }
  return NULL;
}

static bench_error measure(bench_launch launch, void *context, int64_t rotation, bench_error (*finish)(void),
                           const effort *effort, bench_time *time) {
  double us[MAX_REPLAYS], start = bench_now(), once = 0, least = HUGE_VAL;
  int64_t next = 0;
  do { /* warm up, and see how long a launch takes */
    double before = bench_now();
    BENCH_TRY(run(launch, context, next++, 1, finish));
    once = bench_now() - before;
    if (once < least) least = once;
  } while (bench_now() - start < effort->warm_seconds);
  if (least * 1e6 > effort->enough_us) {
    *time = (bench_time){least * 1e6, least * 1e6, least * 1e6, 1, 1, 0};
    return NULL;
  }

  /* A replay of short launches is long enough for the clock, and visits all of the memory. */
  int64_t launches = once < effort->replay_seconds ? (int64_t)(effort->replay_seconds / once) + 1 : 1;
  if (launches > rotation) launches = (launches + rotation - 1) / rotation * rotation;
  int replays = 0;
  start = bench_now();
  while (replays < effort->least_replays || (replays < MAX_REPLAYS && bench_now() - start < effort->seconds)) {
    double before = bench_now();
    BENCH_TRY(run(launch, context, next, launches, finish));
    us[replays++] = (bench_now() - before) * 1e6 / (double)launches;
    next += launches;
  }
  double median = bench_median(us, replays);
  *time = (bench_time){median, us[0], us[replays - 1], replays, launches, 0};
  return NULL;
}

bench_error bench_host_time(bench_launch launch, void *context, int64_t rotation, bench_error (*finish)(void),
                            bench_time *time) {
  static const effort usual = {5, 0.05, 0.005, 0.5, 1e30};
  return measure(launch, context, rotation, finish, &usual, time);
}

bench_error bench_host_time_quickly(bench_launch launch, void *context, int64_t rotation, bench_error (*finish)(void),
                                    double enough_us, bench_time *time) {
  const effort quick = {3, 0.005, 0.001, 0.03, enough_us};
  return measure(launch, context, rotation, finish, &quick, time);
}

bench_error bench_host_cost(bench_launch launch, void *context, bench_error (*finish)(void), bench_time *time) {
  double us[COST_REPLAYS];
  for (int i = -COST_WARM; i < COST_REPLAYS; i++) {
    double before = bench_now();
    BENCH_TRY(run(launch, context, 0, COST_CALLS, NULL));
    double spent = bench_now() - before;
    if (finish) BENCH_TRY(finish());
    if (i >= 0) us[i] = spent * 1e6 / COST_CALLS;
  }
  double median = bench_median(us, COST_REPLAYS);
  *time = (bench_time){median, us[0], us[COST_REPLAYS - 1], COST_REPLAYS, COST_CALLS, 0};
  return NULL;
}
