/* Named weight matrices, from the lists that the tests use too. */
#ifndef BENCH_SHAPES_H
#define BENCH_SHAPES_H

#include "common.h"

typedef struct bench_shape {
  char name[64];
  int64_t n, k;
  int32_t experts, top_k; /* a layer of experts, n is what lies between its two products; else 0 */
  int32_t qkv, layers;    /* a model, n is what lies between a layer's last two products; else 0 */
} bench_shape;

typedef struct bench_shapes {
  bench_shape *shape;
  int count;
} bench_shapes;

/* Reads DATA/tests/shapes/model.txt and papers.txt: lines "name n k"; experts.txt: "name n k experts top_k",
 * and models.txt: "name n k qkv layers". */
bench_error bench_read_shapes(const char *data, bench_shapes *shapes);
bench_error bench_add_shape(bench_shapes *shapes, const bench_shape *shape);
void bench_free_shapes(bench_shapes *shapes);

/* The next shape from *at on that fits: "NxK" is itself, "llama3-8b.*" is every name that starts so, a name is one. 1
 * if there was one; start with *at = 0. */
int bench_next_shape(const bench_shapes *shapes, const char *pattern, int *at, bench_shape *found);

#endif
