/* What a device supports is the same with a handle and without one. */
#include <pthread.h>

#include "problem.h"
#include "test.h"

void suite_supports(void);

enum { PROBLEMS = 400, THREADS = 4 };

typedef struct question {
  lpgemm_weight_desc_t desc;
  lpgemm_dtype_t x_type, y_type;
  int64_t m;
} question;

static lpgemm_dtype_t pick(const lpgemm_dtype_t *types, int count) { return types[test_between(0, count - 1)]; }

/* Any problem, most of them legal; 0 stands for the config's type. */
static question draw(void) {
  static const lpgemm_dtype_t scales[] = {0, LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32, LPGEMM_E8M0, LPGEMM_E4M3, LPGEMM_I8};
  static const lpgemm_dtype_t xs[] = {0, LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32, LPGEMM_I8, LPGEMM_E4M3, LPGEMM_UINT(4)};
  static const lpgemm_dtype_t ys[] = {0, LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32, LPGEMM_I32, LPGEMM_U8};
  question q = {.desc = {.size = sizeof q.desc, .n = test_between(0, 600), .k = test_between(0, 600)}};
  q.desc.type = pick(problem_types(), PROBLEM_TYPES);
  q.desc.group_k = 16 * test_between(0, 4);
  q.desc.scale_type = pick(scales, sizeof scales / sizeof scales[0]);
  q.desc.zero = test_between(0, 3) ? LPGEMM_ZERO_NONE : LPGEMM_ZERO_CONSTANT;
  q.desc.zero_constant = q.desc.zero ? (float)test_between(0, 9) : 0.0f;
  q.x_type = pick(xs, sizeof xs / sizeof xs[0]);
  q.y_type = pick(ys, sizeof ys / sizeof ys[0]);
  q.m = test_between(-1, 300);
  return q;
}

static lpgemm_config_t config_of(lpgemm_dtype_t type) {
  lpgemm_config_t config = {.size = sizeof config, .backend = test_backend(), .default_type = type};
  return config;
}

/* Fails the case unless both give one status and one sentence; returns whether it is supported. */
static int ask(lpgemm_handle_t handle, const lpgemm_config_t *config, const question *q) {
  char sentence[640];
  const lpgemm_status_t want = lpgemm_supports(handle, &q->desc, q->x_type, q->y_type, q->m);
  snprintf(sentence, sizeof sentence, "%s", lpgemm_last_error());
  (void)lpgemm_run(NULL, NULL); /* another sentence */
  CHECK_STATUS(lpgemm_device_supports(config, &q->desc, q->x_type, q->y_type, q->m), want);
  if (want != LPGEMM_SUCCESS) CHECK(strcmp(sentence, lpgemm_last_error()) == 0);
  return want == LPGEMM_SUCCESS;
}

static void agree(lpgemm_dtype_t type, const char *kernel) {
  const lpgemm_config_t config = config_of(type);
  lpgemm_handle_t handle = NULL;
  int supported = 0;
  if (kernel) setenv("LPGEMM_KERNEL", kernel, 1);
  CHECK_STATUS(lpgemm_create(&handle, &config), LPGEMM_SUCCESS);
  for (int i = 0; i < PROBLEMS; i++) {
    const question q = draw();
    supported += ask(handle, &config, &q);
  }
  unsetenv("LPGEMM_KERNEL");
  CHECK(supported > 0 && supported < PROBLEMS);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}

static void *ask_in_thread(void *context) {
  const lpgemm_config_t config = config_of(LPGEMM_F16);
  const question *q = context;
  int64_t supported = 0;
  for (int i = 0; i < PROBLEMS; i++) {
    supported += lpgemm_device_supports(&config, &q->desc, q->x_type, q->y_type, q->m) == LPGEMM_SUCCESS;
  }
  return (void *)(intptr_t)supported;
}

void suite_supports(void) {
  if (test_case("supports/agreement")) agree(LPGEMM_F16, NULL);
  if (test_case("supports/default_type")) agree(LPGEMM_F32, NULL);
  if (test_case("supports/forced")) { /* the last resort, which takes some of what is drawn */
    const char *names[PROBLEM_KERNELS];
    const int count = problem_kernels(names);
    CHECK(count > 0);
    if (count > 0) agree(LPGEMM_F16, names[count - 1]);
  }
  if (test_case("supports/defaults")) {
    question q = {.desc = {.size = sizeof q.desc, .n = 64, .k = 64, .type = LPGEMM_UINT(4)}, .m = 1};
    CHECK_STATUS(lpgemm_device_supports(NULL, &q.desc, 0, 0, 1), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_device_supports(NULL, &q.desc, 0, LPGEMM_U8, 1), LPGEMM_INVALID_TYPE);
  }
  if (test_case("supports/threads")) { /* many ask at once, without a handle */
    question q = {.desc = {.size = sizeof q.desc, .n = 64, .k = 64, .type = LPGEMM_UINT(4)}, .m = 1};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
      if (pthread_create(&threads[i], NULL, ask_in_thread, &q) != 0) abort();
    }
    for (int i = 0; i < THREADS; i++) {
      void *supported = NULL;
      pthread_join(threads[i], &supported);
      CHECK_INT((intptr_t)supported, PROBLEMS);
    }
  }
}
