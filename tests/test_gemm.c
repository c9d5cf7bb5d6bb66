/* lpgemm_run() against the fp64 reference, by every kernel that this machine runs.
 *
 *   gemm/decode    every code of every type against every kind of X: Y is W itself
 *   gemm/exact     every type against every kind of X on numbers whose sums are exact: equal to the bit
 *   gemm/pair      every pair of the levels below in some case, within the derived bound
 *   gemm/random    levels drawn by the seed
 *   gemm/few_rows  1 to 16 rows of fp16 and bf16, on the GPU; gemm/many_rows 17 to 300 rows of the same
 *   gemm/edge      the shapes of shapes/edge.txt, gemm/model some of shapes/model.txt
 *   gemm/cancel    weights of which next to nothing is left; gemm/one_code  weights that fp32 can lose on the way
 *   gemm/int32, gemm/empty, gemm/unread, gemm/bad_scale: what their names say */
#include <math.h>

#include "compare.h"
#include "problem.h"
#include "ref/gemm_ref.h"
#include "sample.h"
#include "test.h"

static struct {
  lpgemm_handle_t handle;
  const char *kernel[PROBLEM_KERNELS];
  int cases[PROBLEM_KERNELS]; /* that the kernel has run */
  int kernels;
} all;

/* ---- one problem by every kernel ---- */

/* Second runs and rows alone only up to this many multiplications: they find nothing more at large sizes. */
static const double repeat_limit = 4e5;

/* By automatic choice and then by every kernel that can: a forced kernel that cannot must say so. */
static void check_all_kernels(problem *p) {
  double size = (double)p->args.m * (double)p->spec.desc.n * (double)p->spec.desc.k;
  problem_expect(p);
  CHECK_STATUS(problem_run(p, all.handle, NULL), LPGEMM_SUCCESS);
  problem_check(p, NULL);
  for (int i = 0; i < all.kernels; i++) {
    lpgemm_status_t status = problem_run(p, all.handle, all.kernel[i]);
    if (status == LPGEMM_NOT_SUPPORTED) continue;
    CHECK_STATUS(status, LPGEMM_SUCCESS);
    problem_check(p, all.kernel[i]);
    all.cases[i]++;
    if (size > repeat_limit) continue;
    problem_check_again(p, all.handle, all.kernel[i]);
    if (p->args.y_type != LPGEMM_I32) problem_check_alone(p, all.handle, all.kernel[i]);
  }
}

static void check_spec(const problem_spec *spec) {
  problem p;
  if (problem_make_drawn(&p, all.handle, spec)) check_all_kernels(&p);
  problem_free(&p);
}

/* ---- levels ---- */

static const lpgemm_dtype_t x_types[] = {
    LPGEMM_F16,     LPGEMM_BF16,    LPGEMM_F32,     LPGEMM_I8,         LPGEMM_E4M3,       LPGEMM_E5M2,
    LPGEMM_UINT(1), LPGEMM_UINT(4), LPGEMM_UINT(8), LPGEMM_INT(2),     LPGEMM_INT(5),     LPGEMM_BIPOLAR(1),
    LPGEMM_INT(4),  LPGEMM_UINT(7), LPGEMM_INT(3),  LPGEMM_BIPOLAR(3), LPGEMM_BIPOLAR(8),
};
static const lpgemm_dtype_t real_types[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32};
static const int64_t groups[] = {16, 32, 48, 64, 128, 0, 4096};
static const int64_t rows[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 257, 1000};
static const struct {
  lpgemm_dtype_t code, super;
} scale_kinds[] = {
    {0, 0},
    {LPGEMM_F16, 0},
    {LPGEMM_BF16, 0},
    {LPGEMM_F32, 0},
    {LPGEMM_E8M0, 0},
    {LPGEMM_E4M3, 0},
    {LPGEMM_UINT(4), LPGEMM_F16},
    {LPGEMM_UINT(6), LPGEMM_BF16},
    {LPGEMM_I8, LPGEMM_F32},
    {LPGEMM_E4M3, LPGEMM_F32},
};
static const struct {
  lpgemm_zero_t zero;
  lpgemm_dtype_t code, super;
  float constant;
} zero_kinds[] = {
    {LPGEMM_ZERO_NONE, 0, 0, 0},
    {LPGEMM_ZERO_CONSTANT, 0, 0, 1},
    {LPGEMM_ZERO_CONSTANT, 0, 0, 1.5f},
    {LPGEMM_ZERO_PER_GROUP, LPGEMM_U8, 0, 0},
    {LPGEMM_ZERO_PER_GROUP, LPGEMM_U16, 0, 0},
    {LPGEMM_ZERO_PER_GROUP, LPGEMM_F16, 0, 0},
    {LPGEMM_ZERO_PER_GROUP, LPGEMM_BF16, 0, 0},
    {LPGEMM_ZERO_PER_GROUP, LPGEMM_F32, 0, 0},
    {LPGEMM_ZERO_MINIMUM, LPGEMM_F16, 0, 0},
    {LPGEMM_ZERO_MINIMUM, LPGEMM_BF16, 0, 0},
    {LPGEMM_ZERO_MINIMUM, LPGEMM_F32, 0, 0},
    {LPGEMM_ZERO_MINIMUM, LPGEMM_UINT(4), LPGEMM_F16, 0},
    {LPGEMM_ZERO_MINIMUM, LPGEMM_UINT(6), LPGEMM_F32, 0},
    {LPGEMM_ZERO_MINIMUM, LPGEMM_I8, LPGEMM_BF16, 0},
    {LPGEMM_ZERO_MINIMUM, LPGEMM_E4M3, LPGEMM_F16, 0},
};
static const float alpha_beta[][2] = {{1, 0}, {1, 1}, {-0.5f, 0}, {-0.5f, 1},    {1, -0.5f},
                                      {0, 0}, {0, 1}, {0, -0.5f}, {-0.5f, -0.5f}};
static const lpgemm_dtype_t quantized_types[] = {0, LPGEMM_I8, LPGEMM_E4M3, LPGEMM_INT(3), LPGEMM_BIPOLAR(4)};
static const struct {
  int64_t low, high;
} sizes[] = {{1, 1}, {2, 15}, {16, 16}, {17, 40}, {64, 64}, {41, 140}, {128, 128}, {141, 300}, {301, 1100}};

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))
enum {
  TYPE,
  GROUP,
  SCALE,
  ZERO,
  GLOBAL, /* none, 0.37, or what takes the largest weight to about 1 */
  X_TYPE,
  X_SCALE,
  QUANTIZE,
  Y_TYPE,
  ROWS,
  SIZE_N,
  SIZE_K,
  PADS,
  ALPHA_BETA,
  BIAS,
  ACTIVATION,
  MISALIGNED,
  IN_PLACE,
  NOT_FINITE,
  ORDER,
  CODES,
  FACTORS
};

