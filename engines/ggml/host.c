/* The CPU: two devices of type ACCEL. llama.cpp asks such devices first where weights on the CPU shall lie, and gives
 * each a backend in every context. LPGEMM is where weights lie packed. LPGEMM-HOST is asked before it and takes all
 * products: its own tensors lie in the memory of ggml's CPU backend, so that no Y has to be copied there. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* madvise */
#endif
#include <ggml-impl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "module.h"

/* ---- memory ---- */

/* Large buffers on large pages where the system has them, as lpgemm's own memory for weights: a token reads all of it
 * from end to end. */
static void *allocate(const lpgemm_ggml_place *self, size_t bytes) {
  enum { ALIGNMENT = 256, LARGE_PAGE = 2 << 20 };
  (void)self;
  if (bytes < LARGE_PAGE) return aligned_alloc(ALIGNMENT, bytes);
  const size_t whole = (bytes + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
  void *memory = aligned_alloc(LARGE_PAGE, whole);
#ifdef MADV_HUGEPAGE
  if (memory) (void)madvise(memory, whole, MADV_HUGEPAGE);
#endif
  return memory;
}

static void release(const lpgemm_ggml_place *self, void *memory) {
  (void)self;
  free(memory);
}

static void copy(const lpgemm_ggml_place *self, void *to, const void *from, size_t bytes) {
  (void)self;
  memcpy(to, from, bytes);
}

static void fill(const lpgemm_ggml_place *self, void *to, int value, size_t bytes) {
  (void)self;
  memset(to, value, bytes);
}

static bool can_read(const lpgemm_ggml_place *self, const void *memory) {
  (void)self;
  (void)memory;
  return false;
}

static const lpgemm_ggml_place place = {.name = "LPGEMM",
                                        .gpu = -1,
                                        .allocate = allocate,
                                        .release = release,
                                        .copy = copy,
                                        .fill = fill,
                                        .can_read = can_read};

static struct ggml_backend_buffer_type packed_type;

/* ---- the backend ---- */

static const char *get_name(ggml_backend_t backend) { return ggml_backend_dev_name(backend->device); }

static void free_backend(ggml_backend_t backend) {
  lpgemm_ggml_context *context = backend->context;
  lpgemm_destroy(context->handle);
  free(context->scratch);
  free(context);
  free(backend);
}

static bool multiply(void *of_backend, struct ggml_tensor *node) {
  lpgemm_ggml_context *context = of_backend;
  if (node->op == GGML_OP_MUL_MAT_ID) return lpgemm_ggml_multiply_experts(context, node) == LPGEMM_SUCCESS;
  const lpgemm_ggml_x x = lpgemm_ggml_own_x(node->src[1]);
  return lpgemm_ggml_multiply(context->handle, context->level, &x, node) == LPGEMM_SUCCESS;
}

static enum ggml_status graph_compute(ggml_backend_t backend, struct ggml_cgraph *graph) {
  return lpgemm_ggml_run(graph, multiply, backend->context);
}

void lpgemm_ggml_set_n_threads(ggml_backend_t backend, int threads) {
  lpgemm_ggml_context *context = backend->context;
  if (context->threads == threads || threads < 1) return;
  context->threads = threads;
  if (lpgemm_set_num_threads(context->handle, threads) != LPGEMM_SUCCESS) {
    GGML_LOG_ERROR("lpgemm: %s\n", lpgemm_last_error());
  }
}

static ggml_backend_t init_backend(ggml_backend_dev_t device, const char *params) {
  static ggml_guid guid = {0x6c, 0x70, 0x67, 0x65, 0x6d, 0x6d, 0x2d, 0x63,
                           0x70, 0x75, 0x2d, 0x67, 0x67, 0x6d, 0x6c, 0x31};
  static const struct ggml_backend_i calls = {
      .get_name = get_name, .free = free_backend, .graph_compute = graph_compute};
  (void)params;
  ggml_backend_t backend = calloc(1, sizeof *backend);
  lpgemm_ggml_context *context = calloc(1, sizeof *context);
  if (backend && context && lpgemm_ggml_read_level(&context->level)) {
    *backend = (struct ggml_backend){.guid = &guid, .iface = calls, .device = device, .context = context};
    context->threads = GGML_DEFAULT_N_THREADS;
    const lpgemm_config_t config = lpgemm_ggml_config(&context->threads);
    if (lpgemm_create(&context->handle, &config) == LPGEMM_SUCCESS) return backend;
    GGML_LOG_ERROR("lpgemm: %s\n", lpgemm_last_error());
  }
  free(context);
  free(backend);
  return NULL;
}

/* ---- the devices ---- */

enum { HOST = 0, PACKED = 1 };

static struct ggml_backend_device devices[LPGEMM_GGML_HOST_DEVICES];

static const char *device_name(ggml_backend_dev_t device) {
  return device == &devices[HOST] ? "LPGEMM-HOST" : "LPGEMM";
}

static const char *device_description(ggml_backend_dev_t device) {
  (void)device;
  return lpgemm_build_info();
}

/* That of the CPU: nothing to report. */
static void device_memory(ggml_backend_dev_t device, size_t *unused, size_t *total) {
  (void)device;
  *unused = *total = 0;
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t device) {
  (void)device;
  return GGML_BACKEND_DEVICE_TYPE_ACCEL;
}

static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t device) {
  return device == &devices[HOST] ? ggml_backend_cpu_buffer_type() : &packed_type;
}

static bool supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
  return lpgemm_ggml_supports(op, &packed_type, device == &devices[PACKED]);
}

static bool supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t type) {
  (void)device;
  return type == &packed_type || ggml_backend_buft_is_host(type);
}

#define DEVICE                               \
  {                                          \
    .iface = {                               \
      .get_name = device_name,               \
      .get_description = device_description, \
      .get_memory = device_memory,           \
      .get_type = device_type,               \
      .get_props = lpgemm_ggml_props,        \
      .init_backend = init_backend,          \
      .get_buffer_type = device_buffer_type, \
      .supports_op = supports_op,            \
      .supports_buft = supports_buft         \
    }                                        \
  }

static struct ggml_backend_device devices[LPGEMM_GGML_HOST_DEVICES] = {DEVICE, DEVICE};

void lpgemm_ggml_open_host(ggml_backend_reg_t registry) {
  for (int i = 0; i < LPGEMM_GGML_HOST_DEVICES; i++) devices[i].reg = registry;
  packed_type = lpgemm_ggml_make_buffer_type(&place, &devices[PACKED]);
}

ggml_backend_dev_t lpgemm_ggml_host_device(size_t index) { return &devices[index]; }
