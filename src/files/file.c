/* The public calls: opening, looking up, closing. */
#include <stdlib.h>
#include <sys/stat.h>

#include "container.h"

static lpgemm_status_t check_file(lpgemm_file_t file) {
  LPG_CHECK(file, LPGEMM_NULL_POINTER, "file is NULL; open one with lpgemm_file_open()");
  LPG_CHECK(lpgemm_i_is_live(file, LPG_OBJECT_FILE), LPGEMM_INVALID_HANDLE,
            "file %p is no open file: it was closed, or lpgemm_file_open() never opened it", (void *)file);
  return LPGEMM_SUCCESS;
}

/* ---- opening ---- */

static void release(lpgemm_file_t file) {
  for (size_t i = 0; i < file->map_count; i++) lpgemm_i_unmap(&file->maps[i]);
  free(file->maps);
  free(file->tensors);
  free(file->layers);
  free(file->tensor_index);
  free(file->layer_index);
  lpgemm_i_forget(&file->memory);
  lpgemm_i_retire(file);
}

/* What kind of file it is its first bytes say. path: NULL for one in memory. */
static lpgemm_status_t read_one(lpgemm_file_t file, const lpg_map *map, const char *path) {
  lpg_gguf gguf;
  if (lpgemm_i_is_container(map)) {
    file->kind = LPG_FILE_CONTAINER;
    return lpgemm_i_read_container(file, file->name, map);
  }
  if (!lpgemm_i_is_gguf(map)) {
    file->kind = LPG_FILE_SAFETENSORS;
    return lpgemm_i_read_safetensors(file, file->name, map);
  }
  file->kind = LPG_FILE_GGUF;
  LPG_TRY(lpgemm_i_read_gguf_file(file, file->name, map, &gguf));
  if (gguf.split_count <= 1) return LPGEMM_SUCCESS;
  LPG_CHECK(path, LPGEMM_NOT_SUPPORTED, "%.300s is one of %lld GGUF files; open the first of them by its path",
            file->name, (long long)gguf.split_count);
  return lpgemm_i_open_splits(file, path, &gguf);
}

/* Names and layers, after all tensors are there. */
static lpgemm_status_t complete(lpgemm_file_t file, const char *folder) {
  if (!file->tensor_index) {
    LPG_TRY(lpgemm_i_index(&file->memory, file->name, "tensors", file->tensors, file->tensor_count,
                           sizeof *file->tensors, &file->tensor_index));
  }
  if (file->kind == LPG_FILE_SAFETENSORS) LPG_TRY(lpgemm_i_safetensors_layers(file, folder));
  if (file->kind == LPG_FILE_GGUF) LPG_TRY(lpgemm_i_gguf_layers(file));
  LPG_TRY(lpgemm_i_index(&file->memory, file->name, "layers", file->layers, file->layer_count, sizeof *file->layers,
                         &file->layer_index));
  return lpgemm_i_live_add(file, LPG_OBJECT_FILE);
}

static lpgemm_status_t open_path(lpgemm_file_t file, const char *path) {
  struct stat status;
  char folder[LPG_FILE_PATH] = ".";
  if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
    LPG_TRY(lpgemm_i_open_folder(file, path));
    return complete(file, path);
  }
  lpg_map *map;
  LPG_TRY(lpgemm_i_add_map(file, path, &map));
  const lpg_map opened = *map;
  LPG_TRY(read_one(file, &opened, path));
  const char *slash = strrchr(path, '/');
  if (slash) {
    memcpy(folder, path, (size_t)(slash - path));
    folder[slash - path] = 0;
  }
  return complete(file, slash == path ? "/" : folder);
}

static lpgemm_status_t open_memory(lpgemm_file_t file, const void *bytes, size_t size) {
  const lpg_map map = {bytes, size, 0};
  file->memory.left += size;
  LPG_TRY(read_one(file, &map, NULL));
  return complete(file, NULL);
}

static lpgemm_file_t make_file(const char *name) {
  lpgemm_file_t file = calloc(1, sizeof *file);
  if (!file) return NULL;
  memcpy(file->name, name, strlen(name) + 1);
  file->memory = (lpg_memory){NULL, LPG_FILES_SLACK - sizeof *file, file->name};
  return file;
}

