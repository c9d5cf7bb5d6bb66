/* Streams and CUDA graphs: a run may be captured, also when it is the first of the process, reads what is there when
 * the graph is replayed, allocates nothing, synchronises nothing and gives the same bits every time. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "../problem.h"
#include "../ref/gemm_ref.h"
#include "../test.h"
#include "gpu.h"

static struct {
  lpgemm_handle_t packer; /* packs, and never runs anything */
  const char *kernel[PROBLEM_KERNELS];
  int kernels;
} all;

/* ---- a problem with a handle on a stream of its own ---- */

typedef struct rig {
  problem p;
  lpgemm_handle_t handle;
  cudaStream_t stream;
  void *workspace;
  size_t workspace_bytes;
} rig;

/* What the kernel takes; NULL: any. */
static problem_spec make_spec(const char *kernel) {
  problem_spec s = {.desc = {.size = sizeof s.desc}};
  s.desc.type = LPGEMM_UINT(4);
  s.desc.n = 75;
  s.desc.k = 330;
  s.desc.group_k = 64;
  s.desc.scale_type = LPGEMM_F16;
  s.desc.zero = LPGEMM_ZERO_PER_GROUP;
  s.desc.zero_type = LPGEMM_F16;
  s.m = 19;
  s.x_type = LPGEMM_F16;
  s.y_type = LPGEMM_F32;
  s.bias_type = LPGEMM_F16;
  s.activation = LPGEMM_ACTIVATION_RELU;
  s.alpha = -0.5f;
  s.beta = 1;
  s.pad_x = 3;
  s.pad_y = 2;
  if (kernel) problem_suit(&s, kernel);
  return s;
}

/* The weights are packed by another handle. */
static int open_rig(rig *r, const problem_spec *spec, const char *kernel) {
  memset(r, 0, sizeof *r);
  if (!problem_make(&r->p, all.packer, spec)) return 0;
  problem_expect(&r->p);
  r->p.args.kernel = kernel;
  r->handle = problem_handle(1);
  GPU(cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking));
  CHECK_STATUS(lpgemm_set_stream(r->handle, r->stream), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_workspace_size(r->handle, r->p.weights, spec->m, &r->p.args, &r->workspace_bytes),
               LPGEMM_SUCCESS);
  if (r->workspace_bytes) r->workspace = test_alloc(r->workspace_bytes);
  CHECK_STATUS(lpgemm_set_workspace(r->handle, r->workspace, r->workspace_bytes), LPGEMM_SUCCESS);
  return 1;
}

static void close_rig(rig *r) {
  test_wait();
  if (r->stream) GPU(cudaStreamDestroy(r->stream));
  test_free(r->workspace);
  problem_free(&r->p);
  CHECK_STATUS(lpgemm_destroy(r->handle), LPGEMM_SUCCESS);
}

/* Y and the workspace hold what no kernel may build on. */
static void poison(rig *r) {
  memset(r->p.y, 0xff, problem_y_bytes(&r->p));
  if (r->workspace) memset(r->workspace, 0xff, r->workspace_bytes);
}

static void change_x(problem *p) {
  for (int64_t i = 0; i < p->args.m; i++) {
    for (int64_t j = 0; j < p->spec.desc.k; j++) {
      ref_store(p->args.x_type, p->x, i * p->args.ldx + j, test_uniform(-1, 1));
    }
  }
  problem_expect(p);
}

/* ---- capturing ---- */

/* A graph that would allocate, or wait for the host, has other nodes than kernels and fills. */
static void check_nodes(cudaGraph_t graph) {
  cudaGraphNode_t nodes[64];
  size_t count = 0;
  GPU(cudaGraphGetNodes(graph, NULL, &count));
  CHECK(count > 0 && count <= 64);
  if (count > 64) return;
  GPU(cudaGraphGetNodes(graph, nodes, &count));
  for (size_t i = 0; i < count; i++) {
    enum cudaGraphNodeType type;
    GPU(cudaGraphNodeGetType(nodes[i], &type));
    CHECK(type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemset);
  }
}

