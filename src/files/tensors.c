/* The list of tensors: how many bytes a type and a shape make, and that no two lie on one another. */
#include <stdlib.h>

#include "files.h"
#include "layouts/ggml.h"

static const struct {
  lpgemm_dtype_t type;
  int columns, bytes;
} blocks[] = {
#define BLOCK(number, name, columns, bytes) {LPGEMM_GGML(number), columns, bytes},
    LPG_GGML_TYPES(BLOCK)
#undef BLOCK
};

lpgemm_status_t lpgemm_i_more_tensors(lpgemm_file_t file, size_t count, lpgemm_tensor_t **tensors) {
  LPG_CHECK(count <= LPG_MOST_TENSORS - file->tensor_count, LPGEMM_SIZE_OVERFLOW,
            "%.300s has more than %d tensors; no checkpoint has so many", file->name, LPG_MOST_TENSORS);
  void *array = file->tensors;
  LPG_TRY(lpgemm_i_grow(&file->memory, &array, file->tensor_count, file->tensor_count + count, sizeof **tensors));
  file->tensors = array;
  *tensors = file->tensors + file->tensor_count;
  file->tensor_count += count;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_tensor_bytes(const char *file, const lpgemm_tensor_t *tensor, uint64_t *bytes) {
  uint64_t numbers = 1;
  for (int i = 0; i < tensor->dims; i++) {
    const uint64_t side = (uint64_t)tensor->shape[i];
    LPG_CHECK(side == 0 || numbers <= (UINT64_C(1) << 56) / side, LPGEMM_SIZE_OVERFLOW,
              "%.300s: tensor \"%.200s\" has a shape whose product cannot be addressed; dimension %d of it is %llu",
              file, tensor->name, i, (unsigned long long)side);
    numbers *= side;
  }
  const int bits = lpgemm_i_stored_bits(tensor->type);
  if (bits) { /* at most 64: 2^62 bits */
    LPG_CHECK(numbers * (uint64_t)bits % 8 == 0, LPGEMM_CORRUPT_DATA,
              "%.300s: tensor \"%.200s\" has %llu numbers of %d bits, which fill no whole bytes", file, tensor->name,
              (unsigned long long)numbers, bits);
    *bytes = numbers * (uint64_t)bits / 8;
    return LPGEMM_SUCCESS;
  }
  for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
    if (blocks[i].type != tensor->type) continue;
    const int64_t columns = tensor->dims ? tensor->shape[tensor->dims - 1] : 1;
    LPG_CHECK(columns % blocks[i].columns == 0, LPGEMM_CORRUPT_DATA,
              "%.300s: tensor \"%.200s\" has rows of %lld columns; %s needs a multiple of %d", file, tensor->name,
              (long long)columns, lpgemm_dtype_name(tensor->type), blocks[i].columns);
    *bytes = numbers / (uint64_t)blocks[i].columns * (uint64_t)blocks[i].bytes; /* at most 2^56 / 32 * 292 */
    return LPGEMM_SUCCESS;
  }
  LPG_CHECK(0, LPGEMM_INTERNAL_ERROR, "%.300s: tensor \"%.200s\" has type 0x%x without a size", file, tensor->name,
            (unsigned)tensor->type);
}

static int by_place(const void *a, const void *b) {
  const lpgemm_tensor_t *s = *(const lpgemm_tensor_t *const *)a, *t = *(const lpgemm_tensor_t *const *)b;
  if (s->data != t->data) return (uintptr_t)s->data < (uintptr_t)t->data ? -1 : 1;
  return s->bytes < t->bytes ? -1 : s->bytes > t->bytes;
}

lpgemm_status_t lpgemm_i_check_extents(lpgemm_file_t file, const char *name, const lpgemm_tensor_t *tensors,
                                       size_t count, const uint8_t *begin, const uint8_t *end, int dense) {
  const lpgemm_tensor_t **sorted = malloc(count * sizeof(lpgemm_tensor_t *) + 1);
  LPG_CHECK(sorted, LPGEMM_OUT_OF_MEMORY, "no memory for the index of %.300s", file->name);
  for (size_t i = 0; i < count; i++) sorted[i] = tensors + i;
  qsort(sorted, count, sizeof(lpgemm_tensor_t *), by_place);
  const lpgemm_tensor_t *overlap = NULL, *gap = NULL;
  const uint8_t *reached = begin;
  for (size_t i = 0; i < count; i++) {
    const uint8_t *data = sorted[i]->data;
    if (data < reached && sorted[i]->bytes > 0 && !overlap) overlap = sorted[i];
    if (data != reached && !gap) gap = sorted[i];
    if (data + sorted[i]->bytes > reached) reached = data + sorted[i]->bytes;
  }
  free(sorted);
  LPG_CHECK(!overlap, LPGEMM_CORRUPT_DATA,
            "%.300s: tensor \"%.200s\" begins inside another one; every byte may belong to one tensor only", name,
            overlap->name);
  LPG_CHECK(!dense || !gap, LPGEMM_CORRUPT_DATA,
            "%.300s: there are bytes before tensor \"%.200s\" that belong to none; the format has no gaps", name,
            gap->name);
  LPG_CHECK(!dense || reached == end, LPGEMM_CORRUPT_DATA,
            "%.300s: the last %zu bytes belong to no tensor; the format has no gaps", name, (size_t)(end - reached));
  return LPGEMM_SUCCESS;
}
