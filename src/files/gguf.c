/* GGUF, versions 2 and 3, little-endian: a head, pairs of keys and values, tensor infos, then the data. */
#include <stdlib.h>

#include "files.h"

enum {
  MAGIC_BYTES = 4,
  MOST_PAIRS = 1 << 20,
  MOST_ALIGNMENT = 1 << 16,
  LEAST_INFO = 24, /* bytes of a tensor's entry: an empty name, no dimensions */
  LEAST_PAIR = 13
};

/* What is left of the head. */
typedef struct cursor {
  const char *file;
  const uint8_t *at, *end;
} cursor;

enum { TYPE_STRING = 8, TYPE_ARRAY = 9, TYPES = 13 };
static const uint8_t value_bytes[TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

static lpgemm_status_t take(cursor *c, uint64_t bytes, const char *what, const uint8_t **taken) {
  LPG_CHECK(bytes <= (uint64_t)(c->end - c->at), LPGEMM_CORRUPT_DATA,
            "%.300s ends inside %s, which needs %llu bytes where %zu are left; fetch it again", c->file, what,
            (unsigned long long)bytes, (size_t)(c->end - c->at));
  *taken = c->at;
  c->at += bytes;
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t number(cursor *c, int bytes, const char *what, uint64_t *value) {
  const uint8_t *p;
  LPG_TRY(take(c, (uint64_t)bytes, what, &p));
  *value = 0;
  for (int i = 0; i < bytes; i++) *value |= (uint64_t)p[i] << 8 * i;
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t string(cursor *c, const char *what, const char **text, uint64_t *length) {
  const uint8_t *p;
  LPG_TRY(number(c, 8, what, length));
  LPG_TRY(take(c, *length, what, &p));
  *text = (const char *)p;
  return LPGEMM_SUCCESS;
}

/* ---- pairs ---- */

static lpgemm_status_t skip_array(cursor *c, const char *key) {
  uint64_t type, count;
  const uint8_t *p;
  const char *text;
  LPG_TRY(number(c, 4, "the type of an array", &type));
  LPG_TRY(number(c, 8, "the length of an array", &count));
  LPG_CHECK(type < TYPES && type != TYPE_ARRAY, LPGEMM_CORRUPT_DATA,
            "%.300s: the array \"%.200s\" has elements of type %llu; 0 to 12 but 9 (arrays) are read", c->file, key,
            (unsigned long long)type);
  if (type != TYPE_STRING) { /* divided, not multiplied: count comes from the file */
    LPG_CHECK(count <= (uint64_t)(c->end - c->at) / value_bytes[type], LPGEMM_CORRUPT_DATA,
              "%.300s: the array \"%.200s\" promises %llu elements, and %zu bytes are left", c->file, key,
              (unsigned long long)count, (size_t)(c->end - c->at));
    return take(c, count * value_bytes[type], "an array", &p);
  }
  for (uint64_t i = 0, length; i < count; i++) LPG_TRY(string(c, "a string of an array", &text, &length));
  return LPGEMM_SUCCESS;
}

/* An integer of any width as one number; *is_integer 0 for other values, which are passed over. */
static lpgemm_status_t pair_value(cursor *c, const char *key, uint64_t type, int *is_integer, int64_t *value) {
  const char *text;
  uint64_t bits;
  LPG_CHECK(type < TYPES, LPGEMM_CORRUPT_DATA, "%.300s: the value of \"%.200s\" has type %llu; 0 to 12 are known",
            c->file, key, (unsigned long long)type);
  *is_integer = 0;
  if (type == TYPE_STRING) return string(c, "a string", &text, &bits);
  if (type == TYPE_ARRAY) return skip_array(c, key);
  LPG_TRY(number(c, value_bytes[type], "a value", &bits));
  *is_integer = type <= 5 || type == 10 || type == 11;
  if (type == 1) bits = (uint64_t)(int8_t)bits;
  if (type == 3) bits = (uint64_t)(int16_t)bits;
  if (type == 5) bits = (uint64_t)(int32_t)bits;
  *value = bits > INT64_MAX && type == 10 ? INT64_MAX : (int64_t)bits;
  return LPGEMM_SUCCESS;
}

/* "llama.attention.head_count": whatever the architecture is called. */
static void read_heads(const char *key, int64_t value, lpg_gguf *gguf) {
  const char *end = strrchr(key, '.');
  if (value <= 0 || !end || end - key < 10 || strncmp(end - 10, ".attention", 10) != 0) return;
  if (strcmp(end, ".head_count") == 0) gguf->heads = value;
  if (strcmp(end, ".head_count_kv") == 0) gguf->kv_heads = value;
}

static lpgemm_status_t read_pairs(cursor *c, lpg_memory *memory, uint64_t count, lpg_named *keys, lpg_gguf *gguf,
                                  int64_t *alignment) {
  const struct {
    const char *key;
    int64_t *value;
  } wanted[] = {{"general.alignment", alignment},
                {"split.count", &gguf->split_count},
                {"split.no", &gguf->split_number},
                {"split.tensors.count", &gguf->split_tensors}};
  for (uint64_t i = 0; i < count; i++) {
    const char *text;
    uint64_t length, type;
    int is_integer;
    int64_t value = 0;
    LPG_TRY(string(c, "a key", &text, &length));
    LPG_TRY(lpgemm_i_check_name(c->file, "a key", text, (size_t)length));
    LPG_TRY(lpgemm_i_keep_text(memory, text, (size_t)length, &keys[i].name));
    LPG_TRY(number(c, 4, "the type of a value", &type));
    LPG_TRY(pair_value(c, keys[i].name, type, &is_integer, &value));
    if (is_integer) read_heads(keys[i].name, value, gguf);
    for (size_t w = 0; w < sizeof wanted / sizeof wanted[0]; w++) {
      if (strcmp(keys[i].name, wanted[w].key) != 0) continue;
      LPG_CHECK(is_integer, LPGEMM_CORRUPT_DATA, "%.300s: %s is no integer", c->file, wanted[w].key);
      *wanted[w].value = value;
    }
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t read_all_pairs(cursor *c, lpgemm_file_t file, uint64_t count, lpg_gguf *gguf,
                                      int64_t *alignment) {
  lpg_memory memory = {NULL, file->memory.left, file->memory.owner}; /* for the time of reading */
  const lpg_named **index = NULL;
  void *keys = NULL;
  lpgemm_status_t status = lpgemm_i_grow(&memory, &keys, 0, (size_t)count, sizeof(lpg_named));
  if (status == LPGEMM_SUCCESS) status = read_pairs(c, &memory, count, keys, gguf, alignment);
  if (status == LPGEMM_SUCCESS) {
    status = lpgemm_i_index(&memory, c->file, "values", keys, (size_t)count, sizeof(lpg_named), &index);
  }
  free(index);
  free(keys);
  lpgemm_i_forget(&memory);
  return status;
}

/* ---- tensors ---- */

static lpgemm_status_t tensor_type(const char *file, const char *name, uint64_t number, lpgemm_dtype_t *type) {
  static const struct {
    uint32_t number;
    lpgemm_dtype_t type;
  } plain[] = {{0, LPGEMM_F32},  {1, LPGEMM_F16},  {24, LPGEMM_I8},  {25, LPGEMM_I16},
               {26, LPGEMM_I32}, {27, LPGEMM_I64}, {28, LPGEMM_F64}, {30, LPGEMM_BF16}};
  static const struct {
    uint32_t number;
    const char *what;
  } others[] = {{4, "Q4_2, removed from GGUF"},        {5, "Q4_3, removed from GGUF"},
                {31, "Q4_0_4_4, removed from GGUF"},   {32, "Q4_0_4_8, removed from GGUF"},
                {33, "Q4_0_8_8, removed from GGUF"},   {36, "IQ4_NL_4_4, removed from GGUF, or I2_S of bitnet.cpp"},
                {37, "IQ4_NL_4_8, removed from GGUF"}, {38, "IQ4_NL_8_8, removed from GGUF"}};
  for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
    if (plain[i].number == number) {
      *type = plain[i].type;
      return LPGEMM_SUCCESS;
    }
  }
  *type = number < 256 ? LPGEMM_GGML((uint32_t)number) : 0;
  if (number < 256 && strcmp(lpgemm_dtype_name(*type), "invalid") != 0) return LPGEMM_SUCCESS;
  const char *what = "unknown";
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    if (others[i].number == number) what = others[i].what;
  }
  LPG_CHECK(
      0, LPGEMM_NOT_SUPPORTED,
      "%.300s: tensor \"%.200s\" has GGUF type %llu, which is not a type of this library (%s); requantise the model "
      "to another type",
      file, name, (unsigned long long)number, what);
}

static lpgemm_status_t read_info(cursor *c, lpgemm_file_t file, lpgemm_tensor_t *t, uint64_t *offset) {
  const char *text;
  uint64_t length, dims, type;
  LPG_TRY(string(c, "the name of a tensor", &text, &length));
  LPG_TRY(lpgemm_i_check_name(c->file, "the name of a tensor", text, (size_t)length));
  LPG_TRY(lpgemm_i_keep_text(&file->memory, text, (size_t)length, &t->name));
  LPG_TRY(number(c, 4, "the entry of a tensor", &dims));
  LPG_CHECK(dims <= 4, LPGEMM_CORRUPT_DATA, "%.300s: tensor \"%.200s\" has %llu dimensions; 4 is the most", c->file,
            t->name, (unsigned long long)dims);
  t->dims = (int32_t)dims;
  for (int i = t->dims - 1; i >= 0; i--) { /* the file has columns first */
    uint64_t side;
    LPG_TRY(number(c, 8, "the entry of a tensor", &side));
    LPG_CHECK(side <= INT64_MAX, LPGEMM_SIZE_OVERFLOW,
              "%.300s: dimension %d of tensor \"%.200s\" is %llu; 2^63 - 1 is the most", c->file, t->dims - 1 - i,
              t->name, (unsigned long long)side);
    t->shape[i] = (int64_t)side;
  }
  LPG_TRY(number(c, 4, "the entry of a tensor", &type));
  LPG_TRY(tensor_type(c->file, t->name, type, &t->type));
  return number(c, 8, "the entry of a tensor", offset);
}

/* Offsets are kept in `bytes` until the data's begin is known. */
static lpgemm_status_t place(const char *file, lpgemm_tensor_t *t, const uint8_t *data, uint64_t size,
                             int64_t alignment) {
  const uint64_t offset = t->bytes;
  uint64_t bytes;
  LPG_TRY(lpgemm_i_tensor_bytes(file, t, &bytes));
  LPG_CHECK(offset % (uint64_t)alignment == 0, LPGEMM_CORRUPT_DATA,
            "%.300s: tensor \"%.200s\" lies at offset %llu, which is no multiple of the alignment %lld", file, t->name,
            (unsigned long long)offset, (long long)alignment);
  LPG_CHECK(
      offset <= size && bytes <= size - offset, LPGEMM_CORRUPT_DATA,
      "%.300s: tensor \"%.200s\" has %llu bytes at offset %llu, but the file has %llu bytes of data; fetch it again",
      file, t->name, (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)size);
  t->data = data + offset;
  t->bytes = (size_t)bytes;
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t read_head(cursor *c, uint64_t *tensors, uint64_t *pairs) {
  uint64_t version;
  c->at += MAGIC_BYTES;
  LPG_TRY(number(c, 4, "its head", &version));
  LPG_CHECK(version != 1, LPGEMM_VERSION_MISMATCH,
            "%.300s is GGUF version 1, of 2023, which is not read; convert the model again", c->file);
  LPG_CHECK(version % 65536 != 0, LPGEMM_NOT_SUPPORTED,
            "%.300s is a big-endian GGUF, which is not read; convert it to little-endian", c->file);
  LPG_CHECK(version == 2 || version == 3, LPGEMM_VERSION_MISMATCH, "%.300s is GGUF version %llu; 2 and 3 are read",
            c->file, (unsigned long long)version);
  LPG_TRY(number(c, 8, "its head", tensors));
  LPG_TRY(number(c, 8, "its head", pairs));
  const uint64_t left = (uint64_t)(c->end - c->at);
  LPG_CHECK(*tensors <= LPG_MOST_TENSORS && *tensors <= left / LEAST_INFO, LPGEMM_CORRUPT_DATA,
            "%.300s promises %llu tensors; %zu bytes cannot hold them, or they are more than %d", c->file,
            (unsigned long long)*tensors, (size_t)left, LPG_MOST_TENSORS);
  LPG_CHECK(*pairs <= MOST_PAIRS && *pairs <= left / LEAST_PAIR, LPGEMM_CORRUPT_DATA,
            "%.300s promises %llu values; %zu bytes cannot hold them, or they are more than %d", c->file,
            (unsigned long long)*pairs, (size_t)left, MOST_PAIRS);
  return LPGEMM_SUCCESS;
}

int lpgemm_i_is_gguf(const lpg_map *map) { return map->size >= MAGIC_BYTES && memcmp(map->bytes, "GGUF", 4) == 0; }

lpgemm_status_t lpgemm_i_read_gguf_file(lpgemm_file_t file, const char *name, const lpg_map *map, lpg_gguf *gguf) {
  cursor c = {name, map->bytes, map->bytes + map->size};
  uint64_t count, pairs;
  int64_t alignment = 32;
  *gguf = (lpg_gguf){-1, -1, -1, 0, 0};
  LPG_TRY(read_head(&c, &count, &pairs));
  LPG_TRY(read_all_pairs(&c, file, pairs, gguf, &alignment));
  if (gguf->heads > 0) file->heads = gguf->heads, file->kv_heads = gguf->kv_heads;
  LPG_CHECK(alignment >= 1 && alignment <= MOST_ALIGNMENT && (alignment & (alignment - 1)) == 0, LPGEMM_CORRUPT_DATA,
            "%.300s: general.alignment is %lld; it must be a power of two up to %d", name, (long long)alignment,
            MOST_ALIGNMENT);
  lpgemm_tensor_t *tensors;
  LPG_TRY(lpgemm_i_more_tensors(file, (size_t)count, &tensors));
  for (size_t i = 0; i < count; i++) {
    uint64_t offset;
    LPG_TRY(read_info(&c, file, &tensors[i], &offset));
    tensors[i].bytes = (size_t)offset;
  }
  const uint64_t head = (uint64_t)(c.at - map->bytes), begin = (head + (uint64_t)alignment - 1) & -(uint64_t)alignment;
  /* a file without tensors may end before its padding */
  const uint8_t *data = begin <= map->size ? map->bytes + begin : c.end;
  for (size_t i = 0; i < count; i++) LPG_TRY(place(name, &tensors[i], data, (uint64_t)(c.end - data), alignment));
  return lpgemm_i_check_extents(file, name, tensors, (size_t)count, data, c.end, 0);
}
