/* lpgemm's CPU backend beside ggml's, on the same blocks of weights and the same X: `make ggml-compare`.
 *
 * Both sides run in turn in one process and are timed by the CPU time of the process: a machine that others share
 * disturbs it little. A time is the least of seven; one takes at least 20 ms, and its calls go round copies of the
 * weights that no cache holds. ggml has its own repacking where it repacks the type. Errors of both are of 64 rows of W
 * by up to 8 of X, against fp64, by the root mean square of these outputs. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ggml_side.h"
#include "lpgemm.h"
#include "report.h"

enum { REPETITIONS = 7, ERROR_ROWS = 64, ERROR_X = 8, LEVELS = 2, MOST = 32, MOST_COPIES = 256 };

static const double LEAST_SECONDS = 0.02;

typedef struct options {
  const char *record, *kernel;
  char types[256], shapes[256], rows[256], levels[64];
  int64_t megabytes; /* of copies of the weights */
  int threads;
} options;

/* The weights of a type and a shape, on both sides. */
typedef struct matrix {
  const char *type;
  int64_t n, k;
  int copies;
  void *blocks; /* as GGUF has them */
  ggml_side *ggml;
  lpgemm_weights_t weights[MOST_COPIES];
  float *x, *y;
} matrix;

static void fail(const char *what) {
  fprintf(stderr, "ggml-compare: %s\n", what);
  exit(1);
}

static void check(lpgemm_status_t status, const char *what) {
  if (status == LPGEMM_SUCCESS) return;
  fprintf(stderr, "ggml-compare: %s: %s\n", what, lpgemm_last_error());
  exit(1);
}

static void *allocate(size_t bytes) {
  void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!memory) fail("memory is short");
  return memory;
}

/* ---- data ---- */

static uint64_t state;

static double uniform(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return ((double)(state >> 11) + 0.5) * 0x1p-53;
}

/* Nearly normal: a sum of four. */
static void draw(float *out, int64_t count, double deviation) {
  for (int64_t i = 0; i < count; i++) {
    out[i] = (float)((uniform() + uniform() + uniform() + uniform() - 2.0) * 1.7320508 * deviation);
  }
}

static lpgemm_weights_t import(lpgemm_handle_t handle, const matrix *a) {
  const lpgemm_tensor_t tensor = {.name = "weight",
                                  .type = LPGEMM_GGML(ggml_side_number(a->type)),
                                  .dims = 2,
                                  .shape = {a->n, a->k},
                                  .data = a->blocks,
                                  .bytes = ggml_side_bytes(a->type, a->n, a->k)};
  const lpgemm_import_t part = {.size = sizeof part, .format = LPGEMM_FORMAT_GGUF, .tensors = &tensor, .count = 1};
  lpgemm_weights_t weights;
  check(lpgemm_import_weights(handle, &part, 1, NULL, 0, &weights), a->type);
  return weights;
}

static void make_matrix(lpgemm_handle_t handle, const options *o, const char *type, int64_t n, int64_t k,
                        int64_t most_m, matrix *a) {
  *a = (matrix){.type = type, .n = n, .k = k};
  const size_t bytes = ggml_side_bytes(type, n, k);
  float *w = allocate((size_t)(n * k) * sizeof *w);
  state = 1;
  draw(w, n * k, 1.0 / sqrt((double)k));
  a->blocks = allocate(bytes);
  ggml_side_quantize(type, w, n, k, a->blocks);
  free(w);
  a->copies = (int)((o->megabytes * 1000000 + (int64_t)bytes - 1) / (int64_t)bytes);
  if (a->copies > MOST_COPIES) a->copies = MOST_COPIES;
  a->ggml = ggml_side_create(type, n, k, a->blocks, a->copies, o->threads);
  if (!a->ggml) fail("ggml has no room for the weights");
  for (int i = 0; i < a->copies; i++) a->weights[i] = import(handle, a);
  a->x = allocate((size_t)(most_m * k) * sizeof *a->x);
  a->y = allocate((size_t)(most_m * n) * sizeof *a->y);
  draw(a->x, most_m * k, 1.0);
}

static void free_matrix(matrix *a) {
  for (int i = 0; i < a->copies; i++) check(lpgemm_weights_destroy(a->weights[i]), "lpgemm_weights_destroy");
  ggml_side_destroy(a->ggml);
  free(a->blocks);
  free(a->x);
  free(a->y);
}

/* ---- errors ---- */

