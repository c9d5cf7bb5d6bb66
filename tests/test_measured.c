/* The tables that ship in the library: what stands in them, how far a point is from a problem, and what they change. */
#include <math.h>

#include "dispatch/measured.h"
#include "made_up.h"

/* The point as a problem of weights that anybody may have. */
static void make_point(problem *q, const lpg_measured_point *p) {
  lpgemm_weight_desc_t d = {.size = sizeof d};
  d.n = p->n;
  d.k = p->k;
  d.type = p->type;
  d.group_k = p->group;
  d.scale_type = p->scale_type;
  d.zero = p->zero;
  d.zero_type = p->zero_type;
  if (p->zero == LPGEMM_ZERO_CONSTANT) d.zero_constant = ldexpf(0.5f, lpgemm_dtype_bits(p->type));
  for (int i = 0; LPGEMM_DTYPE_KIND(d.type) == LPGEMM_KIND_CODEBOOK && i < 1 << lpgemm_dtype_bits(d.type); i++) {
    d.codebook[i] = 2.0f * (float)i / (float)((1 << lpgemm_dtype_bits(d.type)) - 1) - 1.0f;
  }
  make(q, &d, p->x_type, p->m);
  q->p.scale_span = 3;
  if (lpgemm_dtype_bits(p->x_type) <= 8) q->p.x_scale_mode = LPGEMM_X_SCALE_ROW;
}

static const float *us_of(const lpg_measured *t, int point) { return t->us + (size_t)point * (size_t)t->forms; }

/* The microseconds that the table has for the kernel at its point; 0 = none. */
static double measured_us(const lpg_measured *t, int point, const char *kernel) {
  char form[128], family[32], x[16], rest[48];
  CHECK(sscanf(kernel, "%31[^.].%*[^.].%15[^.].%47s", family, x, rest) == 3);
  snprintf(form, sizeof form, "%s.%s.%s", family, strcmp(x, "bf16") == 0 ? "f16" : x, rest);
  for (int f = 0; f < t->forms; f++) {
    if (strcmp(form, t->form[f]) == 0) return (double)us_of(t, point)[f];
  }
  return 0.0;
}

/* ---- what stands in the tables ---- */

static int alike(const lpg_measured_point *a, const lpg_measured_point *b) {
  return a->type == b->type && a->x_type == b->x_type && a->scale_type == b->scale_type && a->zero == b->zero &&
         a->zero_type == b->zero_type && a->group == b->group;
}

static void check_point(const lpg_measured *t, int i) {
  const lpg_measured_point *p = &t->point[i];
  problem q;
  int timed = 0, run = 1;
  while (i + run < t->count && alike(p, p + run)) run++;
  CHECK(p->alike == run);
  make_point(&q, p);
  CHECK(fabs(p->log2_n - log2(p->n)) < 1e-4 && fabs(p->log2_k - log2(p->k)) < 1e-4 &&
        fabs(p->log2_m - log2(p->m)) < 1e-4);
  CHECK(lpgemm_i_measured_distance(p, &q.p) < 1e-4);
  for (int f = 0; f < t->forms; f++) {
    CHECK(us_of(t, i)[f] >= 0.0f);
    timed += us_of(t, i)[f] > 0.0f;
  }
  CHECK(timed > 0);
}

static void test_tables(void) {
  if (!test_case("dispatch/measured/tables")) return;
  CHECK(lpgemm_i_measured_count > 0);
  for (int i = 0; i < lpgemm_i_measured_count; i++) {
    const lpg_measured *t = &lpgemm_i_measured[i];
    CHECK(t->forms > 0 && t->forms <= LPG_MEASURED_FORMS && t->count > 0 && t->count <= 3000);
    for (int j = 0; j < t->count; j++) check_point(t, j);
  }
}

static const lpg_measured *table_of(const lpg_device *device) {
  for (int i = 0; i < lpgemm_i_measured_count; i++) {
    if (strcmp(lpgemm_i_measured[i].device, device->name) == 0) return &lpgemm_i_measured[i];
  }
  return NULL;
}

/* At a point what is taken is the best of all that was timed there, or one that was not: of a kernel that came, or took
 * more, after the table was measured there is only its estimate. They must stay few. */
static void test_points(void) {
  if (!test_case("dispatch/measured/points")) return;
  const lpg_measured *t = table_of(&sm90);
  int untimed = 0;
  CHECK(t != NULL);
  for (int i = 0; t && i < t->count; i++) {
    problem q;
    const lpg_kernel *chosen = NULL;
    double best = HUGE_VAL;
    make_point(&q, &t->point[i]);
    for (int f = 0; f < t->forms; f++) {
      if (us_of(t, i)[f] > 0.0f) best = fmin(best, (double)us_of(t, i)[f]);
    }
    CHECK_STATUS(lpgemm_i_select(test_every_kernel, test_every_kernel_count, &q.p, &sm90, NULL, NULL, &chosen),
                 LPGEMM_SUCCESS);
    const double us = chosen ? measured_us(t, i, chosen->name) : 0.0;
    untimed += us == 0.0;
    if (us != 0.0 && us != best) {
      test_fail(__FILE__, __LINE__, "%s by %s, %d x %d, m %d: %s is chosen, %g us; the best takes %g",
                lpgemm_dtype_name(t->point[i].type), lpgemm_dtype_name(t->point[i].x_type), t->point[i].n,
                t->point[i].k, t->point[i].m, chosen ? chosen->name : "none", us, best);
    }
  }
  CHECK(t && untimed * 10 <= t->count);
}

/* ---- distances, as src/dispatch/measured.h says them ---- */

