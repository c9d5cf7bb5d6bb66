/* Slices of rows of W: n_begin and n_end. */
#include <pthread.h>

#include "problem.h"
#include "ref/gemm_ref.h"
#include "test.h"

enum { THREADS = 2, SLICES = 4, PLAIN = 0, TWO_LEVELS, SHARED_ROWS, INTEGERS, QUANTISED, IN_PLACE, CASES };

static problem_spec make_spec(int which) {
  static const int64_t rows[] = {131, 80, 200, 33, 97, 64};
  problem_spec s = {.desc = {.size = sizeof s.desc, .type = LPGEMM_UINT(4), .n = rows[which], .k = 300}};
  s.desc.group_k = 64;
  s.desc.scale_type = LPGEMM_F16;
  s.m = which == QUANTISED ? 2 : 5;
  s.x_type = which == IN_PLACE ? LPGEMM_F16 : LPGEMM_F32;
  s.y_type = which == QUANTISED ? LPGEMM_BF16 : LPGEMM_F32;
  s.alpha = 1;
  s.pad_y = 3;
  if (which == PLAIN) {
    s.desc.zero = LPGEMM_ZERO_PER_GROUP;
    s.desc.zero_type = LPGEMM_F16;
    s.bias_type = LPGEMM_F16;
    s.beta = 1;
    s.pad_c = 5;
    s.activation = LPGEMM_ACTIVATION_SILU;
  }
  if (which == TWO_LEVELS) {
    s.desc.group_k = 32;
    s.desc.super_k = 256;
    s.desc.scale_type = LPGEMM_UINT(6);
    s.desc.super_scale_type = LPGEMM_F16;
    s.desc.zero = LPGEMM_ZERO_MINIMUM;
    s.desc.zero_type = LPGEMM_UINT(4);
    s.desc.super_zero_type = LPGEMM_F16;
  }
  if (which == SHARED_ROWS) s.desc.group_n = 48;
  if (which == INTEGERS) {
    s.desc.scale_type = 0;
    s.desc.group_k = 0;
    s.x_type = LPGEMM_I8;
    s.y_type = LPGEMM_I32;
  }
  if (which == QUANTISED) s.quantize_x = LPGEMM_I8;
  if (which == IN_PLACE) {
    s.in_place = 1;
    s.beta = -0.5f;
    s.pad_y = 0;
  }
  return s;
}

typedef struct slice {
  pthread_t thread;
  const problem *shared;
  const char *kernel;
  int64_t begin, end;
  lpgemm_status_t status;
} slice;

static void *run_slice(void *context) {
  slice *s = context;
  /* The automatic choice depends on the number of threads. */
  lpgemm_handle_t handle = problem_handle(s->kernel ? 1 + (int)(s->begin / 16) % 2 : THREADS);
  lpgemm_run_args_t args = s->shared->args;
  size_t bytes = 0;
  args.kernel = s->kernel;
  args.n_begin = s->begin;
  args.n_end = s->end;
  if (s->shared->spec.in_place) args.c = args.y;
  CHECK_STATUS(lpgemm_workspace_size(handle, args.weights, args.m, &args, &bytes), LPGEMM_SUCCESS);
  void *workspace = bytes ? test_alloc(bytes) : NULL;
  CHECK_STATUS(lpgemm_set_workspace(handle, workspace, bytes), LPGEMM_SUCCESS);
  s->status = lpgemm_run(handle, &args);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
  test_free(workspace);
  return NULL;
}

/* Fails the case unless the columns begin .. end of Y are the expected ones, and all others what they were. */
static void check_columns(const problem *p, const char *kernel, int64_t begin, int64_t end, const char *whole,
                          const char *before) {
  const size_t size = (size_t)ref_bytes(p->args.y_type), bytes = problem_y_bytes(p);
  const int64_t ld = p->args.ldy ? p->args.ldy : p->spec.desc.n;
  for (size_t i = 0; i < bytes; i++) {
    const int64_t n = (int64_t)(i / size) % ld;
    const char want = n >= begin && n < end ? whole[i] : before[i];
    if (((const char *)p->y)[i] == want) continue;
    test_fail(__FILE__, __LINE__, "rows %lld .. %lld: column %lld of row %lld is wrong: %s", (long long)begin,
              (long long)end, (long long)n, (long long)((int64_t)(i / size) / ld), problem_title(p, kernel));
    return;
  }
}

