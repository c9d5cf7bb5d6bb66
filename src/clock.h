/* The one clock of the library's own measurements. */
#ifndef LPG_CLOCK_H
#define LPG_CLOCK_H

#include <time.h>

static inline double lpg_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