static const int levels[FACTORS] = {PROBLEM_TYPES,
                                    COUNT(groups),
                                    COUNT(scale_kinds),
                                    COUNT(zero_kinds),
                                    3,
                                    COUNT(x_types),
                                    3,
                                    COUNT(quantized_types),
                                    COUNT(real_types),
                                    COUNT(rows),
                                    COUNT(sizes),
                                    COUNT(sizes),
                                    2,
                                    COUNT(alpha_beta),
                                    4,
                                    5,
                                    2,
                                    2,
                                    2,
                                    2,
                                    2};

/* What a case asks for must exist, and end in time. */
static int is_legal(const int *at) {
  lpgemm_dtype_t x = x_types[at[X_TYPE]];
  int kind = (int)LPGEMM_DTYPE_KIND(x), is_real = kind == LPGEMM_KIND_REAL;
  if (zero_kinds[at[ZERO]].super && !scale_kinds[at[SCALE]].super) return 0;
  if (is_real ? at[X_SCALE] != 0 : at[QUANTIZE] != 0) return 0;
  if (at[NOT_FINITE] && !is_real && kind != LPGEMM_KIND_FLOAT) return 0;
  if (at[NOT_FINITE] && (at[ACTIVATION] || at[QUANTIZE])) return 0; /* their infinities differ */
  return (double)rows[at[ROWS]] * (double)sizes[at[SIZE_N]].high * (double)sizes[at[SIZE_K]].high <= 5e6;
}

static double largest_weight(lpgemm_dtype_t type) {
  return LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_FLOAT
             ? ref_value(type,
                         (1u << (lpgemm_dtype_bits(type) - 1)) - (type == LPGEMM_E4M3   ? 2
                                                                  : type == LPGEMM_E5M2 ? 5
                                                                                        : 1),
                         NULL)
             : ldexp(1, lpgemm_dtype_bits(type));
}

/* A spec of these levels; what the levels leave open is drawn by the case's seed. */
static problem_spec make_spec(const int *at) {
  problem_spec s = {.desc = {.size = sizeof s.desc}};
  lpgemm_weight_desc_t *d = &s.desc;
  d->type = problem_types()[at[TYPE]];
  d->n = test_between(sizes[at[SIZE_N]].low, sizes[at[SIZE_N]].high);
  d->k = test_between(sizes[at[SIZE_K]].low, sizes[at[SIZE_K]].high);
  d->group_k = groups[at[GROUP]];
  d->scale_type = scale_kinds[at[SCALE]].code;
  d->super_scale_type = scale_kinds[at[SCALE]].super;
  if (d->super_scale_type && d->group_k) d->super_k = d->group_k * test_between(0, 4);
  d->zero = zero_kinds[at[ZERO]].zero;
  d->zero_type = zero_kinds[at[ZERO]].code;
  d->super_zero_type = zero_kinds[at[ZERO]].super;
  d->zero_constant = zero_kinds[at[ZERO]].constant;
  if (at[GLOBAL] == 1) d->global_scale = 0.37f;
  if (at[GLOBAL] == 2)
    d->global_scale =
        (float)(d->scale_type ? ldexp(1, -ilogb(largest_weight(d->type)) / 2) : 1 / largest_weight(d->type));
  if (LPGEMM_DTYPE_KIND(d->type) == LPGEMM_KIND_CODEBOOK) {
    for (int i = 0; i < 1 << lpgemm_dtype_bits(d->type); i++) d->codebook[i] = (float)test_uniform(-1, 1);
  }
  s.m = rows[at[ROWS]];
  s.x_type = x_types[at[X_TYPE]];
  s.x_scale_mode = (lpgemm_x_scale_t)at[X_SCALE];
  s.quantize_x = quantized_types[at[QUANTIZE]];
  s.y_type = real_types[at[Y_TYPE]];
  s.alpha = alpha_beta[at[ALPHA_BETA]][0];
  s.beta = alpha_beta[at[ALPHA_BETA]][1];
  s.bias_type = at[BIAS] ? real_types[at[BIAS] - 1] : 0;
  s.activation = (lpgemm_activation_t)at[ACTIVATION];
  s.misaligned = at[MISALIGNED];
  s.in_place = at[IN_PLACE];
  s.not_finite = at[NOT_FINITE];
  s.order = (lpgemm_order_t)at[ORDER];
  s.code_layout = (lpgemm_code_layout_t)at[CODES];
  s.no_workspace = (int)test_between(0, 1);
  if (at[PADS]) {
    s.pad_x = (int)test_between(0, 20);
    s.pad_y = (int)test_between(1, 20);
    s.pad_c = (int)test_between(1, 20);
    s.pad_codes = (int)test_between(0, 20);
  }
  return s;
}

static void draw_levels(int *at, uint64_t (*random)(void)) {
  do {
    for (int f = 0; f < FACTORS; f++) at[f] = (int)(random() % (uint64_t)levels[f]);
  } while (!is_legal(at));
}

/* ---- pairs: a fixed list of cases, in which every possible pair of levels of two factors meets ---- */

enum { LEVELS = 256, PAIR_CASES = 4000 };

