/* Buffers in which tensors of block types lie packed.
 *
 * A tensor is packed when it is written and turned back into blocks when it is read, which llama.cpp never does. Types
 * that are expanded when they are packed have no way back: their blocks are kept behind the packed matrix. */
#include <stdlib.h>
#include <string.h>

#include "module.h"

enum { ALIGNMENT = 256, MOST_EXPERTS = 4096 };

/* What `extra` of a packed tensor points to; a list, so that the buffer can free them. */
typedef struct packed {
  lpgemm_weights_t weights;
  struct packed *next;
} packed;

typedef struct memory {
  char *base;
  packed *first;
} memory;

static size_t padded(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

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

static lpgemm_status_t pack(lpgemm_handle_t handle, const struct ggml_tensor *tensor, const void *blocks, packed *p) {
  const int64_t count = count_matrices(tensor);
  lpgemm_weight_desc_t desc;
  if (!describe(tensor, &desc)) return LPGEMM_INVALID_ARGUMENT;
  lpgemm_status_t status = LPGEMM_SUCCESS;
  if (count > 1) {
    status = lpgemm_weights_create(handle, &desc, tensor->data, packed_bytes(tensor), &p->weights);
  }
  for (int64_t i = 0; i < count && status == LPGEMM_SUCCESS; i++) {
    const lpgemm_tensor_t matrix = blocks_of(tensor, blocks, i);
    const lpgemm_import_t part = {.size = sizeof part, .format = LPGEMM_FORMAT_GGUF, .tensors = &matrix, .count = 1};
    status = count > 1 ? lpgemm_import_rows(handle, p->weights, i, 0, &part)
                       : lpgemm_import_weights(handle, &part, 1, tensor->data, packed_bytes(tensor), &p->weights);
  }
  return status == LPGEMM_SUCCESS && count > 1 ? lpgemm_weights_finish(handle, p->weights) : status;
}

/* Blocks of what is packed. The matrices of a stack are exported one by one. */
static lpgemm_status_t unpack(lpgemm_handle_t handle, const struct ggml_tensor *tensor, const packed *p, char *blocks) {
  const int64_t count = count_matrices(tensor);
  const size_t step = packed_bytes(tensor) / (size_t)count, bytes = ggml_nbytes(tensor) / (size_t)count;
  lpgemm_status_t status = LPGEMM_SUCCESS;
  if (count == 1) return lpgemm_export(handle, p->weights, (int)tensor->type, blocks, bytes);
  for (int64_t i = 0; i < count && status == LPGEMM_SUCCESS; i++) {
    lpgemm_weights_t matrix = NULL;
    status = lpgemm_deserialize(handle, (char *)tensor->data + (size_t)i * step, step,
                                LPGEMM_LOAD_VIEW | LPGEMM_LOAD_SKIP_CHECKSUM, &matrix);
    if (status == LPGEMM_SUCCESS) {
      status = lpgemm_export(handle, matrix, (int)tensor->type, blocks + (size_t)i * bytes, bytes);
    }
    lpgemm_weights_destroy(matrix);
  }
  return status;
}

static lpgemm_handle_t create_handle(const int *threads, const struct ggml_tensor *tensor) {
  const lpgemm_config_t config = lpgemm_ggml_config(threads);
  lpgemm_handle_t handle = NULL;
  if (lpgemm_create(&handle, &config) != LPGEMM_SUCCESS) {
    lpgemm_ggml_failed("making a handle for", tensor);
    GGML_ABORT("lpgemm: no handle");
  }
  return handle;
}

/* A tensor that is a view stands for a part of the bytes of another. */
static const struct ggml_tensor *whole(const struct ggml_tensor *tensor, size_t *offset) {
  *offset += tensor->view_src ? tensor->view_offs : 0;
  return tensor->view_src ? tensor->view_src : tensor;
}

/* Blocks of a whole tensor; zeros if nothing has been written. */
static void read_blocks(lpgemm_handle_t handle, const struct ggml_tensor *tensor, char *blocks) {
  const packed *p = tensor->extra;
  const size_t bytes = ggml_nbytes(tensor);
  if (!p->weights) {
    memset(blocks, 0, bytes);
  } else if (is_expanded(tensor->type)) {
    memcpy(blocks, (const char *)tensor->data + padded(packed_bytes(tensor)), bytes);
  } else if (unpack(handle, tensor, p, blocks) != LPGEMM_SUCCESS) {
    lpgemm_ggml_failed("reading", tensor);
    GGML_ABORT("lpgemm: a tensor cannot be turned back into blocks");
  }
}

static void write_blocks(lpgemm_handle_t handle, const struct ggml_tensor *tensor, const void *blocks) {
  packed *p = tensor->extra;
  lpgemm_weights_destroy(p->weights);
  p->weights = NULL;
  if (pack(handle, tensor, blocks, p) != LPGEMM_SUCCESS) {
    lpgemm_ggml_failed("packing", tensor);
    GGML_ABORT("lpgemm: a tensor cannot be packed");
  }
  if (is_expanded(tensor->type)) {
    memcpy((char *)tensor->data + padded(packed_bytes(tensor)), blocks, ggml_nbytes(tensor));
  }
}

static char *allocate_blocks(const struct ggml_tensor *tensor) {
  char *blocks = malloc(ggml_nbytes(tensor));
  if (!blocks) GGML_ABORT("lpgemm: memory is short");
  return blocks;
}

/* A part of the bytes of a packed tensor is written: data, or a value where that is NULL. */
static void write_part(const struct ggml_tensor *tensor, const void *data, int value, size_t offset, size_t size) {
  const int threads = lpgemm_ggml_all_threads();
  lpgemm_handle_t handle = create_handle(&threads, tensor);
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
  lpgemm_destroy(handle);
}

/* ---- what ggml calls ---- */

static void free_packed(memory *m) {
  while (m->first) {
    packed *p = m->first;
    m->first = p->next;
    lpgemm_weights_destroy(p->weights);
    free(p);
  }
}

static void free_buffer(ggml_backend_buffer_t buffer) {
  memory *m = buffer->context;
  free_packed(m);
  free(m->base);
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
  (void)buffer;
  const struct ggml_tensor *t = whole(tensor, &offset);
  if (t->extra) {
    write_part(t, data, 0, offset, size);
  } else {
    memcpy((char *)t->data + offset, data, size);
  }
}

static void memset_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, uint8_t value, size_t offset,
                          size_t size) {
  (void)buffer;
  const struct ggml_tensor *t = whole(tensor, &offset);
  if (t->extra) {
    write_part(t, NULL, value, offset, size);
  } else {
    memset((char *)t->data + offset, value, size);
  }
}

