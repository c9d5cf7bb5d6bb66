/* What LPGEMM_LOG and lpgemm_set_log() make the library print, and to whom. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

void suite_log(void);

enum { N = 32, K = 64, M = 3 };

static char printed[65536];

/* Makes calls under a value of LPGEMM_LOG, and keeps what comes out of stderr. */
static void run_logged(const char *value, void (*calls)(void)) {
  lpgemm_handle_t handle = NULL;
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU};
  FILE *file = tmpfile();
  CHECK(file != NULL);
  if (!file) return;
  int own = dup(STDERR_FILENO);
  fflush(stderr);
  dup2(fileno(file), STDERR_FILENO);
  setenv("LPGEMM_LOG", value, 1);
  calls();
  setenv("LPGEMM_LOG", "off", 1); /* the level is the process's */
  CHECK_STATUS(lpgemm_create(&handle, &config), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
  unsetenv("LPGEMM_LOG");
  fflush(stderr);
  dup2(own, STDERR_FILENO);
  close(own);
  rewind(file);
  printed[fread(printed, 1, sizeof printed - 1, file)] = 0;
  fclose(file);
}

/* A product twice, and one that fails. */
static void multiply(void) {
  static const float w[N * K], x[M * K];
  static float y[M * N];
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .default_type = LPGEMM_F32};
  lpgemm_weight_desc_t desc = {.size = sizeof desc, .n = N, .k = K, .type = LPGEMM_UINT(4), .group_k = 32};
  lpgemm_handle_t handle = NULL;
  lpgemm_weights_t weights = NULL;
  desc.scale_type = LPGEMM_F16;
  CHECK_STATUS(lpgemm_create(&handle, &config), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_quantize_weights(handle, &desc, LPGEMM_QUANTIZE_ABSMAX, w, LPGEMM_F32, 0, NULL, 0, &weights),
               LPGEMM_SUCCESS);
  for (int i = 0; i < 2; i++) {
    CHECK_STATUS(lpgemm_matmul(handle, weights, M, x, 0, y, 0), LPGEMM_SUCCESS);
  }
  CHECK_STATUS(lpgemm_matmul(handle, weights, -1, x, 0, y, 0), LPGEMM_INVALID_SIZE);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}

static void create_wrongly(void) {
  lpgemm_handle_t handle = NULL;
  lpgemm_config_t config = {.size = sizeof config, .num_threads = -1};
  CHECK_STATUS(lpgemm_create(&handle, &config), LPGEMM_INVALID_ARGUMENT);
}

/* ---- a callback ---- */

/* What a sink got. Threads that are in it wait for `open`, if there is one. Several are in it at once: a sink that has
 * room for the last line is for one. */
typedef struct sink {
  atomic_int calls, inside, level[4];
  atomic_int *open;
  char *last;
} sink;

enum { LINE_BYTES = 1024 };

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL); }

static void take(void *context, lpgemm_log_level_t level, const char *line) {
  sink *s = context;
  atomic_fetch_add(&s->inside, 1);
  while (s->open && !atomic_load(s->open)) nap();
  if (s->last) snprintf(s->last, LINE_BYTES, "%s", line);
  atomic_fetch_add(&s->calls, 1);
  atomic_fetch_add(&s->level[level], 1);
  atomic_fetch_sub(&s->inside, 1);
}

static void fail_once(void) { CHECK_STATUS(lpgemm_packed_size(NULL, NULL), LPGEMM_NULL_POINTER); }

/* Calls the library, which fails: no line may come of that, and the sentence is the caller's own. */
static void take_and_call(void *context, lpgemm_log_level_t level, const char *line) {
  take(context, level, line);
  CHECK(strstr(lpgemm_last_error(), "NULL") != NULL);
  fail_once();
  CHECK_STATUS(lpgemm_set_log(LPGEMM_LOG_OFF, NULL, NULL), LPGEMM_INVALID_ARGUMENT);
}

static void set_and_multiply(void) {
  static char last[LINE_BYTES];
  static sink s = {.last = last};
  CHECK_STATUS(lpgemm_set_log(LPGEMM_LOG_DISPATCH, take, &s), LPGEMM_SUCCESS);
  unsetenv("LPGEMM_LOG"); /* it would set the level again */
  multiply();
  CHECK_INT(s.level[LPGEMM_LOG_DISPATCH], 2);
  CHECK_INT(s.level[LPGEMM_LOG_ERROR], 1);
  CHECK_INT(s.calls, 3);
  CHECK(strstr(last, "m is -1") && !strstr(last, "lpgemm: ") && !strchr(last, '\n'));
  setenv("LPGEMM_LOG", "off", 1);
  multiply();
  CHECK_INT(s.calls, 3); /* the variable has the last word about the level */
  CHECK_STATUS(lpgemm_set_log(LPGEMM_LOG_OFF, NULL, NULL), LPGEMM_SUCCESS);
}

static void call_inside(void) {
  static sink s;
  CHECK_STATUS(lpgemm_set_log(LPGEMM_LOG_ERROR, take_and_call, &s), LPGEMM_SUCCESS);
  fail_once();
  fail_once();
  CHECK_INT(s.calls, 2);
  CHECK_STATUS(lpgemm_set_log(LPGEMM_LOG_ERROR, NULL, NULL), LPGEMM_SUCCESS);
  fail_once(); /* to stderr */
}

/* ---- threads ---- */

