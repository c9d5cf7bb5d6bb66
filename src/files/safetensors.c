/* safetensors: 8 bytes with the length of a JSON header, the header, the data of all tensors without gaps. */
#include "files.h"
#include "json.h"

enum { LENGTH_BYTES = 8 };

static const struct {
  const char *name;
  lpgemm_dtype_t type;
} types[] = {
    {"BOOL", LPGEMM_BOOL},
    {"U8", LPGEMM_U8},
    {"I8", LPGEMM_I8},
    {"I16", LPGEMM_I16},
    {"U16", LPGEMM_U16},
    {"I32", LPGEMM_I32},
    {"U32", LPGEMM_U32},
    {"I64", LPGEMM_I64},
    {"U64", LPGEMM_U64},
    {"F16", LPGEMM_F16},
    {"BF16", LPGEMM_BF16},
    {"F32", LPGEMM_F32},
    {"F64", LPGEMM_F64},
    {"C64", LPGEMM_C64},
    {"F4", LPGEMM_FLOAT(2, 1)},
    {"F6_E2M3", LPGEMM_FLOAT(2, 3)},
    {"F6_E3M2", LPGEMM_FLOAT(3, 2)},
    {"F8_E4M3", LPGEMM_E4M3},
    {"F8_E5M2", LPGEMM_E5M2},
    {"F8_E8M0", LPGEMM_E8M0},
    {"F8_E4M3FNUZ", LPGEMM_E4M3FNUZ},
    {"F8_E5M2FNUZ", LPGEMM_E5M2FNUZ},
};

static lpgemm_status_t read_type(const char *file, const char *name, lpg_json value, lpgemm_dtype_t *type) {
  char text[32];
  LPG_CHECK(lpgemm_i_json_text(value, text, sizeof text) >= 0, LPGEMM_CORRUPT_DATA,
            "%.300s: tensor \"%.200s\" has no dtype, or one that is no word", file, name);
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    if (strcmp(text, types[i].name) == 0) {
      *type = types[i].type;
      return LPGEMM_SUCCESS;
    }
  }
  for (char *c = text; *c; c++) {
    if ((uint8_t)*c < ' ' || *c == 0x7f) *c = '?';
  }
  LPG_CHECK(0, LPGEMM_NOT_SUPPORTED,
            "%.300s: tensor \"%.200s\" has dtype \"%s\", which this version does not know; BOOL to F64 and the F8, F6 "
            "and F4 types are read",
            file, name, text);
}