/* What was captured since, or NULL if the work failed. */
static cudaGraphExec_t end_capture(cudaStream_t stream, lpgemm_status_t status) {
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  cudaError_t error = cudaStreamEndCapture(stream, &graph);
  CHECK_STATUS(status, LPGEMM_SUCCESS);
  if (error != cudaSuccess) {
    test_fail(__FILE__, __LINE__, "the capture is broken: %s", cudaGetErrorString(error));
    cudaGetLastError();
    return NULL;
  }
  if (status == LPGEMM_SUCCESS) {
    check_nodes(graph);
    GPU(cudaGraphInstantiate(&exec, graph, 0));
  }
  GPU(cudaGraphDestroy(graph));
  return exec;
}

/* In the mode that forbids every other call of this process that could wait or allocate. */
static cudaGraphExec_t capture(rig *r) {
  GPU(cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeGlobal));
  return end_capture(r->stream, lpgemm_run(r->handle, &r->p.args));
}

/* Two runs on the first one's stream. */
static cudaGraphExec_t capture_both(rig *a, rig *b) {
  CHECK_STATUS(lpgemm_set_stream(b->handle, a->stream), LPGEMM_SUCCESS);
  GPU(cudaStreamBeginCapture(a->stream, cudaStreamCaptureModeGlobal));
  lpgemm_status_t status = lpgemm_run(a->handle, &a->p.args);
  if (status == LPGEMM_SUCCESS) status = lpgemm_run(b->handle, &b->p.args);
  return end_capture(a->stream, status);
}

static void replay(cudaGraphExec_t exec, cudaStream_t stream) {
  GPU(cudaGraphLaunch(exec, stream));
  GPU(cudaStreamSynchronize(stream));
}

static void replay_and_check(rig *r, cudaGraphExec_t exec, const char *what) {
  poison(r);
  replay(exec, r->stream);
  problem_check(&r->p, what);
}

/* ---- the first run of the process ---- */

/* These cases come first, and each kernel has one: it has never run before. Weights come of packing or of a file. */
static void check_first(const problem_spec *spec, const char *kernel, int from_file) {
  rig r;
  if (open_rig(&r, spec, kernel)) {
    if (from_file) {
      lpgemm_weights_info_t info = {.size = sizeof info};
      CHECK_STATUS(lpgemm_weights_info(r.p.weights, &info), LPGEMM_SUCCESS);
      void *blob = test_alloc(info.packed_bytes);
      CHECK_STATUS(lpgemm_serialize(all.packer, r.p.weights, blob, info.packed_bytes), LPGEMM_SUCCESS);
      CHECK_STATUS(lpgemm_weights_destroy(r.p.weights), LPGEMM_SUCCESS);
      CHECK_STATUS(lpgemm_deserialize(all.packer, blob, info.packed_bytes, LPGEMM_LOAD_COPY, &r.p.weights),
                   LPGEMM_SUCCESS);
      r.p.args.weights = r.p.weights;
      test_free(blob);
    }
    cudaGraphExec_t exec = capture(&r);
    if (exec) {
      replay_and_check(&r, exec, kernel);
      GPU(cudaGraphExecDestroy(exec));
    }
  }
  close_rig(&r);
}

static cudaGraphExec_t capture_activations(rig *r, lpgemm_dtype_t type, void *codes, float *scale,
                                           lpgemm_x_scale_t mode) {
  const lpgemm_run_args_t *a = &r->p.args;
  GPU(cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeGlobal));
  return end_capture(r->stream, lpgemm_quantize_activations(r->handle, a->m, r->p.spec.desc.k, a->x, a->x_type, a->ldx,
                                                            type, codes, 0, scale, mode));
}

