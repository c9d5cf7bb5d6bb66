/* Threads of the caller's: config.parallel_for, by lenders of every kind; and other numbers of threads. */
#include <pthread.h>
#include <stdatomic.h>

#include "problem.h"
#include "test.h"

enum { N = 2000, K = 512 };

static lpgemm_handle_t lent_handle(int threads, lpgemm_parallel_for_t lender, void *context) {
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .num_threads = threads};
  lpgemm_handle_t handle = NULL;
  config.parallel_for = lender;
  config.parallel_context = context;
  CHECK_STATUS(lpgemm_create(&handle, &config), LPGEMM_SUCCESS);
  return handle;
}

/* ---- lenders that do what they must; context: NULL, or what counts their calls ---- */

static void count_call(void *context) {
  if (context) atomic_fetch_add((atomic_int *)context, 1);
}

static void in_turn(void *context, lpgemm_task_t task, void *work, int64_t count) {
  count_call(context);
  for (int64_t i = 0; i < count; i++) task(work, i);
}

static void backwards(void *context, lpgemm_task_t task, void *work, int64_t count) {
  count_call(context);
  for (int64_t i = count; i-- > 0;) task(work, i);
}

typedef struct one_task {
  pthread_t thread;
  lpgemm_task_t task;
  void *work;
  int64_t i;
} one_task;

static void *run_one(void *context) {
  const one_task *t = context;
  t->task(t->work, t->i);
  return NULL;
}

enum { MOST_TASKS = 64 };
static void all_at_once(void *context, lpgemm_task_t task, void *work, int64_t count) {
  one_task tasks[MOST_TASKS];
  count_call(context);
  if (count > MOST_TASKS) abort();
  for (int64_t i = 0; i < count; i++) {
    tasks[i] = (one_task){.task = task, .work = work, .i = i};
    if (pthread_create(&tasks[i].thread, NULL, run_one, &tasks[i]) != 0) abort();
  }
  for (int64_t i = 0; i < count; i++) pthread_join(tasks[i].thread, NULL);
}

/* ---- a pool that nests: who waits for a loop does tasks of any loop ---- */

enum { CREW = 3, QUEUE = 1024 };
typedef struct crew {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  pthread_t threads[CREW];
  struct {
    lpgemm_task_t task;
    void *work;
    int64_t i, *left;
  } queue[QUEUE];
  int queued, stop;
} crew;

/* Does one task; 0 if there is none. Under the lock. */
static int crew_step(crew *c) {
  if (c->queued == 0) return 0;
  const int last = --c->queued;
  const lpgemm_task_t task = c->queue[last].task;
  void *work = c->queue[last].work;
  const int64_t i = c->queue[last].i;
  int64_t *left = c->queue[last].left;
  pthread_mutex_unlock(&c->lock);
  task(work, i);
  pthread_mutex_lock(&c->lock);
  --*left;
  pthread_cond_broadcast(&c->changed);
  return 1;
}

static void *crew_main(void *context) {
  crew *c = context;
  pthread_mutex_lock(&c->lock);
  while (!c->stop) {
    if (!crew_step(c)) pthread_cond_wait(&c->changed, &c->lock);
  }
  pthread_mutex_unlock(&c->lock);
  return NULL;
}

static void by_crew(void *context, lpgemm_task_t task, void *work, int64_t count) {
  crew *c = context;
  int64_t left = count;
  pthread_mutex_lock(&c->lock);
  for (int64_t i = 0; i < count; i++) {
    if (c->queued == QUEUE) abort();
    c->queue[c->queued].task = task;
    c->queue[c->queued].work = work;
    c->queue[c->queued].i = i;
    c->queue[c->queued++].left = &left;
  }
  pthread_cond_broadcast(&c->changed);
  while (left > 0) {
    if (!crew_step(c)) pthread_cond_wait(&c->changed, &c->lock);
  }
  pthread_mutex_unlock(&c->lock);
}

static void crew_start(crew *c) {
  memset(c, 0, sizeof *c);
  pthread_mutex_init(&c->lock, NULL);
  pthread_cond_init(&c->changed, NULL);
  for (int i = 0; i < CREW; i++) {
    if (pthread_create(&c->threads[i], NULL, crew_main, c) != 0) abort();
  }
}

