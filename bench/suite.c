#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers.h"
#include "random_cases.h"
#include "shapes.h"

/* ---- the keys of a line: what each value of theirs does to a case ---- */

static bench_error read_number(const char *text, int64_t least, int64_t *out) {
  char *end;
  long long value = strtoll(text, &end, 10);
  BENCH_CHECK(*text && !*end && value >= least, "'%s' is no number from %lld on", text, (long long)least);
  *out = value;
  return NULL;
}

static bench_error read_type(const char *text, lpgemm_dtype_t *type) {
  *type = 0;
  if (strcmp(text, "none") == 0) return NULL;
  BENCH_CHECK(lpgemm_dtype_parse(text, type) == LPGEMM_SUCCESS, "'%s' is no type", text);
  return NULL;
}

static bench_error read_float(const char *text, float *out) {
  char *end;
  *out = strtof(text, &end);
  BENCH_CHECK(*text && !*end, "'%s' is no number", text);
  return NULL;
}

static bench_error read_name(const char *text, char out[64]) {
  BENCH_CHECK(strlen(text) < 64, "'%s' is too long", text);
  snprintf(out, 64, "%s", text);
  return NULL;
}

/* The position of text in a list, for small choices. */
static bench_error read_word(const char *text, const char *const *words, int count, int *out) {
  for (*out = 0; *out < count; ++*out) {
    if (strcmp(text, words[*out]) == 0) return NULL;
  }
  return bench_fail("'%s' is not '%s' or the like", text, words[0]);
}

static bench_error set_weights(bench_case *c, const char *text) {
  float table[16];
  if (lpgemm_codebook_preset(text, table) == LPGEMM_SUCCESS) {
    c->desc.type = LPGEMM_CODEBOOK(4);
    memcpy(c->desc.codebook, table, sizeof table);
    return NULL;
  }
  BENCH_TRY(read_type(text, &c->desc.type));
  int entries = 1 << lpgemm_dtype_bits(c->desc.type);
  for (int i = 0; LPGEMM_DTYPE_KIND(c->desc.type) == LPGEMM_KIND_CODEBOOK && i < entries; i++) {
    c->desc.codebook[i] = 2.0f * (float)i / (float)(entries - 1) - 1.0f;
  }
  return NULL;
}

static bench_error set_group(bench_case *c, const char *text) {
  return strcmp(text, "row") == 0 ? NULL : read_number(text, 16, &c->desc.group_k);
}

static bench_error set_scale(bench_case *c, const char *text) { return read_type(text, &c->desc.scale_type); }

static bench_error set_zero(bench_case *c, const char *text) {
  if (strcmp(text, "none") == 0) return NULL;
  if (strcmp(text, "mid") == 0) { /* the middle of unsigned codes */
    c->desc.zero = LPGEMM_ZERO_CONSTANT;
    c->desc.zero_constant = 0.5f * (float)(1 << lpgemm_dtype_bits(c->desc.type));
    return NULL;
  }
  if (lpgemm_dtype_parse(text, &c->desc.zero_type) == LPGEMM_SUCCESS) {
    c->desc.zero = LPGEMM_ZERO_PER_GROUP;
    return NULL;
  }
  c->desc.zero = LPGEMM_ZERO_CONSTANT;
  return read_float(text, &c->desc.zero_constant);
}

static bench_error set_minimum(bench_case *c, const char *text) {
  c->desc.zero = LPGEMM_ZERO_MINIMUM;
  return read_type(text, &c->desc.zero_type);
}

static bench_error set_super_k(bench_case *c, const char *text) { return read_number(text, 16, &c->desc.super_k); }
static bench_error set_super_scale(bench_case *c, const char *text) {
  return read_type(text, &c->desc.super_scale_type);
}
static bench_error set_super_minimum(bench_case *c, const char *text) {
  return read_type(text, &c->desc.super_zero_type);
}

static bench_error set_columns(bench_case *c, const char *text) {
  BENCH_CHECK(strcmp(text, "plain") == 0 || strcmp(text, "ordered") == 0, "columns is %s; it must be plain or ordered",
              text);
  if (*text == 'o') c->desc.columns = LPGEMM_COLUMNS_ORDERED;
  return NULL;
}

static bench_error set_global(bench_case *c, const char *text) { return read_float(text, &c->desc.global_scale); }

