/* Dispatch: which kernel, and why. Nothing is computed here: devices and records are made up. */
#include "made_up.h"

void suite_dispatch(void);

/* ---- which ---- */

static void test_golden(void) {
  static const struct {
    const lpg_device *device;
    lpgemm_dtype_t type, x;
    int64_t m;
    int want;
  } rows[] = {
      {&sm80, LPGEMM_UINT(4), LPGEMM_F16, 1, MMA},
      {&sm86, LPGEMM_UINT(4), LPGEMM_F16, 1, MMA},
      {&sm89, LPGEMM_UINT(4), LPGEMM_F16, 4096, MMA},
      {&sm90, LPGEMM_UINT(4), LPGEMM_F16, 1, DECODE},
      {&sm90, LPGEMM_UINT(4), LPGEMM_F16, 16, DECODE},
      {&sm90, LPGEMM_UINT(4), LPGEMM_F16, 17, PREFILL},
      {&sm90, LPGEMM_INT(4), LPGEMM_F16, 4096, PREFILL},
      {&sm90, LPGEMM_BIPOLAR(4), LPGEMM_BF16, 1, GENERIC},
      {&sm90, LPGEMM_UINT(4), LPGEMM_F32, 1, GENERIC},
      {&sm90, LPGEMM_UINT(5), LPGEMM_F16, 1, GENERIC},
      {&sm90, LPGEMM_FLOAT(2, 1), LPGEMM_F16, 1, GENERIC},
      {&sm90, LPGEMM_CODEBOOK(4), LPGEMM_F16, 1, GENERIC},
      {&sm100, LPGEMM_UINT(4), LPGEMM_F16, 1, MMA},
      {&sm120, LPGEMM_UINT(4), LPGEMM_F16, 64, MMA},
      {&sm80, LPGEMM_UINT(4), LPGEMM_E4M3, 1, GENERIC},
      {&sm86, LPGEMM_UINT(4), LPGEMM_E4M3, 1, GENERIC},
      {&sm89, LPGEMM_UINT(4), LPGEMM_E4M3, 1, FP8},
      {&sm90, LPGEMM_UINT(4), LPGEMM_E4M3, 1, FP8},
      {&sm120, LPGEMM_UINT(4), LPGEMM_E4M3, 1, FP8},
      {&cpu_base, LPGEMM_UINT(4), LPGEMM_F16, 16, BASE},
      {&cpu_avx2, LPGEMM_UINT(4), LPGEMM_F16, 16, AVX2},
      {&cpu_avx512, LPGEMM_UINT(4), LPGEMM_F16, 16, AVX512},
      {&cpu_avx512, LPGEMM_FLOAT(7, 0), LPGEMM_I8, 1, AVX512},
  };
  for (int i = 0; i < COUNT(rows); i++) {
    problem q;
    if (!test_case("dispatch/golden/%s/%s/%s/m%d", rows[i].device->name, lpgemm_dtype_name(rows[i].type),
                   lpgemm_dtype_name(rows[i].x), (int)rows[i].m))
      continue;
    make_simple(&q, rows[i].type, rows[i].x, rows[i].m);
    CHECK_TEXT(choose(&q, rows[i].device, NULL, NULL), made_up[rows[i].want].name);
    CHECK_TEXT(choose(&q, rows[i].device, NULL, ""), made_up[rows[i].want].name);
  }
  if (test_case("dispatch/equal-estimates")) { /* the first in the registry wins */
    problem q;
    make_simple(&q, LPGEMM_UINT(4), LPGEMM_F16, 8);
    CHECK(lpgemm_i_estimate(&made_up[DECODE], &q.p, &sm90) == lpgemm_i_estimate(&made_up[PREFILL], &q.p, &sm90));
    CHECK_TEXT(choose(&q, &sm90, NULL, NULL), made_up[DECODE].name);
  }
}

/* One kernel for every number of rows, or the bits of a row would change with them. */
static void test_batch_invariance(void) {
  if (!test_case("dispatch/batch-invariant")) return;
  for (int64_t m = 0; m <= 5000; m = m * 2 + 1) {
    problem q;
    make_simple(&q, LPGEMM_UINT(4), LPGEMM_F16, m);
    q.p.batch_invariant = 1;
    CHECK_TEXT(choose(&q, &sm90, NULL, NULL), made_up[MMA].name);
    lpg_choice chosen = {.kernel = NULL}, first = {.kernel = NULL};
    q.p.m = 1;
    CHECK_STATUS(lpgemm_i_select(lpgemm_i_registry, lpgemm_i_registry_count, &q.p, &cpu_avx512, NULL, NULL, &first),
                 LPGEMM_SUCCESS);
    q.p.m = m;
    CHECK_STATUS(lpgemm_i_select(lpgemm_i_registry, lpgemm_i_registry_count, &q.p, &cpu_avx512, NULL, NULL, &chosen),
                 LPGEMM_SUCCESS);
    CHECK(chosen.kernel == first.kernel);
  }
}

