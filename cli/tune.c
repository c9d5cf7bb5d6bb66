/* lpgemm-tune: times the kernels for the matrices of a model and writes the best to a tuning file. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "layer.h"
#include "measured.h"
#include "models.h"

const char cli_program[] = "lpgemm-tune";

static const char help[] =
    "usage: lpgemm-tune (--model NAME | --shape NxK)... --weights TYPE [options]\n"
    "       lpgemm-tune --models\n"
    "\n"
    "Times every kernel that may multiply such weights, prints the best of each, and writes them to a file for\n"
    "lpgemm_tuning_load() or LPGEMM_TUNING_FILE. Weights and activations are made up.\n"
    "  --model NAME        all matrices of a model, or one: llama3-8b, llama3-8b.down; may stand several times\n"
    "  --shape NxK         any matrix, N outputs by K inputs; may stand several times\n"
    "  --models            lists the matrices that --model knows: name, N, K\n"
    "  --weights TYPE      u1..u8, i2..i8, b1..b8, c1..c4, eXmY, or a codebook: nf4, fp4, iq4_nl\n" CLI_LAYER_HELP
    "  --rows LIST         numbers of rows; default 1,2,4,8,16,32,64,128,256,1024\n"
    "  --seconds S         for everything together; default 10 a matrix. Each number of rows gets its share of what "
    "is\n"
    "                      left, and at least one kernel is timed for it\n"
    "  --output FILE       the tuning file, which is written after every matrix; without it the table is all there is\n"
    "  --load FILE         lines of this file go to the output too, where nothing newer was measured\n"
    "  --backend cpu|cuda  default: CUDA where there is a GPU\n"
    "  --json              the table as JSON\n"
    "  --help              this text\n"
    "\n"
    "Progress goes to stderr. Exit codes: 0 done, 1 failed, 2 wrong usage.\n";

enum { MAX_MATRICES = 256, MAX_ROWS = 64 };
#define LEAST_SECONDS 0.01 /* enough to begin with: lpgemm_autotune() starts nothing once its time is over */

typedef struct options {
  cli_matrix matrix[MAX_MATRICES];
  int64_t rows[MAX_ROWS];
  size_t matrices, row_counts;
  cli_layer layer;
  double seconds;
  const char *output, *load;
  lpgemm_backend_t backend;
  int json;
} options;

/* One number of rows of one matrix. */
typedef struct result {
  const cli_matrix *matrix;
  char untuned[sizeof((cli_measured *)0)->kernel];
  cli_measured tuned;
} result;

/* ---- the command line ---- */

static void add_matrix(options *o, cli_matrix matrix) {
  if (o->matrices == MAX_MATRICES)
    cli_usage("there are more than %d matrices; tune them in several runs", MAX_MATRICES);
  o->matrix[o->matrices++] = matrix;
}

static void add_model(options *o, const char *name) {
  size_t before = o->matrices;
  for (int i = 0; i < cli_model_count; i++) {
    if (cli_is_of_model(&cli_models[i], name)) add_matrix(o, cli_models[i]);
  }
  if (o->matrices > before) return;
  char known[512];
  cli_model_names(known, sizeof known);
  cli_usage("--model is '%s'; the models are %s, and --models lists their matrices", name, known);
}

static void add_shape(options *o, const char *text) {
  char n[16], k[16], rest;
  if (sscanf(text, "%15[0-9]x%15[0-9]%c", n, k, &rest) != 2) {
    cli_usage("--shape is '%s'; it must be NxK, such as 4096x14336", text);
  }
  cli_matrix matrix = {.name = text};
  matrix.n = cli_number("N of --shape", n, 1, CLI_MAX_SIZE);
  matrix.k = cli_number("K of --shape", k, 1, CLI_MAX_SIZE);
  add_matrix(o, matrix);
}

static void read_rows(options *o, const char *text) {
  o->row_counts = 0;
  for (const char *s = text; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL) {
    char number[16];
    if (o->row_counts == MAX_ROWS) cli_usage("--rows has more than %d numbers", MAX_ROWS);
    snprintf(number, sizeof number, "%.*s", (int)(strcspn(s, ",") < 15 ? strcspn(s, ",") : 15), s);
    o->rows[o->row_counts++] = cli_number("a number of --rows", number, 1, INT_MAX);
  }
}