/* Y is as wide as X by default, and the baseline has X's type. */
static bench_error set_x(bench_case *c, const char *text) {
  BENCH_TRY(read_type(text, &c->x_type));
  BENCH_CHECK(c->x_type, "x needs a type");
  int wide = lpgemm_dtype_bits(c->x_type) > 8;
  c->y_type = wide ? c->x_type : LPGEMM_F16;
  c->baseline = wide ? c->x_type : c->x_type == LPGEMM_E4M3 || c->x_type == LPGEMM_E5M2 ? LPGEMM_E4M3 : LPGEMM_I8;
  return NULL;
}

static bench_error set_y(bench_case *c, const char *text) { return read_type(text, &c->y_type); }
static bench_error set_x_gap(bench_case *c, const char *text) { return read_number(text, 0, &c->x_gap); }

static bench_error set_x_scale(bench_case *c, const char *text) {
  static const char *const words[] = {"none", "tensor", "row"};
  int word;
  BENCH_TRY(read_word(text, words, 3, &word));
  c->x_scale_mode = (lpgemm_x_scale_t)word;
  return NULL;
}

static bench_error set_invariant(bench_case *c, const char *text) {
  static const char *const words[] = {"no", "yes"};
  return read_word(text, words, 2, &c->batch_invariant);
}

static bench_error set_prepared(bench_case *c, const char *text) {
  static const char *const words[] = {"no", "given"};
  return read_word(text, words, 2, &c->gives_prepared);
}

static bench_error set_routing(bench_case *c, const char *text) {
  static const char *const words[] = {"uniform", "zipf", "same"};
  int word;
  BENCH_TRY(read_word(text, words, 3, &word));
  c->routing = (bench_routing)word;
  return NULL;
}

static bench_error set_from(bench_case *c, const char *text) {
  static const char *const words[] = {"bytes", "bits"};
  int word;
  BENCH_TRY(read_word(text, words, 2, &word));
  c->code_layout = (lpgemm_code_layout_t)word;
  return NULL;
}

static bench_error set_format(bench_case *c, const char *text) { return read_name(text, c->format); }
static bench_error set_to(bench_case *c, const char *text) { return read_type(text, &c->out_type); }
static bench_error set_kernel(bench_case *c, const char *text) { return read_name(text, c->kernel); }
static bench_error set_baseline(bench_case *c, const char *text) { return read_type(text, &c->baseline); }
static bench_error set_m(bench_case *c, const char *text) { return read_number(text, 1, &c->m); }

static bench_error set_threads(bench_case *c, const char *text) {
  int64_t threads = 0;
  if (strcmp(text, "all") == 0) return NULL;
  BENCH_TRY(read_number(text, 1, &threads));
  BENCH_CHECK(threads <= 4096, "threads is %s, not 1 to 4096", text);
  c->threads = (int)threads;
  return NULL;
}

static bench_error set_seed(bench_case *c, const char *text) { return read_number(text, 1, &c->seed); }

static bench_error set_draw(bench_case *c, const char *text) { return read_number(text, 1, &c->draw); }

static bench_error set_use(bench_case *c, const char *text) {
  static const char *const words[] = {"usual", "other"};
  int word;
  BENCH_TRY(read_word(text, words, 2, &word));
  c->use = words[word];
  return NULL;
}

static bench_error set_check(bench_case *c, const char *text) {
  static const char *const words[] = {"all", "samples"};
  return read_word(text, words, 2, &c->checks_samples);
}

static bench_error set_tune(bench_case *c, const char *text) {
  static const char *const words[] = {"no", "yes"};
  return read_word(text, words, 2, &c->tune);
}

static bench_error set_within(bench_case *c, const char *text) {
  int64_t factor = 0;
  BENCH_TRY(read_number(text, 1, &factor));
  c->within = (double)factor;
  return NULL;
}

/* In the order in which values take effect; of several lists the first changes slowest. `in_name`: how a value shows in
 * the case's name, NULL if the description of the weights says it. */