static void crew_stop(crew *c) {
  pthread_mutex_lock(&c->lock);
  c->stop = 1;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
  for (int i = 0; i < CREW; i++) pthread_join(c->threads[i], NULL);
  pthread_cond_destroy(&c->changed);
  pthread_mutex_destroy(&c->lock);
}

/* ---- results ---- */

static problem_spec make_spec(int64_t m, int64_t n, int64_t k, lpgemm_dtype_t type) {
  problem_spec s = {.desc = {.size = sizeof s.desc, .type = type, .n = n, .k = k, .group_k = 64}};
  s.desc.scale_type = LPGEMM_F16;
  s.m = m;
  s.x_type = LPGEMM_F16;
  s.y_type = LPGEMM_F32;
  s.alpha = 1;
  return s;
}

/* The bits of all kernels are those of one thread, whoever lends how many, and after the number was changed. */
static void check_bits(int64_t m, int64_t n, int64_t k, lpgemm_dtype_t type, int is_ordered) {
  static crew pool;
  problem_spec s = make_spec(m, n, k, type);
  atomic_int calls;
  atomic_init(&calls, 0);
  crew_start(&pool);
  if (is_ordered) s.desc.columns = LPGEMM_COLUMNS_ORDERED;
  lpgemm_handle_t one = problem_handle(1);
  lpgemm_handle_t others[] = {lent_handle(3, in_turn, &calls),     lent_handle(5, backwards, &calls),
                              lent_handle(9, all_at_once, &calls), lent_handle(4, by_crew, &pool),
                              lent_handle(1, all_at_once, &calls), problem_handle(2)};
  enum { OTHERS = sizeof others / sizeof others[0] };
  CHECK_STATUS(lpgemm_set_num_threads(others[4], 6), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_set_num_threads(others[5], 3), LPGEMM_SUCCESS);
  const char *kernels[PROBLEM_KERNELS];
  const int count = problem_kernels(kernels);
  problem p;
  if (is_ordered ? problem_make_drawn(&p, others[3], &s) : problem_make(&p, others[3], &s)) {
    problem_expect(&p);
    const size_t bytes = problem_y_bytes(&p);
    void *first = test_alloc(bytes);
    for (int j = 0; j < count; j++) {
      const lpgemm_status_t status = problem_run(&p, one, kernels[j]);
      if (status == LPGEMM_NOT_SUPPORTED) continue;
      CHECK_STATUS(status, LPGEMM_SUCCESS);
      problem_check(&p, kernels[j]);
      memcpy(first, p.y, bytes);
      for (int i = 0; i < OTHERS; i++) {
        CHECK_STATUS(problem_run(&p, others[i], kernels[j]), LPGEMM_SUCCESS);
        if (memcmp(first, p.y, bytes) != 0)
          test_fail(__FILE__, __LINE__, "handle %d gives other bits: %s", i, problem_title(&p, kernels[j]));
      }
    }
    CHECK(atomic_load(&calls) > 0);
    test_free(first);
  }
  problem_free(&p);
  CHECK_STATUS(lpgemm_destroy(one), LPGEMM_SUCCESS);
  for (int i = 0; i < OTHERS; i++) CHECK_STATUS(lpgemm_destroy(others[i]), LPGEMM_SUCCESS);
  crew_stop(&pool);
}

/* ---- one matrix, for the rest ---- */

typedef struct matrix {
  uint8_t *codes;
  float *x, *y, *want;
  lpgemm_weights_t weights;
} matrix;

static lpgemm_status_t pack(const matrix *t, lpgemm_handle_t handle, lpgemm_weights_t *weights) {
  lpgemm_weight_desc_t desc = {.size = sizeof desc, .type = LPGEMM_UINT(4), .n = N, .k = K};
  lpgemm_weight_source_t source = {.size = sizeof source, .codes = t->codes, .codes_bytes = (size_t)N * K};
  return lpgemm_pack_weights(handle, &desc, &source, NULL, 0, weights);
}

