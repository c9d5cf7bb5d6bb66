/* Packing in pieces and parts: rows in any order, sources with gaps and orders, slices over ranks. What comes of it is
 * what the whole matrix gives, byte for byte, and what is wrong is refused by name. */
#include <math.h>

#include "problem.h"
#include "ref/gemm_ref.h"
#include "sample.h"
#include "test.h"

static lpgemm_handle_t handle;

static int says(const char *word) { return strstr(lpgemm_last_error(), word) != NULL; }

#define REFUSED(call, status, word)                                                                         \
  do {                                                                                                      \
    CHECK_STATUS((call), (status));                                                                         \
    if (!says(word)) test_fail(__FILE__, __LINE__, "\"%s\" does not name %s", lpgemm_last_error(), (word)); \
  } while (0)

/* ---- pieces ---- */

/* The rows [first, first + rows) of a sample's source, row-major. */
static lpgemm_weight_source_t rows_of(const sample *s, int64_t first, int64_t rows) {
  const lpgemm_weight_desc_t *d = &s->desc;
  lpgemm_weight_source_t piece = s->source;
  const int64_t shared = d->group_n > 1 ? d->group_n : 1, ld = s->source.codes_ld ? s->source.codes_ld : sample_x_k(d);
  const struct {
    const void **data;
    size_t *bytes;
  } arrays[] = {[LPGEMM_PART_SCALES] = {&piece.scales, &piece.scales_bytes},
                [LPGEMM_PART_ZEROS] = {&piece.zeros, &piece.zeros_bytes},
                [LPGEMM_PART_SUPER_SCALES] = {&piece.super_scales, &piece.super_scales_bytes},
                [LPGEMM_PART_SUPER_ZEROS] = {&piece.super_zeros, &piece.super_zeros_bytes},
                [LPGEMM_PART_ROW_SCALES] = {&piece.row_scales, &piece.row_scales_bytes}};
  piece.codes = (const uint8_t *)s->source.codes + first * ld;
  piece.codes_bytes = rows > 0 ? (size_t)((rows - 1) * ld + sample_x_k(d)) : 0;
  for (int part = LPGEMM_PART_SCALES; part <= LPGEMM_PART_ROW_SCALES; part++) {
    const int64_t lines = part == LPGEMM_PART_ROW_SCALES ? 1 : shared;
    const int64_t line = sample_part_columns(d, (lpgemm_part_t)part) *
                         ((lpgemm_dtype_bits(sample_part_type(d, (lpgemm_part_t)part)) + 7) / 8);
    if (line == 0) continue;
    *arrays[part].data = (const uint8_t *)*arrays[part].data + first / lines * line;
    *arrays[part].bytes = (size_t)((rows + lines - 1) / lines * line);
  }
  return piece;
}

static void check_same_blob(lpgemm_weights_t a, lpgemm_weights_t b) {
  size_t a_size = 0, b_size = 0;
  uint8_t *one = sample_blob(handle, a, &a_size), *other = sample_blob(handle, b, &b_size);
  CHECK(one && other && a_size == b_size && memcmp(one, other, a_size) == 0);
  test_free(one);
  test_free(other);
}

/* Pieces of all sizes in a random order make the bytes of the whole. */
static void check_pieces(const lpgemm_weight_desc_t *desc) {
  enum { MOST = 64 };
  sample s;
  sample_make(&s, desc);
  lpgemm_weights_t whole = sample_pack(handle, &s), pieces = NULL;
  CHECK_STATUS(lpgemm_weights_create(handle, desc, NULL, 0, &pieces), LPGEMM_SUCCESS);
  const int64_t unit = desc->group_n > 1 ? desc->group_n : 16;
  int64_t first[MOST + 1] = {0};
  int count = 0, turn[MOST];
  while (first[count] < desc->n) {
    const int64_t end = first[count] + unit * test_between(1, 3);
    turn[count] = count;
    count++;
    first[count] = end < desc->n && count < MOST ? end : desc->n;
  }
  for (int i = 0; i < count; i++) {
    const int other = (int)test_between(i, count - 1), taken = turn[other];
    turn[other] = turn[i];
    turn[i] = taken;
  }
  for (int i = 0; i < count; i++) {
    const int64_t rows = first[turn[i] + 1] - first[turn[i]];
    const lpgemm_weight_source_t piece = rows_of(&s, first[turn[i]], rows);
    REFUSED(lpgemm_weights_finish(handle, pieces), LPGEMM_INVALID_ARGUMENT, "not packed");
    CHECK_STATUS(lpgemm_pack_rows(handle, pieces, 0, first[turn[i]], rows, &piece), LPGEMM_SUCCESS);
    REFUSED(lpgemm_pack_rows(handle, pieces, 0, first[turn[i]], rows, &piece), LPGEMM_INVALID_ARGUMENT, "once");
  }
  CHECK_STATUS(lpgemm_weights_finish(handle, pieces), LPGEMM_SUCCESS);
  check_same_blob(whole, pieces);
  CHECK_STATUS(lpgemm_weights_destroy(whole), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(pieces), LPGEMM_SUCCESS);
  sample_free(&s);
}

