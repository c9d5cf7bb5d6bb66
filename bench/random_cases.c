#include "random_cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

enum { LEAST_SIZE = 512, MAX_DRAWS = 100000 };

/* ---- what a line asks for ---- */

typedef struct wish {
  double count, seed, work, rows, size;
  char rest[256]; /* words for the lines that are drawn */
} wish;

static bench_error read_wish(char *text, wish *w) {
  *w = (wish){.work = 4e11, .rows = 8192, .size = 32768};
  const struct {
    const char *key;
    double *value;
  } keys[] = {{"count", &w->count}, {"seed", &w->seed}, {"work", &w->work}, {"rows", &w->rows}, {"size", &w->size}};
  char *rest = NULL;
  for (char *word = strtok_r(text, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
    size_t length = strcspn(word, "="), at = strlen(w->rest), k = 0;
    while (k < sizeof keys / sizeof keys[0] && (strlen(keys[k].key) != length || strncmp(word, keys[k].key, length)))
      k++;
    if (k == sizeof keys / sizeof keys[0]) {
      BENCH_CHECK(at + strlen(word) + 2 <= sizeof w->rest, "the line is too long");
      snprintf(w->rest + at, sizeof w->rest - at, " %s", word);
      continue;
    }
    char *end = word + length;
    if (*end == '=') *keys[k].value = strtod(end + 1, &end);
    BENCH_CHECK(!*end && *keys[k].value >= 1, "'%s' is no number from 1 on", word);
  }
  BENCH_CHECK(w->count >= 1 && w->seed >= 1, "random needs count= and seed=");
  BENCH_CHECK(w->size >= LEAST_SIZE, "size is %g; the least is %d", w->size, (int)LEAST_SIZE);
  return NULL;
}

/* ---- draws ---- */

typedef struct draws {
  uint64_t seed, next;
} draws;

static uint32_t draw(draws *d, uint32_t below) { return bench_random(d->seed, d->next++) % below; }

/* From a list whose last item is NULL. */
static const char *draw_word(draws *d, const char *const *words) {
  uint32_t count = 0;
  while (words[count]) count++;
  return words[draw(d, count)];
}

/* Each octave is as likely as any other. */
static double draw_size(draws *d, double least, double most) {
  double uniform = bench_random(d->seed, d->next++) / 4294967296.0;
  return floor(exp(log(least) + uniform * (log(most + 1) - log(least))));
}

/* Three of four are multiples of 128, as in most models; the others are what they are. */
static int64_t draw_matrix_size(draws *d, double most) {
  double size = draw_size(d, LEAST_SIZE, most);
  return draw(d, 4) ? (int64_t)(size / 128) * 128 : (int64_t)size;
}

/* "e3m2": every one of the 27 is as likely as any other of its width. */
static void draw_float(draws *d, char out[16]) {
  const uint32_t bits = 3 + draw(d, 6), exponent = 1 + draw(d, bits - 1);
  snprintf(out, 16, "e%um%u", exponent, bits - 1 - exponent);
}

/* The words of weights, their scales and zeros. */
static void draw_weights(draws *d, int *is_integer, char *out, size_t size) {
  static const char *const groups[] = {"32", "64", "128", "row", NULL};
  static const char *const scales[] = {"f16", "f16", "f16", "bf16", "f32", NULL};
  static const char *const float_scales[] = {"f16", "f16", "e8m0", "e4m3", NULL};
  static const char *const zeros[] = {" zero=mid", " zero=mid", " zero=u8", " zero=f16", " min=f16", "", NULL};
  static const char *const kinds[] = {"u", "u", "u", "i", "b", "e", "e", "c", NULL};
  static const char *const codebooks[] = {"c1", "c2", "c3", "c4", "nf4", "fp4", "iq4_nl", NULL};
  const char kind = *draw_word(d, kinds), *group = draw_word(d, groups);
  char type[16];
  *is_integer = kind == 'u' || kind == 'i' || kind == 'b';
  if (kind == 'e') {
    draw_float(d, type);
  } else if (kind == 'c') {
    snprintf(type, sizeof type, "%s", draw_word(d, codebooks));
  } else {
    snprintf(type, sizeof type, "%c%u", kind, kind == 'i' ? 2 + draw(d, 7) : 1 + draw(d, 8));
  }
  snprintf(out, size, "w=%s group=%s scale=%s%s", type, group, draw_word(d, kind == 'e' ? float_scales : scales),
           kind == 'u' ? draw_word(d, zeros) : "");
}

/* Activations of other integers go with integers that have one scale a row. */
static void draw_problem(draws *d, char *out, size_t size) {
  static const char *const halves[] = {"f16", "f16", "bf16", NULL};
  static const char *const bytes[] = {"i8 x_scale=row", "e4m3 x_scale=row", "e5m2 x_scale=row", NULL};
  char weights[128];
  int is_integer;
  const uint32_t sort = draw(d, 8);
  draw_weights(d, &is_integer, weights, sizeof weights);
  if (sort == 0 && is_integer) {
    snprintf(out, size, "w=u%u scale=f16 x=u%u y=f16 x_scale=row", 1 + draw(d, 8), 1 + draw(d, 8));
  } else {
    snprintf(out, size, "%s x=%s", weights, draw_word(d, sort == 1 ? bytes : halves));
  }
}

bench_error bench_draw_lines(char *text, bench_add_line add, void *context) {
  wish w;
  BENCH_TRY(read_wish(text, &w));
  draws d = {(uint64_t)w.seed, 0};
  int left = (int)w.count;
  for (int i = 0; i < MAX_DRAWS && left > 0; i++) {
    char problem[256], line[1024];
    const int64_t n = draw_matrix_size(&d, w.size), k = draw_matrix_size(&d, w.size);
    const int64_t m = (int64_t)draw_size(&d, 1, w.rows);
    draw_problem(&d, problem, sizeof problem);
    if ((double)n * (double)k * (double)m > w.work) continue;
    snprintf(line, sizeof line, "regret shape=%lldx%lld m=%lld %s seed=%.0f%s", (long long)n, (long long)k,
             (long long)m, problem, w.seed, w.rest);
    BENCH_TRY(add(context, line));
    left--;
  }
  BENCH_CHECK(left == 0, "of so little work there are too few problems");
  return NULL;
}