enum { THREADS = 4, FAILURES = 200 };

static void *fail_in_thread(void *context) {
  for (int i = 0; i < *(int *)context; i++) fail_once();
  return NULL;
}

static void start(pthread_t threads[THREADS], int *failures) {
  for (int i = 0; i < THREADS; i++) {
    if (pthread_create(&threads[i], NULL, fail_in_thread, failures) != 0) abort();
  }
}

static void join(pthread_t threads[THREADS]) {
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

/* All threads are in the sink at once: none waits for another. */
static void meet(void) {
  static sink s;
  static atomic_int open;
  pthread_t threads[THREADS];
  int failures = 1, waited = 0;
  s.open = &open;
  CHECK_STATUS(lpgemm_set_log(LPGEMM_LOG_ERROR, take, &s), LPGEMM_SUCCESS);
  start(threads, &failures);
  while (atomic_load(&s.inside) < THREADS && waited++ < 100000) nap();
  CHECK_INT(s.inside, THREADS);
  atomic_store(&open, 1);
  join(threads);
  CHECK_INT(s.calls, THREADS);
  CHECK_STATUS(lpgemm_set_log(LPGEMM_LOG_OFF, NULL, NULL), LPGEMM_SUCCESS);
}

/* Sinks change while threads log: each line goes to one of them, and to none after it was replaced. */
static void change(void) {
  static sink sinks[2];
  pthread_t threads[THREADS];
  int failures = FAILURES, late = 0;
  CHECK_STATUS(lpgemm_set_log(LPGEMM_LOG_ERROR, take, &sinks[0]), LPGEMM_SUCCESS);
  start(threads, &failures);
  for (int i = 1; i <= FAILURES; i++) {
    CHECK_STATUS(lpgemm_set_log(LPGEMM_LOG_ERROR, take, &sinks[i % 2]), LPGEMM_SUCCESS);
    const sink *before = &sinks[(i + 1) % 2];
    const int calls = before->calls;
    late += before->inside != 0;
    nap();
    late += before->calls != calls;
  }
  join(threads);
  CHECK_STATUS(lpgemm_set_log(LPGEMM_LOG_OFF, NULL, NULL), LPGEMM_SUCCESS);
  CHECK_INT(late, 0);
  CHECK_INT(sinks[0].calls + sinks[1].calls, THREADS * FAILURES);
}

static void refuse(void) {
  CHECK_STATUS(lpgemm_set_log((lpgemm_log_level_t)4, NULL, NULL), LPGEMM_INVALID_ARGUMENT);
  CHECK(strstr(lpgemm_last_error(), "level is 4") != NULL);
  CHECK_STATUS(lpgemm_set_log((lpgemm_log_level_t)-1, NULL, NULL), LPGEMM_INVALID_ARGUMENT);
  CHECK_STATUS(lpgemm_set_log(LPGEMM_LOG_ERROR, NULL, printed), LPGEMM_NULL_POINTER);
}

static int count(const char *part) {
  int found = 0;
  for (const char *at = printed; (at = strstr(at, part)); at++) found++;
  return found;
}

void suite_log(void) {
  if (test_case("log/off")) {
    run_logged("off", multiply);
    CHECK_INT(strlen(printed), 0);
  }
  if (test_case("log/error")) {
    run_logged("error", multiply);
    CHECK_INT(count("\n"), 1);
    CHECK_INT(count("m is -1"), 1);
  }
  if (test_case("log/dispatch")) {
    run_logged("dispatch", multiply);
    CHECK_INT(count("lpgemm: u4 (n 32, k 64) by f32 (m 3) to f32: "), 2);
    CHECK_INT(count(" thread"), 2); /* the plan */
    CHECK_INT(count("m is -1"), 1);
    CHECK_INT(count("profile,"), 0);
  }
  if (test_case("log/config")) { /* the environment is read before the config is checked */
    run_logged("error", create_wrongly);
    CHECK_INT(count("config.num_threads is -1"), 1);
  }
  if (test_case("log/profile")) {
    run_logged("profile", multiply); /* the first lines may be the head */
    CHECK_INT(count("lpgemm: profile,u4,32,f32,f32,32,64,3,"), 2);
    CHECK_INT(count("m is -1"), 1);
    CHECK_INT(count("by the cost model"), 0);
    char kernel[64];
    long long us = -1, fraction = -1;
    const char *line = strstr(printed, "lpgemm: profile,u4");
    CHECK(line &&
          sscanf(line, "lpgemm: profile,u4,32,f32,f32,32,64,3,%63[^,],%lld.%3lld\n", kernel, &us, &fraction) == 3);
    CHECK(us >= 0 && us < 1000000 && fraction >= 0);
    int heads = count("lpgemm: profile,weights,group,x,y,n,k,m,kernel,us\n");
    run_logged("profile", multiply);
    CHECK_INT(heads + count("lpgemm: profile,weights,"), 1); /* once a process */
  }
  if (test_case("log/callback")) {
    run_logged("off", set_and_multiply);
    CHECK_INT(strlen(printed), 0);
  }
  if (test_case("log/callback/calls")) {
    run_logged("off", call_inside);
    CHECK_INT(count("\n"), 1);
  }
  if (test_case("log/callback/threads")) {
    run_logged("off", meet);
    run_logged("off", change);
    CHECK_INT(strlen(printed), 0);
  }
  if (test_case("log/callback/refused")) run_logged("off", refuse);
}