/* ---- why not ---- */

static void test_reasons(void) {
  static const char invariance[] =
      "its results may depend on the number of rows, and the call asks for batch invariance";
  static const char int32[] = "int32 output needs integer weights, integer activations, integer zeros and no scales";
  static const struct {
    int kernel;
    const lpg_device *device;
    change what;
    const char *reason; /* NULL: it can */
  } rows[] = {
      {DECODE, &cpu_avx512, NOTHING, "it is for another backend"},
      {REFERENCE, &sm90, NOTHING, "it is for another backend"},
      {DECODE, &sm89, NOTHING, "it runs only on another GPU architecture"},
      {DECODE, &sm100, NOTHING, "it runs only on another GPU architecture"},
      {FP8, &sm86, NOTHING, "it needs a newer GPU architecture"},
      {AVX512, &cpu_avx2, NOTHING, "it needs an instruction set that this processor lacks"},
      {AVX2, &cpu_base, NOTHING, "it needs an instruction set that this processor lacks"},
      {DECODE, &sm90, WEIGHTS, "it does not take this kind of weights"},
      {DECODE, &sm90, WIDTH, "it does not take weights of this many bits"},
      {DECODE, &sm90, SCALE, "it does not take scales of this type"},
      {DECODE, &sm90, TWO_LEVELS, "it does not take scales of this type"},
      {DECODE, &sm90, ZERO, "it does not take this kind of zeros"},
      {DECODE, &sm90, MINIMUM, "it does not take this kind of zeros"},
      {DECODE, &sm90, GROUP, "it does not take groups of this size"},
      {DECODE, &sm90, X, "it does not take activations of this type"},
      {DECODE, &sm90, Y, "it does not write outputs of this type"},
      {GENERIC, &sm90, I32_SCALES, int32},
      {GENERIC, &sm90, I32_X, int32},
      {REFERENCE, &cpu_base, I32_ZERO, int32},
      {LUT, &sm90, LEVEL, "it holds only the level FAST"},
      {PREFILL, &sm90, INVARIANT, invariance},
      {DECODE, &sm90, INVARIANT, invariance},
      {DECODE, &sm90, ROWS, "it does not take this many rows"},
      {DECODE, &sm90, NOTHING, NULL},
      {PREFILL, &sm90, ROWS, NULL},
      {MMA, &sm120, INVARIANT, NULL},
      {FP8, &sm89, NOTHING, "it does not take activations of this type"},
      {LUT, &sm80, NOTHING, NULL},
      {GENERIC, &sm86, GROUP, NULL},
      {REFERENCE, &cpu_base, TWO_LEVELS, NULL},
  };
  for (int i = 0; i < COUNT(rows); i++) {
    problem q;
    const lpg_kernel *kernel = &made_up[rows[i].kernel];
    if (!test_case("dispatch/reason/%d/%s/%s", i, kernel->family, rows[i].device->name)) continue;
    make_changed(&q, rows[i].what);
    const char *reason = lpgemm_i_infeasible(kernel, &q.p, rows[i].device);
    CHECK_TEXT(reason ? reason : "none", rows[i].reason ? rows[i].reason : "none");
  }
  if (test_case("dispatch/reason/int32-allowed")) {
    problem q;
    lpgemm_weight_desc_t d = desc_of(LPGEMM_INT(4), 64, 64);
    d.scale_type = 0;
    make(&q, &d, LPGEMM_UINT(3), 5);
    q.p.y_type = LPGEMM_I32;
    CHECK(!lpgemm_i_infeasible(&made_up[REFERENCE], &q.p, &cpu_base));
    q.p.x_scale_mode = LPGEMM_X_SCALE_ROW;
    CHECK_TEXT(lpgemm_i_infeasible(&made_up[REFERENCE], &q.p, &cpu_base), int32);
  }
  if (test_case("dispatch/reason/whole-row-groups")) { /* a group that covers the row is the whole row */
    problem q;
    lpgemm_weight_desc_t d = desc_of(LPGEMM_UINT(4), 64, 200);
    lpg_kernel rows_only = made_up[REFERENCE];
    rows_only.groups = LPG_G_ROW;
    d.group_k = 208;
    make(&q, &d, LPGEMM_F16, 1);
    CHECK(!lpgemm_i_infeasible(&rows_only, &q.p, &cpu_base));
    d.group_k = 192;
    make(&q, &d, LPGEMM_F16, 1);
    CHECK_TEXT(lpgemm_i_infeasible(&rows_only, &q.p, &cpu_base), "it does not take groups of this size");
  }
}