static void read_seconds(options *o, const char *text) {
  char *end;
  o->seconds = strtod(text, &end);
  if (end == text || *end || !(o->seconds > 0 && o->seconds <= 1e6)) {
    cli_usage("--seconds is '%s'; it must be a number above 0, at most 1000000", text);
  }
}

static void list_models(void) {
  for (int i = 0; i < cli_model_count; i++) {
    printf("%-24s %7lld %7lld\n", cli_models[i].name, (long long)cli_models[i].n, (long long)cli_models[i].k);
  }
}

static void read_option(options *o, cli_words *words) {
  const char *option = words->word[words->at];
  if (strcmp(option, "--help") == 0) {
    fputs(help, stdout);
    exit(cli_finish(CLI_OK));
  } else if (strcmp(option, "--models") == 0) {
    list_models();
    exit(cli_finish(CLI_OK));
  } else if (strcmp(option, "--json") == 0) {
    o->json = 1;
  } else if (strcmp(option, "--model") == 0) {
    add_model(o, cli_next(words, option, "the name of a model"));
  } else if (strcmp(option, "--shape") == 0) {
    add_shape(o, cli_next(words, option, "NxK, such as 4096x14336"));
  } else if (strcmp(option, "--weights") == 0) {
    cli_layer_weights(&o->layer, option, cli_next(words, option, "a type of weights"));
  } else if (strcmp(option, "--rows") == 0) {
    read_rows(o, cli_next(words, option, "numbers, such as 1,16,256"));
  } else if (strcmp(option, "--seconds") == 0) {
    read_seconds(o, cli_next(words, option, "a number"));
  } else if (strcmp(option, "--output") == 0) {
    o->output = cli_next(words, option, "the name of a file");
  } else if (strcmp(option, "--load") == 0) {
    o->load = cli_next(words, option, "the name of a file");
  } else if (strcmp(option, "--backend") == 0) {
    o->backend = cli_backend(cli_next(words, option, "cpu or cuda"));
  } else if (!cli_layer_option(&o->layer, words)) {
    cli_usage("'%s' is no option", option);
  }
}

static void read_options(int argc, char **argv, options *o) {
  static const char rows[] = "1,2,4,8,16,32,64,128,256,1024";
  memset(o, 0, sizeof *o);
  cli_layer_start(&o->layer);
  read_rows(o, rows);
  for (cli_words words = {argv, argc, 1}; words.at < argc; words.at++) read_option(o, &words);
  if (!o->matrices) cli_usage("there is no matrix; it needs --model NAME or --shape NxK");
  if (!o->layer.desc.type) cli_usage("--weights is missing; it must be a type, such as u4");
  cli_layer_finish(&o->layer);
  if (o->seconds == 0) o->seconds = 10.0 * (double)o->matrices;
}

/* ---- tuning ---- */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct tuner {
  const options *options;
  lpgemm_handle_t trial, kept; /* what was measured of one matrix; all that is written */
  char device[CLI_DEVICE_BYTES];
  double deadline;
  result *results;
  size_t done; /* of the results */
} tuner;

static void open_tuner(tuner *t, const options *o) {
  memset(t, 0, sizeof *t);
  t->options = o;
  t->trial = cli_open(o->backend);
  t->kept = cli_open(o->backend);
  t->results = cli_allocate(o->matrices * o->row_counts * sizeof *t->results);
  cli_check(lpgemm_tuning_clear(t->trial)); /* LPGEMM_TUNING_FILE has no part in this */
  cli_check(lpgemm_tuning_clear(t->kept));
  if (!o->load) return;
  int used, refused;
  cli_check(lpgemm_tuning_load(t->kept, o->load, &used, &refused));
  fprintf(stderr, "%s: %s: %d lines taken, %d refused\n", cli_program, o->load, used, refused);
  if (refused) fprintf(stderr, "%s: %s\n", cli_program, lpgemm_last_error());
}

static void say_progress(const tuner *t, const result *r, double started, const char *doing) {
  fprintf(stderr, "%s: %zu of %zu, %.1f s: %s, %lld x %lld, %s", cli_program, t->done + 1,
          t->options->matrices * t->options->row_counts, now() - started, r->matrix->name, (long long)r->matrix->n,
          (long long)r->matrix->k, doing);
  if (r->tuned.m) fprintf(stderr, " M = %lld", (long long)r->tuned.m);
  fputc('\n', stderr);
}

