/* The lookup kernel and its tables. test_gemm.c runs the kernel over the whole matrix of types and shapes; here is what
 * only table lookup has:
 *
 *   lut/tables       every entry is the sum that docs/lut.md says, or the step is kept as it is
 *   lut/same         tables made before the call give the bits of tables made inside; right for every type and zero
 *   lut/shared       one set of tables serves matrices of every width
 *   lut/pieces       more rows than the workspace holds tables of
 *   lut/cancel       large activations on weights that are zero leave no error
 *   lut/not-finite, lut/unread, lut/threads, lut/refused */
#include <math.h>

#include "compare.h"
#include "problem.h"
#include "ref/gemm_ref.h"
#include "test.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const char *const lut_kernel = "lut.int.any.4.cpu";

static lpgemm_handle_t handle;

static const lpgemm_dtype_t weight_types[] = {
    LPGEMM_UINT(1), LPGEMM_UINT(2),    LPGEMM_UINT(3),    LPGEMM_UINT(4),    LPGEMM_INT(2),     LPGEMM_INT(3),
    LPGEMM_INT(4),  LPGEMM_BIPOLAR(1), LPGEMM_BIPOLAR(2), LPGEMM_BIPOLAR(3), LPGEMM_BIPOLAR(4),
};

/* ---- tables ---- */

enum { STEP = 16, LANES = 4, ENTRIES = 8 };

/* Tables of the args' X in a new buffer of just the size that the library asks for. */
static void *make_tables(const lpgemm_run_args_t *args, int64_t k, size_t *bytes) {
  CHECK_STATUS(lpgemm_lut_size(handle, args->m, k, bytes), LPGEMM_SUCCESS);
  void *tables = test_alloc(*bytes);
  CHECK_STATUS(lpgemm_lut_precompute(handle, args->m, k, args->x, args->x_type, args->ldx, tables, *bytes),
               LPGEMM_SUCCESS);
  return tables;
}

/* Column c of a row, 0 beyond its end. */
static double at(const lpgemm_run_args_t *args, int64_t k, int64_t row, int64_t c) {
  return c < k ? ref_load(args->x_type, args->x, row * args->ldx + c) : 0.0;
}

/* The bits of entry e say which of the columns 2t, 2t + 8, 2t + 1 count as they are; the others count negated, and
 * column 2t + 9 always as it is. A step that is kept has these columns as they are, and NaN behind them. */
static int entry_is_right(const lpgemm_run_args_t *args, int64_t k, int64_t row, int64_t step, int t, int e, int kept,
                          double got) {
  const int64_t first = step * STEP + 2 * t, column[] = {first, first + 8, first + 1, first + 9};
  if (kept && e >= 4) return isnan(got);
  if (kept) {
    double x = at(args, k, row, column[e]);
    return got == x || (isnan(x) && isnan(got));
  }
  double want = at(args, k, row, column[3]);
  for (int j = 0; j < 3; j++) want += (e >> j & 1 ? 1 : -1) * at(args, k, row, column[j]);
  return got == want;
}

/* kept: NULL, or 1 for each step of row 0 that must be kept. */
static void check_tables(const lpgemm_run_args_t *args, int64_t k, const int *kept) {
  size_t bytes;
  double *tables = make_tables(args, k, &bytes);
  int64_t steps = (k + STEP - 1) / STEP;
  CHECK_INT(bytes, args->m * steps * LANES * ENTRIES * 8);
  for (int64_t i = 0; i < args->m * steps * LANES * ENTRIES; i++) {
    int64_t step = i / (LANES * ENTRIES) % steps, row = i / (LANES * ENTRIES) / steps;
    int t = (int)(i / ENTRIES % LANES), e = (int)(i % ENTRIES);
    if (!entry_is_right(args, k, row, step, t, e, kept && kept[step], tables[i])) {
      test_fail(__FILE__, __LINE__, "row %lld, step %lld, lane %d, entry %d is %.17g", (long long)row, (long long)step,
                t, e, tables[i]);
      break;
    }
  }
  test_free(tables);
}

static void random_tables(lpgemm_dtype_t x_type) {
  const int64_t columns[] = {1, 15, 16, 17, 64, 333};
  for (int i = 0; i < COUNT(columns); i++) {
    int64_t k = columns[i], ldx = k + i % 3;
    if (!test_case("lut/tables/%s/k%d", lpgemm_dtype_name(x_type), (int)k)) continue;
    enum { ROWS = 3 };
    void *x = test_alloc((size_t)((ROWS - 1) * ldx + k) * (size_t)ref_bytes(x_type));
    for (int64_t j = 0; j < (ROWS - 1) * ldx + k; j++) ref_store(x_type, x, j, test_uniform(-8, 8));
    lpgemm_run_args_t args = {.m = ROWS, .x = x, .ldx = ldx, .x_type = x_type};
    check_tables(&args, k, NULL);
    test_free(x);
  }
}