static uint64_t plan_random(void) { /* not the case's: the list is the same whatever the filter */
  static uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

static int first_level(int factor) {
  int first = 0;
  for (int f = 0; f < factor; f++) first += levels[f];
  return first;
}

static int count_new(const int *at, uint8_t met[LEVELS][LEVELS], const int *first, int mark) {
  int count = 0;
  for (int a = 0; a < FACTORS; a++) {
    for (int b = a + 1; b < FACTORS; b++) {
      uint8_t *cell = &met[first[a] + at[a]][first[b] + at[b]];
      count += !*cell;
      if (mark) *cell = 1;
    }
  }
  return count;
}

/* Draws cases around one pair and keeps the one with the most pairs that are new; 0 if the pair is impossible. */
static int best_with(int a, int level_a, int b, int level_b, uint8_t met[LEVELS][LEVELS], const int *first, int *best) {
  int most = 0;
  for (int tries = 0, legal = 0; tries < 3000 && legal < 30; tries++) {
    int at[FACTORS];
    for (int f = 0; f < FACTORS; f++) at[f] = (int)(plan_random() % (uint64_t)levels[f]);
    at[a] = level_a;
    at[b] = level_b;
    if (!is_legal(at)) continue;
    legal++;
    int count = count_new(at, met, first, 0);
    if (count <= most) continue;
    most = count;
    memcpy(best, at, sizeof at);
  }
  return most;
}

/* The factors of each case into cases[]; returns their number. */
static int plan_pairs(int (*cases)[FACTORS]) {
  static uint8_t met[LEVELS][LEVELS];
  int first[FACTORS], count = 0;
  for (int f = 0; f < FACTORS; f++) first[f] = first_level(f);
  for (int a = 0; a < FACTORS; a++) {
    for (int b = a + 1; b < FACTORS; b++) {
      for (int i = 0; i < levels[a] * levels[b]; i++) {
        int la = i / levels[b], lb = i % levels[b];
        if (met[first[a] + la][first[b] + lb] || count == PAIR_CASES) continue;
        if (!best_with(a, la, b, lb, met, first, cases[count])) continue;
        count_new(cases[count++], met, first, 1);
      }
    }
  }
  return count;
}

static void suite_pairs(void) {
  static int cases[PAIR_CASES][FACTORS];
  int count = plan_pairs(cases);
  for (int i = 0; i < count; i++) {
    if (!test_case("gemm/pair/%04d", i)) continue;
    CHECK(count < PAIR_CASES);
    problem_spec spec = make_spec(cases[i]);
    check_spec(&spec);
  }
}

/* ---- random levels, given shapes ---- */

static void check_random(int64_t m, int64_t n, int64_t k) {
  int at[FACTORS];
  draw_levels(at, test_random);
  problem_spec spec = make_spec(at);
  if (m >= 0) {
    spec.m = m;
    spec.desc.n = n;
    spec.desc.k = k;
  }
  check_spec(&spec);
}

/* ---- few and many rows: what kernels of fp16 and bf16 take, often enough for those that take one type only ---- */

/* Of a dequantiser and type of X: of the integers, or of the floats, of a width. */
enum { FEW_CASES = 240, MANY_CASES = 260 };

/* Floats with values that fp16 does not reach, nor their halves: with fp16 activations they take another path. */
static int exceeds_fp16(lpgemm_dtype_t type) {
  int exponent = (int)(type >> 8 & 0xffu);
  return LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_FLOAT && exponent > 5;
}

/* Types that share a dequantiser with `type`, itself among them. */
static int sharers(lpgemm_dtype_t type, lpgemm_dtype_t x) {
  uint32_t kind = LPGEMM_DTYPE_KIND(type), others = 0;
  for (int i = 0; i < PROBLEM_TYPES; i++) {
    lpgemm_dtype_t other = problem_types()[i];
    uint32_t k = LPGEMM_DTYPE_KIND(other);
    int same = kind == k || (kind <= LPGEMM_KIND_BIPOLAR && k <= LPGEMM_KIND_BIPOLAR);
    same = same && lpgemm_dtype_bits(other) == lpgemm_dtype_bits(type);
    others += same && !(x == LPGEMM_F16 && exceeds_fp16(other));
  }
  return others ? (int)others : 1;
}

static problem_spec draw_rows_of(int type, int x) {
  int at[FACTORS], is_integer = LPGEMM_DTYPE_KIND(problem_types()[type]) <= LPGEMM_KIND_BIPOLAR;
  do {
    draw_levels(at, test_random);
  } while (at[QUANTIZE] || (!is_integer && zero_kinds[at[ZERO]].zero != LPGEMM_ZERO_NONE) || at[GROUP] == 2 ||
           at[GROUP] == 6 || x_types[at[X_TYPE]] != x_types[x]);
  at[TYPE] = type;
  problem_spec spec = make_spec(at);
  if (spec.desc.super_scale_type) spec.desc.super_k = 256 * test_between(0, 2);
  if (spec.desc.super_k && spec.desc.group_k == 0) spec.desc.super_k = 0;
  return spec;
}

static void check_few_rows(int type, int x, int few) {
  problem_spec spec = draw_rows_of(type, x);
  spec.m = test_between(few ? 1 : 9, few ? 8 : 16);
  if (spec.desc.n > 400) spec.desc.n = test_between(1, 100);
  if (few && lpgemm_dtype_bits(spec.desc.type) <= 2 && test_between(0, 5)) problem_suit_chunks(&spec);
  check_spec(&spec);
}

/* Every size of item of the wide kernels, in one slice of K or several. */
static void check_many_rows(int type, int x) {
  static const int most[] = {33, 70, 140, 300};
  static const float zeros[] = {-5, 10, -3.5f, 0, 2, 8, 100, -0.125f}; /* codes' and beyond, to be taken off or added */
  problem_spec spec = draw_rows_of(type, x);
  if ((spec.desc.zero == LPGEMM_ZERO_MINIMUM || spec.desc.zero == LPGEMM_ZERO_PER_GROUP) && test_between(0, 1)) {
    spec.desc.zero = LPGEMM_ZERO_CONSTANT; /* more of these */
    spec.desc.zero_type = spec.desc.super_zero_type = 0;
  }
  if (spec.desc.zero == LPGEMM_ZERO_CONSTANT) spec.desc.zero_constant = zeros[test_between(0, 7)];
  spec.m = test_between(17, most[test_between(0, 3)]);
  spec.desc.n = test_between(1, spec.m > 140 ? 60 : 150);
  spec.desc.k = test_between(1, spec.m > 140 ? 600 : 900) + (spec.desc.group_k == 16 && !spec.exact ? 4096 : 0);
  check_spec(&spec);
}

/* More than one item of the dense kernels, in rows or tokens, now and then; with X of 8 bits what is exact in them. */
static void check_dense(int type, int x, int large) {
  problem_spec spec = draw_rows_of(type, x);
  if (LPGEMM_DTYPE_KIND(spec.x_type) != LPGEMM_KIND_REAL) {
    spec.desc.group_k = 128 * test_between(0, 3);
    spec.desc.super_k = 0;
    if (spec.desc.zero == LPGEMM_ZERO_MINIMUM || spec.desc.zero == LPGEMM_ZERO_CONSTANT) {
      spec.desc.zero = LPGEMM_ZERO_CONSTANT;
      spec.desc.zero_type = spec.desc.super_zero_type = 0;
      spec.desc.zero_constant = (float)test_between(0, 9);
    }
  } else if (spec.desc.zero == LPGEMM_ZERO_CONSTANT && !spec.exact) {
    spec.desc.zero_constant = 0.001f; /* far below the offsets of signed integers */
  }
  spec.m = test_between(33, large ? 300 : 150);
  spec.desc.n = test_between(1, large ? 300 : 100);
  spec.desc.k = test_between(1, large ? 300 : 700);
  check_spec(&spec);
}

/* Rows so long that the workspace holds only some of them at once. */
static void check_chunks(lpgemm_dtype_t x) {
  problem_spec s = {.desc = {.size = sizeof s.desc}, .m = 33, .x_type = x, .y_type = LPGEMM_F32, .alpha = 1};
  s.desc.type = LPGEMM_UINT(4);
  s.desc.scale_type = LPGEMM_F16;
  s.desc.n = 600;
  s.desc.k = x == LPGEMM_F16 ? 43200 : 86400;
  check_spec(&s);
}

static void suite_dequant(void) {
  if (test_backend() != LPGEMM_BACKEND_CUDA) return;
  for (int t = 0; t < PROBLEM_TYPES; t++) {
    for (int x = 0; x < 6; x++) {
      for (int i = 0; i < (x_types[x] == LPGEMM_I8 ? 24 : x < 2 ? 4 : 8) && x_types[x] != LPGEMM_F32; i++) {
        const char *type = lpgemm_dtype_name(problem_types()[t]);
        if (!test_case("gemm/dense/%s/%s/%03d", type, lpgemm_dtype_name(x_types[x]), i)) continue;
        check_dense(t, x, i == 0);
      }
    }
  }
  if (test_case("gemm/dense/chunks/f16")) check_chunks(LPGEMM_F16);
  if (test_case("gemm/dense/chunks/i8")) check_chunks(LPGEMM_I8);
}

static void suite_few_and_many_rows(void) {
  if (test_backend() != LPGEMM_BACKEND_CUDA) return; /* the CPU's kernels take any number of rows */
  for (int t = 0; t < PROBLEM_TYPES; t++) {
    const char *type = lpgemm_dtype_name(problem_types()[t]);
    for (int x = 0; x < 2; x++) {
      const int each = lpgemm_dtype_bits(problem_types()[t]) <= 2 ? 400 : FEW_CASES; /* more kernels than one */
      for (int i = 0; i < each / sharers(problem_types()[t], x_types[x]) + 1; i++) {
        if (!test_case("gemm/few_rows/%s/%s/%03d", type, lpgemm_dtype_name(x_types[x]), i)) continue;
        check_few_rows(t, x, i % 8 != 0);
      }
      for (int i = 0; i < MANY_CASES / sharers(problem_types()[t], x_types[x]) + 1; i++) {
        if (!test_case("gemm/many_rows/%s/%s/%03d", type, lpgemm_dtype_name(x_types[x]), i)) continue;
        check_many_rows(t, x);
      }
    }
  }
}

/* Opens a file that lies beside this one. */
static FILE *open_beside(const char *name) {
  char path[1024];
  const char *slash = strrchr(__FILE__, '/');
  snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - __FILE__ + 1) : 0, __FILE__, name);
  FILE *file = fopen(path, "r");
  if (!file && test_case("gemm/%s", name)) test_fail(__FILE__, __LINE__, "cannot open %s", path);
  return file;
}

