/* The cases that the benchmark draws: the same everywhere, in their ranges and proportions, and each one legal.
 *
 * LPGEMM_TEST_GOLDEN=write in the environment (`make golden`) writes tests/golden/drawn.txt. */
#include "../bench/part.h"
#include "../bench/suite.h"
#include "kernels/plan/rates.h"
#include "made_up.h"

enum { DRAWS = 3000, SHOWN = 20, MOST_LINE = 512 };

static bench_case *cases;
static int count;

/* 0 if a suite is not there: the test then runs elsewhere than in the root of the repository. */
static int read_suite(const char *suite, int64_t seed, int64_t draws) {
  const bench_draw instead = {seed, draws};
  FILE *file = fopen("bench/suites/drawn.txt", "r");
  if (!file) {
    test_skip("bench/suites/ is not here: run the tests in the root of the repository");
    return 0;
  }
  fclose(file);
  free(cases);
  cases = NULL;
  bench_error error = bench_read_suite(".", suite, &instead, &cases, &count);
  if (error) test_fail(__FILE__, __LINE__, "%s", error);
  return !error;
}

static const bench_case *drawn(int64_t number) {
  for (int i = 0; i < count; i++) {
    if (cases[i].draw == number) return &cases[i];
  }
  test_fail(__FILE__, __LINE__, "case %lld was not drawn", (long long)number);
  return &cases[0];
}

/* ---- the same on every machine ---- */

static void write_suite(FILE *file, const char *suite, int64_t seed) {
  if (!read_suite(suite, seed, SHOWN)) return;
  for (int i = 1; i <= SHOWN; i++) fprintf(file, "%s\n", drawn(i)->name);
}

static void check_golden(void) {
  static const char path[] = "tests/golden/drawn.txt";
  const char *mode = getenv("LPGEMM_TEST_GOLDEN");
  const int writes = mode && strcmp(mode, "write") == 0;
  char want[MOST_LINE], got[MOST_LINE];
  FILE *golden = fopen(path, writes ? "w" : "r"), *now = writes ? golden : tmpfile();
  if (!golden || !now) {
    test_skip("tests/golden/ is not here: run the tests in the root of the repository");
    if (golden) fclose(golden);
    return;
  }
  write_suite(now, "drawn", 1);
  write_suite(now, "layers", 20261125);
  rewind(now);
  while (!writes) {
    const char *w = fgets(want, sizeof want, golden), *g = fgets(got, sizeof got, now);
    if (!w && !g) break;
    if (w && g && strcmp(w, g) == 0) continue;
    test_fail(__FILE__, __LINE__, "%s: now it is\n  %snot\n  %s", path, g ? g : "its end\n", w ? w : "its end\n");
    break;
  }
  if (!writes) fclose(now);
  fclose(golden);
}

/* Fewer cases are the first of more, and another seed draws others. */
static void check_first(void) {
  char few[SHOWN][sizeof cases->name];
  int same = 0;
  if (!read_suite("drawn", 5, SHOWN)) return;
  for (int i = 0; i < SHOWN; i++) memcpy(few[i], drawn(i + 1)->name, sizeof few[i]);
  if (!read_suite("drawn", 5, 10 * SHOWN)) return;
  for (int i = 0; i < SHOWN; i++) CHECK(strcmp(few[i], drawn(i + 1)->name) == 0);
  if (!read_suite("drawn", 6, SHOWN)) return;
  for (int i = 0; i < SHOWN; i++) same += strcmp(few[i], drawn(i + 1)->name) == 0;
  CHECK_INT(same, 0);
}

/* ---- ranges and proportions ---- */

/* How often something with this share is drawn: within five standard deviations of the mean, which one run in a million
 * leaves; the seed is fixed, so that the test either always passes or never does. */
static void check_share(const char *what, int got, double share) {
  const double mean = DRAWS * share, far = 5 * sqrt(mean * (1 - share)) + 1;
  if (fabs(got - mean) > far) {
    test_fail(__FILE__, __LINE__, "%s: %d of %d, not %.0f within %.0f", what, got, (int)DRAWS, mean, far);
  }
}

/* The share of a logarithmic range from `least` to `end` that lies below `edge`. */
static double below(double edge, double least, double end) { return log(edge / least) / log(end / least); }

static void check_ranges(void) {
  int small_n = 0, small_k = 0, few_rows = 0, usual = 0, bytes = 0, of_128 = 0;
  if (!read_suite("drawn", 3, DRAWS)) return;
  CHECK_INT(count, DRAWS);
  for (int i = 0; i < count; i++) {
    const bench_case *c = &cases[i];
    const int64_t n = c->desc.n, k = c->desc.k, group = c->desc.super_k ? c->desc.super_k : c->desc.group_k;
    CHECK(n >= 256 - 8 && n <= 160000 && n % 8 == 0);
    CHECK(k >= 512 && k <= 30000 && k % 8 == 0 && (group == 0 || k % group == 0));
    CHECK(c->m >= 1 && c->m <= 8192 && n * k * 2 <= (int64_t)4 << 30);
    CHECK(c->baseline == LPGEMM_F16 && c->checks_samples);
    small_n += n < 2048;
    small_k += k < 3072;
    few_rows += c->m <= 64;
    of_128 += n % 128 == 0;
    usual += strcmp(c->use, "usual") == 0;
    bytes += lpgemm_dtype_bits(c->x_type) <= 8;
  }
  check_share("M up to 64", few_rows, below(65, 1, 8193));
  check_share("usual", usual, 152.0 / 202);
  check_share("X of 8 bits and fewer", bytes, 43.0 / 202);
  CHECK(of_128 * 8 < count);
  /* The cap leaves out what is largest in both, so that small ones are a little more frequent: at most by its share. */
  CHECK(small_n > DRAWS * below(2048, 256, 160001) * 0.9 && small_n < DRAWS * below(2048, 256, 160001) * 1.2);
  CHECK(small_k > DRAWS * below(3072, 512, 30001) * 0.9 && small_k < DRAWS * below(3072, 512, 30001) * 1.25);
}

