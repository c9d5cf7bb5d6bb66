/* Containers: what is written is read again, and what is damaged or half written is not. */
#include "checkpoints.h"
#include "files/container.h"
#include "test.h"

enum { N = 48, K = 160 };

static lpgemm_weights_t make_weights(lpgemm_handle_t handle) {
  static float w[N * K];
  lpgemm_weights_t weights = NULL;
  lpgemm_weight_desc_t desc = {.size = sizeof desc, .n = N, .k = K, .type = LPGEMM_UINT(4), .group_k = 32};
  desc.scale_type = LPGEMM_F16;
  desc.zero = LPGEMM_ZERO_CONSTANT, desc.zero_constant = 8;
  for (int i = 0; i < N * K; i++) w[i] = (float)test_uniform(-1, 1);
  CHECK_STATUS(lpgemm_quantize_weights(handle, &desc, LPGEMM_QUANTIZE_ABSMAX, w, LPGEMM_F32, 0, NULL, 0, &weights),
               LPGEMM_SUCCESS);
  return weights;
}

static lpgemm_tensor_t plain(const char *name, lpgemm_dtype_t type, int64_t rows, int64_t columns, const void *data,
                             size_t bytes) {
  lpgemm_tensor_t t = {.name = name, .type = type, .dims = 2, .data = data, .bytes = bytes};
  t.shape[0] = rows, t.shape[1] = columns;
  return t;
}

static const uint8_t data[288] = {1, 2, 3, 250, 251};

