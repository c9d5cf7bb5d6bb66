/* Codebooks as tensor cores read them: as near as X's type allows, whatever was asked before. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "kernels/operand/codebook.h"
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

void suite_codebook(void) {
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