/* Replays against the direct call. */
static void check_activations(lpgemm_dtype_t type, lpgemm_x_scale_t mode) {
  problem_spec spec = make_spec(NULL);
  rig r;
  if (open_rig(&r, &spec, NULL)) {
    const lpgemm_run_args_t *a = &r.p.args;
    size_t bytes = (size_t)(a->m * spec.desc.k), scale_bytes = (size_t)a->m * sizeof(float);
    uint8_t *codes = test_alloc(bytes), *want = test_alloc(bytes);
    float *scale = test_alloc(scale_bytes), *want_scale = test_alloc(scale_bytes);
    cudaGraphExec_t exec = capture_activations(&r, type, codes, scale, mode);
    for (int i = 0; i < 3 && exec; i++) {
      memset(codes, 0xff, bytes);
      memset(scale, 0xff, scale_bytes);
      memset(want_scale, 0xff, scale_bytes);
      replay(exec, r.stream);
      CHECK_STATUS(lpgemm_quantize_activations(r.handle, a->m, spec.desc.k, a->x, a->x_type, a->ldx, type, want, 0,
                                               want_scale, mode),
                   LPGEMM_SUCCESS);
      test_wait();
      CHECK(memcmp(codes, want, bytes) == 0 && memcmp(scale, want_scale, scale_bytes) == 0);
      CHECK(scale[0] > 0);
      change_x(&r.p);
    }
    if (exec) GPU(cudaGraphExecDestroy(exec));
    test_free(codes);
    test_free(want);
    test_free(scale);
    test_free(want_scale);
  }
  close_rig(&r);
}

/* ---- replays ---- */

/* Stream-K: the graph raises its flags to the same number every time, so what is not lowered would let a later replay
 * add old sums. The workspace keeps what it holds. */
static void check_stream_k(void) {
  static const char kernel[] = "gemm.u4.f16.256x128.sm90a";
  problem_spec spec = {.desc = {.size = sizeof spec.desc}, .m = 330, .alpha = 1};
  spec.desc.type = LPGEMM_UINT(4);
  spec.desc.n = 8609;
  spec.desc.k = 2463;
  spec.desc.group_k = 128;
  spec.desc.scale_type = LPGEMM_F16;
  spec.x_type = spec.y_type = LPGEMM_F16;
  if (!problem_has_kernel(kernel)) {
    test_skip("%s is not in this build, or not for this GPU", kernel);
    return;
  }
  rig r;
  if (open_rig(&r, &spec, kernel)) {
    char text[1024];
    test_free(r.workspace);
    r.workspace_bytes = 64 << 20;
    r.workspace = test_alloc(r.workspace_bytes);
    memset(r.workspace, 0xff, r.workspace_bytes);
    CHECK_STATUS(lpgemm_set_workspace(r.handle, r.workspace, r.workspace_bytes), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_explain(r.handle, &r.p.args, text, sizeof text), LPGEMM_SUCCESS);
    CHECK(strstr(text, "stream-K"));
    cudaGraphExec_t exec = capture(&r);
    for (int i = 0; i < 3 && exec; i++) {
      memset(r.p.y, 0xff, problem_y_bytes(&r.p));
      replay(exec, r.stream);
      problem_check(&r.p, kernel);
      change_x(&r.p);
    }
    if (exec) GPU(cudaGraphExecDestroy(exec));
  }
  close_rig(&r);
}

/* X and the rest are read when the graph runs; without a change the bits are the same, as those of a direct call. */
static void check_replay(const problem_spec *spec, const char *kernel) {
  rig r;
  if (open_rig(&r, spec, kernel)) {
    cudaGraphExec_t exec = capture(&r);
    size_t bytes = problem_y_bytes(&r.p);
    void *before = test_alloc(bytes);
    for (int i = 0; i < 3 && exec; i++) {
      replay_and_check(&r, exec, kernel);
      memcpy(before, r.p.y, bytes);
      replay_and_check(&r, exec, kernel);
      CHECK(memcmp(before, r.p.y, bytes) == 0);
      poison(&r);
      CHECK_STATUS(lpgemm_run(r.handle, &r.p.args), LPGEMM_SUCCESS);
      test_wait();
      CHECK(memcmp(before, r.p.y, bytes) == 0);
      change_x(&r.p);
    }
    test_free(before);
    if (exec) GPU(cudaGraphExecDestroy(exec));
  }
  close_rig(&r);
}