static void pieces(void) {
  static const int64_t rows[] = {1, 16, 50, 333, 1100};
  for (int i = 0; i < 5; i++) {
    if (!test_case("pieces/rows/%d", (int)rows[i])) continue;
    lpgemm_weight_desc_t desc = sample_desc_zeros(rows[i], 200, LPGEMM_UINT(4), 32, LPGEMM_F16, LPGEMM_U8);
    check_pieces(&desc);
    desc.columns = LPGEMM_COLUMNS_ORDERED;
    desc.row_scales = LPGEMM_F32;
    check_pieces(&desc);
    desc = sample_desc_q4k(rows[i], 512);
    check_pieces(&desc);
    desc.scale_type = LPGEMM_UINT(4); /* two rows to a byte */
    desc.group_n = 32;
    check_pieces(&desc);
    desc = sample_desc(rows[i], 300, LPGEMM_E4M3, 128, LPGEMM_F32);
    desc.group_n = 128;
    check_pieces(&desc);
  }
  if (test_case("pieces/empty")) {
    lpgemm_weight_desc_t desc = sample_desc(0, 100, LPGEMM_UINT(4), 32, LPGEMM_F16);
    check_pieces(&desc);
    /* without a row there is an order nevertheless */
    desc.columns = LPGEMM_COLUMNS_ORDERED;
    sample s;
    sample_make(&s, &desc);
    lpgemm_weights_t whole = sample_pack(handle, &s), w = NULL;
    CHECK_STATUS(lpgemm_weights_create(handle, &desc, NULL, 0, &w), LPGEMM_SUCCESS);
    REFUSED(lpgemm_weights_finish(handle, w), LPGEMM_INVALID_ARGUMENT, "column_order");
    const lpgemm_weight_source_t piece = rows_of(&s, 0, 0);
    CHECK_STATUS(lpgemm_pack_rows(handle, w, 0, 0, 0, &piece), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_weights_finish(handle, w), LPGEMM_SUCCESS);
    check_same_blob(w, whole);
    CHECK_STATUS(lpgemm_weights_destroy(w), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_weights_destroy(whole), LPGEMM_SUCCESS);
    sample_free(&s);
  }
}

static void refusals(void) {
  if (!test_case("pieces/refusals")) return;
  lpgemm_weight_desc_t desc = sample_desc(100, 64, LPGEMM_UINT(4), 32, LPGEMM_UINT(4));
  desc.super_scale_type = LPGEMM_F16;
  desc.columns = LPGEMM_COLUMNS_ORDERED;
  sample s;
  sample_make(&s, &desc);
  lpgemm_weights_t w = NULL, finished = sample_pack(handle, &s);
  lpgemm_weights_info_t info = {.size = sizeof info};
  CHECK_STATUS(lpgemm_weights_create(handle, &desc, NULL, 0, &w), LPGEMM_SUCCESS);
  REFUSED(lpgemm_weights_info(w, &info), LPGEMM_INVALID_HANDLE, "lpgemm_weights_finish");
  lpgemm_weight_source_t piece = rows_of(&s, 16, 32);
  REFUSED(lpgemm_pack_rows(handle, finished, 0, 16, 32, &piece), LPGEMM_INVALID_HANDLE, "finished");
  REFUSED(lpgemm_pack_rows(handle, NULL, 0, 16, 32, &piece), LPGEMM_NULL_POINTER, "weights");
  REFUSED(lpgemm_pack_rows(NULL, w, 0, 16, 32, &piece), LPGEMM_NULL_POINTER, "handle");
  REFUSED(lpgemm_pack_rows(handle, w, 0, 16, 32, NULL), LPGEMM_NULL_POINTER, "source");
  REFUSED(lpgemm_pack_rows(handle, w, 1, 16, 32, &piece), LPGEMM_INVALID_ARGUMENT, "expert");
  REFUSED(lpgemm_pack_rows(handle, w, 0, -16, 32, &piece), LPGEMM_INVALID_SIZE, "first_row");
  REFUSED(lpgemm_pack_rows(handle, w, 0, 112, 0, &piece), LPGEMM_INVALID_SIZE, "first_row");
  REFUSED(lpgemm_pack_rows(handle, w, 0, 80, 32, &piece), LPGEMM_INVALID_SIZE, "rows");
  REFUSED(lpgemm_pack_rows(handle, w, 0, 16, -1, &piece), LPGEMM_INVALID_SIZE, "rows");
  REFUSED(lpgemm_pack_rows(handle, w, 0, 24, 16, &piece), LPGEMM_INVALID_ARGUMENT, "16 and 32");
  REFUSED(lpgemm_pack_rows(handle, w, 0, 16, 24, &piece), LPGEMM_INVALID_ARGUMENT, "multiple of 16");
  REFUSED(lpgemm_pack_rows(handle, w, 0, 0, 48, &piece), LPGEMM_BUFFER_TOO_SMALL, "codes");
  /* a bad code, then the rows again: nothing of the first time is left, not even its order */
  const int32_t *own = piece.column_order;
  int32_t other[64];
  memcpy(other, own, sizeof other);
  other[0] = own[1];
  other[1] = own[0];
  uint8_t *codes = s.source_codes;
  codes[20 * 64 + 5] ^= 0x80;
  piece.column_order = other;
  REFUSED(lpgemm_pack_rows(handle, w, 0, 16, 32, &piece), LPGEMM_INVALID_CODE, "row 4, column 5");
  piece.column_order = own;
  codes[20 * 64 + 5] ^= 0x80;
  CHECK_STATUS(lpgemm_pack_rows(handle, w, 0, 16, 0, &piece), LPGEMM_SUCCESS); /* nothing */
  uint8_t *scales = s.source_part[LPGEMM_PART_SCALES];
  scales[20 * 2] |= 0x40;
  REFUSED(lpgemm_pack_rows(handle, w, 0, 16, 32, &piece), LPGEMM_INVALID_CODE, "scales");
  scales[20 * 2] &= 15;
  CHECK_STATUS(lpgemm_pack_rows(handle, w, 0, 16, 32, &piece), LPGEMM_SUCCESS);
  /* one order for all rows */
  piece = rows_of(&s, 0, 16);
  piece.column_order = other;
  REFUSED(lpgemm_pack_rows(handle, w, 0, 0, 16, &piece), LPGEMM_INVALID_ARGUMENT, "column_order");
  piece.column_order = own;
  CHECK_STATUS(lpgemm_pack_rows(handle, w, 0, 0, 16, &piece), LPGEMM_SUCCESS);
  REFUSED(lpgemm_weights_finish(handle, w), LPGEMM_INVALID_ARGUMENT, "48 to 99");
  piece = rows_of(&s, 48, 52);
  CHECK_STATUS(lpgemm_pack_rows(handle, w, 0, 48, 52, &piece), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_finish(handle, w), LPGEMM_SUCCESS);
  REFUSED(lpgemm_weights_finish(handle, w), LPGEMM_INVALID_HANDLE, "finished");
  check_same_blob(w, finished);
  CHECK_STATUS(lpgemm_weights_destroy(w), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(finished), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_create(handle, &desc, NULL, 0, &w), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(w), LPGEMM_SUCCESS); /* never finished */
  REFUSED(lpgemm_weights_finish(handle, w), LPGEMM_INVALID_HANDLE, "weights");
  sample_free(&s);
}

