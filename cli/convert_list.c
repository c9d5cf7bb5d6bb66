/* --list: what each layer is and becomes, or why not. */
#include <stdio.h>
#include <string.h>

#include "convert.h"

static double bits_of(const convert_job *job, const lpgemm_weight_desc_t *whole) {
  const double weights = (double)whole->n * (double)whole->k;
  return weights > 0 ? (double)job->bytes * 8 / weights : 0;
}

/* The sizes in the file: of all ranks. */
static void find_whole(const convert_plan *plan, const convert_job *job, const convert_parts *parts,
                       lpgemm_weight_desc_t *whole) {
  *whole = parts->desc;
  if (plan->options->ranks == 0) return;
  lpgemm_import_t all[CONVERT_MOST_JOINED];
  for (uint32_t i = 0; i < job->count; i++) {
    all[i] = (lpgemm_import_t){.size = sizeof all[i]};
    if (lpgemm_file_layer(plan->file, plan->layers[job->layer[i]].name, &all[i]) != LPGEMM_SUCCESS) return;
  }
  lpgemm_weight_desc_t desc = {.size = sizeof desc};
  if (lpgemm_import_desc(all, job->count, &desc) == LPGEMM_SUCCESS) *whole = desc;
}

static void show_text(const convert_plan *plan, const convert_job *job, const convert_parts *parts, int readable,
                      int width) {
  char format[CONVERT_WORDS], becomes[CONVERT_WORDS], shape[48];
  if (!readable) {
    printf("%-*s  cannot be converted: %s\n", width, job->name, parts->why);
    return;
  }
  lpgemm_weight_desc_t whole;
  find_whole(plan, job, parts, &whole);
  snprintf(shape, sizeof shape, "%lld x %lld", (long long)parts->desc.n, (long long)parts->desc.k);
  printf("%-*s  %-14s %15s %5.2f  %-42s %12zu\n", width, job->name, convert_format_words(&parts->part[0], format),
         shape, bits_of(job, &whole), convert_desc_words(&parts->desc, becomes), parts->bytes);
}

static void text_member(const char *name, const char *text) {
  printf(", \"%s\": ", name);
  cli_json_text(text);
}

static void show_json(const convert_plan *plan, const convert_job *job, const convert_parts *parts, int readable,
                      int first) {
  char text[CONVERT_WORDS];
  const lpgemm_weight_desc_t *d = &parts->desc;
  printf("%s\n  {\"name\": ", first ? "" : ",");
  cli_json_text(job->name);
  if (job->count > 1 || strcmp(job->name, plan->layers[job->layer[0]].name) != 0) {
    printf(", \"of\": [");
    for (uint32_t i = 0; i < job->count; i++) {
      printf("%s", i ? ", " : "");
      cli_json_text(plan->layers[job->layer[i]].name);
    }
    putchar(']');
  }
  if (!readable) {
    text_member("why_not", parts->why);
    putchar('}');
    return;
  }
  lpgemm_weight_desc_t whole;
  find_whole(plan, job, parts, &whole);
  text_member("format", convert_format_words(&parts->part[0], text));
  printf(", \"n\": %lld, \"k\": %lld, \"bits\": %.3f", (long long)d->n, (long long)d->k, bits_of(job, &whole));
  text_member("becomes", convert_desc_words(d, text));
  text_member("type", lpgemm_dtype_name(d->type));
  printf(", \"group\": %lld", (long long)d->group_k);
  text_member("scale", lpgemm_dtype_name(d->scale_type));
  printf(", \"ordered\": %s, \"bytes\": %zu}", d->columns == LPGEMM_COLUMNS_ORDERED ? "true" : "false", parts->bytes);
}

typedef struct totals {
  size_t matrices, refused, tensors;
  uint64_t packed, copied;
} totals;

static void show_end(const convert_plan *plan, const totals *t) {
  char packed[CONVERT_WORDS], copied[CONVERT_WORDS];
  if (plan->options->json) {
    printf(
        "\n], \"matrices\": %zu, \"not_read\": %zu, \"packed_bytes\": %llu, \"tensors\": %zu, \"tensor_bytes\": %llu",
        t->matrices, t->refused, (unsigned long long)t->packed, t->tensors, (unsigned long long)t->copied);
    printf(", \"notes\": [");
    for (size_t i = 0; i < plan->note_count; i++) {
      printf("%s\n  ", i ? "," : "");
      cli_json_text(plan->notes[i]);
    }
    printf("%s]}\n", plan->note_count ? "\n" : "");
    return;
  }
  for (size_t i = 0; i < plan->note_count; i++) printf("note: %s\n", plan->notes[i]);
  printf("%zu matrices of %s, and %zu other tensors of %s, which are copied", t->matrices,
         convert_size_words(t->packed, packed), t->tensors, convert_size_words(t->copied, copied));
  if (t->refused) printf("; %zu layers cannot be converted", t->refused);
  putchar('\n');
}

int convert_show_list(convert_plan *plan) {
  totals t = {0};
  int width = 5;
  for (size_t i = 0; i < plan->job_count; i++) {
    const int length = (int)strlen(plan->jobs[i].name);
    if (plan->jobs[i].count && length > width) width = length;
  }
  if (plan->options->json) {
    printf("{\"model\": ");
    cli_json_text(plan->options->model);
    printf(", \"layers\": [");
  } else {
    printf("%-*s  %-14s %15s %5s  %-42s %12s\n", width, "layer", "format", "N x K", "bits", "becomes", "bytes");
  }
  for (size_t i = 0; i < plan->job_count; i++) {
    const convert_job *job = &plan->jobs[i];
    convert_parts parts;
    if (job->count == 0) {
      t.tensors++;
      t.copied += job->bytes;
      continue;
    }
    const int readable = convert_resolve(plan, job, &parts);
    if (readable && parts.whole) {
      convert_note(plan, "%s is whole in every rank: its name does not say how to share it", job->name);
    }
    if (plan->options->json) {
      show_json(plan, job, &parts, readable, t.matrices + t.refused == 0);
    } else {
      show_text(plan, job, &parts, readable, width);
    }
    t.matrices += readable != 0;
    t.refused += !readable;
    t.packed += readable ? parts.bytes : 0;
  }
  show_end(plan, &t);
  return CLI_OK;
}
