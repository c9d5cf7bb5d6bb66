#include "common.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bench_error bench_fail(const char *format, ...) {
  static char text[2][1024]; /* the new sentence may quote the last one */
  static int turn;
  va_list arguments;
  turn = !turn;
  va_start(arguments, format);
  vsnprintf(text[turn], sizeof text[turn], format, arguments);
  va_end(arguments);
  return text[turn];
}

int bench_symbol(void *library, const char *name, void *function) {
  void *address = library ? dlsym(library, name) : NULL;
  memcpy(function, &address, sizeof address); /* ISO C has no cast from an object's pointer to a function's */
  return address != NULL;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double bench_median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, ascending);
  return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

double bench_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