/* Steps of ones with one other element. A double holds the sums of 2^43 and 1 with all weights, not those of 2^44
 * and 1. The last step is nothing but 2^100, where the kernel's limit is. */
static void kept_steps(void) {
  if (!test_case("lut/tables/kept")) return;
  const float other[] = {1, 0x1p43f, 0x1p44f, INFINITY, NAN};
  const int kept[] = {0, 0, 1, 1, 1, 1};
  float x[COUNT(kept) * STEP];
  for (int i = 0; i < COUNT(x); i++) x[i] = i < 5 * STEP ? 1 : 0x1p100f;
  for (int i = 0; i < 5; i++) x[i * STEP + test_between(0, STEP - 1)] = other[i];
  lpgemm_run_args_t args = {.m = 1, .x = x, .ldx = COUNT(x), .x_type = LPGEMM_F32};
  check_tables(&args, COUNT(x), kept);
}

/* ---- tables inside and outside ---- */

static problem_spec make_spec(lpgemm_dtype_t type, int64_t m, int64_t n, int64_t k) {
  problem_spec s = {.desc = {.size = sizeof s.desc}, .m = m, .alpha = 1};
  s.desc.n = n;
  s.desc.k = k;
  s.desc.type = type;
  s.x_type = LPGEMM_F16;
  s.y_type = LPGEMM_F32;
  return s;
}

/* Runs the problem with tables that are made here, and without X. */
static lpgemm_status_t run_with_tables(problem *p, lpgemm_handle_t with) {
  lpgemm_run_args_t args = p->args;
  void *tables = make_tables(&args, p->spec.desc.k, &p->args.tables_bytes);
  p->args.tables = tables;
  p->args.x = NULL;
  lpgemm_status_t status = problem_run(p, with, lut_kernel);
  p->args = args;
  test_free(tables);
  return status;
}

/* Right, and the same bits with tables made before. */
static void check_both_ways(problem *p) {
  size_t bytes = problem_y_bytes(p);
  void *first = test_alloc(bytes);
  problem_expect(p);
  CHECK_STATUS(problem_run(p, handle, lut_kernel), LPGEMM_SUCCESS);
  problem_check(p, lut_kernel);
  memcpy(first, p->y, bytes);
  CHECK_STATUS(run_with_tables(p, handle), LPGEMM_SUCCESS);
  CHECK(memcmp(first, p->y, bytes) == 0);
  test_free(first);
}

static void check_spec(const problem_spec *spec) {
  problem p;
  if (problem_make(&p, handle, spec)) check_both_ways(&p);
  problem_free(&p);
}

static const struct {
  const char *name;
  lpgemm_dtype_t scale, super;
  lpgemm_zero_t zero;
  lpgemm_dtype_t zero_type, super_zero;
  float constant;
} forms[] = {
    {"plain", 0, 0, LPGEMM_ZERO_NONE, 0, 0, 0},
    {"constant", LPGEMM_F32, 0, LPGEMM_ZERO_CONSTANT, 0, 0, 1.5f},
    {"u8", LPGEMM_F16, 0, LPGEMM_ZERO_PER_GROUP, LPGEMM_U8, 0, 0},
    {"f32", LPGEMM_BF16, 0, LPGEMM_ZERO_PER_GROUP, LPGEMM_F32, 0, 0},
    {"minimum", LPGEMM_E8M0, 0, LPGEMM_ZERO_MINIMUM, LPGEMM_F16, 0, 0},
    {"levels", LPGEMM_UINT(4), LPGEMM_F16, LPGEMM_ZERO_NONE, 0, 0, 0},
    {"level-minima", LPGEMM_UINT(6), LPGEMM_F16, LPGEMM_ZERO_MINIMUM, LPGEMM_UINT(4), LPGEMM_F16, 0},
};

static void set_form(lpgemm_weight_desc_t *d, int form, int64_t group_k) {
  d->group_k = group_k;
  d->scale_type = forms[form].scale;
  d->super_scale_type = forms[form].super;
  if (d->super_scale_type && group_k) d->super_k = 2 * group_k;
  d->zero = forms[form].zero;
  d->zero_type = forms[form].zero_type;
  d->super_zero_type = forms[form].super_zero;
  d->zero_constant = forms[form].constant;
}

