/* Packs what the plan says and writes it. A failure or an interruption leaves nothing. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "convert_pack.h"
#include "convert_writer.h"

/* ---- interruption ---- */

static atomic_int caught; /* --check reads it on all threads */

static void on_signal(int number) { atomic_store(&caught, number); }

int convert_interrupted(void) { return atomic_load(&caught) != 0; }

void convert_catch_signals(void) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < CLI_COUNT(numbers); i++) {
    struct sigaction before; /* nohup's stays */
    if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    sigaction(numbers[i], &action, NULL);
  }
  signal(SIGXFSZ, SIG_IGN); /* a limit of the file size is a failed write */
}

/* ---- before anything is written ---- */

/* What --force may replace: a container, or a file without a byte. A typing error must not cost a shard or a config. */
static int is_replaceable(const char *path, const struct stat *status) {
  static const char magic[] = "LPGMODEL"; /* docs/formats.md */
  char head[sizeof magic - 1];
  if (!S_ISREG(status->st_mode)) return 0;
  if (status->st_size == 0) return 1;
  FILE *file = fopen(path, "rb");
  if (!file) return 0;
  const int same = fread(head, 1, sizeof head, file) == sizeof head && memcmp(head, magic, sizeof head) == 0;
  fclose(file);
  return same;
}

/* Before anything is packed: the library says it too, but of OUT it knows no more than that it is there. */
static void check_out(const convert_options *o) {
  struct stat model, out;
  if (stat(o->out, &out) != 0) return;
  if (stat(o->model, &model) == 0 && model.st_dev == out.st_dev && model.st_ino == out.st_ino) {
    cli_fail("%s and %s are the same file; give OUT another name", o->model, o->out);
  }
  if (S_ISDIR(out.st_mode)) cli_fail("%s is a folder; give OUT a name in it", o->out);
  if (!o->force) cli_fail("%s is there already; remove it, give another name, or --force", o->out);
  if (is_replaceable(o->out, &out)) return;
  cli_fail("%s is no container of lpgemm-convert, and --force replaces only those; remove it, or give another name",
           o->out);
}

typedef struct sizes {
  size_t matrices, tensors;
  uint64_t written;
} sizes;

/* Every matrix must be readable; *s says how much there is. */
static void look_at_all(convert_plan *plan, sizes *s) {
  size_t refused = 0;
  char first[1600] = "";
  for (size_t i = 0; i < plan->job_count; i++) {
    const convert_job *job = &plan->jobs[i];
    convert_parts parts;
    if (job->count == 0) {
      s->tensors++;
      s->written += job->bytes;
      continue;
    }
    if (!convert_resolve(plan, job, &parts)) {
      const char *name = strstr(parts.why, job->name) ? "" : job->name;
      if (refused++ == 0) snprintf(first, sizeof first, "%s%s%s", name, *name ? ": " : "", parts.why);
      continue;
    }
    if (parts.whole) convert_note(plan, "%s is whole in every rank: its name does not say how to share it", job->name);
    s->matrices++;
    s->written += parts.bytes;
  }
  if (refused > 1) cli_fail("%s (and %zu layers more; --list names them)", first, refused - 1);
  if (refused) cli_fail("%s", first);
}

static void show_summary(const convert_plan *plan, const sizes *s, double seconds) {
  const convert_options *o = plan->options;
  char in[CONVERT_WORDS], out[CONVERT_WORDS];
  const double rate = seconds > 0 ? (double)plan->bytes / seconds / 1e6 : 0;
  if (o->json) {
    printf("{\"model\": ");
    cli_json_text(o->model);
    printf(", \"output\": ");
    cli_json_text(o->out);
    printf(", \"matrices\": %zu, \"tensors\": %zu, \"bytes_read\": %llu, \"bytes_written\": %llu, \"seconds\": %.3f",
           s->matrices, s->tensors, (unsigned long long)plan->bytes, (unsigned long long)s->written, seconds);
    printf(", \"notes\": [");
    for (size_t i = 0; i < plan->note_count; i++) {
      printf("%s\n  ", i ? "," : "");
      cli_json_text(plan->notes[i]);
    }
    printf("%s]}\n", plan->note_count ? "\n" : "");
    return;
  }
  printf("%s: %zu matrices packed and %zu tensors copied, %s from %s in %.1f s (%.0f MB/s)\n", o->out, s->matrices,
         s->tensors, convert_size_words(s->written, out), convert_size_words(plan->bytes, in), seconds, rate);
}

/* ---- the work ---- */

typedef struct work {
  const convert_plan *plan;
  lpgemm_handle_t handle;
  convert_writer writer;
  convert_progress progress;
  char why[1600]; /* "" after an interruption */
} work;

static int write_job(work *w, const convert_job *job) {
  convert_place *place;
  if (job->count == 0) {
    place = convert_writer_place(&w->writer, 0);
    if (!place) return 0; /* the writer knows why */
    cli_check(lpgemm_file_tensor(w->plan->file, job->tensor, &place->tensor));
    convert_writer_put(&w->writer, place);
    convert_progress_add(&w->progress, job->bytes);
    return 1;
  }
  convert_parts parts;
  char why[1200];
  lpgemm_weights_t weights;
  int done = convert_resolve(w->plan, job, &parts);
  if (!done) snprintf(why, sizeof why, "%s", parts.why);
  if (done) {
    place = convert_writer_place(&w->writer, parts.bytes);
    if (!place) return 0;
    place->name = job->name;
    done = convert_pack(w->handle, &parts, job->bytes, place->memory, &weights, &w->progress, why);
  }
  if (!done) {
    snprintf(w->why, sizeof w->why, "%s%s%s", *why ? job->name : "", *why ? ": " : "", why);
    return 0;
  }
  place->weights = weights;
  convert_writer_put(&w->writer, place);
  return 1;
}

int convert_write(convert_plan *plan) {
  const convert_options *o = plan->options;
  static work w;
  sizes s = {0};
  check_out(o);
  look_at_all(plan, &s);
  for (size_t i = 0; i < plan->note_count; i++) fprintf(stderr, "%s: note: %s\n", cli_program, plan->notes[i]);
  convert_catch_signals();
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .num_threads = o->threads};
  w.plan = plan;
  cli_check(lpgemm_create(&w.handle, &config));
  if (!convert_writer_start(&w.writer, o->out, o->force)) cli_fail("%s", w.writer.why);
  convert_progress_start(&w.progress, plan->bytes);
  int done = 1;
  for (size_t i = 0; i < plan->job_count && done; i++) {
    done = !convert_interrupted() && write_job(&w, &plan->jobs[i]);
  }
  const int written = convert_writer_end(&w.writer, done && !convert_interrupted());
  const double seconds = convert_now() - w.progress.start;
  convert_progress_end(&w.progress);
  if (*w.why) cli_fail("%s", w.why);
  if (!written && *w.writer.why) cli_fail("%s", w.writer.why);
  if (!written) cli_fail("interrupted; %s was not written", o->out);
  cli_check(lpgemm_destroy(w.handle));
  show_summary(plan, &s, seconds);
  return CLI_OK;
}