static void suite_edge_shapes(void) {
  FILE *file = open_beside("shapes/edge.txt");
  char line[256];
  long long m, n, k;
  while (file && fgets(line, sizeof line, file)) {
    if (sscanf(line, "%lld %lld %lld", &m, &n, &k) != 3) continue;
    for (int i = 0; i < 2; i++) {
      if (test_case("gemm/edge/%lldx%lldx%lld/%d", m, n, k, i)) check_random(m, n, k);
    }
  }
  if (file) fclose(file);
}

/* A matrix as a model has it: int4, groups of 128, fp16. */
static void check_model(int64_t n, int64_t k) {
  problem_spec s = {.desc = {.size = sizeof s.desc}};
  s.desc.type = LPGEMM_UINT(4);
  s.desc.group_k = 128;
  s.desc.scale_type = LPGEMM_F16;
  s.desc.zero = LPGEMM_ZERO_PER_GROUP;
  s.desc.zero_type = LPGEMM_U8;
  s.desc.n = n;
  s.desc.k = k;
  s.m = 2;
  s.x_type = s.y_type = LPGEMM_F16;
  s.alpha = 1;
  check_spec(&s);
}

static void suite_model_shapes(void) {
  FILE *file = open_beside("shapes/model.txt");
  char line[256], name[64];
  long long n, k;
  while (file && fgets(line, sizeof line, file)) {
    if (line[0] == '#' || sscanf(line, "%63s %lld %lld", name, &n, &k) != 3 || n * k > 17000000) continue;
    if (test_case("gemm/model/%s", name)) check_model(n, k);
  }
  if (file) fclose(file);
}

/* ---- every code ---- */

/* X is m rows of the unit matrix, so Y has m columns of W. Codes that are not finite stand in rows of their own. */
static void check_decode(lpgemm_dtype_t type, lpgemm_dtype_t x_type, int64_t m) {
  enum { K = 37 };
  int64_t codes = (int64_t)1 << lpgemm_dtype_bits(type), special = 0;
  problem_spec s = {.desc = {.size = sizeof s.desc}};
  for (int i = 0; LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_CODEBOOK && i < codes; i++) {
    s.desc.codebook[i] = (float)test_between(-64, 64) / 64; /* a number of every type of X */
  }
  for (uint32_t c = 0; c < codes; c++) special += !isfinite(ref_value(type, c, s.desc.codebook));
  s.desc.type = type;
  s.desc.n = codes + special;
  s.desc.k = K;
  s.m = m;
  s.x_type = x_type;
  s.y_type = LPGEMM_F32;
  s.alpha = 1;
  problem p;
  if (problem_make(&p, all.handle, &s)) {
    uint8_t *code = (uint8_t *)(uintptr_t)p.source.codes, *x = p.x;
    for (int64_t i = 0; i < codes * K; i++) {
      code[i] = (uint8_t)((i / K + i % K * 7) % codes);
      if (!isfinite(ref_value(type, code[i], s.desc.codebook))) code[i] = 0;
    }
    int64_t row = codes;
    for (uint32_t c = 0; c < codes; c++) {
      if (isfinite(ref_value(type, c, s.desc.codebook))) continue;
      memset(code + row * K, 0, K);
      code[row++ * K + c % m] = (uint8_t)c;
    }
    memset(x, 0, (size_t)(m * K * ref_bytes(x_type)));
    for (int64_t i = 0; i < m; i++) ref_store(x_type, x, i * K + i, 1);
    problem_repack(&p, all.handle);
    p.spec.exact = 1;
    p.spec.not_finite = special > 0;
    check_all_kernels(&p);
  }
  problem_free(&p);
}

/* ---- exact sums ---- */

/* Kernels of the GPU round weights to X's type once. bf16 has 8 digits, which a code times a scale plus a minimum, or
 * less a zero that may be negative, may not fit. */
