/* The lookup kernels and their tables. test_gemm.c runs the kernels over the whole matrix of types and shapes; here is
 * what only table lookup has. ISA stands for every instruction set that this machine has a kernel for:
 *
 *   lut/tables           every entry is the sum that lut.h says, of activations as they are or rounded within the
 * bound; the tables are the same bytes from every instruction set lut/ISA/lmma         integers by integers give what
 * the instruction of LUT Tensor Core gives lut/ISA/same         tables made before the call give the bits of tables
 * made inside; right for every type and zero lut/ISA/shared       one set of tables serves matrices of every width
 *   lut/ISA/pieces       more rows than memory holds tables of, and a row longer than that
 *   lut/ISA/cancel       large activations on weights that are zero leave no error
 *   lut/ISA/fast         the tables of the level FAST, on even data and with outliers
 *   lut/ISA/accuracy     what each kind of table loses of Gaussian data, with outliers and without (docs/lut.md)
 *   lut/ISA/not-finite, lut/ISA/unread, lut/ISA/threads
 *   lut/isa              all instruction sets give the same bits
 *   lut/automatic        a plain call takes the kernel, without workspace */
#include <math.h>

#include "compare.h"
#include "cpu/cpu.h"
#include "lut/lut.h"
#include "problem.h"
#include "ref/gemm_ref.h"
#include "ref/lmma.h"
#include "test.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* The instruction set under test. */
static const char *isa;

/* The kernel of this instruction set for a type of weights. */
static const char *kernel_for(lpgemm_dtype_t type) {
  static char name[64];
  snprintf(name, sizeof name, "lut.u%d.any.4.%s", (int)(type & 0xff), isa);
  return name;
}

static lpgemm_handle_t handle;

/* The instruction sets that have kernels, the widest last. */
static const struct {
  const char *word;
  int32_t isa;
} sets[] = {{"base", LPG_ISA_BASE},
#if defined(__aarch64__)
            {"neon", LPG_ISA_NEON}
#else
            {"avx2", LPG_ISA_AVX2},
            {"vbmi", LPG_ISA_VBMI}
#endif
};

/* The last one that this machine has. */
static int widest(void) {
  int32_t all = 0;
  int i = COUNT(sets) - 1;
  CHECK_STATUS(lpgemm_i_cpu_isa(&all), LPGEMM_SUCCESS);
  while (sets[i].isa & ~all) i--;
  return i;
}

static const lpgemm_dtype_t weight_types[] = {
    LPGEMM_UINT(1), LPGEMM_UINT(2),    LPGEMM_UINT(3),    LPGEMM_UINT(4),    LPGEMM_INT(2),     LPGEMM_INT(3),
    LPGEMM_INT(4),  LPGEMM_BIPOLAR(1), LPGEMM_BIPOLAR(2), LPGEMM_BIPOLAR(3), LPGEMM_BIPOLAR(4),
};

/* ---- tables ---- */

/* The args' X prepared for their kernel, in a new buffer of just the size that the library asks for; tables are at its
 * end. */
static uint8_t *prepare(const lpgemm_run_args_t *args, size_t *bytes) {
  CHECK_STATUS(lpgemm_prepared_x_size(handle, args, bytes), LPGEMM_SUCCESS);
  uint8_t *prepared = test_alloc(*bytes);
  memset(prepared, 0xff, *bytes);
  CHECK_STATUS(lpgemm_prepare_x(handle, args, prepared, *bytes), LPGEMM_SUCCESS);
  return prepared;
}

/* Column c of a row, 0 beyond its end. */
static double at(const lpgemm_run_args_t *args, int64_t k, int64_t row, int64_t c) {
  return c < k ? ref_load(args->x_type, args->x, row * args->ldx + c) : 0.0;
}

static int is_kept(const lpg_lut_block *b, int c) { return b->kept[c / 32] >> c % 32 & 1; }

/* The integer that stands for column c of a block: from entry 15, which has all four of a table as they are, and the
 * entry that has this one negated. */
