/* Models of several files: a folder with shards and their index, and split GGUF files. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "files.h"
#include "json.h"

lpgemm_status_t lpgemm_i_add_map(lpgemm_file_t file, const char *path, lpg_map **map) {
  lpg_map mapped;
  void *array = file->maps;
  LPG_CHECK(file->map_count < LPG_MOST_SHARDS, LPGEMM_SIZE_OVERFLOW, "%.300s has more than %d files", file->name,
            LPG_MOST_SHARDS);
  LPG_TRY(lpgemm_i_grow(&file->memory, &array, file->map_count, file->map_count + 1, sizeof mapped));
  file->maps = array;
  LPG_TRY(lpgemm_i_map(path, &mapped));
  file->memory.left += mapped.size;
  file->maps[file->map_count] = mapped;
  *map = &file->maps[file->map_count++];
  return LPGEMM_SUCCESS;
}

/* ---- a folder ---- */

static int ends_with(const char *text, const char *tail) {
  const size_t length = strlen(text), bytes = strlen(tail);
  return length >= bytes && strcmp(text + length - bytes, tail) == 0;
}

static lpgemm_status_t read_shard(lpgemm_file_t file, const char *folder, const char *name) {
  char path[LPG_FILE_PATH + 256];
  lpg_map *map;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  LPG_TRY(lpgemm_i_add_map(file, path, &map));
  const lpg_map shard = *map; /* the list may move */
  return lpgemm_i_read_safetensors(file, path, &shard);
}

/* A shard lies beside its index: a name with a path in it would open any file of the machine. */
static lpgemm_status_t check_shard_name(const char *index, const char *name) {
  LPG_CHECK(ends_with(name, ".safetensors") && !strchr(name, '/') && name[0] != '.', LPGEMM_CORRUPT_DATA,
            "%.300s names the file \"%.100s\"; a .safetensors file beside it is expected", index, name);
  for (const char *c = name; *c; c++) {
    LPG_CHECK((uint8_t)*c >= ' ' && *c != 0x7f, LPGEMM_CORRUPT_DATA, "%.300s names a file with a control character",
              index);
  }
  return LPGEMM_SUCCESS;
}

typedef struct shard {
  char name[256];
  const uint8_t *begin, *end;
} shard;

typedef struct shards {
  shard *list;
  size_t count, last; /* last: where the search begins, since names come in runs */
} shards;

static shard *find_shard(shards *s, const char *name) {
  for (size_t i = 0; i < s->count; i++) {
    const size_t at = (s->last + i) % s->count;
    if (strcmp(s->list[at].name, name) != 0) continue;
    s->last = at;
    return &s->list[at];
  }
  return NULL;
}

/* Opens every file that the map names, in the order in which it does. */
static lpgemm_status_t open_shards(lpgemm_file_t file, const char *folder, const char *index, lpg_json map, shards *s) {
  char name[sizeof s->list->name];
  lpg_json value;
  size_t entries = 0;
  for (lpg_json walk = lpgemm_i_json_walk(map); lpgemm_i_json_next(&walk, NULL, &value); entries++) {
    LPG_CHECK(lpgemm_i_json_text(value, name, sizeof name) > 0, LPGEMM_CORRUPT_DATA,
              "%.300s: entry %zu of weight_map is no name of a file", index, entries);
    if (find_shard(s, name)) continue;
    LPG_TRY(check_shard_name(index, name));
    void *list = s->list;
    LPG_TRY(lpgemm_i_grow(&file->memory, &list, s->count, s->count + 1, sizeof *s->list));
    s->list = list;
    LPG_TRY(read_shard(file, folder, name));
    shard *opened = &s->list[s->count++];
    memcpy(opened->name, name, sizeof name);
    opened->begin = file->maps[file->map_count - 1].bytes;
    opened->end = opened->begin + file->maps[file->map_count - 1].size;
  }
  LPG_CHECK(s->count > 0, LPGEMM_CORRUPT_DATA, "%.300s has no weight_map, or an empty one; fetch it again", index);
  return LPGEMM_SUCCESS;
}

