#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/ref/gemm_ref.h"
#include "parallel.h"
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

/* fp32 accumulation in any order, and one rounding of each scaled weight to the type of X, which is fp16 for 8 bits. */
static double accumulation(const bench_product *p) {
  double sums = ((double)p->k + 8) * 0x1p-23;
  if (p->x_type == LPGEMM_F32) return sums;
  return sums + ref_epsilon(p->x_type == LPGEMM_BF16 ? LPGEMM_BF16 : LPGEMM_F16);
}

static double x_scale(const bench_product *p, int64_t row) {
  return p->x_scale_mode == LPGEMM_X_SCALE_NONE ? 1
                                                : (double)p->x_scale[p->x_scale_mode == LPGEMM_X_SCALE_ROW ? row : 0];
}

/* ---- numbers of the machine's arrays ---- */

/* The value of each number of a type of at most 16 bits, since ref_load() is slow. */
typedef struct numbers {
  lpgemm_dtype_t type;
  const double *value; /* NULL: more than 16 bits */
  uint32_t mask;
} numbers;

/* The table is kept for the next call; that of another type of as many bytes is overwritten. */
static numbers numbers_of(lpgemm_dtype_t type) {
  static double one[1 << 8], two[1 << 16];
  static lpgemm_dtype_t known[2];
  int64_t bytes = ref_bytes(type);
  if (bytes > 2) return (numbers){type, NULL, 0};
  double *value = bytes == 1 ? one : two;
  uint32_t mask = bytes == 1 ? 255 : 65535;
  for (uint32_t bits = 0; known[bytes - 1] != type && bits <= mask; bits++) {
    uint8_t byte = (uint8_t)bits;
    uint16_t pair = (uint16_t)bits;
    value[bits] = bytes == 1 ? ref_load(type, &byte, 0) : ref_load(type, &pair, 0);
  }
  known[bytes - 1] = type;
  return (numbers){type, value, mask};
}

static double value_of(const numbers *numbers, uint32_t bits) {
  return numbers->value ? numbers->value[bits & numbers->mask] : ref_load(numbers->type, &bits, 0);
}

/* Elements first to first + count - 1 of an array of the machine as fp64. */
static bench_error load(const bench_machine *machine, const numbers *numbers, const void *array, int64_t first,
                        int64_t count, void *scratch, double *out) {
  size_t bytes = (size_t)ref_bytes(numbers->type);
  BENCH_TRY(machine->copy(scratch, (const char *)array + (size_t)first * bytes, (size_t)count * bytes));
  for (int64_t i = 0; i < count; i++) {
    uint32_t bits = 0;
    memcpy(&bits, (const char *)scratch + (size_t)i * bytes, bytes); /* little-endian, as CUDA is */
    out[i] = value_of(numbers, bits);
  }
  return NULL;
}

/* ---- samples ---- */

/* What one column's outputs were off. */
typedef struct column_result {
  double error_sum, y_sum; /* squares */
  int64_t bad_row;         /* -1: none, -2: out of memory */
  double got, want, bound;
} column_result;

typedef struct samples {
  const bench_product *p;
  int64_t row[MAX_ROWS], column[SAMPLES], rows, columns;
  double *x;                   /* [rows][k] */
  double *y;                   /* [rows][n] */
  numbers x_numbers;           /* of dense weights too */
  column_result done[SAMPLES]; /* of each column */
} samples;

static bench_error load_rows(const bench_machine *machine, samples *s) {
  const bench_product *p = s->p;
  void *scratch = malloc((size_t)(p->k > p->n ? p->k : p->n) * 4 + 1);
  BENCH_CHECK(scratch, "out of memory");
  bench_error error = NULL;
  numbers numbers = numbers_of(p->y_type);
  for (int64_t i = 0; i < s->rows && !error; i++) {
    error = load(machine, &numbers, p->y, s->row[i] * p->n, p->n, scratch, s->y + i * p->n);
  }
  numbers = s->x_numbers = numbers_of(p->x_type);
  for (int64_t i = 0; i < s->rows && !error; i++) {
    double *x = s->x + i * p->k, scale = x_scale(p, s->row[i]);
    error = load(machine, &numbers, p->x, s->row[i] * p->ldx, p->k, scratch, x);
    for (int64_t k = 0; k < p->k && !error; k++) x[k] *= scale;
  }
  free(scratch);
  return error;
}

