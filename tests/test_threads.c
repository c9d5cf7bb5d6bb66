/* Threads: of one handle, and several handles in several threads that share weights. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "problem.h"
#include "test.h"

enum { WORKERS = 6, ROUNDS = 8 };

/* ---- threads of a handle ---- */

static problem_spec make_spec(int64_t m, int64_t n, int64_t k, lpgemm_dtype_t type) {
  problem_spec s = {.desc = {.size = sizeof s.desc}};
  s.desc.type = type;
  s.desc.n = n;
  s.desc.k = k;
  s.desc.group_k = 64;
  s.desc.scale_type = LPGEMM_F16;
  s.desc.zero = LPGEMM_ZERO_PER_GROUP;
  s.desc.zero_type = LPGEMM_F16;
  s.m = m;
  s.x_type = LPGEMM_F16;
  s.y_type = LPGEMM_F32;
  s.bias_type = LPGEMM_F32;
  s.alpha = -0.5f;
  s.beta = 1;
  s.activation = LPGEMM_ACTIVATION_SILU;
  return s;
}

/* The bits do not depend on how many threads a handle has. */
static void check_counts(int64_t m, int64_t n, int64_t k, lpgemm_dtype_t type) {
  static const int threads[] = {1, 2, 3, 8};
  problem_spec s = make_spec(m, n, k, type);
  lpgemm_handle_t handles[4];
  for (int i = 0; i < 4; i++) handles[i] = problem_handle(threads[i]);
  const char *kernels[PROBLEM_KERNELS];
  int count = problem_kernels(kernels), compared = 0;
  problem p;
  if (problem_make(&p, handles[0], &s)) {
    problem_expect(&p);
    size_t bytes = problem_y_bytes(&p);
    void *first = test_alloc(bytes);
    for (int j = 0; j < count; j++) {
      lpgemm_status_t status = problem_run(&p, handles[0], kernels[j]);
      if (status == LPGEMM_NOT_SUPPORTED) continue;
      CHECK_STATUS(status, LPGEMM_SUCCESS);
      problem_check(&p, kernels[j]);
      memcpy(first, p.y, bytes);
      for (int i = 1; i < 4; i++) {
        CHECK_STATUS(problem_run(&p, handles[i], kernels[j]), LPGEMM_SUCCESS);
        if (memcmp(first, p.y, bytes) != 0) {
          test_fail(__FILE__, __LINE__, "%d threads give other bits than one: %s", threads[i],
                    problem_title(&p, kernels[j]));
        }
        compared++;
      }
    }
    CHECK(compared > 0);
    test_free(first);
  }
  problem_free(&p);
  for (int i = 0; i < 4; i++) CHECK_STATUS(lpgemm_destroy(handles[i]), LPGEMM_SUCCESS);
}

/* ---- handles in threads ---- */

typedef struct worker {
  pthread_t thread;
  int index;
  const problem *shared;
  const void *expected;
  void *y, *workspace;
  size_t y_bytes, workspace_bytes;
} worker;

static void run_workers(worker *workers, void *(*body)(void *)) {
  for (int i = 0; i < WORKERS; i++) {
    workers[i].index = i;
    if (pthread_create(&workers[i].thread, NULL, body, &workers[i]) != 0) abort();
  }
  for (int i = 0; i < WORKERS; i++) pthread_join(workers[i].thread, NULL);
}

/* A handle of its own on weights and operands that all share. */
static void *run_shared(void *context) {
  worker *w = context;
  lpgemm_handle_t handle = problem_handle(1 + w->index % 3);
  CHECK_STATUS(lpgemm_set_workspace(handle, w->workspace, w->workspace_bytes), LPGEMM_SUCCESS);
  for (int i = 0; i < ROUNDS; i++) {
    lpgemm_run_args_t args = w->shared->args;
    args.y = w->y;
    memset(w->y, 0xff, w->y_bytes);
    CHECK_STATUS(lpgemm_run(handle, &args), LPGEMM_SUCCESS);
    test_wait();
    CHECK(memcmp(w->y, w->expected, w->y_bytes) == 0);
  }
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
  return NULL;
}

static void check_shared(const char *kernel) {
  problem_spec s = make_spec(19, 70, 300, LPGEMM_UINT(4));
  problem_suit(&s, kernel);
  lpgemm_handle_t handle = problem_handle(1);
  problem p;
  if (problem_make(&p, handle, &s)) {
    worker workers[WORKERS];
    size_t bytes = problem_y_bytes(&p), workspace = 0;
    p.args.kernel = kernel;
    CHECK_STATUS(problem_run(&p, handle, kernel), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_workspace_size(handle, p.weights, s.m, &p.args, &workspace), LPGEMM_SUCCESS);
    for (int i = 0; i < WORKERS; i++) {
      workers[i] = (worker){.shared = &p, .expected = p.y, .y = test_alloc(bytes), .y_bytes = bytes};
      workers[i].workspace = workspace ? test_alloc(workspace) : NULL;
      workers[i].workspace_bytes = workspace;
    }
    run_workers(workers, run_shared);
    for (int i = 0; i < WORKERS; i++) {
      test_free(workers[i].y);
      test_free(workers[i].workspace);
    }
  }
  problem_free(&p);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}

