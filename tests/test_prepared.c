/* lpgemm_prepare_x(): X that is made ready once for several products.
 *
 *   prepared/same/KERNEL     the bits of a run without, by every kernel, at both levels, with quantize_x and an order
 * of columns prepared/used/KERNEL     where a kernel has bytes or tables of X, or X in another form, it does not read X
 * itself prepared/shared          by one matrix for others of the same X, whether they can use it or not prepared/order
 * matrices of one order of columns share it, others get their own bits prepared/threads         made on many threads,
 * read on one, of more rows than are multiplied at a time prepared/wrong           what is of another X is refused, and
 * so is what is damaged */
#include <string.h>

#include "problem.h"
#include "ref/gemm_ref.h"
#include "test.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

static lpgemm_handle_t handle;

static void *prepare(lpgemm_handle_t by, const problem *p, const char *kernel, size_t *bytes) {
  lpgemm_run_args_t args = p->args;
  args.kernel = kernel;
  args.y = NULL; /* not read */
  CHECK_STATUS(lpgemm_prepared_x_size(by, &args, bytes), LPGEMM_SUCCESS);
  void *prepared = test_alloc(*bytes);
  memset(prepared, 0xff, *bytes);
  CHECK_STATUS(lpgemm_prepare_x(by, &args, prepared, *bytes), LPGEMM_SUCCESS);
  return prepared;
}

/* 1 if a run with what was prepared gives the bits of a run without. */
static int is_same(problem *p, lpgemm_handle_t by, const char *kernel, const void *prepared, size_t bytes,
                   const void *x) {
  const lpgemm_run_args_t args = p->args;
  const size_t y_bytes = problem_y_bytes(p);
  void *first = test_alloc(y_bytes);
  CHECK_STATUS(problem_run(p, by, kernel), LPGEMM_SUCCESS);
  memcpy(first, p->y, y_bytes);
  p->args.prepared_x = prepared;
  p->args.prepared_x_bytes = bytes;
  p->args.x = x;
  CHECK_STATUS(problem_run(p, by, kernel), LPGEMM_SUCCESS);
  const int same = memcmp(first, p->y, y_bytes) == 0;
  p->args = args;
  test_free(first);
  return same;
}

/* Weights that the kernel takes; i draws the rest. */
static problem_spec spec_for(const char *kernel, int i) {
  const lpgemm_dtype_t types[] = {LPGEMM_UINT(4), LPGEMM_INT(8), LPGEMM_UINT(2), LPGEMM_CODEBOOK(4)};
  const lpgemm_dtype_t x_types[] = {LPGEMM_F16, LPGEMM_F32, LPGEMM_BF16, LPGEMM_I8};
  problem_spec s = {.desc = {.size = sizeof s.desc}, .m = test_between(1, 9), .alpha = 1, .y_type = LPGEMM_F32};
  s.desc.n = test_between(1, 60);
  s.desc.k = test_between(1, 700);
  s.desc.type = types[i % COUNT(types)];
  s.desc.group_k = i % 3 == 0 ? 32 : i % 3 == 1 ? 16 : 0;
  s.desc.scale_type = LPGEMM_F16;
  s.x_type = x_types[i / 2 % COUNT(x_types)];
  s.pad_x = i % 2;
  if (kernel) {
    problem_suit(&s, kernel);
  } else if (s.desc.type == LPGEMM_CODEBOOK(4)) {
    lpgemm_codebook_preset("nf4", s.desc.codebook);
  }
  if (i % 4 == 3) s.desc.columns = LPGEMM_COLUMNS_ORDERED;
  if (i % 4 >= 2 && lpgemm_dtype_bits(s.x_type) > 8) s.quantize_x = LPGEMM_I8;
  return s;
}