static void get_tensor(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, void *data, size_t offset,
                       size_t size) {
  (void)buffer;
  const struct ggml_tensor *t = whole(tensor, &offset);
  if (!t->extra) {
    memcpy(data, (const char *)t->data + offset, size);
    return;
  }
  const int threads = 1;
  lpgemm_handle_t handle = create_handle(&threads, t);
  if (offset == 0 && size == ggml_nbytes(t)) {
    read_blocks(handle, t, data);
  } else {
    char *blocks = allocate_blocks(t);
    read_blocks(handle, t, blocks);
    memcpy(data, blocks + offset, size);
    free(blocks);
  }
  lpgemm_destroy(handle);
}

/* Tensors stay, without content. */
static void clear(ggml_backend_buffer_t buffer, uint8_t value) {
  memory *m = buffer->context;
  for (packed *p = m->first; p; p = p->next) {
    lpgemm_weights_destroy(p->weights);
    p->weights = NULL;
  }
  memset(m->base, value, buffer->size);
}

static void reset(ggml_backend_buffer_t buffer) { free_packed(buffer->context); }

static const char *get_name(ggml_backend_buffer_type_t type) {
  (void)type;
  return "LPGEMM";
}

static ggml_backend_buffer_t alloc_buffer(ggml_backend_buffer_type_t type, size_t size) {
  static const struct ggml_backend_buffer_i calls = {.free_buffer = free_buffer,
                                                     .get_base = get_base,
                                                     .init_tensor = init_tensor,
                                                     .memset_tensor = memset_tensor,
                                                     .set_tensor = set_tensor,
                                                     .get_tensor = get_tensor,
                                                     .clear = clear,
                                                     .reset = reset};
  memory *m = calloc(1, sizeof *m);
  if (m) m->base = aligned_alloc(ALIGNMENT, padded(size));
  if (!m || !m->base) {
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

ggml_backend_buffer_type_t lpgemm_ggml_buffer_type(void) {
  static struct ggml_backend_buffer_type type = {.iface = {.get_name = get_name,
                                                           .alloc_buffer = alloc_buffer,
                                                           .get_alignment = get_alignment,
                                                           .get_alloc_size = get_alloc_size}};
  type.device = lpgemm_ggml_device();
  return &type;
}