static void same_bits(void) {
  const int64_t groups[] = {0, 16, 48, 128};
  const lpgemm_dtype_t x_types[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32, LPGEMM_I8, LPGEMM_E5M2, LPGEMM_BIPOLAR(3)};
  for (int i = 0; i < COUNT(weight_types) * COUNT(forms); i++) {
    int form = i % COUNT(forms);
    lpgemm_dtype_t type = weight_types[i / COUNT(forms)];
    if (!test_case("lut/same/%s/%s", lpgemm_dtype_name(type), forms[form].name)) continue;
    problem_spec s = make_spec(type, test_between(1, 35), test_between(1, 50), test_between(1, 700));
    set_form(&s.desc, form, groups[i % COUNT(groups)]);
    s.x_type = x_types[i % COUNT(x_types)];
    if (s.x_type == LPGEMM_I8) s.x_scale_mode = LPGEMM_X_SCALE_ROW;
    s.pad_x = i % 2;
    check_spec(&s);
  }
}

/* ---- one set of tables, many matrices ---- */

static void shared_tables(void) {
  if (!test_case("lut/shared")) return;
  enum { ROWS = 5, COLUMNS = 301 };
  problem_spec s = make_spec(LPGEMM_UINT(1), ROWS, 1, COLUMNS);
  problem first;
  if (problem_make(&first, handle, &s)) {
    size_t bytes;
    void *tables = make_tables(&first.args, COLUMNS, &bytes);
    for (int i = 0; i < COUNT(weight_types); i++) {
      problem_spec other = make_spec(weight_types[i], ROWS, 7 + 5 * i, COLUMNS);
      set_form(&other.desc, i % COUNT(forms), 32);
      problem p;
      if (problem_make(&p, handle, &other)) {
        p.args.x = first.args.x;
        problem_expect(&p);
        p.args.x = NULL;
        p.args.tables = tables;
        p.args.tables_bytes = bytes;
        CHECK_STATUS(problem_run(&p, handle, lut_kernel), LPGEMM_SUCCESS);
        problem_check(&p, lpgemm_dtype_name(weight_types[i]));
      }
      problem_free(&p);
    }
    test_free(tables);
  }
  problem_free(&first);
}

/* 600 rows of 64 KiB of tables are more than the workspace takes at a time. */
static void pieces(void) {
  if (!test_case("lut/pieces")) return;
  problem_spec s = make_spec(LPGEMM_INT(2), 600, 2, 4096);
  problem p;
  if (problem_make(&p, handle, &s)) {
    size_t few, many;
    CHECK_STATUS(lpgemm_workspace_size(handle, p.weights, 16, &p.args, &few), LPGEMM_SUCCESS);
    p.args.kernel = lut_kernel;
    CHECK_STATUS(lpgemm_workspace_size(handle, p.weights, 600, &p.args, &many), LPGEMM_SUCCESS);
    CHECK(few <= many && many < 600 * (size_t)65536);
    check_both_ways(&p);
  }
  problem_free(&p);
}

/* ---- cancellation ---- */

/* Weights that are exactly zero but for a few columns, as a zero point or as scale and minimum that cancel. */
static const struct {
  const char *name;
  lpgemm_zero_t zero;
  lpgemm_dtype_t zero_type, scale_type;
} cancelling[] = {
    {"constant", LPGEMM_ZERO_CONSTANT, 0, LPGEMM_F16},
    {"u8", LPGEMM_ZERO_PER_GROUP, LPGEMM_U8, LPGEMM_F16},
    {"minimum", LPGEMM_ZERO_MINIMUM, LPGEMM_F32, LPGEMM_F32},
};

enum { CANCEL_N = 20, CANCEL_K = 512, CANCEL_ZERO = 6, CANCEL_GROUP = 128 };

/* Column c may have weights: one of every lane's four, now and then. */
static int has_weights(int64_t c) { return c % 16 == 3 * (c / 16 % 5); }

/* x is of magnitude `large` where all weights are zero, and `small` elsewhere. The result must be as good as if the
 * large ones were not there: nothing but the roundings of small products. An fp32 sum with a large one in it is off by
 * up to large * 2^-25, which is checked to be far more than that. */