static void same_bits(const char *kernel) {
  int compared = 0;
  for (int i = 0; i < 12; i++) {
    const problem_spec s = spec_for(kernel, i);
    problem p;
    if (problem_make(&p, handle, &s)) {
      p.args.level = i % 2 ? LPGEMM_LEVEL_FAST : LPGEMM_LEVEL_EXACT;
      if (problem_run(&p, handle, kernel) == LPGEMM_SUCCESS) {
        size_t bytes;
        void *prepared = prepare(handle, &p, kernel, &bytes);
        CHECK(is_same(&p, handle, kernel, prepared, bytes, p.args.x));
        compared++;
        test_free(prepared);
      }
    }
    problem_free(&p);
  }
  CHECK(compared > 2);
}

/* A kernel that has a form of X by itself reads that, small integers being exact in it; every kernel reads X that is
 * quantised, or in the order of the weights' columns. */
static void is_used(const char *kernel) {
  const int has_form = strncmp(kernel, "dot", 3) == 0 || strncmp(kernel, "lut", 3) == 0;
  int compared = 0;
  for (int i = 0; i < 8; i++) {
    problem_spec s = spec_for(kernel, i);
    problem p;
    s.exact = 1;
    if (!has_form && !s.quantize_x && !s.desc.columns) continue;
    if (problem_make(&p, handle, &s)) {
      p.args.level = i % 2 ? LPGEMM_LEVEL_FAST : LPGEMM_LEVEL_EXACT;
      if (problem_run(&p, handle, kernel) == LPGEMM_SUCCESS) {
        size_t bytes;
        const size_t x_bytes = (size_t)(s.m * p.args.ldx * ref_bytes(s.x_type));
        void *prepared = prepare(handle, &p, kernel, &bytes), *unreadable = test_alloc(x_bytes);
        memset(unreadable, 0xff, x_bytes);
        CHECK(is_same(&p, handle, kernel, prepared, bytes, unreadable));
        compared++;
        test_free(prepared);
        test_free(unreadable);
      }
    }
    problem_free(&p);
  }
  CHECK(compared > 0);
}

/* As llama.cpp's Q4_0, Q8_0, Q4_K, Q6_K and IQ4_NL, and others. */
enum { MATRICES = 7, COLUMNS = 512 };
static problem_spec matrix(int which, int64_t m) {
  problem_spec s = {.desc = {.size = sizeof s.desc}, .m = m, .alpha = 1, .x_type = LPGEMM_F32, .y_type = LPGEMM_F32};
  lpgemm_weight_desc_t *d = &s.desc;
  d->n = 24 + 8 * which;
  d->k = COLUMNS;
  d->group_k = 32;
  d->scale_type = LPGEMM_F16;
  d->type = LPGEMM_UINT(4);
  d->zero = LPGEMM_ZERO_CONSTANT;
  d->zero_constant = 8;
  if (which == 1) d->type = LPGEMM_INT(8), d->zero = LPGEMM_ZERO_NONE, d->zero_constant = 0;
  if (which == 2 || which == 3) {
    d->type = which == 2 ? LPGEMM_UINT(4) : LPGEMM_INT(6);
    d->group_k = which == 2 ? 32 : 16;
    d->super_k = 256;
    d->scale_type = which == 2 ? LPGEMM_UINT(6) : LPGEMM_I8;
    d->super_scale_type = LPGEMM_F16;
    d->zero = which == 2 ? LPGEMM_ZERO_MINIMUM : LPGEMM_ZERO_NONE;
    d->zero_type = which == 2 ? LPGEMM_UINT(6) : 0;
    d->super_zero_type = which == 2 ? LPGEMM_F16 : 0;
    d->zero_constant = 0;
  }
  if (which == 4) {
    d->type = LPGEMM_CODEBOOK(4), d->zero = LPGEMM_ZERO_NONE, d->zero_constant = 0;
    lpgemm_codebook_preset("iq4_nl", d->codebook);
  }
  if (which == 5) d->type = LPGEMM_UINT(2), d->group_k = 128, d->zero_constant = 1;
  if (which == 6) d->type = LPGEMM_E4M3, d->zero = LPGEMM_ZERO_NONE, d->zero_constant = 0;
  return s;
}