static double activation_of(const lpg_lut_block *b, int c) {
  int t = c % 8 / 2, j = c / 8 % 2 + 2 * (c % 2);
  uint32_t entry[2] = {0, 0};
  for (int d = 0; d < LPG_LUT_DIGITS; d++) {
    entry[0] |= (uint32_t)b->digit[c / 16][d][t][15] << 8 * d;
    entry[1] |= (uint32_t)b->digit[c / 16][d][t][15 - (1 << j)] << 8 * d;
  }
  return ((double)entry[0] - (double)entry[1]) / 2;
}

/* Bits of entry e say which of the columns 2t, 2t + 8, 2t + 1, 2t + 9 count as they are; the others count negated. */
static int table_is_right(const lpg_lut_block *b, int step, int t) {
  const int column[] = {2 * t, 2 * t + 8, 2 * t + 1, 2 * t + 9};
  for (int e = 0; e < LPG_LUT_ENTRIES; e++) {
    double want = 0x1p31 + 0x1p15 - t % 2, got = 0;
    for (int j = 0; j < 4; j++) want += (e >> j & 1 ? 1 : -1) * activation_of(b, 16 * step + column[j]);
    for (int d = 0; d < LPG_LUT_DIGITS; d++) got += ldexp(b->digit[step][d][t][e], 8 * d);
    if (got != want) return 0;
  }
  return 1;
}

/* Tables by the kernel of an instruction set for weights of one bit, which looks up on all of them. */
static uint8_t *make_tables(const char *by, lpgemm_run_args_t args, int64_t k, size_t *bytes) {
  lpgemm_weight_desc_t desc = {.size = sizeof desc, .n = 1, .k = k, .type = LPGEMM_UINT(1)};
  uint8_t *codes = test_alloc((size_t)k), *prepared = NULL;
  lpgemm_weight_source_t source = {.size = sizeof source, .codes = codes, .codes_bytes = (size_t)k};
  memset(codes, 1, (size_t)k);
  char name[64];
  snprintf(name, sizeof name, "lut.u1.any.4.%s", by);
  args.size = sizeof args;
  args.kernel = name;
  args.y_type = LPGEMM_F32;
  CHECK_STATUS(lpgemm_pack_weights(handle, &desc, &source, NULL, 0, &args.weights), LPGEMM_SUCCESS);
  prepared = prepare(&args, bytes);
  CHECK_STATUS(lpgemm_weights_destroy(args.weights), LPGEMM_SUCCESS);
  test_free(codes);
  return prepared;
}

/* kept: 1 for each column of row 0 that must be kept out of the tables; NULL if none may be. An activation loses at
 * most a quarter of what EXACT allows, k * 2^-23 of it. */
static void check_tables(const lpgemm_run_args_t *args, int64_t k, const uint8_t *kept) {
  size_t bytes, same_bytes;
  const int64_t blocks = (k + LPG_LUT_K - 1) / LPG_LUT_K;
  const size_t own = (size_t)(args->m * blocks) * sizeof(lpg_lut_block);
  uint8_t *prepared = make_tables("base", *args, k, &bytes);
  CHECK(bytes > own && bytes < own + 1024);
  const lpg_lut_block *tables = (const lpg_lut_block *)(const void *)(prepared + bytes - own);
  for (int64_t i = 0; i < args->m * blocks; i++) {
    const lpg_lut_block *b = tables + i;
    double before = 0;
    for (int c = 0; c < LPG_LUT_K; c++) {
      int64_t column = i % blocks * LPG_LUT_K + c;
      double x = at(args, k, i / blocks, column), q = activation_of(b, c);
      CHECK_INT(is_kept(b, c), kept && column < k && kept[column]);
      CHECK((double)b->x[c] == x || (isnan(b->x[c]) && isnan(x)));
      CHECK(is_kept(b, c) ? q == 0 : fabs(q * b->unit - x) <= 0x1p-25 * (double)k * fabs(x));
      if (c % 16 == 0) CHECK(b->before[c / 16] == before);
      before += q;
    }
    CHECK(b->before[LPG_LUT_STEPS] == before);
    for (int t = 0; t < LPG_LUT_STEPS * LPG_LUT_LANES; t++) CHECK(table_is_right(b, t / 4, t % 4));
  }
  for (int i = 1; i <= widest(); i++) {
    uint8_t *same = make_tables(sets[i].word, *args, k, &same_bytes);
    CHECK_INT(same_bytes, bytes);
    CHECK(memcmp(same + bytes - own, tables, own) == 0);
    test_free(same);
  }
  test_free(prepared);
}

