/* libggml-lpgemm.so: a module that ggml loads by GGML_BACKEND_PATH. Its devices are those of the CPU (host.c) and, if
 * LPGEMM_GGML_DEVICE asks for them, GPUs (gpu.c), which then come first. */
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

/* ---- what the user may set ---- */

/* Whether the variable says `second`, instead of `first` or nothing; false if it says something else. */
static bool read_choice(const char *name, const char *first, const char *second, bool *is_second) {
  const char *text = getenv(name);
  *is_second = text && strcmp(text, second) == 0;
  if (!text || *is_second || strcmp(text, first) == 0) return true;
  GGML_LOG_ERROR("lpgemm: %s is '%s'; it is %s or %s\n", name, text, first, second);
  return false;
}

/* FAST rounds X to 8 bits as ggml's CPU backend does; on a GPU to bf16. */
bool lpgemm_ggml_read_level(lpgemm_level_t *level) {
  bool is_exact;
  const bool is_good = read_choice("LPGEMM_GGML_LEVEL", "fast", "exact", &is_exact);
  *level = is_exact ? LPGEMM_LEVEL_EXACT : LPGEMM_LEVEL_FAST;
  return is_good;
}

/* ---- what devices share ---- */

enum ggml_status lpgemm_ggml_run(struct ggml_cgraph *graph, lpgemm_ggml_multiply_t multiply, void *context) {
  for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
    struct ggml_tensor *node = ggml_graph_node(graph, i);
    const bool is_product = node->op == GGML_OP_MUL_MAT || node->op == GGML_OP_MUL_MAT_ID;
    if (!is_product || !(node->flags & GGML_TENSOR_FLAG_COMPUTE) || ggml_is_empty(node)) continue;
    if (!multiply(context, node)) {
      lpgemm_ggml_failed("multiplying", node->src[0]);
      return GGML_STATUS_FAILED;
    }
  }
  return GGML_STATUS_SUCCESS;
}

bool lpgemm_ggml_supports(const struct ggml_tensor *op, ggml_backend_buffer_type_t type, bool owns) {
  switch (op->op) {
    case GGML_OP_NONE:
    case GGML_OP_RESHAPE:
    case GGML_OP_VIEW:
    case GGML_OP_PERMUTE:
    case GGML_OP_TRANSPOSE: return true;
    case GGML_OP_MUL_MAT:
    case GGML_OP_MUL_MAT_ID: {
      const ggml_backend_buffer_t buffer = op->src[0]->buffer;
      return (buffer ? buffer->buft == type : owns) && lpgemm_ggml_can_multiply(op);
    }
    default: return false;
  }
}

void lpgemm_ggml_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props) {
  memset(props, 0, sizeof *props);
  props->name = ggml_backend_dev_name(device);
  props->description = ggml_backend_dev_description(device);
  props->type = ggml_backend_dev_type(device);
  ggml_backend_dev_memory(device, &props->memory_free, &props->memory_total);
}

/* ---- the registry ---- */

static size_t gpus; /* that are devices of the module */

static const char *registry_name(ggml_backend_reg_t registry) {
  (void)registry;
  return "LPGEMM";
}

static size_t device_count(ggml_backend_reg_t registry) {
  (void)registry;
  return gpus + LPGEMM_GGML_HOST_DEVICES;
}

static ggml_backend_dev_t get_device(ggml_backend_reg_t registry, size_t index) {
  (void)registry;
  return index < gpus ? lpgemm_ggml_gpu_device(index) : lpgemm_ggml_host_device(index - gpus);
}

/* Those of a GPU have none. */
static void set_n_threads(ggml_backend_t backend, int threads) {
  for (size_t i = 0; i < LPGEMM_GGML_HOST_DEVICES; i++) {
    if (backend->device == lpgemm_ggml_host_device(i)) lpgemm_ggml_set_n_threads(backend, threads);
  }
}

static void *get_proc_address(ggml_backend_reg_t registry, const char *name) {
  (void)registry;
  void *address = NULL;
  void (*call)(ggml_backend_t, int) = set_n_threads;
  if (strcmp(name, "ggml_backend_set_n_threads") == 0) memcpy(&address, &call, sizeof address);
  if (strcmp(name, "ggml_cuda_guest") == 0) address = lpgemm_ggml_guest();
  return address;
}

static struct ggml_backend_reg the_registry = {.api_version = GGML_BACKEND_API_VERSION,
                                               .iface = {.get_name = registry_name,
                                                         .get_device_count = device_count,
                                                         .get_device = get_device,
                                                         .get_proc_address = get_proc_address}};

static void open_devices(void) {
  bool is_cuda;
  read_choice("LPGEMM_GGML_DEVICE", "cpu", "cuda", &is_cuda);
  lpgemm_ggml_open_host(&the_registry);
  gpus = is_cuda ? lpgemm_ggml_open_gpus(&the_registry) : 0;
  if (is_cuda && gpus == 0) {
    GGML_LOG_ERROR("lpgemm: LPGEMM_GGML_DEVICE is cuda, but this module (%s) finds no GPU that it can use\n",
                   lpgemm_build_info());
  }
}

/* The module's only symbol. */
__attribute__((visibility("default"))) ggml_backend_reg_t ggml_backend_init(void);
ggml_backend_reg_t ggml_backend_init(void) {
  lpgemm_set_log(LPGEMM_LOG_OFF, log_line, NULL);
  open_devices();
  return &the_registry;
}
