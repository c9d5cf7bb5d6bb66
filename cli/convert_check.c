/* --check: reads OUT again and compares it with MODEL, number by number: unpacked weights with those of the file
 * imported afresh in pieces, and, so that the library is not compared with itself, with the format's own formula, or
 * for GGUF with the file's blocks. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert_formula.h"

enum { PIECE_WEIGHTS = 4 << 20, WHY = 1600 };

typedef struct check {
  const convert_plan *plan;
  lpgemm_file_t out;
  lpgemm_handle_t handle;
  convert_progress progress;
  uint64_t weights;                     /* compared */
  size_t by_formula, matrices, tensors; /* by_formula: parts */
  char why[WHY];                        /* the first difference */
} check;

static int differ(check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int differ(check *c, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(c->why, sizeof c->why, format, args);
  va_end(args);
  return 0;
}

static int failed(check *c, const char *name) { return differ(c, "%s: %s", name, lpgemm_last_error()); }

/* ---- one matrix ---- */

typedef struct matrix {
  const convert_job *job;
  convert_parts parts;
  lpgemm_weights_t weights;
  float *values; /* [n][ld] */
  int64_t ld;
} matrix;

/* Rows of the matrix against numbers that are to be the same. */
static int same_rows(check *c, const matrix *m, int64_t first_row, int64_t rows, const float *want, int64_t want_ld,
                     int64_t columns, const char *what) {
  for (int64_t i = 0; i < rows; i++) {
    const float *a = m->values + (first_row + i) * m->ld, *b = want + i * want_ld;
    if (memcmp(a, b, (size_t)columns * sizeof *a) == 0) continue;
    for (int64_t k = 0; k < columns; k++) {
      if (memcmp(&a[k], &b[k], sizeof *a) == 0 || (a[k] != a[k] && b[k] != b[k])) continue;
      return differ(c, "%s: weight [%lld][%lld] is %.9g in %s, and %.9g %s", m->job->name, (long long)(first_row + i),
                    (long long)k, (double)a[k], c->plan->options->out, (double)b[k], what);
    }
  }
  return 1;
}

/* Rows of a part, imported afresh. */
static int check_piece(check *c, const matrix *m, const lpgemm_import_t *piece, int64_t first_row, int64_t rows,
                       float *fresh) {
  lpgemm_weights_t weights;
  if (lpgemm_import_weights(c->handle, piece, 1, NULL, 0, &weights) != LPGEMM_SUCCESS) return failed(c, m->job->name);
  const lpgemm_status_t status = lpgemm_unpack_weights(c->handle, weights, LPGEMM_F32, fresh, m->ld);
  (void)lpgemm_weights_destroy(weights);
  if (status != LPGEMM_SUCCESS) return failed(c, m->job->name);
  return same_rows(c, m, first_row, rows, fresh, m->ld, m->ld, "in the model, imported again");
}

static int check_formula(check *c, const matrix *m, const lpgemm_import_t *part, const lpgemm_weight_desc_t *whole,
                         int64_t first_row, int64_t rows) {
  const int cut = part->k0 != 0 || (part->k1 != 0 && part->k1 != whole->k);
  if (!convert_has_formula(part, whole) || (cut && whole->columns == LPGEMM_COLUMNS_ORDERED)) return 1;
  double *terms = cli_allocate((size_t)(2 * whole->k + 2) * sizeof *terms);
  float *row = cli_allocate((size_t)whole->k * sizeof *row);
  int same = 1;
  for (int64_t i = 0; i < rows && same; i++) {
    convert_formula_row(part, whole, part->n0 + i, terms, row);
    same = same_rows(c, m, first_row + i, 1, row + part->k0, whole->k, m->ld, "by the format's formula");
  }
  free(terms);
  free(row);
  c->by_formula += same != 0;
  return same;
}

static int check_part(check *c, const matrix *m, const lpgemm_import_t *part, int64_t first_row, int64_t *rows) {
  lpgemm_import_t all = *part;
  all.n0 = all.n1 = all.k0 = all.k1 = 0;
  lpgemm_weight_desc_t whole = {.size = sizeof whole};
  if (lpgemm_import_desc(&all, 1, &whole) != LPGEMM_SUCCESS) return failed(c, m->job->name);
  const int64_t end = part->n1 ? part->n1 : whole.n;
  *rows = end - part->n0;
  int64_t step = PIECE_WEIGHTS / (m->ld ? m->ld : 1);
  if (step < 16) step = 16;
  if (step > *rows) step = *rows;
  float *fresh = cli_allocate((size_t)(step * m->ld) * sizeof *fresh);
  int same = 1;
  for (int64_t row = 0; row < *rows && same && !convert_interrupted(); row += step) {
    lpgemm_import_t piece = *part;
    const int64_t count = *rows - row < step ? *rows - row : step;
    piece.n0 = part->n0 + row;
    piece.n1 = piece.n0 + count;
    same = check_piece(c, m, &piece, first_row + row, count, fresh);
    convert_progress_add(&c->progress, (uint64_t)((double)m->job->bytes * (double)count / (double)m->parts.desc.n));
  }
  free(fresh);
  return same && check_formula(c, m, part, &whole, first_row, *rows);
}

/* ---- GGUF: the matrix written as blocks again ---- */

static int check_blocks(check *c, const matrix *m) {
  enum { NVFP4 = 40 }; /* whose blocks have bits that mean nothing */
  const lpgemm_import_t *first = &m->parts.part[0];
  const int number = (int)(first->tensors[0].type & 0xff);
  size_t bytes;
  if (first->format != LPGEMM_FORMAT_GGUF || number == NVFP4) return 1;
  if (lpgemm_export_size(m->weights, number, &bytes) != LPGEMM_SUCCESS) return 1; /* of an expanded type */
  uint8_t *blocks = cli_allocate(bytes);
  if (lpgemm_export(c->handle, m->weights, number, blocks, bytes) != LPGEMM_SUCCESS) {
    free(blocks);
    return 1;
  }
  const size_t row_bytes = bytes / (size_t)m->parts.desc.n;
  int64_t row = 0;
  int same = 1;
  for (size_t i = 0; i < m->parts.count && same; i++) {
    const lpgemm_import_t *part = &m->parts.part[i];
    const lpgemm_tensor_t *t = &part->tensors[0];
    const int64_t n = t->shape[t->dims - 2], k = t->shape[t->dims - 1], experts = t->dims == 3 ? t->shape[0] : 1;
    const size_t file_row = t->bytes / (size_t)(n * experts);
    /* a block has no more than 256 columns, so this does not overflow, and nothing is left */
    const size_t offset = file_row * (size_t)part->k0 / (size_t)k;
    const uint8_t *from = (const uint8_t *)t->data + (size_t)(part->expert * n) * file_row + offset;
    for (int64_t r = part->n0; r < (part->n1 ? part->n1 : n) && same; r++, row++) {
      if (memcmp(blocks + (size_t)row * row_bytes, from + (size_t)r * file_row, row_bytes) == 0) continue;
      same = differ(c, "%s: row %lld of %s, written as blocks of GGUF, is not what the model has", m->job->name,
                    (long long)row, c->plan->options->out);
    }
  }
  free(blocks);
  c->by_formula += same != 0;
  return same;
}

/* ---- entries ---- */

static int same_desc(check *c, const matrix *m) {
  char have[CONVERT_WORDS], want[CONVERT_WORDS];
  lpgemm_weights_info_t info = {.size = sizeof info};
  cli_check(lpgemm_weights_info(m->weights, &info));
  const lpgemm_weight_desc_t *a = &info.desc, *b = &m->parts.desc;
  convert_desc_words(a, have);
  convert_desc_words(b, want);
  if (a->n == b->n && a->k == b->k && strcmp(have, want) == 0) return 1;
  return differ(c, "%s is %lld x %lld of %s in %s, and the model makes %lld x %lld of %s", m->job->name,
                (long long)a->n, (long long)a->k, have, c->plan->options->out, (long long)b->n, (long long)b->k, want);
}

static int check_matrix(check *c, const convert_job *job, const lpgemm_tensor_t *blob) {
  matrix m = {.job = job};
  if (!convert_resolve(c->plan, job, &m.parts)) return differ(c, "%s: %s", job->name, m.parts.why);
  if (blob->type != LPGEMM_BLOB) return differ(c, "%s is no packed matrix in %s", job->name, c->plan->options->out);
  if (lpgemm_deserialize(c->handle, blob->data, blob->bytes, LPGEMM_LOAD_VIEW, &m.weights) != LPGEMM_SUCCESS) {
    return failed(c, job->name);
  }
  const lpgemm_weight_desc_t *d = &m.parts.desc;
  m.ld = d->x_k ? d->x_k : d->k;
  int same = same_desc(c, &m);
  if (same) {
    m.values = malloc((size_t)d->n * (size_t)m.ld * sizeof *m.values + 1);
    if (!m.values) cli_fail("no memory for %lld x %lld numbers of %s", (long long)d->n, (long long)m.ld, job->name);
    const lpgemm_status_t status = lpgemm_unpack_weights(c->handle, m.weights, LPGEMM_F32, m.values, m.ld);
    same = status == LPGEMM_SUCCESS || failed(c, job->name);
  }
  int64_t row = 0, rows = 0;
  for (size_t i = 0; i < m.parts.count && same; i++, row += rows)
    same = check_part(c, &m, &m.parts.part[i], row, &rows);
  free(m.values);
  if (same) same = check_blocks(c, &m);
  (void)lpgemm_weights_destroy(m.weights);
  c->weights += (uint64_t)(d->n * d->k);
  c->matrices++;
  return same;
}

static int check_tensor(check *c, const convert_job *job, const lpgemm_tensor_t *copy) {
  lpgemm_tensor_t t;
  cli_check(lpgemm_file_tensor(c->plan->file, job->tensor, &t));
  int same = copy->type == t.type && copy->dims == t.dims && copy->bytes == t.bytes;
  for (int i = 0; i < t.dims && same; i++) same = copy->shape[i] == t.shape[i];
  if (!same) return differ(c, "%s has another type or shape in %s than in the model", job->name, c->plan->options->out);
  if (t.bytes && memcmp(copy->data, t.data, t.bytes) != 0) {
    return differ(c, "%s has other bytes in %s than in the model", job->name, c->plan->options->out);
  }
  c->tensors++;
  convert_progress_add(&c->progress, job->bytes);
  return 1;
}

static int check_entry(check *c, size_t i) {
  const convert_job *job = &c->plan->jobs[i];
  lpgemm_tensor_t entry;
  cli_check(lpgemm_file_tensor(c->out, i, &entry));
  if (strcmp(entry.name, job->name) != 0) {
    return differ(c, "entry %zu of %s is %s, and the model makes %s: give the options that it was made with", i,
                  c->plan->options->out, entry.name, job->name);
  }
  if (lpgemm_file_check(c->out, i) != LPGEMM_SUCCESS) return differ(c, "%s", lpgemm_last_error());
  return job->count ? check_matrix(c, job, &entry) : check_tensor(c, job, &entry);
}

static void show_result(const check *c, double seconds) {
  if (c->plan->options->json) {
    printf("{\"same\": %s, \"matrices\": %zu, \"tensors\": %zu, \"weights\": %llu, \"seconds\": %.3f, \"difference\": ",
           *c->why ? "false" : "true", c->matrices, c->tensors, (unsigned long long)c->weights, seconds);
    cli_json_text(*c->why ? c->why : NULL);
    printf("}\n");
  } else if (!*c->why) {
    printf("%s: %zu matrices with %llu weights and %zu tensors are those of %s (%.1f s)\n", c->plan->options->out,
           c->matrices, (unsigned long long)c->weights, c->tensors, c->plan->options->model, seconds);
  }
}

int convert_check(convert_plan *plan) {
  static check c;
  const convert_options *o = plan->options;
  size_t count;
  c.plan = plan;
  if (lpgemm_file_open(o->out, &c.out) != LPGEMM_SUCCESS) cli_fail("%s", lpgemm_last_error());
  cli_check(lpgemm_file_counts(c.out, &count, NULL));
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .num_threads = o->threads};
  cli_check(lpgemm_create(&c.handle, &config));
  convert_catch_signals();
  convert_progress_start(&c.progress, plan->bytes);
  int same = count == plan->job_count;
  if (!same) {
    differ(&c, "%s has %zu entries, and the model makes %zu: give the options that it was made with", o->out, count,
           plan->job_count);
  }
  for (size_t i = 0; i < count && same && !convert_interrupted(); i++) same = check_entry(&c, i);
  const double seconds = convert_now() - c.progress.start;
  convert_progress_end(&c.progress);
  if (same && convert_interrupted()) cli_fail("interrupted; %s was not compared to its end", o->out);
  show_result(&c, seconds);
  cli_check(lpgemm_destroy(c.handle));
  cli_check(lpgemm_file_close(c.out));
  if (!same && !o->json) cli_fail("%s", c.why);
  return same ? CLI_OK : CLI_FAILED;
}
