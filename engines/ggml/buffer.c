/* Buffers in which tensors of block types lie packed, in memory of the host or of a GPU.
 *
 * A tensor is packed when it is written and turned back into blocks when it is read, which llama.cpp never does. Types
 * that are expanded when they are packed have no way back: their blocks are kept behind the packed matrix. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "module.h"

enum { ALIGNMENT = 256, MOST_EXPERTS = 4096 };

/* What `extra` of a packed tensor points to; a list, so that the buffer can free them. */
typedef struct packed {
  lpgemm_weights_t weights;
  size_t bytes;  /* of each matrix */
  char *headers; /* of a stack that the host cannot read: theirs, one after the other */
  struct packed *next;
} packed;

typedef struct memory {
  const lpgemm_ggml_place *place;
  char *base;
  packed *first;
  int threads;
  lpgemm_handle_t handle; /* that packs, for one thread at a time; made for the first packed tensor */
  pthread_mutex_t lock;
} memory;

static size_t padded(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static memory *memory_of(const struct ggml_tensor *tensor) { return tensor->buffer->context; }

/* ---- blocks and packed matrices ---- */

static bool is_expanded(enum ggml_type type) {
  switch (type) {
    case GGML_TYPE_IQ1_S:
    case GGML_TYPE_IQ1_M:
    case GGML_TYPE_IQ2_XXS:
    case GGML_TYPE_IQ2_XS:
    case GGML_TYPE_IQ2_S:
    case GGML_TYPE_IQ3_XXS:
    case GGML_TYPE_IQ3_S:
    case GGML_TYPE_TQ1_0: return true;
    default: return false;
  }
}

static int64_t count_matrices(const struct ggml_tensor *tensor) { return tensor->ne[2] * tensor->ne[3]; }

/* Matrix `i` of the blocks of a tensor. */
static lpgemm_tensor_t blocks_of(const struct ggml_tensor *tensor, const void *blocks, int64_t i) {
  const size_t bytes = ggml_row_size(tensor->type, tensor->ne[0]) * (size_t)tensor->ne[1];
  return (lpgemm_tensor_t){.name = "weight",
                           .type = LPGEMM_GGML((uint32_t)tensor->type),
                           .dims = 2,
                           .shape = {tensor->ne[1], tensor->ne[0]},
                           .data = (const char *)blocks + (size_t)i * bytes,
                           .bytes = bytes};
}

static bool describe(const struct ggml_tensor *tensor, lpgemm_weight_desc_t *desc) {
  const lpgemm_tensor_t blocks = blocks_of(tensor, tensor, 0); /* an address that is not read */
  const lpgemm_import_t part = {.size = sizeof part, .format = LPGEMM_FORMAT_GGUF, .tensors = &blocks, .count = 1};
  *desc = (lpgemm_weight_desc_t){.size = sizeof *desc};
  if (lpgemm_import_desc(&part, 1, desc) != LPGEMM_SUCCESS) return false;
  if (count_matrices(tensor) > 1) desc->experts = (int32_t)count_matrices(tensor);
  return true;
}

bool lpgemm_ggml_is_packed(const struct ggml_tensor *tensor) {
  lpgemm_weight_desc_t desc;
  return ggml_is_quantized(tensor->type) && !tensor->view_src && ggml_is_contiguous(tensor) &&
         count_matrices(tensor) <= MOST_EXPERTS && !ggml_is_empty(tensor) && describe(tensor, &desc);
}

lpgemm_weights_t lpgemm_ggml_weights(const struct ggml_tensor *tensor) {
  const packed *p = tensor->extra;
  return p ? p->weights : NULL;
}

static size_t packed_bytes(const struct ggml_tensor *tensor) {
  lpgemm_weight_desc_t desc;
  size_t bytes;
  if (!describe(tensor, &desc) || lpgemm_packed_size(&desc, &bytes) != LPGEMM_SUCCESS) {
    lpgemm_ggml_failed("describing", tensor);
    GGML_ABORT("lpgemm: a tensor that was packable is not");
  }
  return bytes;
}

/* Where the blocks of an expanded type are kept. */
static char *kept_blocks(const struct ggml_tensor *tensor) {
  return (char *)tensor->data + padded(packed_bytes(tensor));
}

lpgemm_status_t lpgemm_ggml_matrix(lpgemm_handle_t handle, const struct ggml_tensor *tensor, int64_t i,
                                   lpgemm_ggml_storage *storage, lpgemm_weights_t *matrix) {
  const packed *p = tensor->extra;
  const size_t header_bytes = p->headers ? LPGEMM_HEADER_BYTES : 0;
  return lpgemm_weights_from_blob(handle, p->headers ? p->headers + i * LPGEMM_HEADER_BYTES : NULL, header_bytes,
                                  (char *)tensor->data + (size_t)i * p->bytes, p->bytes, storage, sizeof *storage,
                                  matrix);
}

/* A stack is complete: its matrices can be multiplied alone too. */
static lpgemm_status_t open_matrices(lpgemm_handle_t handle, const struct ggml_tensor *tensor, packed *p) {
  const lpgemm_ggml_place *place = memory_of(tensor)->place;
  const int64_t count = count_matrices(tensor);
  lpgemm_ggml_storage storage;
  lpgemm_weights_t matrix = NULL;
  if (place->gpu >= 0) {
    p->headers = malloc((size_t)count * LPGEMM_HEADER_BYTES);
    if (!p->headers) return LPGEMM_OUT_OF_MEMORY;
    for (int64_t i = 0; i < count; i++) {
      place->copy(place, p->headers + i * LPGEMM_HEADER_BYTES, (char *)tensor->data + (size_t)i * p->bytes,
                  LPGEMM_HEADER_BYTES);
    }
  }
  lpgemm_status_t status = lpgemm_ggml_matrix(handle, tensor, 0, &storage, &matrix);
  if (status == LPGEMM_SUCCESS) status = lpgemm_prepare(handle, matrix, INT32_MAX);
  lpgemm_weights_destroy(matrix);
  return status;
}

/* Blocks lie where the handle's backend packs fastest. */
static lpgemm_status_t pack(lpgemm_handle_t handle, const struct ggml_tensor *tensor, const void *blocks, packed *p) {
  const int64_t count = count_matrices(tensor);
  const size_t bytes = packed_bytes(tensor);
  lpgemm_weight_desc_t desc;
  if (!describe(tensor, &desc)) return LPGEMM_INVALID_ARGUMENT;
  lpgemm_status_t status = LPGEMM_SUCCESS;
  p->bytes = bytes / (size_t)count;
  if (count > 1) status = lpgemm_weights_create(handle, &desc, tensor->data, bytes, &p->weights);
  for (int64_t i = 0; i < count && status == LPGEMM_SUCCESS; i++) {
    const lpgemm_tensor_t matrix = blocks_of(tensor, blocks, i);
    const lpgemm_import_t part = {.size = sizeof part, .format = LPGEMM_FORMAT_GGUF, .tensors = &matrix, .count = 1};
    status = count > 1 ? lpgemm_import_rows(handle, p->weights, i, 0, &part)
                       : lpgemm_import_weights(handle, &part, 1, tensor->data, bytes, &p->weights);
  }
  if (status == LPGEMM_SUCCESS && count > 1) status = lpgemm_weights_finish(handle, p->weights);
  return status == LPGEMM_SUCCESS && count > 1 ? open_matrices(handle, tensor, p) : status;
}

/* Blocks of what is packed. The matrices of a stack are exported one by one. */
static lpgemm_status_t unpack(lpgemm_handle_t handle, const struct ggml_tensor *tensor, const packed *p, char *blocks) {
  const int64_t count = count_matrices(tensor);
  const size_t bytes = ggml_nbytes(tensor) / (size_t)count;
  lpgemm_status_t status = LPGEMM_SUCCESS;
  if (count == 1) return lpgemm_export(handle, p->weights, (int)tensor->type, blocks, bytes);
  for (int64_t i = 0; i < count && status == LPGEMM_SUCCESS; i++) {
    lpgemm_ggml_storage storage;
    lpgemm_weights_t matrix = NULL;
    status = lpgemm_ggml_matrix(handle, tensor, i, &storage, &matrix);
    if (status == LPGEMM_SUCCESS) {
      status = lpgemm_export(handle, matrix, (int)tensor->type, blocks + (size_t)i * bytes, bytes);
    }
    lpgemm_weights_destroy(matrix);
  }
  return status;
}

/* The handle of the tensor's buffer, until unlock(). */
static lpgemm_handle_t lock(const struct ggml_tensor *tensor) {
  memory *m = memory_of(tensor);
  pthread_mutex_lock(&m->lock);
  if (!m->handle) {
    m->threads = lpgemm_ggml_all_threads();
    const lpgemm_config_t config =
        m->place->gpu >= 0
            ? (lpgemm_config_t){.size = sizeof config, .backend = LPGEMM_BACKEND_CUDA, .device = m->place->gpu}
            : lpgemm_ggml_config(&m->threads);
    if (lpgemm_create(&m->handle, &config) != LPGEMM_SUCCESS) {
      lpgemm_ggml_failed("making a handle for", tensor);
      GGML_ABORT("lpgemm: no handle");
    }
  }
  return m->handle;
}

static void unlock(const struct ggml_tensor *tensor) { pthread_mutex_unlock(&memory_of(tensor)->lock); }

static void forget(packed *p) {
  lpgemm_weights_destroy(p->weights);
  free(p->headers);
  p->weights = NULL;
  p->headers = NULL;
}

/* A tensor that is a view stands for a part of the bytes of another. */
static const struct ggml_tensor *whole(const struct ggml_tensor *tensor, size_t *offset) {
  *offset += tensor->view_src ? tensor->view_offs : 0;
  return tensor->view_src ? tensor->view_src : tensor;
}

/* Blocks of a whole tensor; zeros if nothing has been written. */
static void read_blocks(lpgemm_handle_t handle, const struct ggml_tensor *tensor, char *blocks) {
  const packed *p = tensor->extra;
  const lpgemm_ggml_place *place = memory_of(tensor)->place;
  const size_t bytes = ggml_nbytes(tensor);
  if (!p->weights) {
    memset(blocks, 0, bytes);
  } else if (is_expanded(tensor->type)) {
    place->copy(place, blocks, kept_blocks(tensor), bytes);
  } else if (unpack(handle, tensor, p, blocks) != LPGEMM_SUCCESS) {
    lpgemm_ggml_failed("reading", tensor);
    GGML_ABORT("lpgemm: a tensor cannot be turned back into blocks");
  }
}

/* A GPU packs what lies in its memory: where blocks are not kept they are there only meanwhile. */
static void write_blocks(lpgemm_handle_t handle, const struct ggml_tensor *tensor, const void *blocks) {
  packed *p = tensor->extra;
  const lpgemm_ggml_place *place = memory_of(tensor)->place;
  const size_t bytes = ggml_nbytes(tensor);
  const bool is_kept = is_expanded(tensor->type);
  void *staged = !is_kept && place->gpu >= 0 ? place->allocate(place, padded(bytes)) : NULL;
  char *near = is_kept ? kept_blocks(tensor) : staged;
  forget(p);
  if (near) place->copy(place, near, blocks, bytes);
  if (pack(handle, tensor, near ? near : blocks, p) != LPGEMM_SUCCESS) {
    lpgemm_ggml_failed("packing", tensor);
    GGML_ABORT("lpgemm: a tensor cannot be packed");
  }
  if (staged) place->release(place, staged);
}

static char *allocate_blocks(const struct ggml_tensor *tensor) {
  char *blocks = malloc(ggml_nbytes(tensor));
  if (!blocks) GGML_ABORT("lpgemm: memory is short");
  return blocks;
}

/* A part of the bytes of a packed tensor is written: data, or a value where that is NULL. */
static void write_part(const struct ggml_tensor *tensor, const void *data, int value, size_t offset, size_t size) {
  lpgemm_handle_t handle = lock(tensor);
  if (data && offset == 0 && size == ggml_nbytes(tensor)) {
    write_blocks(handle, tensor, data);
  } else {
    char *blocks = allocate_blocks(tensor);
    read_blocks(handle, tensor, blocks);
    if (data) {
      memcpy(blocks + offset, data, size);
    } else {
      memset(blocks + offset, value, size);
    }
    write_blocks(handle, tensor, blocks);
    free(blocks);
  }
  unlock(tensor);
}

static void read_part(const struct ggml_tensor *tensor, void *data, size_t offset, size_t size) {
  lpgemm_handle_t handle = lock(tensor);
  if (offset == 0 && size == ggml_nbytes(tensor)) {
    read_blocks(handle, tensor, data);
  } else {
    char *blocks = allocate_blocks(tensor);
    read_blocks(handle, tensor, blocks);
    memcpy(data, blocks + offset, size);
    free(blocks);
  }
  unlock(tensor);
}

/* ---- what ggml calls ---- */

static void free_packed(memory *m) {
  while (m->first) {
    packed *p = m->first;
    m->first = p->next;
    forget(p);
    free(p);
  }
}

static void free_buffer(ggml_backend_buffer_t buffer) {
  memory *m = buffer->context;
  free_packed(m);
  lpgemm_destroy(m->handle);
  m->place->release(m->place, m->base);
  pthread_mutex_destroy(&m->lock);
  free(m);
}

static void *get_base(ggml_backend_buffer_t buffer) { return ((memory *)buffer->context)->base; }

static enum ggml_status init_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor) {
  memory *m = buffer->context;
  tensor->extra = NULL;
  if (!lpgemm_ggml_is_packed(tensor)) return GGML_STATUS_SUCCESS;
  packed *p = calloc(1, sizeof *p);
  if (!p) return GGML_STATUS_ALLOC_FAILED;
  p->next = m->first;
  m->first = p;
  tensor->extra = p;
  return GGML_STATUS_SUCCESS;
}