static int bf16_rounds(lpgemm_dtype_t type, int zero_kind) {
  const int bits = lpgemm_dtype_bits(type), integer = LPGEMM_DTYPE_KIND(type) <= LPGEMM_KIND_BIPOLAR;
  const lpgemm_dtype_t zero = zero_kinds[zero_kind].code;
  if (test_backend() == LPGEMM_BACKEND_CPU) return 0;
  if (zero_kinds[zero_kind].zero == LPGEMM_ZERO_MINIMUM) return !integer || bits > 4;
  return zero_kinds[zero_kind].zero == LPGEMM_ZERO_PER_GROUP && zero != LPGEMM_U8 && zero != LPGEMM_U16 && bits > 6;
}

static void check_exact(lpgemm_dtype_t type, lpgemm_dtype_t x_type) {
  /* Codes of 8 bits less 1.5 have 9 digits or more, and bf16 holds 8. */
  const int no_halves =
      LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_CODEBOOK || (lpgemm_dtype_bits(type) == 8 && x_type == LPGEMM_BF16);
  for (int round = 0; round < 3; round++) {
    int at[FACTORS];
    do {
      draw_levels(at, test_random);
    } while ((zero_kinds[at[ZERO]].constant == 1.5f && no_halves) ||
             (x_type == LPGEMM_BF16 && bf16_rounds(type, at[ZERO])));
    at[NOT_FINITE] = at[QUANTIZE] = 0;
    at[ACTIVATION] %= 2; /* none and relu are exact */
    problem_spec s = make_spec(at);
    s.exact = 1;
    s.desc.type = type;
    memset(s.desc.codebook, 0, sizeof s.desc.codebook);
    for (int i = 0; LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_CODEBOOK && i < 1 << lpgemm_dtype_bits(type); i++) {
      s.desc.codebook[i] = (float)test_between(-32, 32) / 4;
    }
    s.desc.global_scale = at[GLOBAL] == 1 ? 0.25f : at[GLOBAL] == 2 ? 2.0f : 0.0f;
    s.desc.n = test_between(1, 70);
    s.desc.k = test_between(1, round == 0 ? 40 : 250);
    s.m = test_between(1, round == 0 ? 40 : 5);
    s.x_type = x_type;
    if (LPGEMM_DTYPE_KIND(x_type) == LPGEMM_KIND_REAL) s.x_scale_mode = LPGEMM_X_SCALE_NONE;
    check_spec(&s);
  }
}

/* ---- weights that cancel ---- */

/* Every 9th column has codes that its zero or minimum cancels, exactly or but for the rounding of the minimum, and X is
 * 30000 times larger there: what is left must be as exact as the bound on |x||w| says. Two levels have the same codes
 * for scales and minima, and super-minima that cancel the super-scales. */
static void check_cancel(lpgemm_dtype_t type, int zero_kind, lpgemm_dtype_t scale_type, lpgemm_dtype_t x_type) {
  enum { N = 40, K = 150, GROUPS = 5, CODE = 3 };
  int two_levels = zero_kinds[zero_kind].super != 0;
  problem_spec s = {.desc = {.size = sizeof s.desc}};
  s.desc.type = type;
  s.desc.n = N;
  s.desc.k = K;
  s.desc.group_k = 32;
  s.desc.zero = zero_kinds[zero_kind].zero;
  s.desc.zero_type = zero_kinds[zero_kind].code;
  s.desc.super_zero_type = zero_kinds[zero_kind].super;
  s.desc.scale_type = two_levels ? s.desc.zero_type : scale_type;
  s.desc.super_scale_type = two_levels ? scale_type : 0;
  double value = ref_value(type, CODE, NULL);
  if (s.desc.zero == LPGEMM_ZERO_CONSTANT) s.desc.zero_constant = (float)value;
  s.m = 7;
  s.x_type = x_type;
  s.y_type = LPGEMM_F32;
  s.alpha = 1;
  problem p;
  if (problem_make(&p, all.handle, &s)) {
    uint8_t *codes = (uint8_t *)(uintptr_t)p.source.codes;
    const void *scales = two_levels ? p.source.super_scales : p.source.scales;
    void *zeros = (void *)(uintptr_t)(two_levels ? p.source.super_zeros : p.source.zeros);
    lpgemm_dtype_t zero_type = two_levels ? s.desc.super_zero_type : s.desc.zero_type;
    for (int i = 0; i < (two_levels ? N : N * GROUPS); i++) {
      double scale = ref_load(scale_type, scales, i);
      if (s.desc.zero == LPGEMM_ZERO_PER_GROUP) ref_store(zero_type, zeros, i, value);
      if (s.desc.zero == LPGEMM_ZERO_MINIMUM) ref_store(zero_type, zeros, i, -value * scale);
    }
    if (two_levels) memcpy((void *)(uintptr_t)p.source.zeros, p.source.scales, p.source.scales_bytes);
    for (int i = 0; i < N * K; i++) {
      if (i % K % 9 == 4) codes[i] = CODE;
    }
    for (int i = 0; i < s.m * K; i++) {
      if (i % K % 9 == 4) ref_store(x_type, p.x, i, 30000 * ref_load(x_type, p.x, i));
    }
    problem_repack(&p, all.handle);
    check_all_kernels(&p);
  }
  problem_free(&p);
}

static void suite_cancel(void) {
  static const lpgemm_dtype_t types[] = {LPGEMM_UINT(2), LPGEMM_UINT(4),    LPGEMM_INT(3),
                                         LPGEMM_INT(8),  LPGEMM_BIPOLAR(2), LPGEMM_FLOAT(2, 1)};
  for (int t = 0; t < COUNT(types); t++) {
    for (int z = 2; z < COUNT(zero_kinds); z++) { /* 1 is a constant like 2 */
      int integers = zero_kinds[z].code == LPGEMM_U8 || zero_kinds[z].code == LPGEMM_U16;
      if (integers && LPGEMM_DTYPE_KIND(types[t]) == LPGEMM_KIND_FLOAT) continue;
      for (int scale = 0; scale < 3; scale++) {
        int x = (t + z + scale) % 3;
        if (!test_case("gemm/cancel/%s/zero_%d/%s/%s", lpgemm_dtype_name(types[t]), z,
                       lpgemm_dtype_name(real_types[scale]), lpgemm_dtype_name(real_types[x]))) {
          continue;
        }
        check_cancel(types[t], z, real_types[scale], real_types[x]);
      }
    }
  }
}

/* ---- weights of one code: next to nothing, or out of fp32's range but for the global scale ---- */

typedef struct one_code {
  lpgemm_dtype_t type;
  int code;
  lpgemm_dtype_t scale_type, super_type; /* super_type: of two levels, then `scale` is the super-scale, the codes 2 */
  double scale;                          /* of a row's first group; an eighth of it for the others */
  float global;
  lpgemm_zero_t zero; /* CONSTANT, or MINIMUM: that which cancels the code but for its rounding to fp32 */
  float constant;
} one_code;

