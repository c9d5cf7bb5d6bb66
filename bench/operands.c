#include "operands.h"

#include <stdlib.h>
#include <string.h>

#include "random.h"

enum { X_SEED = 3, X_SCALE_SEED = 4 };

/* 8-bit activations are scaled to about [-1, 1], a scale a row or one. */
static bench_error make_x_scale(bench_operands *o, const bench_case *c) {
  if (c->x_scale_mode == LPGEMM_X_SCALE_NONE) return NULL;
  size_t count = c->x_scale_mode == LPGEMM_X_SCALE_ROW ? (size_t)c->m : 1;
  float largest =
      c->x_type == LPGEMM_E4M3 || c->x_type == LPGEMM_E5M2 ? 2.0f : (float)((1 << lpgemm_dtype_bits(c->x_type)) - 1);
  o->host_x_scale = malloc(count * sizeof(float));
  BENCH_CHECK(o->host_x_scale, "out of memory");
  for (size_t i = 0; i < count; i++) {
    o->host_x_scale[i] = (1.0f + (float)(bench_random(X_SCALE_SEED, i) % 256) / 256.0f) / largest;
  }
  BENCH_TRY(o->machine->allocate(count * sizeof(float), &o->x_scale));
  return o->machine->copy(o->x_scale, o->host_x_scale, count * sizeof(float));
}

bench_error bench_make_operands(const bench_machine *machine, const bench_weights *weights, const bench_case *c,
                                bench_operands *o) {
  *o = (bench_operands){.machine = machine, .weights = weights, .args = {.size = sizeof o->args}};
  o->ldx = c->desc.k + c->x_gap;
  size_t x_bytes = (size_t)(c->m * o->ldx) * (size_t)((lpgemm_dtype_bits(c->x_type) + 7) / 8);
  o->y_bytes = (size_t)(c->m * c->desc.n) * (size_t)(lpgemm_dtype_bits(c->y_type) / 8);
  BENCH_TRY(machine->allocate(x_bytes, &o->x));
  BENCH_TRY(machine->allocate(o->y_bytes, &o->y));
  BENCH_TRY(machine->allocate(o->y_bytes, &o->other_y));
  BENCH_TRY(machine->fill(c->x_type, o->x, c->m * o->ldx, X_SEED));
  BENCH_TRY(make_x_scale(o, c));
  o->args.weights = o->weights->copy[0];
  o->args.m = c->m;
  o->args.x = o->x;
  o->args.ldx = o->ldx;
  o->args.x_type = c->x_type;
  o->args.y = o->y;
  o->args.y_type = c->y_type;
  o->args.x_scale = o->x_scale;
  o->args.x_scale_mode = c->x_scale_mode;
  o->args.batch_invariant = c->batch_invariant;
  return NULL;
}

void bench_free_operands(bench_operands *o) {
  void *memory[] = {o->x, o->y, o->other_y, o->x_scale, o->prepared, o->workspace};
  lpgemm_set_workspace(o->machine->handle, NULL, 0);
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) o->machine->release(memory[i]);
  free(o->host_x_scale);
}

bench_error bench_prepare_x(bench_operands *o) {
  BENCH_LPGEMM(lpgemm_prepared_x_size(o->machine->handle, &o->args, &o->prepared_bytes));
  BENCH_TRY(o->machine->allocate(o->prepared_bytes, &o->prepared));
  BENCH_TRY(bench_launch_prepare(o, 0));
  o->args.prepared_x = o->prepared;
  o->args.prepared_x_bytes = o->prepared_bytes;
  return NULL;
}

/* ---- runs ---- */

bench_error bench_bind_workspace(bench_operands *o, const lpgemm_run_args_t *args) {
  size_t bytes;
  BENCH_LPGEMM(lpgemm_workspace_size(o->machine->handle, args->weights, args->m, args, &bytes));
  o->machine->release(o->workspace);
  o->workspace = NULL;
  if (bytes) BENCH_TRY(o->machine->allocate(bytes, &o->workspace));
  BENCH_LPGEMM(lpgemm_set_workspace(o->machine->handle, o->workspace, bytes));
  return NULL;
}

bench_error bench_run_into(bench_operands *o, const char *kernel, void *y) {
  lpgemm_run_args_t args = o->args;
  args.kernel = kernel;
  args.y = y;
  BENCH_TRY(bench_bind_workspace(o, &args));
  BENCH_TRY(o->machine->poison(y, o->y_bytes));
  BENCH_LPGEMM(lpgemm_run(o->machine->handle, &args));
  return o->machine->synchronize();
}

bench_error bench_launch_product(void *context, int64_t i) {
  const bench_operands *o = context;
  lpgemm_run_args_t args = o->args;
  args.weights = o->weights->copy[i % o->weights->copies];
  BENCH_LPGEMM(lpgemm_run(o->machine->handle, &args));
  return NULL;
}

bench_error bench_launch_prepare(void *context, int64_t i) {
  const bench_operands *o = context;
  (void)i;
  BENCH_LPGEMM(lpgemm_prepare_x(o->machine->handle, &o->args, o->prepared, o->prepared_bytes));
  return NULL;
}

bench_product bench_product_of(const bench_operands *o, const bench_case *c, int samples) {
  bench_product p = {.m = c->m, .n = c->desc.n, .k = c->desc.k, .ldx = o->ldx, .x_type = c->x_type};
  p.y_type = c->y_type;
  p.x = o->x;
  p.y = o->y;
  p.x_scale = o->host_x_scale;
  p.x_scale_mode = c->x_scale_mode;
  p.weights = o->weights;
  p.samples = samples;
  return p;
}
