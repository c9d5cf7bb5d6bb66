/* A line on a terminal's stderr: how much is done, how fast, how long it still takes. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "convert.h"

static const double every = 0.1; /* seconds between two lines */

double convert_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void convert_progress_start(convert_progress *p, uint64_t total) {
  *p = (convert_progress){.total = total, .start = convert_now(), .visible = isatty(STDERR_FILENO)};
}

static void draw(const convert_progress *p, double seconds) {
  enum { WIDTH = 30 };
  char bar[WIDTH + 1];
  const double part = p->total ? (double)p->done / (double)p->total : 1;
  const double rate = seconds > 0 ? (double)p->done / seconds : 0;
  const long left = rate > 0 ? (long)((double)(p->total - p->done) / rate + 0.5) : 0;
  for (int i = 0; i < WIDTH; i++) bar[i] = (double)i < part * WIDTH ? '#' : '.';
  bar[WIDTH] = 0;
  fprintf(stderr, "\r[%s] %3.0f%%  %.0f MB/s  %ld:%02ld left  ", bar, part * 100, rate / 1e6, left / 60, left % 60);
  fflush(stderr);
}

void convert_progress_add(convert_progress *p, uint64_t bytes) {
  p->done = p->total - p->done < bytes ? p->total : p->done + bytes;
  if (!p->visible) return;
  const double seconds = convert_now() - p->start;
  if (seconds - p->shown < every && p->done < p->total) return;
  p->shown = seconds;
  draw(p, seconds);
}

void convert_progress_end(convert_progress *p) {
  if (p->visible) fprintf(stderr, "\r%*s\r", 78, "");
  p->visible = 0;
}