static void load_weights(const samples *s, int64_t column, uint8_t *codes, double *w) {
  const bench_product *p = s->p;
  if (p->weights) {
    bench_weight_row(p->weights, column, codes, w);
    return;
  }
  for (int64_t k = 0; k < p->k; k++) {
    uint32_t bits = bench_random_number(p->x_type, bench_random(p->dense_seed, (uint64_t)(column * p->k + k)));
    w[k] = value_of(&s->x_numbers, bits);
  }
}

static void check_column(const samples *s, int64_t column, const double *w, column_result *r) {
  const bench_product *p = s->p;
  for (int64_t i = 0; i < s->rows; i++) {
    const double *x = s->x + i * p->k;
    double want = 0, size = 0, got = s->y[i * p->n + column], bound = 0;
    for (int64_t k = 0; k < p->k; k++) {
      want += x[k] * w[k];
      size += fabs(x[k] * w[k]);
    }
    if (p->y_type != LPGEMM_I32) {
      double error = accumulation(p) * size;
      bound = error + ref_epsilon(p->y_type) * (fabs(want) + error) + ref_smallest(p->y_type) / 2;
    }
    r->error_sum += (got - want) * (got - want);
    r->y_sum += want * want;
    if (r->bad_row >= 0 || fabs(got - want) <= bound) continue;
    r->bad_row = s->row[i];
    r->got = got;
    r->want = want;
    r->bound = bound;
  }
}

static void check_columns(void *context, int64_t first, int64_t end) {
  samples *s = context;
  double *w = malloc((size_t)(s->p->k + 1) * sizeof *w);
  uint8_t *codes = malloc((size_t)s->p->k + 1);
  for (int64_t i = first; i < end; i++) {
    s->done[i] = (column_result){.bad_row = w && codes ? -1 : -2};
    if (s->done[i].bad_row == -2) continue;
    load_weights(s, s->column[i], codes, w);
    check_column(s, s->column[i], w, &s->done[i]);
  }
  free(w);
  free(codes);
}

/* The first wrong output in the order of the columns, so that a run says the same every time. */
static bench_error judge(const samples *s, double *rms_error) {
  double error_sum = 0, y_sum = 0;
  for (int64_t i = 0; i < s->columns; i++) {
    const column_result *r = &s->done[i];
    BENCH_CHECK(r->bad_row != -2, "out of memory");
    BENCH_CHECK(r->bad_row == -1, "y[%lld][%lld] is %.9g, not %.9g within %.3g", (long long)r->bad_row,
                (long long)s->column[i], r->got, r->want, r->bound);
    error_sum += r->error_sum;
    y_sum += r->y_sum;
  }
  *rms_error = y_sum > 0 ? sqrt(error_sum / y_sum) : 0;
  return NULL;
}

bench_error bench_check_samples(const bench_machine *machine, const bench_product *p, double *rms_error) {
  samples *s = calloc(1, sizeof *s);
  BENCH_CHECK(s, "out of memory");
  s->p = p;
  s->rows = p->m < MAX_ROWS ? p->m : MAX_ROWS;
  const int count = p->samples > 0 && p->samples < SAMPLES ? p->samples : SAMPLES;
  if (s->rows > count / 4) s->rows = count / 4; /* a few columns at least */
  s->columns = (count + s->rows - 1) / s->rows;
  if (s->columns > p->n) s->columns = p->n;
  pick(p->m, s->rows, 1, s->row);
  pick(p->n, s->columns, 2, s->column);
  s->x = malloc((size_t)(s->rows * p->k + 1) * sizeof *s->x);
  s->y = malloc((size_t)(s->rows * p->n + 1) * sizeof *s->y);
  bench_error error = s->x && s->y ? load_rows(machine, s) : bench_fail("out of memory");
  if (!error) bench_parallel(s->columns, check_columns, s);
  if (!error) error = judge(s, rms_error);
  free(s->x);
  free(s->y);
  free(s);
  return error;
}

/* ---- all outputs ---- */

/* |scale of row| * norm of row of X, in the machine's memory. */
static bench_error x_norms(const bench_machine *machine, const bench_product *p, float *norm) {
  BENCH_TRY(machine->row_norms(p->x_type, p->x, p->m, p->k, p->ldx, norm));
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