static void random_tables(lpgemm_dtype_t x_type) {
  const int64_t columns[] = {1, 15, 16, 17, 255, 256, 257, 600};
  for (int i = 0; i < COUNT(columns); i++) {
    int64_t k = columns[i], ldx = k + i % 3;
    if (!test_case("lut/tables/%s/k%d", lpgemm_dtype_name(x_type), (int)k)) continue;
    enum { ROWS = 3 };
    void *x = test_alloc((size_t)((ROWS - 1) * ldx + k) * (size_t)ref_bytes(x_type));
    for (int64_t j = 0; j < (ROWS - 1) * ldx + k; j++) { /* nothing too small for the tables */
      double magnitude = test_uniform(1, 8);
      ref_store(x_type, x, j, test_between(0, 1) ? magnitude : -magnitude);
    }
    lpgemm_run_args_t args = {.m = ROWS, .x = x, .ldx = ldx, .x_type = x_type};
    check_tables(&args, k, NULL);
    test_free(x);
  }
}

/* Below 2^27 the units are halves, so 1 is an activation, and above it is not to be rounded: it is kept, as what is not
 * finite is. 2^-20 beside 1 is not a unit's multiple; 3 * 2^-27 is. Zeros are no loss. The last block is nothing but
 * zeros. */
static void kept_activations(void) {
  if (!test_case("lut/tables/kept")) return;
  enum { BLOCKS = 6, K = BLOCKS * LPG_LUT_K };
  const float large[BLOCKS] = {0x1p27f, 0x1.8p28f, INFINITY, NAN, 1, 0}, others[BLOCKS] = {1, 1, 1, 1, 0x1.8p-26f, 0};
  const int keeps_large[BLOCKS] = {0, 0, 1, 1, 0, 0}, keeps_others[BLOCKS] = {0, 1, 0, 0, 0, 0};
  float x[K];
  uint8_t kept[K];
  for (int i = 0; i < K; i++) {
    int b = i / LPG_LUT_K, is_large = i % LPG_LUT_K == 37 * b;
    x[i] = is_large ? large[b] : i % 3 == 2 ? 0 : others[b];
    kept[i] = (uint8_t)(is_large ? keeps_large[b] : keeps_others[b] && x[i] != 0);
  }
  lpgemm_run_args_t args = {.m = 1, .x = x, .ldx = K, .x_type = LPGEMM_F32};
  check_tables(&args, K, kept);
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

/* ---- the instruction ---- */

/* Small integers without zeros and scales: every sum is exact, so results must be equal. */
static void lmma(int bits, int64_t m, int64_t n, int64_t k) {
  if (!test_case("lut/%s/lmma/u%d/%dx%dx%d", isa, bits, (int)m, (int)n, (int)k)) return;
  lpgemm_weight_desc_t desc = {.size = sizeof desc, .n = n, .k = k, .type = LPGEMM_UINT((uint32_t)bits)};
  uint8_t *codes = test_alloc((size_t)(n * k)), *x = test_alloc((size_t)(m * k));
  double *wide_x = test_alloc((size_t)(m * k) * sizeof *wide_x), *want = test_alloc((size_t)(m * n) * sizeof *want);
  float *y = test_alloc((size_t)(m * n) * sizeof *y);
  for (int64_t i = 0; i < n * k; i++) codes[i] = (uint8_t)test_between(0, (1 << bits) - 1);
  for (int64_t i = 0; i < m * k; i++) {
    x[i] = (uint8_t)test_random();
    wide_x[i] = ref_load(LPGEMM_I8, x, i);
  }
  ref_lmma_gemm(bits, m, n, k, wide_x, codes, want);
  lpgemm_weight_source_t source = {.size = sizeof source, .codes = codes, .codes_bytes = (size_t)(n * k)};
  lpgemm_weights_t weights = NULL;
  CHECK_STATUS(lpgemm_pack_weights(handle, &desc, &source, NULL, 0, &weights), LPGEMM_SUCCESS);
  lpgemm_run_args_t args = {.size = sizeof args, .weights = weights, .m = m, .x = x, .x_type = LPGEMM_I8, .y = y};
  args.y_type = LPGEMM_F32;
  args.kernel = kernel_for(desc.type);
  CHECK_STATUS(lpgemm_run(handle, &args), LPGEMM_SUCCESS);
  for (int64_t i = 0; i < m * n; i++) CHECK((double)y[i] == want[i]);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  test_free(codes);
  test_free(x);
  test_free(wide_x);
  test_free(want);
  test_free(y);
}

/* An X that nobody may read: of the size of the args' own, all bits set. */
static void *unreadable(const lpgemm_run_args_t *args, int64_t k) {
  const size_t bytes = (size_t)(((args->m - 1) * args->ldx + k) * ref_bytes(args->x_type));
  return memset(test_alloc(bytes), 0xff, bytes);
}

/* Runs the problem with tables that are made here, and an X that is none. */
static lpgemm_status_t run_with_tables(problem *p, lpgemm_handle_t with) {
  lpgemm_run_args_t args = p->args;
  p->args.kernel = kernel_for(p->spec.desc.type);
  uint8_t *tables = prepare(&p->args, &p->args.prepared_x_bytes);
  void *x = unreadable(&args, p->spec.desc.k);
  p->args.prepared_x = tables;
  p->args.x = x;
  lpgemm_status_t status = problem_run(p, with, kernel_for(p->spec.desc.type));
  p->args = args;
  test_free(tables);
  test_free(x);
  return status;
}

/* Right, and the same bits with tables made before. */
static void check_both_ways(problem *p) {
  size_t bytes = problem_y_bytes(p);
  void *first = test_alloc(bytes);
  problem_expect(p);
  CHECK_STATUS(problem_run(p, handle, kernel_for(p->spec.desc.type)), LPGEMM_SUCCESS);
  problem_check(p, kernel_for(p->spec.desc.type));
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
    if (!test_case("lut/%s/same/%s/%s", isa, lpgemm_dtype_name(type), forms[form].name)) continue;
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
  if (!test_case("lut/%s/shared", isa)) return;
  enum { ROWS = 5, COLUMNS = 301 };
  problem_spec s = make_spec(LPGEMM_UINT(1), ROWS, 1, COLUMNS);
  problem first;
  if (problem_make(&first, handle, &s)) {
    size_t bytes;
    first.args.kernel = kernel_for(s.desc.type);
    uint8_t *tables = prepare(&first.args, &bytes);
    void *x = unreadable(&first.args, COLUMNS);
    for (int i = 0; i < COUNT(weight_types); i++) {
      problem_spec other = make_spec(weight_types[i], ROWS, 7 + 5 * i, COLUMNS);
      set_form(&other.desc, i % COUNT(forms), 32);
      problem p;
      if (problem_make(&p, handle, &other)) {
        p.args.x = first.args.x;
        problem_expect(&p);
        p.args.x = x;
        p.args.prepared_x = tables;
        p.args.prepared_x_bytes = bytes;
        CHECK_STATUS(problem_run(&p, handle, kernel_for(p.spec.desc.type)), LPGEMM_SUCCESS);
        problem_check(&p, lpgemm_dtype_name(weight_types[i]));
      }
      problem_free(&p);
    }
    test_free(tables);
    test_free(x);
  }
  problem_free(&first);
}

/* 600 rows of 83 KiB of tables are more than the memory of the handle takes at a time. */
static void pieces(void) {
  if (!test_case("lut/%s/pieces", isa)) return;
  problem_spec s = make_spec(LPGEMM_INT(2), 600, 2, 4096);
  problem p;
  if (problem_make(&p, handle, &s)) {
    size_t bytes;
    p.args.kernel = kernel_for(s.desc.type);
    CHECK_STATUS(lpgemm_workspace_size(handle, p.weights, 600, &p.args, &bytes), LPGEMM_SUCCESS);
    CHECK_INT(bytes, 0);
    check_both_ways(&p);
  }
  problem_free(&p);
}

/* A row whose tables the memory of the handle does not hold takes workspace: problem_run() binds it, and automatic
 * choice, for calls that bind none, leaves the kernel alone. */
static void long_row(void) {
  if (!test_case("lut/%s/pieces/row", isa)) return;
  problem_spec s = make_spec(LPGEMM_UINT(1), 2, 3, 120000);
  problem p;
  if (problem_make(&p, handle, &s)) {
    size_t bytes, plain;
    CHECK_STATUS(lpgemm_workspace_size(handle, p.weights, 2, &p.args, &plain), LPGEMM_SUCCESS);
    CHECK_INT(plain, 0);
    p.args.kernel = kernel_for(s.desc.type);
    CHECK_STATUS(lpgemm_workspace_size(handle, p.weights, 2, &p.args, &bytes), LPGEMM_SUCCESS);
    CHECK_INT(bytes, 469 * sizeof(lpg_lut_block));
    check_both_ways(&p);
  }
  problem_free(&p);
}

/* A workspace that is bound for other layers and too small for the tables: nothing is written behind it. */
static void small_workspace(void) {
  if (!test_case("lut/%s/pieces/workspace", isa)) return;
  enum { BOUND = 512, BEHIND = 128 * 1024 };
  problem_spec s = make_spec(LPGEMM_UINT(2), 3, 20, 700);
  problem p;
  if (problem_make(&p, handle, &s)) {
    problem_expect(&p);
    p.args.kernel = kernel_for(s.desc.type);
    uint8_t *workspace = test_alloc(BOUND + BEHIND);
    memset(workspace, 0xcd, BOUND + BEHIND);
    CHECK_STATUS(lpgemm_set_workspace(handle, workspace, BOUND), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_run(handle, &p.args), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_set_workspace(handle, NULL, 0), LPGEMM_SUCCESS);
    problem_check(&p, kernel_for(s.desc.type));
    int written = 0;
    for (int i = 0; i < BEHIND; i++) written += workspace[BOUND + i] != 0xcd;
    CHECK_INT(written, 0);
    test_free(workspace);
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
  if (!test_case("lut/%s/cancel/%s/%s/%g", isa, cancelling[form].name, lpgemm_dtype_name(x_type), large)) return;
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
  args.kernel = kernel_for(desc.type);
  uint8_t *tables = prepare(&args, &args.prepared_x_bytes);
  args.prepared_x = tables;
  CHECK_STATUS(lpgemm_run(handle, &args), LPGEMM_SUCCESS);
  CHECK_MATRIX(compare_matrix(LPGEMM_F32, y, CANCEL_N, 1, CANCEL_N, want, bound, 1), isa);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  test_free(tables);
}

/* ---- the rest ---- */

/* Inf and NaN reach exactly the outputs that they reach in fp64: such activations are multiplied. */
static void not_finite(void) {
  const lpgemm_dtype_t x_types[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32, LPGEMM_E4M3, LPGEMM_E5M2};
  for (int i = 0; i < COUNT(x_types); i++) {
    if (!test_case("lut/%s/not-finite/%s", isa, lpgemm_dtype_name(x_types[i]))) continue;
    problem_spec s = make_spec(LPGEMM_INT(3), 5, 33, 200);
    s.x_type = x_types[i];
    s.not_finite = 1;
    problem p;
    if (problem_make(&p, handle, &s)) {
      check_both_ways(&p);
      CHECK_MATRIX(compare_matrix(s.y_type, p.y, p.args.ldy, s.m, s.desc.n, p.want, p.bound, 1), isa);
    }
    problem_free(&p);
  }
}

/* alpha = 0 reads no tables: these are garbage. */
static void unread(void) {
  if (!test_case("lut/%s/unread", isa)) return;
  problem_spec s = make_spec(LPGEMM_UINT(2), 3, 20, 100);
  s.alpha = 0;
  s.beta = 1;
  problem p;
  if (problem_make(&p, handle, &s)) {
    problem_expect(&p);
    p.args.kernel = kernel_for(p.spec.desc.type);
    uint8_t *tables = prepare(&p.args, &p.args.prepared_x_bytes);
    const size_t own = (size_t)s.m * sizeof(lpg_lut_block);
    memset(tables + p.args.prepared_x_bytes - own, 0xff, own);
    p.args.prepared_x = tables;
    CHECK_STATUS(problem_run(&p, handle, kernel_for(p.spec.desc.type)), LPGEMM_SUCCESS);
    problem_check(&p, kernel_for(p.spec.desc.type));
    test_free(tables);
  }
  problem_free(&p);
}

static void threads(void) {
  if (!test_case("lut/%s/threads", isa)) return;
  lpgemm_handle_t many = problem_handle(5);
  problem_spec s = make_spec(LPGEMM_UINT(3), 21, 150, 500);
  set_form(&s.desc, 2, 64);
  problem p;
  if (problem_make(&p, handle, &s)) {
    void *first = test_alloc(problem_y_bytes(&p));
    CHECK_STATUS(problem_run(&p, handle, kernel_for(p.spec.desc.type)), LPGEMM_SUCCESS);
    memcpy(first, p.y, problem_y_bytes(&p));
    CHECK_STATUS(problem_run(&p, many, kernel_for(p.spec.desc.type)), LPGEMM_SUCCESS);
    CHECK(memcmp(first, p.y, problem_y_bytes(&p)) == 0);
    test_free(first);
  }
  problem_free(&p);
  CHECK_STATUS(lpgemm_destroy(many), LPGEMM_SUCCESS);
}

/* ---- the level FAST ---- */

/* The largest magnitude of an array. */
static double largest(lpgemm_dtype_t type, const void *array, int64_t count) {
  double most = 0;
  for (int64_t i = 0; i < count; i++) most = fmax(most, fabs(ref_load(type, array, i)));
  return most;
}

/* What an entry may be off, relative to the largest activation. Two digits: up to 2^15 units, and |x| reaches 2^27
 * units in every block. A byte: half its scale, and 127 scales are at most 4 activations. Where weights are multiplied:
 * up to 2^15 + 129 units of each of the four, times twice what a lookup counts. */
static double entry_error(int bits) {
  if (strcmp(isa, "vbmi") != 0) return 0x1p-12;
  return bits == 1 ? 2.0 / 127.0 : 8 * 0x1.02p-12;
}

/* A quarter of the activations as many lookups count 2^bits - 1 halves of it, times the scale. */
static void fast(lpgemm_dtype_t type, double outliers) {
  if (!test_case("lut/%s/fast/%s/outliers%d", isa, lpgemm_dtype_name(type), (int)outliers)) return;
  problem_spec s = make_spec(type, 3, 100, 1024);
  set_form(&s.desc, 2, 128);
  problem p;
  if (problem_make(&p, handle, &s)) {
    int64_t elements = s.m * s.desc.k, differ = 0;
    for (int64_t i = 0; i < elements; i++) {
      ref_store(s.x_type, p.x, i, test_uniform(-1, 1) * (i % 100 == 7 ? outliers : 1));
    }
    check_both_ways(&p);
    p.args.level = LPGEMM_LEVEL_FAST;
    void *exact = test_alloc(problem_y_bytes(&p));
    memcpy(exact, p.y, problem_y_bytes(&p));
    double lookups = (double)s.desc.k / 4 * (double)((1 << (type & 0xff)) - 1) / 2;
    double scale = largest(s.desc.scale_type, p.source.scales, s.desc.n * s.desc.k / 128);
    for (int64_t i = 0; i < s.m * s.desc.n; i++) {
      p.bound[i] += entry_error((int)(type & 0xff)) * largest(s.x_type, p.x, elements) * lookups * scale;
    }
    CHECK_STATUS(problem_run(&p, handle, kernel_for(type)), LPGEMM_SUCCESS);
    CHECK_MATRIX(compare_matrix(s.y_type, p.y, p.args.ldy, s.m, s.desc.n, p.want, p.bound, 1), isa);
    for (int64_t i = 0; i < s.m * s.desc.n; i++) differ += ((float *)p.y)[i] != ((float *)exact)[i];
    CHECK(differ > 0); /* or these would be the tables of EXACT */
    test_free(exact);
  }
  problem_free(&p);
}

/* The error of a run, by norm. */
static double relative_error(const problem *p) {
  double error = 0, norm = 0;
  for (int64_t i = 0; i < p->args.m * p->spec.desc.n; i++) {
    const double off = (double)((const float *)p->y)[i] - p->want[i];
    error += off * off;
    norm += p->want[i] * p->want[i];
  }
  return sqrt(error / norm);
}

static double gaussian(void) {
  double x = -6;
  for (int i = 0; i < 12; i++) x += test_uniform(0, 1);
  return x;
}

/* Random codes with the zero in the middle by Gaussian activations, 1 % of which are a hundred times as large if asked.
 * EXACT gives the oracle's number, rounded to fp32. */
static void accuracy(int bits, int outliers) {
  if (!test_case("lut/%s/accuracy/u%d/%s", isa, bits, outliers ? "outliers" : "gaussian")) return;
  problem_spec s = make_spec(LPGEMM_UINT((uint32_t)bits), 1, 512, 4096);
  set_form(&s.desc, 1, 128);
  s.desc.zero = LPGEMM_ZERO_CONSTANT;
  s.desc.zero_type = 0;
  s.desc.zero_constant = (float)(1 << (bits - 1));
  problem p;
  if (problem_make(&p, handle, &s)) {
    for (int64_t i = 0; i < s.desc.k; i++) {
      ref_store(s.x_type, p.x, i, gaussian() * (outliers && test_between(0, 99) == 0 ? 100 : 1));
    }
    problem_expect(&p);
    CHECK_STATUS(problem_run(&p, handle, kernel_for(s.desc.type)), LPGEMM_SUCCESS);
    CHECK(relative_error(&p) <= ref_epsilon(LPGEMM_F32));
    p.args.level = LPGEMM_LEVEL_FAST;
    CHECK_STATUS(problem_run(&p, handle, kernel_for(s.desc.type)), LPGEMM_SUCCESS);
    CHECK(relative_error(&p) <= 5e-3);
    void *first = test_alloc(problem_y_bytes(&p));
    memcpy(first, p.y, problem_y_bytes(&p));
    CHECK_STATUS(run_with_tables(&p, handle), LPGEMM_SUCCESS);
    CHECK(memcmp(first, p.y, problem_y_bytes(&p)) == 0);
    test_free(first);
  }
  problem_free(&p);
}

/* ---- all instruction sets, and none by name ---- */

/* Integers are added up in any order, and fp64 in one: where there is no fused multiplication the last bits of fp64
 * differ, which rounding to fp16 hides but for cases as rare as 2^-30. */
static void same_bits_of_all(void) {
  if (!test_case("lut/isa")) return;
  problem_spec s = make_spec(LPGEMM_UINT(3), 7, 77, 900);
  set_form(&s.desc, 2, 48);
  s.y_type = LPGEMM_F16;
  problem p;
  if (problem_make(&p, handle, &s)) {
    size_t bytes = problem_y_bytes(&p);
    void *first = test_alloc(bytes);
    isa = "base";
    CHECK_STATUS(problem_run(&p, handle, kernel_for(s.desc.type)), LPGEMM_SUCCESS);
    memcpy(first, p.y, bytes);
    for (int i = 1; i <= widest(); i++) {
      isa = sets[i].word;
      CHECK_STATUS(problem_run(&p, handle, kernel_for(s.desc.type)), LPGEMM_SUCCESS);
      CHECK(memcmp(first, p.y, bytes) == 0);
    }
    test_free(first);
  }
  problem_free(&p);
}

/* A plain call, without workspace, takes the widest kernel for one row of few bits. */
static void automatic(void) {
  for (int bits = 1; bits <= 4; bits++) {
    if (!test_case("lut/automatic/u%d", bits)) continue;
    if (widest() == 0) {
      test_skip("the kernel in plain C is slower than blocked");
      continue;
    }
    if (strcmp(sets[widest()].word, "avx2") == 0 && bits > 1) {
      test_skip("by AVX2 dot takes less");
      continue;
    }
    problem_spec s = make_spec(LPGEMM_UINT((uint32_t)bits), 1, 500, 600);
    set_form(&s.desc, 2, 128);
    problem p;
    if (problem_make(&p, handle, &s)) {
      char text[4096];
      size_t bytes;
      CHECK_STATUS(lpgemm_explain(handle, &p.args, text, sizeof text), LPGEMM_SUCCESS);
      isa = sets[widest()].word;
      const char *name = kernel_for(s.desc.type);
      CHECK(strncmp(text, name, strlen(name)) == 0);
      CHECK_STATUS(lpgemm_workspace_size(handle, p.weights, 1, &p.args, &bytes), LPGEMM_SUCCESS);
      CHECK_INT(bytes, 0);
      problem_expect(&p);
      CHECK_STATUS(problem_run(&p, handle, NULL), LPGEMM_SUCCESS);
      problem_check(&p, name);
    }
    problem_free(&p);
  }
}

static void suite_of_isa(void) {
  for (int bits = 1; bits <= 4; bits++) {
    lmma(bits, 1, 1, 1);
    lmma(bits, 3, 17, 50);
    lmma(bits, 2, 64, 256);
    lmma(bits, 5, 130, 519);
  }
  same_bits();
  shared_tables();
  pieces();
  long_row();
  small_workspace();
  for (int form = 0; form < COUNT(cancelling); form++) {
    cancel(form, LPGEMM_F16, 60000, 0x1p-20);
    cancel(form, LPGEMM_BF16, 1e4, 0x1p-20);
    cancel(form, LPGEMM_BF16, 1e30, 1e-30); /* all small ones are kept out of the tables */
    cancel(form, LPGEMM_F32, 1e4, 1e-10);
  }
  for (int bits = 1; bits <= 4; bits++) {
    fast(LPGEMM_UINT((uint32_t)bits), 1);
    fast(LPGEMM_UINT((uint32_t)bits), 50);
    accuracy(bits, 0);
    accuracy(bits, 1);
  }
  not_finite();
  unread();
  threads();
}

void suite_lut(void) {
  const lpgemm_dtype_t x_types[] = {LPGEMM_F16,  LPGEMM_BF16, LPGEMM_F32,     LPGEMM_I8,
                                    LPGEMM_E4M3, LPGEMM_E5M2, LPGEMM_UINT(4), LPGEMM_BIPOLAR(2)};
  handle = problem_handle(2);
  for (int i = 0; i < COUNT(x_types); i++) random_tables(x_types[i]);
  kept_activations();
  for (int i = 0; i <= widest(); i++) {
    isa = sets[i].word;
    suite_of_isa();
  }
  same_bits_of_all();
  automatic();
  lpgemm_destroy(handle);
}
