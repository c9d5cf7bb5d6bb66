/* The products of a rank: its rows of column-parallel layers, and its part of the sums of row-parallel ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parallel.h"

/* ---- one product of a layer, by the same numbers on every rank ---- */

typedef struct trial {
  rank *r;
  const linear *layer;
  int by_columns;
  int64_t m, whole_n;
  float *x;      /* [m][k]: the rank's columns, as they are stored */
  void *y;       /* [m][n], of the backend */
  float *sums;   /* [m][n] */
  size_t y_size; /* bytes of a number of y */
} trial;

static const char *const names[LAYERS] = {"qkv", "o", "gate_up", "down"};

static int64_t whole_n(const options *o, int layer) {
  const block_shape *s = &o->shape;
  int64_t n[LAYERS] = {(s->heads + 2 * s->kv_heads) * HEAD, s->hidden, 2 * s->ffn, s->hidden};
  return n[layer];
}

static trial try_layer(rank *r, int layer, int64_t m, float *x, lpgemm_dtype_t y_type) {
  const linear *layers[LAYERS] = {&r->b.qkv, &r->b.o, &r->b.gate_up, &r->b.down};
  const machine *on = r->b.on;
  trial t = {.r = r, .layer = layers[layer], .by_columns = layer % 2, .m = m, .whole_n = whole_n(r->job->o, layer)};
  int64_t n = t.layer->n, k = t.layer->k;
  t.x = get_memory((size_t)(m * k + 1) * sizeof *t.x);
  t.sums = get_memory((size_t)(m * n + 1) * sizeof *t.sums);
  for (int64_t i = 0; i < m; i++) {
    if (k > 0) memcpy(t.x + i * k, x + i * t.layer->whole_k + t.layer->first_column, (size_t)k * sizeof *x);
  }
  void *stored = on->allocate((size_t)(m * k + 1) * on->bytes);
  on->upload(stored, t.x, m * k);
  on->download(t.x, stored, m * k);
  t.y = on->allocate((size_t)(m * n + 1) * sizeof(float));

  lpgemm_run_args_t args = {.size = sizeof args, .weights = t.layer->weights, .m = m};
  args.x = stored;
  args.x_type = on->type;
  args.y = t.y;
  args.y_type = y_type;
  TRY(lpgemm_run(r->b.handle, &args));
  if (t.by_columns && r->b.reduce) r->b.reduce(&r->b, t.y, m * n, y_type);
  if (y_type == LPGEMM_F32) {
    r->engine->read_floats(t.sums, t.y, m * n);
  } else {
    on->download(t.sums, t.y, m * n);
  }
  on->release(stored);
  on->release(t.y);
  return t;
}

static void drop(trial *t) {
  free(t->x);
  free(t->sums);
}

/* ---- exact weights: any order of sums gives the same bits ---- */

int64_t exact_numbers(const options *o) {
  int64_t numbers = 0;
  for (int layer = 0; layer < LAYERS; layer++) numbers += whole_n(o, layer);
  return numbers * (output_rows(o) - STEPS);
}

static void compare(const trial *t, int layer, float *whole) {
  for (int64_t row = 0; row < t->m; row++) {
    for (int i = 0; i < t->layer->count; i++) {
      const joined *of = &t->layer->of[i];
      float *want = whole + row * t->whole_n + of->whole_at;
      const float *got = t->sums + row * t->layer->n + of->at;
      size_t bytes = (size_t)of->rows * sizeof *want;
      if (t->r->job->writes_exact) {
        memcpy(want, got, bytes);
      } else if (memcmp(want, got, bytes) != 0) {
        fail("row %lld of %lld of its part of %s is not what a rank alone has there", (long long)row, (long long)t->m,
             names[layer]);
      }
    }
  }
}

void check_slices(rank *r) {
  const options *o = r->job->o;
  float *whole = r->job->exact;
  for (int i = 0; i < o->row_counts; i++) {
    for (int layer = 0; layer < LAYERS; layer++) {
      int64_t k = layer == 1 ? o->shape.heads * HEAD : layer == 3 ? o->shape.ffn : o->shape.hidden;
      int64_t count = o->rows[i] * k;
      float *x = get_memory((size_t)count * sizeof *x);
      random_numbers(x, count, -2.5f, 2.5f, 100 + (uint64_t)layer);
      for (int64_t c = 0; c < count; c++) x[c] = rintf(x[c]);
      trial t = try_layer(r, layer, o->rows[i], x, LPGEMM_F32);
      compare(&t, layer, whole);
      whole += o->rows[i] * t.whole_n;
      drop(&t);
      free(x);
    }
  }
}

