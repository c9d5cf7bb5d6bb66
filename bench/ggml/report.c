#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "build_info.h"
#include "lpgemm.h"

static void put_processor(FILE *file) {
  char line[512], name[256] = "unknown";
  FILE *info = fopen("/proc/cpuinfo", "r");
  while (info && fgets(line, sizeof line, info)) {
    const char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || !colon) continue;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(colon + 2, "\n\"\\"), colon + 2);
    break;
  }
  if (info) fclose(info);
  fprintf(file, "  \"device\": \"%s\",\n", name);
}

void report_begin(report *to, const char *path, int threads, const char *ggml) {
  *to = (report){.path = path};
  printf("%s\n%-8s %-12s %4s %-5s %10s %10s %6s  %-26s %9s %9s\n", ggml, "type", "shape", "rows", "level", "us",
         "ggml us", "ratio", "kernel", "error", "ggml's");
  if (!path) return;
  to->file = fopen(path, "w");
  if (!to->file) {
    fprintf(stderr, "ggml-compare: cannot write %s\n", path);
    exit(1);
  }
  char date[32];
  const time_t now = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  const char *commit = getenv("LPGEMM_COMMIT");
  fprintf(to->file,
          "{\n  \"suite\": \"ggml-compare\",\n  \"commit\": \"%s\",\n  \"date\": \"%s\",\n  \"build\": \"%s\",\n",
          commit && *commit ? commit : LPG_COMMIT, date, lpgemm_build_info());
  put_processor(to->file);
  fprintf(
      to->file,
      "  \"ggml\": \"%s\",\n  \"threads\": %d,\n  \"time\": \"CPU time of the process, both sides in turn, least of "
      "7\",\n  \"cases\": [",
      ggml, threads);
}

void report_add(report *to, const report_row *row) {
  const double ratio = row->us / row->ggml_us;
  const int level = strcmp(row->level, "fast") != 0;
  char shape[32];
  snprintf(shape, sizeof shape, "%lldx%lld", (long long)row->n, (long long)row->k);
  printf("%-8s %-12s %4lld %-5s %10.1f %10.1f %6.2f  %-26s %9.2e %9.2e\n", row->type, shape, (long long)row->m,
         row->level, row->us, row->ggml_us, ratio, row->kernel, row->error[0].rms, row->error[1].rms);
  fflush(stdout);
  to->logs[level] += log(ratio);
  to->most[level] = fmax(to->most[level], ratio);
  to->counts[level]++;
  if (!to->file) return;
  fprintf(
      to->file,
      "%s\n    {\"name\": \"%s/%s/m%lld/%s\", \"type\": \"%s\", \"shape\": \"%s\", \"m\": %lld, \"n\": %lld, \"k\": "
      "%lld, \"level\": \"%s\",\n     \"kernel\": \"%s\", \"us\": %.6g, \"ggml_us\": %.6g, \"ratio\": %.4g, "
      "\"ggml_repacked\": %s,\n     \"rms_error\": %.3g, \"most_error\": %.3g, \"ggml_rms_error\": %.3g, "
      "\"ggml_most_error\": %.3g}",
      to->rows++ ? "," : "", row->type, shape, (long long)row->m, row->level, row->type, shape, (long long)row->m,
      (long long)row->n, (long long)row->k, row->level, row->kernel, row->us, row->ggml_us, ratio,
      row->repacked ? "true" : "false", row->error[0].rms, row->error[0].most, row->error[1].rms, row->error[1].most);
}

void report_end(report *to) {
  static const char *const names[2] = {"fast", "exact"};
  for (int i = 0; i < 2; i++) {
    if (to->counts[i] == 0) continue;
    printf("%s: geometric mean %.3f, greatest %.2f, %d cases\n", names[i], exp(to->logs[i] / to->counts[i]),
           to->most[i], to->counts[i]);
  }
  if (!to->file) return;
  fputs("\n  ]\n}\n", to->file);
  if (fclose(to->file) != 0) fprintf(stderr, "ggml-compare: cannot write %s\n", to->path);
}
