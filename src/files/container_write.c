/* Writes containers: into a file beside the target, which gets its name when it is whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "container.h"

struct lpgemm_container {
  char path[LPG_FILE_PATH], temporary[LPG_FILE_PATH + 32];
  int descriptor; /* -1: none */
  int overwrite;
  uint64_t at; /* bytes written */
  uint8_t *index;
  size_t index_bytes, index_room;
  const char **names;
  lpg_memory memory;
  size_t count, room;
  lpgemm_status_t failed; /* of an earlier call: what was written is of no use */
};

static lpgemm_status_t check_container(lpgemm_container_t container) {
  LPG_CHECK(container, LPGEMM_NULL_POINTER, "container is NULL; make one with lpgemm_container_create()");
  LPG_CHECK(lpgemm_i_is_live(container, LPG_OBJECT_CONTAINER), LPGEMM_INVALID_HANDLE,
            "container %p is no live container: it was destroyed, or lpgemm_container_create() never made it",
            (void *)container);
  LPG_CHECK(container->failed == LPGEMM_SUCCESS, container->failed,
            "%.300s: an earlier call failed, so the container cannot be completed; destroy it and start again",
            container->path);
  LPG_CHECK(container->descriptor >= 0, LPGEMM_INVALID_ARGUMENT, "%.300s is finished already; make another container",
            container->path);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t write_all(lpgemm_container_t c, const void *data, uint64_t bytes) {
  const uint8_t *p = data;
  while (bytes > 0) {
    const ssize_t written = write(c->descriptor, p, bytes < (1u << 30) ? (size_t)bytes : (size_t)1 << 30);
    if (written < 0 && errno == EINTR) continue;
    LPG_CHECK(written > 0, LPGEMM_IO_ERROR, "%.300s cannot be written: %s", c->temporary, strerror(errno));
    p += written;
    bytes -= (uint64_t)written;
    c->at += (uint64_t)written;
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t write_padding(lpgemm_container_t c) {
  static const uint8_t zeros[LPG_CONTAINER_TENSOR_ALIGN];
  return write_all(c, zeros, -c->at % LPG_CONTAINER_TENSOR_ALIGN);
}

/* Room for one more entry with a name of that length. */
static lpgemm_status_t make_room(lpgemm_container_t c, size_t entry_bytes) {
  if (c->index_bytes + entry_bytes > c->index_room) {
    const size_t room = 2 * (c->index_room + entry_bytes);
    uint8_t *larger = realloc(c->index, room);
    LPG_CHECK(larger, LPGEMM_OUT_OF_MEMORY, "no memory for the index of %.300s", c->path);
    c->index = larger;
    c->index_room = room;
  }
  if (c->count == c->room) {
    const size_t room = 2 * c->room + 64;
    const char **larger = realloc((void *)c->names, room * sizeof *larger);
    LPG_CHECK(larger, LPGEMM_OUT_OF_MEMORY, "no memory for the index of %.300s", c->path);
    c->names = larger;
    c->room = room;
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t add(lpgemm_container_t c, const lpgemm_tensor_t *t) {
  const size_t length = strlen(t->name), padded = (length + 7) / 8 * 8;
  LPG_CHECK(c->count < LPG_MOST_TENSORS, LPGEMM_SIZE_OVERFLOW, "%.300s has %d tensors already; that is the most",
            c->path, LPG_MOST_TENSORS);
  LPG_TRY(make_room(c, LPG_CONTAINER_ENTRY + padded));
  LPG_TRY(lpgemm_i_keep_text(&c->memory, t->name, length, &c->names[c->count]));
  LPG_TRY(write_padding(c));
  uint8_t *entry = c->index + c->index_bytes;
  memset(entry, 0, LPG_CONTAINER_ENTRY + padded);
  lpg_put(entry + LPG_ENTRY_AT_OFFSET, 8, c->at);
  lpg_put(entry + LPG_ENTRY_AT_BYTES, 8, t->bytes);
  lpg_put(entry + LPG_ENTRY_AT_HASH, 8, lpg_container_hash(t->data, t->bytes));
  lpg_put(entry + LPG_ENTRY_AT_TYPE, 4, t->type);
  lpg_put(entry + LPG_ENTRY_AT_DIMS, 4, (uint64_t)t->dims);
  for (int i = 0; i < t->dims; i++) lpg_put(entry + LPG_ENTRY_AT_SHAPE + 8 * i, 8, (uint64_t)t->shape[i]);
  lpg_put(entry + LPG_ENTRY_AT_NAME_BYTES, 4, length);
  memcpy(entry + LPG_CONTAINER_ENTRY, t->name, length);
  LPG_TRY(write_all(c, t->data, t->bytes));
  c->index_bytes += LPG_CONTAINER_ENTRY + padded;
  c->count++;
  return LPGEMM_SUCCESS;
}

static void release(lpgemm_container_t c) {
  if (c->descriptor >= 0) {
    close(c->descriptor);
    unlink(c->temporary);
  }
  free(c->index);
  free((void *)c->names);
  lpgemm_i_forget(&c->memory);
  lpgemm_i_retire(c);
}

/* ---- the calls ---- */

lpgemm_status_t lpgemm_container_create(const char *path, int overwrite, lpgemm_container_t *container) {
  static atomic_uint containers;
  LPG_CHECK(path, LPGEMM_NULL_POINTER, "path is NULL");
  LPG_CHECK(container, LPGEMM_NULL_POINTER, "container is NULL");
  const size_t length = strlen(path);
  LPG_CHECK(length > 0 && length < LPG_FILE_PATH, LPGEMM_INVALID_ARGUMENT,
            "path has %zu characters; it may have 1 to %d", length, LPG_FILE_PATH - 1);
  struct stat there; /* a link to nothing is a name that is taken, too */
  LPG_CHECK(overwrite || lstat(path, &there) != 0, LPGEMM_IO_ERROR,
            "%.300s is there already; remove it, or allow that it is overwritten", path);
  lpgemm_container_t c = calloc(1, sizeof *c);
  LPG_CHECK(c, LPGEMM_OUT_OF_MEMORY, "no memory for a container");
  memcpy(c->path, path, length + 1);
  snprintf(c->temporary, sizeof c->temporary, "%s.%ld.%u.tmp", path, (long)getpid(), atomic_fetch_add(&containers, 1));
  c->overwrite = overwrite;
  c->memory = (lpg_memory){NULL, SIZE_MAX, c->path};
  c->descriptor = open(c->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  const int error = errno;
  lpgemm_status_t status = LPGEMM_SUCCESS;
  if (c->descriptor < 0) {
    status = lpgemm_i_fail(LPGEMM_IO_ERROR, __FILE__, __LINE__, "%.300s cannot be written: %s", path, strerror(error));
  }
  const uint8_t header[LPG_CONTAINER_HEADER] = {0}; /* the true one comes last */
  if (status == LPGEMM_SUCCESS) status = write_all(c, header, sizeof header);
  if (status == LPGEMM_SUCCESS) status = lpgemm_i_live_add(c, LPG_OBJECT_CONTAINER);
  if (status != LPGEMM_SUCCESS) {
    release(c);
    return status;
  }
  *container = c;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_container_add_tensor(lpgemm_container_t container, const lpgemm_tensor_t *tensor) {
  LPG_TRY(check_container(container));
  LPG_CHECK(tensor && tensor->name, LPGEMM_NULL_POINTER, "tensor%s is NULL", tensor ? "->name" : "");
  LPG_CHECK(tensor->data || tensor->bytes == 0, LPGEMM_NULL_POINTER, "tensor->data is NULL");
  LPG_TRY(lpgemm_i_check_name("tensor->name", "the name of a tensor", tensor->name, strlen(tensor->name)));
  LPG_CHECK(strcmp(lpgemm_dtype_name(tensor->type), "invalid") != 0 && tensor->type != 0, LPGEMM_INVALID_TYPE,
            "tensor->type is 0x%x, which is no type", (unsigned)tensor->type);
  LPG_CHECK(tensor->dims >= 0 && tensor->dims <= 4, LPGEMM_INVALID_ARGUMENT, "tensor->dims is %d; it must be 0 to 4",
            tensor->dims);
  for (int i = 0; i < tensor->dims; i++) {
    LPG_CHECK(tensor->shape[i] >= 0, LPGEMM_INVALID_SIZE, "tensor->shape[%d] is %lld; it must not be negative", i,
              (long long)tensor->shape[i]);
  }
  uint64_t bytes;
  LPG_TRY(lpgemm_i_tensor_bytes("tensor", tensor, &bytes));
  LPG_CHECK(bytes == tensor->bytes, LPGEMM_INVALID_SIZE, "tensor->bytes is %zu, but type and shape make %llu",
            tensor->bytes, (unsigned long long)bytes);
  return container->failed = add(container, tensor);
}

lpgemm_status_t lpgemm_container_add_weights(lpgemm_container_t container, const char *name, lpgemm_handle_t handle,
                                             lpgemm_weights_t weights) {
  LPG_TRY(check_container(container));
  LPG_CHECK(name, LPGEMM_NULL_POINTER, "name is NULL");
  LPG_TRY(lpgemm_i_check_name("name", "the name of a tensor", name, strlen(name)));
  LPG_TRY(lpgemm_i_check_pair(handle, weights));
  lpgemm_weights_info_t info = {.size = sizeof info};
  LPG_TRY(lpgemm_weights_info(weights, &info));
  lpgemm_tensor_t blob = {.name = name, .type = LPGEMM_BLOB, .dims = 1, .bytes = info.packed_bytes};
  blob.shape[0] = (int64_t)info.packed_bytes;
  blob.data = info.memory;
  void *copy = NULL;
  if (info.backend != LPGEMM_BACKEND_CPU) {
    copy = malloc(info.packed_bytes);
    LPG_CHECK(copy, LPGEMM_OUT_OF_MEMORY, "no memory for a copy of \"%.200s\": %zu bytes", name, info.packed_bytes);
    lpgemm_status_t status = lpgemm_serialize(handle, weights, copy, info.packed_bytes);
    blob.data = copy;
    if (status != LPGEMM_SUCCESS) {
      free(copy);
      return status;
    }
  }
  container->failed = add(container, &blob);
  free(copy);
  return container->failed;
}

static lpgemm_status_t write_head(lpgemm_container_t c) {
  LPG_TRY(write_padding(c));
  const uint64_t index = c->at;
  LPG_TRY(write_all(c, c->index, c->index_bytes));
  uint8_t h[LPG_CONTAINER_HEADER] = LPG_CONTAINER_MAGIC;
  lpg_put(h + LPG_CONTAINER_AT_VERSION, 4, LPG_CONTAINER_VERSION);
  lpg_put(h + LPG_CONTAINER_AT_ENTRIES, 8, c->count);
  lpg_put(h + LPG_CONTAINER_AT_INDEX, 8, index);
  lpg_put(h + LPG_CONTAINER_AT_INDEX_BYTES, 8, c->index_bytes);
  lpg_put(h + LPG_CONTAINER_AT_INDEX_HASH, 8, lpgemm_i_hash(c->index, c->index_bytes));
  lpg_put(h + LPG_CONTAINER_AT_BYTES, 8, c->at);
  lpg_put(h + LPG_CONTAINER_AT_HASH, 8, lpgemm_i_hash(h, LPG_CONTAINER_AT_HASH));
  LPG_CHECK(pwrite(c->descriptor, h, sizeof h, 0) == (ssize_t)sizeof h && fsync(c->descriptor) == 0, LPGEMM_IO_ERROR,
            "%.300s cannot be written: %s", c->temporary, strerror(errno));
  return LPGEMM_SUCCESS;
}

/* Gives the file its name. A link, unlike a rename, never replaces a file that appeared meanwhile; some file systems
 * have none. */
static lpgemm_status_t give_name(lpgemm_container_t c) {
  if (!c->overwrite && link(c->temporary, c->path) == 0) {
    unlink(c->temporary);
    return LPGEMM_SUCCESS;
  }
  LPG_CHECK(c->overwrite || errno != EEXIST, LPGEMM_IO_ERROR,
            "%.300s has appeared meanwhile; remove it, or allow that it is overwritten", c->path);
  LPG_CHECK(rename(c->temporary, c->path) == 0, LPGEMM_IO_ERROR, "%.300s cannot be written: %s", c->path,
            strerror(errno));
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_container_finish(lpgemm_container_t container) {
  LPG_TRY(check_container(container));
  const lpg_named **index = NULL;
  lpgemm_status_t status = lpgemm_i_index(&container->memory, container->path, "tensors", container->names,
                                          container->count, sizeof *container->names, &index);
  free(index);
  if (status == LPGEMM_SUCCESS) status = write_head(container);
  if (status == LPGEMM_SUCCESS) status = give_name(container);
  container->failed = status;
  if (status != LPGEMM_SUCCESS) return status;
  const int closed = close(container->descriptor);
  container->descriptor = -1;
  LPG_CHECK(closed == 0, LPGEMM_IO_ERROR, "%.300s cannot be written: %s", container->path, strerror(errno));
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_container_destroy(lpgemm_container_t container) {
  if (!container) return LPGEMM_SUCCESS;
  LPG_CHECK(lpgemm_i_live_remove(container, LPG_OBJECT_CONTAINER), LPGEMM_INVALID_HANDLE,
            "container %p is no live container: it was destroyed, or lpgemm_container_create() never made it",
            (void *)container);
  release(container);
  return LPGEMM_SUCCESS;
}
