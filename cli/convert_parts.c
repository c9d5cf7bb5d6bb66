/* What a job becomes: its layers, cut for a rank, and their description together. */
#include <stdio.h>
#include <string.h>

#include "convert.h"

typedef struct range {
  int64_t first, end;
} range;

static int refuse(convert_parts *parts, const char *text) {
  snprintf(parts->why, sizeof parts->why, "%s", text);
  return 0;
}

/* The rank's share of `size`, in whole units: the first ranks have one more. */
static range share(const convert_options *o, int64_t size, int64_t unit) {
  const int64_t units = (size + unit - 1) / unit, each = units / o->ranks, more = units % o->ranks;
  const int64_t first = each * o->rank + (o->rank < more ? o->rank : more);
  range r = {first * unit, (first + each + (o->rank < more)) * unit};
  if (r.first > size) r.first = size;
  if (r.end > size) r.end = size;
  return r;
}

/* Columns that stay together. */
static int64_t unit_of(const lpgemm_weight_desc_t *d) { return d->super_k ? d->super_k : d->group_k ? d->group_k : 16; }

static int describe(const lpgemm_import_t *import, lpgemm_weight_desc_t *desc) {
  *desc = (lpgemm_weight_desc_t){.size = sizeof *desc};
  return lpgemm_import_desc(import, 1, desc) == LPGEMM_SUCCESS;
}

/* The layer of whose columns these rows are the inputs; 0 if there is none that can be read. */
static int find_partner(const convert_plan *plan, const convert_name *name, const char *partners,
                        lpgemm_weight_desc_t *desc) {
  char text[CONVERT_NAME];
  for (const char *s = partners; s && *s;) {
    const size_t length = strcspn(s, " ");
    lpgemm_import_t import = {.size = sizeof import};
    const convert_layer *layer = convert_find_layer(plan, convert_rename(name, s, length, text));
    if (layer && lpgemm_file_layer(plan->file, layer->name, &import) == LPGEMM_SUCCESS) return describe(&import, desc);
    s += length + (s[length] == ' ');
  }
  return 0;
}

static void add_rows(convert_parts *parts, const lpgemm_import_t *import, range rows) {
  lpgemm_import_t *part = &parts->part[parts->count++];
  *part = *import;
  part->n0 = rows.first;
  part->n1 = rows.end;
}

static int uneven(const convert_options *o, const char *what, int64_t count, int64_t unit, convert_parts *parts) {
  char text[160];
  snprintf(text, sizeof text, "its %lld %s in units of %lld cannot be shared evenly among %d ranks", (long long)count,
           what, (long long)unit, o->ranks);
  return refuse(parts, text);
}

static int empty(const convert_options *o, convert_parts *parts) {
  char text[160];
  snprintf(text, sizeof text, "rank %d of %d would have nothing of it; take fewer ranks", o->rank, o->ranks);
  return refuse(parts, text);
}

/* Rows [first, first + size) of the matrix, shared in units. */
static int cut_rows(const convert_options *o, const lpgemm_import_t *import, int64_t first, int64_t size, int64_t unit,
                    convert_parts *parts) {
  range rows = share(o, size, unit);
  if (rows.first == rows.end) return empty(o, parts);
  rows.first += first, rows.end += first;
  add_rows(parts, import, rows);
  return 1;
}

/* Ranks have whole heads. count: what the model says; 0: it says nothing, and what is even is taken for whole. */
static int are_heads_even(const convert_options *o, const char *what, int64_t count, convert_parts *parts) {
  char text[200];
  if (count % o->ranks == 0) return 1;
  snprintf(text, sizeof text,
           "the model's %lld %s cannot be shared evenly among %d ranks: take a number of ranks that divides it",
           (long long)count, what, o->ranks);
  return refuse(parts, text);
}

static int cut_even_rows(const convert_options *o, const lpgemm_import_t *import, int64_t first, int64_t size,
                         convert_parts *parts) {
  if (size % o->ranks != 0) return uneven(o, "rows", size, 1, parts);
  return cut_rows(o, import, first, size, size / o->ranks, parts);
}

static int cut_columns(const convert_options *o, const lpgemm_import_t *import, const lpgemm_weight_desc_t *d, int even,
                       convert_parts *parts) {
  const int64_t unit = unit_of(d);
  if (even && d->k % (unit * o->ranks) != 0) return uneven(o, "columns", d->k, unit, parts);
  const range columns = share(o, d->k, unit);
  if (columns.first == columns.end) return empty(o, parts);
  lpgemm_import_t *part = &parts->part[parts->count++];
  *part = *import;
  part->k0 = columns.first;
  part->k1 = columns.end;
  return 1;
}

