#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/ref/gemm_ref.h"
#include "random.h"

enum { SAMPLES = 4096, MAX_ROWS = 64 };

/* ---- which outputs ---- */

/* `count` indices below `total`: all if they are so few, else both ends, both sides of the first and the last edge of
 * every usual tile, and then both sides of random edges and random indices in turn. */
static void pick(int64_t total, int64_t count, uint64_t seed, int64_t *index) {
  static const int64_t tiles[] = {8, 16, 32, 64, 96, 128, 192, 256};
  int64_t found = 0;
  if (count >= total) {
    for (; found < total; found++) index[found] = found;
    return;
  }
  index[found++] = 0;
  if (found < count) index[found++] = total - 1;
  for (size_t t = 0; t < sizeof tiles / sizeof tiles[0]; t++) {
    int64_t last = (total - 1) / tiles[t] * tiles[t], edge[] = {tiles[t], tiles[t] - 1, last, last - 1};
    for (int e = 0; e < 4 && found < count; e++) {
      if (edge[e] >= 0 && edge[e] < total) index[found++] = edge[e];
    }
  }
  for (uint64_t i = 0; found < count; i++) {
    int64_t at = (int64_t)(bench_random(seed, i) % (uint64_t)total);
    int64_t edge = at / tiles[i / 4 % 8] * tiles[i / 4 % 8];
    index[found++] = i % 4 == 0 ? edge : i % 4 == 1 && edge > 0 ? edge - 1 : at;
  }
}

/* ---- what is right ---- */

/* The relative error of rounding to a type; integers have none. */
static double epsilon(lpgemm_dtype_t type) {
  int kind = (int)LPGEMM_DTYPE_KIND(type);
  return kind == LPGEMM_KIND_REAL || kind == LPGEMM_KIND_FLOAT ? ref_epsilon(type) : 0;
}

/* fp32 accumulation in any order, and one rounding of each scaled weight to the type of X. */
static double accumulation(const bench_product *p) { return ((double)p->k + 8) * 0x1p-23 + epsilon(p->x_type); }

static double x_scale(const bench_product *p, int64_t row) {
  return p->x_scale_mode == LPGEMM_X_SCALE_NONE ? 1
                                                : (double)p->x_scale[p->x_scale_mode == LPGEMM_X_SCALE_ROW ? row : 0];
}

/* Rows of a dense matrix as fp64. */
static bench_error load_row(const bench_machine *machine, lpgemm_dtype_t type, const void *matrix, int64_t row,
                            int64_t columns, void *scratch, double *out) {
  size_t bytes = (size_t)(columns * ref_bytes(type));
  double value[256];
  BENCH_TRY(machine->copy(scratch, (const char *)matrix + (size_t)row * bytes, bytes));
  int coded = ref_bytes(type) == 1;
  for (int i = 0; coded && i < 256; i++) {
    uint8_t code = (uint8_t)i;
    value[i] = ref_load(type, &code, 0);
  }
  for (int64_t i = 0; i < columns; i++) {
    out[i] = coded                ? value[((const uint8_t *)scratch)[i]]
             : type == LPGEMM_F32 ? (double)((const float *)scratch)[i]
                                  : ref_load(type, scratch, i);
  }
  return NULL;
}

typedef struct samples {
  int64_t row[MAX_ROWS], column[SAMPLES], rows, columns;
  double *x;               /* [rows][k] */
  double *y;               /* [rows][n] */
  double *w, *magnitude;   /* [k] */
  void *scratch;           /* a row of anything */
  double error_sum, y_sum; /* squares */
} samples;

static bench_error load_rows(const bench_machine *machine, const bench_product *p, samples *s) {
  for (int64_t i = 0; i < s->rows; i++) {
    double *x = s->x + i * p->k, scale = x_scale(p, s->row[i]);
    BENCH_TRY(load_row(machine, p->x_type, p->x, s->row[i], p->k, s->scratch, x));
    for (int64_t j = 0; j < p->k; j++) x[j] *= scale;
    BENCH_TRY(load_row(machine, p->y_type, p->y, s->row[i], p->n, s->scratch, s->y + i * p->n));
  }
  return NULL;
}

