#include "graph_timer.h"

#include "clock.h"
#include "nvml.h"

enum { PROBES = 3, MAX_REPLAYS = 9, MAX_LAUNCHES = 4096, EVENTS = 3, MAX_PROGRAMS = 2 };
static const double usual_graph_us = 10000;

typedef struct effort {
  double graph_us, warm_seconds;
  int warm_replays, replays;
  double enough_us; /* no graph of what takes longer */
} effort;

typedef struct timer {
  cudaStream_t stream;
  cudaEvent_t event[EVENTS];
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  int64_t launches; /* in the graph */
  size_t nodes;
  bench_readings readings;
} timer;

static bench_error make_events(timer *t) {
  for (int i = 0; i < EVENTS; i++) BENCH_CUDA(cudaEventCreate(&t->event[i]));
  return NULL;
}

static void free_timer(timer *t) {
  if (t->exec) cudaGraphExecDestroy(t->exec);
  if (t->graph) cudaGraphDestroy(t->graph);
  for (int i = 0; i < EVENTS; i++) {
    if (t->event[i]) cudaEventDestroy(t->event[i]);
  }
}

/* Waits for the second event. */
static bench_error elapsed(cudaEvent_t start, cudaEvent_t stop, double *us) {
  float ms;
  BENCH_CUDA(cudaEventSynchronize(stop));
  BENCH_CUDA(cudaEventElapsedTime(&ms, start, stop));
  *us = (double)ms * 1e3;
  return NULL;
}