lpgemm_status_t lpgemm_file_open(const char *path, lpgemm_file_t *file) {
  LPG_CHECK(path, LPGEMM_NULL_POINTER, "path is NULL");
  LPG_CHECK(file, LPGEMM_NULL_POINTER, "file is NULL");
  const size_t length = strlen(path);
  LPG_CHECK(length > 0 && length < LPG_FILE_PATH, LPGEMM_INVALID_ARGUMENT,
            "path has %zu characters; it may have 1 to %d", length, LPG_FILE_PATH - 1);
  lpgemm_file_t opened = make_file(path);
  LPG_CHECK(opened, LPGEMM_OUT_OF_MEMORY, "no memory for a file");
  const lpgemm_status_t status = open_path(opened, path);
  if (status != LPGEMM_SUCCESS) {
    release(opened);
    return status;
  }
  *file = opened;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_file_parse(const void *bytes, size_t size, lpgemm_file_t *file) {
  LPG_CHECK(bytes, LPGEMM_NULL_POINTER, "bytes is NULL");
  LPG_CHECK(file, LPGEMM_NULL_POINTER, "file is NULL");
  LPG_CHECK(size <= SIZE_MAX / 4, LPGEMM_SIZE_OVERFLOW, "size is %zu, which no memory has", size);
  lpgemm_file_t opened = make_file("the file in memory");
  LPG_CHECK(opened, LPGEMM_OUT_OF_MEMORY, "no memory for a file");
  const lpgemm_status_t status = open_memory(opened, bytes, size);
  if (status != LPGEMM_SUCCESS) {
    release(opened);
    return status;
  }
  *file = opened;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_file_close(lpgemm_file_t file) {
  if (!file) return LPGEMM_SUCCESS;
  LPG_CHECK(lpgemm_i_live_remove(file, LPG_OBJECT_FILE), LPGEMM_INVALID_HANDLE,
            "file %p is no open file: it was closed, or lpgemm_file_open() never opened it", (void *)file);
  release(file);
  return LPGEMM_SUCCESS;
}

/* ---- the model ---- */

lpgemm_status_t lpgemm_file_heads(lpgemm_file_t file, int64_t *heads, int64_t *kv_heads) {
  LPG_TRY(check_file(file));
  if (heads) *heads = file->heads;
  if (kv_heads) *kv_heads = file->kv_heads;
  return LPGEMM_SUCCESS;
}

/* ---- tensors ---- */

lpgemm_status_t lpgemm_file_counts(lpgemm_file_t file, size_t *tensors, size_t *layers) {
  LPG_TRY(check_file(file));
  if (tensors) *tensors = file->tensor_count;
  if (layers) *layers = file->layer_count;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_file_tensor(lpgemm_file_t file, size_t i, lpgemm_tensor_t *tensor) {
  LPG_TRY(check_file(file));
  LPG_CHECK(tensor, LPGEMM_NULL_POINTER, "tensor is NULL");
  LPG_CHECK(i < file->tensor_count, LPGEMM_INVALID_ARGUMENT, "i is %zu, but %.300s has %zu tensors", i, file->name,
            file->tensor_count);
  *tensor = file->tensors[i];
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_file_find(lpgemm_file_t file, const char *name, lpgemm_tensor_t *tensor) {
  LPG_TRY(check_file(file));
  LPG_CHECK(name, LPGEMM_NULL_POINTER, "name is NULL");
  LPG_CHECK(tensor, LPGEMM_NULL_POINTER, "tensor is NULL");
  const lpgemm_tensor_t *found = lpgemm_i_look_up(file->tensor_index, file->tensor_count, name);
  LPG_CHECK(found, LPGEMM_INVALID_ARGUMENT, "%.300s has no tensor \"%.200s\"", file->name, name);
  *tensor = *found;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_file_check(lpgemm_file_t file, size_t i) {
  LPG_TRY(check_file(file));
  LPG_CHECK(file->kind == LPG_FILE_CONTAINER, LPGEMM_NOT_SUPPORTED,
            "%.300s is no container of lpgemm-convert; only those have hashes", file->name);
  LPG_CHECK(i < file->tensor_count, LPGEMM_INVALID_ARGUMENT, "i is %zu, but %.300s has %zu tensors", i, file->name,
            file->tensor_count);
  const lpgemm_tensor_t *t = &file->tensors[i];
  LPG_CHECK(lpg_container_hash(t->data, t->bytes) == file->hashes[i], LPGEMM_CORRUPT_DATA,
            "%.300s: the bytes of \"%.200s\" have changed since they were written; convert the model again", file->name,
            t->name);
  return LPGEMM_SUCCESS;
}

/* ---- layers ---- */

lpgemm_status_t lpgemm_file_layer_name(lpgemm_file_t file, size_t i, const char **name) {
  LPG_TRY(check_file(file));
  LPG_CHECK(name, LPGEMM_NULL_POINTER, "name is NULL");
  LPG_CHECK(i < file->layer_count, LPGEMM_INVALID_ARGUMENT, "i is %zu, but %.300s has %zu layers", i, file->name,
            file->layer_count);
  *name = file->layers[i].name;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_file_layer(lpgemm_file_t file, const char *name, lpgemm_import_t *import) {
  LPG_TRY(check_file(file));
  LPG_CHECK(name, LPGEMM_NULL_POINTER, "name is NULL");
  LPG_CHECK(import, LPGEMM_NULL_POINTER, "import is NULL");
  lpgemm_import_t found;
  LPG_TRY(lpgemm_i_copy_struct(&found, sizeof found, sizeof found, import, "import"));
  const lpg_layer *layer = lpgemm_i_look_up(file->layer_index, file->layer_count, name);
  LPG_CHECK(layer, LPGEMM_INVALID_ARGUMENT, "%.300s has no quantised layer \"%.200s\"%s", file->name, name,
            file->kind == LPG_FILE_CONTAINER ? ": a container has packed matrices, for lpgemm_deserialize()"
                                             : "; lpgemm_file_layer_name() has the names, which end without .weight");
  LPG_CHECK(!layer->refusal, LPGEMM_NOT_SUPPORTED, "%.200s: layer \"%.150s\": %s", file->name, name, layer->refusal);
  const size_t size = found.size;
  found = (lpgemm_import_t){.size = size, .format = layer->format, .tensors = layer->tensors, .count = layer->count};
  found.bits = layer->bits, found.group_k = layer->group_k, found.expert = layer->expert;
  *import = found;
  return LPGEMM_SUCCESS;
}
