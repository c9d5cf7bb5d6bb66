/* Stacks and pairs as packed things: what packing piece by piece makes, files of them, unpacking, what is refused. */
#include <math.h>

#include "checkpoints.h"
#include "ref/format_reader.h"
#include "ref/gemm_ref.h"
#include "stack.h"
#include "test.h"

static lpgemm_handle_t handle;

#define REFUSED(call, status, word)                                                          \
  do {                                                                                       \
    CHECK_STATUS((call), (status));                                                          \
    if (!strstr(lpgemm_last_error(), (word)))                                                \
      test_fail(__FILE__, __LINE__, "\"%s\" does not name %s", lpgemm_last_error(), (word)); \
  } while (0)

/* ---- pairs: what a blob holds is what its source has ---- */

/* Every code and number of the blob, by the reader that knows FORMAT.md alone. */
static void check_blob(const sample *s, const uint8_t *blob, size_t size) {
  const lpgemm_weight_desc_t *d = &s->desc;
  format_reader r;
  const char *wrong = format_open(&r, blob, size);
  if (wrong) test_fail(__FILE__, __LINE__, "the reader says: %s", wrong);
  if (wrong) return;
  const int64_t shared = d->group_n > 1 ? d->group_n : 1;
  for (int64_t n = 0; n < d->n; n++) {
    const int64_t row = format_row(&r, n);
    for (int64_t k = 0; k < d->k; k++) {
      CHECK_INT(format_code(&r, row, k), s->codes[n * sample_x_k(d) + sample_column(s, k)]);
    }
    for (int part = LPGEMM_PART_SCALES; part <= LPGEMM_PART_SUPER_ZEROS; part++) {
      const int64_t columns = sample_part_columns(d, (lpgemm_part_t)part);
      const int64_t bytes = (lpgemm_dtype_bits(sample_part_type(d, (lpgemm_part_t)part)) + 7) / 8;
      for (int64_t j = 0; j < columns; j++) {
        uint32_t number = 0;
        memcpy(&number, (const uint8_t *)s->part[part] + (n / shared * columns + j) * bytes, (size_t)bytes);
        CHECK_INT(format_bits(&r, part, row, j), number);
      }
    }
    if (d->row_scales) CHECK(format_row_scale(&r, row) == (double)((float *)s->part[LPGEMM_PART_ROW_SCALES])[n]);
  }
}

static lpgemm_weight_desc_t with_rows(lpgemm_weight_desc_t desc, lpgemm_rows_t rows, int experts) {
  desc.rows = rows;
  desc.experts = experts;
  return desc;
}

/* A description of every sort. */
static lpgemm_weight_desc_t desc_of(int i, int64_t n) {
  lpgemm_weight_desc_t desc;
  switch (i) {
    case 0: return sample_desc_zeros(n, 200, LPGEMM_UINT(4), 32, LPGEMM_F16, LPGEMM_U8);
    case 1: desc = sample_desc(n, 90, LPGEMM_INT(3), 0, LPGEMM_BF16); break;
    case 2: desc = sample_desc_q4k(n, 512); break;
    case 3:
      desc = sample_desc_q4k(n, 512);
      desc.scale_type = LPGEMM_UINT(4); /* two rows to a byte */
      break;
    case 4:
      desc = sample_desc(n, 70, LPGEMM_E4M3, 0, 0);
      desc.row_scales = LPGEMM_F32;
      break;
    case 5:
      desc = sample_desc(n, 64, LPGEMM_UINT(7), 32, LPGEMM_E8M0);
      desc.columns = LPGEMM_COLUMNS_ORDERED;
      break;
    default:
      desc = sample_desc(n, 300, LPGEMM_E4M3, 128, LPGEMM_F32);
      desc.group_n = 32;
      break;
  }
  return desc;
}
enum { DESCS = 7 };

