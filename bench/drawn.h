/* Cases drawn at random: a matrix, a number of rows, and one of the kinds of weights that a suite lists. The same seed
 * draws the same cases on every machine; fewer of them are the first of more. */
#ifndef BENCH_DRAWN_H
#define BENCH_DRAWN_H

#include "random_cases.h"
#include "shapes.h"

typedef struct bench_kind {
  int64_t share;
  char words[224]; /* of a line of the suite; of several values one is drawn */
} bench_kind;

typedef struct bench_kinds {
  bench_kind *kind;
  int count;
} bench_kinds;

/* In place of what a suite says; 0: as it says. */
typedef struct bench_draw {
  int64_t seed, count;
} bench_draw;

/* "share=20 use=usual w=u4 group=128 ..." */
bench_error bench_add_kind(const char *text, bench_kinds *kinds);

/* "count=300 seed=7", perhaps "from=layers": draws so many lines of the operation gemm and hands each to `add`. Without
 * `from`, N and K are drawn; with it, the matrices are `layers`, and count=all is each that is not too large
 * once in each band of rows. */
bench_error bench_draw_cases(char *text, const bench_draw *instead, const bench_kinds *kinds,
                             const bench_shapes *layers, bench_add_line add, void *context);

#endif
