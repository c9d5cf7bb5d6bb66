/* A rank's part of a matrix: a description, and pointers into the source of the whole. */
#include "pack.h"
#include "sections.h"

/* Rows or columns [first, first + count) of the whole. */
typedef struct slice {
  int by_columns;
  int64_t first, count;
} slice;

/* ---- where to cut ---- */

static int64_t greatest_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* What stays together: whole units and whole groups. One group for all may be cut: each part has it. */
static int64_t quantum_of(const lpg_packed *packed, const lpgemm_shard_t *shard) {
  const lpgemm_weight_desc_t *d = &packed->desc;
  const int64_t size = shard->by == LPGEMM_SHARD_COLUMNS ? d->k : d->n;
  int64_t groups[2] = {d->group_n, 0}, quantum = shard->unit ? shard->unit : 1;
  if (shard->by == LPGEMM_SHARD_COLUMNS) {
    groups[0] = d->group_k;
    groups[1] = d->super_k;
  }
  for (int i = 0; i < 2; i++) {
    if (groups[i] == 0 || groups[i] >= size || quantum >= size) continue;
    quantum *= groups[i] / greatest_divisor(quantum, groups[i]);
  }
  return quantum;
}

static lpgemm_status_t read_shard(const lpg_packed *packed, const lpgemm_shard_t *from, slice *s) {
  lpgemm_shard_t shard;
  LPG_CHECK(from, LPGEMM_NULL_POINTER, "shard is NULL");
  LPG_TRY(lpgemm_i_copy_struct(&shard, sizeof shard, sizeof shard, from, "shard"));
  LPG_TRY(lpgemm_i_check_reserved(shard.reserved, 4, "shard"));
  LPG_CHECK(shard.by == LPGEMM_SHARD_ROWS || shard.by == LPGEMM_SHARD_COLUMNS, LPGEMM_INVALID_ARGUMENT,
            "shard.by is %d; it must be LPGEMM_SHARD_ROWS or LPGEMM_SHARD_COLUMNS", (int)shard.by);
  LPG_CHECK(
      shard.by == LPGEMM_SHARD_COLUMNS || packed->desc.rows == LPGEMM_ROWS_PLAIN, LPGEMM_NOT_SUPPORTED,
      "desc.rows is LPGEMM_ROWS_PAIRED; cut gates and ups as matrices with plain rows, each by LPGEMM_SHARD_ROWS");
  LPG_CHECK(shard.ranks >= 1, LPGEMM_INVALID_ARGUMENT, "shard.ranks is %d; it must be 1 or more", shard.ranks);
  LPG_CHECK(shard.rank >= 0 && shard.rank < shard.ranks, LPGEMM_INVALID_ARGUMENT,
            "shard.rank is %d; of %d ranks it must be 0 to %d", shard.rank, shard.ranks, shard.ranks - 1);
  LPG_CHECK(shard.unit >= 0 && shard.unit <= INT32_MAX, LPGEMM_INVALID_SIZE, "shard.unit is %lld; it must be 0 to %d",
            (long long)shard.unit, INT32_MAX);
  s->by_columns = shard.by == LPGEMM_SHARD_COLUMNS;
  const int64_t size = s->by_columns ? packed->desc.k : packed->desc.n, quantum = quantum_of(packed, &shard);
  const int64_t quanta = lpg_ceil_div(size, quantum), each = quanta / shard.ranks, more = quanta % shard.ranks;
  const int64_t first = shard.rank * each + (shard.rank < more ? shard.rank : more);
  const int64_t end = first + each + (shard.rank < more);
  s->first = first < quanta ? first * quantum : size;
  s->count = (end < quanta ? end * quantum : size) - s->first;
  return LPGEMM_SUCCESS;
}

/* The plan of the part. A part of ordered columns takes some columns of the same X. */
static lpgemm_status_t plan_part(const lpg_packed *whole, const slice *s, lpg_packed *part) {
  lpgemm_weight_desc_t d = whole->desc;
  if (s->by_columns) {
    d.k = s->count;
    d.x_k = d.columns ? whole->x_k : 0;
  } else {
    d.n = s->count;
  }
  return lpgemm_i_make_packed(&d, part);
}

lpgemm_status_t lpgemm_shard_desc(const lpgemm_weight_desc_t *desc, const lpgemm_shard_t *shard,
                                  lpgemm_weight_desc_t *part, int64_t *first) {
  lpg_packed whole, packed;
  slice s;
  LPG_CHECK(part, LPGEMM_NULL_POINTER, "part is NULL");
  LPG_TRY(lpgemm_i_read_desc(desc, &whole));
  LPG_TRY(read_shard(&whole, shard, &s));
  LPG_TRY(plan_part(&whole, &s, &packed));
  *part = packed.desc;
  if (first) *first = s.first;
  return LPGEMM_SUCCESS;
}

/* ---- arrays ---- */

