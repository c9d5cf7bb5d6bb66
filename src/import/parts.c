/* Parts of a checkpoint -> what they become together: opens each, cuts slices, and joins them along N. */
#include <stdio.h>
#include <stdlib.h>

#include "import.h"

enum {
  MOST_PARTS = 1024,
  LARGEST_GROUP_N = 128, /* of rows, so that a band of them stays small */
  MOST_GROWTH = 4,       /* no format needs so much: the types that are expanded double */
  SMALL_BYTES = 64 << 20
};

/* ---- one part ---- */

static const lpg_reader *const readers[] = {
    &lpgemm_i_read_gptq,          &lpgemm_i_read_gptq_v2,      &lpgemm_i_read_awq,    &lpgemm_i_read_awq_gemv,
    &lpgemm_i_read_awq_gemv_fast, &lpgemm_i_read_compressed,   &lpgemm_i_read_scaled, &lpgemm_i_read_nvfp4,
    &lpgemm_i_read_mxfp,          &lpgemm_i_read_bitsandbytes, &lpgemm_i_read_hqq,    &lpgemm_i_read_bitnet,
    &lpgemm_i_read_bitnet_auto,   &lpgemm_i_read_gguf};

static const lpg_reader *reader_of(lpgemm_format_t format) {
  for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
    if (readers[i]->format == format) return readers[i];
  }
  return NULL;
}