/* The name before the colon of the explanation's first line. */
static void find_untuned(tuner *t, const lpgemm_run_args_t *args, result *r) {
  char text[512];
  size_t workspace;
  cli_check(cli_layer_explain(t->trial, args, &workspace, text, sizeof text));
  text[strcspn(text, ":")] = 0;
  snprintf(r->untuned, sizeof r->untuned, "%.*s", (int)sizeof r->untuned - 1, text);
}

static void tune_rows(tuner *t, lpgemm_weights_t weights, result *r, double started) {
  const options *o = t->options;
  lpgemm_run_args_t args = cli_layer_args(&o->layer, weights, r->tuned.m);
  size_t left = o->matrices * o->row_counts - t->done;
  double share = (t->deadline - now()) / (double)left;
  lpgemm_autotune_options_t how = {.size = sizeof how, .args = &args};
  how.seconds = share > LEAST_SECONDS ? share : LEAST_SECONDS;
  find_untuned(t, &args, r);
  say_progress(t, r, started, "timing");
  cli_check(lpgemm_autotune(t->trial, weights, &r->tuned.m, 1, &how));
  cli_read_measured(t->trial, t->device, &r->tuned, 1, t->kept);
  cli_check(lpgemm_tuning_clear(t->trial)); /* or the next choice would not be an untuned one */
  if (!r->tuned.kernel[0]) cli_fail("nothing was timed for %s, M = %lld", r->matrix->name, (long long)r->tuned.m);
  t->done++;
}

static void tune_matrix(tuner *t, const cli_matrix *matrix, double started) {
  const options *o = t->options;
  result *r = &t->results[t->done];
  r->matrix = matrix;
  say_progress(t, r, started, "packing");
  lpgemm_weights_t weights = cli_layer_make(&o->layer, t->trial, matrix->n, matrix->k);
  for (size_t i = 0; i < o->row_counts; i++) {
    r[i].matrix = matrix;
    r[i].tuned.m = o->rows[i];
    tune_rows(t, weights, &r[i], started);
  }
  cli_check(lpgemm_weights_destroy(weights));
  if (o->output) cli_check(lpgemm_tuning_save(t->kept, o->output));
}

/* ---- what came out ---- */

static void print_table(const tuner *t) {
  printf("%s, %s\n", cli_backend_name(lpgemm_get_backend(t->kept)), t->device);
  printf("%-24s %16s %6s %10s  %-36s %s\n", "matrix", "N x K", "rows", "us", "tuned", "untuned");
  for (size_t i = 0; i < t->done; i++) {
    const result *r = &t->results[i];
    char size[40];
    snprintf(size, sizeof size, "%lld x %lld", (long long)r->matrix->n, (long long)r->matrix->k);
    printf("%-24s %16s %6lld %10.1f  %-36s %s\n", r->matrix->name, size, (long long)r->tuned.m, r->tuned.us,
           r->tuned.kernel, strcmp(r->untuned, r->tuned.kernel) == 0 ? "the same" : r->untuned);
  }
}

static void print_json(const tuner *t) {
  printf("{\"backend\": \"%s\", \"device\": ", cli_backend_name(lpgemm_get_backend(t->kept)));
  cli_json_text(t->device);
  printf(", ");
  cli_layer_json(&t->options->layer);
  printf(", \"output\": ");
  cli_json_text(t->options->output);
  printf(", \"results\": [");
  for (size_t i = 0; i < t->done; i++) {
    const result *r = &t->results[i];
    printf("%s\n  {\"matrix\": ", i ? "," : "");
    cli_json_text(r->matrix->name);
    printf(", \"n\": %lld, \"k\": %lld, \"m\": %lld, \"us\": %.3f, \"tuned\": \"%s\", \"untuned\": \"%s\"}",
           (long long)r->matrix->n, (long long)r->matrix->k, (long long)r->tuned.m, r->tuned.us, r->tuned.kernel,
           r->untuned);
  }
  printf("\n]}\n");
}

int main(int argc, char **argv) {
  static options o;
  tuner t;
  read_options(argc, argv, &o);
  open_tuner(&t, &o);
  double started = now();
  t.deadline = started + o.seconds;
  for (size_t i = 0; i < o.matrices; i++) tune_matrix(&t, &o.matrix[i], started);
  (o.json ? print_json : print_table)(&t);
  free(t.results);
  cli_check(lpgemm_destroy(t.trial));
  cli_check(lpgemm_destroy(t.kept));
  return cli_finish(CLI_OK);
}