static void cancel(int form, lpgemm_dtype_t x_type, double large, double small) {
  if (!test_case("lut/cancel/%s/%s/%g", cancelling[form].name, lpgemm_dtype_name(x_type), large)) return;
  enum { GROUPS = CANCEL_N * CANCEL_K / CANCEL_GROUP };
  lpgemm_weight_desc_t desc = {.size = sizeof desc, .n = CANCEL_N, .k = CANCEL_K, .group_k = CANCEL_GROUP};
  desc.type = LPGEMM_UINT(4);
  desc.scale_type = cancelling[form].scale_type;
  desc.zero = cancelling[form].zero;
  desc.zero_type = cancelling[form].zero_type;
  if (desc.zero == LPGEMM_ZERO_CONSTANT) desc.zero_constant = CANCEL_ZERO;
  _Alignas(16) uint8_t codes[CANCEL_N * CANCEL_K], zeros[4 * GROUPS], scales[4 * GROUPS], x[4 * CANCEL_K];
  float y[CANCEL_N];
  double w[CANCEL_K], want[CANCEL_N], bound[CANCEL_N];
  for (int i = 0; i < CANCEL_N * CANCEL_K; i++) {
    codes[i] = (uint8_t)(has_weights(i % CANCEL_K) ? test_between(0, 15) : CANCEL_ZERO);
  }
  for (int i = 0; i < GROUPS; i++) { /* 21 bits: 6 times it is an fp32 number */
    double scale = ref_round(desc.scale_type, (double)test_between(1 << 20, 1 << 21) * 0x1p-21);
    ref_store(desc.scale_type, scales, i, scale);
    if (desc.zero_type) ref_store(desc.zero_type, zeros, i, desc.zero_type == LPGEMM_U8 ? CANCEL_ZERO : -6 * scale);
  }
  for (int c = 0; c < CANCEL_K; c++) {
    double magnitude = test_uniform(0.5, 1) * (has_weights(c) ? small : large);
    ref_store(x_type, x, c, test_between(0, 1) ? magnitude : -magnitude);
  }
  lpgemm_weight_source_t source = {.size = sizeof source, .codes = codes, .codes_bytes = sizeof codes};
  source.scales = scales;
  source.scales_bytes = (size_t)(GROUPS * ref_bytes(desc.scale_type));
  source.zeros = desc.zero_type ? zeros : NULL;
  source.zeros_bytes = desc.zero_type ? (size_t)(GROUPS * ref_bytes(desc.zero_type)) : 0;
  for (int64_t n = 0; n < CANCEL_N; n++) {
    double total = 0;
    want[n] = 0;
    ref_weight_row(&desc, &source, n, w);
    for (int c = 0; c < CANCEL_K; c++) {
      CHECK(has_weights(c) || w[c] == 0);
      want[n] += ref_load(x_type, x, c) * w[c];
      total += fabs(ref_load(x_type, x, c) * w[c]);
    }
    bound[n] = ref_epsilon(LPGEMM_F32) * fabs(want[n]) + 0x1p-23 * total;
    CHECK(large * 0x1p-25 > 100 * bound[n]);
  }
  lpgemm_weights_t weights = NULL;
  CHECK_STATUS(lpgemm_pack_weights(handle, &desc, &source, NULL, 0, &weights), LPGEMM_SUCCESS);
  lpgemm_run_args_t args = {.size = sizeof args, .weights = weights, .m = 1, .x = x, .x_type = x_type, .y = y};
  args.y_type = LPGEMM_F32;
  args.kernel = lut_kernel;
  size_t bytes = 0;
  void *tables = make_tables(&args, CANCEL_K, &bytes);
  args.tables = tables;
  args.tables_bytes = bytes;
  CHECK_STATUS(lpgemm_run(handle, &args), LPGEMM_SUCCESS);
  CHECK_MATRIX(compare_matrix(LPGEMM_F32, y, CANCEL_N, 1, CANCEL_N, want, bound, 1), lut_kernel);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  test_free(tables);
}

/* ---- the rest ---- */

/* Inf and NaN reach exactly the outputs that they reach in fp64: such steps are multiplied out. */
static void not_finite(void) {
  const lpgemm_dtype_t x_types[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32, LPGEMM_E4M3, LPGEMM_E5M2};
  for (int i = 0; i < COUNT(x_types); i++) {
    if (!test_case("lut/not-finite/%s", lpgemm_dtype_name(x_types[i]))) continue;
    problem_spec s = make_spec(LPGEMM_INT(3), 5, 33, 200);
    s.x_type = x_types[i];
    s.not_finite = 1;
    problem p;
    if (problem_make(&p, handle, &s)) {
      check_both_ways(&p);
      CHECK_MATRIX(compare_matrix(s.y_type, p.y, p.args.ldy, s.m, s.desc.n, p.want, p.bound, 1), lut_kernel);
    }
    problem_free(&p);
  }
}