/* A container of weights between plain tensors, an empty one among them. */
static void write_one(const folder *f, lpgemm_handle_t handle, lpgemm_weights_t weights) {
  lpgemm_container_t c = NULL;
  lpgemm_tensor_t norm = plain("model.norm.weight", LPGEMM_BF16, 1, 5, data, 10);
  lpgemm_tensor_t empty = plain("empty", LPGEMM_F32, 0, 7, NULL, 0),
                  blocks = plain("b", LPGEMM_GGML(12), 2, 256, data, 288);
  CHECK_STATUS(lpgemm_container_create(folder_path(f, "m.lpg"), 0, &c), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_add_tensor(c, &norm), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_add_weights(c, "model.layers.0.mlp.up_proj", handle, weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_add_tensor(c, &empty), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_add_tensor(c, &blocks), LPGEMM_SUCCESS);
  lpgemm_file_t file = NULL; /* not there before it is whole */
  CHECK_STATUS(lpgemm_file_open(folder_path(f, "m.lpg"), &file), LPGEMM_IO_ERROR);
  CHECK_STATUS(lpgemm_container_finish(c), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_finish(c), LPGEMM_INVALID_ARGUMENT);
  CHECK_STATUS(lpgemm_container_destroy(c), LPGEMM_SUCCESS);
  CHECK_INT(folder_count(f), 1);
}

static void round_trip(lpgemm_handle_t handle) {
  if (!test_case("container/round_trip")) return;
  folder f = folder_make();
  lpgemm_weights_t weights = make_weights(handle), viewed = NULL;
  lpgemm_weights_info_t info = {.size = sizeof info}, again = {.size = sizeof again};
  CHECK_STATUS(lpgemm_weights_info(weights, &info), LPGEMM_SUCCESS);
  write_one(&f, handle, weights);
  lpgemm_file_t file = NULL;
  lpgemm_tensor_t t = {0};
  size_t tensors = 0, layers = 1;
  CHECK_STATUS(lpgemm_file_open(folder_path(&f, "m.lpg"), &file), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_counts(file, &tensors, &layers), LPGEMM_SUCCESS);
  CHECK(tensors == 4 && layers == 0);
  for (size_t i = 0; i < tensors; i++) CHECK_STATUS(lpgemm_file_check(file, i), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_tensor(file, 0, &t), LPGEMM_SUCCESS);
  CHECK(strcmp(t.name, "model.norm.weight") == 0 && t.type == LPGEMM_BF16 && t.dims == 2 && t.shape[1] == 5);
  CHECK(t.bytes == 10 && memcmp(t.data, data, 10) == 0);
  CHECK_STATUS(lpgemm_file_find(file, "b", &t), LPGEMM_SUCCESS);
  CHECK(t.type == LPGEMM_GGML(12) && t.bytes == 288);
  CHECK_STATUS(lpgemm_file_find(file, "empty", &t), LPGEMM_SUCCESS);
  CHECK(t.bytes == 0 && t.shape[0] == 0 && t.shape[1] == 7);
  CHECK_STATUS(lpgemm_file_find(file, "model.layers.0.mlp.up_proj", &t), LPGEMM_SUCCESS);
  CHECK(t.type == LPGEMM_BLOB && t.bytes == info.packed_bytes && (uintptr_t)t.data % 4096 == 0);
  CHECK_STATUS(lpgemm_deserialize(handle, t.data, t.bytes, LPGEMM_LOAD_VIEW, &viewed), LPGEMM_SUCCESS);
  if (viewed) CHECK_STATUS(lpgemm_weights_info(viewed, &again), LPGEMM_SUCCESS);
  CHECK(again.payload_hash == info.payload_hash && again.memory == t.data);
  lpgemm_import_t import = {.size = sizeof import};
  CHECK_STATUS(lpgemm_file_layer(file, "model.layers.0.mlp.up_proj", &import), LPGEMM_INVALID_ARGUMENT);
  CHECK(strstr(lpgemm_last_error(), "lpgemm_deserialize") != NULL);
  CHECK_STATUS(lpgemm_weights_destroy(viewed), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
  folder_remove(&f);
}

static void damage(lpgemm_handle_t handle) {
  if (!test_case("container/damage")) return;
  folder f = folder_make();
  lpgemm_weights_t weights = make_weights(handle);
  write_one(&f, handle, weights);
  buffer b = read_file(folder_path(&f, "m.lpg"));
  const size_t index = (size_t)lpg_get(b.bytes + LPG_CONTAINER_AT_INDEX, 8);
  for (size_t at = 0; at < b.size; at += at < LPG_CONTAINER_HEADER || at >= index ? 1 : 97) {
    lpgemm_file_t file = NULL;
    b.bytes[at] ^= 0x10;
    const lpgemm_status_t status = lpgemm_file_parse(b.bytes, b.size, &file);
    const int outside = at >= LPG_CONTAINER_HEADER && at < index; /* data are looked at only when asked for */
    if ((status == LPGEMM_SUCCESS) != outside) test_fail(__FILE__, __LINE__, "byte %zu: status %d", at, (int)status);
    lpgemm_tensor_t t;
    for (size_t i = 0; file && i < 4; i++) {
      CHECK_STATUS(lpgemm_file_tensor(file, i, &t), LPGEMM_SUCCESS);
      const int hit = b.bytes + at >= (const uint8_t *)t.data && b.bytes + at < (const uint8_t *)t.data + t.bytes;
      CHECK_STATUS(lpgemm_file_check(file, i), hit ? LPGEMM_CORRUPT_DATA : LPGEMM_SUCCESS);
    }
    lpgemm_file_close(file);
    b.bytes[at] ^= 0x10;
  }
  for (size_t size = 8; size < b.size; size += 61) {
    lpgemm_file_t file = NULL;
    CHECK_STATUS(lpgemm_file_parse(b.bytes, size, &file), LPGEMM_CORRUPT_DATA);
  }
  /* fields of an entry set against one another, hashes right again */
  static const struct {
    int at, bytes;
    uint64_t value;
  } wrong[] = {
      {LPG_ENTRY_AT_OFFSET, 8, 0},     {LPG_ENTRY_AT_OFFSET, 8, UINT64_MAX}, {LPG_ENTRY_AT_BYTES, 8, 11},
      {LPG_ENTRY_AT_TYPE, 4, 0},       {LPG_ENTRY_AT_TYPE, 4, 0xffff},       {LPG_ENTRY_AT_DIMS, 4, 5},
      {LPG_ENTRY_AT_DIMS, 4, 1},       {LPG_ENTRY_AT_SHAPE, 8, UINT64_MAX},  {LPG_ENTRY_AT_SHAPE, 8, 1u << 30},
      {LPG_ENTRY_AT_SHAPE + 16, 8, 1}, {LPG_ENTRY_AT_NAME_BYTES, 4, 0},      {LPG_ENTRY_AT_NAME_BYTES, 4, UINT32_MAX}};
  uint8_t *copy = malloc(b.size);
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    lpgemm_file_t file = NULL;
    memcpy(copy, b.bytes, b.size);
    lpg_put(copy + index + wrong[i].at, wrong[i].bytes, wrong[i].value);
    lpg_put(copy + LPG_CONTAINER_AT_INDEX_HASH, 8, lpgemm_i_hash(copy + index, b.size - index));
    lpg_put(copy + LPG_CONTAINER_AT_HASH, 8, lpgemm_i_hash(copy, LPG_CONTAINER_AT_HASH));
    const lpgemm_status_t status = lpgemm_file_parse(copy, b.size, &file);
    if (status == LPGEMM_SUCCESS || file) test_fail(__FILE__, __LINE__, "wrong entry %zu was taken", i);
  }
  free(copy);
  buffer_free(&b);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  folder_remove(&f);
}

static void half_written(lpgemm_handle_t handle) {
  if (!test_case("container/half_written")) return;
  folder f = folder_make();
  lpgemm_container_t c = NULL, other = NULL;
  lpgemm_tensor_t t = plain("a", LPGEMM_U8, 1, 5, data, 5);
  /* given up: nothing is left */
  CHECK_STATUS(lpgemm_container_create(folder_path(&f, "m.lpg"), 0, &c), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_add_tensor(c, &t), LPGEMM_SUCCESS);
  CHECK_INT(folder_count(&f), 1);
  CHECK_STATUS(lpgemm_container_destroy(c), LPGEMM_SUCCESS);
  CHECK_INT(folder_count(&f), 0);
  /* two names that are equal: refused at the end, and nothing is left */
  CHECK_STATUS(lpgemm_container_create(folder_path(&f, "m.lpg"), 0, &c), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_add_tensor(c, &t), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_add_tensor(c, &t), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_finish(c), LPGEMM_CORRUPT_DATA);
  CHECK_STATUS(lpgemm_container_add_tensor(c, &t), LPGEMM_CORRUPT_DATA);
  CHECK_STATUS(lpgemm_container_destroy(c), LPGEMM_SUCCESS);
  CHECK_INT(folder_count(&f), 0);
  /* two at once: the second finds the first one's file */
  CHECK_STATUS(lpgemm_container_create(folder_path(&f, "m.lpg"), 0, &c), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_create(folder_path(&f, "m.lpg"), 0, &other), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_finish(c), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_finish(other), LPGEMM_IO_ERROR);
  CHECK_STATUS(lpgemm_container_destroy(c), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_destroy(other), LPGEMM_SUCCESS);
  CHECK_INT(folder_count(&f), 1);
  /* a file that is there is kept, or replaced when asked for */
  CHECK_STATUS(lpgemm_container_create(folder_path(&f, "m.lpg"), 0, &c), LPGEMM_IO_ERROR);
  CHECK_STATUS(lpgemm_container_create(folder_path(&f, "m.lpg"), 1, &c), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_add_tensor(c, &t), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_finish(c), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_destroy(c), LPGEMM_SUCCESS);
  lpgemm_file_t file = NULL;
  size_t tensors = 0;
  CHECK_STATUS(lpgemm_file_open(folder_path(&f, "m.lpg"), &file), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_counts(file, &tensors, NULL), LPGEMM_SUCCESS);
  CHECK_INT(tensors, 1);
  CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
  folder_remove(&f);
  (void)handle;
}

static void misuse(lpgemm_handle_t handle) {
  if (!test_case("container/misuse")) return;
  folder f = folder_make();
  lpgemm_container_t c = NULL, destroyed;
  lpgemm_tensor_t t = plain("a", LPGEMM_U8, 1, 5, data, 5), bad;
  CHECK_STATUS(lpgemm_container_create(NULL, 0, &c), LPGEMM_NULL_POINTER);
  CHECK_STATUS(lpgemm_container_create("", 0, &c), LPGEMM_INVALID_ARGUMENT);
  CHECK_STATUS(lpgemm_container_create(folder_path(&f, "a"), 0, NULL), LPGEMM_NULL_POINTER);
  CHECK_STATUS(lpgemm_container_create("/nowhere/at/all", 0, &c), LPGEMM_IO_ERROR);
  CHECK_STATUS(lpgemm_container_destroy(NULL), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_create(folder_path(&f, "a"), 0, &c), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_add_tensor(c, NULL), LPGEMM_NULL_POINTER);
  CHECK_STATUS(lpgemm_container_add_tensor(NULL, &t), LPGEMM_NULL_POINTER);
#define REFUSE(change, status)                                  \
  do {                                                          \
    bad = t;                                                    \
    change;                                                     \
    CHECK_STATUS(lpgemm_container_add_tensor(c, &bad), status); \
  } while (0)
  REFUSE(bad.name = NULL, LPGEMM_NULL_POINTER);
  REFUSE(bad.name = "", LPGEMM_CORRUPT_DATA);
  REFUSE(bad.data = NULL, LPGEMM_NULL_POINTER);
  REFUSE(bad.type = 0, LPGEMM_INVALID_TYPE);
  REFUSE(bad.type = 0xfffff, LPGEMM_INVALID_TYPE);
  REFUSE(bad.dims = 5, LPGEMM_INVALID_ARGUMENT);
  REFUSE(bad.dims = -1, LPGEMM_INVALID_ARGUMENT);
  REFUSE(bad.shape[0] = -1, LPGEMM_INVALID_SIZE);
  REFUSE(bad.bytes = 6, LPGEMM_INVALID_SIZE);
#undef REFUSE
  CHECK_STATUS(lpgemm_container_add_weights(c, "w", handle, NULL), LPGEMM_NULL_POINTER);
  CHECK_STATUS(lpgemm_container_add_weights(c, NULL, handle, NULL), LPGEMM_NULL_POINTER);
  CHECK_STATUS(lpgemm_container_finish(c), LPGEMM_SUCCESS); /* nothing of that has spoiled it */
  destroyed = c;
  CHECK_STATUS(lpgemm_container_destroy(c), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_container_destroy(destroyed), LPGEMM_INVALID_HANDLE);
  CHECK_STATUS(lpgemm_container_finish(destroyed), LPGEMM_INVALID_HANDLE);
  folder_remove(&f);
}

void suite_container(void);

void suite_container(void) {
  lpgemm_handle_t handle = NULL;
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .num_threads = 1};
  CHECK_STATUS(lpgemm_create(&handle, &config), LPGEMM_SUCCESS);
  round_trip(handle);
  damage(handle);
  half_written(handle);
  misuse(handle);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
