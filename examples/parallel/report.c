/* What the runs have shown: printed, and as JSON in the style of bench/results. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parallel.h"

static double larger(double a, double b) { return a > b ? a : b; }

enum { BLOCK = CUTS, TIMED }; /* what was timed: experts, cut in each way, and the block */
static const char *const timed_names[TIMED] = {"experts_tensor", "experts_expert", "block"};

static timing slowest(const job *j, int what, int rows) {
  timing most = {0};
  for (int i = 0; i < j->ranks; i++) {
    const report *r = &j->report[i];
    const timing *t = what == BLOCK ? &r->time[rows] : &r->expert_time[what][rows];
    most = (timing){larger(most.block, t->block), larger(most.products, t->products), larger(most.sums, t->sums)};
  }
  return most;
}

/* Several ranks on one GPU take turns, those on a CPU share its memory: their times say nothing about more machines. */
static const char *void_because(const job *all) {
  if (all->o->backend == LPGEMM_BACKEND_CPU) return "ranks on one CPU share its memory";
  return all->report[0].shares ? "ranks share a GPU" : "";
}

/* ---- printed ---- */

static lpgemm_dtype_t type_of(const options *o) { return o->backend == LPGEMM_BACKEND_CUDA ? LPGEMM_F16 : LPGEMM_F32; }

static void check_experts(const job *alone, const job *all, cut how) {
  const options *o = all->o;
  int64_t row = output_rows(o) + how * (output_rows(o) - STEPS), hidden = o->shape.hidden;
  double bound = experts_bound(o, type_of(o), o->ranks);
  printf("  experts, %s, against one rank:", cut_names[how]);
  for (int i = 0; i < o->row_counts; i++) {
    double off = relative_difference(all->outputs + row * hidden, alone->outputs + row * hidden, o->rows[i] * hidden);
    if (!(off <= bound)) fail("experts differ by %.1e, rounding explains %.1e", off, bound); /* NaN fails */
    printf(" %lld row%s %.1e,", (long long)o->rows[i], o->rows[i] > 1 ? "s" : "", off);
    row += o->rows[i];
  }
  printf(" (rounding explains %.1e)\n", bound);
}

void print_checks(const job *alone, const job *all, const job *again) {
  const options *o = all->o;
  int64_t hidden = o->shape.hidden, checked = 0, row = 0;
  double error = 0.0;
  for (int i = 0; i < all->ranks; i++) {
    if (all->report[i].hash != all->report[0].hash) fail("outputs of rank %d differ from those of rank 0", i);
    error = larger(error, all->report[i].error);
    checked += all->report[i].checked;
  }
  printf("  products by exact weights: every rank's part as in the whole, bit for bit\n");
  printf("  products by random weights: %lld outputs within the bound of fp64, at most %.1e of it\n",
         (long long)checked, error);
  if (alone->report[0].fp64 > 0.0) printf("  one rank against sums in fp64: %.1e\n", alone->report[0].fp64);
  printf("  %d rank%s against one:", o->ranks, o->ranks > 1 ? "s" : "");
  for (int i = 0; i <= o->row_counts; i++) {
    int64_t rows = i < o->row_counts ? o->rows[i] : STEPS;
    double off =
        difference(&o->shape, type_of(o), all->outputs + row * hidden, alone->outputs + row * hidden, rows, o->ranks);
    if (i < o->row_counts) printf(" %lld row%s %.1e,", (long long)rows, rows > 1 ? "s" : "", off);
    if (i == o->row_counts) printf(" %d steps %.1e", STEPS, off);
    row += rows;
  }
  printf(" (rounding explains %.1e)\n", difference_bound(&o->shape, type_of(o), o->ranks));
  if (alone->report[0].experts_fp64 > 0.0) {
    printf("  experts of one rank against fp64: %.1e\n", alone->report[0].experts_fp64);
  }
  for (int how = 0; how < CUTS && o->experts > 0; how++) check_experts(alone, all, (cut)how);
  if (again->report[0].hash != all->report[0].hash) {
    fail("a second run gave other bits: %016llx, then %016llx", (unsigned long long)all->report[0].hash,
         (unsigned long long)again->report[0].hash);
  }
  printf("  all ranks and a second run have the same bits: %016llx\n", (unsigned long long)all->report[0].hash);
}

/* Two GPUs, one row, products of Llama-3-70B alone: they shall be so many times as fast as on one. */
static const double bar = 1.8;

static const char *verdict(const options *o, int what, int rows, double scaling) {
  if (o->ranks != 2 || what != BLOCK || o->rows[rows] > 1 || strcmp(o->model, "llama3-70b") != 0) return "";
  return scaling >= bar ? " (bar 1.8: met)" : " (bar 1.8: missed)";
}

static void print_time(const job *alone, const job *all, int what, int i) {
  const options *o = all->o;
  timing one = slowest(alone, what, i), many = slowest(all, what, i);
  double rows = (double)o->rows[i];
  printf("  %4lld rows  1: %9.1f us %9.0f tokens/s, products %9.1f   %d: %9.1f us %9.0f tokens/s, products %9.1f, ",
         (long long)o->rows[i], one.block, rows / one.block * 1e6, one.products, o->ranks, many.block,
         rows / many.block * 1e6, many.products);
  printf("sums %8.1f\n", many.sums);
  if (o->ranks > 1 && !*void_because(all)) {
    printf("             times as fast: all %.2f, products %.2f%s\n", one.block / many.block,
           one.products / many.products, verdict(o, what, i, one.products / many.products));
  }
}