/* alpha = 0 reads no tables: these are NaN. */
static void unread(void) {
  if (!test_case("lut/unread")) return;
  problem_spec s = make_spec(LPGEMM_UINT(2), 3, 20, 100);
  s.alpha = 0;
  s.beta = 1;
  problem p;
  if (problem_make(&p, handle, &s)) {
    problem_expect(&p);
    CHECK_STATUS(lpgemm_lut_size(handle, s.m, s.desc.k, &p.args.tables_bytes), LPGEMM_SUCCESS);
    void *tables = test_alloc(p.args.tables_bytes);
    memset(tables, 0xff, p.args.tables_bytes);
    p.args.tables = tables;
    p.args.x = NULL;
    CHECK_STATUS(problem_run(&p, handle, lut_kernel), LPGEMM_SUCCESS);
    problem_check(&p, lut_kernel);
    test_free(tables);
  }
  problem_free(&p);
}

static void threads(void) {
  if (!test_case("lut/threads")) return;
  lpgemm_handle_t many = problem_handle(5);
  problem_spec s = make_spec(LPGEMM_UINT(3), 21, 150, 500);
  set_form(&s.desc, 2, 64);
  problem p;
  if (problem_make(&p, handle, &s)) {
    void *first = test_alloc(problem_y_bytes(&p));
    CHECK_STATUS(problem_run(&p, handle, lut_kernel), LPGEMM_SUCCESS);
    memcpy(first, p.y, problem_y_bytes(&p));
    CHECK_STATUS(problem_run(&p, many, lut_kernel), LPGEMM_SUCCESS);
    CHECK(memcmp(first, p.y, problem_y_bytes(&p)) == 0);
    test_free(first);
  }
  problem_free(&p);
  CHECK_STATUS(lpgemm_destroy(many), LPGEMM_SUCCESS);
}

static void refused(void) {
  if (!test_case("lut/refused")) return;
  problem_spec s = make_spec(LPGEMM_UINT(4), 3, 20, 100);
  problem p;
  if (problem_make(&p, handle, &s)) {
    size_t bytes;
    uint8_t *tables = make_tables(&p.args, s.desc.k, &bytes);
    p.args.x = NULL;
    p.args.tables = tables;
    p.args.tables_bytes = bytes - 1;
    CHECK_STATUS(problem_run(&p, handle, lut_kernel), LPGEMM_BUFFER_TOO_SMALL);
    p.args.tables = tables + 8;
    p.args.tables_bytes = bytes;
    CHECK_STATUS(problem_run(&p, handle, lut_kernel), LPGEMM_MISALIGNED);
    p.args.tables = tables;
    CHECK_STATUS(problem_run(&p, handle, "reference.any.any.1x1.cpu"), LPGEMM_NOT_SUPPORTED);
    for (size_t i = 0; i < problem_y_bytes(&p); i++) CHECK_INT(((uint8_t *)p.y)[i], 0xff);
    CHECK_STATUS(problem_run(&p, handle, NULL), LPGEMM_SUCCESS); /* automatic choice takes the kernel that can */
    test_free(tables);
  }
  problem_free(&p);
}

void suite_lut(void) {
  const lpgemm_dtype_t x_types[] = {LPGEMM_F16,  LPGEMM_BF16, LPGEMM_F32,     LPGEMM_I8,
                                    LPGEMM_E4M3, LPGEMM_E5M2, LPGEMM_UINT(4), LPGEMM_BIPOLAR(2)};
  handle = problem_handle(2);
  for (int i = 0; i < COUNT(x_types); i++) random_tables(x_types[i]);
  kept_steps();
  same_bits();
  shared_tables();
  pieces();
  for (int form = 0; form < COUNT(cancelling); form++) {
    cancel(form, LPGEMM_F16, 60000, 0x1p-20);
    cancel(form, LPGEMM_BF16, 1e4, 0x1p-20);
    cancel(form, LPGEMM_BF16, 1e30, 1e-30); /* steps without tables */
    cancel(form, LPGEMM_F32, 1e4, 1e-10);
  }
  not_finite();
  unread();
  threads();
  refused();
  lpgemm_destroy(handle);
}
