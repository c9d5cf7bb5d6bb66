#include "record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "build_info.h"
#include "clock.h"

const char *bench_commit(void) {
  const char *commit = getenv("LPGEMM_COMMIT");
  return commit && *commit ? commit : LPG_COMMIT;
}

static void put_text(FILE *file, const char *key, const char *text, const char *end) {
  fprintf(file, "\"%s\": \"", key);
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') {
      fprintf(file, "\\%c", c);
    } else if (c < ' ') {
      fprintf(file, "\\u%04x", c);
    } else {
      fputc(c, file);
    }
  }
  fprintf(file, "\"%s", end);
}

/* JSON has no NaN and no infinity. */
static void put_number(FILE *file, const char *key, double value, const char *end) {
  if (isfinite(value)) {
    fprintf(file, "\"%s\": %.6g%s", key, value, end);
  } else {
    fprintf(file, "\"%s\": null%s", key, end);
  }
}

static void put_regret(FILE *file, const bench_case *c, const bench_result *r) {
  const bench_regret *regret = &r->regret;
  fprintf(file, "\"seed\": %lld, \"tried\": %d, \"skipped\": %d, ", (long long)c->seed, regret->tried, regret->skipped);
  put_text(file, "best", regret->best, ", ");
  put_number(file, "best_us", regret->best_us, ", ");
  put_number(file, "regret", bench_regret_of(r), ",\n     ");
  put_text(file, "tuned", regret->tuned, ", ");
  put_number(file, "tuned_us", regret->tuned_us, ", ");
  put_number(file, "tuned_regret", bench_tuned_regret_of(r), ",\n     ");
  fputs("\"estimates\": {", file);
  for (int i = 0; i < regret->kernels; i++) {
    put_number(file, regret->kernel[i].name, regret->kernel[i].estimate, i + 1 < regret->kernels ? ", " : "");
  }
  fputs("},\n     \"times\": {", file);
  const char *between = "";
  for (int i = 0; i < regret->kernels; i++) { /* those that were timed, not only tried */
    if (regret->kernel[i].replays < 2) continue;
    fputs(between, file);
    put_number(file, regret->kernel[i].name, regret->kernel[i].us, "");
    between = ", ";
  }
  fputs("},\n     ", file);
}

static const char *baseline_of(const bench_machine *machine, const bench_case *c, const bench_result *r) {
  if (!isfinite(r->baseline.us)) return "";
  return c->operation == BENCH_QUANTIZE ? "copy" : c->operation == BENCH_GEMM ? machine->blas : "";
}

/* `of` stands in front of the keys. */
static void put_clock(FILE *file, const char *of, const bench_time *time) {
  char key[3][32];
  snprintf(key[0], sizeof key[0], "%smhz", of);
  snprintf(key[1], sizeof key[1], "%swatts", of);
  snprintf(key[2], sizeof key[2], "%ssettled", of);
  put_number(file, key[0], bench_known(time->mhz), ", ");
  put_number(file, key[1], bench_known(time->watts), ", ");
  put_number(file, key[2], time->rounds ? time->settled : (double)NAN, "");
}