static void test_none(void) {
  problem q;
  lpg_choice chosen = {.kernel = &made_up[0]};
  if (test_case("dispatch/none")) {
    make_simple(&q, LPGEMM_UINT(4), LPGEMM_BF16, 3);
    q.p.experts = 2;
    CHECK_STATUS(lpgemm_i_select(made_up, COUNT(made_up), &q.p, &sm80, NULL, NULL, &chosen), LPGEMM_NOT_SUPPORTED);
    CHECK(chosen.kernel == NULL);
    CHECK_HAS(lpgemm_last_error(), "u4 (n 4096, k 4096) by bf16 (m 3) to f16 on NVIDIA A100-SXM4-80GB");
    CHECK_HAS(lpgemm_last_error(), "it does not take stacks of experts");
    CHECK_STATUS(lpgemm_i_select(made_up, REFERENCE, &q.p, &sm80, NULL, NULL, &chosen), LPGEMM_NOT_SUPPORTED);
    CHECK_STATUS(lpgemm_i_select(made_up, AVX512, &q.p, &cpu_base, NULL, NULL, &chosen), LPGEMM_NOT_SUPPORTED);
    CHECK_HAS(lpgemm_last_error(), "this build has none for this backend");
  }
}

/* ---- forced and tuned ---- */

static void test_forced(void) {
  problem q;
  if (!test_case("dispatch/forced")) return;
  lpg_choice chosen = {.kernel = NULL};
  make_simple(&q, LPGEMM_UINT(4), LPGEMM_F16, 1);
  CHECK_TEXT(choose(&q, &sm90, NULL, made_up[GENERIC].name), made_up[GENERIC].name);
  CHECK_TEXT(choose(&q, &sm90, NULL, made_up[PROBE].name), made_up[PROBE].name); /* FORCE_ONLY */
  CHECK_STATUS(lpgemm_i_select(made_up, COUNT(made_up), &q.p, &sm80, NULL, made_up[DECODE].name, &chosen),
               LPGEMM_NOT_SUPPORTED);
  CHECK(chosen.kernel == NULL);
  CHECK_HAS(lpgemm_last_error(), made_up[DECODE].name);
  CHECK_HAS(lpgemm_last_error(), "it runs only on another GPU architecture");
  CHECK_STATUS(lpgemm_i_select(made_up, COUNT(made_up), &q.p, &sm80, NULL, "generic.any.any.1x1.sm90", &chosen),
               LPGEMM_INVALID_ARGUMENT);
  CHECK(chosen.kernel == NULL);
  CHECK_HAS(lpgemm_last_error(), "closest name is \"generic.any.any.1x1.sm80\"");
  CHECK_HAS(lpgemm_last_error(), "lpgemm_list_kernels()");
  CHECK_STATUS(lpgemm_i_select(made_up, COUNT(made_up), &q.p, &sm80, NULL, "gemv", &chosen), LPGEMM_INVALID_ARGUMENT);
  CHECK_STATUS(lpgemm_i_select(made_up, COUNT(made_up), &q.p, &sm80, NULL, "foo", &chosen), LPGEMM_INVALID_ARGUMENT);
  CHECK(!strstr(lpgemm_last_error(), "closest"));
  CHECK_STATUS(lpgemm_i_select(made_up, COUNT(made_up), &q.p, &sm80, NULL, "generik", &chosen),
               LPGEMM_INVALID_ARGUMENT);
  CHECK_HAS(lpgemm_last_error(), "closest name is \"generic.");
  char *endless = malloc(100001);
  memset(endless, 'x', 100000);
  endless[100000] = 0;
  CHECK_STATUS(lpgemm_i_select(made_up, COUNT(made_up), &q.p, &sm80, NULL, endless, &chosen), LPGEMM_INVALID_ARGUMENT);
  CHECK_STATUS(lpgemm_i_select(made_up, 0, &q.p, &sm80, NULL, "x", &chosen), LPGEMM_INVALID_ARGUMENT);
  free(endless);
}