static void check_layers(void) {
  char model[64][64];
  int models = 0, bands[5] = {0};
  if (!read_suite("layers-all", 0, 0)) return;
  for (int i = 0; i < count; i++) {
    char name[64];
    int known = 0;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(cases[i].shape, ":"), cases[i].shape);
    for (int j = 0; j < models; j++) known |= strcmp(model[j], name) == 0;
    if (!known && models < COUNT(model)) memcpy(model[models++], name, sizeof name);
    const int64_t m = cases[i].m;
    bands[(m > 16) + (m > 64) + (m > 256) + (m > 1024)]++;
  }
  CHECK(models >= 25);
  for (int i = 0; i < 5; i++) CHECK_INT(bands[i], count / 5);
  if (read_suite("layers", 0, 0)) CHECK_INT(count, 150);
}

/* ---- each case is legal ---- */

static void check_case(const bench_case *c, const lpg_device *device) {
  problem q;
  lpg_choice chosen = {.kernel = NULL};
  memset(&q, 0, sizeof q);
  if (lpgemm_i_make_packed(&c->desc, &q.weights) != LPGEMM_SUCCESS) {
    test_fail(__FILE__, __LINE__, "%s: %s", c->name, lpgemm_last_error());
    return;
  }
  q.p.weights = &q.weights;
  q.p.scale_span = 1; /* as the benchmark draws them */
  q.p.m = c->m;
  q.p.x_type = c->x_type;
  q.p.y_type = c->y_type;
  q.p.x_scale_mode = c->x_scale_mode;
  q.p.x_unaligned = c->desc.k * lpgemm_dtype_bits(c->x_type) % 128 != 0;
  q.p.workspace = SIZE_MAX;
  if (lpgemm_i_choose(test_every_kernel, test_every_kernel_count, &q.p, device, NULL, NULL, &chosen)) {
    test_fail(__FILE__, __LINE__, "%s: %s", c->name, lpgemm_last_error());
  }
}

static void check_legal(const char *suite, int64_t seed, int64_t draws) {
  lpg_device device = sm90;
  lpgemm_i_set_rates(&device);
  if (!read_suite(suite, seed, draws)) return;
  for (int i = 0; i < count; i++) check_case(&cases[i], &device);
}

/* ---- parts ---- */

static void check_parts(void) {
  bench_part part;
  int taken[100] = {0};
  for (int number = 1; number <= 7; number++) {
    char text[16];
    int own = 0;
    snprintf(text, sizeof text, "%d/7", number);
    CHECK(bench_read_part(text, &part) == NULL);
    for (int i = 0; i < COUNT(taken); i++) {
      own += bench_in_part(&part, i);
      taken[i] += bench_in_part(&part, i);
    }
    CHECK(own == COUNT(taken) / 7 || own == COUNT(taken) / 7 + 1);
  }
  for (int i = 0; i < COUNT(taken); i++) CHECK_INT(taken[i], 1);
  CHECK(bench_read_part(NULL, &part) == NULL && part.number == 1 && part.parts == 1);
  static const char *const wrong[] = {"", "1", "0/3", "4/3", "1/3x", "-1/-1"};
  for (int i = 0; i < COUNT(wrong); i++) CHECK(bench_read_part(wrong[i], &part) != NULL);
}

/* A part that was cut off goes on where its record ends. */
static void check_done(void) {
  char path[] = "/tmp/lpgemm-test-XXXXXX", skip[SHOWN] = {0};
  if (!read_suite("drawn", 1, SHOWN)) return;
  const int descriptor = mkstemp(path);
  FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
  CHECK(file != NULL);
  if (!file) return;
  fprintf(file,
          "{\n  \"cases\": [\n    {\"name\": \"%s\", \"operation\": \"gemm\"},\n    {\"name\": \"%s\", \"m\": 1}\n",
          cases[3].name, cases[7].name);
  fclose(file);
  CHECK(bench_skip_recorded(path, cases, count, skip) == NULL);
  remove(path);
  for (int i = 0; i < SHOWN; i++) CHECK_INT(skip[i], i == 3 || i == 7);
  CHECK(bench_skip_recorded(NULL, cases, count, skip) == NULL);
  CHECK(bench_skip_recorded("/no/record", cases, count, skip) != NULL);
}

void suite_bench_drawn(void) {
  if (test_case("bench_drawn/golden")) check_golden();
  if (test_case("bench_drawn/first")) check_first();
  if (test_case("bench_drawn/ranges")) check_ranges();
  if (test_case("bench_drawn/layers")) check_layers();
  if (test_case("bench_drawn/legal/drawn")) check_legal("drawn", 4, DRAWS);
  if (test_case("bench_drawn/legal/layers")) check_legal("layers", 0, 0);
  if (test_case("bench_drawn/parts")) check_parts();
  if (test_case("bench_drawn/done")) check_done();
  free(cases);
  cases = NULL;
}
