/* What the parts of the ggml backend share. ggml's words: a device makes backends, which run graphs; a buffer type
 * makes buffers, in which tensors lie. Here a tensor of a block type lies in its buffer as a packed matrix, one of more
 * than two dimensions as a stack. */
#ifndef LPGEMM_GGML_MODULE_H
#define LPGEMM_GGML_MODULE_H

#include <ggml-backend-impl.h>
#include <ggml.h>

#include "lpgemm.h"

/* ---- module.c: the registry, and what all devices do ---- */

/* Says in ggml's log what failed, with the library's sentence about it. */
void lpgemm_ggml_failed(const char *what, const struct ggml_tensor *tensor);

/* The level that LPGEMM_GGML_LEVEL names; false, and a line in the log, if it names none. */
bool lpgemm_ggml_read_level(lpgemm_level_t *level);

/* Calls multiply(context, node) for every product of the graph. */
typedef bool (*lpgemm_ggml_multiply_t)(void *context, struct ggml_tensor *node);
enum ggml_status lpgemm_ggml_run(struct ggml_cgraph *graph, lpgemm_ggml_multiply_t multiply, void *context);

/* Whether devices that keep weights in buffers of this type run the operation. owns: the device that is asked would
 * give weights without a buffer one of them. */
bool lpgemm_ggml_supports(const struct ggml_tensor *op, ggml_backend_buffer_type_t type, bool owns);

void lpgemm_ggml_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props);

/* ---- host.c: the CPU's devices ---- */

enum { LPGEMM_GGML_HOST_DEVICES = 2 };
void lpgemm_ggml_open_host(ggml_backend_reg_t registry);
ggml_backend_dev_t lpgemm_ggml_host_device(size_t index); /* in the order in which they are asked */
void lpgemm_ggml_set_n_threads(ggml_backend_t backend, int threads);

/* ---- gpu.c: a device for each GPU ---- */

/* Finds them, and says how many there are. */
#ifdef LPG_HAVE_CUDA
size_t lpgemm_ggml_open_gpus(ggml_backend_reg_t registry);
ggml_backend_dev_t lpgemm_ggml_gpu_device(size_t index);
#else
static inline size_t lpgemm_ggml_open_gpus(ggml_backend_reg_t registry) {
  (void)registry;
  return 0;
}
static inline ggml_backend_dev_t lpgemm_ggml_gpu_device(size_t index) {
  (void)index;
  return NULL;
}
#endif

/* ---- gpu_guest.c: products in the streams of ggml-cuda ---- */

/* What get_proc_address() says of ggml_cuda_guest. */
#ifdef LPG_HAVE_CUDA
void *lpgemm_ggml_guest(void);
#else
static inline void *lpgemm_ggml_guest(void) { return NULL; }
#endif

/* ---- buffer.c: tensors as packed matrices ---- */

/* Where buffers of a type lie. Functions get it as `self`; what they copy and fill is done when they return. */
typedef struct lpgemm_ggml_place {
  const char *name;                                                      /* of the buffer type */
  int gpu;                                                               /* its number; -1: the host */
  void *(*allocate)(const struct lpgemm_ggml_place *self, size_t bytes); /* a multiple of 256; aligned so */
  void (*release)(const struct lpgemm_ggml_place *self, void *memory);
  void (*copy)(const struct lpgemm_ggml_place *self, void *to, const void *from,
               size_t bytes); /* or from and to host */
  void (*fill)(const struct lpgemm_ggml_place *self, void *to, int value, size_t bytes);
  bool (*can_read)(const struct lpgemm_ggml_place *self, const void *memory); /* other than the host's */
} lpgemm_ggml_place;

struct ggml_backend_buffer_type lpgemm_ggml_make_buffer_type(const lpgemm_ggml_place *place, ggml_backend_dev_t device);

const lpgemm_ggml_place *lpgemm_ggml_place_of(ggml_backend_buffer_type_t type); /* of such a type */

/* Whether a tensor like this is packed in such a buffer. */
bool lpgemm_ggml_is_packed(const struct ggml_tensor *tensor);

/* The weights of a packed tensor, NULL as long as nothing has been written to it. */
lpgemm_weights_t lpgemm_ggml_weights(const struct ggml_tensor *tensor);

/* Matrix i of a stack that has been written, as weights in storage, until lpgemm_weights_destroy(). */
typedef struct lpgemm_ggml_storage {
  uint64_t words[LPGEMM_WEIGHTS_BYTES / sizeof(uint64_t)];
} lpgemm_ggml_storage;
lpgemm_status_t lpgemm_ggml_matrix(lpgemm_handle_t handle, const struct ggml_tensor *tensor, int64_t i,
                                   lpgemm_ggml_storage *storage, lpgemm_weights_t *matrix);

/* ---- product.c: products, wherever X, Y and the weights lie ---- */

/* X as lpgemm takes it: the tensor's own memory, or a copy with strides of its own. */
typedef struct lpgemm_ggml_x {
  const char *data;
  lpgemm_dtype_t type;
  size_t nb[GGML_MAX_DIMS];
} lpgemm_ggml_x;
lpgemm_ggml_x lpgemm_ggml_own_x(const struct ggml_tensor *x);

/* Whether it could, if the weights lie packed. */
bool lpgemm_ggml_can_multiply(const struct ggml_tensor *node);

/* MUL_MAT. */
lpgemm_status_t lpgemm_ggml_multiply(lpgemm_handle_t handle, lpgemm_level_t level, const lpgemm_ggml_x *x,
                                     const struct ggml_tensor *y);

/* MUL_MAT_ID: `slots` rows of X and Y, sorted by expert, dense, with offsets as lpgemm_run_grouped() has them. */
lpgemm_status_t lpgemm_ggml_multiply_sorted(lpgemm_handle_t handle, lpgemm_level_t level, const void *x,
                                            lpgemm_dtype_t x_type, const int32_t *offsets, int64_t slots, float *sorted,
                                            const struct ggml_tensor *y);

/* ---- experts.c: MUL_MAT_ID on the CPU ---- */

typedef struct lpgemm_ggml_context {
  lpgemm_handle_t handle;
  lpgemm_level_t level;
  int threads;
  char *scratch; /* grows to what the largest product needs */
  size_t scratch_bytes;
} lpgemm_ggml_context;

lpgemm_status_t lpgemm_ggml_multiply_experts(lpgemm_ggml_context *context, const struct ggml_tensor *y);

/* ---- threads.c: on which threads ---- */

/* The configuration of a handle that works on *threads of them. */
lpgemm_config_t lpgemm_ggml_config(const int *threads);

/* As many as there are cores. */
int lpgemm_ggml_all_threads(void);

/* Runs task(work, i) for i < count on so many threads. */
void lpgemm_ggml_for_each(int threads, lpgemm_task_t task, void *work, int64_t count);

#endif