/* Moves the start of an array; one of which the part needs nothing is none. */
static void move(const void **data, size_t *bytes, uint64_t offset, uint64_t needed) {
  const int is_there = *data && needed > 0;
  *data = is_there ? (const uint8_t *)*data + offset : NULL;
  *bytes = is_there ? *bytes - (size_t)offset : 0;
}

static lpgemm_status_t move_codes(const lpg_packed *whole, const slice *s, lpg_source *source, uint64_t needed) {
  lpgemm_weight_source_t *a = &source->arrays;
  const int in_bits = a->code_layout == LPGEMM_CODES_BITS;
  int64_t codes = s->by_columns ? s->first : s->first * a->codes_ld;
  if (s->by_columns ? whole->desc.columns != LPGEMM_COLUMNS_PLAIN : a->row_order != NULL) codes = 0;
  const uint64_t bits = (uint64_t)codes * (in_bits ? (uint64_t)whole->bits : 8);
  LPG_CHECK(needed == 0 || bits % 8 == 0, LPGEMM_NOT_SUPPORTED,
            "the part begins with %s %lld, inside a byte of the bit stream; a shard.unit of 8 keeps it out",
            s->by_columns ? "column" : "row", (long long)s->first);
  move(&a->codes, &a->codes_bytes, bits / 8, needed);
  return LPGEMM_SUCCESS;
}

/* The number of the whole's array with which that of the part begins. */
static int64_t first_number(const lpg_packed *whole, const slice *s, const lpg_source *source, lpg_section_id id) {
  const int is_row_major = source->arrays.order == LPGEMM_ROW_MAJOR;
  const int64_t ld = lpg_source_ld(source, id), group_n = whole->desc.group_n ? whole->desc.group_n : 1;
  if (s->by_columns) {
    const lpg_axis *axis = lpg_section_axis(whole, id);
    const int64_t group = axis->count > 1 ? s->first / axis->k : 0;
    return is_row_major ? group : group * ld;
  }
  const int64_t row = source->arrays.row_order ? 0 : s->first / group_n;
  return is_row_major ? row * ld : row;
}

lpgemm_status_t lpgemm_shard_source(const lpgemm_weight_desc_t *desc, const lpgemm_weight_source_t *source,
                                    const lpgemm_shard_t *shard, lpgemm_weight_source_t *part) {
  lpg_packed whole, packed;
  lpg_source of_part;
  slice s;
  LPG_CHECK(part, LPGEMM_NULL_POINTER, "part is NULL");
  LPG_TRY(lpgemm_i_read_desc(desc, &whole));
  LPG_TRY(read_shard(&whole, shard, &s));
  LPG_TRY(plan_part(&whole, &s, &packed));
  LPG_TRY(lpgemm_i_open_source(&whole, source, whole.desc.n, &of_part));
  const lpg_source all = of_part;
  lpgemm_weight_source_t *a = &of_part.arrays;
  of_part.rows = packed.desc.n;
  if (!a->row_order) of_part.source_rows = packed.desc.n; /* else its rows may be any of the whole's */
  const int64_t first_row = s.by_columns || a->row_order ? 0 : s.first;
  LPG_TRY(move_codes(&whole, &s, &of_part, lpgemm_i_codes_bytes(&packed, &of_part)));
  const struct {
    const void **data;
    size_t *bytes;
  } arrays[] = {[LPG_SECTION_SCALES] = {&a->scales, &a->scales_bytes},
                [LPG_SECTION_ZEROS] = {&a->zeros, &a->zeros_bytes},
                [LPG_SECTION_SUPER_SCALES] = {&a->super_scales, &a->super_scales_bytes},
                [LPG_SECTION_SUPER_ZEROS] = {&a->super_zeros, &a->super_zeros_bytes}};
  for (int i = LPG_SECTION_SCALES; i <= LPG_SECTION_SUPER_ZEROS; i++) {
    const lpg_section_id id = (lpg_section_id)i;
    const int64_t first = first_number(&whole, &s, &all, id);
    move(arrays[i].data, arrays[i].bytes, (uint64_t)first * (uint64_t)lpg_bytes(lpg_section_type(&whole.desc, id)),
         lpgemm_i_array_bytes(&packed, &of_part, id));
  }
  move(&a->row_scales, &a->row_scales_bytes, (uint64_t)first_row * 4,
       lpgemm_i_array_bytes(&packed, &of_part, LPG_SECTION_ROW_SCALES));
  if (a->column_order && s.by_columns) a->column_order += s.first;
  a->column_order_bytes = (size_t)lpgemm_i_array_bytes(&packed, &of_part, LPG_SECTION_COLUMN_ORDER);
  if (a->row_order && !s.by_columns) a->row_order += s.first;
  a->row_order_bytes = a->row_order ? (size_t)packed.desc.n * 4 : 0;
  a->size = sizeof *a;
  *part = *a;
  return LPGEMM_SUCCESS;
}
