/* Ranks on the CPU: its cores are dealt out, sums are made in shared memory. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "parallel.h"

enum { WARM = 1, REPEATS = 5 };

static void sum_over_ranks(const block *b, void *x, int64_t count, lpgemm_dtype_t type) {
  (void)b, (void)type; /* all numbers on this machine are fp32 */
  if (!host_sum(x, (size_t)count * sizeof(float), count, add_floats, x)) end_quietly();
}

static void open_rank(rank *r) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU};
  config.num_threads = cores > r->job->ranks ? (int32_t)cores / r->job->ranks : 1;
  r->b.on = &machine_cpu;
  if (r->job->ranks > 1) r->b.reduce = sum_over_ranks;
  host_sum_open(r);
  snprintf(r->job->report[r->index].sum, sizeof r->job->report->sum, "the host");
  fail_here(r, FAIL_JOIN);
  meet();
  TRY(lpgemm_create(&r->b.handle, &config));
}

static void write_bytes(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }
static void read_floats(float *to, const void *from, int64_t count) { memcpy(to, from, (size_t)count * sizeof *to); }
static void close_rank(rank *r) { TRY(lpgemm_destroy(r->b.handle)); }

static double time_work(rank *r, void (*work)(void *), void *context, void (*prepare)(void *), int in_graph) {
  double us[REPEATS];
  (void)r, (void)in_graph;
  for (int i = -WARM; i < REPEATS; i++) {
    prepare(context);
    meet();
    double start = seconds();
    work(context);
    if (i >= 0) us[i] = 1e6 * (seconds() - start);
  }
  return median(us, REPEATS);
}

static void steps(rank *r, const float *tokens, int32_t first, int count, float *out) {
  const block *b = &r->b;
  int64_t hidden = b->shape.hidden;
  fail_here(r, FAIL_STEPS);
  for (int i = 0; i < count; i++) {
    b->on->set_position(b, first + i);
    b->on->upload(b->x, tokens + i * hidden, hidden);
    block_forward(b, 1);
    b->on->download(out + i * hidden, b->x, hidden);
  }
}

const engine engine_cpu = {.open = open_rank,
                           .close = close_rank,
                           .write = write_bytes,
                           .read_floats = read_floats,
                           .time = time_work,
                           .steps = steps};