/* ---- random weights, against fp64 ---- */

size_t partial_numbers(const options *o) { return (size_t)(MOST_RANKS * SAMPLES * most_rows(o) * 2); }

typedef struct exact_sum {
  double y, size; /* sum x w and sum |x| |w| */
} exact_sum;

static exact_sum multiply_sample(const trial *t, int64_t sample, int64_t row) {
  const float *w = t->layer->sample + sample * t->layer->k, *x = t->x + row * t->layer->k;
  exact_sum sum = {0};
  for (int64_t i = 0; i < t->layer->k; i++) {
    double product = (double)x[i] * (double)w[i];
    sum.y += product;
    sum.size += fabs(product);
  }
  return sum;
}

/* docs/numerics.md, EXACT. Of several ranks each rounds its part, and ranks - 1 additions round again: `parts` is the
 * sum of the parts' magnitudes. Below its normal numbers fp16 has steps of 2^-24. */
static void judge(const trial *t, int64_t row, int64_t sample, double y64, double parts, double size) {
  rank *r = t->r;
  report *report = &r->job->report[r->index];
  int half = r->b.on->type == LPGEMM_F16;
  double eps_y = half ? 0x1p-11 : 0x1p-24, eps_x = half ? 0x1p-11 : 0.0;
  int roundings = t->by_columns ? r->job->ranks : 1;
  double bound = roundings * (eps_y * parts + (half ? 0x1p-25 : 0.0));
  bound += ((double)(t->layer->whole_k + 8) * 0x1p-23 + eps_x) * size;
  double got = (double)t->sums[row * t->layer->n + t->layer->sample_row[sample]];
  double share = fabs(got - y64) / bound;
  if (!(share <= 1.0)) {
    fail("output %lld of row %lld of %lld is %.9g, by fp64 it is %.9g, and the bound is %.2g",
         (long long)t->layer->sample_row[sample], (long long)row, (long long)t->m, got, y64, bound);
  }
  if (share > report->error) report->error = share;
  report->checked++;
}

static void check_rows_of_w(const trial *t) {
  for (int64_t s = 0; s < t->layer->samples; s++) {
    for (int64_t row = 0; row < t->m; row++) {
      exact_sum sum = multiply_sample(t, s, row);
      judge(t, row, s, sum.y, fabs(sum.y), sum.size);
    }
  }
}

/* All ranks sample the same outputs: the first columns of all rows of the layer are those of the first rank. */
static void check_columns_of_w(const trial *t) {
  const job *j = t->r->job;
  int64_t each = t->layer->samples * t->m, stride = SAMPLES * most_rows(j->o) * 2;
  double *own = j->partial + t->r->index * stride;
  for (int64_t i = 0; i < each; i++) {
    exact_sum sum = multiply_sample(t, i / t->m, i % t->m);
    own[2 * i] = sum.y;
    own[2 * i + 1] = sum.size;
  }
  meet();
  for (int64_t i = 0; i < each; i++) {
    double y = 0.0, parts = 0.0, size = 0.0;
    for (int rank = 0; rank < j->ranks; rank++) {
      const double *part = j->partial + rank * stride + 2 * i;
      y += part[0];
      parts += fabs(part[0]);
      size += part[1];
    }
    judge(t, i % t->m, i / t->m, y, parts, size);
  }
  meet(); /* all have read */
}

void check_products(rank *r) {
  const options *o = r->job->o;
  for (int i = 0; i < o->row_counts; i++) {
    for (int layer = 0; layer < LAYERS; layer++) {
      int64_t k = layer == 1 ? o->shape.heads * HEAD : layer == 3 ? o->shape.ffn : o->shape.hidden;
      float *x = get_memory((size_t)(o->rows[i] * k) * sizeof *x);
      random_numbers(x, o->rows[i] * k, -1.732f, 1.732f, 200 + (uint64_t)layer);
      trial t = try_layer(r, layer, o->rows[i], x, r->b.on->type);
      if (t.by_columns) {
        check_columns_of_w(&t);
      } else {
        check_rows_of_w(&t);
      }
      drop(&t);
      free(x);
    }
  }
}