/* ---- orders ---- */

static void orders(void) {
  if (!test_case("pieces/column_order")) return;
  static const int32_t group_of[] = {1, 0, 2, 1, 0, 0, 1, 0, 1, 2};
  static const int32_t want[] = {1, 4, 5, 7, 0, 3, 6, 8, 2, 9};
  int32_t order[10], bad[10];
  CHECK_STATUS(lpgemm_column_order(group_of, 10, 4, order), LPGEMM_SUCCESS);
  CHECK(memcmp(order, want, sizeof want) == 0);
  CHECK_STATUS(lpgemm_column_order(NULL, 0, 4, NULL), LPGEMM_SUCCESS);
  memcpy(bad, group_of, sizeof bad);
  bad[0] = 0;
  REFUSED(lpgemm_column_order(bad, 10, 4, order), LPGEMM_INVALID_ARGUMENT, "5 columns into group 0");
  bad[0] = 3;
  REFUSED(lpgemm_column_order(bad, 10, 4, order), LPGEMM_INVALID_ARGUMENT, "group_of[0] is 3");
  bad[0] = -1;
  REFUSED(lpgemm_column_order(bad, 10, 4, order), LPGEMM_INVALID_ARGUMENT, "group_of[0] is -1");
  REFUSED(lpgemm_column_order(group_of, 10, 0, order), LPGEMM_INVALID_ARGUMENT, "group_k");
  REFUSED(lpgemm_column_order(group_of, -1, 4, order), LPGEMM_INVALID_SIZE, "k is");
  REFUSED(lpgemm_column_order(NULL, 10, 4, order), LPGEMM_NULL_POINTER, "group_of");
  REFUSED(lpgemm_column_order(group_of, 10, 4, NULL), LPGEMM_NULL_POINTER, "order");
}

static void bad_orders(void) {
  if (!test_case("pieces/bad_orders")) return;
  lpgemm_weight_desc_t desc = sample_desc(20, 64, LPGEMM_UINT(4), 32, LPGEMM_F16);
  desc.columns = LPGEMM_COLUMNS_ORDERED;
  sample s;
  sample_make(&s, &desc);
  int32_t order[64];
  const lpgemm_weight_source_t good = s.source;
  lpgemm_weights_t weights = NULL;
  const struct {
    int32_t entry;
    const char *word;
  } rows[] = {{-1, "[7] is -1"}, {64, "[7] is 64"}, {INT32_MIN, "[7]"}, {good.column_order[9], "twice"}};
  for (int i = 0; i < 4; i++) {
    memcpy(order, good.column_order, sizeof order);
    order[7] = rows[i].entry;
    s.source.column_order = order;
    REFUSED(lpgemm_pack_weights(handle, &desc, &s.source, NULL, 0, &weights), LPGEMM_INVALID_ARGUMENT, rows[i].word);
  }
  s.source = good;
  s.source.column_order_bytes--;
  REFUSED(lpgemm_pack_weights(handle, &desc, &s.source, NULL, 0, &weights), LPGEMM_BUFFER_TOO_SMALL, "column_order");
  s.source.column_order = NULL;
  REFUSED(lpgemm_pack_weights(handle, &desc, &s.source, NULL, 0, &weights), LPGEMM_NULL_POINTER, "column_order");
  s.source = good;
  desc.columns = LPGEMM_COLUMNS_PLAIN;
  REFUSED(lpgemm_pack_weights(handle, &desc, &s.source, NULL, 0, &weights), LPGEMM_INVALID_ARGUMENT, "column_order");
  sample_free(&s);
}