/* Scalars in device memory are read when the work runs: what they forbid to read is NaN. */
static void check_device_scalars(const char *kernel) {
  static const float scalars[][2] = {{1, 0}, {-0.5f, 1}, {0, 1}, {0, 0}, {3, -0.5f}};
  problem_spec spec = make_spec(kernel);
  rig r;
  if (open_rig(&r, &spec, kernel)) {
    size_t c_bytes = (size_t)(((spec.m - 1) * r.p.args.ldc + spec.desc.n) * ref_bytes(spec.y_type));
    size_t x_bytes = (size_t)(((spec.m - 1) * r.p.args.ldx + spec.desc.k) * ref_bytes(spec.x_type));
    void *c = test_alloc(c_bytes), *x = test_alloc(x_bytes);
    memcpy(c, r.p.c, c_bytes);
    memcpy(x, r.p.x, x_bytes);
    float *alpha = test_alloc(sizeof *alpha), *beta = test_alloc(sizeof *beta);
    r.p.args.alpha = alpha;
    r.p.args.beta = beta;
    CHECK_STATUS(lpgemm_set_pointer_mode(r.handle, LPGEMM_POINTER_DEVICE), LPGEMM_SUCCESS);
    cudaGraphExec_t exec = capture(&r);
    for (int i = 0; i < 5 && exec; i++) {
      *alpha = scalars[i][0];
      *beta = scalars[i][1];
      memcpy(r.p.c, c, c_bytes);
      memcpy(r.p.x, x, x_bytes);
      problem_expect(&r.p);
      if (*beta == 0) memset(r.p.c, 0xff, c_bytes);
      if (*alpha == 0) memset(r.p.x, 0xff, x_bytes);
      replay_and_check(&r, exec, kernel);
    }
    if (exec) GPU(cudaGraphExecDestroy(exec));
    test_free(c);
    test_free(x);
    test_free(alpha);
    test_free(beta);
  }
  close_rig(&r);
}

/* Alpha is what the run before has written: a kernel that starts while that one ends must not read the 0 before it. */
static void check_chained_alpha(const char *kernel) {
  problem_spec first = make_spec(NULL), second = make_spec(kernel);
  first.y_type = LPGEMM_F32;
  first.alpha = 0.05f; /* outputs of the second stay small */
  first.beta = 0;
  second.desc.k = second.desc.k / 16 * 16; /* X as it is: a copy of it would lie between the two */
  second.pad_x = 0;
  rig a, b;
  int opened = open_rig(&a, &first, NULL), both = open_rig(&b, &second, kernel) && opened;
  float *beta = test_alloc(sizeof *beta);
  if (both) {
    *beta = second.beta;
    b.p.args.alpha = a.p.y;
    b.p.args.beta = beta;
    CHECK_STATUS(lpgemm_set_pointer_mode(b.handle, LPGEMM_POINTER_DEVICE), LPGEMM_SUCCESS);
    cudaGraphExec_t exec = capture_both(&a, &b);
    for (int i = 0; i < 3 && exec; i++) {
      poison(&a);
      replay_and_check(&a, exec, "what writes alpha");
      problem_expect(&b.p); /* by the alpha that is there now */
      poison(&b);
      poison(&a);
      memset(a.p.y, 0, sizeof(float));
      replay(exec, a.stream);
      problem_check(&b.p, kernel);
      change_x(&a.p);
    }
    if (exec) GPU(cudaGraphExecDestroy(exec));
  }
  close_rig(&a);
  close_rig(&b);
  test_free(beta);
}

/* Scalars on the host are read at the call: the graph keeps them. */
static void check_host_scalars(void) {
  problem_spec spec = make_spec(NULL);
  rig r;
  if (open_rig(&r, &spec, NULL)) {
    float alpha = spec.alpha, beta = spec.beta;
    r.p.args.alpha = &alpha;
    r.p.args.beta = &beta;
    cudaGraphExec_t exec = capture(&r);
    alpha = 7;
    beta = -7;
    if (exec) {
      replay_and_check(&r, exec, "host scalars");
      GPU(cudaGraphExecDestroy(exec));
    }
  }
  close_rig(&r);
}