/* More dimensions than a tensor has here: the first ones become one, the bytes stay. */
static lpgemm_status_t read_shape(const char *file, lpg_json value, lpgemm_tensor_t *t) {
  const int most = (int)(sizeof t->shape / sizeof t->shape[0]);
  lpg_json side;
  LPG_CHECK(lpgemm_i_json_kind(value) == '[', LPGEMM_CORRUPT_DATA, "%.300s: tensor \"%.200s\" has no shape", file,
            t->name);
  for (lpg_json walk = lpgemm_i_json_walk(value); lpgemm_i_json_next(&walk, NULL, &side);) {
    int64_t n = -1;
    LPG_CHECK(lpgemm_i_json_integer(side, &n) && n >= 0, LPGEMM_CORRUPT_DATA,
              "%.300s: dimension %d of tensor \"%.200s\" is not an integer from 0 to 2^63 - 1", file, t->dims, t->name);
    if (t->dims == most) {
      LPG_CHECK(t->shape[1] == 0 || t->shape[0] <= INT64_MAX / t->shape[1], LPGEMM_SIZE_OVERFLOW,
                "%.300s: tensor \"%.200s\" has a shape whose product cannot be addressed", file, t->name);
      t->shape[0] *= t->shape[1];
      memmove(t->shape + 1, t->shape + 2, (size_t)(most - 2) * sizeof t->shape[0]);
      t->dims--;
    }
    t->shape[t->dims++] = n;
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t read_extent(const char *file, lpg_json value, const uint8_t *data, uint64_t size,
                                   lpgemm_tensor_t *t) {
  int64_t at[2] = {-1, -1};
  int count = 0, good = lpgemm_i_json_kind(value) == '[';
  lpg_json number;
  for (lpg_json walk = lpgemm_i_json_walk(value); good && lpgemm_i_json_next(&walk, NULL, &number); count++) {
    good = count < 2 && lpgemm_i_json_integer(number, &at[count]) && at[count] >= 0;
  }
  LPG_CHECK(good && count == 2, LPGEMM_CORRUPT_DATA,
            "%.300s: data_offsets of tensor \"%.200s\" are not two integers from 0 on", file, t->name);
  LPG_CHECK(at[0] <= at[1] && (uint64_t)at[1] <= size, LPGEMM_CORRUPT_DATA,
            "%.300s: tensor \"%.200s\" lies at %lld to %lld, but the file has %llu bytes of data; fetch it again", file,
            t->name, (long long)at[0], (long long)at[1], (unsigned long long)size);
  uint64_t bytes;
  LPG_TRY(lpgemm_i_tensor_bytes(file, t, &bytes));
  LPG_CHECK(bytes == (uint64_t)(at[1] - at[0]), LPGEMM_CORRUPT_DATA,
            "%.300s: tensor \"%.200s\" has %lld bytes, but its type and shape make %llu", file, t->name,
            (long long)(at[1] - at[0]), (unsigned long long)bytes);
  t->data = data + at[0];
  t->bytes = (size_t)bytes;
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t read_entry(const char *file, lpg_json entry, const uint8_t *data, uint64_t size,
                                  lpgemm_tensor_t *t) {
  static const char *const members[] = {"dtype", "shape", "data_offsets"};
  lpg_json values[3] = {{0}}, key, value;
  LPG_CHECK(lpgemm_i_json_kind(entry) == '{', LPGEMM_CORRUPT_DATA, "%.300s: tensor \"%.200s\" is no object", file,
            t->name);
  for (lpg_json walk = lpgemm_i_json_walk(entry); lpgemm_i_json_next(&walk, &key, &value);) {
    for (int i = 0; i < 3; i++) {
      if (!lpgemm_i_json_is(key, members[i])) continue;
      LPG_CHECK(!values[i].at, LPGEMM_CORRUPT_DATA, "%.300s: tensor \"%.200s\" has %s twice", file, t->name,
                members[i]);
      values[i] = value;
    }
  }
  LPG_TRY(read_type(file, t->name, values[0], &t->type));
  LPG_TRY(read_shape(file, values[1], t));
  return read_extent(file, values[2], data, size, t);
}

/* The entries of the header; NULL tensors: only counted. */
static lpgemm_status_t read_header(lpgemm_file_t file, const char *name, lpg_json header, const uint8_t *data,
                                   uint64_t size, lpgemm_tensor_t *tensors, size_t *count) {
  char text[LPG_MOST_NAME + 1];
  lpg_json key, value;
  size_t found = 0;
  for (lpg_json walk = lpgemm_i_json_walk(header); lpgemm_i_json_next(&walk, &key, &value);) {
    if (lpgemm_i_json_is(key, "__metadata__")) continue;
    if (tensors) {
      const int64_t length = lpgemm_i_json_text(key, text, sizeof text);
      LPG_CHECK(length >= 0, LPGEMM_CORRUPT_DATA,
                "%.300s: tensor %zu has a name with a 0 in it, or of more than %d bytes", name, found, LPG_MOST_NAME);
      LPG_TRY(lpgemm_i_check_name(name, "the name of a tensor", text, (size_t)length));
      LPG_TRY(lpgemm_i_keep_text(&file->memory, text, (size_t)length, &tensors[found].name));
      LPG_TRY(read_entry(name, value, data, size, &tensors[found]));
    }
    found++;
  }
  *count = found;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_read_safetensors(lpgemm_file_t file, const char *name, const lpg_map *map) {
  LPG_CHECK(map->size > LENGTH_BYTES, LPGEMM_CORRUPT_DATA,
            "%.300s has %zu bytes; a safetensors file has 8 of length and a header", name, map->size);
  uint64_t length = 0;
  for (int i = 0; i < LENGTH_BYTES; i++) length |= (uint64_t)map->bytes[i] << 8 * i;
  LPG_CHECK(
      length <= map->size - LENGTH_BYTES && length <= LPG_MOST_JSON, LPGEMM_CORRUPT_DATA,
      "%.300s is no safetensors, GGUF or container, or was cut: its first 8 bytes promise a header of %llu bytes, "
      "%zu bytes follow, and a header has 100 MiB at most",
      name, (unsigned long long)length, map->size - LENGTH_BYTES);
  lpg_json header;
  LPG_TRY(lpgemm_i_json_check(name, (const char *)map->bytes + LENGTH_BYTES, (size_t)length, &header));
  LPG_CHECK(lpgemm_i_json_kind(header) == '{', LPGEMM_CORRUPT_DATA, "%.300s: the header is no JSON object", name);
  const uint8_t *data = map->bytes + LENGTH_BYTES + length, *end = map->bytes + map->size;
  size_t count;
  lpgemm_tensor_t *tensors;
  LPG_TRY(read_header(file, name, header, data, (uint64_t)(end - data), NULL, &count));
  LPG_TRY(lpgemm_i_more_tensors(file, count, &tensors));
  LPG_TRY(read_header(file, name, header, data, (uint64_t)(end - data), tensors, &count));
  return lpgemm_i_check_extents(file, name, tensors, count, data, end, 1);
}