static void shared(void) {
  for (int64_t m = 1; m <= 20; m += 19) {
    problem p[MATRICES];
    int made = 0;
    for (; made < MATRICES; made++) {
      const problem_spec s = matrix(made, m);
      if (!problem_make(&p[made], handle, &s)) break;
      p[made].args.x = p[0].args.x;
    }
    CHECK_INT(made, MATRICES);
    for (int i = 0; made == MATRICES && i < 2 * MATRICES * 3; i++) {
      problem *by = &p[i / 2 % MATRICES];
      size_t bytes;
      by->args.level = i % 2 ? LPGEMM_LEVEL_FAST : LPGEMM_LEVEL_EXACT;
      void *prepared = prepare(handle, by, NULL, &bytes);
      for (int j = 0; j < MATRICES; j++) {
        p[j].args.level = i / 14 % 2 ? LPGEMM_LEVEL_FAST : LPGEMM_LEVEL_EXACT;
        CHECK(is_same(&p[j], handle, NULL, prepared, bytes, p[0].args.x));
      }
      test_free(prepared);
    }
    for (int i = 0; i < made; i++) problem_free(&p[i]);
  }
}

static void orders(void) {
  problem p[3];
  for (int i = 0; i < 3; i++) {
    problem_spec s = matrix(i / 2, 3);
    s.desc.columns = LPGEMM_COLUMNS_ORDERED;
    if (!problem_make(&p[i], handle, &s)) return;
    p[i].args.x = p[0].args.x;
    p[i].args.level = LPGEMM_LEVEL_FAST;
  }
  const int32_t *own = p[1].source.column_order;
  p[1].source.column_order = p[0].source.column_order;
  problem_repack(&p[1], handle);
  size_t bytes;
  void *prepared = prepare(handle, &p[0], NULL, &bytes), *unreadable = test_alloc(3 * COLUMNS * sizeof(float));
  memset(unreadable, 0xff, 3 * COLUMNS * sizeof(float));
  CHECK(is_same(&p[1], handle, NULL, prepared, bytes, unreadable)); /* the same order */
  CHECK(is_same(&p[2], handle, NULL, prepared, bytes, p[0].args.x));
  test_free(prepared);
  test_free(unreadable);
  p[1].source.column_order = own;
  for (int i = 0; i < 3; i++) problem_free(&p[i]);
}

static void threads(void) {
  lpgemm_handle_t many = problem_handle(5), one = problem_handle(1);
  for (int i = 0; i < 4; i++) {
    const problem_spec s = matrix(i % 2 ? 2 : 5, i < 2 ? 600 : 7);
    problem p;
    if (problem_make(&p, handle, &s)) {
      size_t bytes;
      p.args.level = i % 2 ? LPGEMM_LEVEL_FAST : LPGEMM_LEVEL_EXACT;
      const char *kernel = i % 2 ? "dotsim.any.any.16x8.base" : "lut.u2.any.4.base";
      void *prepared = prepare(many, &p, kernel, &bytes);
      CHECK(is_same(&p, one, kernel, prepared, bytes, p.args.x));
      CHECK(is_same(&p, many, kernel, prepared, bytes, p.args.x));
      test_free(prepared);
    }
    problem_free(&p);
  }
  CHECK_STATUS(lpgemm_destroy(many), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_destroy(one), LPGEMM_SUCCESS);
}

#define REFUSED(call, status, words)                                                                   \
  do {                                                                                                 \
    CHECK_STATUS(call, status);                                                                        \
    if (!strstr(lpgemm_last_error(), words)) test_fail(__FILE__, __LINE__, "%s", lpgemm_last_error()); \
  } while (0)

