/* A model -> what OUT shall have of it. Tensors are taken in the file's order: where one belongs to a quantised layer,
 * the packed matrix of that layer stands. */
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert.h"

/* Which layer has the tensor with these data; a stack of experts belongs to one layer an expert. */
typedef struct owner {
  const void *data;
  uint32_t layer;
} owner;

typedef struct owners {
  owner *list; /* sorted by data */
  size_t count, room;
} owners;

static void *grow(void *array, size_t *room, size_t size) {
  *room = *room ? 2 * *room : 64;
  void *larger = realloc(array, *room * size);
  if (!larger) cli_fail("no memory for %zu entries of the plan", *room);
  return larger;
}

void convert_note(convert_plan *plan, const char *format, ...) {
  char text[2400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  for (size_t i = 0; i < plan->note_count; i++) {
    if (strcmp(plan->notes[i], text) == 0) return;
  }
  if (plan->note_count == plan->note_room) plan->notes = grow(plan->notes, &plan->note_room, sizeof *plan->notes);
  plan->notes[plan->note_count] = cli_allocate(strlen(text) + 1);
  memcpy(plan->notes[plan->note_count++], text, strlen(text) + 1);
}

static int is_wanted(const convert_plan *plan, const char *name) {
  return !plan->options->pattern || fnmatch(plan->options->pattern, name, 0) == 0;
}

/* ---- layers ---- */

static int by_name(const void *a, const void *b) {
  return strcmp((*(convert_layer *const *)a)->name, (*(convert_layer *const *)b)->name);
}

static convert_layer *find_layer(const convert_plan *plan, const char *name) {
  convert_layer key = {.name = name}, *wanted = &key;
  if (plan->layer_count == 0) return NULL;
  convert_layer **found = bsearch(&wanted, plan->by_name, plan->layer_count, sizeof *plan->by_name, by_name);
  return found ? *found : NULL;
}

const convert_layer *convert_find_layer(const convert_plan *plan, const char *name) { return find_layer(plan, name); }

static int by_data(const void *a, const void *b) {
  const owner *x = a, *y = b;
  if (x->data != y->data) return (uintptr_t)x->data < (uintptr_t)y->data ? -1 : 1;
  return (x->layer > y->layer) - (x->layer < y->layer);
}

/* The owners of these data: *count of them. */
static const owner *find_owners(const owners *all, const void *data, size_t *count) {
  size_t low = 0, high = all->count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if ((uintptr_t)all->list[middle].data < (uintptr_t)data) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  *count = 0;
  while (low + *count < all->count && all->list[low + *count].data == data) ++*count;
  return all->list + low;
}

static void read_layers(convert_plan *plan, owners *all) {
  cli_check(lpgemm_file_counts(plan->file, NULL, &plan->layer_count));
  plan->layers = cli_allocate(plan->layer_count * sizeof *plan->layers);
  plan->by_name = cli_allocate(plan->layer_count * sizeof(convert_layer *));
  for (size_t i = 0; i < plan->layer_count; i++) {
    lpgemm_import_t import = {.size = sizeof import};
    cli_check(lpgemm_file_layer_name(plan->file, i, &plan->layers[i].name));
    plan->by_name[i] = &plan->layers[i];
    if (lpgemm_file_layer(plan->file, plan->layers[i].name, &import) != LPGEMM_SUCCESS) continue;
    for (size_t t = 0; t < import.count; t++) {
      if (import.tensors[t].bytes == 0) continue;
      if (all->count == all->room) all->list = grow(all->list, &all->room, sizeof *all->list);
      all->list[all->count++] = (owner){import.tensors[t].data, (uint32_t)i};
    }
  }
  qsort(plan->by_name, plan->layer_count, sizeof(convert_layer *), by_name);
  if (all->count > 0) qsort(all->list, all->count, sizeof *all->list, by_data);
  /* an expert's share of what a stack has */
  for (size_t i = 0; i < plan->layer_count; i++) {
    lpgemm_import_t import = {.size = sizeof import};
    if (lpgemm_file_layer(plan->file, plan->layers[i].name, &import) != LPGEMM_SUCCESS) continue;
    for (size_t t = 0; t < import.count; t++) {
      size_t count;
      (void)find_owners(all, import.tensors[t].data, &count);
      plan->layers[i].bytes += import.tensors[t].bytes / (count ? count : 1);
    }
  }
}

/* ---- jobs ---- */

static void add_job(convert_plan *plan, convert_job job) {
  if (plan->job_count == plan->job_room) plan->jobs = grow(plan->jobs, &plan->job_room, sizeof *plan->jobs);
  for (uint32_t i = 0; i < job.count; i++) job.bytes += plan->layers[job.layer[i]].bytes;
  plan->jobs[plan->job_count++] = job;
  plan->bytes += job.bytes;
}

static convert_job job_of_layer(const convert_plan *plan, const convert_layer *layer, const char *name) {
  return (convert_job){.name = name, .count = 1, .layer = {(uint32_t)(layer - plan->layers)}};
}

static void add_layer(convert_plan *plan, convert_layer *layer) {
  if (layer->taken) return;
  layer->taken = 1;
  add_job(plan, job_of_layer(plan, layer, layer->name));
}

/* The library counts parts: "parts[1] has ..." becomes "k_proj has ...". */
static void name_parts(const convert_join *join, const char *why, char text[CONVERT_NAME]) {
  static const char remedy[] = ": import them one by one";
  size_t at = 0;
  for (const char *s = why; *s && strcmp(s, remedy) != 0 && at + 64 < CONVERT_NAME;) {
    const int named = strncmp(s, "parts[", 6) == 0 && s[6] >= '0' && s[6] < '0' + join->count && s[7] == ']';
    if (named) {
      at += (size_t)snprintf(text + at, CONVERT_NAME - at, "%s", join->part[s[6] - '0']);
      s += strlen("parts[0]");
    } else {
      text[at++] = *s++;
    }
  }
  text[at] = 0;
}

/* All parts of a join as one job; 0 with a note if they are to stay apart. */
static int join_layers(convert_plan *plan, const convert_name *name, const convert_join *join,
                       convert_layer *const parts[CONVERT_MOST_JOINED]) {
  char text[CONVERT_NAME];
  lpgemm_tensor_t tensor;
  for (int i = 0; i < join->count; i++) {
    if (parts[i]) continue;
    if (!parts[0]) return 0; /* a layer without a gate is not worth a word */
    convert_note(plan, "%s stays alone: there is no quantised %s to join it with", parts[0]->name, join->part[i]);
    return 0;
  }
  convert_rename(name, join->joined, strlen(join->joined), text);
  if (find_layer(plan, text) || lpgemm_file_find(plan->file, text, &tensor) == LPGEMM_SUCCESS) {
    convert_note(plan, "%s stays apart: the model has a %s already", parts[0]->name, text);
    return 0;
  }
  convert_parts resolved;
  convert_job job = {.name = text, .count = (uint32_t)join->count};
  for (int i = 0; i < join->count; i++) job.layer[i] = (uint32_t)(parts[i] - plan->layers);
  if (!convert_resolve(plan, &job, &resolved)) {
    char why[CONVERT_NAME];
    name_parts(join, resolved.why, why);
    convert_note(plan, "%s stays apart: %s", text, why);
    return 0;
  }
  char *kept = cli_allocate(strlen(text) + 1);
  memcpy(kept, text, strlen(text) + 1);
  job.name = kept;
  for (int i = 0; i < join->count; i++) parts[i]->taken = 1;
  add_job(plan, job);
  return 1;
}

/* The layer, with those that it is joined with. */
static void take_layer(convert_plan *plan, convert_layer *layer) {
  if (layer->taken || !is_wanted(plan, layer->name)) return;
  const convert_name name = convert_split(layer->name);
  const convert_join *join = convert_join_of(plan->options, &name);
  convert_layer *parts[CONVERT_MOST_JOINED] = {NULL};
  for (int i = 0; join && i < join->count; i++) {
    char text[CONVERT_NAME];
    parts[i] = find_layer(plan, convert_rename(&name, join->part[i], strlen(join->part[i]), text));
    if (parts[i] && !is_wanted(plan, parts[i]->name)) parts[i] = NULL;
  }
  if (join && join_layers(plan, &name, join, parts)) return;
  for (int i = 0; join && i < join->count; i++) {
    if (parts[i]) add_layer(plan, parts[i]);
  }
  add_layer(plan, layer);
}

/* A g_idx that the config says to ignore would mislead who finds it beside the matrix. */
static int is_ignored_order(const convert_plan *plan, const char *name) {
  static const char tail[] = ".g_idx";
  char layer[CONVERT_NAME];
  const size_t length = strlen(name);
  if (length < sizeof tail || strcmp(name + length - strlen(tail), tail) != 0) return 0;
  snprintf(layer, sizeof layer, "%.*s", (int)(length - strlen(tail)), name);
  return find_layer(plan, layer) != NULL;
}

static void copy_tensor(convert_plan *plan, size_t i, const lpgemm_tensor_t *t) {
  if (!is_wanted(plan, t->name) || is_ignored_order(plan, t->name)) return;
  add_job(plan, (convert_job){.name = t->name, .tensor = (uint32_t)i, .bytes = t->bytes});
}

/* An embedding of GGUF's block types is copied, for its rows are looked up; without an output matrix it is that too. */
static void take_embedding(convert_plan *plan, convert_layer *layer, size_t i, const lpgemm_tensor_t *t) {
  lpgemm_tensor_t output;
  if (!layer->taken) layer->taken = 1;
  copy_tensor(plan, i, t);
  if (strcmp(t->name, "token_embd.weight") != 0 || !is_wanted(plan, "output")) return;
  if (lpgemm_file_find(plan->file, "output.weight", &output) == LPGEMM_SUCCESS) return;
  add_job(plan, job_of_layer(plan, layer, "output"));
}

static void take_tensors(convert_plan *plan, const owners *all) {
  size_t count;
  cli_check(lpgemm_file_counts(plan->file, &count, NULL));
  for (size_t i = 0; i < count; i++) {
    lpgemm_tensor_t t;
    size_t owned = 0;
    cli_check(lpgemm_file_tensor(plan->file, i, &t));
    if (t.type == LPGEMM_BLOB) cli_fail("%s is a container of packed matrices already", plan->options->model);
    const owner *first = t.bytes ? find_owners(all, t.data, &owned) : NULL;
    if (owned == 0) {
      copy_tensor(plan, i, &t);
    } else if (convert_is_embedding(plan->layers[first->layer].name)) {
      take_embedding(plan, &plan->layers[first->layer], i, &t);
    } else {
      for (size_t l = 0; l < owned; l++) take_layer(plan, &plan->layers[first[l].layer]);
    }
  }
  /* those that are not read have no tensors */
  for (size_t i = 0; i < plan->layer_count; i++) {
    lpgemm_import_t import = {.size = sizeof import};
    if (lpgemm_file_layer(plan->file, plan->layers[i].name, &import) == LPGEMM_SUCCESS) continue;
    if (is_wanted(plan, plan->layers[i].name)) add_layer(plan, &plan->layers[i]);
  }
}

/* ---- zeros ---- */

/* The zero that all words of qzeros stand for, or -1: words of whole fields, all of them equal. */
static int64_t common_zero(const lpgemm_tensor_t *qzeros, int bits) {
  uint32_t first = 0, word, fields = 0;
  for (size_t at = 0; at + 4 <= qzeros->bytes; at += 4) {
    memcpy(&word, (const uint8_t *)qzeros->data + at, sizeof word);
    if (at == 0) first = word;
    if (word != first) return -1;
  }
  if (qzeros->bytes < 4) return -1;
  const uint32_t zero = first & ((1u << bits) - 1u);
  for (int shift = 0; shift < 32; shift += bits) fields |= zero << shift;
  return fields == first ? (int64_t)zero : -1;
}

/* GPTQ stores zeros less one, gptq_v2 as they are. Symmetric weights have zeros in the middle: those that would be one
 * beside it by what the config says are of the other format. One layer of a model is looked at. */
static void check_zeros(convert_plan *plan) {
  for (size_t i = 0; i < plan->layer_count; i++) {
    lpgemm_import_t import = {.size = sizeof import};
    lpgemm_weight_desc_t desc = {.size = sizeof desc};
    if (lpgemm_file_layer(plan->file, plan->layers[i].name, &import) != LPGEMM_SUCCESS) continue;
    if (import.format != LPGEMM_FORMAT_GPTQ && import.format != LPGEMM_FORMAT_GPTQ_V2) continue;
    if (lpgemm_import_desc(&import, 1, &desc) != LPGEMM_SUCCESS) continue;
    const int bits = lpgemm_dtype_bits(desc.type), less_one = import.format == LPGEMM_FORMAT_GPTQ;
    const int64_t middle = INT64_C(1) << (bits - 1);
    for (size_t t = 0; t < import.count && 32 % bits == 0; t++) {
      if (strcmp(import.tensors[t].name, "qzeros") != 0) continue;
      const int64_t zero = common_zero(&import.tensors[t], bits);
      if (zero < 0 || zero != (less_one ? middle : middle - 1)) continue;
      convert_note(plan,
                   "%s has zeros of %lld by checkpoint_format \"%s\", and symmetric weights of %d bits have %lld: the "
                   "model may be \"%s\"",
                   plan->layers[i].name, (long long)(zero + less_one), less_one ? "gptq" : "gptq_v2", bits,
                   (long long)middle, less_one ? "gptq_v2" : "gptq");
    }
    return;
  }
}

void convert_make_plan(const convert_options *o, convert_plan *plan) {
  owners all = {NULL, 0, 0};
  memset(plan, 0, sizeof *plan);
  plan->options = o;
  if (lpgemm_file_open(o->model, &plan->file) != LPGEMM_SUCCESS) cli_fail("%s", lpgemm_last_error());
  read_layers(plan, &all);
  take_tensors(plan, &all);
  check_zeros(plan);
  free(all.list);
  if (plan->job_count == 0 && o->pattern) {
    cli_fail("no name of a layer or tensor of %s fits '%s'; --list shows the layers", o->model, o->pattern);
  }
}

void convert_free_plan(convert_plan *plan) {
  for (size_t i = 0; i < plan->job_count; i++) {
    if (plan->jobs[i].count > 1) free((void *)(uintptr_t)plan->jobs[i].name);
  }
  for (size_t i = 0; i < plan->note_count; i++) free(plan->notes[i]);
  free(plan->notes);
  free(plan->jobs);
  free(plan->layers);
  free((void *)plan->by_name);
  cli_check(lpgemm_file_close(plan->file));
}
