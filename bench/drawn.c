#include "drawn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

enum { LEAST_N = 256, MOST_N = 160000, LEAST_K = 512, MOST_K = 30000, MOST_M = 8192, MULTIPLE = 8, MAX_TRIES = 10000 };
static const int64_t most_dense_bytes = (int64_t)4 << 30; /* of the weights in fp16, as the baseline has them */
static const int64_t band_ends[] = {1, 17, 65, 257, 1025, MOST_M + 1};
enum { BANDS = sizeof band_ends / sizeof band_ends[0] - 1 };

/* ---- what the lines of a suite say ---- */

bench_error bench_add_kind(const char *text, bench_kinds *kinds) {
  bench_kind kind;
  long long share = 0;
  int at = 0;
  BENCH_CHECK(sscanf(text, " share=%lld %n", &share, &at) == 1 && at > 0 && share > 0, "a kind begins with share=");
  BENCH_CHECK(strlen(text + at) < sizeof kind.words, "the line is too long");
  kind.share = share;
  snprintf(kind.words, sizeof kind.words, "%s", text + at);
  bench_kind *more = realloc(kinds->kind, (size_t)(kinds->count + 1) * sizeof *more);
  BENCH_CHECK(more, "out of memory");
  kinds->kind = more;
  kinds->kind[kinds->count++] = kind;
  return NULL;
}

typedef struct wish {
  int64_t count, seed; /* count 0: each layer in each band */
  int is_layers;
} wish;

static bench_error read_wish(char *text, const bench_draw *instead, wish *w) {
  *w = (wish){.count = -1};
  char *rest = NULL;
  for (char *word = strtok_r(text, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
    long long value = 0;
    char after;
    if (strcmp(word, "count=all") == 0) {
      w->count = 0;
    } else if (sscanf(word, "count=%lld%c", &value, &after) == 1) {
      w->count = value;
    } else if (sscanf(word, "seed=%lld%c", &value, &after) == 1) {
      w->seed = value;
    } else {
      BENCH_CHECK(strcmp(word, "from=layers") == 0, "'%s' is no word of drawn", word);
      w->is_layers = 1;
    }
  }
  if (instead->count) w->count = instead->count;
  if (instead->seed) w->seed = instead->seed;
  BENCH_CHECK(w->count > 0 || (w->count == 0 && w->is_layers), "drawn needs a count from 1 on");
  BENCH_CHECK(w->seed > 0, "drawn needs a seed from 1 on");
  return NULL;
}

/* ---- draws ---- */

typedef struct draws {
  uint64_t seed, next;
} draws;

static uint32_t draw_bits(draws *d) { return bench_random(d->seed, d->next++); }
static int64_t draw_below(draws *d, int64_t end) { return (int64_t)((uint64_t)draw_bits(d) * (uint64_t)end >> 32); }

/* Uniform in the logarithm, from `least` to below `end`: least * (end / least)^u, a square root a bit of u. Square
 * roots are rounded in the same way everywhere, exp() and log() are not. */
static int64_t draw_size(draws *d, int64_t least, int64_t end) {
  const uint32_t u = draw_bits(d);
  double size = (double)least, root = (double)end / (double)least;
  for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
    root = sqrt(root);
    if (u & bit) size *= root;
  }
  const int64_t whole = (int64_t)size;
  return whole < end ? whole : end - 1;
}

typedef struct drawn_kind {
  char words[224];
  int64_t multiple; /* K is one of it: the largest group */
} drawn_kind;

static const bench_kind *draw_kind_line(draws *d, const bench_kinds *kinds) {
  int64_t all = 0;
  for (int i = 0; i < kinds->count; i++) all += kinds->kind[i].share;
  int64_t at = draw_below(d, all);
  int i = 0;
  for (; at >= kinds->kind[i].share; i++) at -= kinds->kind[i].share;
  return &kinds->kind[i];
}