static lpgemm_status_t check_import(const lpgemm_import_t *import) {
  LPG_TRY(lpgemm_i_check_reserved(import->reserved, 4, "part"));
  LPG_CHECK(import->tensors || import->count == 0, LPGEMM_NULL_POINTER, "part.tensors is NULL, but part.count is %zu",
            import->count);
  for (size_t i = 0; i < import->count; i++) {
    LPG_CHECK(import->tensors[i].name, LPGEMM_NULL_POINTER, "part.tensors[%zu].name is NULL", i);
  }
  LPG_CHECK(import->bits >= 0 && import->bits <= 8, LPGEMM_INVALID_ARGUMENT,
            "part.bits is %d; it must be 1 to 8, or 0 if the tensors say it", (int)import->bits);
  LPG_CHECK(import->group_k >= 0 && import->group_k <= INT32_MAX, LPGEMM_INVALID_ARGUMENT,
            "part.group_k is %lld; it must be 0 to 2^31 - 1", (long long)import->group_k);
  LPG_CHECK(import->expert >= 0, LPGEMM_INVALID_ARGUMENT, "part.expert is %lld; it must be 0 or more",
            (long long)import->expert);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_edge(const char *name, int64_t at, const lpgemm_weight_desc_t *d, int64_t unit) {
  const int64_t below = at - at % unit, above = below + unit < d->k ? below + unit : d->k;
  LPG_CHECK(at % unit == 0 || at == d->k, LPGEMM_INVALID_ARGUMENT,
            "%s = %lld lies inside a group of %lld columns: %lld and %lld are the nearest edges", name, (long long)at,
            (long long)unit, (long long)below, (long long)above);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t resolve_range(const char *name, int64_t from, int64_t *to, int64_t size) {
  if (*to == 0) *to = size;
  LPG_CHECK(from >= 0 && from < *to && *to <= size, LPGEMM_INVALID_SIZE,
            "%s0 is %lld and %s1 is %lld; of 0 to %lld they must take some", name, (long long)from, name,
            (long long)*to, (long long)size);
  return LPGEMM_SUCCESS;
}

/* Rows may be cut anywhere, columns at edges of groups; the first edge is one of super-groups too. */
static lpgemm_status_t resolve_slice(const lpgemm_import_t *import, const lpgemm_weight_desc_t *d, lpg_slice *slice) {
  *slice = (lpg_slice){import->n0, import->n1, import->k0, import->k1};
  LPG_TRY(resolve_range("n", slice->n0, &slice->n1, d->n));
  LPG_TRY(resolve_range("k", slice->k0, &slice->k1, d->k));
  if (d->group_k == 0) return LPGEMM_SUCCESS;
  LPG_TRY(check_edge("k0", slice->k0, d, d->super_k ? d->super_k : d->group_k));
  return check_edge("k1", slice->k1, d, d->group_k);
}

static lpgemm_status_t open_part(const lpgemm_import_t *given, lpg_part *part, lpg_slice *slice) {
  lpgemm_import_t import;
  LPG_TRY(lpgemm_i_copy_struct(&import, sizeof import, sizeof import, given, "part"));
  LPG_TRY(check_import(&import));
  part->reader = reader_of(import.format);
  LPG_CHECK(part->reader, LPGEMM_INVALID_ARGUMENT, "part.format is %d; it must be an LPGEMM_FORMAT_ value",
            (int)import.format);
  part->desc.size = sizeof part->desc;
  LPG_TRY(part->reader->open(&import, part));
  if (!part->code_data) part->code_data = part->codes->data;
  if (part->scales && !part->scale_data) part->scale_data = part->scales->data;
  if (part->zeros && !part->zero_data) part->zero_data = part->zeros->data;
  if (part->desc.global_scale == 0.0f) part->desc.global_scale = 1.0f;
  return resolve_slice(&import, &part->desc, slice);
}

/* ---- joining ---- */

static lpgemm_status_t check_same(size_t i, const char *what, int64_t a, int64_t b) {
  LPG_CHECK(a == b, LPGEMM_INVALID_ARGUMENT, "parts[%zu] has %s %lld and parts[0] has %lld: import them one by one", i,
            what, (long long)b, (long long)a);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_same_type(size_t i, const char *what, lpgemm_dtype_t a, lpgemm_dtype_t b) {
  LPG_CHECK(a == b, LPGEMM_INVALID_ARGUMENT, "parts[%zu] has %s %s and parts[0] has %s: import them one by one", i,
            what, lpgemm_dtype_name(b), lpgemm_dtype_name(a));
  return LPGEMM_SUCCESS;
}

int lpgemm_i_same_codebook(const lpgemm_weight_desc_t *a, const lpgemm_weight_desc_t *b) {
  int i = 0;
  while (i < 16 && lpg_f32_bits(a->codebook[i]) == lpg_f32_bits(b->codebook[i])) i++;
  return i == 16;
}

static lpgemm_status_t check_joins(const lpg_joined *joined, size_t i) {
  const lpg_part *first = &joined->part[0], *part = &joined->part[i];
  const lpgemm_weight_desc_t *a = &first->desc, *b = &part->desc;
  LPG_CHECK(first->reader == part->reader, LPGEMM_INVALID_ARGUMENT,
            "parts[%zu] is %s and parts[0] is %s: import them one by one", i, part->reader->name, first->reader->name);
  LPG_TRY(check_same(i, "K =", a->k, b->k));
  LPG_TRY(check_same(i, "group_k", a->group_k, b->group_k));
  LPG_TRY(check_same(i, "super_k", a->super_k, b->super_k));
  LPG_TRY(check_same(i, "k0", joined->slice[0].k0, joined->slice[i].k0));
  LPG_TRY(check_same(i, "k1", joined->slice[0].k1, joined->slice[i].k1));
  LPG_TRY(check_same_type(i, "codes of", a->type, b->type));
  LPG_TRY(check_same_type(i, "scales of", a->scale_type, b->scale_type));
  LPG_TRY(check_same_type(i, "super scales of", a->super_scale_type, b->super_scale_type));
  LPG_TRY(check_same(i, "zeros of kind", a->zero, b->zero));
  LPG_TRY(check_same_type(i, "zeros of", a->zero_type, b->zero_type));
  LPG_CHECK(a->zero_constant == b->zero_constant && a->super_zero_type == b->super_zero_type, LPGEMM_INVALID_ARGUMENT,
            "parts[%zu] has other zeros than parts[0]: import them one by one", i);
  LPG_CHECK(lpgemm_i_same_codebook(a, b), LPGEMM_INVALID_ARGUMENT,
            "parts[%zu] has another codebook than parts[0]: import them one by one", i);
  LPG_CHECK(a->columns == b->columns &&
                (a->columns == LPGEMM_COLUMNS_PLAIN ||
                 memcmp(first->column_order, part->column_order, (size_t)a->k * sizeof *part->column_order) == 0),
            LPGEMM_NOT_SUPPORTED,
            "parts[%zu] has another order of columns (g_idx) than parts[0]: import them one by one", i);
  return LPGEMM_SUCCESS;
}

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

/* Blocks of rows stay what they are where slices and joins lie at their edges; else they become smaller, or each row
 * has numbers of its own. */
static int64_t common_group_n(const lpg_joined *joined) {
  int64_t group = joined->part[0].desc.group_n, row = 0;
  for (size_t i = 0; i < joined->count; i++) {
    const lpg_slice *s = &joined->slice[i];
    if (joined->part[i].desc.group_n == 0) return 0;
    group = common_divisor(common_divisor(group, joined->part[i].desc.group_n), common_divisor(s->n0, row));
    row += s->n1 - s->n0;
  }
  group = common_divisor(group, LARGEST_GROUP_N);
  return group % LPG_TILE_ROWS == 0 ? group : 0;
}

static lpgemm_status_t join(lpg_joined *joined) {
  lpgemm_weight_desc_t *d = &joined->desc;
  *d = joined->part[0].desc;
  d->n = 0;
  for (size_t i = 0; i < joined->count; i++) {
    const lpg_slice *s = &joined->slice[i];
    LPG_TRY(check_joins(joined, i));
    d->n += s->n1 - s->n0;
    if (joined->part[i].desc.global_scale != d->global_scale) d->row_scales = LPGEMM_F32;
    LPG_CHECK(d->n <= INT32_MAX, LPGEMM_SIZE_OVERFLOW, "the parts have more than 2^31 - 1 rows together");
  }
  if (d->row_scales) d->global_scale = 1.0f;
  d->group_n = common_group_n(joined);
  d->k = joined->slice[0].k1 - joined->slice[0].k0;
  d->x_k = d->columns == LPGEMM_COLUMNS_ORDERED && d->k < joined->part[0].desc.k ? joined->part[0].desc.k : 0;
  if (d->group_k >= d->k && d->super_k == 0 && d->super_scale_type == 0) d->group_k = 0;
  return LPGEMM_SUCCESS;
}

/* Rows are padded to 16 and columns to a tile: a matrix that is much longer than wide, or the other way round, could
 * make memory of many times its file. */
static lpgemm_status_t check_growth(const lpg_joined *joined) {
  lpg_packed packed;
  LPG_TRY(lpgemm_i_make_packed(&joined->desc, &packed));
  uint64_t bytes = 0;
  for (size_t i = 0; i < joined->count; i++) {
    const lpgemm_tensor_t *scales = joined->part[i].scales;
    bytes += joined->part[i].codes->bytes + (scales ? scales->bytes : 0);
  }
  LPG_CHECK(packed.total_bytes <= SMALL_BYTES || (packed.total_bytes - SMALL_BYTES) / MOST_GROWTH <= bytes,
            LPGEMM_NOT_SUPPORTED,
            "%lld rows of %lld columns have %llu bytes and would become %llu, nearly all of them padding",
            (long long)joined->desc.n, (long long)joined->desc.k, (unsigned long long)bytes,
            (unsigned long long)packed.total_bytes);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_open_parts(const lpgemm_import_t *parts, size_t count, lpg_joined *joined) {
  memset(joined, 0, sizeof *joined);
  LPG_CHECK(parts, LPGEMM_NULL_POINTER, "parts is NULL");
  LPG_CHECK(count >= 1 && count <= MOST_PARTS, LPGEMM_INVALID_ARGUMENT, "count is %zu; it must be 1 to %d parts", count,
            MOST_PARTS);
  joined->part = calloc(count, sizeof *joined->part);
  joined->slice = calloc(count, sizeof *joined->slice);
  LPG_CHECK(joined->part && joined->slice, LPGEMM_OUT_OF_MEMORY, "no memory for %zu parts", count);
  for (size_t i = 0; i < count; i++) {
    joined->count = i + 1;
    LPG_TRY(open_part(&parts[i], &joined->part[i], &joined->slice[i]));
  }
  LPG_TRY(join(joined));
  return check_growth(joined);
}

void lpgemm_i_close_parts(lpg_joined *joined) {
  for (size_t i = 0; i < joined->count; i++) {
    free(joined->part[i].column_order);
    free(joined->part[i].own);
  }
  free(joined->part);
  free(joined->slice);
}
