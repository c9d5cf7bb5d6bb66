/* lpgemm_quantize_activations() beside a copy that moves as many bytes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../tests/ref/gemm_ref.h"
#include "run.h"

enum { X_SEED = 43, SAMPLED_ROWS = 64, MOST_BUFFERS = 64 };

typedef struct quantizing {
  const bench_machine *machine;
  const bench_case *c;
  int64_t rows, columns, buffers;
  size_t x_bytes, code_bytes;
  void *x[MOST_BUFFERS], *codes[MOST_BUFFERS], *scales;
} quantizing;

static bench_error quantize(void *context, int64_t i) {
  const quantizing *q = context;
  const int64_t at = i % q->buffers;
  BENCH_LPGEMM(lpgemm_quantize_activations(q->machine->handle, q->rows, q->columns, q->x[at], q->c->x_type, 0,
                                           q->c->out_type, q->codes[at], 0, q->scales, q->c->x_scale_mode));
  return NULL;
}

/* Half of the bytes are read, and as many written. */
static bench_error copy_as_much(void *context, int64_t i) {
  const quantizing *q = context;
  return q->machine->copy_in_order(q->codes[i % q->buffers], q->x[i % q->buffers], (q->x_bytes + q->code_bytes) / 2);
}

/* Codes times the scale are next to X, which reaches the largest code. */
static bench_error check_row(const quantizing *q, int64_t row, const void *x, const void *codes, float scale) {
  const lpgemm_dtype_t type = q->c->out_type;
  const int is_integer = LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_INT;
  const double top = is_integer ? ldexp(1, lpgemm_dtype_bits(type) - 1) - 1 : 448, slack = 1 + 0x1p-16;
  double most = 0;
  for (int64_t k = 0; k < q->columns; k++) {
    const double value = ref_load(q->c->x_type, x, k), code = ref_load(type, codes, k);
    const double step = is_integer ? 0.5 : fmax(fabs(code) * 0x1p-4, 0x1p-10);
    BENCH_CHECK(fabs(value - code * (double)scale) <= step * (double)scale * slack,
                "code (%lld, %lld) is %g times %g, not %g", (long long)row, (long long)k, code, (double)scale, value);
    most = fmax(most, fabs(value));
  }
  const int is_row = q->c->x_scale_mode == LPGEMM_X_SCALE_ROW;
  BENCH_CHECK(most <= top * (double)scale * slack && (!is_row || most * slack >= top * (double)scale),
              "row %lld reaches %g, and its scale is %g", (long long)row, most, (double)scale);
  return NULL;
}

static bench_error check(const quantizing *q) {
  const size_t x_row = q->x_bytes / (size_t)q->rows, code_row = q->code_bytes / (size_t)q->rows;
  const int64_t rows = q->rows < SAMPLED_ROWS ? q->rows : SAMPLED_ROWS;
  void *x = malloc(x_row), *codes = malloc(code_row);
  bench_error error = x && codes ? NULL : bench_fail("out of memory");
  for (int64_t i = 0; !error && i < rows; i++) {
    const int64_t row = rows > 1 ? i * (q->rows - 1) / (rows - 1) : 0;
    float scale;
    const float *const from = (const float *)q->scales + (q->c->x_scale_mode == LPGEMM_X_SCALE_ROW ? row : 0);
    error = q->machine->copy(x, (const char *)q->x[0] + (size_t)row * x_row, x_row);
    if (!error) error = q->machine->copy(codes, (const char *)q->codes[0] + (size_t)row * code_row, code_row);
    if (!error) error = q->machine->copy(&scale, from, sizeof scale);
    if (!error) error = check_row(q, row, x, codes, scale);
  }
  free(x);
  free(codes);
  return error;
}

static bench_error run(quantizing *q, bench_result *r) {
  const bench_machine *machine = q->machine;
  const int64_t rotation = (int64_t)(machine->rotate_bytes / (q->x_bytes + q->code_bytes)) + 1;
  q->buffers = rotation < MOST_BUFFERS ? rotation : MOST_BUFFERS;
  BENCH_TRY(machine->allocate((size_t)q->rows * sizeof(float), &q->scales));
  for (int64_t i = 0; i < q->buffers; i++) {
    BENCH_TRY(machine->allocate(q->x_bytes, &q->x[i]));
    BENCH_TRY(machine->allocate(q->x_bytes + q->code_bytes, &q->codes[i])); /* room for a copy */
    BENCH_TRY(machine->fill(q->c->x_type, q->x[i], q->rows * q->columns, X_SEED + (uint64_t)i));
  }
  snprintf(r->checked, sizeof r->checked, "codes and scales of %d rows", (int)SAMPLED_ROWS);
  BENCH_TRY(machine->poison(q->codes[0], q->code_bytes));
  BENCH_TRY(quantize(q, 0));
  BENCH_TRY(machine->synchronize());
  BENCH_TRY(check(q));
  BENCH_TRY(machine->time(quantize, q, q->buffers, &r->time));
  return machine->time(copy_as_much, q, q->buffers, &r->baseline);
}

bench_error bench_run_quantize(const bench_machine *machine, const bench_case *c, bench_result *r) {
  quantizing q = {.machine = machine, .c = c, .rows = c->desc.n, .columns = c->desc.k};
  q.x_bytes = (size_t)(q.rows * q.columns * ref_bytes(c->x_type));
  q.code_bytes = (size_t)(q.rows * q.columns);
  BENCH_CHECK(c->x_scale_mode != LPGEMM_X_SCALE_NONE && ref_bytes(c->out_type) == 1,
              "quantize takes x_scale=row or tensor, and to= a type of 8 bits or fewer");
  snprintf(r->kernel, sizeof r->kernel, "%s", bench_operation_name(c->operation));
  bench_error error = run(&q, r);
  machine->release(q.scales);
  for (int64_t i = 0; i < q.buffers; i++) {
    machine->release(q.x[i]);
    machine->release(q.codes[i]);
  }
  return error;
}