/* A run that reads what the run before it in the same graph has written. */
static void check_chain(void) {
  problem_spec first = make_spec(NULL), second = make_spec(NULL);
  first.y_type = LPGEMM_F16;
  second.desc.k = first.desc.n;
  second.desc.n = 41;
  rig a, b;
  int opened = open_rig(&a, &first, NULL), both = open_rig(&b, &second, NULL) && opened;
  if (both) {
    b.p.args.x = a.p.y;
    b.p.args.ldx = a.p.args.ldy;
    cudaGraphExec_t exec = capture_both(&a, &b);
    for (int i = 0; i < 3 && exec; i++) {
      poison(&a);
      replay_and_check(&a, exec, "the first of two");
      problem_expect(&b.p); /* of the Y that is there now */
      poison(&b);
      poison(&a);
      replay(exec, a.stream);
      problem_check(&a.p, "the first of two, again");
      problem_check(&b.p, "the second of two");
      change_x(&a.p);
    }
    if (exec) GPU(cudaGraphExecDestroy(exec));
  }
  close_rig(&a);
  close_rig(&b);
}

/* A strided batch in place of cuBLAS's, captured, against the direct call. */
static void check_batch(void) {
  enum { BATCHES = 3 };
  problem_spec spec = make_spec(NULL);
  rig r;
  if (open_rig(&r, &spec, NULL)) {
    int m = (int)spec.desc.n, n = (int)spec.m, k = (int)spec.desc.k;
    size_t b_bytes = (size_t)(BATCHES * n * k) * 2, c_bytes = (size_t)(BATCHES * n * m) * 2;
    uint16_t *b = test_alloc(b_bytes), *c = test_alloc(c_bytes), *want = test_alloc(c_bytes);
    float *alpha = test_alloc(sizeof *alpha), *beta = test_alloc(sizeof *beta);
    CHECK_STATUS(lpgemm_set_pointer_mode(r.handle, LPGEMM_POINTER_DEVICE), LPGEMM_SUCCESS);
#define BATCHED(to)                                                                                                   \
  lpgemm_gemm_strided_batched_ex(r.handle, LPGEMM_OP_T, LPGEMM_OP_N, m, n, k, alpha, &r.p.weights, LPGEMM_CUDA_R_16F, \
                                 k, 0, b, LPGEMM_CUDA_R_16F, k, n *k, beta, to, LPGEMM_CUDA_R_16F, m, n *m, BATCHES,  \
                                 LPGEMM_COMPUTE_32F, 0)
    GPU(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeGlobal));
    cudaGraphExec_t exec = end_capture(r.stream, BATCHED(c));
    for (int i = 0; i < 3 && exec; i++) {
      *alpha = (float)(i + 1);
      *beta = (float)i;
      for (int j = 0; j < BATCHES * n * k; j++) ref_store(LPGEMM_F16, b, j, test_uniform(-1, 1));
      for (int j = 0; j < BATCHES * n * m; j++) ref_store(LPGEMM_F16, c, j, test_uniform(-1, 1));
      memcpy(want, c, c_bytes);
      replay(exec, r.stream);
      CHECK_STATUS(BATCHED(want), LPGEMM_SUCCESS);
      test_wait();
      CHECK(memcmp(c, want, c_bytes) == 0);
    }
#undef BATCHED
    if (exec) GPU(cudaGraphExecDestroy(exec));
    test_free(b);
    test_free(c);
    test_free(want);
    test_free(alpha);
    test_free(beta);
  }
  close_rig(&r);
}

/* ---- memory ---- */

static size_t free_memory(void) {
  size_t free_bytes = 0, total = 0;
  GPU(cudaMemGetInfo(&free_bytes, &total));
  return free_bytes;
}

/* Other programs may use the same GPU, so one try of a few without a change is enough: what a run kept would be missing
 * every time. */
