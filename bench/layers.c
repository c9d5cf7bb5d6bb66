#include "layers.h"

#include <stdio.h>
#include <string.h>

enum { MOST_CUT = 8, MULTIPLE = 8 };

/* A matrix with one cut: of its rows (column parallel), its columns (row parallel), or none. */
typedef struct layer {
  const char *model, *name;
  long long n, k;
  char cut; /* 'n', 'k', or '-' */
} layer;

/* A cut that leaves sizes that are no multiples of 8 is none that an engine makes. */
static bench_error add_layer(bench_shapes *shapes, const layer *l) {
  for (int cut = 1; cut <= (l->cut == '-' ? 1 : MOST_CUT); cut *= 2) {
    bench_shape shape = {.n = l->cut == 'n' ? l->n / cut : l->n, .k = l->cut == 'k' ? l->k / cut : l->k};
    const long long size = l->cut == 'k' ? l->k : l->n;
    char suffix[16] = "";
    if (size % ((long long)cut * MULTIPLE)) continue;
    if (cut > 1) snprintf(suffix, sizeof suffix, "-tp%d", cut);
    const int length = snprintf(shape.name, sizeof shape.name, "%s:%s%s", l->model, l->name, suffix);
    BENCH_CHECK(length < (int)sizeof shape.name, "the name %s is too long", shape.name);
    BENCH_TRY(bench_add_shape(shapes, &shape));
  }
  return NULL;
}

/* Query, key and value in one matrix. More ranks than heads of keys share them. */
static bench_error add_qkv(bench_shapes *shapes, const char *model, long long hidden, long long heads, long long kv,
                           long long head) {
  for (int cut = 1; cut <= MOST_CUT; cut *= 2) {
    char name[16] = "qkv";
    const long long own = kv > cut ? kv / cut : 1;
    if (heads % cut || (kv > cut && kv % cut)) continue;
    if (cut > 1) snprintf(name, sizeof name, "qkv-tp%d", cut);
    const layer l = {model, name, (heads / cut + 2 * own) * head, hidden, '-'};
    BENCH_TRY(add_layer(shapes, &l));
  }
  return NULL;
}

/* "llama3-8b 4096 14336 32 8 128 128256 2": hidden, intermediate, heads, of keys, of a head, vocabulary, and 2 for a
 * gated feed-forward part, 1 for a plain one. */
static bench_error add_model(bench_shapes *shapes, const char *text) {
  char model[48];
  long long hidden, inner, heads, kv, head, vocabulary, gates;
  const int found = sscanf(text, "%47s %lld %lld %lld %lld %lld %lld %lld", model, &hidden, &inner, &heads, &kv, &head,
                           &vocabulary, &gates);
  BENCH_CHECK(found == 8, "'%s' is no model", text);
  const layer layers[] = {{model, "o", hidden, heads * head, 'k'},
                          {model, gates > 1 ? "gate_up" : "up", gates * inner, hidden, 'n'},
                          {model, "down", hidden, inner, 'k'},
                          {model, "head", vocabulary, hidden, 'n'}};
  BENCH_TRY(add_qkv(shapes, model, hidden, heads, kv, head));
  for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) BENCH_TRY(add_layer(shapes, &layers[i]));
  return NULL;
}

/* "layer deepseek-v3 q_b 24576 1536 n" */
static bench_error add_line(bench_shapes *shapes, const char *text) {
  char model[48], name[32];
  layer l = {model, name, 0, 0, '-'};
  if (strncmp(text, "layer ", 6) != 0) return add_model(shapes, text);
  BENCH_CHECK(sscanf(text, "layer %47s %31s %lld %lld %c", model, name, &l.n, &l.k, &l.cut) == 5, "'%s' is no layer",
              text);
  return add_layer(shapes, &l);
}

bench_error bench_add_layers(const char *data, bench_shapes *shapes) {
  char path[1024], line[256];
  snprintf(path, sizeof path, "%s/tests/shapes/layers.txt", data);
  FILE *file = fopen(path, "r");
  BENCH_CHECK(file, "cannot open %s: --data must name the folder that holds tests/shapes", path);
  bench_error error = NULL;
  while (!error && fgets(line, sizeof line, file)) {
    line[strcspn(line, "#\n")] = 0;
    if (line[strspn(line, " ")]) error = add_line(shapes, line);
  }
  fclose(file);
  return error;
}