/* Rows in another order, and scales with gaps between rows or groups, give the bytes of a source without either. */
static void check_row_order(int64_t group_n, lpgemm_order_t major) {
  enum { N = 70, K = 96, GROUPS = 3, LD = 80 };
  lpgemm_weight_desc_t desc = sample_desc_zeros(N, K, LPGEMM_UINT(4), 32, LPGEMM_F16, LPGEMM_U8);
  desc.group_n = group_n;
  desc.row_scales = LPGEMM_F32;
  sample s;
  sample_make(&s, &desc);
  lpgemm_weights_t plain = sample_pack(handle, &s), other = NULL;
  const int64_t shared = group_n ? group_n : 1, lines = (N + shared - 1) / shared;
  int32_t to[N];
  for (int i = 0; i < N; i++) to[i] = i; /* rows change places within those that share scales, or all of them */
  for (int i = 0; i < N; i++) {
    const int end = group_n && (i / shared + 1) * shared < N ? (int)((i / shared + 1) * shared) : N;
    const int with = (int)test_between(i, end - 1), taken = to[with];
    to[with] = to[i];
    to[i] = taken;
  }
  uint8_t *codes = test_alloc(N * K);
  uint16_t *scales = test_alloc(LD * LD * 2);
  uint8_t *zeros = test_alloc(LD * LD);
  float *factors = test_alloc(N * 4);
  for (int i = 0; i < N; i++) {
    memcpy(codes + to[i] * K, s.codes + i * K, K);
    factors[to[i]] = ((float *)s.part[LPGEMM_PART_ROW_SCALES])[i];
    for (int j = 0; j < GROUPS; j++) {
      const int64_t from = i / shared * GROUPS + j, line = to[i] / shared;
      const int64_t at = major == LPGEMM_ROW_MAJOR ? line * LD + j : j * LD + line;
      scales[at] = ((uint16_t *)s.part[LPGEMM_PART_SCALES])[from];
      zeros[at] = ((uint8_t *)s.part[LPGEMM_PART_ZEROS])[from];
    }
  }
  lpgemm_weight_source_t source = {.size = sizeof source, .order = major, .codes = codes, .codes_bytes = N * K};
  const size_t numbers = (size_t)(major == LPGEMM_ROW_MAJOR ? (lines - 1) * LD + GROUPS : (GROUPS - 1) * LD + lines);
  source.scales = scales;
  source.scales_bytes = 2 * numbers;
  source.zeros = zeros;
  source.zeros_bytes = numbers;
  source.scales_ld = LD;
  source.row_scales = factors;
  source.row_scales_bytes = sizeof to;
  source.row_order = to;
  source.row_order_bytes = sizeof to;
  CHECK_STATUS(lpgemm_pack_weights(handle, &desc, &source, NULL, 0, &other), LPGEMM_SUCCESS);
  if (other) check_same_blob(plain, other);
  CHECK_STATUS(lpgemm_weights_destroy(other), LPGEMM_SUCCESS);
  source.zeros_bytes--;
  REFUSED(lpgemm_pack_weights(handle, &desc, &source, NULL, 0, &other), LPGEMM_BUFFER_TOO_SMALL, "zeros");
  source.zeros_bytes++;
  source.scales_ld = 2;
  REFUSED(lpgemm_pack_weights(handle, &desc, &source, NULL, 0, &other), LPGEMM_INVALID_SIZE, "scales_ld");
  source.scales_ld = major == LPGEMM_COLUMN_MAJOR ? 0 : LD;
  if (source.scales_ld == 0) {
    REFUSED(lpgemm_pack_weights(handle, &desc, &source, NULL, 0, &other), LPGEMM_INVALID_ARGUMENT, "scales_ld");
  }
  source.scales_ld = LD;
  to[3] = -1;
  REFUSED(lpgemm_pack_weights(handle, &desc, &source, NULL, 0, &other), LPGEMM_INVALID_ARGUMENT, "row_order[3]");
  to[3] = N;
  REFUSED(lpgemm_pack_weights(handle, &desc, &source, NULL, 0, &other),
          group_n ? LPGEMM_INVALID_ARGUMENT : LPGEMM_BUFFER_TOO_SMALL, group_n ? "row_order[3]" : "codes");
  CHECK_STATUS(lpgemm_weights_destroy(plain), LPGEMM_SUCCESS);
  test_free(codes);
  test_free(scales);
  test_free(zeros);
  test_free(factors);
  sample_free(&s);
}

