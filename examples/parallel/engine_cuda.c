/* Ranks on GPUs: one each, and sums by NCCL; or all on the first, and sums on the host. Both are in the stream of the
 * products, so a graph has them too. */
#include "engine_cuda.h"

#include <stdio.h>
#include <string.h>

#include "../block/block_cuda.h"
#include "nccl.h"

enum { WARM = 3, REPEATS = 9, MOST_SUMS = 32, WINDOW_US = 10000, MOST_TIMES = 200 };

/* ---- sums over ranks ---- */

static int by_nccl;

static void sum_by_nccl(const block *b, void *x, int64_t count, lpgemm_dtype_t type) {
  (void)b;
  nccl_sum(x, count, type, cuda_stream);
}

/* One size of sum: it lives as long as the graphs that have it. */
typedef struct sum_of {
  int64_t count;
  lpgemm_dtype_t type;
} sum_of;

static void *staging; /* of this rank, pinned: its part, then the sum */

static size_t bytes_of(const sum_of *s) { return (size_t)(s->count * lpgemm_dtype_bits(s->type) / 8); }

/* Waits for the other ranks on a thread of the driver. Work on the device is done by then, and who fails leaves the
 * stream to go on: the thread that waits for it notices. */
static void CUDART_CB sum_staging(void *context) {
  const sum_of *s = context;
  host_sum(staging, bytes_of(s), s->count, s->type == LPGEMM_F16 ? add_halves : add_floats, staging);
}

static void sum_on_host(const block *b, void *x, int64_t count, lpgemm_dtype_t type) {
  static sum_of sums[MOST_SUMS];
  int i = 0;
  (void)b;
  while (i < MOST_SUMS && sums[i].count && (sums[i].count != count || sums[i].type != type)) i++;
  if (i == MOST_SUMS) fail("more than %d sizes of sums", MOST_SUMS);
  sums[i] = (sum_of){count, type};
  CUDA(cudaMemcpyAsync(staging, x, bytes_of(&sums[i]), cudaMemcpyDeviceToHost, cuda_stream));
  CUDA(cudaLaunchHostFunc(cuda_stream, sum_staging, &sums[i]));
  CUDA(cudaMemcpyAsync(x, staging, bytes_of(&sums[i]), cudaMemcpyHostToDevice, cuda_stream));
}

/* While this rank waits for its GPU, which may wait for a rank that is gone. */
static void look_around(void) {
  if (another_failed()) {
    if (by_nccl) nccl_abort();
    end_quietly();
  }
  if (by_nccl) nccl_check();
}

/* ---- a rank ---- */

static void open_rank(rank *r) {
  report *report = &r->job->report[r->index];
  int ranks = r->job->ranks, version;
  CUDA(cudaGetDeviceCount(&report->gpus));
  report->shares = ranks > report->gpus;
  int device = report->shares ? 0 : r->index;
  struct cudaDeviceProp properties;
  CUDA(cudaSetDevice(device));
  CUDA(cudaGetDeviceProperties(&properties, device));
  snprintf(report->device, sizeof report->device, "%.100s", properties.name);
  CUDA(cudaDriverGetVersion(&version));
  snprintf(report->driver, sizeof report->driver, "for CUDA %d.%d", version / 1000, version % 1000 / 10);
  CUDA(cudaRuntimeGetVersion(&version));
  snprintf(report->runtime, sizeof report->runtime, "CUDA %d.%d", version / 1000, version % 1000 / 10);
  CUDA(cudaStreamCreateWithFlags(&cuda_stream, cudaStreamNonBlocking));

  by_nccl = ranks > 1 && !report->shares && !r->job->o->host_sum;
  if (by_nccl) {
    nccl_open(r->job->o->nccl, r);
    nccl_version(report->sum, sizeof report->sum);
    r->b.reduce = sum_by_nccl;
  } else {
    fail_here(r, FAIL_JOIN);
    meet();
    if (ranks > 1) {
      snprintf(report->sum, sizeof report->sum, "the host");
      CUDA(cudaMallocHost(&staging, r->job->slot_bytes));
      host_sum_open(r);
      r->b.reduce = sum_on_host;
    }
  }
  cuda_waiting = look_around;

  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CUDA, .device = device};
  r->b.on = &machine_cuda;
  TRY(lpgemm_create(&r->b.handle, &config));
  TRY(lpgemm_set_stream(r->b.handle, cuda_stream));
}

static void close_rank(rank *r) {
  cuda_wait();
  if (by_nccl) nccl_close();
  by_nccl = 0;
  if (staging) CUDA(cudaFreeHost(staging));
  TRY(lpgemm_destroy(r->b.handle));
  CUDA(cudaStreamDestroy(cuda_stream));
}

static void write_bytes(void *to, const void *from, size_t bytes) {
  CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, cuda_stream));
  cuda_wait();
}

/* Numbers of fp32 in memory of the GPU. */
static void read_floats(float *to, const void *from, int64_t count) {
  CUDA(cudaMemcpyAsync(to, from, (size_t)count * sizeof *to, cudaMemcpyDeviceToHost, cuda_stream));
  cuda_wait();
}

/* ---- times ---- */

/* All ranks do the work equally often: every sum is one of all. */
static double time_work(rank *r, void (*work)(void *), void *context, void (*prepare)(void *), int in_graph) {
  double us[REPEATS];
  int times = 1;
  prepare(context); /* capturing does the work once before */
  cudaGraphExec_t graph = in_graph ? capture(work, context) : NULL;
  for (int i = -WARM; i < REPEATS; i++) {
    prepare(context);
    meet();
    double once = graph ? replay(graph, times) : time_calls(work, context, times);
    if (i < 0) {
      double most = WINDOW_US / agree(r, once);
      times = most < 1 ? 1 : most > MOST_TIMES ? MOST_TIMES : (int)most;
    } else {
      us[i] = once;
    }
  }
  if (graph) CUDA(cudaGraphExecDestroy(graph));
  return median(us, REPEATS);
}

/* ---- decode steps ---- */

typedef struct step {
  const block *b;
  const void *in;
  void *out;
  int32_t first, count;
} step;

static void do_step(void *context) {
  const step *s = context;
  block_forward(s->b, 1);
  next_token(s->b, s->in, s->out, s->first, s->count);
}

static void start_at(const step *s, const float *tokens) {
  s->b->on->set_position(s->b, s->first);
  s->b->on->upload(s->b->x, tokens, s->b->shape.hidden);
}

static void steps(rank *r, const float *tokens, int32_t first, int count, float *out) {
  const machine *on = r->b.on;
  int64_t numbers = count * r->b.shape.hidden;
  step s = {.b = &r->b, .first = first, .count = count};
  void *in = on->allocate((size_t)numbers * on->bytes);
  s.in = in;
  s.out = on->allocate((size_t)numbers * on->bytes);
  on->upload(in, tokens, numbers);
  start_at(&s, tokens);
  cudaGraphExec_t graph = capture(do_step, &s);
  start_at(&s, tokens);
  fail_here(r, FAIL_STEPS);
  replay(graph, count);
  on->download(out, s.out, numbers);
  CUDA(cudaGraphExecDestroy(graph));
  on->release(in);
  on->release(s.out);
}

const engine engine_cuda = {.open = open_rank,
                            .close = close_rank,
                            .write = write_bytes,
                            .read_floats = read_floats,
                            .time = time_work,
                            .steps = steps};
