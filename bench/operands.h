/* X and Y of one product by lpgemm_run(), and its launches. */
#ifndef BENCH_OPERANDS_H
#define BENCH_OPERANDS_H

#include "check.h"
#include "machine.h"
#include "weights.h"

typedef struct bench_operands {
  const bench_machine *machine;
  const bench_weights *weights;
  lpgemm_run_args_t args;
  int64_t ldx;
  size_t y_bytes;
  void *x, *y, *other_y, *x_scale, *prepared, *workspace;
  size_t prepared_bytes;
  float *host_x_scale;
} bench_operands;

/* Everything but the workspace; after a failure too, bench_free_operands() frees what is there. */
bench_error bench_make_operands(const bench_machine *machine, const bench_weights *weights, const bench_case *c,
                                bench_operands *o);
void bench_free_operands(bench_operands *o);

/* Binds a workspace of just the size that a call needs. */
bench_error bench_bind_workspace(bench_operands *o, const lpgemm_run_args_t *args);

/* Gives the later calls X prepared for the kernel of args. */
bench_error bench_prepare_x(bench_operands *o);

/* Runs a kernel (NULL: the automatic choice) into a poisoned y, and waits. */
bench_error bench_run_into(bench_operands *o, const char *kernel, void *y);

/* A bench_launch with the operands as context: with another copy of the weights every time. */
bench_error bench_launch_product(void *context, int64_t i);

/* The same for lpgemm_prepare_x(), after bench_prepare_x(). */
bench_error bench_launch_prepare(void *context, int64_t i);

/* What there is to check when `y` was written; 0 samples: as many as usual. */
bench_product bench_product_of(const bench_operands *o, const bench_case *c, int samples);

#endif
