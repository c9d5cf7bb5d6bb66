/* Reads containers. */
#include "container.h"

int lpgemm_i_is_container(const lpg_map *map) {
  return map->size >= 8 && memcmp(map->bytes, LPG_CONTAINER_MAGIC, 8) == 0;
}

static lpgemm_status_t check_header(const char *name, const lpg_map *map) {
  const uint8_t *h = map->bytes;
  LPG_CHECK(map->size >= LPG_CONTAINER_HEADER, LPGEMM_CORRUPT_DATA, "%.300s has %zu bytes; a container has at least %d",
            name, map->size, LPG_CONTAINER_HEADER);
  LPG_CHECK(lpg_get(h + LPG_CONTAINER_AT_VERSION, 4) == LPG_CONTAINER_VERSION, LPGEMM_VERSION_MISMATCH,
            "%.300s is a container of version %u; this library reads version %d: convert the model again", name,
            (unsigned)lpg_get(h + LPG_CONTAINER_AT_VERSION, 4), LPG_CONTAINER_VERSION);
  LPG_CHECK(lpg_get(h + LPG_CONTAINER_AT_HASH, 8) == lpgemm_i_hash(h, LPG_CONTAINER_AT_HASH) &&
                lpg_get(h + LPG_CONTAINER_AT_VERSION + 4, 4) == 0,
            LPGEMM_CORRUPT_DATA, "%.300s: the header of the container is damaged; convert the model again", name);
  LPG_CHECK(lpg_get(h + LPG_CONTAINER_AT_BYTES, 8) == map->size, LPGEMM_CORRUPT_DATA,
            "%.300s has %zu bytes, but its header says %llu; fetch or convert it again", name, map->size,
            (unsigned long long)lpg_get(h + LPG_CONTAINER_AT_BYTES, 8));
  const uint64_t index = lpg_get(h + LPG_CONTAINER_AT_INDEX, 8), bytes = lpg_get(h + LPG_CONTAINER_AT_INDEX_BYTES, 8);
  LPG_CHECK(index >= LPG_CONTAINER_TENSOR_ALIGN && index <= map->size && index % LPG_CONTAINER_TENSOR_ALIGN == 0 &&
                bytes == map->size - index && bytes % 8 == 0,
            LPGEMM_CORRUPT_DATA,
            "%.300s: its index is said to lie at %llu with %llu bytes, which is not the end of the file", name,
            (unsigned long long)index, (unsigned long long)bytes);
  LPG_CHECK(lpgemm_i_hash(h + index, bytes) == lpg_get(h + LPG_CONTAINER_AT_INDEX_HASH, 8), LPGEMM_CORRUPT_DATA,
            "%.300s: the index of the container is damaged; convert the model again", name);
  return LPGEMM_SUCCESS;
}