/* Every tensor that the map promises is in the file that it names. */
static lpgemm_status_t check_promises(lpgemm_file_t file, const char *index, lpg_json map, shards *s) {
  char name[LPG_MOST_NAME + 1], where[sizeof s->list->name];
  lpg_json key, value;
  LPG_TRY(lpgemm_i_index(&file->memory, file->name, "tensors", file->tensors, file->tensor_count, sizeof *file->tensors,
                         &file->tensor_index));
  for (lpg_json walk = lpgemm_i_json_walk(map); lpgemm_i_json_next(&walk, &key, &value);) {
    LPG_CHECK(lpgemm_i_json_text(key, name, sizeof name) > 0 && lpgemm_i_json_text(value, where, sizeof where) > 0,
              LPGEMM_CORRUPT_DATA, "%.300s has a tensor whose name is empty or has more than %d bytes", index,
              LPG_MOST_NAME);
    const lpgemm_tensor_t *t = lpgemm_i_look_up(file->tensor_index, file->tensor_count, name);
    const shard *in = find_shard(s, where);
    LPG_CHECK(t && in && (const uint8_t *)t->data >= in->begin && (const uint8_t *)t->data <= in->end,
              LPGEMM_CORRUPT_DATA, "%.250s says that \"%.150s\" lies in %.80s, but it does not; fetch both again",
              index, name, where);
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t open_indexed(lpgemm_file_t file, const char *folder, const char *index) {
  lpg_map *map;
  lpg_json root;
  LPG_TRY(lpgemm_i_add_map(file, index, &map));
  LPG_CHECK(map->size <= LPG_MOST_JSON, LPGEMM_SIZE_OVERFLOW, "%.300s has %zu bytes; an index has 100 MiB at most",
            index, map->size);
  LPG_TRY(lpgemm_i_json_check(index, (const char *)map->bytes, map->size, &root));
  const lpg_json weight_map = lpgemm_i_json_member(root, "weight_map");
  LPG_CHECK(lpgemm_i_json_kind(weight_map) == '{', LPGEMM_CORRUPT_DATA, "%.300s has no weight_map; fetch it again",
            index);
  shards s = {0};
  lpgemm_status_t status = open_shards(file, folder, index, weight_map, &s);
  if (status == LPGEMM_SUCCESS) status = check_promises(file, index, weight_map, &s);
  free(s.list);
  return status;
}

/* The only .safetensors file of a folder, and how many there are; *others says what else there is. */
static lpgemm_status_t only_file(const char *folder, char name[256], int *count, const char **others) {
  DIR *directory = opendir(folder);
  *count = 0;
  *others = "";
  LPG_CHECK(directory, LPGEMM_IO_ERROR, "%.300s cannot be opened: %s", folder, strerror(errno));
  for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    if (ends_with(entry->d_name, ".gguf")) *others = "; give its .gguf file itself";
    if (ends_with(entry->d_name, ".bin") || ends_with(entry->d_name, ".pt") || ends_with(entry->d_name, ".pth")) {
      if (!**others) *others = "; pickled tensors (.bin, .pt) are not read: save them as safetensors";
    }
    if (!ends_with(entry->d_name, ".safetensors") || entry->d_name[0] == '.') continue;
    snprintf(name, 256, "%s", entry->d_name);
    ++*count;
  }
  closedir(directory);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_open_folder(lpgemm_file_t file, const char *path) {
  char index[LPG_FILE_PATH + 64], name[256];
  const char *others;
  int count;
  file->kind = LPG_FILE_SAFETENSORS;
  snprintf(index, sizeof index, "%s/model.safetensors.index.json", path);
  if (lpgemm_i_exists(index)) return open_indexed(file, path, index);
  snprintf(index, sizeof index, "%s/model.safetensors", path);
  if (lpgemm_i_exists(index)) return read_shard(file, path, "model.safetensors");
  LPG_TRY(only_file(path, name, &count, &others));
  LPG_CHECK(count > 0, LPGEMM_IO_ERROR, "%.300s has no .safetensors file%s", path, others);
  LPG_CHECK(count == 1, LPGEMM_IO_ERROR,
            "%.300s has %d .safetensors files and no model.safetensors.index.json; fetch the index, or give one file",
            path, count);
  return read_shard(file, path, name);
}

/* ---- split GGUF files: NAME-00001-of-00003.gguf ---- */

static lpgemm_status_t read_split(lpgemm_file_t file, const char *path, const lpg_gguf *first, int64_t number) {
  lpg_map *map;
  lpg_gguf gguf;
  LPG_TRY(lpgemm_i_add_map(file, path, &map));
  const lpg_map split = *map;
  LPG_CHECK(lpgemm_i_is_gguf(&split), LPGEMM_CORRUPT_DATA, "%.300s is no GGUF; fetch it again", path);
  LPG_TRY(lpgemm_i_read_gguf_file(file, path, &split, &gguf));
  LPG_CHECK(gguf.split_number == number && gguf.split_count == first->split_count, LPGEMM_CORRUPT_DATA,
            "%.300s says that it is part %lld of %lld, but its name says %lld of %lld; fetch all parts again", path,
            (long long)gguf.split_number + 1, (long long)gguf.split_count, (long long)number + 1,
            (long long)first->split_count);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_open_splits(lpgemm_file_t file, const char *path, const lpg_gguf *first) {
  char tail[64], other[LPG_FILE_PATH + 64];
  LPG_CHECK(first->split_count <= LPG_MOST_SHARDS, LPGEMM_CORRUPT_DATA,
            "%.300s says that it is one of %lld files; %d are the most", path, (long long)first->split_count,
            LPG_MOST_SHARDS);
  LPG_CHECK(first->split_number == 0, LPGEMM_INVALID_ARGUMENT, "%.300s is part %lld of %lld; give the first one", path,
            (long long)first->split_number + 1, (long long)first->split_count);
  const int length = snprintf(tail, sizeof tail, "-%05d-of-%05d.gguf", 1, (int)first->split_count);
  LPG_CHECK(ends_with(path, tail), LPGEMM_INVALID_ARGUMENT,
            "%.300s is the first of %lld files; its name must end in %s, so that the others can be found", path,
            (long long)first->split_count, tail);
  for (int64_t i = 1; i < first->split_count; i++) {
    snprintf(other, sizeof other, "%.*s-%05d-of-%05d.gguf", (int)strlen(path) - length, path, (int)i + 1,
             (int)first->split_count);
    LPG_TRY(read_split(file, other, first, i));
  }
  LPG_CHECK(first->split_tensors < 0 || (uint64_t)first->split_tensors == file->tensor_count, LPGEMM_CORRUPT_DATA,
            "%.300s promises %lld tensors in all parts, but they have %zu; fetch them again", path,
            (long long)first->split_tensors, file->tensor_count);
  return LPGEMM_SUCCESS;
}