static void set_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, const void *data, size_t offset,
                       size_t size) {
  const memory *m = buffer->context;
  const struct ggml_tensor *t = whole(tensor, &offset);
  if (t->extra) {
    write_part(t, data, 0, offset, size);
  } else {
    m->place->copy(m->place, (char *)t->data + offset, data, size);
  }
}

static void memset_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, uint8_t value, size_t offset,
                          size_t size) {
  const memory *m = buffer->context;
  const struct ggml_tensor *t = whole(tensor, &offset);
  if (t->extra) {
    write_part(t, NULL, value, offset, size);
  } else {
    m->place->fill(m->place, (char *)t->data + offset, value, size);
  }
}

static void get_tensor(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, void *data, size_t offset,
                       size_t size) {
  const memory *m = buffer->context;
  const struct ggml_tensor *t = whole(tensor, &offset);
  if (t->extra) {
    read_part(t, data, offset, size);
  } else {
    m->place->copy(m->place, data, (const char *)t->data + offset, size);
  }
}

/* Plain tensors that the place can read, of any backend; ggml takes others through memory of the host. */
static bool cpy_tensor(ggml_backend_buffer_t buffer, const struct ggml_tensor *from, struct ggml_tensor *to) {
  const memory *m = buffer->context;
  if (ggml_is_quantized(from->type) || !ggml_is_contiguous(from) || !ggml_is_contiguous(to)) return false;
  if (!m->place->can_read(m->place, from->data)) return false;
  m->place->copy(m->place, to->data, from->data, ggml_nbytes(from));
  return true;
}