/* Four threads with a slice each, one of them empty; then one slice alone. */
static int check_kernel(problem *p, lpgemm_handle_t handle, const char *kernel) {
  const lpgemm_weight_desc_t *d = &p->spec.desc;
  const int64_t unit = d->group_n ? d->group_n : 16, n = d->n;
  const int64_t at[SLICES + 1] = {0, unit, unit, n / unit * unit, n};
  const size_t bytes = problem_y_bytes(p);
  const lpgemm_status_t status = problem_run(p, handle, kernel);
  if (status == LPGEMM_NOT_SUPPORTED) return 0;
  CHECK_STATUS(status, LPGEMM_SUCCESS);
  problem_check(p, kernel);
  char *whole = test_alloc(bytes), *before = test_alloc(bytes);
  memcpy(whole, p->y, bytes);
  memset(before, 0xff, bytes);
  if (p->spec.in_place) memcpy(before, p->c, bytes);
  memcpy(p->y, before, bytes);
  slice slices[SLICES];
  for (int i = 0; i < SLICES; i++) {
    slices[i] = (slice){.shared = p, .kernel = kernel, .begin = at[i], .end = at[i + 1]};
    if (pthread_create(&slices[i].thread, NULL, run_slice, &slices[i]) != 0) abort();
  }
  for (int i = 0; i < SLICES; i++) {
    pthread_join(slices[i].thread, NULL);
    CHECK_STATUS(slices[i].status, LPGEMM_SUCCESS);
  }
  check_columns(p, kernel, 0, n, whole, before);
  memcpy(p->y, before, bytes);
  slice alone = {.shared = p, .kernel = kernel, .begin = unit, .end = n};
  run_slice(&alone);
  CHECK_STATUS(alone.status, LPGEMM_SUCCESS);
  check_columns(p, kernel, unit, n, whole, before);
  test_free(whole);
  test_free(before);
  return 1;
}

static void check_slices(int which, int drawn) {
  problem_spec s = make_spec(which);
  lpgemm_handle_t handle = problem_handle(THREADS);
  const char *kernels[PROBLEM_KERNELS];
  const int count = problem_kernels(kernels);
  int compared = 0;
  problem p;
  if (drawn ? problem_make_drawn(&p, handle, &s) : problem_make(&p, handle, &s)) {
    problem_expect(&p);
    for (int i = 0; i < count; i++) compared += check_kernel(&p, handle, kernels[i]);
    compared += check_kernel(&p, handle, NULL);
  }
  CHECK(compared > 1);
  problem_free(&p);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}

/* The same prepared X for every slice. */
static void check_prepared(void) {
  problem_spec s = make_spec(PLAIN);
  lpgemm_handle_t handle = problem_handle(THREADS);
  problem p;
  size_t bytes = 0;
  if (problem_make(&p, handle, &s)) {
    CHECK_STATUS(lpgemm_prepared_x_size(handle, &p.args, &bytes), LPGEMM_SUCCESS);
    void *prepared = test_alloc(bytes);
    CHECK_STATUS(lpgemm_prepare_x(handle, &p.args, prepared, bytes), LPGEMM_SUCCESS);
    p.args.prepared_x = prepared;
    p.args.prepared_x_bytes = bytes;
    problem_expect(&p);
    CHECK_INT(check_kernel(&p, handle, NULL), 1);
    test_free(prepared);
  }
  problem_free(&p);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}

/* What is no slice. On the GPU nothing is but the whole. */
static void check_refusals(void) {
  problem_spec s = make_spec(SHARED_ROWS);
  lpgemm_handle_t handle = problem_handle(1);
  problem p;
  if (problem_make(&p, handle, &s)) {
    static const struct {
      int64_t begin, end;
      lpgemm_status_t status;
      const char *says;
    } rows[] = {{0, 200, LPGEMM_SUCCESS, ""},
                {16, 96, LPGEMM_INVALID_SIZE, "n_begin is 16; it must be a multiple of 48"},
                {48, 64, LPGEMM_INVALID_SIZE, "n_end is 64; it must be a multiple of 48"},
                {48, 0, LPGEMM_INVALID_SIZE, "n_begin is 48 and n_end 0"},
                {96, 48, LPGEMM_INVALID_SIZE, "within 0 .. n = 200"},
                {0, 201, LPGEMM_INVALID_SIZE, "within 0 .. n = 200"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
      p.args.n_begin = rows[i].begin;
      p.args.n_end = rows[i].end;
      CHECK_STATUS(lpgemm_run(handle, &p.args), rows[i].status);
      if (rows[i].status != LPGEMM_SUCCESS) CHECK(strstr(lpgemm_last_error(), rows[i].says) != NULL);
    }
    if (test_backend() == LPGEMM_BACKEND_CUDA) {
      p.args.n_begin = 48;
      p.args.n_end = 96;
      CHECK_STATUS(lpgemm_run(handle, &p.args), LPGEMM_NOT_SUPPORTED);
      CHECK(strstr(lpgemm_last_error(), "only the CPU backend") != NULL);
    }
    test_wait();
  }
  problem_free(&p);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}

void suite_threads_slices(void) {
  static const char *const names[CASES] = {"plain", "two_levels", "shared_rows", "integers", "quantised", "in_place"};
  for (int i = 0; i < CASES && test_backend() == LPGEMM_BACKEND_CPU; i++) {
    if (test_case("threads_slices/%s", names[i])) check_slices(i, 0);
    for (int j = 0; j < 3; j++) {
      if (test_case("threads_slices/%s/drawn%d", names[i], j)) check_slices(i, 1);
    }
  }
  if (test_backend() == LPGEMM_BACKEND_CPU && test_case("threads_slices/prepared")) check_prepared();
  if (test_case("threads_slices/refusals")) check_refusals();
}