/* Handles and weights come and go in all threads at once. */
static void *come_and_go(void *context) {
  const worker *w = context;
  enum { CODES = 16 * 32 };
  uint8_t *codes = test_alloc(CODES);
  float *x = test_alloc(32 * sizeof *x), *y = test_alloc(16 * sizeof *y);
  for (int i = 0; i < CODES; i++) codes[i] = (uint8_t)((i + w->index) % 4);
  for (int i = 0; i < 32; i++) x[i] = 1;
  lpgemm_weight_desc_t desc = {.size = sizeof desc};
  desc.n = 16;
  desc.k = 32;
  desc.type = LPGEMM_UINT(2);
  lpgemm_weight_source_t source = {.size = sizeof source};
  source.codes = codes;
  source.codes_bytes = CODES;
  for (int i = 0; i < 4 * ROUNDS; i++) {
    lpgemm_handle_t handle = problem_handle(1 + i % 2);
    lpgemm_weights_t weights = NULL;
    CHECK_STATUS(lpgemm_pack_weights(handle, &desc, &source, NULL, 0, &weights), LPGEMM_SUCCESS);
    lpgemm_run_args_t args = {.size = sizeof args};
    args.weights = weights;
    args.m = 1;
    args.x = x;
    args.y = y;
    args.x_type = args.y_type = LPGEMM_F32;
    CHECK_STATUS(lpgemm_run(handle, &args), LPGEMM_SUCCESS);
    test_wait();
    for (int j = 0; j < 16; j++) CHECK(y[j] == 8 * (0 + 1 + 2 + 3));
    CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_INVALID_HANDLE);
  }
  test_free(codes);
  test_free(x);
  test_free(y);
  return NULL;
}

/* Every thread sees its own sentence, also after the others have failed. */
static void *fail_alone(void *context) {
  const worker *w = context;
  char number[16];
  snprintf(number, sizeof number, "-%d", 1000 + w->index);
  CHECK(strcmp(lpgemm_last_error(), "") == 0);
  for (int i = 0; i < 100; i++) {
    lpgemm_weight_desc_t desc = {.size = sizeof desc};
    desc.type = LPGEMM_UINT(4);
    desc.n = -(1000 + w->index);
    size_t bytes;
    CHECK_STATUS(lpgemm_packed_size(&desc, &bytes), LPGEMM_INVALID_SIZE);
    CHECK(strstr(lpgemm_last_error(), number) != NULL);
  }
  return NULL;
}

static void check_last_error(void) {
  worker workers[WORKERS] = {{.index = 0}};
  lpgemm_dtype_t type;
  CHECK_STATUS(lpgemm_dtype_parse("no such type", &type), LPGEMM_INVALID_TYPE);
  char before[512];
  snprintf(before, sizeof before, "%s", lpgemm_last_error());
  CHECK(strstr(before, "no such type") != NULL);
  run_workers(workers, fail_alone);
  CHECK(strcmp(before, lpgemm_last_error()) == 0);
}

/* The child of a fork() has none of the handle's threads: to destroy it must not wait for them. */
static void check_fork(void) {
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .num_threads = 4};
  lpgemm_handle_t handle = NULL;
  CHECK_STATUS(lpgemm_create(&handle, &config), LPGEMM_SUCCESS);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit((int)lpgemm_destroy(handle));
  }
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_INT(status, 0);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}

void suite_threads(void) {
  static const struct {
    int64_t m, n, k;
    lpgemm_dtype_t type;
  } shapes[] = {{1, 100, 500, LPGEMM_UINT(4)},    {1, 3, 2000, LPGEMM_UINT(2)},       {200, 7, 130, LPGEMM_INT(3)},
                {65, 200, 96, LPGEMM_BIPOLAR(1)}, {17, 129, 257, LPGEMM_FLOAT(3, 2)}, {4, 1000, 40, LPGEMM_INT(8)}};
  for (int i = 0; i < 6; i++) {
    if (test_case("threads/counts/%lldx%lldx%lld/%s", (long long)shapes[i].m, (long long)shapes[i].n,
                  (long long)shapes[i].k, lpgemm_dtype_name(shapes[i].type))) {
      check_counts(shapes[i].m, shapes[i].n, shapes[i].k, shapes[i].type);
    }
  }
  const char *kernels[PROBLEM_KERNELS];
  int count = problem_kernels(kernels);
  for (int i = 0; i < count; i++) {
    if (test_case("threads/shared/%s", kernels[i])) check_shared(kernels[i]);
  }
  if (test_case("threads/come_and_go")) {
    worker workers[WORKERS] = {{.index = 0}};
    run_workers(workers, come_and_go);
  }
  if (test_case("threads/last_error")) check_last_error();
  if (test_case("threads/fork")) check_fork();
}