void print_times(const job *alone, const job *all) {
  const options *o = all->o;
  const char *why = void_because(all);
  printf("  us of a block, tokens/s, us of its products and of its sums alone; %d of the weights in turn\n",
         all->copies);
  for (int i = 0; i < o->row_counts; i++) print_time(alone, all, BLOCK, i);
  for (int how = 0; how < CUTS && o->experts > 0; how++) {
    printf("  of a layer of experts, %s\n", cut_names[how]);
    for (int i = 0; i < o->row_counts; i++) print_time(alone, all, how, i);
  }
  if (*why) printf("  these times are no measure of more ranks: %s\n", why);
}

/* ---- the record ---- */

static void put_text(FILE *file, const char *key, const char *text, const char *end) {
  fprintf(file, "\"%s\": \"", key);
  for (; *text; text++) fprintf(file, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
  fprintf(file, "\"%s", end);
}

static void put_number(FILE *file, const char *key, double value, const char *end) {
  if (isfinite(value)) {
    fprintf(file, "\"%s\": %.6g%s", key, value, end);
  } else {
    fprintf(file, "\"%s\": null%s", key, end);
  }
}

/* `part` of what was timed: all of it has tokens. */
static void put_case(FILE *file, const job *all, int what, int rows, const char *part, double one, double many) {
  const options *o = all->o;
  const char *name = timed_names[what];
  fprintf(file, "    {\"name\": \"parallel/%s/u%d/m%lld/%s%s\", \"operation\": \"%s%s\", ", o->model, o->bits,
          (long long)o->rows[rows], name, part, name, part);
  fprintf(file, "\"m\": %lld, \"in_graph\": \"%s\", ", (long long)o->rows[rows],
          o->rows[rows] < MOST_ROWS_IN_GRAPH && o->backend == LPGEMM_BACKEND_CUDA ? "yes" : "no");
  put_number(file, "us_one", one > 0.0 ? one : (double)NAN, ", ");
  put_number(file, "us", many, ", ");
  put_number(file, "scaling", one > 0.0 ? one / many : (double)NAN, "");
  if (!*part) {
    fputs(", ", file);
    put_number(file, "tokens_per_s_one", (double)o->rows[rows] / one * 1e6, ", ");
    put_number(file, "tokens_per_s", (double)o->rows[rows] / many * 1e6, "");
  }
  fputs("}", file);
}

static void put_cases(FILE *file, const job *alone, const job *all, int what) {
  for (int i = 0; i < all->o->row_counts; i++) {
    timing one = slowest(alone, what, i), many = slowest(all, what, i);
    if (what != BLOCK || i > 0) fputs(",\n", file); /* the block comes first */
    put_case(file, all, what, i, "", one.block, many.block);
    fputs(",\n", file);
    put_case(file, all, what, i, "/products", one.products, many.products);
    if (all->ranks == 1) continue;
    fputs(",\n", file);
    put_case(file, all, what, i, "/all_reduce", 0.0, many.sums);
  }
}

/* "lpgemm 0.1.0 (e556c52), ..." -> e556c52 */
static void put_commit(FILE *file) {
  char commit[64] = "unknown";
  const char *open = strchr(lpgemm_build_info(), '(');
  if (open) snprintf(commit, sizeof commit, "%.*s", (int)strcspn(open + 1, ")"), open + 1);
  put_text(file, "commit", commit, ",\n  ");
}

static void put_run(FILE *file, const job *alone, const job *all) {
  const options *o = all->o;
  const report *r = &all->report[0];
  char date[32], text[64];
  time_t now = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  fputs("{\n  ", file);
  put_text(file, "suite", "parallel", ",\n  ");
  put_commit(file);
  put_text(file, "date", date, ",\n  ");
  put_text(file, "build", lpgemm_build_info(), ",\n  ");
  put_text(file, "backend", o->backend == LPGEMM_BACKEND_CUDA ? "cuda" : "cpu", ",\n  ");
  put_text(file, "device", r->device, ",\n  ");
  put_text(file, "driver", r->driver, ",\n  ");
  put_text(file, "runtime", r->runtime, ",\n  ");
  put_text(file, "void", void_because(all), ",\n  ");
  put_text(file, "model", o->model, ",\n  ");
  snprintf(text, sizeof text, "u%d g%d f16 z%d", o->bits, GROUP, 1 << (o->bits - 1));
  put_text(file, "weights", text, ",\n  ");
  fprintf(file, "\"ranks\": %d,\n  \"gpus\": %d,\n  ", o->ranks, r->gpus);
  put_text(file, "sum", r->sum, ",\n  ");
  fprintf(file, "\"packed_bytes_one\": %lld,\n  \"packed_bytes\": %lld,\n  \"copies\": %d,\n  ",
          (long long)alone->report[0].packed_bytes, (long long)r->packed_bytes, all->copies);
  snprintf(text, sizeof text, "%016llx", (unsigned long long)r->hash);
  put_text(file, "hash", text, ",\n  ");
  fputs("\"cases\": [\n", file);
  put_cases(file, alone, all, BLOCK);
  for (int how = 0; how < CUTS && o->experts > 0; how++) put_cases(file, alone, all, how);
  fputs("\n  ]\n}\n", file);
}

void write_record(const job *alone, const job *all) {
  FILE *file = fopen(all->o->record, "w");
  if (!file) fail("cannot write %s: %s", all->o->record, strerror(errno));
  put_run(file, alone, all);
  int failed = ferror(file);
  if (fclose(file) != 0 || failed) fail("cannot write %s", all->o->record);
}
