/* libggml-lpgemm.so: a module that ggml loads by GGML_BACKEND_PATH.
 *
 * It has two devices of type ACCEL; llama.cpp asks such devices first where weights on the CPU shall lie, and gives
 * each a backend in every context. LPGEMM is where weights lie packed. LPGEMM-HOST is asked before it and takes all
 * products: its own tensors lie in the memory of ggml's CPU backend, so that no Y has to be copied there. */
#include "module.h"

#include <ggml-impl.h>
#include <stdlib.h>
#include <string.h>

/* ---- the log ---- */

void lpgemm_ggml_failed(const char *what, const struct ggml_tensor *tensor) {
  GGML_LOG_ERROR("lpgemm: %s %s (%s): %s\n", what, tensor->name, ggml_type_name(tensor->type), lpgemm_last_error());
}

static void log_line(void *context, lpgemm_log_level_t level, const char *line) {
  (void)context;
  if (level == LPGEMM_LOG_ERROR) {
    GGML_LOG_ERROR("lpgemm: %s\n", line);
  } else {
    GGML_LOG_INFO("lpgemm: %s\n", line);
  }
}

/* ---- the backend ---- */

static const char *get_name(ggml_backend_t backend) { return ggml_backend_dev_name(backend->device); }

static void free_backend(ggml_backend_t backend) {
  lpgemm_ggml_context *context = backend->context;
  lpgemm_destroy(context->handle);
  free(context->scratch.at);
  free(context->prepared.at);
  free(context);
  free(backend);
}

static bool is_work(const struct ggml_tensor *node) {
  const bool is_product = node->op == GGML_OP_MUL_MAT || node->op == GGML_OP_MUL_MAT_ID;
  return is_product && (node->flags & GGML_TENSOR_FLAG_COMPUTE) && !ggml_is_empty(node);
}

/* Whether a MUL_MAT after node i has its X, as gate and up have. Nothing between them can change that X: the graph has
 * nothing but products, and memory is not given to another tensor before the last that reads it. Those of q, k and v
 * come one a graph, with ggml's ROPE between them. */
static bool is_shared(struct ggml_cgraph *graph, int i) {
  for (int j = i + 1; j < ggml_graph_n_nodes(graph); j++) {
    const struct ggml_tensor *later = ggml_graph_node(graph, j);
    if (is_work(later) && later->op == GGML_OP_MUL_MAT && later->src[1] == ggml_graph_node(graph, i)->src[1])
      return true;
  }
  return false;
}

static enum ggml_status graph_compute(ggml_backend_t backend, struct ggml_cgraph *graph) {
  lpgemm_ggml_context *context = backend->context;
  context->prepared_of = NULL;
  for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
    struct ggml_tensor *node = ggml_graph_node(graph, i);
    if (is_work(node) && !lpgemm_ggml_multiply(context, node, is_shared(graph, i))) return GGML_STATUS_FAILED;
  }
  return GGML_STATUS_SUCCESS;
}

static void set_n_threads(ggml_backend_t backend, int threads) {
  lpgemm_ggml_context *context = backend->context;
  if (context->threads == threads || threads < 1) return;
  context->threads = threads;
  if (lpgemm_set_num_threads(context->handle, threads) != LPGEMM_SUCCESS) {
    GGML_LOG_ERROR("lpgemm: %s\n", lpgemm_last_error());
  }
}

/* FAST rounds X to 8 bits as ggml's CPU backend does. */
static bool read_level(lpgemm_level_t *level) {
  const char *text = getenv("LPGEMM_GGML_LEVEL");
  *level = text && strcmp(text, "exact") == 0 ? LPGEMM_LEVEL_EXACT : LPGEMM_LEVEL_FAST;
  if (!text || strcmp(text, "exact") == 0 || strcmp(text, "fast") == 0) return true;
  GGML_LOG_ERROR("lpgemm: LPGEMM_GGML_LEVEL is '%s'; it is fast or exact\n", text);
  return false;
}