static void row_orders(void) {
  for (int i = 0; i < 4; i++) {
    if (test_case("pieces/row_order/%d", i))
      check_row_order(i & 1 ? 32 : 0, i & 2 ? LPGEMM_COLUMN_MAJOR : LPGEMM_ROW_MAJOR);
  }
}

/* ---- old structs ---- */

/* What was compiled against 0.1.0: structs that end before the new fields. */
static void old_structs(void) {
  if (!test_case("pieces/old_structs")) return;
  lpgemm_weight_desc_t desc = sample_desc(20, 64, LPGEMM_UINT(4), 32, LPGEMM_F16);
  sample s;
  sample_make(&s, &desc);
  lpgemm_weights_t whole = sample_pack(handle, &s), weights = NULL;
  desc.size = offsetof(lpgemm_weight_desc_t, group_n);
  desc.group_n = desc.x_k = -7; /* not there */
  s.source.size = offsetof(lpgemm_weight_source_t, column_order);
  s.source.scales_ld = -7;
  CHECK_INT(desc.size, 152);
  CHECK_INT(s.source.size, 120);
  CHECK_STATUS(lpgemm_pack_weights(handle, &desc, &s.source, NULL, 0, &weights), LPGEMM_SUCCESS);
  if (weights) check_same_blob(whole, weights);
  desc.size--;
  REFUSED(lpgemm_pack_weights(handle, &desc, &s.source, NULL, 0, &weights), LPGEMM_INVALID_STRUCT, "desc");
  /* the description lay within lpgemm_weights_info_t: what followed it was 16 bytes earlier */
  enum { OLD_INFO = 200, NEW_INFO = sizeof(lpgemm_weights_info_t) };
  lpgemm_weights_info_t info = {.size = sizeof info};
  uint8_t old[NEW_INFO];
  const size_t size = OLD_INFO;
  memset(old, 0xCD, sizeof old);
  memcpy(old, &size, sizeof size);
  CHECK_STATUS(lpgemm_weights_info(whole, &info), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_info(whole, (lpgemm_weights_info_t *)(void *)old), LPGEMM_SUCCESS);
  const size_t described = offsetof(lpgemm_weights_info_t, desc), rest = described + sizeof info.desc;
  CHECK(memcmp(old + described + sizeof(size_t), (uint8_t *)&info + described + sizeof(size_t), 144) == 0);
  CHECK(memcmp(old + described + 152, (uint8_t *)&info + rest, OLD_INFO - 160) == 0);
  for (int i = OLD_INFO; i < NEW_INFO; i++) CHECK_INT(old[i], 0xCD);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(whole), LPGEMM_SUCCESS);
  sample_free(&s);
}

/* ---- slices ---- */

enum { M = 5 };

/* Y of a matrix for the columns [first, first + k) of X, in fp64; and sum |x||w| of each. */
typedef struct product {
  float *y;
  int64_t n;
} product;

static product multiply(lpgemm_weights_t weights, const float *x, int64_t ldx) {
  lpgemm_weights_info_t info = {.size = sizeof info};
  CHECK_STATUS(lpgemm_weights_info(weights, &info), LPGEMM_SUCCESS);
  product p = {test_alloc((size_t)(M * info.desc.n + 1) * 4), info.desc.n};
  lpgemm_run_args_t args = {.size = sizeof args, .weights = weights, .m = M, .x = x, .ldx = ldx, .y = p.y};
  args.x_type = args.y_type = LPGEMM_F32;
  args.kernel = "reference.any.any.1x1.cpu";
  CHECK_STATUS(lpgemm_run(handle, &args), LPGEMM_SUCCESS);
  return p;
}

static lpgemm_weights_t pack_part(const sample *s, const lpgemm_shard_t *shard, int64_t *first, int64_t *k) {
  lpgemm_weight_desc_t desc;
  lpgemm_weight_source_t source;
  lpgemm_weights_t weights = NULL;
  CHECK_STATUS(lpgemm_shard_desc(&s->desc, shard, &desc, first), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_shard_source(&s->desc, &s->source, shard, &source), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_pack_weights(handle, &desc, &source, NULL, 0, &weights), LPGEMM_SUCCESS);
  *k = shard->by == LPGEMM_SHARD_ROWS ? desc.n : desc.k;
  return weights;
}

