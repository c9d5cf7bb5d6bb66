#include "host_timer.h"

enum { MIN_REPLAYS = 5, MAX_REPLAYS = 51, COST_CALLS = 200, COST_WARM = 3, COST_REPLAYS = 21 };
static const double warm_seconds = 0.05, replay_seconds = 0.005, case_seconds = 0.5;

static bench_error run(bench_launch launch, void *context, int64_t first, int64_t count, bench_error (*finish)(void)) {
  for (int64_t i = 0; i < count; i++) {
    BENCH_TRY(launch(context, first + i));
    if (finish) BENCH_TRY(finish());
  }
  return NULL;
}

bench_error bench_host_time(bench_launch launch, void *context, int64_t rotation, bench_error (*finish)(void),
                            bench_time *time) {
  double us[MAX_REPLAYS], start = bench_now(), once = 0;
  int64_t next = 0;
  do { /* warm up, and see how long a launch takes */
    double before = bench_now();
    BENCH_TRY(run(launch, context, next++, 1, finish));
    once = bench_now() - before;
  } while (bench_now() - start < warm_seconds);

  /* A replay of short launches is long enough for the clock, and visits all of the memory. */
  int64_t launches = once < replay_seconds ? (int64_t)(replay_seconds / once) + 1 : 1;
  if (launches > rotation) launches = (launches + rotation - 1) / rotation * rotation;
  int replays = 0;
  start = bench_now();
  while (replays < MIN_REPLAYS || (replays < MAX_REPLAYS && bench_now() - start < case_seconds)) {
    double before = bench_now();
    BENCH_TRY(run(launch, context, next, launches, finish));
    us[replays++] = (bench_now() - before) * 1e6 / (double)launches;
    next += launches;
  }
  double median = bench_median(us, replays);
  *time = (bench_time){median, us[0], us[replays - 1], replays, launches, 0};
  return NULL;
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