static void test_tuned(void) {
  problem q;
  if (!test_case("dispatch/tuned")) return;
  lpg_tuning *t = lpgemm_i_tuning_create();
  make_simple(&q, LPGEMM_UINT(4), LPGEMM_F16, 1);
  CHECK_TEXT(choose(&q, &sm90, t, NULL), made_up[DECODE].name);
  CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, made_up[MMA].name, 3.5), LPGEMM_SUCCESS);
  CHECK_TEXT(choose(&q, &sm90, t, NULL), made_up[MMA].name);
  CHECK_TEXT(choose(&q, &sm90, t, made_up[GENERIC].name), made_up[GENERIC].name); /* forced comes first */
  CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, made_up[FP8].name, 3.5), LPGEMM_SUCCESS);
  CHECK_TEXT(choose(&q, &sm90, t, NULL), made_up[DECODE].name); /* it cannot do it */
  CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, made_up[PROBE].name, 3.5), LPGEMM_SUCCESS);
  CHECK_TEXT(choose(&q, &sm90, t, NULL), made_up[DECODE].name); /* only by name */
  CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, "somebody.else.f16.1.sm90", 3.5), LPGEMM_SUCCESS);
  CHECK_TEXT(choose(&q, &sm90, t, NULL), made_up[DECODE].name); /* not in this build */
  CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, made_up[MMA].name, 3.5), LPGEMM_SUCCESS);
  lpgemm_i_tuning_clear(t);
  CHECK_TEXT(choose(&q, &sm90, t, NULL), made_up[DECODE].name);
  lpgemm_i_tuning_destroy(t);
  lpgemm_i_tuning_destroy(NULL);
}

/* ---- in words ---- */

/* The line of the text that starts with `name:`, NULL if there is not exactly one. */
static const char *line_of(const char *text, const char *name, char *line, size_t bytes) {
  int found = 0;
  for (const char *s = text; *s;) {
    size_t length = strcspn(s, "\n");
    if (strncmp(s, name, strlen(name)) == 0 && s[strlen(name)] == ':') {
      snprintf(line, bytes, "%.*s", (int)length, s);
      found++;
    }
    s += length + (s[length] == '\n');
  }
  return found == 1 ? line : NULL;
}

static void test_explain(void) {
  char text[4096], line[512], want[512];
  problem q;
  if (test_case("dispatch/explain/text")) {
    make_simple(&q, LPGEMM_UINT(4), LPGEMM_F16, 20);
    CHECK_STATUS(lpgemm_i_explain(made_up, COUNT(made_up), &q.p, &sm90, NULL, NULL, text, sizeof text), LPGEMM_SUCCESS);
    CHECK(strncmp(text, made_up[PREFILL].name, strlen(made_up[PREFILL].name)) == 0);
    for (int i = 0; i < COUNT(made_up); i++) {
      if (made_up[i].backend != sm90.backend) { /* nobody asked */
        CHECK(strstr(text, made_up[i].name) == NULL);
        continue;
      }
      const char *reason = lpgemm_i_infeasible(&made_up[i], &q.p, &sm90);
      double us = lpgemm_i_estimate(&made_up[i], &q.p, &sm90);
      if (i == PREFILL) {
        snprintf(want, sizeof want, "%s: chosen, the cheapest by the cost model, about %.1f us", made_up[i].name, us);
      } else if (i == PROBE) {
        snprintf(want, sizeof want, "%s: possible when forced by name, about %.1f us; it is for tests", made_up[i].name,
                 us);
      } else if (reason) { /* grouped: kernels that share a reason have a line together */
        snprintf(want, sizeof want, "\nnot possible, %s: ", reason);
        CHECK_HAS(text, want);
        continue;
      } else {
        snprintf(want, sizeof want, "%s: possible%s, about %.1f us", made_up[i].name, i == MMA ? ", the runner-up" : "",
                 us);
      }
      CHECK_TEXT(line_of(text, made_up[i].name, line, sizeof line), want);
    }
  }
  if (test_case("dispatch/explain/why")) {
    lpg_tuning *t = lpgemm_i_tuning_create();
    make_simple(&q, LPGEMM_UINT(4), LPGEMM_F16, 20);
    CHECK_STATUS(lpgemm_i_explain(made_up, COUNT(made_up), &q.p, &sm90, NULL, made_up[MMA].name, text, sizeof text),
                 LPGEMM_SUCCESS);
    CHECK_HAS(text, "mma.u4.f16.64x64.sm80: chosen, forced by name, about");
    CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, made_up[MMA].name, 3.5), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_i_explain(made_up, COUNT(made_up), &q.p, &sm90, t, NULL, text, sizeof text), LPGEMM_SUCCESS);
    CHECK_HAS(text, "mma.u4.f16.64x64.sm80: chosen, the fastest that was measured, about");
    lpgemm_i_tuning_destroy(t);
    q.p.experts = 2;
    CHECK_STATUS(lpgemm_i_explain(made_up, COUNT(made_up), &q.p, &sm90, NULL, NULL, text, sizeof text),
                 LPGEMM_NOT_SUPPORTED);
    CHECK(strncmp(text, "none: no kernel multiplies u4", 29) == 0);
    CHECK_HAS(text, "not possible, it does not take stacks of experts");
  }
  if (test_case("dispatch/explain/grouped")) { /* a line a reason, and every kernel counts once */
    make_simple(&q, LPGEMM_UINT(4), LPGEMM_F16, 20);
    CHECK_STATUS(lpgemm_i_explain(made_up, COUNT(made_up), &q.p, &sm90, NULL, NULL, text, sizeof text), LPGEMM_SUCCESS);
    int kernels = 0, lines = 0;
    for (const char *at = text; (at = strstr(at, "not possible, ")); at++) {
      const char *counted = strstr(at, ": ");
      kernels += counted ? atoi(counted + 2) : 0;
      lines++;
    }
    int refused = 0;
    for (int i = 0; i < COUNT(made_up); i++) {
      refused += made_up[i].backend == sm90.backend && lpgemm_i_infeasible(&made_up[i], &q.p, &sm90);
    }
    CHECK_INT(kernels, refused);
    CHECK(lines > 1 && lines <= refused);
  }
  if (test_case("dispatch/explain/cut")) {
    make_simple(&q, LPGEMM_UINT(4), LPGEMM_F16, 20);
    CHECK_STATUS(lpgemm_i_explain(made_up, COUNT(made_up), &q.p, &sm90, NULL, NULL, text, sizeof text), LPGEMM_SUCCESS);
    size_t whole = strlen(text);
    for (size_t bytes = 1; bytes <= whole + 2; bytes++) {
      char *cut = test_alloc(bytes);
      CHECK_STATUS(lpgemm_i_explain(made_up, COUNT(made_up), &q.p, &sm90, NULL, NULL, cut, bytes), LPGEMM_SUCCESS);
      size_t length = bytes <= whole ? bytes - 1 : whole;
      CHECK(memcmp(cut, text, length) == 0 && cut[length] == 0);
      test_free(cut);
    }
  }
}