/* Rows of gate and up together: halves one under the other, but gpt-oss has them take turns. */
static int cut_gate_up(const convert_options *o, const lpgemm_import_t *import, int64_t n, int64_t unit,
                       convert_parts *parts) {
  if (n % 2 != 0) return refuse(parts, "its rows are gate and up, but they are an odd number");
  if (import->count > 0 && strcmp(import->tensors[0].name, "blocks") == 0) {
    return unit ? cut_rows(o, import, 0, n, 2 * unit, parts) : cut_even_rows(o, import, 0, n, parts);
  }
  for (int64_t half = 0; half < 2; half++) {
    const int done = unit ? cut_rows(o, import, half * n / 2, n / 2, unit, parts)
                          : cut_even_rows(o, import, half * n / 2, n / 2, parts);
    if (!done) return 0;
  }
  return 1;
}

static int cut_qkv(const convert_options *o, const lpgemm_import_t *import, int64_t n, int64_t q,
                   convert_parts *parts) {
  const int64_t kv = (n - q) / 2;
  if (q <= 0 || kv <= 0 || (n - q) % 2 != 0) {
    return refuse(parts, "its rows are q, k and v, and which is which only a quantised output projection would say");
  }
  return cut_even_rows(o, import, 0, q, parts) && cut_even_rows(o, import, q, kv, parts) &&
         cut_even_rows(o, import, q + kv, kv, parts);
}

static int cut_layer(const convert_plan *plan, const char *layer, const lpgemm_import_t *import, convert_parts *parts) {
  const convert_options *o = plan->options;
  const convert_name name = convert_split(layer);
  const char *partners;
  const convert_cut cut = convert_cut_of(&name, &partners);
  lpgemm_weight_desc_t d, partner = {.size = 0};
  if (!describe(import, &d)) return refuse(parts, lpgemm_last_error());
  const int has_partner = find_partner(plan, &name, partners, &partner);
  const int64_t unit = has_partner ? unit_of(&partner) : 0;
  int64_t heads = 0, kv_heads = 0;
  cli_check(lpgemm_file_heads(plan->file, &heads, &kv_heads));
  const int by_heads = cut == CUT_HEADS || cut == CUT_QKV || cut == CUT_EVEN;
  if (by_heads && !are_heads_even(o, "heads", heads, parts)) return 0;
  if ((cut == CUT_KV_HEADS || cut == CUT_QKV) && !are_heads_even(o, "heads of k and v", kv_heads, parts)) return 0;
  switch (cut) {
    case CUT_HEADS:
    case CUT_KV_HEADS: return cut_even_rows(o, import, 0, d.n, parts);
    case CUT_ROWS:
      return unit && partner.k == d.n ? cut_rows(o, import, 0, d.n, unit, parts)
                                      : cut_even_rows(o, import, 0, d.n, parts);
    case CUT_VOCABULARY: return cut_rows(o, import, 0, d.n, 16, parts);
    case CUT_QKV: return cut_qkv(o, import, d.n, has_partner ? partner.k : 0, parts);
    case CUT_HALVES: return cut_gate_up(o, import, d.n, 2 * partner.k == d.n ? unit : 0, parts);
    case CUT_EVEN: return cut_columns(o, import, &d, 1, parts);
    case CUT_COLUMNS: return cut_columns(o, import, &d, 0, parts);
    case CUT_UNKNOWN: parts->whole = 1; break;
    case CUT_WHOLE: break;
  }
  parts->part[parts->count++] = *import;
  return 1;
}

int convert_resolve(const convert_plan *plan, const convert_job *job, convert_parts *parts) {
  memset(parts, 0, sizeof *parts);
  for (uint32_t i = 0; i < job->count; i++) {
    const char *layer = plan->layers[job->layer[i]].name;
    lpgemm_import_t import = {.size = sizeof import};
    if (lpgemm_file_layer(plan->file, layer, &import) != LPGEMM_SUCCESS) return refuse(parts, lpgemm_last_error());
    if (plan->options->ranks == 0) {
      parts->part[parts->count++] = import;
    } else if (!cut_layer(plan, job->count == 1 ? job->name : layer, &import, parts)) {
      return 0;
    }
  }
  parts->desc = (lpgemm_weight_desc_t){.size = sizeof parts->desc};
  if (lpgemm_import_desc(parts->part, parts->count, &parts->desc) != LPGEMM_SUCCESS ||
      lpgemm_packed_size(&parts->desc, &parts->bytes) != LPGEMM_SUCCESS) {
    return refuse(parts, lpgemm_last_error());
  }
  return 1;
}