/* One of the values behind the equals sign, as `key=value`. */
static void draw_value(draws *d, char *word) {
  char *value = strchr(word, '=');
  int64_t count = 1;
  if (!value++) return;
  for (const char *c = value; *c; c++) count += *c == ',';
  if (count == 1) return;
  char *chosen = value;
  for (int64_t i = draw_below(d, count); i > 0; i--) chosen = strchr(chosen, ',') + 1;
  chosen[strcspn(chosen, ",")] = 0;
  memmove(value, chosen, strlen(chosen) + 1);
}

static drawn_kind draw_kind(draws *d, const bench_kinds *kinds) {
  drawn_kind k = {.multiple = MULTIPLE};
  bench_kind line = *draw_kind_line(d, kinds);
  char *rest = NULL;
  size_t at = 0;
  for (char *word = strtok_r(line.words, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest)) {
    long long columns;
    draw_value(d, word);
    if ((sscanf(word, "group=%lld", &columns) == 1 || sscanf(word, "super=%lld", &columns) == 1) &&
        columns > k.multiple) {
      k.multiple = columns; /* a multiple of 16 */
    }
    at += (size_t)snprintf(k.words + at, sizeof k.words - at, " %s", word); /* no longer than the line's */
  }
  return k;
}

static int fits(int64_t n, int64_t k) { return n * k * 2 <= most_dense_bytes; }

/* ---- cases ---- */

typedef struct drawn_case {
  char shape[64];
  int64_t m;
  drawn_kind kind;
} drawn_case;

static bench_error draw_shape(draws *d, const bench_kinds *kinds, drawn_case *c) {
  for (int tries = 0; tries < MAX_TRIES; tries++) {
    c->kind = draw_kind(d, kinds);
    const int64_t n = draw_size(d, LEAST_N, MOST_N + 1) / MULTIPLE * MULTIPLE, multiple = c->kind.multiple;
    int64_t k = draw_size(d, LEAST_K, MOST_K + 1) / multiple * multiple;
    if (k < LEAST_K) k += multiple;
    c->m = draw_size(d, 1, MOST_M + 1);
    if (!fits(n, k)) continue;
    snprintf(c->shape, sizeof c->shape, "%lldx%lld", (long long)n, (long long)k);
    return NULL;
  }
  return bench_fail("no matrix is small enough");
}

/* What does not fit is drawn again: a kind whose groups are no part of K, a layer that is too large. */
static bench_error draw_layer(draws *d, const bench_kinds *kinds, const bench_shapes *layers, int64_t index, int is_all,
                              drawn_case *c) {
  const int64_t band = index % BANDS;
  for (int tries = 0; tries < MAX_TRIES; tries++) {
    const bench_shape *shape = &layers->shape[is_all ? index / BANDS : draw_below(d, layers->count)];
    c->kind = draw_kind(d, kinds);
    c->m = is_all ? draw_size(d, band_ends[band], band_ends[band + 1]) : draw_size(d, 1, MOST_M + 1);
    if (shape->k % c->kind.multiple || !fits(shape->n, shape->k)) continue;
    snprintf(c->shape, sizeof c->shape, "%s", shape->name);
    return NULL;
  }
  return bench_fail("no kind of weights fits");
}

bench_error bench_draw_cases(char *text, const bench_draw *instead, const bench_kinds *kinds,
                             const bench_shapes *layers, bench_add_line add, void *context) {
  wish w;
  BENCH_TRY(read_wish(text, instead, &w));
  BENCH_CHECK(kinds->count, "there is no kind of weights in front of drawn");
  draws d = {(uint64_t)w.seed, 0};
  const int64_t count = w.count ? w.count : (int64_t)layers->count * BANDS;
  for (int64_t i = 0; i < count; i++) {
    drawn_case c;
    char line[512];
    if (!w.count && !fits(layers->shape[i / BANDS].n, layers->shape[i / BANDS].k)) continue;
    BENCH_TRY(w.is_layers ? draw_layer(&d, kinds, layers, i, !w.count, &c) : draw_shape(&d, kinds, &c));
    snprintf(line, sizeof line, "gemm shape=%s m=%lld%s baseline=f16 check=samples draw=%lld", c.shape, (long long)c.m,
             c.kind.words, (long long)(i + 1));
    BENCH_TRY(add(context, line));
  }
  return NULL;
}