static bench_error check_column(const bench_machine *machine, const bench_product *p, samples *s, int64_t column) {
  if (p->weights) {
    BENCH_TRY(bench_weight_row(machine, p->weights, column, s->w, s->magnitude));
  } else {
    BENCH_TRY(load_row(machine, p->x_type, p->dense, column, p->k, s->scratch, s->w));
    for (int64_t k = 0; k < p->k; k++) s->magnitude[k] = fabs(s->w[k]);
  }
  for (int64_t i = 0; i < s->rows; i++) {
    const double *x = s->x + i * p->k;
    double want = 0, size = 0, got = s->y[i * p->n + column], bound = 0;
    for (int64_t k = 0; k < p->k; k++) {
      want += x[k] * s->w[k];
      size += fabs(x[k]) * s->magnitude[k];
    }
    if (p->y_type != LPGEMM_I32) {
      double error = accumulation(p) * size;
      bound = error + ref_epsilon(p->y_type) * (fabs(want) + error) + ref_smallest(p->y_type) / 2;
    }
    BENCH_CHECK(fabs(got - want) <= bound, "y[%lld][%lld] is %.9g, not %.9g within %.3g", (long long)s->row[i],
                (long long)column, got, want, bound);
    s->error_sum += (got - want) * (got - want);
    s->y_sum += want * want;
  }
  return NULL;
}

bench_error bench_check_samples(const bench_machine *machine, const bench_product *p, double *rms_error) {
  samples *s = calloc(1, sizeof *s);
  BENCH_CHECK(s, "out of memory");
  s->rows = p->m < MAX_ROWS ? p->m : MAX_ROWS;
  s->columns = (SAMPLES + s->rows - 1) / s->rows;
  if (s->columns > p->n) s->columns = p->n;
  pick(p->m, s->rows, 1, s->row);
  pick(p->n, s->columns, 2, s->column);
  s->x = malloc((size_t)(s->rows * p->k + 1) * sizeof *s->x);
  s->y = malloc((size_t)(s->rows * p->n + 1) * sizeof *s->y);
  s->w = malloc((size_t)(p->k + 1) * sizeof *s->w);
  s->magnitude = malloc((size_t)(p->k + 1) * sizeof *s->magnitude);
  s->scratch = malloc((size_t)(p->k > p->n ? p->k : p->n) * 4 + 1);
  bench_error error =
      s->x && s->y && s->w && s->magnitude && s->scratch ? load_rows(machine, p, s) : bench_fail("out of memory");
  for (int64_t j = 0; !error && j < s->columns; j++) error = check_column(machine, p, s, s->column[j]);
  *rms_error = s->y_sum > 0 ? sqrt(s->error_sum / s->y_sum) : 0;
  free(s->x);
  free(s->y);
  free(s->w);
  free(s->magnitude);
  free(s->scratch);
  free(s);
  return error;
}

/* ---- all outputs ---- */

/* |scale of row| * norm of row of X, in the machine's memory. */
static bench_error x_norms(const bench_machine *machine, const bench_product *p, float *norm) {
  BENCH_TRY(machine->row_norms(p->x_type, p->x, p->m, p->k, norm));
  if (p->x_scale_mode == LPGEMM_X_SCALE_NONE) return NULL;
  size_t bytes = (size_t)p->m * sizeof *norm;
  float *host = malloc(bytes);
  BENCH_CHECK(host, "out of memory");
  bench_error error = machine->copy(host, norm, bytes);
  for (int64_t i = 0; i < p->m; i++) host[i] *= fabsf((float)x_scale(p, i));
  if (!error) error = machine->copy(norm, host, bytes);
  free(host);
  return error;
}

bench_error bench_check_all(const bench_machine *machine, const bench_product *p, const void *other) {
  void *norm;
  int64_t bad = 0;
  BENCH_TRY(machine->allocate((size_t)p->m * sizeof(float), &norm));
  bench_error error = x_norms(machine, p, norm);
  if (!error) {
    bench_comparison c = {p->y, other, p->y_type, p->m, p->n, norm, p->weights->norm, 0, 0, 0};
    if (p->y_type != LPGEMM_I32) {
      c.step = (float)ref_epsilon(p->y_type);
      c.factor = (float)(accumulation(p) * (1 + ref_epsilon(p->y_type)));
      c.least = (float)(ref_smallest(p->y_type) / 2);
    }
    error = machine->compare(&c, &bad);
  }
  machine->release(norm);
  if (error) return error;
  BENCH_CHECK(bad == 0, "%lld of %lld outputs are not what the %s kernel gives", (long long)bad,
              (long long)(p->m * p->n), machine->reference);
  return NULL;
}