/* ---- workspace ---- */

static void test_workspace(void) {
  problem q;
  if (test_case("dispatch/workspace/made-up")) {
    make_simple(&q, LPGEMM_UINT(4), LPGEMM_F16, 0);
    size_t fixed = 132 * 64; /* prefill's */
    CHECK_INT(lpgemm_i_workspace(made_up, COUNT(made_up), &q.p, &sm90, NULL), fixed);
    q.p.m = 16;
    CHECK_INT(lpgemm_i_workspace(made_up, 1, &q.p, &sm90, NULL), 16 * 256);
    q.p.m = 1000; /* decode takes 16 rows, and a call may have 16 */
    CHECK_INT(lpgemm_i_workspace(made_up, 1, &q.p, &sm90, NULL), 16 * 256);
    CHECK_INT(lpgemm_i_workspace(made_up, COUNT(made_up), &q.p, &sm90, NULL), fixed);
    CHECK_INT(lpgemm_i_workspace(made_up, COUNT(made_up), &q.p, &sm80, NULL), 0);
  }
  if (test_case("dispatch/workspace/monotone")) {
    static const lpg_device *const devices[] = {&sm80, &sm90, &cpu_base, &cpu_avx512};
    for (int bits = 1; bits <= 8; bits++) {
      for (int d = 0; d < COUNT(devices); d++) {
        size_t last = 0, last_real = 0;
        make_simple(&q, LPGEMM_UINT((lpgemm_dtype_t)bits), LPGEMM_F16, 0);
        for (int64_t m = 0; m < 100000; m = m < 40 ? m + 1 : m * 5 / 4) {
          q.p.m = m;
          size_t bytes = lpgemm_i_workspace(made_up, COUNT(made_up), &q.p, devices[d], NULL);
          size_t real = lpgemm_i_workspace(lpgemm_i_registry, lpgemm_i_registry_count, &q.p, devices[d], NULL);
          CHECK(bytes >= last && real >= last_real);
          last = bytes;
          last_real = real;
        }
      }
    }
  }
}

void suite_dispatch(void) {
  test_golden();
  test_batch_invariance();
  test_reasons();
  test_none();
  test_forced();
  test_tuned();
  test_explain();
  test_workspace();
  dispatch_registry();
  dispatch_tuning();
  dispatch_mapping();
  dispatch_refusals();
}
