/* The clock of sustained work: when a program has reached its own, and which of its times counts. Numbers only, so that
 * the test of these rules needs no GPU. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <math.h>
#include <stdlib.h>

#include "case.h"

/* With more rows than BENCH_BURST_ROWS power limits a GPU, and its clock depends on what ran before. There each program
 * runs alone, in turns, for BENCH_ROUNDS rounds. A turn is over when two successive windows agree. */
enum { BENCH_BURST_ROWS = 64, BENCH_ROUNDS = 3 };
#define BENCH_WINDOW_SECONDS 0.1
#define BENCH_LEAST_SECONDS 0.4 /* of a turn */
#define BENCH_MOST_SECONDS 1.5
#define BENCH_AGREEMENT 0.01 /* relative */

/* What was measured in a window. */
typedef struct bench_window {
  double seconds, us; /* of the window, and of a launch in it */
  double mhz, watts;  /* means of what was read meanwhile; 0 = not known */
  int replays;
} bench_window;

/* The windows of a turn so far. */
typedef struct bench_turn {
  bench_window before, last;
  double seconds;
  int windows;
  double most_seconds; /* 0 = BENCH_MOST_SECONDS; the least of a turn is no more than that */
} bench_turn;

static inline void bench_add_window(bench_turn *turn, const bench_window *window) {
  turn->before = turn->last;
  turn->last = *window;
  turn->seconds += window->seconds;
  turn->windows++;
}

/* In SM clock; in time if a clock is not known. */
static inline int bench_windows_agree(const bench_window *a, const bench_window *b) {
  const int clocks = a->mhz > 0 && b->mhz > 0;
  const double x = clocks ? a->mhz : a->us, y = clocks ? b->mhz : b->us;
  return fabs(x - y) <= BENCH_AGREEMENT * fmin(x, y);
}

static inline double bench_most_seconds(const bench_turn *turn) {
  return turn->most_seconds > 0 ? turn->most_seconds : BENCH_MOST_SECONDS;
}

static inline int bench_turn_settled(const bench_turn *turn) {
  return turn->windows > 1 && turn->seconds >= fmin(BENCH_LEAST_SECONDS, bench_most_seconds(turn)) &&
         bench_windows_agree(&turn->before, &turn->last);
}

/* Also where one more window would take too long. */
static inline int bench_turn_over(const bench_turn *turn) {
  return bench_turn_settled(turn) || turn->seconds + BENCH_WINDOW_SECONDS > bench_most_seconds(turn);
}

static inline int bench_by_last_us(const void *a, const void *b) {
  const bench_turn *x = a, *y = b;
  return (x->last.us > y->last.us) - (x->last.us < y->last.us);
}

/* The last window of the median turn, with its clock and its power. Sorts the turns. */
static inline bench_time bench_time_of_turns(bench_turn turn[BENCH_ROUNDS]) {
  bench_time time = {.rounds = BENCH_ROUNDS};
  for (int i = 0; i < BENCH_ROUNDS; i++) time.settled += bench_turn_settled(&turn[i]);
  qsort(turn, BENCH_ROUNDS, sizeof *turn, bench_by_last_us);
  const bench_window *median = &turn[BENCH_ROUNDS / 2].last;
  time.us = median->us;
  time.us_min = turn[0].last.us;
  time.us_max = turn[BENCH_ROUNDS - 1].last.us;
  time.replays = median->replays;
  time.mhz = median->mhz;
  time.watts = median->watts;
  return time;
}

#endif