static ggml_backend_t init_backend(ggml_backend_dev_t device, const char *params) {
  static ggml_guid guid = {0x6c, 0x70, 0x67, 0x65, 0x6d, 0x6d, 0x2d, 0x63,
                           0x70, 0x75, 0x2d, 0x67, 0x67, 0x6d, 0x6c, 0x31};
  static const struct ggml_backend_i calls = {
      .get_name = get_name, .free = free_backend, .graph_compute = graph_compute};
  (void)params;
  ggml_backend_t backend = calloc(1, sizeof *backend);
  lpgemm_ggml_context *context = calloc(1, sizeof *context);
  if (backend && context && read_level(&context->level)) {
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

enum { HOST = 0, PACKED = 1, DEVICES = 2 }; /* in the order in which they are asked */

static struct ggml_backend_device devices[DEVICES];

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

static void device_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props) {
  memset(props, 0, sizeof *props);
  props->name = device_name(device);
  props->description = device_description(device);
  props->type = GGML_BACKEND_DEVICE_TYPE_ACCEL;
}

static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t device) {
  return device == &devices[HOST] ? ggml_backend_cpu_buffer_type() : lpgemm_ggml_buffer_type();
}

static bool supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
  switch (op->op) {
    case GGML_OP_NONE:
    case GGML_OP_RESHAPE:
    case GGML_OP_VIEW:
    case GGML_OP_PERMUTE:
    case GGML_OP_TRANSPOSE: return true;
    case GGML_OP_MUL_MAT:
    case GGML_OP_MUL_MAT_ID: {
      /* Weights without a buffer would get one of the device that is asked. */
      const ggml_backend_buffer_t buffer = op->src[0]->buffer;
      const bool lie_packed = buffer ? buffer->buft == lpgemm_ggml_buffer_type() : device == &devices[PACKED];
      return lie_packed && lpgemm_ggml_can_multiply(op);
    }
    default: return false;
  }
}

static bool supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t type) {
  (void)device;
  return type == lpgemm_ggml_buffer_type() || ggml_backend_buft_is_host(type);
}

/* ---- the registry ---- */

static const char *registry_name(ggml_backend_reg_t registry) {
  (void)registry;
  return "LPGEMM";
}

static size_t device_count(ggml_backend_reg_t registry) {
  (void)registry;
  return DEVICES;
}

static ggml_backend_dev_t get_device(ggml_backend_reg_t registry, size_t index) {
  (void)registry;
  return &devices[index];
}

static void *get_proc_address(ggml_backend_reg_t registry, const char *name) {
  (void)registry;
  void *address = NULL;
  void (*call)(ggml_backend_t, int) = set_n_threads;
  if (strcmp(name, "ggml_backend_set_n_threads") == 0) memcpy(&address, &call, sizeof address);
  return address;
}

static struct ggml_backend_reg the_registry = {.api_version = GGML_BACKEND_API_VERSION,
                                               .iface = {.get_name = registry_name,
                                                         .get_device_count = device_count,
                                                         .get_device = get_device,
                                                         .get_proc_address = get_proc_address}};

#define DEVICE                                       \
  {                                                  \
    .iface = {.get_name = device_name,               \
              .get_description = device_description, \
              .get_memory = device_memory,           \
              .get_type = device_type,               \
              .get_props = device_props,             \
              .init_backend = init_backend,          \
              .get_buffer_type = device_buffer_type, \
              .supports_op = supports_op,            \
              .supports_buft = supports_buft},       \
    .reg = &the_registry                             \
  }

static struct ggml_backend_device devices[DEVICES] = {DEVICE, DEVICE};

ggml_backend_dev_t lpgemm_ggml_device(void) { return &devices[PACKED]; }

/* The module's only symbol. */
__attribute__((visibility("default"))) ggml_backend_reg_t ggml_backend_init(void);
ggml_backend_reg_t ggml_backend_init(void) {
  lpgemm_set_log(LPGEMM_LOG_OFF, log_line, NULL);
  return &the_registry;
}
