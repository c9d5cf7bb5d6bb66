/* --check: reads OUT again and compares it with MODEL: every matrix with the one that the file gives when it is
 * imported afresh and, so that the library is not compared with itself, with the format's own formula, weight by
 * weight, or for GGUF with the file's blocks. Matrices are shared among threads. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "convert_formula.h"
#include "convert_pack.h"

enum { PIECE_WEIGHTS = 4 << 20, WHY = 1600, MOST_THREADS = 8 };

typedef struct check {
  const convert_plan *plan;
  lpgemm_file_t out;
  pthread_mutex_t mutex; /* of what follows */
  size_t next, count;
  convert_progress progress;
  uint64_t weights; /* compared */
  size_t matrices, tensors;
  size_t differs; /* the first entry that does */
  char why[WHY];
} check;

typedef struct worker {
  check *c;
  lpgemm_handle_t handle;
  pthread_t thread;
  char why[WHY];
} worker;

static int differ(worker *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int differ(worker *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(w->why, sizeof w->why, format, args);
  va_end(args);
  return 0;
}

static int failed(worker *w, const char *name) { return differ(w, "%s: %s", name, lpgemm_last_error()); }

static const char *out_of(const worker *w) { return w->c->plan->options->out; }

/* ---- one matrix ---- */

typedef struct matrix {
  const convert_job *job;
  convert_parts parts;
  lpgemm_weights_t weights;
  float *values; /* [n][ld]; NULL until somebody needs them */
  int64_t ld;
} matrix;

static int unpack(worker *w, matrix *m) {
  const lpgemm_weight_desc_t *d = &m->parts.desc;
  if (m->values) return 1;
  m->values = malloc((size_t)d->n * (size_t)m->ld * sizeof *m->values + 1);
  if (!m->values) {
    cli_fail("no memory for %lld x %lld numbers of %s; --threads 1 needs the least", (long long)d->n, (long long)m->ld,
             m->job->name);
  }
  const lpgemm_status_t status = lpgemm_unpack_weights(w->handle, m->weights, LPGEMM_F32, m->values, m->ld);
  return status == LPGEMM_SUCCESS || failed(w, m->job->name);
}

/* Rows of the matrix against numbers that are to be the same. */
static int same_rows(worker *w, const matrix *m, int64_t first_row, int64_t rows, const float *want, int64_t want_ld,
                     const char *what) {
  for (int64_t i = 0; i < rows; i++) {
    const float *a = m->values + (first_row + i) * m->ld, *b = want + i * want_ld;
    if (memcmp(a, b, (size_t)m->ld * sizeof *a) == 0) continue;
    for (int64_t k = 0; k < m->ld; k++) {
      if (a[k] == b[k] || (a[k] != a[k] && b[k] != b[k])) continue;
      return differ(w, "%s: weight [%lld][%lld] is %.9g in %s, and %.9g %s", m->job->name, (long long)(first_row + i),
                    (long long)k, (double)a[k], out_of(w), (double)b[k], what);
    }
  }
  return 1;
}

/* ---- against the file, imported afresh ---- */

/* 1 if the whole, packed again, has the same bytes: then its numbers are the same. */
static int is_same_blob(worker *w, const matrix *m, const lpgemm_tensor_t *blob) {
  enum { PAGE = 4096 };
  char why[WHY];
  lpgemm_weights_t weights;
  int same = 0;
  void *memory = aligned_alloc(PAGE, (m->parts.bytes + PAGE - 1) / PAGE * PAGE);
  if (!memory) cli_fail("no memory for a matrix of %zu bytes", m->parts.bytes);
  if (convert_pack(w->handle, &m->parts, m->job->bytes, memory, &weights, NULL, why)) {
    same = blob->bytes == m->parts.bytes && memcmp(blob->data, memory, blob->bytes) == 0;
    (void)lpgemm_weights_destroy(weights);
  }
  free(memory);
  return same;
}

/* Rows of a part, imported afresh in pieces and unpacked. */
static int check_values(worker *w, const matrix *m, const lpgemm_import_t *part, int64_t first_row, int64_t rows) {
  int64_t step = PIECE_WEIGHTS / (m->ld ? m->ld : 1);
  if (step < 16) step = 16;
  if (step > rows) step = rows;
  float *fresh = cli_allocate((size_t)step * (size_t)m->ld * sizeof *fresh);
  int same = 1;
  for (int64_t row = 0; row < rows && same; row += step) {
    lpgemm_import_t piece = *part;
    lpgemm_weights_t weights;
    const int64_t count = rows - row < step ? rows - row : step;
    piece.n0 = part->n0 + row;
    piece.n1 = piece.n0 + count;
    same = lpgemm_import_weights(w->handle, &piece, 1, NULL, 0, &weights) == LPGEMM_SUCCESS || failed(w, m->job->name);
    if (!same) break;
    same = lpgemm_unpack_weights(w->handle, weights, LPGEMM_F32, fresh, m->ld) == LPGEMM_SUCCESS ||
           failed(w, m->job->name);
    (void)lpgemm_weights_destroy(weights);
    if (same) same = same_rows(w, m, first_row + row, count, fresh, m->ld, "in the model, imported again");
  }
  free(fresh);
  return same;
}

/* ---- independently: by the format's formula, or written as blocks of GGUF again ---- */

static int has_formula(const lpgemm_import_t *part, const lpgemm_weight_desc_t *whole) {
  const int cut = part->k0 != 0 || (part->k1 != 0 && part->k1 != whole->k);
  return convert_has_formula(part, whole) && !(cut && whole->columns == LPGEMM_COLUMNS_ORDERED);
}

static int check_formula(worker *w, const matrix *m, const lpgemm_import_t *part, const lpgemm_weight_desc_t *whole,
                         int64_t first_row, int64_t rows) {
  double *terms = cli_allocate((size_t)(2 * whole->k + 2) * sizeof *terms);
  float *row = cli_allocate((size_t)whole->k * sizeof *row);
  int same = 1;
  for (int64_t i = 0; i < rows && same; i++) {
    convert_formula_row(part, whole, part->n0 + i, terms, row);
    same = same_rows(w, m, first_row + i, 1, row + part->k0, whole->k, "by the format's formula");
  }
  free(terms);
  free(row);
  return same;
}

/* The blocks of a part against those that rows first_row ... were written to. */
static int check_part_blocks(worker *w, const matrix *m, const lpgemm_import_t *part, int64_t first_row, int64_t rows,
                             const uint8_t *blocks, size_t row_bytes) {
  const lpgemm_tensor_t *t = &part->tensors[0];
  const int64_t n = t->shape[t->dims - 2], k = t->shape[t->dims - 1], experts = t->dims == 3 ? t->shape[0] : 1;
  const size_t file_row = t->bytes / (size_t)n / (size_t)experts;
  const uint8_t *from = (const uint8_t *)t->data + (size_t)(part->expert * n + part->n0) * file_row +
                        file_row * (size_t)part->k0 / (size_t)k; /* whole blocks */
  for (int64_t i = 0; i < rows; i++) {
    if (memcmp(blocks + (size_t)(first_row + i) * row_bytes, from + (size_t)i * file_row, row_bytes) == 0) continue;
    return differ(w, "%s: row %lld of %s, written as blocks of GGUF, is not what the model has", m->job->name,
                  (long long)(first_row + i), out_of(w));
  }
  return 1;
}

/* The matrix as blocks; NULL if it cannot be written so. */
static uint8_t *write_blocks(worker *w, const matrix *m, size_t *row_bytes) {
  enum { NVFP4 = 40 }; /* whose blocks have bits that mean nothing */
  const lpgemm_import_t *first = &m->parts.part[0];
  const int number = (int)(first->tensors[0].type & 0xff);
  size_t bytes;
  if (first->format != LPGEMM_FORMAT_GGUF || number == NVFP4) return NULL;
  if (lpgemm_export_size(m->weights, number, &bytes) != LPGEMM_SUCCESS) return NULL; /* of an expanded type */
  uint8_t *blocks = cli_allocate(bytes);
  *row_bytes = bytes / (size_t)m->parts.desc.n;
  if (lpgemm_export(w->handle, m->weights, number, blocks, bytes) == LPGEMM_SUCCESS) return blocks;
  free(blocks);
  return NULL;
}

/* ---- all that is compared of a matrix ---- */

static int check_part(worker *w, matrix *m, const lpgemm_import_t *part, int64_t first_row, int64_t *rows,
                      int same_blob, const uint8_t *blocks, size_t row_bytes) {
  lpgemm_import_t all = *part;
  all.n0 = all.n1 = all.k0 = all.k1 = 0;
  lpgemm_weight_desc_t whole = {.size = sizeof whole};
  if (lpgemm_import_desc(&all, 1, &whole) != LPGEMM_SUCCESS) return failed(w, m->job->name);
  *rows = (part->n1 ? part->n1 : whole.n) - part->n0;
  const int formula = has_formula(part, &whole);
  if (blocks && !check_part_blocks(w, m, part, first_row, *rows, blocks, row_bytes)) return 0;
  if (formula && !(unpack(w, m) && check_formula(w, m, part, &whole, first_row, *rows))) return 0;
  if (same_blob && (blocks || formula)) return 1;
  return unpack(w, m) && check_values(w, m, part, first_row, *rows);
}

static int same_desc(worker *w, const matrix *m) {
  char have[CONVERT_WORDS], want[CONVERT_WORDS];
  lpgemm_weights_info_t info = {.size = sizeof info};
  cli_check(lpgemm_weights_info(m->weights, &info));
  const lpgemm_weight_desc_t *a = &info.desc, *b = &m->parts.desc;
  convert_desc_words(a, have);
  convert_desc_words(b, want);
  if (a->experts || a->rows) {
    return differ(w, "%s is a stack of experts or has pairs of rows in %s, and the model makes one plain matrix",
                  m->job->name, out_of(w));
  }
  if (a->n == b->n && a->k == b->k && a->x_k == b->x_k && strcmp(have, want) == 0) return 1;
  return differ(w, "%s is %lld x %lld of %s in %s, and the model makes %lld x %lld of %s", m->job->name,
                (long long)a->n, (long long)a->k, have, out_of(w), (long long)b->n, (long long)b->k, want);
}

static int check_parts(worker *w, matrix *m, const lpgemm_tensor_t *blob) {
  size_t row_bytes = 0;
  if (!same_desc(w, m)) return 0;
  const int same_blob = is_same_blob(w, m, blob);
  uint8_t *blocks = write_blocks(w, m, &row_bytes);
  int same = 1;
  int64_t row = 0, rows = 0;
  for (size_t i = 0; i < m->parts.count && same; i++, row += rows) {
    same = check_part(w, m, &m->parts.part[i], row, &rows, same_blob, blocks, row_bytes);
  }
  free(blocks);
  return same;
}

static int check_matrix(worker *w, const convert_job *job, const lpgemm_tensor_t *blob) {
  matrix m = {.job = job};
  if (!convert_resolve(w->c->plan, job, &m.parts)) return differ(w, "%s: %s", job->name, m.parts.why);
  if (blob->type != LPGEMM_BLOB) return differ(w, "%s is no packed matrix in %s", job->name, out_of(w));
  if (lpgemm_deserialize(w->handle, blob->data, blob->bytes, LPGEMM_LOAD_VIEW, &m.weights) != LPGEMM_SUCCESS) {
    return failed(w, job->name);
  }
  m.ld = m.parts.desc.x_k ? m.parts.desc.x_k : m.parts.desc.k;
  const int same = check_parts(w, &m, blob);
  free(m.values);
  (void)lpgemm_weights_destroy(m.weights);
  pthread_mutex_lock(&w->c->mutex);
  w->c->weights += (uint64_t)m.parts.desc.n * (uint64_t)m.parts.desc.k;
  w->c->matrices++;
  pthread_mutex_unlock(&w->c->mutex);
  return same;
}

/* ---- entries ---- */

static int check_tensor(worker *w, const convert_job *job, const lpgemm_tensor_t *copy) {
  lpgemm_tensor_t t;
  cli_check(lpgemm_file_tensor(w->c->plan->file, job->tensor, &t));
  int same = copy->type == t.type && copy->dims == t.dims && copy->bytes == t.bytes;
  for (int i = 0; i < t.dims && same; i++) same = copy->shape[i] == t.shape[i];
  if (!same) return differ(w, "%s has another type or shape in %s than in the model", job->name, out_of(w));
  if (t.bytes && memcmp(copy->data, t.data, t.bytes) != 0) {
    return differ(w, "%s has other bytes in %s than in the model", job->name, out_of(w));
  }
  pthread_mutex_lock(&w->c->mutex);
  w->c->tensors++;
  pthread_mutex_unlock(&w->c->mutex);
  return 1;
}

static int check_entry(worker *w, size_t i) {
  const convert_job *job = &w->c->plan->jobs[i];
  lpgemm_tensor_t entry;
  cli_check(lpgemm_file_tensor(w->c->out, i, &entry));
  if (strcmp(entry.name, job->name) != 0) {
    return differ(w, "entry %zu of %s is %s, and the model makes %s: give the options that it was made with", i,
                  out_of(w), entry.name, job->name);
  }
  if (lpgemm_file_check(w->c->out, i) != LPGEMM_SUCCESS) return differ(w, "%s", lpgemm_last_error());
  return job->count ? check_matrix(w, job, &entry) : check_tensor(w, job, &entry);
}

static void *run(void *context) {
  worker *w = context;
  check *c = w->c;
  pthread_mutex_lock(&c->mutex);
  while (c->next < c->count && c->next < c->differs && !convert_interrupted()) {
    const size_t i = c->next++;
    pthread_mutex_unlock(&c->mutex);
    const int same = check_entry(w, i);
    pthread_mutex_lock(&c->mutex);
    convert_progress_add(&c->progress, c->plan->jobs[i].bytes);
    if (same || i > c->differs) continue;
    c->differs = i;
    memcpy(c->why, w->why, sizeof c->why);
  }
  pthread_mutex_unlock(&c->mutex);
  return NULL;
}

static void run_all(check *c, int threads) {
  worker workers[MOST_THREADS] = {0};
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .num_threads = 1};
  int started = 0;
  pthread_mutex_init(&c->mutex, NULL);
  for (int i = 0; i < threads; i++) {
    workers[i].c = c;
    cli_check(lpgemm_create(&workers[i].handle, &config));
  }
  while (started + 1 < threads && pthread_create(&workers[started + 1].thread, NULL, run, &workers[started + 1]) == 0) {
    started++;
  }
  run(&workers[0]);
  for (int i = 1; i <= started; i++) pthread_join(workers[i].thread, NULL);
  for (int i = 0; i < threads; i++) cli_check(lpgemm_destroy(workers[i].handle));
  pthread_mutex_destroy(&c->mutex);
}

