/* When the benchmark's programs have reached the clock of sustained work: the rules of bench/clock.h. */
#include "../bench/clock.h"
#include "test.h"

static bench_window window(double us, double mhz) { return (bench_window){0.104, us, mhz, mhz / 3, 10}; }

/* Adds windows until the turn is over, at most `count`; returns how many. */
static int run(bench_turn *turn, const bench_window *windows, int count) {
  int i = 0;
  *turn = (bench_turn){.windows = 0};
  while (i < count && !bench_turn_over(turn)) bench_add_window(turn, &windows[i++]);
  CHECK_INT(turn->windows, i);
  return i;
}

/* Turns of 20 windows whose clock falls, to 1500 MHz from window `steady` on. */
static int run_falling(bench_turn *turn, int steady) {
  bench_window windows[20];
  for (int i = 0; i < 20; i++) windows[i] = window(100, i < steady ? 1500 + 40 * (steady - i) : 1500);
  return run(turn, windows, 20);
}

static void check_agreement(void) {
  const bench_window a = window(100, 1500), near = window(150, 1514), far = window(100, 1516);
  CHECK(bench_windows_agree(&a, &near) && bench_windows_agree(&near, &a));
  CHECK(!bench_windows_agree(&a, &far) && !bench_windows_agree(&far, &a));
  const bench_window dark = window(100, 0), slower = window(100.9, 0), slow = window(101.1, 1500);
  CHECK(bench_windows_agree(&dark, &slower) && bench_windows_agree(&a, &dark));
  CHECK(!bench_windows_agree(&dark, &slow)); /* one clock is not known: by times */
}

static void check_turns(void) {
  bench_turn turn;
  CHECK_INT(run_falling(&turn, 0), 4); /* steady at once: as long as a turn must be */
  CHECK(bench_turn_settled(&turn));
  CHECK_INT(run_falling(&turn, 6), 8); /* two windows that are steady */
  CHECK(bench_turn_settled(&turn));
  CHECK_INT(run_falling(&turn, 14), 14); /* never steady: as long as a turn may be */
  CHECK(!bench_turn_settled(&turn));
  CHECK(turn.seconds < 1.5);
}

static void check_long_windows(void) {
  bench_turn turn;
  const bench_window half = {0.5, 5e5, 1500, 500, 1}, two = {2, 2e6, 1500, 500, 1};
  const bench_window halves[] = {half, half, half}, twos[] = {two, two};
  CHECK_INT(run(&turn, halves, 3), 2); /* one window is never enough to settle */
  CHECK(bench_turn_settled(&turn));
  CHECK_INT(run(&turn, twos, 2), 1);
  CHECK(!bench_turn_settled(&turn));
}

static void check_median(void) {
  bench_turn turn[BENCH_ROUNDS];
  const double us[] = {105, 99, 101}, mhz[] = {1400, 1600, 1500};
  for (int i = 0; i < BENCH_ROUNDS; i++) {
    bench_window windows[20];
    for (int j = 0; j < 20; j++) windows[j] = window(us[i], i == 1 ? 1000 + 100 * j : mhz[i]);
    run(&turn[i], windows, 20);
  }
  const bench_time time = bench_time_of_turns(turn);
  CHECK(time.us == 101 && time.us_min == 99 && time.us_max == 105);
  CHECK(time.mhz == 1500 && time.watts == 500); /* of the same window */
  CHECK_INT(time.replays, 10);
  CHECK_INT(time.rounds, BENCH_ROUNDS);
  CHECK_INT(time.settled, 2);
}

void suite_bench_clock(void) {
  if (test_case("bench_clock/agreement")) check_agreement();
  if (test_case("bench_clock/turns")) check_turns();
  if (test_case("bench_clock/long_windows")) check_long_windows();
  if (test_case("bench_clock/median")) check_median();
}