static const struct {
  const char *key, *in_name;
  bench_error (*set)(bench_case *c, const char *text);
} keys[] = {
    {"w", NULL, set_weights},
    {"group", NULL, set_group},
    {"scale", NULL, set_scale},
    {"zero", NULL, set_zero},
    {"min", NULL, set_minimum},
    {"super", NULL, set_super_k},
    {"super_scale", NULL, set_super_scale},
    {"super_min", NULL, set_super_minimum},
    {"global", NULL, set_global},
    {"columns", NULL, set_columns},
    {"from", "from-", set_from},
    {"format", "", set_format},
    {"to", "to-", set_to},
    {"x", "", set_x},
    {"y", "to-", set_y},
    {"x_gap", "x-gap-", set_x_gap},
    {"x_scale", "x-scale-", set_x_scale},
    {"invariant", "invariant-", set_invariant},
    {"prepared", "prepared-", set_prepared},
    {"routing", "", set_routing},
    {"kernel", "", set_kernel},
    {"baseline", "against-", set_baseline},
    {"threads", "threads-", set_threads},
    {"seed", NULL, set_seed},
    {"within", NULL, set_within},
    {"tune", NULL, set_tune},
    {"use", NULL, set_use},
    {"check", NULL, set_check},
    {"m", "m", set_m},
    {"draw", "draw", set_draw},
};
enum { KEYS = sizeof keys / sizeof keys[0], MAX_VALUES = 32 };

/* ---- a line: an operation and lists of values ---- */

typedef struct values {
  char *item[MAX_VALUES];
  int count; /* 0: the key is not in the line */
} values;

typedef struct suite_line {
  bench_operation operation;
  values shape, key[KEYS];
} suite_line;

static const char *const operation_names[] = {"gemm",   "blas",     "pack",    "unpack", "call",    "choose",
                                              "regret", "quantize", "prepare", "import", "experts", "token"};
enum { OPERATIONS = sizeof operation_names / sizeof operation_names[0], MAX_DEPTH = 4 };

const char *bench_operation_name(bench_operation operation) { return operation_names[operation]; }

