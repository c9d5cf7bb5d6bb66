#include "graph_timer.h"

enum { PROBES = 3, MAX_REPLAYS = 9, MAX_LAUNCHES = 4096 };

typedef struct effort {
  double graph_us, warm_seconds;
  int warm_replays, replays;
  double enough_us; /* no graph of what takes longer */
} effort;

typedef struct timer {
  cudaStream_t stream;
  cudaEvent_t start, stop;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  size_t nodes;
} timer;

static bench_error elapsed(timer *t, double *us) {
  float ms;
  BENCH_CUDA(cudaEventSynchronize(t->stop));
  BENCH_CUDA(cudaEventElapsedTime(&ms, t->start, t->stop));
  *us = (double)ms * 1e3;
  return NULL;
}

/* About how long a launch takes: the least of a few after one that is not counted. */
static bench_error probe(timer *t, bench_launch launch, void *context, double *us) {
  double once = 0;
  for (int64_t i = 0; i <= PROBES; i++) {
    BENCH_CUDA(cudaEventRecord(t->start, t->stream));
    BENCH_TRY(launch(context, i));
    BENCH_CUDA(cudaEventRecord(t->stop, t->stream));
    BENCH_TRY(elapsed(t, &once));
    if (i == 1 || (i > 1 && once < *us)) *us = once;
  }
  return NULL;
}

static int64_t choose_launches(double us, int64_t rotation, double graph_us) {
  int64_t launches = us < graph_us ? (int64_t)(graph_us / us) : 1;
  if (launches > rotation) launches = launches / rotation * rotation;
  return launches < MAX_LAUNCHES ? launches : MAX_LAUNCHES;
}

/* In this mode a launch that allocates or synchronises makes the capture fail. */
static bench_error capture(timer *t, bench_launch launch, void *context, int64_t launches) {
  bench_error error = NULL;
  BENCH_CUDA(cudaStreamBeginCapture(t->stream, cudaStreamCaptureModeThreadLocal));
  for (int64_t i = 0; i < launches && !error; i++) error = launch(context, i);
  cudaError_t ended = cudaStreamEndCapture(t->stream, &t->graph);
  if (error) return error;
  BENCH_CHECK(ended == cudaSuccess, "the launches cannot be captured: %s", cudaGetErrorString(ended));
  BENCH_CUDA(cudaGraphGetNodes(t->graph, NULL, &t->nodes));
  BENCH_CUDA(cudaGraphInstantiateWithFlags(&t->exec, t->graph, 0));
  BENCH_CUDA(cudaGraphUpload(t->exec, t->stream));
  return NULL;
}

static bench_error replay(timer *t, double *us) {
  BENCH_CUDA(cudaEventRecord(t->start, t->stream));
  BENCH_CUDA(cudaGraphLaunch(t->exec, t->stream));
  BENCH_CUDA(cudaEventRecord(t->stop, t->stream));
  return elapsed(t, us);
}

static bench_error measure(timer *t, bench_launch launch, void *context, int64_t rotation, const effort *effort,
                           bench_time *time) {
  double us[MAX_REPLAYS], once = 0;
  BENCH_CUDA(cudaEventCreate(&t->start));
  BENCH_CUDA(cudaEventCreate(&t->stop));
  BENCH_TRY(probe(t, launch, context, &once));
  if (once > effort->enough_us) {
    *time = (bench_time){once, once, once, 1, 1, 0};
    return NULL;
  }
  int64_t launches = choose_launches(once, rotation, effort->graph_us);
  BENCH_TRY(capture(t, launch, context, launches));
  double warm = bench_now();
  for (int i = 0; i < effort->warm_replays || bench_now() - warm < effort->warm_seconds; i++)
    BENCH_TRY(replay(t, &once));
  for (int i = 0; i < effort->replays; i++) {
    BENCH_TRY(replay(t, &us[i]));
    us[i] /= (double)launches;
  }
  double median = bench_median(us, effort->replays);
  *time = (bench_time){median,          us[0],    us[effort->replays - 1],
                       effort->replays, launches, (double)t->nodes / (double)launches};
  return NULL;
}

static bench_error time_with(cudaStream_t stream, bench_launch launch, void *context, int64_t rotation,
                             const effort *effort, bench_time *time) {
  timer t = {.stream = stream};
  bench_error error = measure(&t, launch, context, rotation, effort, time);
  if (t.exec) cudaGraphExecDestroy(t.exec);
  if (t.graph) cudaGraphDestroy(t.graph);
  if (t.stop) cudaEventDestroy(t.stop);
  if (t.start) cudaEventDestroy(t.start);
  return error;
}

bench_error bench_graph_time(cudaStream_t stream, bench_launch launch, void *context, int64_t rotation,
                             bench_time *time) {
  static const effort usual = {10000, 0.03, 2, MAX_REPLAYS, 1e30};
  return time_with(stream, launch, context, rotation, &usual, time);
}

bench_error bench_graph_time_quickly(cudaStream_t stream, bench_launch launch, void *context, int64_t rotation,
                                     double enough_us, bench_time *time) {
  const effort quick = {2000, 0.002, 1, 5, enough_us};
  return time_with(stream, launch, context, rotation, &quick, time);
}