typedef struct expected {
  int64_t row[ERROR_ROWS], rows_x;
  double y[ERROR_X][ERROR_ROWS], rms;
} expected;

static void expect(const matrix *a, int64_t m, expected *e) {
  float *row = allocate((size_t)a->k * sizeof *row);
  double squares = 0;
  e->rows_x = m < ERROR_X ? m : ERROR_X;
  for (int j = 0; j < ERROR_ROWS; j++) {
    e->row[j] = a->n * j / ERROR_ROWS + j % 16;
    ggml_side_row(a->type, a->blocks, a->k, e->row[j], row);
    for (int64_t i = 0; i < e->rows_x; i++) {
      double sum = 0;
      for (int64_t c = 0; c < a->k; c++) sum += (double)a->x[(m - 1 - i) * a->k + c] * (double)row[c];
      e->y[i][j] = sum;
      squares += sum * sum;
    }
  }
  e->rms = sqrt(squares / (double)(e->rows_x * ERROR_ROWS));
  free(row);
}

static report_error error_of(const matrix *a, int64_t m, const expected *e, const float *y) {
  report_error error = {0};
  double squares = 0;
  for (int64_t i = 0; i < e->rows_x; i++) {
    for (int j = 0; j < ERROR_ROWS; j++) {
      const double off = fabs((double)y[(m - 1 - i) * a->n + e->row[j]] - e->y[i][j]) / e->rms;
      if (!(off <= error.most)) error.most = off; /* NaN as well */
      squares += off * off;
    }
  }
  error.rms = sqrt(squares / (double)(e->rows_x * ERROR_ROWS));
  return error;
}

/* ---- times ---- */

/* One of the sides that run in turn. */
typedef struct side {
  lpgemm_handle_t handle; /* NULL: ggml */
  lpgemm_run_args_t args;
  int next;  /* copy of the weights */
  int calls; /* in a time */
  double seconds;
} side;

static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double time_calls(matrix *a, int64_t m, side *s, int calls) {
  const double before = cpu_seconds();
  for (int i = 0; i < calls; i++) {
    if (s->handle) {
      s->args.weights = a->weights[s->next];
      check(lpgemm_run(s->handle, &s->args), "lpgemm_run");
    } else {
      ggml_side_run(a->ggml, s->next, m);
    }
    s->next = (s->next + 1) % a->copies;
  }
  return cpu_seconds() - before;
}

static void time_sides(matrix *a, int64_t m, side *sides, int count) {
  for (int i = 0; i < count; i++) {
    const double once = time_calls(a, m, &sides[i], 1);
    sides[i].calls = once > LEAST_SECONDS ? 1 : (int)ceil(LEAST_SECONDS / once);
    sides[i].seconds = HUGE_VAL;
  }
  for (int repetition = 0; repetition < REPETITIONS; repetition++) {
    for (int i = 0; i < count; i++) {
      sides[i].seconds = fmin(sides[i].seconds, time_calls(a, m, &sides[i], sides[i].calls) / sides[i].calls);
    }
  }
}

static void compare(lpgemm_handle_t handle, const options *o, matrix *a, int64_t m, report *to) {
  static const char *const names[LEVELS] = {"fast", "exact"};
  static const lpgemm_level_t levels[LEVELS] = {LPGEMM_LEVEL_FAST, LPGEMM_LEVEL_EXACT};
  expected e;
  expect(a, m, &e);
  side sides[LEVELS + 1] = {{NULL}};
  report_row row[LEVELS];
  int count = 1;
  ggml_side_set_x(a->ggml, m, a->x);
  (void)time_calls(a, m, &sides[0], 1);
  const report_error of_ggml = error_of(a, m, &e, ggml_side_y(a->ggml, m));
  for (int i = 0; i < LEVELS; i++) {
    if (!strstr(o->levels, names[i])) continue;
    side *s = &sides[count];
    *s = (side){.handle = handle,
                .args = {.size = sizeof s->args,
                         .m = m,
                         .x = a->x,
                         .x_type = LPGEMM_F32,
                         .y = a->y,
                         .y_type = LPGEMM_F32,
                         .level = levels[i],
                         .kernel = o->kernel}};
    (void)time_calls(a, m, s, 1);
    report_row *r = &row[count++ - 1];
    *r = (report_row){
        .type = a->type, .level = names[i], .n = a->n, .k = a->k, .m = m, .repacked = ggml_side_repacked(a->ggml)};
    r->error[0] = error_of(a, m, &e, a->y);
    r->error[1] = of_ggml;
    s->args.weights = a->weights[0];
    char text[4096] = "";
    check(lpgemm_explain(handle, &s->args, text, sizeof text), "lpgemm_explain");
    if (o->kernel) snprintf(text, sizeof text, "%s", o->kernel);
    snprintf(r->kernel, sizeof r->kernel, "%.*s", (int)strcspn(text, " :\n"), text);
  }
  time_sides(a, m, sides, count);
  for (int i = 1; i < count; i++) {
    row[i - 1].us = 1e6 * sides[i].seconds;
    row[i - 1].ggml_us = 1e6 * sides[0].seconds;
    report_add(to, &row[i - 1]);
  }
}