static void pairs(void) {
  static const int64_t outputs[] = {1, 7, 8, 9, 40, 64, 133};
  for (int i = 0; i < DESCS; i++) {
    for (int j = 0; j < 7; j++) {
      if (!test_case("stacks/pairs/%d/%d", i, (int)outputs[j])) continue;
      lpgemm_weight_desc_t desc = with_rows(desc_of(i, 2 * outputs[j]), LPGEMM_ROWS_PAIRED, 0);
      if (desc.group_n && outputs[j] % desc.group_n) desc.group_n = 0;
      stack s;
      size_t size = 0, other_size = 0;
      stack_make(&s, handle, &desc, 1, 0); /* in pieces */
      lpgemm_weights_t whole = sample_pack(handle, &s.expert[0]);
      uint8_t *blob = sample_blob(handle, whole, &size), *other = sample_blob(handle, s.weights, &other_size);
      CHECK(size == other_size && memcmp(blob, other, size) == 0);
      CHECK_STATUS(lpgemm_validate(blob, size), LPGEMM_SUCCESS);
      check_blob(&s.expert[0], blob, size);
      /* rows and parts come back in the order of the source */
      const sample *one = &s.expert[0];
      uint8_t *codes = test_alloc((size_t)(desc.n * desc.k));
      CHECK_STATUS(lpgemm_unpack_weights(handle, whole, LPGEMM_U8, codes, 0), LPGEMM_SUCCESS);
      test_wait();
      CHECK(memcmp(codes, one->codes, (size_t)(desc.n * desc.k)) == 0);
      for (int part = LPGEMM_PART_SCALES; part <= LPGEMM_PART_ROW_SCALES; part++) {
        if (!one->part[part]) continue;
        uint8_t *numbers = test_alloc(one->part_bytes[part]);
        CHECK_STATUS(lpgemm_unpack_part(handle, whole, (lpgemm_part_t)part, numbers, one->part_bytes[part]),
                     LPGEMM_SUCCESS);
        CHECK(memcmp(numbers, one->part[part], one->part_bytes[part]) == 0);
        test_free(numbers);
      }
      test_free(codes);
      test_free(blob);
      test_free(other);
      CHECK_STATUS(lpgemm_weights_destroy(whole), LPGEMM_SUCCESS);
      stack_free(&s);
    }
  }
}

/* ---- stacks: the blobs of their experts, one after the other ---- */

static void stacks(void) {
  for (int i = 0; i < DESCS; i++) {
    for (int rows = 0; rows < 2; rows++) {
      if (!test_case("stacks/blobs/%d/%s", i, rows ? "paired" : "plain")) continue;
      lpgemm_weight_desc_t desc = with_rows(desc_of(i, 64), (lpgemm_rows_t)rows, 5);
      stack s;
      stack_make(&s, handle, &desc, 1, 1);
      size_t size = 0, one_size = 0;
      lpgemm_weights_info_t info = {.size = sizeof info}, loaded_info = {.size = sizeof info};
      uint8_t *all = sample_blob(handle, s.weights, &size);
      CHECK_STATUS(lpgemm_weights_info(s.weights, &info), LPGEMM_SUCCESS);
      CHECK_INT(info.desc.experts, 5);
      CHECK_INT(info.packed_bytes, size);
      uint64_t hash = 0;
      size_t packed_size = 0;
      CHECK_STATUS(lpgemm_packed_size(&desc, &packed_size), LPGEMM_SUCCESS);
      CHECK_INT(packed_size, size);
      for (int e = 0; e < 5; e++) {
        lpgemm_weights_t one = sample_pack(handle, &s.expert[e]);
        lpgemm_weights_info_t one_info = {.size = sizeof info};
        uint8_t *blob = sample_blob(handle, one, &one_size);
        CHECK_STATUS(lpgemm_weights_info(one, &one_info), LPGEMM_SUCCESS);
        CHECK(one_size * 5 == size && memcmp(all + (size_t)e * one_size, blob, one_size) == 0);
        CHECK_STATUS(lpgemm_validate(blob, one_size), LPGEMM_SUCCESS); /* cut out */
        uint64_t h = one_info.payload_hash ^ ((uint64_t)e + 1) * UINT64_C(0x9e3779b97f4a7c15);
        h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
        h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
        hash += h ^ h >> 32;
        test_free(blob);
        CHECK_STATUS(lpgemm_weights_destroy(one), LPGEMM_SUCCESS);
      }
      CHECK(info.payload_hash == hash);
      CHECK_STATUS(lpgemm_validate(all, size), LPGEMM_SUCCESS);
      for (uint32_t flags = 0; flags < 4; flags++) {
        lpgemm_weights_t loaded = NULL;
        CHECK_STATUS(lpgemm_deserialize(handle, all, size, flags, &loaded), LPGEMM_SUCCESS);
        if (!loaded) continue;
        CHECK_STATUS(lpgemm_weights_info(loaded, &loaded_info), LPGEMM_SUCCESS);
        CHECK_INT(loaded_info.desc.experts, 5);
        CHECK(loaded_info.payload_hash == hash);
        size_t again_size = 0;
        uint8_t *again = sample_blob(handle, loaded, &again_size);
        CHECK(again_size == size && memcmp(again, all, size) == 0);
        test_free(again);
        CHECK_STATUS(lpgemm_weights_destroy(loaded), LPGEMM_SUCCESS);
      }
      /* unpacked: expert after expert, values with their own scales */
      const size_t numbers = (size_t)(5 * desc.n * desc.k);
      uint8_t *codes = test_alloc(numbers);
      float *values = test_alloc(4 * numbers);
      CHECK_STATUS(lpgemm_unpack_weights(handle, s.weights, LPGEMM_U8, codes, 0), LPGEMM_SUCCESS);
      CHECK_STATUS(lpgemm_unpack_weights(handle, s.weights, LPGEMM_F32, values, 0), LPGEMM_SUCCESS);
      test_wait();
      double *row = test_alloc((size_t)desc.k * sizeof *row);
      for (int e = 0; e < 5; e++) {
        const sample *one = &s.expert[e];
        CHECK(memcmp(codes + e * desc.n * desc.k, one->codes, (size_t)(desc.n * desc.k)) == 0);
        for (int64_t n = 0; n < desc.n; n += 13) {
          ref_weight_row(&one->desc, &one->source, n, row);
          for (int64_t k = 0; k < desc.k; k++) {
            const double got = (double)values[(e * desc.n + n) * desc.k + sample_column(one, k)];
            CHECK(fabs(got - row[k]) <= 0x1p-24 * fabs(row[k]));
          }
        }
      }
      test_free(row);
      test_free(codes);
      test_free(values);
      test_free(all);
      stack_free(&s);
    }
  }
}