/* Parts by rows have the outputs of the whole, bit for bit; parts by columns add up to them. */
static void check_ranks(const sample *s, lpgemm_shard_by_t by, int ranks, int64_t unit) {
  const lpgemm_weight_desc_t *d = &s->desc;
  const int64_t x_k = sample_x_k(d), n = d->n, size = by == LPGEMM_SHARD_ROWS ? n : d->k;
  float *x = test_alloc((size_t)(M * x_k) * 4);
  for (int64_t i = 0; i < M * x_k; i++) x[i] = (float)test_uniform(-1, 1);
  lpgemm_weights_t weights = sample_pack(handle, s);
  product whole = multiply(weights, x, 0);
  double *sum = test_alloc((size_t)(M * n) * sizeof *sum);
  memset(sum, 0, (size_t)(M * n) * sizeof *sum);
  int64_t next = 0;
  for (int rank = 0; rank < ranks; rank++) {
    const lpgemm_shard_t shard = {.size = sizeof shard, .by = by, .rank = rank, .ranks = ranks, .unit = unit};
    int64_t first = 0, count = 0;
    lpgemm_weights_t part = pack_part(s, &shard, &first, &count);
    CHECK_INT(first, next);
    next += count;
    if (!part) continue;
    const int is_slice = by == LPGEMM_SHARD_COLUMNS && !d->columns; /* an order names columns of the whole X */
    product p = multiply(part, is_slice ? x + first : x, x_k);
    for (int64_t i = 0; i < M * p.n; i++) {
      const int64_t at = i / p.n * n + i % p.n + (by == LPGEMM_SHARD_ROWS ? first : 0);
      sum[at] += (double)p.y[i];
    }
    test_free(p.y);
    CHECK_STATUS(lpgemm_weights_destroy(part), LPGEMM_SUCCESS);
  }
  CHECK_INT(next, size);
  double *w = test_alloc((size_t)(d->k + 1) * sizeof *w);
  for (int64_t j = 0; j < n; j++) {
    ref_weight_row(d, &s->source, j, w);
    for (int64_t i = 0; i < M; i++) {
      double magnitude = 0;
      for (int64_t c = 0; c < d->k; c++) magnitude += fabs((double)x[i * x_k + sample_column(s, c)] * w[c]);
      /* each rank's output and the whole's are rounded to fp32 once */
      const double bound = by == LPGEMM_SHARD_ROWS ? 0 : (double)(ranks + 1) * 0x1p-24 * magnitude;
      const double got = sum[i * n + j], want = (double)whole.y[i * n + j];
      if (fabs(got - want) <= bound) continue;
      test_fail(__FILE__, __LINE__, "%d ranks: y[%lld][%lld] is %g, not %g", ranks, (long long)i, (long long)j, got,
                want);
    }
  }
  test_free(w);
  test_free(sum);
  test_free(whole.y);
  test_free(x);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
}

/* On the CPU, whose reference kernel rounds once. examples/parallel does it on GPUs, with exact weights. */
static void slices(void) {
  static const int ranks[] = {1, 2, 4, 8, 40};
  for (int i = 0; i < 5; i++) {
    if (test_backend() != LPGEMM_BACKEND_CPU || !test_case("pieces/ranks/%d", ranks[i])) continue;
    lpgemm_weight_desc_t descs[] = {sample_desc_zeros(150, 520, LPGEMM_UINT(4), 32, LPGEMM_F16, LPGEMM_BF16),
                                    sample_desc_q4k(100, 1024), sample_desc(300, 640, LPGEMM_INT(8), 128, LPGEMM_F32),
                                    sample_desc(64, 256, LPGEMM_UINT(3), 0, LPGEMM_F32)};
    descs[1].row_scales = LPGEMM_F32;
    descs[2].group_n = 128;
    for (int j = 0; j < 8; j++) {
      lpgemm_weight_desc_t desc = descs[j / 2];
      if (j % 2) desc.columns = LPGEMM_COLUMNS_ORDERED;
      sample s;
      sample_make(&s, &desc);
      for (int how = 0; how < 4; how++) {
        const int in_bits = how & 1;
        sample_lay_out(&s, in_bits ? LPGEMM_CODES_BITS : LPGEMM_CODES_BYTES, in_bits ? desc.k + 8 : 0,
                       how & 2 ? LPGEMM_COLUMN_MAJOR : LPGEMM_ROW_MAJOR);
        check_ranks(&s, LPGEMM_SHARD_ROWS, ranks[i], in_bits ? 8 : how);
        check_ranks(&s, LPGEMM_SHARD_COLUMNS, ranks[i], in_bits ? 8 : how);
      }
      sample_free(&s);
    }
  }
}