static void wrong(void) {
  const problem_spec s = matrix(0, 3);
  problem p;
  if (problem_make(&p, handle, &s)) {
    size_t bytes;
    p.args.level = LPGEMM_LEVEL_FAST;
    uint8_t *prepared = prepare(handle, &p, "dotsim.any.any.16x8.base", &bytes);
    const lpgemm_run_args_t good = p.args;
#define TRY(change, status, words)                                                         \
  do {                                                                                     \
    lpgemm_run_args_t args = good;                                                         \
    args.kernel = "dotsim.any.any.16x8.base";                                              \
    args.prepared_x = prepared;                                                            \
    args.prepared_x_bytes = bytes;                                                         \
    change;                                                                                \
    memset(p.y, 0xff, problem_y_bytes(&p));                                                \
    REFUSED(lpgemm_run(handle, &args), status, words);                                     \
    for (size_t i = 0; i < problem_y_bytes(&p); i++) CHECK_INT(((uint8_t *)p.y)[i], 0xff); \
  } while (0)
    TRY(args.m = 2, LPGEMM_INVALID_ARGUMENT,
        "of an X of 3 rows and 512 columns of f32, quantised to none, and the call");
    TRY(args.x_type = LPGEMM_BF16, LPGEMM_INVALID_ARGUMENT, "has 3, 512, bf16 and none");
    TRY(args.prepared_x_bytes = bytes - 1, LPGEMM_BUFFER_TOO_SMALL, "prepared_x_bytes");
    TRY(args.prepared_x_bytes = 0, LPGEMM_BUFFER_TOO_SMALL, "prepared_x_bytes");
    TRY(args.prepared_x = prepared + 64, LPGEMM_INVALID_ARGUMENT, "no prepared X lies");
    TRY(args.prepared_x = prepared + 4, LPGEMM_MISALIGNED, "64-byte aligned");
    TRY(args.y = prepared + 64, LPGEMM_INVALID_ARGUMENT, "must not overlap");
    TRY(args.quantize_x = LPGEMM_I8, LPGEMM_INVALID_ARGUMENT, "quantised to none, and the call has 3, 512, f32 and i8");
#undef TRY
    uint8_t header[128];
    memcpy(header, prepared, sizeof header);
    lpgemm_run_args_t args = good;
    args.kernel = "dotsim.any.any.16x8.base";
    args.prepared_x = prepared;
    args.prepared_x_bytes = bytes;
    for (int i = 0; i < 8 * COUNT(header); i++) { /* any damage of the header is refused, or does no harm */
      prepared[i / 8] ^= (uint8_t)(1 << i % 8);
      (void)lpgemm_run(handle, &args);
      memcpy(prepared, header, sizeof header);
    }
    CHECK_STATUS(lpgemm_run(handle, &args), LPGEMM_SUCCESS);
    lpgemm_run_args_t failed = good;
    failed.kernel = args.kernel;
    failed.x = NULL;
    REFUSED(lpgemm_prepare_x(handle, &failed, prepared, bytes), LPGEMM_NULL_POINTER, "x is NULL");
    CHECK(memcmp(prepared, header, sizeof header) == 0);
    test_free(prepared);
  }
  problem_free(&p);
}

void suite_prepared(void) {
  if (test_backend() != LPGEMM_BACKEND_CPU) return;
  const char *names[PROBLEM_KERNELS];
  const int count = problem_kernels(names);
  handle = problem_handle(2);
  for (int i = 0; i < count; i++) {
    if (test_case("prepared/same/%s", names[i])) same_bits(names[i]);
    if (test_case("prepared/used/%s", names[i])) is_used(names[i]);
  }
  if (test_case("prepared/same/automatic")) same_bits(NULL);
  if (test_case("prepared/shared")) shared();
  if (test_case("prepared/order")) orders();
  if (test_case("prepared/threads")) threads();
  if (test_case("prepared/wrong")) wrong();
  lpgemm_destroy(handle);
}