static void check_one_code(const one_code *c) {
  enum { N = 20, K = 300, GROUPS = 3 };
  problem_spec s = {.desc = {.size = sizeof s.desc}};
  s.desc.type = c->type;
  s.desc.n = N;
  s.desc.k = K;
  s.desc.group_k = 128;
  s.desc.super_k = c->super_type ? 128 : 0;
  s.desc.scale_type = c->scale_type;
  s.desc.super_scale_type = c->super_type;
  s.desc.global_scale = c->global;
  s.desc.zero = c->zero;
  s.desc.zero_constant = c->constant;
  s.desc.zero_type = c->zero == LPGEMM_ZERO_MINIMUM ? LPGEMM_F32 : 0;
  if (LPGEMM_DTYPE_KIND(c->type) == LPGEMM_KIND_CODEBOOK) s.desc.codebook[c->code] = 3e38f;
  s.m = 7;
  s.x_type = s.y_type = LPGEMM_F32;
  s.alpha = 1;
  problem p;
  if (problem_make(&p, all.handle, &s)) {
    void *scales = (void *)(uintptr_t)p.source.scales, *supers = (void *)(uintptr_t)p.source.super_scales;
    void *minima = (void *)(uintptr_t)p.source.zeros;
    memset((void *)(uintptr_t)p.source.codes, c->code, N * K);
    for (int i = 0; i < N * GROUPS; i++) {
      double scale = i % GROUPS == 0 ? c->scale : c->scale / 8;
      if (c->super_type) ref_store(c->scale_type, scales, i, 2);
      ref_store(c->super_type ? c->super_type : c->scale_type, c->super_type ? supers : scales, i, scale);
      if (minima) ref_store(LPGEMM_F32, minima, i, -c->code * ref_load(c->scale_type, scales, i));
    }
    problem_repack(&p, all.handle);
    check_all_kernels(&p);
  }
  problem_free(&p);
}

static void suite_one_code(void) {
  static const one_code codes[] = {
      {LPGEMM_UINT(4), 11, LPGEMM_F32, 0, 0.1 / 3, 0, LPGEMM_ZERO_MINIMUM, 0},
      {LPGEMM_UINT(8), 201, LPGEMM_F32, 0, 0.1 / 7, -0.3f, LPGEMM_ZERO_MINIMUM, 0},
      {LPGEMM_UINT(4), 11, LPGEMM_F32, 0, 1e-36, 1e30f, LPGEMM_ZERO_MINIMUM, 0},
      {LPGEMM_UINT(4), 15, LPGEMM_F32, 0, 3e38, 1e-30f, LPGEMM_ZERO_NONE, 0},
      {LPGEMM_UINT(4), 15, LPGEMM_F32, 0, 0x1p73, -1e-30f, LPGEMM_ZERO_NONE, 0}, /* the first group alone is large */
      {LPGEMM_INT(8), 0x80, LPGEMM_BF16, 0, 3e38, 1e-30f, LPGEMM_ZERO_NONE, 0},
      {LPGEMM_UINT(4), 15, LPGEMM_F32, 0, 1e-43, 1e30f, LPGEMM_ZERO_CONSTANT, 7.3f},
      {LPGEMM_UINT(4), 0, LPGEMM_F32, 0, 1, 1e30f, LPGEMM_ZERO_CONSTANT, 1e-42f},
      {LPGEMM_BIPOLAR(2), 2, LPGEMM_E8M0, 0, 0x1p-127, 1e38f, LPGEMM_ZERO_CONSTANT, 0.3f},
      {LPGEMM_FLOAT(7, 0), 127, LPGEMM_F32, 0, 0x1p70, 0x1p-100f, LPGEMM_ZERO_NONE, 0},
      {LPGEMM_FLOAT(7, 0), 1, LPGEMM_F32, 0, 1.1e-25, 0x1p100f, LPGEMM_ZERO_NONE, 0},
      {LPGEMM_CODEBOOK(2), 3, LPGEMM_F16, 0, 1, 1e-30f, LPGEMM_ZERO_NONE, 0},
      {LPGEMM_CODEBOOK(2), 2, LPGEMM_F16, 0, 0x1p-8, 0, LPGEMM_ZERO_CONSTANT, -3e38f},
      {LPGEMM_UINT(4), 9, LPGEMM_E4M3, LPGEMM_F32, 3e38, 1e-30f, LPGEMM_ZERO_NONE, 0},
      {LPGEMM_FLOAT(7, 0), 1, LPGEMM_E4M3, LPGEMM_F32, 3e38, 0, LPGEMM_ZERO_NONE, 0},
      {LPGEMM_FLOAT(7, 0), 127, LPGEMM_I8, LPGEMM_F32, 1e-43, 0, LPGEMM_ZERO_NONE, 0},
  };
  for (int i = 0; i < COUNT(codes); i++) {
    int in_range = codes[i].global == 0 && !codes[i].super_type && codes[i].zero == LPGEMM_ZERO_MINIMUM;
    /* the CUDA kernels promise fp32's range only: they apply the global scale to fp32 sums (docs/numerics.md) */
    if (!in_range && test_backend() == LPGEMM_BACKEND_CUDA) continue;
    if (test_case("gemm/one_code/%02d", i)) check_one_code(&codes[i]);
  }
}

/* ---- integer output ---- */

static void check_int32(lpgemm_dtype_t type, lpgemm_dtype_t x_type, int zero, int round) {
  static const struct {
    lpgemm_zero_t zero;
    lpgemm_dtype_t type;
    float constant;
  } zeros[] = {{LPGEMM_ZERO_NONE, 0, 0},
               {LPGEMM_ZERO_CONSTANT, 0, 3},
               {LPGEMM_ZERO_PER_GROUP, LPGEMM_U8, 0},
               {LPGEMM_ZERO_PER_GROUP, LPGEMM_U16, 0}};
  problem_spec s = {.desc = {.size = sizeof s.desc}};
  s.desc.type = type;
  s.desc.zero = zeros[zero].zero;
  s.desc.zero_type = zeros[zero].type;
  s.desc.zero_constant = zeros[zero].constant;
  s.desc.group_k = groups[test_random() % COUNT(groups)];
  s.desc.n = test_between(1, 60);
  s.desc.k = test_between(1, 600);
  s.m = test_between(1, 20);
  s.x_type = x_type;
  s.y_type = LPGEMM_I32;
  s.alpha = round != 1;
  s.beta = round > 0;
  s.in_place = (int)(test_random() % 2);
  s.misaligned = (int)(test_random() % 2);
  s.pad_x = (int)test_between(0, 9);
  s.pad_y = (int)test_between(0, 9);
  check_spec(&s);
}