/* Where the cuts are, and what is refused. */
static void cuts(void) {
  if (!test_case("pieces/cuts")) return;
  lpgemm_weight_desc_t desc = sample_desc(100, 300, LPGEMM_UINT(3), 32, LPGEMM_F16), part;
  lpgemm_shard_t shard = {.size = sizeof shard, .by = LPGEMM_SHARD_COLUMNS, .rank = 1, .ranks = 3};
  int64_t first = 0;
  CHECK_STATUS(lpgemm_shard_desc(&desc, &shard, &part, &first), LPGEMM_SUCCESS);
  CHECK_INT(first, 128); /* 10 groups: 4, 3, 3 */
  CHECK_INT(part.k, 96);
  shard.rank = 2;
  CHECK_STATUS(lpgemm_shard_desc(&desc, &shard, &part, NULL), LPGEMM_SUCCESS);
  CHECK_INT(part.k, 76);
  shard.unit = 48; /* with groups of 32: 96 */
  CHECK_STATUS(lpgemm_shard_desc(&desc, &shard, &part, &first), LPGEMM_SUCCESS);
  CHECK_INT(first, 288);
  CHECK_INT(part.k, 12);
  desc.columns = LPGEMM_COLUMNS_ORDERED;
  CHECK_STATUS(lpgemm_shard_desc(&desc, &shard, &part, &first), LPGEMM_SUCCESS);
  CHECK_INT(part.x_k, 300);
  desc.columns = LPGEMM_COLUMNS_PLAIN;
  shard = (lpgemm_shard_t){.size = sizeof shard, .rank = 2, .ranks = 4};
  CHECK_STATUS(lpgemm_shard_desc(&desc, &shard, &part, &first), LPGEMM_SUCCESS);
  CHECK_INT(first, 50);
  CHECK_INT(part.n, 25);
  desc.group_n = 48;
  CHECK_STATUS(lpgemm_shard_desc(&desc, &shard, &part, &first), LPGEMM_SUCCESS);
  CHECK_INT(first, 96);
  CHECK_INT(part.n, 4);
  desc.group_n = 0;
#define WRONG(change, status, word)                                         \
  do {                                                                      \
    lpgemm_shard_t good = shard;                                            \
    change;                                                                 \
    REFUSED(lpgemm_shard_desc(&desc, &shard, &part, &first), status, word); \
    shard = good;                                                           \
  } while (0)
  WRONG(shard.size = 8, LPGEMM_INVALID_STRUCT, "shard");
  WRONG(shard.reserved[3] = 1, LPGEMM_INVALID_STRUCT, "reserved");
  WRONG(shard.by = (lpgemm_shard_by_t)2, LPGEMM_INVALID_ARGUMENT, "by");
  WRONG(shard.ranks = 0, LPGEMM_INVALID_ARGUMENT, "ranks");
  WRONG(shard.rank = 4, LPGEMM_INVALID_ARGUMENT, "rank");
  WRONG(shard.rank = -1, LPGEMM_INVALID_ARGUMENT, "rank");
  WRONG(shard.unit = -1, LPGEMM_INVALID_SIZE, "unit");
#undef WRONG
  REFUSED(lpgemm_shard_desc(&desc, NULL, &part, &first), LPGEMM_NULL_POINTER, "shard");
  REFUSED(lpgemm_shard_desc(NULL, &shard, &part, &first), LPGEMM_NULL_POINTER, "desc");
  REFUSED(lpgemm_shard_desc(&desc, &shard, NULL, &first), LPGEMM_NULL_POINTER, "part");
  desc.k = 301; /* row 25 of a bit stream begins at bit 25 * 301 * 3 */
  desc.group_k = 0;
  sample s;
  sample_make(&s, &desc);
  sample_lay_out(&s, LPGEMM_CODES_BITS, 0, LPGEMM_ROW_MAJOR);
  lpgemm_weight_source_t source;
  shard.rank = 1;
  REFUSED(lpgemm_shard_source(&desc, &s.source, &shard, &source), LPGEMM_NOT_SUPPORTED, "row 25");
  shard.unit = 8;
  CHECK_STATUS(lpgemm_shard_source(&desc, &s.source, &shard, &source), LPGEMM_SUCCESS);
  REFUSED(lpgemm_shard_source(&desc, NULL, &shard, &source), LPGEMM_NULL_POINTER, "source");
  REFUSED(lpgemm_shard_source(&desc, &s.source, &shard, NULL), LPGEMM_NULL_POINTER, "part");
  sample_free(&s);
}

/* ---- X in the order of columns ---- */

/* Without a workspace the CPU takes some rows after the others, with the same bits. */
static void without_workspace(void) {
  if (test_backend() != LPGEMM_BACKEND_CPU || !test_case("pieces/without_workspace")) return;
  problem_spec s = {.desc = sample_desc(40, 7000, LPGEMM_UINT(4), 32, LPGEMM_F16)};
  s.desc.columns = LPGEMM_COLUMNS_ORDERED;
  s.desc.row_scales = LPGEMM_F32;
  s.m = 200; /* 2 MiB hold 74 rows */
  s.x_type = s.y_type = LPGEMM_F32;
  s.alpha = 1;
  s.beta = 0.5f;
  s.in_place = 1;
  problem p;
  if (problem_make(&p, handle, &s)) {
    size_t needed = 0;
    CHECK_STATUS(lpgemm_workspace_size(handle, p.weights, p.args.m, &p.args, &needed), LPGEMM_SUCCESS);
    CHECK(needed >= (size_t)(200 * 7000 * 4));
    problem_expect(&p);
    CHECK_STATUS(problem_run(&p, handle, NULL), LPGEMM_SUCCESS);
    problem_check(&p, NULL);
    void *with = test_alloc(problem_y_bytes(&p));
    memcpy(with, p.y, problem_y_bytes(&p));
    memcpy(p.y, p.c, problem_y_bytes(&p));
    lpgemm_run_args_t args = p.args;
    args.c = args.y;
    CHECK_STATUS(lpgemm_run(handle, &args), LPGEMM_SUCCESS);
    CHECK(memcmp(with, p.y, problem_y_bytes(&p)) == 0);
    test_free(with);
    args.quantize_x = LPGEMM_I8; /* that needs one in any case */
    REFUSED(lpgemm_run(handle, &args), LPGEMM_WORKSPACE_TOO_SMALL, "workspace");
    args.quantize_x = 0;
    const float zero = 0;
    args.alpha = &zero; /* X is not read */
    args.x = &zero;
    CHECK_STATUS(lpgemm_run(handle, &args), LPGEMM_SUCCESS);
  }
  problem_free(&p);
  s.desc = sample_desc(1, 600000, LPGEMM_UINT(1), 0, 0); /* no room for a row of fp32 */
  s.desc.columns = LPGEMM_COLUMNS_ORDERED;
  s.m = 1;
  if (problem_make(&p, handle, &s)) {
    REFUSED(lpgemm_run(handle, &p.args), LPGEMM_WORKSPACE_TOO_SMALL, "order");
    problem_expect(&p);
    CHECK_STATUS(problem_run(&p, handle, NULL), LPGEMM_SUCCESS);
    problem_check(&p, NULL);
  }
  problem_free(&p);
}