static void show_result(const check *c, double seconds) {
  const convert_options *o = c->plan->options;
  if (o->json) {
    printf("{\"same\": %s, \"matrices\": %zu, \"tensors\": %zu, \"weights\": %llu, \"seconds\": %.3f, \"difference\": ",
           *c->why ? "false" : "true", c->matrices, c->tensors, (unsigned long long)c->weights, seconds);
    cli_json_text(*c->why ? c->why : NULL);
    printf("}\n");
  } else if (!*c->why) {
    printf("%s: %zu matrices with %llu weights and %zu tensors are those of %s (%.1f s)\n", o->out, c->matrices,
           (unsigned long long)c->weights, c->tensors, o->model, seconds);
  }
}

int convert_check(convert_plan *plan) {
  static check c;
  const convert_options *o = plan->options;
  c.plan = plan;
  c.differs = SIZE_MAX;
  if (lpgemm_file_open(o->out, &c.out) != LPGEMM_SUCCESS) cli_fail("%s", lpgemm_last_error());
  cli_check(lpgemm_file_counts(c.out, &c.count, NULL));
  convert_catch_signals();
  convert_progress_start(&c.progress, plan->bytes);
  if (c.count != plan->job_count) {
    snprintf(c.why, sizeof c.why, "%s has %zu entries, and the model makes %zu: give the options that it was made with",
             o->out, c.count, plan->job_count);
  } else {
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int threads = o->threads ? o->threads : cores < 1 ? 1 : cores > MOST_THREADS ? MOST_THREADS : (int)cores;
    run_all(&c, threads > MOST_THREADS ? MOST_THREADS : threads);
  }
  const double seconds = convert_now() - c.progress.start;
  convert_progress_end(&c.progress);
  if (!*c.why && convert_interrupted()) cli_fail("interrupted; %s was not compared to its end", o->out);
  show_result(&c, seconds);
  cli_check(lpgemm_file_close(c.out));
  if (*c.why && !o->json) cli_fail("%s", c.why);
  return *c.why ? CLI_FAILED : CLI_OK;
}