/* The largest K whose sums fit, with the largest numbers in it, and one more, which is refused. */
static void check_int32_limit(lpgemm_dtype_t type, uint8_t code, float zero, lpgemm_dtype_t x_type, uint8_t x_code,
                              int64_t largest_k) {
  double product = (ref_value(type, code, NULL) - (double)zero) * ref_value(x_type, x_code, NULL);
  for (int64_t k = largest_k; k <= largest_k + 1; k++) {
    problem_spec s = {.desc = {.size = sizeof s.desc}};
    s.desc.type = type;
    s.desc.n = s.m = 2;
    s.desc.k = k;
    s.desc.zero = zero != 0 ? LPGEMM_ZERO_CONSTANT : LPGEMM_ZERO_NONE;
    s.desc.zero_constant = zero;
    s.x_type = x_type;
    s.y_type = LPGEMM_I32;
    s.alpha = 1;
    problem p;
    if (problem_make(&p, all.handle, &s)) {
      memset((uint8_t *)(uintptr_t)p.source.codes, code, (size_t)(2 * k));
      memset(p.x, x_code, (size_t)(2 * k));
      problem_repack(&p, all.handle);
      if (k == largest_k) {
        CHECK(fabs(product) * (double)k < 0x1p31);
        check_all_kernels(&p);
        CHECK_STATUS(problem_run(&p, all.handle, NULL), LPGEMM_SUCCESS); /* the last kernel may be unable */
        CHECK(((int32_t *)p.y)[3] == (int32_t)(product * (double)k));
      } else {
        CHECK(fabs(product) * (double)k >= 0x1p31);
        memset(p.y, 0x5a, problem_y_bytes(&p));
        CHECK_STATUS(lpgemm_run(all.handle, &p.args), LPGEMM_SIZE_OVERFLOW);
        CHECK(strstr(lpgemm_last_error(), "k =") != NULL);
        for (size_t i = 0; i < problem_y_bytes(&p); i++) CHECK_INT(((uint8_t *)p.y)[i], 0x5a);
      }
    }
    problem_free(&p);
  }
}

typedef enum int32_misuse {
  X_IS_F16,
  X_IS_SCALED,
  ALPHA,
  BETA,
  BIASED,
  ACTIVATED,
  SCALED,
  GLOBALLY,
  FLOATS,
  REAL_ZERO
} int32_misuse;

static void check_int32_refused(int32_misuse what) {
  static const float half = 0.5f, one = 1;
  problem_spec s = {.desc = {.size = sizeof s.desc}};
  s.desc.type = what == FLOATS ? LPGEMM_FLOAT(2, 1) : LPGEMM_INT(4);
  s.desc.n = s.desc.k = 32;
  s.desc.scale_type = what == SCALED ? LPGEMM_F32 : 0;
  s.desc.global_scale = what == GLOBALLY ? 0.5f : 0;
  if (what == REAL_ZERO) {
    s.desc.zero = LPGEMM_ZERO_CONSTANT;
    s.desc.zero_constant = 1.5f;
  }
  s.m = 3;
  s.x_type = what == X_IS_F16 ? LPGEMM_F16 : LPGEMM_I8;
  s.y_type = LPGEMM_I32;
  s.alpha = 1;
  problem p;
  if (problem_make(&p, all.handle, &s)) {
    if (what == ALPHA) p.args.alpha = &half;
    if (what == BETA) p.args.beta = &half;
    if (what == ACTIVATED) p.args.activation = LPGEMM_ACTIVATION_RELU;
    if (what == BIASED) {
      p.args.bias = p.c;
      p.args.bias_type = LPGEMM_F32;
    }
    if (what == X_IS_SCALED) {
      p.args.x_scale = &one;
      p.args.x_scale_mode = LPGEMM_X_SCALE_TENSOR;
    }
    memset(p.y, 0x5a, problem_y_bytes(&p));
    const int is_scalar = what == ALPHA || what == BETA; /* an argument's fault, not the weights' */
    CHECK_STATUS(lpgemm_run(all.handle, &p.args), is_scalar ? LPGEMM_INVALID_ARGUMENT : LPGEMM_NOT_SUPPORTED);
    for (size_t i = 0; i < problem_y_bytes(&p); i++) CHECK_INT(((uint8_t *)p.y)[i], 0x5a);
  }
  problem_free(&p);
}

static void suite_int32(void) {
  static const lpgemm_dtype_t kinds[] = {LPGEMM_UINT(1),    LPGEMM_UINT(2),    LPGEMM_UINT(5),    LPGEMM_UINT(8),
                                         LPGEMM_INT(2),     LPGEMM_INT(3),     LPGEMM_INT(4),     LPGEMM_INT(8),
                                         LPGEMM_BIPOLAR(1), LPGEMM_BIPOLAR(2), LPGEMM_BIPOLAR(4), LPGEMM_BIPOLAR(8)};
  for (int w = 0; w < COUNT(kinds); w++) {
    for (int x = 0; x < COUNT(kinds); x++) {
      int zero = (w + x) % 4, round = (w + 2 * x) % 3;
      if (!test_case("gemm/int32/%s/%s", lpgemm_dtype_name(kinds[w]), lpgemm_dtype_name(kinds[x]))) continue;
      check_int32(kinds[w], kinds[x], zero, round);
    }
  }
  if (test_case("gemm/int32/limit/u8")) check_int32_limit(LPGEMM_UINT(8), 255, 0, LPGEMM_UINT(8), 255, 33025);
  if (test_case("gemm/int32/limit/i8")) check_int32_limit(LPGEMM_INT(8), 128, 0, LPGEMM_I8, 128, 131071);
  if (test_case("gemm/int32/limit/b8")) check_int32_limit(LPGEMM_BIPOLAR(8), 255, 0, LPGEMM_BIPOLAR(8), 0, 33025);
  if (test_case("gemm/int32/limit/zero")) check_int32_limit(LPGEMM_UINT(4), 0, 200, LPGEMM_UINT(8), 255, 42107);
  if (test_case("gemm/int32/limit/negative")) check_int32_limit(LPGEMM_INT(4), 7, -93, LPGEMM_I8, 128, 167772);
  for (int what = X_IS_F16; what <= REAL_ZERO; what++) {
    if (test_case("gemm/int32/refused/%d", what)) check_int32_refused((int32_misuse)what);
  }
}

/* ---- sizes of 0, and memory that may not be touched ---- */