static void check_distance(const lpgemm_weight_desc_t *d, lpgemm_dtype_t x, int64_t m, double want) {
  static const lpg_measured_point point = {.type = LPGEMM_UINT(4),
                                           .x_type = LPGEMM_F16,
                                           .scale_type = LPGEMM_F16,
                                           .group = 128,
                                           .n = 4096,
                                           .k = 4096,
                                           .m = 16,
                                           .log2_n = 12,
                                           .log2_k = 12,
                                           .log2_m = 4};
  problem q;
  make(&q, d, x, m);
  const double got = lpgemm_i_measured_distance(&point, &q.p);
  if (!(fabs(got - want) < 1e-6) && !(got == want)) test_fail(__FILE__, __LINE__, "it is %g, not %g", got, want);
}

static void test_distances(void) {
  if (!test_case("dispatch/measured/distances")) return;
  const lpgemm_weight_desc_t same = desc_of(LPGEMM_UINT(4), 4096, 4096);
  lpgemm_weight_desc_t d = same;
  check_distance(&same, LPGEMM_F16, 16, 0.0);
  check_distance(&same, LPGEMM_F16, 64, 2.0);
  check_distance(&same, LPGEMM_BF16, 16, 0.25 + 2.0); /* the scales are of another type than X, too */
  check_distance(&same, LPGEMM_F32, 16, HUGE_VAL);
  check_distance(&same, LPGEMM_I8, 16, HUGE_VAL);
  d = desc_of(LPGEMM_UINT(4), 8192, 1024);
  check_distance(&d, LPGEMM_F16, 16, 3.0);
  d = desc_of(LPGEMM_INT(4), 4096, 4096);
  check_distance(&d, LPGEMM_F16, 16, 0.05);
  d = desc_of(LPGEMM_UINT(2), 4096, 4096);
  check_distance(&d, LPGEMM_F16, 16, 1.05);
  d = desc_of(LPGEMM_FLOAT(2, 1), 4096, 4096);
  check_distance(&d, LPGEMM_F16, 16, HUGE_VAL);
  d = same, d.group_k = 32;
  check_distance(&d, LPGEMM_F16, 16, 2.1);
  d = same, d.group_k = 0;
  check_distance(&d, LPGEMM_F16, 16, 0.1);
  d = same, d.zero = LPGEMM_ZERO_CONSTANT, d.zero_constant = 8;
  check_distance(&d, LPGEMM_F16, 16, 0.0);
  d = same, d.zero = LPGEMM_ZERO_PER_GROUP, d.zero_type = LPGEMM_U8;
  check_distance(&d, LPGEMM_F16, 16, 2.0);
  d = same, d.scale_type = LPGEMM_F32;
  check_distance(&d, LPGEMM_F16, 16, 2.0);
}

/* ---- where the tables have nothing to say ---- */

static double correction(const problem *q, const lpg_device *device, const char *kernel) {
  const lpg_kernel *k = lpgemm_i_find_kernel(test_every_kernel, test_every_kernel_count, kernel);
  lpg_near near;
  lpgemm_i_measured_near(&q->p, device, &near);
  return lpgemm_i_expect(k, &q->p, device, &near, NULL) / lpgemm_i_estimate(k, &q->p, device);
}

static void test_silence(void) {
  static const char kernel[] = "decode.u4.f16.16x8.sm80";
  problem q;
  double last = HUGE_VAL;
  if (!test_case("dispatch/measured/silence")) return;
  make_simple(&q, LPGEMM_UINT(4), LPGEMM_F16, 4);
  CHECK(correction(&q, &sm90, kernel) != 1.0);
  CHECK(correction(&q, &h100, kernel) == 1.0);
  CHECK(correction(&q, &sm80, kernel) == 1.0);
  q.p.batch_invariant = 1;
  CHECK(correction(&q, &sm90, kernel) == 1.0);
  lpgemm_weight_desc_t d = desc_of(LPGEMM_UINT(4), 4096, 4096);
  d.group_k = 32, d.scale_type = LPGEMM_UINT(6), d.super_k = 256, d.super_scale_type = LPGEMM_F16;
  make(&q, &d, LPGEMM_F16, 4);
  CHECK(correction(&q, &sm90, kernel) == 1.0);
  for (int64_t n = 8192; n <= INT64_C(8192) << 12; n *= 4) { /* ever farther from what was measured */
    d = desc_of(LPGEMM_UINT(4), n, 1 << 15);
    make(&q, &d, LPGEMM_F16, 4);
    const double off = fabs(log(correction(&q, &sm90, kernel)));
    CHECK(off <= last + 0.1);
    last = off;
  }
  CHECK(last == 0.0);
}

static void test_words(void) {
  problem q;
  char text[1 << 16];
  if (!test_case("dispatch/measured/explain")) return;
  const lpg_measured *t = table_of(&sm90);
  CHECK(t != NULL);
  if (!t) return;
  make_point(&q, &t->point[0]);
#define EXPLAIN(device)                                                                                          \
  CHECK_STATUS(                                                                                                  \
      lpgemm_i_explain(test_every_kernel, test_every_kernel_count, &q.p, device, NULL, NULL, text, sizeof text), \
      LPGEMM_SUCCESS)
  EXPLAIN(&sm90);
  CHECK_HAS(text, ": chosen, the fastest in the measured table, about ");
  q.p.m += 1;
  EXPLAIN(&sm90);
  CHECK_HAS(text, ": chosen, the cheapest by the cost model and the measured table, about ");
  EXPLAIN(&h100);
  CHECK_HAS(text, ": chosen, the cheapest by the cost model, about ");
}

void dispatch_measured(void) {
  test_tables();
  test_points();
  test_distances();
  test_silence();
  test_words();
}
