/* parts DEVICE: tensors of every block type, matrices and stacks, are written to the device's memory and read back,
 * whole and in parts that end within blocks; filled in part; copied from one to another; cleared. All bytes must be
 * those that memory of the host would hold. */
#include <ggml-backend.h>
#include <ggml.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 512, ROWS = 24, EXPERTS = 3 };

static int failures;

static void compare(const struct ggml_tensor *tensor, const char *expected, const char *after) {
  const size_t bytes = ggml_nbytes(tensor), middle = bytes / 3 + 1;
  char *read = malloc(bytes);
  ggml_backend_tensor_get(tensor, read, 0, bytes);
  if (memcmp(read, expected, bytes) != 0) {
    printf("parts: %s of %d dimensions differs after %s\n", ggml_type_name(tensor->type), ggml_n_dims(tensor), after);
    failures++;
  }
  memset(read, 0, bytes);
  ggml_backend_tensor_get(tensor, read, middle, bytes / 2);
  if (memcmp(read, expected + middle, bytes / 2) != 0) {
    printf("parts: a part of %s of %d dimensions differs after %s\n", ggml_type_name(tensor->type), ggml_n_dims(tensor),
           after);
    failures++;
  }
  free(read);
}

/* Types for which ggml makes tables before it quantises, which takes seconds. */
static bool has_grid(enum ggml_type type) {
  switch (type) {
    case GGML_TYPE_IQ1_S:
    case GGML_TYPE_IQ1_M:
    case GGML_TYPE_IQ2_XXS:
    case GGML_TYPE_IQ2_XS:
    case GGML_TYPE_IQ2_S:
    case GGML_TYPE_IQ3_XXS:
    case GGML_TYPE_IQ3_S: return true;
    default: return false;
  }
}

static uint64_t next(uint64_t *seed) { return (*seed = *seed * 6364136223846793005u + 1442695040888963407u) >> 32; }

/* Blocks that have nothing to do with those of another seed: of quantised numbers, or bytes that are no scale beyond 2.
 */
static char *draw(const struct ggml_tensor *tensor, uint64_t seed) {
  const int64_t count = ggml_nelements(tensor);
  const size_t bytes = ggml_nbytes(tensor);
  char *blocks = malloc(bytes);
  if (has_grid(tensor->type)) {
    for (size_t i = 0; i < bytes; i++) blocks[i] = (char)(next(&seed) & 0x3f);
    return blocks;
  }
  float *values = malloc((size_t)count * sizeof *values);
  for (int64_t i = 0; i < count; i++) values[i] = (float)next(&seed) * 0x1p-31f - 1;
  ggml_quantize_chunk(tensor->type, values, blocks, 0, count / COLUMNS, COLUMNS, NULL);
  free(values);
  return blocks;
}

static void check(ggml_backend_buffer_type_t where, enum ggml_type type, int64_t experts) {
  struct ggml_context *context = ggml_init(
      (struct ggml_init_params){.mem_size = 4 * ggml_tensor_overhead(), .mem_buffer = NULL, .no_alloc = true});
  struct ggml_tensor *a = ggml_new_tensor_3d(context, type, COLUMNS, ROWS, experts);
  struct ggml_tensor *b = ggml_new_tensor_3d(context, type, COLUMNS, ROWS, experts);
  ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors_from_buft(context, where);
  const size_t bytes = ggml_nbytes(a), block = ggml_type_size(type);
  char *expected = draw(a, 1), *other = draw(a, 2);

  ggml_backend_tensor_set(a, expected, 0, bytes);
  compare(a, expected, "it was written");
  const size_t from = block * 5 + block / 2, size = bytes / 2 / block * block;
  memcpy(expected + from, other + from, size); /* of one block the first half, of one the second */
  ggml_backend_tensor_set(a, other + from, from, size);
  compare(a, expected, "a part was written");
  memset(expected + block * 30, 0, block * 7);
  ggml_backend_tensor_memset(a, 0, block * 30, block * 7);
  compare(a, expected, "a part was filled");
  ggml_backend_tensor_copy(a, b);
  compare(b, expected, "it was copied");
  ggml_backend_buffer_clear(buffer, 0);
  memset(expected, 0, bytes);
  compare(a, expected, "the buffer was cleared");

  free(expected);
  free(other);
  ggml_backend_buffer_free(buffer);
  ggml_free(context);
}

int main(int argc, char **argv) {
  ggml_backend_load_all();
  ggml_backend_dev_t device = argc == 2 ? ggml_backend_dev_by_name(argv[1]) : NULL;
  if (!device) {
    fprintf(stderr, "parts: there is no device '%s'\n", argc == 2 ? argv[1] : "");
    return 1;
  }
  int types = 0;
  for (int i = 0; i < GGML_TYPE_COUNT; i++) {
    const enum ggml_type type = (enum ggml_type)i;
    if (!ggml_is_quantized(type) || type == GGML_TYPE_Q8_1 || type == GGML_TYPE_Q8_K) continue;
    check(ggml_backend_dev_buffer_type(device), type, 1);
    check(ggml_backend_dev_buffer_type(device), type, EXPERTS);
    types++;
  }
  printf("ggml-check: parts on %s: %d block types, %d differences\n", argv[1], types, failures);
  return failures > 0;
}