/* Tensors stay, without content. */
static void clear(ggml_backend_buffer_t buffer, uint8_t value) {
  memory *m = buffer->context;
  for (packed *p = m->first; p; p = p->next) forget(p);
  m->place->fill(m->place, m->base, value, buffer->size);
}

static void reset(ggml_backend_buffer_t buffer) { free_packed(buffer->context); }

const lpgemm_ggml_place *lpgemm_ggml_place_of(ggml_backend_buffer_type_t type) { return type->context; }

static const char *get_name(ggml_backend_buffer_type_t type) { return lpgemm_ggml_place_of(type)->name; }

static ggml_backend_buffer_t alloc_buffer(ggml_backend_buffer_type_t type, size_t size) {
  static const struct ggml_backend_buffer_i calls = {.free_buffer = free_buffer,
                                                     .get_base = get_base,
                                                     .init_tensor = init_tensor,
                                                     .memset_tensor = memset_tensor,
                                                     .set_tensor = set_tensor,
                                                     .get_tensor = get_tensor,
                                                     .cpy_tensor = cpy_tensor,
                                                     .clear = clear,
                                                     .reset = reset};
  memory *m = calloc(1, sizeof *m);
  if (!m) return NULL;
  m->place = lpgemm_ggml_place_of(type);
  m->base = m->place->allocate(m->place, padded(size));
  if (!m->base || pthread_mutex_init(&m->lock, NULL)) {
    if (m->base) m->place->release(m->place, m->base);
    free(m);
    return NULL;
  }
  return ggml_backend_buffer_init(type, calls, m, size);
}

static size_t get_alignment(ggml_backend_buffer_type_t type) {
  (void)type;
  return ALIGNMENT;
}

static size_t get_alloc_size(ggml_backend_buffer_type_t type, const struct ggml_tensor *tensor) {
  (void)type;
  const size_t blocks = ggml_nbytes(tensor);
  if (!lpgemm_ggml_is_packed(tensor)) return blocks;
  const size_t bytes = padded(packed_bytes(tensor)) + (is_expanded(tensor->type) ? padded(blocks) : 0);
  return bytes > blocks ? bytes : blocks;
}

struct ggml_backend_buffer_type lpgemm_ggml_make_buffer_type(const lpgemm_ggml_place *place,
                                                             ggml_backend_dev_t device) {
  return (struct ggml_backend_buffer_type){.iface = {.get_name = get_name,
                                                     .alloc_buffer = alloc_buffer,
                                                     .get_alignment = get_alignment,
                                                     .get_alloc_size = get_alloc_size},
                                           .device = device,
                                           .context = (void *)place};
}
