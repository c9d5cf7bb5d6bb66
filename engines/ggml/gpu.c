/* GPUs: a device for each, LPGEMM-CUDA0 and so on, whose buffers lie in its memory. They are of type ACCEL, as those of
 * the CPU are: weights go there, and the rest of a model stays where it is, with X and Y going back and forth. */
#include "gpu.h"

#include <ggml-impl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GPUS = 16, NAME_BYTES = 32 };

typedef struct gpu {
  char name[NAME_BYTES], id[NAME_BYTES], description[sizeof((struct cudaDeviceProp *)NULL)->name];
  lpgemm_ggml_place place;
  struct ggml_backend_buffer_type type;
  struct ggml_backend_device device;
} gpu;

static gpu gpus[MOST_GPUS];

static gpu *gpu_of(ggml_backend_dev_t device) { return device->context; }

/* ---- memory ---- */

static void must_work(cudaError_t error, const char *what) {
  if (!lpgemm_ggml_cuda_worked(error, what)) GGML_ABORT("lpgemm: CUDA failed");
}

static void enter(const lpgemm_ggml_place *self) { must_work(cudaSetDevice(self->gpu), "choosing a GPU"); }

static void *allocate(const lpgemm_ggml_place *self, size_t bytes) {
  void *memory = NULL;
  enter(self);
  return lpgemm_ggml_cuda_worked(cudaMalloc(&memory, bytes), "memory of a GPU") ? memory : NULL;
}

static void release(const lpgemm_ggml_place *self, void *memory) {
  enter(self);
  cudaFree(memory);
}

/* In a stream of the thread's own: the backends' streams do not wait for the default one. */
static void finish(cudaError_t begun, const char *what) {
  must_work(begun, what);
  must_work(cudaStreamSynchronize(cudaStreamPerThread), what);
}

static void copy(const lpgemm_ggml_place *self, void *to, const void *from, size_t bytes) {
  enter(self);
  finish(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cudaStreamPerThread), "copying");
}

static void fill(const lpgemm_ggml_place *self, void *to, int value, size_t bytes) {
  enter(self);
  finish(cudaMemsetAsync(to, value, bytes, cudaStreamPerThread), "filling");
}

static bool can_read(const lpgemm_ggml_place *self, const void *memory) {
  struct cudaPointerAttributes attributes;
  enter(self);
  if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
}

/* ---- the backend ---- */

static const char *get_name(ggml_backend_t backend) { return ggml_backend_dev_name(backend->device); }

static void free_context(lpgemm_ggml_gpu_context *context) {
  if (context->stream) cudaStreamSynchronize(context->stream);
  if (context->owns_stream) cudaStreamDestroy(context->stream);
  lpgemm_destroy(context->handle);
  cudaFree(context->workspace);
  cudaFree(context->scratch);
  free(context);
}

static void free_backend(ggml_backend_t backend) {
  enter(&gpu_of(backend->device)->place);
  free_context(backend->context);
  free(backend);
}

static void synchronize(ggml_backend_t backend) {
  const lpgemm_ggml_gpu_context *context = backend->context;
  must_work(cudaStreamSynchronize(context->stream), "waiting for a product");
}

static enum ggml_status graph_compute(ggml_backend_t backend, struct ggml_cgraph *graph) {
  lpgemm_ggml_gpu_context *context = backend->context;
  enter(&gpu_of(backend->device)->place);
  context->x = NULL; /* what it holds now is not what it held in the graph before */
  return lpgemm_ggml_run(graph, lpgemm_ggml_gpu_multiply, context);
}

static bool fill_context(lpgemm_ggml_gpu_context *context) {
  const lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CUDA, .device = context->gpu};
  must_work(cudaSetDevice(context->gpu), "choosing a GPU");
  context->follows = lpgemm_ggml_may_follow();
  if (!lpgemm_ggml_read_level(&context->level)) return false;
  if (context->owns_stream &&
      !lpgemm_ggml_cuda_worked(cudaStreamCreateWithFlags(&context->stream, cudaStreamNonBlocking), "a stream")) {
    return false;
  }
  if (lpgemm_create(&context->handle, &config) == LPGEMM_SUCCESS &&
      lpgemm_set_stream(context->handle, context->stream) == LPGEMM_SUCCESS) {
    return true;
  }
  GGML_LOG_ERROR("lpgemm: %s\n", lpgemm_last_error());
  return false;
}