static problem_spec plain_spec(int64_t m, int64_t n, int64_t k) {
  problem_spec s = {.desc = {.size = sizeof s.desc}};
  s.desc.type = LPGEMM_UINT(4);
  s.desc.n = n;
  s.desc.k = k;
  s.desc.group_k = 32;
  s.desc.scale_type = LPGEMM_F16;
  s.m = m;
  s.x_type = s.y_type = s.bias_type = LPGEMM_F16;
  s.alpha = 1;
  s.beta = -0.5f;
  s.pad_y = s.pad_c = 3;
  return s;
}

static void check_empty(int64_t m, int64_t n, int64_t k) {
  problem_spec s = plain_spec(m, n, k);
  problem p;
  if (problem_make(&p, all.handle, &s)) {
    check_all_kernels(&p);
    if (k == 0 || m == 0) p.args.x = NULL;
    if (m == 0) {
      p.args.y = NULL;
      p.args.c = NULL;
      p.args.bias = NULL;
    }
    if (m > 0 && n > 0) CHECK_STATUS(problem_run(&p, all.handle, NULL), LPGEMM_SUCCESS);
    if (m == 0 || n == 0) CHECK_STATUS(lpgemm_run(all.handle, &p.args), LPGEMM_SUCCESS);
    if (m > 0 && n > 0) problem_check(&p, NULL);
  }
  problem_free(&p);
}

/* alpha = 0 reads neither X nor W, beta = 0 does not read C: a read of the locked pages would end the program. */
static void check_unread(void) {
  problem_spec s = plain_spec(5, 40, 70);
  problem p;
  size_t bytes = 0, pages = (size_t)1 << 20;
  CHECK_STATUS(lpgemm_packed_size(&s.desc, &bytes), LPGEMM_SUCCESS);
  CHECK(bytes < pages);
  void *memory = test_map(pages), *locked = test_map(pages);
  test_lock(locked, pages);
  if (problem_make(&p, all.handle, &s)) {
    CHECK_STATUS(lpgemm_weights_destroy(p.weights), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_pack_weights(all.handle, &s.desc, &p.source, memory, pages, &p.weights), LPGEMM_SUCCESS);
    p.args.weights = p.weights;
    p.spec.alpha = 0;
    p.args.x = locked;
    test_lock(memory, pages);
    check_all_kernels(&p);
    test_unlock(memory, pages);
    p.args.x = p.x;
    p.spec.alpha = 1;
    p.spec.beta = 0;
    p.args.c = locked;
    check_all_kernels(&p);
    p.args.c = NULL;
    check_all_kernels(&p);
    p.args.alpha = p.args.beta = NULL; /* the defaults, 1 and 0 */
    check_all_kernels(&p);
  }
  problem_free(&p);
  test_unmap(memory, pages);
  test_unmap(locked, pages);
}

/* A scale that is not finite spoils its row of W, one column of Y, and nothing else. */
static void check_bad_scale(lpgemm_dtype_t scale_type, double bad) {
  problem_spec s = plain_spec(9, 40, 70);
  s.desc.scale_type = scale_type;
  s.not_finite = !isnan(bad); /* of an infinite scale may come NaN or Inf */
  s.x_type = LPGEMM_I8;
  problem p;
  if (problem_make(&p, all.handle, &s)) {
    void *scales = (void *)(uintptr_t)p.source.scales;
    if (scale_type == LPGEMM_E8M0) ((uint8_t *)scales)[3 * 17 + 1] = 255;
    if (scale_type != LPGEMM_E8M0) problem_put(scale_type, scales, 3 * 17 + 1, bad);
    problem_repack(&p, all.handle);
    check_all_kernels(&p);
    for (int64_t j = 0; j < 40; j++) CHECK((j == 17) == !isfinite(p.want[3 * 40 + j]));
  }
  problem_free(&p);
}

/* ---- the suite ---- */

void suite_gemm(void) {
  all.handle = problem_handle(2);
  all.kernels = problem_kernels(all.kernel);
  int excluded = 0;
  for (int t = 0; t < PROBLEM_TYPES; t++) {
    const char *type = lpgemm_dtype_name(problem_types()[t]);
    for (int x = 0; x < COUNT(x_types); x++) {
      const char *x_type = lpgemm_dtype_name(x_types[x]);
      int unit = LPGEMM_DTYPE_KIND(x_types[x]) != LPGEMM_KIND_BIPOLAR; /* has 0 and 1 */
      if (unit && test_case("gemm/decode/%s/%s", type, x_type)) check_decode(problem_types()[t], x_types[x], 37);
      if (unit && test_case("gemm/decode/%s/%s/one_row", type, x_type)) check_decode(problem_types()[t], x_types[x], 1);
      for (int m = 8; m <= 16 && x < 2; m += 8) { /* kernels for few rows of fp16 and bf16 */
        if (test_case("gemm/decode/%s/%s/%d_rows", type, x_type, m)) check_decode(problem_types()[t], x_types[x], m);
      }
      if (test_case("gemm/exact/%s/%s", type, x_type)) {
        check_exact(problem_types()[t], x_types[x]);
      } else {
        excluded = 1;
      }
    }
  }
  suite_pairs();
  for (int i = 0; i < 200; i++) {
    if (test_case("gemm/random/%03d", i)) check_random(-1, 0, 0);
  }
  suite_few_and_many_rows();
  suite_dequant();
  suite_edge_shapes();
  suite_model_shapes();
  suite_cancel();
  suite_one_code();
  suite_int32();
  if (test_case("gemm/empty/m")) check_empty(0, 20, 40);
  if (test_case("gemm/empty/n")) check_empty(4, 0, 40);
  if (test_case("gemm/empty/k")) check_empty(40, 20, 0);
  if (test_case("gemm/empty/all")) check_empty(0, 0, 0);
  if (test_case("gemm/unread")) check_unread();
  for (int i = 1; i < SAMPLE_SCALES; i++) {
    const char *type = lpgemm_dtype_name(sample_scale[i]);
    const int has_infinity = LPGEMM_DTYPE_KIND(sample_scale[i]) == LPGEMM_KIND_REAL;
    if (test_case("gemm/bad_scale/%s/nan", type)) check_bad_scale(sample_scale[i], (double)NAN);
    if (has_infinity && test_case("gemm/bad_scale/%s/inf", type)) check_bad_scale(sample_scale[i], (double)INFINITY);
  }
  if (test_case("gemm/coverage")) {
    for (int i = 0; i < all.kernels && !excluded; i++) {
      printf("%-32s %5d problems\n", all.kernel[i], all.cases[i]);
      if (all.cases[i] < 200) test_fail(__FILE__, __LINE__, "%s ran only %d cases", all.kernel[i], all.cases[i]);
    }
    if (excluded) test_skip("counts the cases of a whole run");
  }
  CHECK_STATUS(lpgemm_destroy(all.handle), LPGEMM_SUCCESS);
}