/* ---- the program ---- */

/* The next of a list with commas, or NULL. */
static char *next_of(char **list) {
  char *word = *list && **list ? *list : NULL;
  if (word) {
    word += strspn(word, ",");
    char *end = word + strcspn(word, ",");
    *list = *end ? end + 1 : end;
    *end = 0;
  }
  return word;
}

static options read_options(int argc, char **argv) {
  options o = {.types = "q4_0,q8_0,q4_k,q6_k,q2_k,iq4_nl,tq2_0,mxfp4",
               .shapes = "4096x4096,11008x4096",
               .rows = "1,4,16,64,512",
               .levels = "fast,exact",
               .megabytes = 120,
               .threads = 1};
  const struct {
    const char *name;
    char *text;
    size_t bytes;
  } texts[] = {{"--types", o.types, sizeof o.types},
               {"--shapes", o.shapes, sizeof o.shapes},
               {"--rows", o.rows, sizeof o.rows},
               {"--levels", o.levels, sizeof o.levels}};
  for (int i = 1; i < argc; i++) {
    int known = 0;
    if (i + 1 == argc)
      fail("options are --types, --shapes, --rows, --levels, --kernel, --threads, --megabytes, --record");
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
      if (strcmp(argv[i], texts[t].name) != 0) continue;
      snprintf(texts[t].text, texts[t].bytes, "%s", argv[i + 1]);
      known = 1;
    }
    if (!strcmp(argv[i], "--record")) o.record = argv[i + 1], known = 1;
    if (!strcmp(argv[i], "--kernel")) o.kernel = argv[i + 1], known = 1;
    if (!strcmp(argv[i], "--threads")) o.threads = atoi(argv[i + 1]), known = 1;
    if (!strcmp(argv[i], "--megabytes")) o.megabytes = atol(argv[i + 1]), known = 1;
    if (!known) fail("unknown option");
    i++;
  }
  return o;
}

static int read_numbers(const char *text, int64_t *numbers) {
  char copy[256], *list = copy;
  int count = 0;
  snprintf(copy, sizeof copy, "%s", text);
  for (char *word; count < MOST && (word = next_of(&list)) != NULL;) numbers[count++] = atol(word);
  return count;
}

int main(int argc, char **argv) {
  const options o = read_options(argc, argv);
  const lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .num_threads = o.threads};
  lpgemm_handle_t handle;
  int64_t rows[MOST], most = 1;
  const int row_count = read_numbers(o.rows, rows);
  for (int i = 0; i < row_count; i++) most = rows[i] > most ? rows[i] : most;
  check(lpgemm_create(&handle, &config), "lpgemm_create");
  report to;
  report_begin(&to, o.record, o.threads, ggml_side_version());
  char shapes[256], *shape_list = shapes;
  snprintf(shapes, sizeof shapes, "%s", o.shapes);
  for (char *shape; (shape = next_of(&shape_list)) != NULL;) {
    long n, k;
    if (sscanf(shape, "%ldx%ld", &n, &k) != 2 || n < 16 + ERROR_ROWS || k < 1) fail("a shape is NxK, N from 80 on");
    char types[256], *type_list = types;
    snprintf(types, sizeof types, "%s", o.types);
    for (char *type; (type = next_of(&type_list)) != NULL;) {
      matrix a;
      if (ggml_side_number(type) < 0) fail("ggml has no such type");
      make_matrix(handle, &o, type, n, k, most, &a);
      for (int i = 0; i < row_count; i++) compare(handle, &o, &a, rows[i], &to);
      free_matrix(&a);
    }
  }
  report_end(&to);
  check(lpgemm_destroy(handle), "lpgemm_destroy");
  return 0;
}
