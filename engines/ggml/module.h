/* What the parts of the ggml backend share. ggml's words: a device makes backends, which run graphs; a buffer type
 * makes buffers, in which tensors lie. Here a tensor of a block type lies in its buffer as a packed matrix, one of more
 * than two dimensions as a stack. */
#ifndef LPGEMM_GGML_MODULE_H
#define LPGEMM_GGML_MODULE_H

#include <ggml-backend-impl.h>
#include <ggml.h>

#include "lpgemm.h"

/* ---- module.c: the registry and its devices ---- */

/* The device in whose buffers weights lie. */
ggml_backend_dev_t lpgemm_ggml_device(void);

/* Says in ggml's log what failed, with the library's sentence about it. */
void lpgemm_ggml_failed(const char *what, const struct ggml_tensor *tensor);

/* ---- buffer.c: tensors as packed matrices ---- */

ggml_backend_buffer_type_t lpgemm_ggml_buffer_type(void);

/* Whether a tensor like this is packed in such a buffer. */
bool lpgemm_ggml_is_packed(const struct ggml_tensor *tensor);

/* The weights of a packed tensor, NULL as long as nothing has been written to it. */
lpgemm_weights_t lpgemm_ggml_weights(const struct ggml_tensor *tensor);

/* ---- product.c: MUL_MAT and MUL_MAT_ID ---- */

/* Grows to what the largest product needs. */
typedef struct lpgemm_ggml_memory {
  char *at;
  size_t bytes;
} lpgemm_ggml_memory;

typedef struct lpgemm_ggml_context {
  lpgemm_handle_t handle;
  lpgemm_level_t level;
  int threads;
  lpgemm_ggml_memory scratch, prepared;
  const struct ggml_tensor *prepared_of; /* X of which `prepared` is, while a graph runs; NULL: none */
} lpgemm_ggml_context;

/* Whether it could, if the weights lie packed. */
bool lpgemm_ggml_can_multiply(const struct ggml_tensor *node);

/* is_shared: a later product of the graph has the same X. */
bool lpgemm_ggml_multiply(lpgemm_ggml_context *context, struct ggml_tensor *node, bool is_shared);

/* ---- threads.c: on which threads ---- */

/* The configuration of a handle that works on *threads of them. */
lpgemm_config_t lpgemm_ggml_config(const int *threads);

/* As many as there are cores. */
int lpgemm_ggml_all_threads(void);

/* Runs task(work, i) for i < count on so many threads. */
void lpgemm_ggml_for_each(int threads, lpgemm_task_t task, void *work, int64_t count);

#endif