/* Few rows, whose columns gemv gathers itself where they fit shared memory, and a launch in front of it where not: X of
 * more columns than weights, rows that are not aligned, an end of K within a block, and no row or some of them. */
static void few_rows(void) {
  static const int rows[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17};
  static const lpgemm_dtype_t x_types[3] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_I8};
  for (int m = 0; m < (int)(sizeof rows / sizeof rows[0]); m++) {
    if (!test_case("pieces/few_rows/%d", rows[m])) continue;
    const lpgemm_weight_desc_t descs[4] = {
        sample_desc_zeros(100, 300, LPGEMM_UINT(4), 32, LPGEMM_F16, LPGEMM_U8),
        sample_desc(40, 4100, LPGEMM_UINT(3), 128, LPGEMM_F16),
        sample_desc_zeros(20, 9000, LPGEMM_UINT(4), 128, LPGEMM_F16, LPGEMM_U8),
        sample_desc(3, 60000, LPGEMM_UINT(8), 0, LPGEMM_F16),
    };
    for (int i = 0; i < 4 * 3; i++) {
      problem_spec s = {.desc = descs[i / 3], .m = rows[m], .alpha = 1};
      s.desc.columns = LPGEMM_COLUMNS_ORDERED;
      s.desc.x_k = s.desc.k + (m % 3 == 0 ? 0 : 24 + m);
      s.x_type = x_types[i % 3];
      s.y_type = s.x_type == LPGEMM_I8 ? LPGEMM_F16 : s.x_type;
      s.misaligned = (i + m) % 4 == 3;
      s.pad_x = m % 2 ? 8 : 0;
      problem p;
      if (problem_make(&p, handle, &s)) {
        const char *names[PROBLEM_KERNELS];
        const int count = problem_kernels(names);
        problem_expect(&p);
        CHECK_STATUS(problem_run(&p, handle, NULL), LPGEMM_SUCCESS);
        problem_check(&p, NULL);
        for (int j = 0; j < count; j++) {
          if (strncmp(names[j], "gemv", 4) != 0) continue;
          const lpgemm_status_t status = problem_run(&p, handle, names[j]);
          if (status == LPGEMM_NOT_SUPPORTED) continue;
          CHECK_STATUS(status, LPGEMM_SUCCESS);
          problem_check(&p, names[j]);
          problem_check_again(&p, handle, names[j]);
        }
      }
      problem_free(&p);
    }
  }
}

/* Scales that fp32 holds only together with those of rows. */
static void far_scales(void) {
  /* On the GPU scales times codes must fit fp32 before the rows' factors (docs/numerics.md): 255 times 2^126 does not.
   */
  for (int i = 0; i < (test_backend() == LPGEMM_BACKEND_CPU ? 2 : 1); i++) {
    if (!test_case("pieces/far_scales/%d", i)) continue;
    problem_spec s = {.desc = sample_desc(33, 300, LPGEMM_UINT(8), 32, LPGEMM_F32), .m = 20, .alpha = 1};
    s.desc.row_scales = LPGEMM_F32;
    s.x_type = s.y_type = LPGEMM_F32;
    problem p;
    if (problem_make(&p, handle, &s)) {
      const float scale = i ? 0x1p126f : 0x1p-140f, factor = i ? 0x1p-130f : 0x1p120f;
      for (int64_t j = 0; j < 33 * 10; j++)
        ((float *)(uintptr_t)p.source.scales)[j] = scale * (1.0f + (float)(j % 3) / 2);
      for (int64_t j = 0; j < 33; j++) ((float *)(uintptr_t)p.source.row_scales)[j] = factor * (float)(1 + j % 5);
      problem_repack(&p, handle);
      problem_expect(&p);
      const char *names[PROBLEM_KERNELS];
      const int count = problem_kernels(names);
      for (int j = 0; j < count; j++) {
        const lpgemm_status_t status = problem_run(&p, handle, names[j]);
        if (status == LPGEMM_NOT_SUPPORTED) continue;
        CHECK_STATUS(status, LPGEMM_SUCCESS);
        problem_check(&p, names[j]);
      }
    }
    problem_free(&p);
  }
}

void suite_pieces(void) {
  handle = problem_handle(2);
  orders();
  pieces();
  refusals();
  bad_orders();
  row_orders();
  old_structs();
  cuts();
  slices();
  without_workspace();
  few_rows();
  far_scales();
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