static lpgemm_status_t multiply(const matrix *t, lpgemm_handle_t handle, float *y) {
  lpgemm_run_args_t args = {.size = sizeof args, .weights = t->weights, .m = 1, .x = t->x, .y = y};
  args.x_type = args.y_type = LPGEMM_F32;
  args.kernel = "reference.any.any.1x1.cpu";
  memset(y, 0xff, N * sizeof *y);
  return lpgemm_run(handle, &args);
}

static int same(const matrix *t, const float *y) { return memcmp(t->want, y, N * sizeof *y) == 0; }

static void matrix_make(matrix *t) {
  lpgemm_handle_t handle = problem_handle(1);
  t->codes = test_alloc((size_t)N * K);
  t->x = test_alloc(K * sizeof *t->x);
  t->y = test_alloc(N * sizeof *t->y);
  t->want = test_alloc(N * sizeof *t->want);
  for (int64_t i = 0; i < (int64_t)N * K; i++) t->codes[i] = (uint8_t)(test_random() % 16);
  for (int i = 0; i < K; i++) t->x[i] = (float)test_between(-8, 8);
  CHECK_STATUS(pack(t, handle, &t->weights), LPGEMM_SUCCESS);
  CHECK_STATUS(multiply(t, handle, t->want), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}

static void matrix_free(matrix *t) {
  CHECK_STATUS(lpgemm_weights_destroy(t->weights), LPGEMM_SUCCESS);
  test_free(t->codes);
  test_free(t->x);
  test_free(t->y);
  test_free(t->want);
}

/* ---- lenders that do not ---- */

enum { SKIP_ONE, SKIP_ALL, TWICE, NO_SUCH, NEGATIVE, EARLY, FAULTS };

typedef struct fault {
  int kind;
  int is_on;
  pthread_t late;
  one_task task;
  atomic_int go;
} fault;

static void *run_late(void *context) {
  fault *f = context;
  while (!atomic_load(&f->go)) continue;
  return run_one(&f->task);
}

static void faulty(void *context, lpgemm_task_t task, void *work, int64_t count) {
  fault *f = context;
  const int64_t spared = f->is_on && (f->kind == SKIP_ONE || f->kind == EARLY) ? count - 1 : -1;
  if (f->is_on && f->kind == SKIP_ALL) return;
  for (int64_t i = 0; i < count; i++) {
    if (i != spared) task(work, i);
  }
  if (!f->is_on) return;
  if (f->kind == TWICE) task(work, 0);
  if (f->kind == NO_SUCH) task(work, count + 1000);
  if (f->kind == NEGATIVE) task(work, -1);
  if (f->kind == EARLY) {
    f->task = (one_task){.task = task, .work = work, .i = spared};
    if (pthread_create(&f->late, NULL, run_late, f) != 0) abort();
  }
}

/* Every call that works on the pool says so, and the next good one is right. */
static void check_fault(int kind) {
  fault f = {.is_on = 0};
  matrix t;
  f.kind = kind;
  atomic_init(&f.go, 0);
  matrix_make(&t);
  lpgemm_handle_t handle = lent_handle(3, faulty, &f);
  lpgemm_weights_t weights = NULL;
  const char *const says =
      kind == TWICE || kind == NO_SUCH || kind == NEGATIVE ? "1 tasks more than" : "not been begun";
  f.is_on = 1;
  CHECK_STATUS(multiply(&t, handle, t.y), LPGEMM_INVALID_ARGUMENT);
  CHECK(strstr(lpgemm_last_error(), "config.parallel_for") && strstr(lpgemm_last_error(), says));
  if (kind == EARLY) { /* too late: the task must touch nothing */
    atomic_store(&f.go, 1);
    pthread_join(f.late, NULL);
  } else {
    CHECK_STATUS(pack(&t, handle, &weights), LPGEMM_INVALID_ARGUMENT);
    CHECK(weights == NULL);
  }
  f.is_on = 0;
  CHECK_STATUS(multiply(&t, handle, t.y), LPGEMM_SUCCESS);
  CHECK(same(&t, t.y));
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
  matrix_free(&t);
}

/* A call with the handle that waits. */
typedef struct inner {
  const matrix *matrix;
  lpgemm_handle_t handle;
  lpgemm_status_t status;
} inner;

static void calls_again(void *context, lpgemm_task_t task, void *work, int64_t count) {
  static float y[N];
  inner *in = context;
  in->status = multiply(in->matrix, in->handle, y);
  in_turn(NULL, task, work, count);
}

static void check_again(void) {
  matrix t;
  matrix_make(&t);
  inner in = {.matrix = &t};
  in.handle = lent_handle(2, calls_again, &in);
  CHECK_STATUS(multiply(&t, in.handle, t.y), LPGEMM_SUCCESS);
  CHECK_STATUS(in.status, LPGEMM_INVALID_HANDLE);
  CHECK(same(&t, t.y));
  CHECK_STATUS(lpgemm_destroy(in.handle), LPGEMM_SUCCESS);
  matrix_free(&t);
}

/* ---- one crew for a loop over handles and for their own loops ---- */

enum { LOOPS = 12 };
typedef struct nest {
  const matrix *matrix;
  crew *pool;
  float *y[LOOPS];
} nest;

static void run_nested(void *context, int64_t i) {
  const nest *n = context;
  lpgemm_handle_t handle = lent_handle(4, by_crew, n->pool);
  for (int round = 0; round < 3; round++) CHECK_STATUS(multiply(n->matrix, handle, n->y[i]), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}

static void check_nested(void) {
  static crew pool;
  matrix t;
  matrix_make(&t);
  nest n = {.matrix = &t, .pool = &pool};
  for (int i = 0; i < LOOPS; i++) n.y[i] = test_alloc(N * sizeof(float));
  crew_start(&pool);
  by_crew(&pool, run_nested, &n, LOOPS);
  crew_stop(&pool);
  for (int i = 0; i < LOOPS; i++) {
    CHECK(same(&t, n.y[i]));
    test_free(n.y[i]);
  }
  matrix_free(&t);
}

/* ---- packing and importing ---- */

static uint64_t hash_of(lpgemm_weights_t weights) {
  lpgemm_weights_info_t info = {.size = sizeof info};
  CHECK_STATUS(lpgemm_weights_info(weights, &info), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  return info.payload_hash;
}

static lpgemm_status_t import(const matrix *t, lpgemm_handle_t handle, lpgemm_weights_t *weights) {
  static const float scale = 0.5f;
  const lpgemm_tensor_t tensors[] = {
      {.name = "weight", .type = LPGEMM_I8, .dims = 2, .shape = {N, K}, .data = t->codes, .bytes = (size_t)N * K},
      {.name = "weight_scale", .type = LPGEMM_F32, .dims = 1, .shape = {1}, .data = &scale, .bytes = sizeof scale}};
  lpgemm_import_t part = {.size = sizeof part, .format = LPGEMM_FORMAT_INT8_FP8, .tensors = tensors, .count = 2};
  return lpgemm_import_weights(handle, &part, 1, NULL, 0, weights);
}

static void check_packing(void) {
  matrix t;
  matrix_make(&t);
  atomic_int calls;
  atomic_init(&calls, 0);
  fault skip = {.kind = SKIP_ONE, .is_on = 1};
  lpgemm_handle_t handle = lent_handle(5, all_at_once, &calls), one = problem_handle(1);
  lpgemm_handle_t skipping = lent_handle(5, faulty, &skip);
  lpgemm_weights_t weights = NULL, other = NULL;
  CHECK_STATUS(pack(&t, handle, &weights), LPGEMM_SUCCESS);
  CHECK(hash_of(weights) == hash_of(t.weights));
  CHECK_INT(atomic_load(&calls), 1);
  CHECK_STATUS(import(&t, handle, &weights), LPGEMM_SUCCESS);
  CHECK_STATUS(import(&t, one, &other), LPGEMM_SUCCESS);
  CHECK(hash_of(weights) == hash_of(other));
  CHECK_INT(atomic_load(&calls), 2);
  CHECK_STATUS(import(&t, skipping, &weights), LPGEMM_INVALID_ARGUMENT);
  t.codes[N * K - 1] = 16;
  CHECK_STATUS(pack(&t, handle, &weights), LPGEMM_INVALID_CODE);
  t.codes[N * K - 1] = 0;
  CHECK_STATUS(pack(&t, handle, &t.weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_destroy(skipping), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_destroy(one), LPGEMM_SUCCESS);
  matrix_free(&t);
}

/* ---- the number of threads ---- */

/* The first kernel in the text of lpgemm_explain(). */
static void chosen(lpgemm_handle_t handle, const matrix *t, char *line, size_t bytes) {
  lpgemm_run_args_t args = {.size = sizeof args, .weights = t->weights, .m = 1, .x = t->x, .y = t->y};
  args.x_type = args.y_type = LPGEMM_F32;
  CHECK_STATUS(lpgemm_explain(handle, &args, line, bytes), LPGEMM_SUCCESS);
  line[strcspn(line, "\n")] = 0;
}

static void check_number(void) {
  static char before[4096], after[4096];
  matrix t;
  matrix_make(&t);
  lpgemm_handle_t handle = problem_handle(2);
  const int64_t rows = 1;
  CHECK_STATUS(lpgemm_set_num_threads(handle, -1), LPGEMM_INVALID_ARGUMENT);
  CHECK_STATUS(lpgemm_set_num_threads(handle, 1025), LPGEMM_INVALID_ARGUMENT);
  CHECK_STATUS(lpgemm_set_num_threads(NULL, 1), LPGEMM_NULL_POINTER);
  lpgemm_autotune_options_t options = {.size = sizeof options, .seconds = 10};
  lpgemm_run_args_t types = {.size = sizeof types, .x_type = LPGEMM_F32, .y_type = LPGEMM_F32};
  options.args = &types;
  CHECK_STATUS(lpgemm_autotune(handle, t.weights, &rows, 1, &options), LPGEMM_SUCCESS);
  chosen(handle, &t, before, sizeof before);
  CHECK(strstr(before, "measured") || strstr(before, "tun"));
  static const int numbers[] = {1, 0, 3, 3, 2};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    CHECK_STATUS(lpgemm_set_num_threads(handle, numbers[i]), LPGEMM_SUCCESS);
    CHECK_STATUS(multiply(&t, handle, t.y), LPGEMM_SUCCESS);
    CHECK(same(&t, t.y));
    chosen(handle, &t, after, sizeof after);
    if (numbers[i] == 1 || numbers[i] == 3) CHECK(!strstr(after, "measured") && !strstr(after, "tun"));
  }
  CHECK(strcmp(before, after) == 0); /* two again: what was measured with two */
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
  matrix_free(&t);
}

void suite_threads_lent(void) {
  static const struct {
    int64_t m, n, k;
    lpgemm_dtype_t type;
  } shapes[] = {{1, 100, 500, LPGEMM_UINT(4)},
                {3, 300, 300, LPGEMM_UINT(2)},
                {40, 130, 200, LPGEMM_INT(3)},
                {17, 129, 257, LPGEMM_FLOAT(3, 2)}};
  for (int i = 0; i < 8; i++) {
    const int s = i % 4, is_ordered = i / 4;
    if (test_case("threads_lent/bits/%lldx%lldx%lld/%s%s", (long long)shapes[s].m, (long long)shapes[s].n,
                  (long long)shapes[s].k, lpgemm_dtype_name(shapes[s].type), is_ordered ? "/drawn" : "")) {
      check_bits(shapes[s].m, shapes[s].n, shapes[s].k, shapes[s].type, is_ordered);
    }
  }
  static const char *const faults[FAULTS] = {"skip_one", "skip_all", "twice", "no_such", "negative", "early"};
  for (int i = 0; i < FAULTS; i++) {
    if (test_case("threads_lent/fault/%s", faults[i])) check_fault(i);
  }
  if (test_case("threads_lent/again")) check_again();
  if (test_case("threads_lent/nested")) check_nested();
  if (test_case("threads_lent/packing")) check_packing();
  if (test_case("threads_lent/number")) check_number();
}