lpgemm_ggml_gpu_context *lpgemm_ggml_open_context(int number, cudaStream_t stream) {
  lpgemm_ggml_gpu_context *context = calloc(1, sizeof *context);
  if (!context) return NULL;
  *context = (lpgemm_ggml_gpu_context){.gpu = number, .stream = stream, .owns_stream = !stream};
  if (fill_context(context)) return context;
  free_context(context);
  return NULL;
}

static ggml_backend_t init_backend(ggml_backend_dev_t device, const char *params) {
  static ggml_guid guid = {0x6c, 0x70, 0x67, 0x65, 0x6d, 0x6d, 0x2d, 0x67,
                           0x70, 0x75, 0x2d, 0x67, 0x67, 0x6d, 0x6c, 0x31};
  static const struct ggml_backend_i calls = {
      .get_name = get_name, .free = free_backend, .synchronize = synchronize, .graph_compute = graph_compute};
  (void)params;
  ggml_backend_t backend = calloc(1, sizeof *backend);
  lpgemm_ggml_gpu_context *context = lpgemm_ggml_open_context(gpu_of(device)->place.gpu, NULL);
  if (backend && context) {
    *backend = (struct ggml_backend){.guid = &guid, .iface = calls, .device = device, .context = context};
    return backend;
  }
  if (context) free_context(context);
  free(backend);
  return NULL;
}

/* ---- the device ---- */

static const char *device_name(ggml_backend_dev_t device) { return gpu_of(device)->name; }

static const char *device_description(ggml_backend_dev_t device) { return gpu_of(device)->description; }

static void device_memory(ggml_backend_dev_t device, size_t *unused, size_t *total) {
  *unused = *total = 0;
  enter(&gpu_of(device)->place);
  lpgemm_ggml_cuda_worked(cudaMemGetInfo(unused, total), "asking for the memory of a GPU");
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t device) {
  (void)device;
  return GGML_BACKEND_DEVICE_TYPE_ACCEL;
}

static void device_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props) {
  lpgemm_ggml_props(device, props);
  props->device_id = gpu_of(device)->id;
  props->caps.async = true;
}

static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t device) { return &gpu_of(device)->type; }

static bool supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
  const bool is_experts = op->op == GGML_OP_MUL_MAT_ID;
  return lpgemm_ggml_supports(op, device_buffer_type(device), true) &&
         (!is_experts || lpgemm_ggml_gpu_can_multiply(op));
}

static bool supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t type) {
  return type == device_buffer_type(device);
}

static const struct ggml_backend_device_i device_calls = {.get_name = device_name,
                                                          .get_description = device_description,
                                                          .get_memory = device_memory,
                                                          .get_type = device_type,
                                                          .get_props = device_props,
                                                          .init_backend = init_backend,
                                                          .get_buffer_type = device_buffer_type,
                                                          .supports_op = supports_op,
                                                          .supports_buft = supports_buft};

/* ---- which GPUs there are ---- */

static void open_gpu(gpu *g, int number, const struct cudaDeviceProp *p, ggml_backend_reg_t registry) {
  snprintf(g->name, sizeof g->name, "LPGEMM-CUDA%d", number);
  snprintf(g->description, sizeof g->description, "%s", p->name);
  snprintf(g->id, sizeof g->id, "%04x:%02x:%02x.0", p->pciDomainID, p->pciBusID, p->pciDeviceID);
  g->place = (lpgemm_ggml_place){.name = g->name,
                                 .gpu = number,
                                 .allocate = allocate,
                                 .release = release,
                                 .copy = copy,
                                 .fill = fill,
                                 .can_read = can_read};
  g->device = (struct ggml_backend_device){.iface = device_calls, .reg = registry, .context = g};
  g->type = lpgemm_ggml_make_buffer_type(&g->place, &g->device);
}

size_t lpgemm_ggml_open_gpus(ggml_backend_reg_t registry) {
  int count = 0;
  size_t opened = 0;
  if (!lpgemm_ggml_cuda_worked(cudaGetDeviceCount(&count), "looking for GPUs")) return 0;
  for (int i = 0; i < count && opened < MOST_GPUS; i++) {
    struct cudaDeviceProp p;
    if (!lpgemm_ggml_cuda_worked(cudaGetDeviceProperties(&p, i), "asking for a GPU") || p.major < 8) continue;
    open_gpu(&gpus[opened++], i, &p, registry);
  }
  return opened;
}

ggml_backend_dev_t lpgemm_ggml_gpu_device(size_t index) { return &gpus[index].device; }
