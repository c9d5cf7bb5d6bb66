/* What the runs have shown: printed, and as JSON in the style of bench/results. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parallel.h"

static double larger(double a, double b) { return a > b ? a : b; }

static timing slowest(const job *j, int rows) {
  timing most = {0};
  for (int i = 0; i < j->ranks; i++) {
    const timing *t = &j->report[i].time[rows];
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

void print_checks(const job *alone, const job *all, const job *again) {
  const options *o = all->o;
  int64_t hidden = o->shape.hidden, checked = 0, row = 0;
  lpgemm_dtype_t type = o->backend == LPGEMM_BACKEND_CUDA ? LPGEMM_F16 : LPGEMM_F32;
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
        difference(&o->shape, type, all->outputs + row * hidden, alone->outputs + row * hidden, rows, o->ranks);
    if (i < o->row_counts) printf(" %lld row%s %.1e,", (long long)rows, rows > 1 ? "s" : "", off);
    if (i == o->row_counts) printf(" %d steps %.1e", STEPS, off);
    row += rows;
  }
  printf(" (rounding explains %.1e)\n", difference_bound(&o->shape, type, o->ranks));
  if (again->report[0].hash != all->report[0].hash) {
    fail("a second run gave other bits: %016llx, then %016llx", (unsigned long long)all->report[0].hash,
         (unsigned long long)again->report[0].hash);
  }
  printf("  all ranks and a second run have the same bits: %016llx\n", (unsigned long long)all->report[0].hash);
}

/* Issue's bar: two GPUs, one row, products alone. */
static const double bar = 1.8;

void print_times(const job *alone, const job *all) {
  const options *o = all->o;
  const char *why = void_because(all);
  printf("  us of a block, tokens/s, us of its products and of its sums alone; %d of the weights in turn\n",
         all->copies);
  for (int i = 0; i < o->row_counts; i++) {
    timing one = slowest(alone, i), many = slowest(all, i);
    double rows = (double)o->rows[i];
    printf(
        "  %4lld rows  1: %9.1f us %9.0f tokens/s, products %9.1f   %d: %9.1f us %9.0f tokens/s, products %9.1f, "
        "sums %8.1f\n",
        (long long)o->rows[i], one.block, rows / one.block * 1e6, one.products, o->ranks, many.block,
        rows / many.block * 1e6, many.products, many.sums);
    if (o->ranks > 1 && !*why) {
      printf("             times as fast: block %.2f, products %.2f%s\n", one.block / many.block,
             one.products / many.products,
             o->ranks != 2 || o->rows[i] > 1       ? ""
             : one.products >= bar * many.products ? " (bar 1.8: met)"
                                                   : " (bar 1.8: missed)");
    }
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

static void put_case(FILE *file, const job *all, int rows, const char *operation, double one, double many) {
  const options *o = all->o;
  fprintf(file, "    {\"name\": \"parallel/%s/u%d/m%lld/%s\", ", o->model, o->bits, (long long)o->rows[rows],
          operation);
  put_text(file, "operation", operation, ", ");
  fprintf(file, "\"m\": %lld, \"in_graph\": \"%s\", ", (long long)o->rows[rows],
          o->rows[rows] < MOST_ROWS_IN_GRAPH && o->backend == LPGEMM_BACKEND_CUDA ? "yes" : "no");
  put_number(file, "us_one", one > 0.0 ? one : (double)NAN, ", ");
  put_number(file, "us", many, ", ");
  put_number(file, "scaling", one > 0.0 ? one / many : (double)NAN, "");
  if (!strcmp(operation, "block")) {
    fputs(", ", file);
    put_number(file, "tokens_per_s_one", (double)o->rows[rows] / one * 1e6, ", ");
    put_number(file, "tokens_per_s", (double)o->rows[rows] / many * 1e6, "");
  }
  fputs("}", file);
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
  put_number(file, "packed_bytes_one", (double)alone->report[0].packed_bytes, ",\n  ");
  put_number(file, "packed_bytes", (double)r->packed_bytes, ",\n  ");
  fprintf(file, "\"copies\": %d,\n  ", all->copies);
  snprintf(text, sizeof text, "%016llx", (unsigned long long)r->hash);
  put_text(file, "hash", text, ",\n  ");
  fputs("\"cases\": [\n", file);
  for (int i = 0; i < o->row_counts; i++) {
    timing one = slowest(alone, i), many = slowest(all, i);
    put_case(file, all, i, "block", one.block, many.block);
    fputs(",\n", file);
    put_case(file, all, i, "products", one.products, many.products);
    if (o->ranks > 1) {
      fputs(",\n", file);
      put_case(file, all, i, "all_reduce", 0.0, many.sums);
    }
    fputs(i + 1 < o->row_counts ? ",\n" : "\n", file);
  }
  fputs("  ]\n}\n", file);
}

void write_record(const job *alone, const job *all) {
  FILE *file = fopen(all->o->record, "w");
  if (!file) fail("cannot write %s: %s", all->o->record, strerror(errno));
  put_run(file, alone, all);
  int failed = ferror(file);
  if (fclose(file) != 0 || failed) fail("cannot write %s", all->o->record);
}