/* One entry; *at and *reached move on: to the next entry, and to the end of this one's data. */
static lpgemm_status_t read_entry(lpgemm_file_t file, const char *name, const lpg_map *map, size_t i, uint64_t index,
                                  uint64_t *at, uint64_t *reached, lpgemm_tensor_t *t, uint64_t *hash) {
  LPG_CHECK(map->size - *at >= LPG_CONTAINER_ENTRY, LPGEMM_CORRUPT_DATA, "%.300s: the index ends inside entry %zu",
            name, i);
  const uint8_t *entry = map->bytes + *at;
  const uint64_t length = lpg_get(entry + LPG_ENTRY_AT_NAME_BYTES, 4), padded = (length + 7) / 8 * 8;
  LPG_CHECK(padded <= map->size - *at - LPG_CONTAINER_ENTRY && lpg_get(entry + LPG_ENTRY_AT_NAME_BYTES + 4, 4) == 0,
            LPGEMM_CORRUPT_DATA, "%.300s: the index ends inside the name of entry %zu", name, i);
  const char *text = (const char *)entry + LPG_CONTAINER_ENTRY;
  LPG_TRY(lpgemm_i_check_name(name, "the name of a tensor", text, (size_t)length));
  LPG_TRY(lpgemm_i_keep_text(&file->memory, text, (size_t)length, &t->name));
  *at += LPG_CONTAINER_ENTRY + padded;

  t->type = (lpgemm_dtype_t)lpg_get(entry + LPG_ENTRY_AT_TYPE, 4);
  const uint64_t dims = lpg_get(entry + LPG_ENTRY_AT_DIMS, 4);
  LPG_CHECK(dims <= 4 && t->type != 0 && strcmp(lpgemm_dtype_name(t->type), "invalid") != 0, LPGEMM_CORRUPT_DATA,
            "%.300s: entry \"%.200s\" has type 0x%x and %llu dimensions; no writer makes that", name, t->name,
            (unsigned)t->type, (unsigned long long)dims);
  t->dims = (int32_t)dims;
  for (int d = 0; d < 4; d++) {
    const uint64_t side = lpg_get(entry + LPG_ENTRY_AT_SHAPE + 8 * d, 8);
    LPG_CHECK(d < t->dims ? side <= INT64_MAX : side == 0, LPGEMM_CORRUPT_DATA,
              "%.300s: dimension %d of entry \"%.200s\" is %llu", name, d, t->name, (unsigned long long)side);
    t->shape[d] = (int64_t)side;
  }
  uint64_t bytes;
  LPG_TRY(lpgemm_i_tensor_bytes(name, t, &bytes));
  const uint64_t offset =
      (*reached + LPG_CONTAINER_TENSOR_ALIGN - 1) / LPG_CONTAINER_TENSOR_ALIGN * LPG_CONTAINER_TENSOR_ALIGN;
  LPG_CHECK(
      lpg_get(entry + LPG_ENTRY_AT_OFFSET, 8) == offset && lpg_get(entry + LPG_ENTRY_AT_BYTES, 8) == bytes &&
          offset <= index && bytes <= index - offset,
      LPGEMM_CORRUPT_DATA,
      "%.300s: entry \"%.200s\" is said to have %llu bytes at %llu; it should have %llu at %llu, before the index",
      name, t->name, (unsigned long long)lpg_get(entry + LPG_ENTRY_AT_BYTES, 8),
      (unsigned long long)lpg_get(entry + LPG_ENTRY_AT_OFFSET, 8), (unsigned long long)bytes,
      (unsigned long long)offset);
  t->data = map->bytes + offset;
  t->bytes = (size_t)bytes;
  *reached = offset + bytes;
  *hash = lpg_get(entry + LPG_ENTRY_AT_HASH, 8);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_read_container(lpgemm_file_t file, const char *name, const lpg_map *map) {
  LPG_TRY(check_header(name, map));
  const uint64_t count = lpg_get(map->bytes + LPG_CONTAINER_AT_ENTRIES, 8),
                 index = lpg_get(map->bytes + LPG_CONTAINER_AT_INDEX, 8);
  LPG_CHECK(count <= LPG_MOST_TENSORS && count <= (map->size - index) / LPG_CONTAINER_ENTRY, LPGEMM_CORRUPT_DATA,
            "%.300s promises %llu entries, which its index of %llu bytes cannot hold", name, (unsigned long long)count,
            (unsigned long long)(map->size - index));
  lpgemm_tensor_t *tensors;
  void *hashes;
  LPG_TRY(lpgemm_i_more_tensors(file, (size_t)count, &tensors));
  LPG_TRY(lpgemm_i_keep(&file->memory, (size_t)count * sizeof(uint64_t), &hashes));
  file->hashes = hashes;
  uint64_t at = index, reached = LPG_CONTAINER_TENSOR_ALIGN;
  for (size_t i = 0; i < count; i++) {
    LPG_TRY(read_entry(file, name, map, i, index, &at, &reached, &tensors[i], (uint64_t *)hashes + i));
  }
  LPG_CHECK(at == map->size && index - reached < LPG_CONTAINER_TENSOR_ALIGN, LPGEMM_CORRUPT_DATA,
            "%.300s has %llu bytes that no entry has; convert the model again", name,
            (unsigned long long)(map->size - at + (index - reached)));
  return LPGEMM_SUCCESS;
}