/* A container holds a stack as it holds a matrix. */
static void container(void) {
  if (!test_case("stacks/container")) return;
  folder files = folder_make();
  const char *path = folder_path(&files, "stack.lpg");
  lpgemm_weight_desc_t desc = with_rows(desc_of(0, 64), LPGEMM_ROWS_PAIRED, 4);
  stack s;
  stack_make(&s, handle, &desc, 1, 1);
  size_t size = 0;
  uint8_t *all = sample_blob(handle, s.weights, &size);
  lpgemm_container_t c = NULL;
  CHECK_STATUS(lpgemm_container_create(path, 1, &c), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_add_weights(c, "experts", handle, s.weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_finish(c), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_destroy(c), LPGEMM_SUCCESS);
  lpgemm_file_t file = NULL;
  lpgemm_tensor_t tensor;
  CHECK_STATUS(lpgemm_file_open(path, &file), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_find(file, "experts", &tensor), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_check(file, 0), LPGEMM_SUCCESS);
  CHECK(tensor.type == LPGEMM_BLOB && tensor.bytes == size && memcmp(tensor.data, all, size) == 0);
  lpgemm_weights_t loaded = NULL;
  lpgemm_weights_info_t info = {.size = sizeof info};
  CHECK_STATUS(lpgemm_deserialize(handle, tensor.data, tensor.bytes, 0, &loaded), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_info(loaded, &info), LPGEMM_SUCCESS);
  CHECK_INT(info.desc.experts, 4);
  CHECK_STATUS(lpgemm_weights_destroy(loaded), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
  folder_remove(&files);
  test_free(all);
  stack_free(&s);
}

/* ---- hostile bytes ---- */

static uint64_t get(const uint8_t *at, int bytes) {
  uint64_t v = 0;
  for (int i = bytes - 1; i >= 0; i--) v = v << 8 | at[i];
  return v;
}

static void seal(uint8_t *blob) {
  const uint64_t hash = format_hash(blob, 504);
  memcpy(blob + 504, &hash, 8);
}

static void hostile(void) {
  if (!test_case("stacks/hostile")) return;
  lpgemm_weight_desc_t desc = with_rows(desc_of(0, 32), LPGEMM_ROWS_PAIRED, 3);
  stack s;
  stack_make(&s, handle, &desc, 1, 1);
  size_t size = 0;
  uint8_t *all = sample_blob(handle, s.weights, &size);
  uint8_t *copy = test_alloc(size);
  const size_t one = size / 3;
  CHECK_INT(get(all + 24, 8), one);
  CHECK_INT(get(all + 20, 4), 1);
  CHECK_INT(get(all + 12, 4), 2);
  for (size_t cut = 0; cut < size; cut += 97) { /* all but whole experts */
    if (cut == 0 || cut % one) CHECK(lpgemm_validate(all, cut) != LPGEMM_SUCCESS);
  }
  CHECK_STATUS(lpgemm_validate(all, one), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_validate(all, 2 * one), LPGEMM_SUCCESS);
  /* any byte of any header, sealed again: only a global scale and a scale span may differ, and the span must be right
   */
  for (int e = 0; e < 3; e++) {
    for (size_t at = 0; at < 504; at++) {
      memcpy(copy, all, size);
      copy[(size_t)e * one + at] ^= 0x40;
      seal(copy + (size_t)e * one);
      const int is_scale = at >= 92 && at < 95; /* byte 95 makes it infinite */
      const lpgemm_status_t status = lpgemm_validate(copy, size);
      if ((status == LPGEMM_SUCCESS) != is_scale) {
        test_fail(__FILE__, __LINE__, "expert %d, byte %d: %s", e, (int)at, lpgemm_status_string(status));
      }
    }
  }
  /* a code of padding, a number of padding, and rows that a reader must not take for real */
  memcpy(copy, all, size);
  copy[one + 512 + 3] ^= 1;
  CHECK_STATUS(lpgemm_validate(copy, size), LPGEMM_CORRUPT_DATA);
  memcpy(copy, all, size); /* experts exchanged are a legal stack, with another hash */
  memcpy(copy, all + one, one);
  memcpy(copy + one, all, one);
  CHECK_STATUS(lpgemm_validate(copy, size), LPGEMM_SUCCESS);
  lpgemm_weights_t loaded = NULL;
  CHECK_STATUS(lpgemm_deserialize(handle, all, size - one / 2, 0, &loaded), LPGEMM_CORRUPT_DATA);
  CHECK(loaded == NULL);
  test_free(all);
  test_free(copy);
  stack_free(&s);
}

/* ---- refusals ---- */

static void refusals(void) {
  if (!test_case("stacks/refusals")) return;
  size_t bytes = 0;
  lpgemm_weights_t w = NULL, one = NULL;
  lpgemm_weight_desc_t desc = desc_of(0, 48);
  desc.experts = -1;
  REFUSED(lpgemm_packed_size(&desc, &bytes), LPGEMM_INVALID_ARGUMENT, "desc.experts");
  desc.experts = 4097;
  REFUSED(lpgemm_packed_size(&desc, &bytes), LPGEMM_INVALID_ARGUMENT, "desc.experts");
  desc.experts = INT32_MIN;
  REFUSED(lpgemm_packed_size(&desc, &bytes), LPGEMM_INVALID_ARGUMENT, "desc.experts");
  desc.experts = 4096;
  CHECK_STATUS(lpgemm_packed_size(&desc, &bytes), LPGEMM_SUCCESS);
  desc.n = desc.k = INT64_C(1) << 22;
  REFUSED(lpgemm_packed_size(&desc, &bytes), LPGEMM_SIZE_OVERFLOW, "experts");
  desc = desc_of(0, 48);
  desc.rows = (lpgemm_rows_t)2;
  REFUSED(lpgemm_packed_size(&desc, &bytes), LPGEMM_INVALID_ARGUMENT, "desc.rows");
  desc = with_rows(desc_of(0, 47), LPGEMM_ROWS_PAIRED, 0);
  REFUSED(lpgemm_packed_size(&desc, &bytes), LPGEMM_INVALID_SIZE, "even");
  desc = with_rows(desc_of(6, 96), LPGEMM_ROWS_PAIRED, 0); /* halves of 48, blocks of 32 */
  REFUSED(lpgemm_packed_size(&desc, &bytes), LPGEMM_INVALID_ARGUMENT, "group_n");

  desc = with_rows(desc_of(0, 48), LPGEMM_ROWS_PAIRED, 3);
  lpgemm_weight_desc_t single = desc;
  single.experts = 1;
  sample s;
  sample_make(&s, &single);
  REFUSED(lpgemm_pack_weights(handle, &desc, &s.source, NULL, 0, &w), LPGEMM_INVALID_ARGUMENT, "lpgemm_weights_create");
  float zero[48 * 200] = {0};
  lpgemm_weight_desc_t plain = with_rows(sample_desc(48, 200, LPGEMM_UINT(4), 32, LPGEMM_F16), LPGEMM_ROWS_PLAIN, 2);
  REFUSED(lpgemm_quantize_weights(handle, &plain, LPGEMM_QUANTIZE_ABSMAX, zero, LPGEMM_F32, 0, NULL, 0, &w),
          LPGEMM_NOT_SUPPORTED, "experts");
  plain = with_rows(plain, LPGEMM_ROWS_PAIRED, 0);
  REFUSED(lpgemm_quantize_weights(handle, &plain, LPGEMM_QUANTIZE_ABSMAX, zero, LPGEMM_F32, 0, NULL, 0, &w),
          LPGEMM_NOT_SUPPORTED, "rows");

  CHECK_STATUS(lpgemm_weights_create(handle, &desc, NULL, 0, &w), LPGEMM_SUCCESS);
  lpgemm_weight_source_t piece = stack_rows(&s, 0, 8);
  REFUSED(lpgemm_pack_rows(handle, w, 3, 0, 8, &piece), LPGEMM_INVALID_ARGUMENT, "expert is 3");
  REFUSED(lpgemm_pack_rows(handle, w, -1, 0, 8, &piece), LPGEMM_INVALID_ARGUMENT, "expert is -1");
  REFUSED(lpgemm_pack_rows(handle, w, INT64_MAX, 0, 8, &piece), LPGEMM_INVALID_ARGUMENT, "expert");
  REFUSED(lpgemm_pack_rows(handle, w, 0, 4, 4, &piece), LPGEMM_INVALID_ARGUMENT, "first_row");
  REFUSED(lpgemm_pack_rows(handle, w, 0, 0, 4, &piece), LPGEMM_INVALID_ARGUMENT, "rows is 4");
  REFUSED(lpgemm_pack_rows(handle, w, 0, 28, 8, &piece), LPGEMM_INVALID_ARGUMENT, "24 and 32");
  CHECK_STATUS(lpgemm_pack_rows(handle, w, 0, 0, 8, &piece), LPGEMM_SUCCESS);
  REFUSED(lpgemm_pack_rows(handle, w, 0, 0, 8, &piece), LPGEMM_INVALID_ARGUMENT, "row 0 was packed before");
  piece = stack_rows(&s, 24, 24);
  CHECK_STATUS(lpgemm_pack_rows(handle, w, 0, 24, 24, &piece), LPGEMM_SUCCESS);
  REFUSED(lpgemm_pack_rows(handle, w, 0, 40, 8, &piece), LPGEMM_INVALID_ARGUMENT, "row 40 was packed before");
  REFUSED(lpgemm_weights_finish(handle, w), LPGEMM_INVALID_ARGUMENT, "rows 8 to 23 of expert 0");
  piece = stack_rows(&s, 8, 16);
  CHECK_STATUS(lpgemm_pack_rows(handle, w, 0, 8, 16, &piece), LPGEMM_SUCCESS);
  REFUSED(lpgemm_weights_finish(handle, w), LPGEMM_INVALID_ARGUMENT, "rows 0 to 47 of expert 1");
  /* blobs in the place of an expert */
  size_t size = 0;
  one = sample_pack(handle, &s);
  uint8_t *blob = sample_blob(handle, one, &size);
  REFUSED(lpgemm_stack_expert(handle, w, 0, blob, size, 0), LPGEMM_INVALID_ARGUMENT, "expert 0");
  REFUSED(lpgemm_stack_expert(handle, w, 3, blob, size, 0), LPGEMM_INVALID_ARGUMENT, "expert is 3");
  REFUSED(lpgemm_stack_expert(handle, w, 1, NULL, size, 0), LPGEMM_NULL_POINTER, "bytes");
  REFUSED(lpgemm_stack_expert(handle, w, 1, blob, size, LPGEMM_LOAD_VIEW), LPGEMM_INVALID_ARGUMENT, "flags");
  REFUSED(lpgemm_stack_expert(handle, w, 1, blob, size - 256, 0), LPGEMM_CORRUPT_DATA, "bytes");
  CHECK_STATUS(lpgemm_stack_expert(handle, w, 1, blob, size, 0), LPGEMM_SUCCESS);
  REFUSED(lpgemm_stack_expert(handle, w, 1, blob, size, 0), LPGEMM_INVALID_ARGUMENT, "expert 1");
  piece = stack_rows(&s, 0, 8);
  REFUSED(lpgemm_pack_rows(handle, w, 1, 0, 8, &piece), LPGEMM_INVALID_ARGUMENT, "before");
  blob[512] ^= 1;
  REFUSED(lpgemm_stack_expert(handle, w, 2, blob, size, 0), LPGEMM_CORRUPT_DATA, "checksum");
  blob[512] ^= 1;
  lpgemm_weight_desc_t other_desc = with_rows(desc_of(1, 48), LPGEMM_ROWS_PAIRED, 0);
  sample other;
  sample_make(&other, &other_desc);
  lpgemm_weights_t other_weights = sample_pack(handle, &other);
  size_t other_size = 0;
  uint8_t *other_blob = sample_blob(handle, other_weights, &other_size);
  REFUSED(lpgemm_stack_expert(handle, w, 2, other_blob, other_size, 0), LPGEMM_INVALID_ARGUMENT, "description");
  REFUSED(lpgemm_stack_expert(handle, one, 0, blob, size, 0), LPGEMM_INVALID_HANDLE, "finished");
  CHECK_STATUS(lpgemm_stack_expert(handle, w, 2, blob, size, LPGEMM_LOAD_SKIP_CHECKSUM), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_finish(handle, w), LPGEMM_SUCCESS);
  /* slices: pairs cannot be cut by rows yet; by columns every expert is */
  lpgemm_shard_t shard = {.size = sizeof shard, .by = LPGEMM_SHARD_ROWS, .ranks = 2};
  lpgemm_weight_desc_t part;
  REFUSED(lpgemm_shard_desc(&desc, &shard, &part, NULL), LPGEMM_NOT_SUPPORTED, "PAIRED");
  shard.by = LPGEMM_SHARD_COLUMNS;
  CHECK_STATUS(lpgemm_shard_desc(&desc, &shard, &part, NULL), LPGEMM_SUCCESS);
  CHECK(part.experts == 3 && part.rows == LPGEMM_ROWS_PAIRED && part.n == 48 && part.k == 128);
  /* what has no meaning for stacks */
  uint16_t x[200] = {0}, y[48] = {0};
  REFUSED(lpgemm_matmul(handle, w, 1, x, 0, y, 0), LPGEMM_INVALID_ARGUMENT, "lpgemm_run_grouped");
  lpgemm_run_args_t args = {.size = sizeof args, .weights = w, .m = 1, .x = x, .y = y};
  char text[256];
  REFUSED(lpgemm_explain(handle, &args, text, sizeof text), LPGEMM_INVALID_ARGUMENT, "lpgemm_run_grouped");
  const int64_t rows = 1;
  REFUSED(lpgemm_autotune(handle, w, &rows, 1, NULL), LPGEMM_INVALID_ARGUMENT, "lpgemm_run_grouped");
  const uint16_t one_half = 0x3c00, none = 0;
  REFUSED(lpgemm_hgemm(handle, LPGEMM_OP_T, LPGEMM_OP_N, 48, 1, 200, &one_half, w, 200, x, 200, &none, y, 48),
          LPGEMM_NOT_SUPPORTED, "lpgemm_run_grouped");
  REFUSED(lpgemm_export_size(w, 2, &bytes), LPGEMM_NOT_SUPPORTED, "stack");
  CHECK_STATUS(lpgemm_workspace_size(handle, w, 16, NULL, &bytes), LPGEMM_SUCCESS);
  CHECK(bytes >= 16 * 200 * 2);
  CHECK_STATUS(lpgemm_prepare(handle, w, 16), LPGEMM_SUCCESS);
  test_free(other_blob);
  test_free(blob);
  sample_free(&other);
  sample_free(&s);
  CHECK_STATUS(lpgemm_weights_destroy(w), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(one), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(other_weights), LPGEMM_SUCCESS);
}

void suite_stacks(void) {
  handle = sample_handle();
  pairs();
  stacks();
  container();
  hostile();
  refusals();
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
