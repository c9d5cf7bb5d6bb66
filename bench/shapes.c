#include "shapes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bench_error bench_add_shape(bench_shapes *shapes, const bench_shape *shape) {
  bench_shape *more = realloc(shapes->shape, (size_t)(shapes->count + 1) * sizeof *more);
  BENCH_CHECK(more, "out of memory");
  shapes->shape = more;
  shapes->shape[shapes->count++] = *shape;
  return NULL;
}

/* Behind n and k a line has up to two more numbers: of a model qkv and layers, else experts and top_k. */
static bench_error read_list(const char *data, const char *list, int is_model, bench_shapes *shapes) {
  char path[1024], line[256];
  snprintf(path, sizeof path, "%s/tests/shapes/%s", data, list);
  FILE *file = fopen(path, "r");
  BENCH_CHECK(file, "cannot open %s: --data must name the folder that holds tests/shapes", path);
  bench_error error = NULL;
  while (!error && fgets(line, sizeof line, file)) {
    bench_shape shape = {.experts = 0};
    long long n, k;
    int more[2] = {0, 0};
    if (line[0] == '#' || sscanf(line, "%63s %lld %lld %d %d", shape.name, &n, &k, &more[0], &more[1]) < 3) continue;
    shape.n = n;
    shape.k = k;
    *(is_model ? &shape.qkv : &shape.experts) = more[0];
    *(is_model ? &shape.layers : &shape.top_k) = more[1];
    error = bench_add_shape(shapes, &shape);
  }
  fclose(file);
  return error;
}

bench_error bench_read_shapes(const char *data, bench_shapes *shapes) {
  *shapes = (bench_shapes){NULL, 0};
  BENCH_TRY(read_list(data, "model.txt", 0, shapes));
  BENCH_TRY(read_list(data, "papers.txt", 0, shapes));
  BENCH_TRY(read_list(data, "experts.txt", 0, shapes));
  return read_list(data, "models.txt", 1, shapes);
}

void bench_free_shapes(bench_shapes *shapes) { free(shapes->shape); }

static int fits(const char *pattern, const char *name) {
  size_t length = strlen(pattern);
  if (length > 0 && pattern[length - 1] == '*') return strncmp(pattern, name, length - 1) == 0;
  return strcmp(pattern, name) == 0;
}

int bench_next_shape(const bench_shapes *shapes, const char *pattern, int *at, bench_shape *found) {
  long long n, k;
  char rest;
  if (sscanf(pattern, "%lldx%lld%c", &n, &k, &rest) == 2) {
    *found = (bench_shape){.n = n, .k = k};
    snprintf(found->name, sizeof found->name, "%s", pattern);
    return (*at)++ == 0;
  }
  while (*at < shapes->count) {
    const bench_shape *shape = &shapes->shape[(*at)++];
    if (!fits(pattern, shape->name)) continue;
    *found = *shape;
    return 1;
  }
  return 0;
}