/* About how long a launch takes: the least of a few after one that is not counted. */
static bench_error probe(timer *t, bench_launch launch, void *context, double *us) {
  double once = 0;
  for (int64_t i = 0; i <= PROBES; i++) {
    BENCH_CUDA(cudaEventRecord(t->event[0], t->stream));
    BENCH_TRY(launch(context, i));
    BENCH_CUDA(cudaEventRecord(t->event[1], t->stream));
    BENCH_TRY(elapsed(t->event[0], t->event[1], &once));
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
  t->launches = launches;
  BENCH_CUDA(cudaGraphGetNodes(t->graph, NULL, &t->nodes));
  BENCH_CUDA(cudaGraphInstantiateWithFlags(&t->exec, t->graph, 0));
  BENCH_CUDA(cudaGraphUpload(t->exec, t->stream));
  return NULL;
}

static double nodes_of(const timer *t) { return (double)t->nodes / (double)t->launches; }
static double mhz_of(const bench_readings *r) { return r->clocks ? r->mhz / r->clocks : 0; }
static double watts_of(const bench_readings *r) { return r->powers ? r->watts / r->powers : 0; }

/* ---- bursts ---- */

/* The clock is read while the GPU is busy. */
static bench_error replay(timer *t, double *us) {
  BENCH_CUDA(cudaEventRecord(t->event[0], t->stream));
  BENCH_CUDA(cudaGraphLaunch(t->exec, t->stream));
  BENCH_CUDA(cudaEventRecord(t->event[1], t->stream));
  bench_nvml_read(&t->readings);
  return elapsed(t->event[0], t->event[1], us);
}

static bench_error measure(timer *t, bench_launch launch, void *context, int64_t rotation, const effort *effort,
                           bench_time *time) {
  double us[MAX_REPLAYS], once = 0;
  BENCH_TRY(make_events(t));
  BENCH_TRY(probe(t, launch, context, &once));
  if (once > effort->enough_us) {
    *time = (bench_time){once, once, once, 1, 1, 0};
    return NULL;
  }
  BENCH_TRY(capture(t, launch, context, choose_launches(once, rotation, effort->graph_us)));
  double warm = bench_now();
  for (int i = 0; i < effort->warm_replays || bench_now() - warm < effort->warm_seconds; i++)
    BENCH_TRY(replay(t, &once));
  t->readings = (bench_readings){0};
  for (int i = 0; i < effort->replays; i++) {
    BENCH_TRY(replay(t, &us[i]));
    us[i] /= (double)t->launches;
  }
  double median = bench_median(us, effort->replays);
  *time = (bench_time){median,      us[0],       us[effort->replays - 1], effort->replays,
                       t->launches, nodes_of(t), mhz_of(&t->readings),    watts_of(&t->readings)};
  return NULL;
}

static bench_error time_with(cudaStream_t stream, bench_launch launch, void *context, int64_t rotation,
                             const effort *effort, bench_time *time) {
  timer t = {.stream = stream};
  bench_error error = measure(&t, launch, context, rotation, effort, time);
  free_timer(&t);
  return error;
}

bench_error bench_graph_time(cudaStream_t stream, bench_launch launch, void *context, int64_t rotation,
                             bench_time *time) {
  const effort usual = {usual_graph_us, 0.03, 2, MAX_REPLAYS, 1e30};
  return time_with(stream, launch, context, rotation, &usual, time);
}

bench_error bench_graph_time_quickly(cudaStream_t stream, bench_launch launch, void *context, int64_t rotation,
                                     double enough_us, bench_time *time) {
  const effort quick = {2000, 0.002, 1, 5, enough_us};
  return time_with(stream, launch, context, rotation, &quick, time);
}

/* ---- at the clock of sustained work ---- */

static bench_error prepare(timer *t, const bench_program *p) {
  double once = 0;
  BENCH_TRY(make_events(t));
  BENCH_TRY(probe(t, p->launch, p->context, &once));
  return capture(t, p->launch, p->context, choose_launches(once, p->rotation, usual_graph_us));
}

/* Replay number i, from 1 on; event i is its end. */
static bench_error enqueue(timer *t, int64_t i) {
  BENCH_CUDA(cudaGraphLaunch(t->exec, t->stream));
  BENCH_CUDA(cudaEventRecord(t->event[i % EVENTS], t->stream));
  return NULL;
}

/* Replay i runs. The next one is put behind it, so that the GPU never waits; then the clock is read. */
static bench_error finish_replay(timer *t, int64_t i, double *us) {
  BENCH_TRY(enqueue(t, i + 1));
  bench_nvml_read(&t->readings);
  return elapsed(t->event[(i - 1) % EVENTS], t->event[i % EVENTS], us);
}

static bench_error run_window(timer *t, int64_t first, bench_window *window) {
  double us = 0, sum = 0;
  int replays = 0;
  t->readings = (bench_readings){0};
  while (sum < BENCH_WINDOW_SECONDS * 1e6) {
    BENCH_TRY(finish_replay(t, first + replays, &us));
    sum += us;
    replays++;
  }
  *window = (bench_window){sum * 1e-6, sum / (double)(replays * t->launches), mhz_of(&t->readings),
                           watts_of(&t->readings), replays};
  return NULL;
}

/* One replay more than is counted is in the stream at the end. */
static bench_error run_turn(timer *t, bench_turn *turn) {
  bench_window window;
  int64_t next = 1;
  BENCH_CUDA(cudaEventRecord(t->event[0], t->stream));
  BENCH_TRY(enqueue(t, next));
  while (!bench_turn_over(turn)) {
    BENCH_TRY(run_window(t, next, &window));
    bench_add_window(turn, &window);
    next += window.replays;
  }
  BENCH_CUDA(cudaStreamSynchronize(t->stream));
  return NULL;
}

static bench_error take_turns(timer *t, const bench_program *program, int programs, double turn_seconds,
                              bench_time *time) {
  bench_turn turn[MAX_PROGRAMS][BENCH_ROUNDS];
  for (int p = 0; p < programs; p++) BENCH_TRY(prepare(&t[p], &program[p]));
  for (int round = 0; round < BENCH_ROUNDS; round++) {
    for (int p = 0; p < programs; p++) {
      turn[p][round] = (bench_turn){.most_seconds = turn_seconds};
      BENCH_TRY(run_turn(&t[p], &turn[p][round]));
    }
  }
  for (int p = 0; p < programs; p++) {
    time[p] = bench_time_of_turns(turn[p]);
    time[p].launches = t[p].launches;
    time[p].nodes = nodes_of(&t[p]);
  }
  return NULL;
}

bench_error bench_graph_time_sustained(cudaStream_t stream, const bench_program *program, int programs,
                                       double turn_seconds, bench_time *time) {
  timer t[MAX_PROGRAMS] = {{.stream = stream}, {.stream = stream}};
  bench_error error = take_turns(t, program, programs, turn_seconds, time);
  for (int p = 0; p < programs; p++) free_timer(&t[p]);
  return error;
}