static void check_memory(void) {
  enum { RUNS = 1000, TRIES = 5 };
  problem_spec spec = make_spec(NULL);
  spec.quantize_x = LPGEMM_I8;
  rig r;
  if (open_rig(&r, &spec, NULL)) {
    cudaGraphExec_t exec = capture(&r);
    if (exec) replay_and_check(&r, exec, "replayed");
    size_t before = 0, after = 1;
    for (int i = 0; i < TRIES && before != after && exec; i++) {
      before = free_memory();
      for (int j = 0; j < RUNS; j++) GPU(cudaGraphLaunch(exec, r.stream));
      for (int j = 0; j < RUNS; j++) CHECK_STATUS(lpgemm_run(r.handle, &r.p.args), LPGEMM_SUCCESS);
      test_wait();
      after = free_memory();
    }
    if (before != after) {
      test_fail(__FILE__, __LINE__, "%zu bytes were free before the last %d runs, %zu after", before, 2 * RUNS, after);
    }
    problem_check(&r.p, "after many runs");
    if (exec) GPU(cudaGraphExecDestroy(exec));
  }
  close_rig(&r);
}

/* ---- streams and threads ---- */

/* Work on a stream that waits until the host opens the gate and then brings X. */
typedef struct late_x {
  void *x;
  const void *bytes;
  size_t size;
  atomic_int open, waited_in_vain;
} late_x;

static void CUDART_CB load_x_box(void *context) {
  const struct timespec a_while = {.tv_nsec = 1000000};
  late_x *late = context;
  for (int i = 0; i < 5000 && !late->open; i++) nanosleep(&a_while, NULL);
  if (!late->open) late->waited_in_vain = 1;
  memcpy(late->x, late->bytes, late->size);
}

/* Runs on two streams, by one handle: each waits for what came before it on its own stream, the host for neither. */
static void check_streams(void) {
  problem_spec spec = make_spec(NULL);
  rig a, b;
  int opened = open_rig(&a, &spec, NULL), both = open_rig(&b, &spec, NULL) && opened;
  if (both) {
    late_x late = {.x = a.p.x};
    late.size = (size_t)(((spec.m - 1) * a.p.args.ldx + spec.desc.k) * ref_bytes(spec.x_type));
    void *bytes = test_alloc(late.size);
    memcpy(bytes, a.p.x, late.size);
    memset(a.p.x, 0xff, late.size); /* NaN until it is loaded */
    late.bytes = bytes;
    poison(&a);
    poison(&b);
    GPU(cudaLaunchHostFunc(a.stream, load_x_box, &late));
    CHECK_STATUS(lpgemm_run(a.handle, &a.p.args), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_set_stream(a.handle, b.stream), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_run(a.handle, &b.p.args), LPGEMM_SUCCESS);
    GPU(cudaStreamSynchronize(b.stream));
    problem_check(&b.p, "while the other stream waits");
    CHECK(cudaStreamQuery(a.stream) == cudaErrorNotReady);
    late.open = 1;
    GPU(cudaStreamSynchronize(a.stream));
    CHECK(!late.waited_in_vain);
    problem_check(&a.p, "after what it waited for");
    test_free(bytes);
  }
  close_rig(&a);
  close_rig(&b);
}

typedef struct worker {
  pthread_t thread;
  const problem *shared;
  const void *expected;
  size_t workspace_bytes;
  void *workspace, *y;
} worker;

/* A handle, a workspace, a stream and a graph of its own on weights that both share. */
static void *run_captured(void *context) {
  worker *w = context;
  size_t bytes = problem_y_bytes(w->shared);
  lpgemm_run_args_t args = w->shared->args;
  lpgemm_handle_t handle = problem_handle(1);
  cudaStream_t stream;
  args.y = w->y;
  CHECK_STATUS(lpgemm_set_workspace(handle, w->workspace, w->workspace_bytes), LPGEMM_SUCCESS);
  GPU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK_STATUS(lpgemm_set_stream(handle, stream), LPGEMM_SUCCESS);
  for (int i = 0; i < 20; i++) {
    GPU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    cudaGraphExec_t exec = end_capture(stream, lpgemm_run(handle, &args));
    for (int j = 0; j < 5 && exec; j++) {
      GPU(cudaMemsetAsync(w->y, 0xff, bytes, stream));
      replay(exec, stream);
      CHECK(memcmp(w->y, w->expected, bytes) == 0);
    }
    if (exec) GPU(cudaGraphExecDestroy(exec));
  }
  GPU(cudaStreamDestroy(stream));
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
  return NULL;
}

