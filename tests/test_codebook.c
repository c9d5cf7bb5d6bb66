/* Codebooks as tensor cores read them: as near as X's type allows, whatever was asked before; and products of weights
 * with codebooks by all kernels, with zeros. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "kernels/operand/codebook.h"
#include "problem.h"
#include "test.h"

typedef struct question {
  float value[LPG_CODEBOOK_ENTRIES];
  int bits, bf16;
} question;

static lpg_rounded_codebook ask(const question *q) { return lpgemm_i_round_codebook(q->value, q->bits, q->bf16); }

typedef struct answer {
  const question *q;
  lpg_rounded_codebook codebook;
} answer;

static void *ask_on_thread(void *context) {
  answer *a = context;
  a->codebook = ask(a->q);
  return NULL;
}

/* By a thread that was asked nothing before. */
static lpg_rounded_codebook ask_anew(const question *q) {
  answer a = {q, {0}};
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, ask_on_thread, &a) == 0 && pthread_join(thread, NULL) == 0);
  return a.codebook;
}

static int is_same(const lpg_rounded_codebook *a, const lpg_rounded_codebook *b, int bits) {
  return a->factor == b->factor && memcmp(a->rounded, b->rounded, sizeof(uint16_t) << bits) == 0;
}

static question draw(int bits, int bf16) {
  question q = {.bits = bits, .bf16 = bf16};
  for (int i = 0; i < 1 << bits; i++) q.value[i] = (float)test_uniform(-3.0, 3.0);
  return q;
}

static void check_error(const question *q) {
  const lpg_rounded_codebook c = ask(q);
  const double half_ulp = q->bf16 ? 0x1p-8 : 0x1p-11;
  for (int i = 0; i < 1 << q->bits; i++) {
    const double held = (double)(q->bf16 ? lpg_bf16_to_f32(c.rounded[i]) : lpg_f16_to_f32(c.rounded[i]));
    const double value = (double)q->value[i], error = fabs(held * (double)c.factor - value);
    if (!(error <= half_ulp * fabs(value) * (1 + 0x1p-20))) {
      test_fail(__FILE__, __LINE__, "%g is held as %g times %g", value, held, (double)c.factor);
    }
  }
}

/* ---- products ---- */

/* Books whose values are one byte each, with an offset of 0 or another; "far" and "any" need several bytes. */
static const struct {
  const char *name;
  int bits;
  float value[16];
} books[] = {{"high", 1, {7, 6}},
             {"halves", 1, {0.5f, 1.5f}},
             {"signs", 1, {-1, 1}},
             {"far", 2, {-3, 1, 600, 4}},
             {"above", 2, {100, 103, 101, 107}},
             {"any", 2, {-0.3f, 0.11f, 0.7f, 1.9f}},
             {"ramp", 4, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}};

/* Every kernel with zeros of every type: an integer zero may lie beside all values of a book. */
static void check_zeros(lpgemm_handle_t handle, int book, lpgemm_dtype_t zero, lpgemm_dtype_t x) {
  problem_spec s = {.desc = {.size = sizeof s.desc, .n = 37, .k = 330, .group_k = 64, .scale_type = LPGEMM_F16}};
  s.desc.type = LPGEMM_CODEBOOK((unsigned)books[book].bits);
  memcpy(s.desc.codebook, books[book].value, sizeof s.desc.codebook);
  s.desc.zero = zero ? LPGEMM_ZERO_PER_GROUP : LPGEMM_ZERO_CONSTANT;
  s.desc.zero_type = zero;
  if (!zero) s.desc.zero_constant = 2;
  s.m = 5, s.x_type = x, s.y_type = LPGEMM_F32, s.alpha = 1;
  const char *kernels[PROBLEM_KERNELS];
  const int count = problem_kernels(kernels);
  problem p;
  if (problem_make(&p, handle, &s)) {
    problem_expect(&p);
    for (int i = 0; i < count; i++) {
      const lpgemm_status_t status = problem_run(&p, handle, kernels[i]);
      if (status == LPGEMM_NOT_SUPPORTED) continue;
      CHECK_STATUS(status, LPGEMM_SUCCESS);
      problem_check(&p, kernels[i]);
    }
  }
  problem_free(&p);
}

static void products(void) {
  static const lpgemm_dtype_t zeros[] = {0, LPGEMM_U8, LPGEMM_U16, LPGEMM_F16, LPGEMM_F32};
  static const lpgemm_dtype_t x[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_I8};
  lpgemm_handle_t handle = problem_handle(1);
  for (int b = 0; b < (int)(sizeof books / sizeof books[0]); b++) {
    for (int z = 0; z < 5; z++) {
      for (int i = 0; i < 3; i++) {
        if (!test_case("codebook/zeros/%s/%s/%s", books[b].name, zeros[z] ? lpgemm_dtype_name(zeros[z]) : "constant",
                       lpgemm_dtype_name(x[i])))
          continue;
        check_zeros(handle, b, zeros[z], x[i]);
      }
    }
  }
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}

void suite_codebook(void) {
  products();
  if (test_backend() != LPGEMM_BACKEND_CPU) return;
  for (int i = 0; i < 8; i++) {
    const int bits = 1 + i / 2, bf16 = i % 2;
    if (!test_case("codebook/u%d/%s", bits, bf16 ? "bf16" : "f16")) continue;
    for (int j = 0; j < 50; j++) {
      const question q = draw(bits, bf16);
      check_error(&q);
    }
    question zeros = {.bits = bits, .bf16 = bf16};
    check_error(&zeros);
  }
  if (test_case("codebook/asked_again")) {
    question q[6];
    q[0] = draw(4, 0);
    q[1] = q[0];
    q[1].bf16 = 1;
    q[2] = q[0];
    q[2].value[15] += 1.0f; /* the last one alone */
    q[3] = q[0];
    q[3].bits = 3; /* the first half of the same values */
    q[4] = draw(2, 1);
    q[5] = q[0];
    q[5].value[0] = -q[0].value[0];
    for (int i = 0; i < 200; i++) {
      const question *next = &q[test_between(0, 5)];
      const lpg_rounded_codebook anew = ask_anew(next);
      for (int j = 0; j < 2; j++) {
        const lpg_rounded_codebook got = ask(next);
        CHECK(is_same(&got, &anew, next->bits));
      }
    }
  }
}