static bench_error read_values(char *text, values *list) {
  char *rest = NULL;
  list->count = 0;
  for (char *item = strtok_r(text, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
    BENCH_CHECK(list->count < MAX_VALUES, "more than %d values", (int)MAX_VALUES);
    list->item[list->count++] = item;
  }
  BENCH_CHECK(list->count, "no value");
  return NULL;
}

/* "gemm shape=8192x8192 m=1,16 w=u4": the words stay in `text`. */
static bench_error read_line(char *text, suite_line *line) {
  *line = (suite_line){BENCH_GEMM, {{NULL}, 0}, {{{NULL}, 0}}};
  char *rest = NULL, *word = strtok_r(text, " \t\n", &rest);
  int operation;
  BENCH_TRY(read_word(word, operation_names, OPERATIONS, &operation));
  line->operation = (bench_operation)operation;
  while ((word = strtok_r(NULL, " \t\n", &rest))) {
    char *equals = strchr(word, '=');
    BENCH_CHECK(equals, "'%s' is not key=value", word);
    *equals = 0;
    values *list = strcmp(word, "shape") == 0 ? &line->shape : NULL;
    for (int i = 0; i < KEYS; i++) {
      if (strcmp(word, keys[i].key) == 0) list = &line->key[i];
    }
    BENCH_CHECK(list, "'%s' is no key", word);
    bench_error error = read_values(equals + 1, list);
    BENCH_CHECK(!error, "%s: %s", word, error);
  }
  BENCH_CHECK(line->shape.count, "a shape is needed");
  return NULL;
}

/* ---- from lines to cases ---- */

/* "u4 g128 f16 z8"; `type` is how the line calls the codes. */
static void describe_weights(bench_case *c, const char *type) {
  const lpgemm_weight_desc_t *d = &c->desc;
  size_t size = sizeof c->weights, at = 0;
#define ADD(...) at += (size_t)snprintf(c->weights + at, at < size ? size - at : 0, __VA_ARGS__)
  ADD("%s", type);
  if (d->group_k) ADD(" g%lld", (long long)d->group_k);
  if (d->scale_type) ADD(" %s", lpgemm_dtype_name(d->scale_type));
  if (d->super_scale_type) ADD(" s%lld %s", (long long)d->super_k, lpgemm_dtype_name(d->super_scale_type));
  if (d->zero == LPGEMM_ZERO_CONSTANT) ADD(" z%g", (double)d->zero_constant);
  if (d->zero == LPGEMM_ZERO_PER_GROUP) ADD(" z%s", lpgemm_dtype_name(d->zero_type));
  if (d->zero == LPGEMM_ZERO_MINIMUM) ADD(" min%s", lpgemm_dtype_name(d->zero_type));
  if (d->global_scale != 0.0f) ADD(" global");
  if (d->columns) ADD(" ordered");
#undef ADD
}

/* The value of each key that case `index` of the product takes; the last key changes fastest. */
static void choose(const suite_line *line, int64_t index, int chosen[KEYS]) {
  for (int i = KEYS - 1; i >= 0; i--) {
    int count = line->key[i].count ? line->key[i].count : 1;
    chosen[i] = (int)(index % count);
    index /= count;
  }
}

static bench_error make_case(const suite_line *line, const bench_shape *shape, int64_t index, bench_case *c) {
  int chosen[KEYS];
  choose(line, index, chosen);
  *c = (bench_case){.operation = line->operation, .desc = {.size = sizeof c->desc}};
  const int is_layer = c->operation == BENCH_EXPERTS, is_model = c->operation == BENCH_TOKEN;
  BENCH_CHECK(is_layer == (shape->experts > 0), "%s is %s", shape->name,
              is_layer ? "no layer of experts" : "a layer of experts, for the operation experts");
  BENCH_CHECK(is_model == (shape->layers > 0), "%s is %s", shape->name,
              is_model ? "no model" : "a model, for the operation token");
  c->desc.n = is_layer || is_model ? 2 * shape->n : shape->n;
  c->desc.k = shape->k;
  c->experts = shape->experts;
  c->top_k = shape->top_k;
  c->qkv = shape->qkv;
  c->layers = shape->layers;
  c->m = 1;
  c->within = 4;
  c->use = "";
  snprintf(c->shape, sizeof c->shape, "%s", shape->name);
  BENCH_TRY(set_x(c, "f16"));
  c->out_type = LPGEMM_F16;
  for (int i = 0; i < KEYS; i++) {
    if (line->key[i].count) BENCH_TRY(keys[i].set(c, line->key[i].item[chosen[i]]));
  }
  const int is_import = c->operation == BENCH_IMPORT;
  const int no_weights = c->operation == BENCH_BLAS || c->operation == BENCH_QUANTIZE || is_import;
  BENCH_CHECK(no_weights == (c->desc.type == 0), "%s",
              no_weights ? "blas, quantize and import take no w" : "w is missing");
  BENCH_CHECK(is_import == (c->format[0] != 0), "%s",
              is_import ? "import needs a format" : "only import takes a format");
  if (is_import) snprintf(c->weights, sizeof c->weights, "%s", c->format);
  if (c->desc.type) describe_weights(c, line->key[0].item[chosen[0]]);
  if (c->operation == BENCH_BLAS && c->baseline == LPGEMM_I8) c->y_type = LPGEMM_I32;
  size_t at = (size_t)snprintf(c->name, sizeof c->name, "%s/%s", operation_names[c->operation], c->shape);
  if (c->desc.type) at += (size_t)snprintf(c->name + at, sizeof c->name - at, "/%s", c->weights);
  for (int i = 0; i < KEYS && at < sizeof c->name; i++) {
    if (!line->key[i].count || !keys[i].in_name) continue;
    at += (size_t)snprintf(c->name + at, sizeof c->name - at, "/%s%s", keys[i].in_name, line->key[i].item[chosen[i]]);
  }
  BENCH_CHECK(at < sizeof c->name, "the name %s is too long", c->name);
  for (char *blank = c->name; (blank = strchr(blank, ' '));) *blank = '-';
  return NULL;
}

static bench_error add_line(const bench_shapes *shapes, char *text, bench_case **cases, int *count) {
  suite_line line;
  BENCH_TRY(read_line(text, &line));
  int64_t product = 1;
  for (int i = 0; i < KEYS; i++) product *= line.key[i].count ? line.key[i].count : 1;
  for (int s = 0; s < line.shape.count; s++) {
    bench_shape shape;
    int at = 0, found = 0;
    while (bench_next_shape(shapes, line.shape.item[s], &at, &shape)) {
      found = 1;
      bench_case *more = realloc(*cases, (size_t)(*count + product) * sizeof *more);
      BENCH_CHECK(more, "out of memory");
      *cases = more;
      for (int64_t i = 0; i < product; i++) {
        BENCH_TRY(make_case(&line, &shape, i, &(*cases)[*count]));
        ++*count;
      }
    }
    BENCH_CHECK(found, "no shape is called '%s'", line.shape.item[s]);
  }
  return NULL;
}

/* ---- files ---- */

typedef struct reading {
  const char *data;
  const bench_draw *instead;
  bench_shapes shapes, layers;
  bench_kinds kinds;
  bench_case *cases;
  int count;
} reading;

static bench_error add_file(reading *r, const char *name, int depth);

static bench_error add_text(void *context, char *text) {
  reading *r = context;
  return add_line(&r->shapes, text, &r->cases, &r->count);
}

static bench_error add_layer_text(void *context, char *text) {
  reading *r = context;
  return add_line(&r->layers, text, &r->cases, &r->count);
}

/* What follows the first word of a line if that is `word`, else NULL. */
static char *after(char *text, const char *word) {
  text += strspn(text, " \t");
  const size_t length = strlen(word);
  return strncmp(text, word, length) == 0 && text[length] == ' ' ? text + length : NULL;
}

static bench_error add_any(reading *r, char *text) {
  char *rest;
  if ((rest = after(text, "random"))) return bench_draw_lines(rest, add_text, r);
  if ((rest = after(text, "kind"))) return bench_add_kind(rest, &r->kinds);
  if ((rest = after(text, "drawn"))) {
    const int of_layers = strstr(rest, "from=layers") != NULL;
    return bench_draw_cases(rest, r->instead, &r->kinds, &r->layers, of_layers ? add_layer_text : add_text, r);
  }
  return add_text(r, text);
}

static bench_error add_lines(reading *r, FILE *file, const char *path, int depth) {
  char text[1024], name[64];
  for (int number = 1; fgets(text, sizeof text, file); number++) {
    text[strcspn(text, "#\n")] = 0;
    if (text[strspn(text, " \t")] == 0) continue;
    if (sscanf(text, " include %63s", name) == 1) {
      BENCH_TRY(add_file(r, name, depth + 1));
      continue;
    }
    bench_error error = add_any(r, text);
    BENCH_CHECK(!error, "%s, line %d: %s", path, number, error);
  }
  return NULL;
}

static bench_error add_file(reading *r, const char *name, int depth) {
  char path[1024];
  snprintf(path, sizeof path, "%s/bench/suites/%s.txt", r->data, name);
  BENCH_CHECK(depth <= MAX_DEPTH, "%s is included from too deep", path);
  FILE *file = fopen(path, "r");
  BENCH_CHECK(file, "cannot open %s", path);
  bench_error error = add_lines(r, file, path, depth);
  fclose(file);
  return error;
}

/* Cases of the same weights stand together where the first of them stands, so that each matrix is packed once. */
static bench_error gather(reading *r) {
  bench_case *sorted = malloc((size_t)(r->count + 1) * sizeof *sorted);
  char *taken = calloc((size_t)r->count + 1, 1);
  for (int i = 0, at = 0; sorted && taken && i < r->count; i++) {
    for (int j = i; j < r->count; j++) {
      if (taken[j] || memcmp(&r->cases[i].desc, &r->cases[j].desc, sizeof r->cases[i].desc) != 0) continue;
      taken[j] = 1;
      sorted[at++] = r->cases[j];
    }
  }
  int enough = sorted && taken;
  free(taken);
  free(enough ? r->cases : sorted);
  if (enough) r->cases = sorted;
  BENCH_CHECK(enough, "out of memory");
  return NULL;
}

static bench_error check_names(const reading *r, const char *suite) {
  for (int i = 0; i < r->count; i++) {
    for (int j = 0; j < i; j++) {
      BENCH_CHECK(strcmp(r->cases[i].name, r->cases[j].name), "%s: two cases are called %s", suite, r->cases[i].name);
    }
  }
  return NULL;
}

bench_error bench_read_suite(const char *data, const char *name, const bench_draw *instead, bench_case **cases,
                             int *count) {
  reading r = {.data = data, .instead = instead};
  bench_error error = bench_read_shapes(data, &r.shapes);
  if (!error) error = bench_add_layers(data, &r.layers);
  if (!error) error = add_file(&r, name, 0);
  if (!error) error = check_names(&r, name);
  if (!error) error = gather(&r);
  bench_free_shapes(&r.shapes);
  bench_free_shapes(&r.layers);
  free(r.kinds.kind);
  *cases = r.cases;
  *count = r.count;
  return error;
}