static void check_threads(void) {
  enum { WORKERS = 2 };
  problem_spec spec = make_spec(NULL);
  rig r;
  if (open_rig(&r, &spec, NULL)) {
    worker workers[WORKERS];
    poison(&r);
    CHECK_STATUS(lpgemm_run(r.handle, &r.p.args), LPGEMM_SUCCESS);
    test_wait();
    problem_check(&r.p, "alone");
    for (int i = 0; i < WORKERS; i++) {
      workers[i] = (worker){.shared = &r.p,
                            .expected = r.p.y,
                            .workspace_bytes = r.workspace_bytes,
                            .workspace = test_alloc(r.workspace_bytes),
                            .y = test_alloc(problem_y_bytes(&r.p))};
    }
    for (int i = 0; i < WORKERS; i++) {
      if (pthread_create(&workers[i].thread, NULL, run_captured, &workers[i]) != 0) abort();
    }
    for (int i = 0; i < WORKERS; i++) pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < WORKERS; i++) {
      test_free(workers[i].workspace);
      test_free(workers[i].y);
    }
  }
  close_rig(&r);
}

/* ---- the suite ---- */

static problem_spec quantized_spec(lpgemm_dtype_t x_type, lpgemm_dtype_t type, const char *kernel) {
  problem_spec spec = make_spec(kernel);
  spec.x_type = x_type;
  spec.quantize_x = type;
  return spec;
}

void suite_capture(void) {
  static const lpgemm_dtype_t quantized[] = {LPGEMM_I8, LPGEMM_E4M3};
  static const lpgemm_dtype_t real_types[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32};
  all.packer = problem_handle(1);
  all.kernels = problem_kernels(all.kernel);
  if (test_case("capture/first/quantize_x")) {
    problem_spec spec = quantized_spec(LPGEMM_F16, LPGEMM_I8, NULL);
    check_first(&spec, NULL, 0);
  }
  if (test_case("capture/first/quantize_tensor")) check_activations(LPGEMM_I8, LPGEMM_X_SCALE_TENSOR);
  for (int i = 0; i < all.kernels; i++) {
    if (!test_case("capture/first/%s", all.kernel[i])) continue;
    problem_spec spec = make_spec(all.kernel[i]);
    check_first(&spec, all.kernel[i], i % 2);
  }
  for (int i = 0; i < all.kernels; i++) {
    const char *kernel = all.kernel[i];
    problem_spec plain = make_spec(kernel), quantized_x = quantized_spec(LPGEMM_F16, LPGEMM_I8, kernel);
    if (test_case("capture/replay/%s", kernel)) check_replay(&plain, kernel);
    if (problem_takes_any_x(kernel) && test_case("capture/quantize_x/%s", kernel)) check_replay(&quantized_x, kernel);
    if (test_case("capture/scalars/%s", kernel)) check_device_scalars(kernel);
    if (test_case("capture/alpha/%s", kernel)) check_chained_alpha(kernel);
  }
  for (int i = 0; i < 6; i++) {
    lpgemm_dtype_t x_type = real_types[i % 3], type = quantized[i / 3];
    if (!test_case("capture/quantize_x/%s/%s", lpgemm_dtype_name(x_type), lpgemm_dtype_name(type))) continue;
    problem_spec spec = quantized_spec(x_type, type, NULL);
    check_replay(&spec, NULL);
  }
  for (int i = 0; i < 4; i++) {
    lpgemm_x_scale_t mode = i % 2 ? LPGEMM_X_SCALE_TENSOR : LPGEMM_X_SCALE_ROW;
    if (!test_case("capture/activations/%s/%s", lpgemm_dtype_name(quantized[i / 2]), i % 2 ? "tensor" : "row"))
      continue;
    check_activations(quantized[i / 2], mode);
  }
  if (test_case("capture/scalars/host")) check_host_scalars();
  if (test_case("capture/chain")) check_chain();
  if (test_case("capture/batch")) check_batch();
  if (test_case("capture/stream_k")) check_stream_k();
  if (test_case("capture/memory")) check_memory();
  if (test_case("capture/streams")) check_streams();
  if (test_case("capture/threads")) check_threads();
  CHECK_STATUS(lpgemm_destroy(all.packer), LPGEMM_SUCCESS);
}