static void put_case(FILE *file, const bench_machine *machine, const bench_case *c, const bench_result *r) {
  int product = c->operation != BENCH_PACK && c->operation != BENCH_UNPACK && c->operation != BENCH_IMPORT;
  fputs("    {", file);
  put_text(file, "name", c->name, ", ");
  put_text(file, "operation", bench_operation_name(c->operation), ", ");
  put_text(file, "shape", c->shape, ",\n     ");
  fprintf(file, "\"m\": %lld, \"n\": %lld, \"k\": %lld, ", (long long)c->m, (long long)c->desc.n, (long long)c->desc.k);
  put_text(file, "weights", c->operation == BENCH_BLAS ? lpgemm_dtype_name(c->baseline) : c->weights, ", ");
  fprintf(file, "\"bits\": %d, ", lpgemm_dtype_bits(c->operation == BENCH_BLAS ? c->baseline : c->desc.type));
  put_text(file, "x", product ? lpgemm_dtype_name(c->x_type) : "", ", ");
  put_text(file, "y", product ? lpgemm_dtype_name(c->y_type) : "", ", ");
  fprintf(file, "\"x_gap\": %lld, \"invariant\": \"%s\", \"prepared\": \"%s\", \"threads\": %d,\n     ",
          (long long)c->x_gap, c->batch_invariant ? "yes" : "no", c->gives_prepared ? "given" : "no", c->threads);
  put_text(file, "kernel", r->kernel, ", ");
  put_text(file, "family", r->family, ",\n     ");
  put_text(file, "plan", r->plan, ",\n     ");
  if (c->draw) fprintf(file, "\"draw\": %lld, ", (long long)c->draw);
  if (c->draw) put_text(file, "use", c->use, ", ");
  put_number(file, "us", r->time.us, ", ");
  put_number(file, "us_min", r->time.us_min, ", ");
  put_number(file, "us_max", r->time.us_max, ", ");
  fprintf(file, "\"replays\": %d, \"launches\": %lld, ", r->time.replays, (long long)r->time.launches);
  put_number(file, "nodes", bench_known(r->time.nodes), ",\n     ");
  put_text(file, "mode", r->time.rounds ? "sustained" : "burst", ", ");
  put_clock(file, "", &r->time);
  fputs(", ", file);
  put_clock(file, "baseline_", &r->baseline);
  fputs(",\n     ", file);
  put_number(file, "limit_us", r->limit_us, ", ");
  put_number(file, "eff", bench_efficiency(r), ", ");
  put_text(file, "baseline", baseline_of(machine, c, r), ", ");
  put_text(file, "blas_type", lpgemm_dtype_name(c->baseline), ", ");
  put_number(file, "baseline_us", r->baseline.us, ", ");
  put_number(file, "ratio", bench_ratio(r), ",\n     ");
  put_number(file, "bytes", r->bytes, ", ");
  put_number(file, "gbps", bench_gbps(r), ", ");
  put_number(file, "tflops", bench_tflops(c, r), ", ");
  put_number(file, "rms_error", r->rms_error, ",\n     ");
  if (c->operation == BENCH_REGRET) put_regret(file, c, r);
  if (c->operation == BENCH_EXPERTS) {
    fprintf(file, "\"experts\": %d, \"top_k\": %d, ", c->experts, c->top_k);
    put_number(file, "named", r->named, ", ");
    put_number(file, "most", r->most, ",\n     ");
  }
  if (c->operation == BENCH_TOKEN) {
    fprintf(file, "\"layers\": %d, ", c->layers);
    put_number(file, "tokens_per_second", 1e6 * (double)c->m / r->time.us, ",\n     ");
  }
  put_text(file, "checked", r->checked, ", ");
  put_text(file, "error", r->error, "}");
}

/* How cases of the mode "sustained" were timed. */
static void put_rule(FILE *file, const bench_machine *machine) {
  if (!machine->time_sustained) return;
  fprintf(file, "\"sustained\": {\"least_m\": %d, ", BENCH_BURST_ROWS + 1);
  put_number(file, "window_s", BENCH_WINDOW_SECONDS, ", ");
  put_number(file, "agreement", BENCH_AGREEMENT, ", ");
  put_text(file, "settled_by", machine->settled_by, ", ");
  put_number(file, "least_s", BENCH_LEAST_SECONDS, ", ");
  put_number(file, "most_s", machine->turn_seconds, ", ");
  fprintf(file, "\"rounds\": %d},\n  ", BENCH_ROUNDS);
}

static void put_run(FILE *file, const bench_run *run) {
  char date[32];
  time_t now = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  fputs("{\n  ", file);
  put_text(file, "suite", run->suite, ",\n  ");
  put_text(file, "commit", bench_commit(), ",\n  ");
  put_text(file, "date", date, ",\n  ");
  put_text(file, "build", lpgemm_build_info(), ",\n  ");
  put_text(file, "backend", run->machine->backend == LPGEMM_BACKEND_CUDA ? "cuda" : "cpu", ",\n  ");
  put_text(file, "device", run->machine->device, ",\n  ");
  put_text(file, "driver", run->machine->driver, ",\n  ");
  put_text(file, "runtime", run->machine->runtime, ",\n  ");
  put_number(file, "read_gbps", run->machine->read_gbps, ",\n  ");
  put_number(file, "copy_gbps", run->machine->copy_gbps, ",\n  ");
  put_text(file, "void", run->void_because ? run->void_because : "", ",\n  ");
  put_rule(file, run->machine);
  put_text(file, "part", run->part ? run->part : "1/1", ",\n  ");
  fprintf(file, "\"seed\": %lld,\n  \"suite_cases\": %d,\n  \"cases\": [", (long long)run->seed, run->count);
  int first = 1;
  for (int i = 0; i < run->count; i++) {
    if (!run->done[i]) continue;
    fputs(first ? "\n" : ",\n", file);
    put_case(file, run->machine, &run->cases[i], &run->results[i]);
    first = 0;
  }
  fputs("\n  ]\n}\n", file);
}

bench_error bench_write_record(const bench_run *run, const char *path) {
  char fresh[1024];
  BENCH_CHECK(snprintf(fresh, sizeof fresh, "%s.new", path) < (int)sizeof fresh, "the path of the record is too long");
  FILE *file = fopen(fresh, "w");
  BENCH_CHECK(file, "cannot write %s", fresh);
  put_run(file, run);
  int failed = ferror(file);
  if (fclose(file) != 0 || failed || rename(fresh, path) != 0) {
    remove(fresh);
    return bench_fail("cannot write %s", path);
  }
  return NULL;
}
