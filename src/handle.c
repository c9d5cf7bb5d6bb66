/* Handles: the backend, the device and the settings that a thread works with. */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "cpu/cpu.h"
#include "dispatch/dispatch.h"
#include "internal.h"

/* ---- backends ---- */

const lpg_backend *lpgemm_i_backend(lpgemm_backend_t backend) {
  switch (backend) {
    case LPGEMM_BACKEND_CPU: return &lpgemm_i_cpu_backend;
#ifdef LPG_HAVE_CUDA
    case LPGEMM_BACKEND_CUDA: return &lpgemm_i_cuda_backend;
#endif
    default: return NULL;
  }
}

static lpgemm_status_t open_backend(lpgemm_backend_t backend, int32_t index, int32_t threads, lpg_device *device) {
  const lpg_backend *b = lpgemm_i_backend(backend);
  LPG_CHECK(b, LPGEMM_NO_BACKEND, "the CUDA backend is asked for, but this build of the library has none");
  return b->open(index, threads, device);
}

static int is_available(lpgemm_backend_t backend) {
  lpg_device device;
  const lpg_backend *b = lpgemm_i_backend(backend);
  return b && b->open(0, 0, &device) == LPGEMM_SUCCESS;
}

int lpgemm_backend_available(lpgemm_backend_t backend) {
  if (backend != LPGEMM_BACKEND_AUTO) return is_available(backend);
  return is_available(LPGEMM_BACKEND_CUDA) || is_available(LPGEMM_BACKEND_CPU);
}

lpgemm_status_t lpgemm_i_enter(lpgemm_handle_t handle, int32_t *before) {
  *before = handle->device.index;
  return handle->backend->enter ? handle->backend->enter(handle->device.index, before) : LPGEMM_SUCCESS;
}

void lpgemm_i_leave(lpgemm_handle_t handle, int32_t before) {
  if (handle->backend->leave) handle->backend->leave(handle->device.index, before);
}

/* ---- the environment ---- */

static lpgemm_status_t read_log_level(void) {
  const char *text = getenv("LPGEMM_LOG");
  if (!text || !*text) return LPGEMM_SUCCESS;
  static const char *const levels[] = {"off", "error", "dispatch", "profile"};
  for (int i = 0; i < 4; i++) {
    if (strcmp(text, levels[i]) == 0) {
      lpgemm_i_set_log_level((lpgemm_log_level_t)i);
      return LPGEMM_SUCCESS;
    }
  }
  LPG_CHECK(0, LPGEMM_INVALID_ARGUMENT, "LPGEMM_LOG is \"%.32s\"; it must be off, error, dispatch or profile", text);
}

static lpgemm_status_t read_backend(lpgemm_backend_t *backend) {
  const char *text = getenv("LPGEMM_BACKEND");
  if (*backend != LPGEMM_BACKEND_AUTO || !text || !*text) return LPGEMM_SUCCESS;
  static const char *const names[] = {"auto", "cpu", "cuda"};
  for (int i = 0; i < 3; i++) {
    if (strcmp(text, names[i]) == 0) {
      *backend = (lpgemm_backend_t)i;
      return LPGEMM_SUCCESS;
    }
  }
  LPG_CHECK(0, LPGEMM_INVALID_ARGUMENT, "LPGEMM_BACKEND is \"%.32s\"; it must be auto, cpu or cuda", text);
}

static lpgemm_status_t read_forced_kernel(const char **forced) {
  const char *text = getenv("LPGEMM_KERNEL");
  if (!text || !*text) return LPGEMM_SUCCESS;
  const lpg_kernel *kernel;
  LPG_TRY(lpgemm_i_name_kernel(lpgemm_i_registry, lpgemm_i_registry_count, "LPGEMM_KERNEL", text, &kernel));
  *forced = kernel->name;
  return LPGEMM_SUCCESS;
}

/* ---- create and destroy ---- */

static lpgemm_status_t check_threads(const char *name, int32_t threads) {
  LPG_CHECK(threads >= 0 && threads <= 1024, LPGEMM_INVALID_ARGUMENT, "%s is %d; it must be 0 (one a core) to 1024",
            name, threads);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t read_config(const lpgemm_config_t *from, lpgemm_config_t *config) {
  memset(config, 0, sizeof *config);
  LPG_TRY(read_log_level()); /* first, so that the checks below are logged */
  if (from) LPG_TRY(lpgemm_i_copy_struct(config, sizeof *config, LPG_LEAST_CONFIG, from, "config"));
  LPG_TRY(lpgemm_i_check_reserved(config->reserved, 3, "config"));
  LPG_CHECK((int)config->backend >= 0 && config->backend <= LPGEMM_BACKEND_CUDA, LPGEMM_INVALID_ARGUMENT,
            "config.backend is %d; it must be an LPGEMM_BACKEND_ value", (int)config->backend);
  LPG_CHECK(config->device >= 0, LPGEMM_INVALID_ARGUMENT, "config.device is %d; it must be 0 or more", config->device);
  LPG_TRY(check_threads("config.num_threads", config->num_threads));
  LPG_CHECK(config->parallel_for || !config->parallel_context, LPGEMM_NULL_POINTER,
            "config.parallel_context is given, but config.parallel_for is NULL");
  if (config->default_type == 0) config->default_type = LPGEMM_F16;
  LPG_CHECK(lpg_is_real(config->default_type), LPGEMM_INVALID_TYPE,
            "config.default_type is %s; it must be f16, bf16 or f32", lpgemm_dtype_name(config->default_type));
  return read_backend(&config->backend);
}

static lpgemm_status_t open_device(lpgemm_config_t *config, lpg_device *device) {
  if (config->backend == LPGEMM_BACKEND_AUTO) {
    config->backend = lpgemm_backend_available(LPGEMM_BACKEND_CUDA) ? LPGEMM_BACKEND_CUDA : LPGEMM_BACKEND_CPU;
  }
  return open_backend(config->backend, config->device, config->num_threads, device);
}

static void release(lpgemm_handle_t handle) {
  if (handle->ordered_x) handle->backend->release(handle->device.index, handle->ordered_x);
  if (handle->scratch) handle->backend->release(handle->device.index, handle->scratch);
  lpgemm_i_pool_destroy(handle->pool);
  lpgemm_i_tuning_destroy(handle->tuning);
  lpgemm_i_retire(handle);
}

static lpgemm_status_t fill(lpgemm_handle_t handle, const lpgemm_config_t *config) {
  if (config->backend == LPGEMM_BACKEND_CPU) {
    handle->pool = lpgemm_i_pool_create(config->num_threads, config->parallel_for, config->parallel_context);
    LPG_CHECK(handle->pool, LPGEMM_OUT_OF_MEMORY, "no memory for %d threads", handle->device.threads);
    handle->device.threads = lpgemm_i_pool_threads(handle->pool);
    LPG_TRY(handle->backend->allocate(handle->device.index, LPG_ORDERED_BYTES, &handle->ordered_x));
  } else {
    LPG_TRY(handle->backend->allocate(handle->device.index, LPG_HANDLE_SCRATCH, &handle->scratch));
  }
  handle->tuning = lpgemm_i_tuning_create();
  LPG_CHECK(handle->tuning, LPGEMM_OUT_OF_MEMORY, "no memory for the tuning table");
  const char *tuning_file = getenv("LPGEMM_TUNING_FILE");
  if (tuning_file && *tuning_file) {
    LPG_TRY(lpgemm_i_tuning_load(handle->tuning, &handle->device, tuning_file, NULL, NULL));
  }
  return lpgemm_i_live_add(handle, LPG_OBJECT_HANDLE);
}

/* What a handle consists of before it has a device, memory and threads. */
static lpgemm_status_t begin(const lpgemm_config_t *user_config, lpgemm_config_t *config, struct lpgemm_handle *made) {
  memset(made, 0, sizeof *made);
  LPG_TRY(read_config(user_config, config));
  LPG_TRY(read_forced_kernel(&made->forced_kernel));
  made->default_type = config->default_type;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_create(lpgemm_handle_t *handle, const lpgemm_config_t *user_config) {
  LPG_CHECK(handle, LPGEMM_NULL_POINTER, "handle is NULL; pass the address of an lpgemm_handle_t");
  lpgemm_config_t config;
  struct lpgemm_handle made;
  LPG_TRY(begin(user_config, &config, &made));
  LPG_TRY(open_device(&config, &made.device));
  made.backend = lpgemm_i_backend(config.backend);
  lpgemm_handle_t h = malloc(sizeof *h);
  LPG_CHECK(h, LPGEMM_OUT_OF_MEMORY, "no memory for a handle");
  *h = made;
  lpgemm_status_t status = fill(h, &config);
  if (status != LPGEMM_SUCCESS) {
    release(h);
    return status;
  }
  *handle = h;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_destroy(lpgemm_handle_t handle) {
  if (!handle) return LPGEMM_SUCCESS;
  LPG_CHECK(lpgemm_i_live_remove(handle, LPG_OBJECT_HANDLE), LPGEMM_INVALID_HANDLE,
            "handle %p is no live handle: it was destroyed before, or lpgemm_create() never made it", (void *)handle);
  release(handle);
  return LPGEMM_SUCCESS;
}

/* ---- a device without a handle ---- */

/* The same as open_device(), which takes milliseconds for a GPU, for callers who ask for every node of a graph: what
 * was opened once is known, but for what LPGEMM_CPU says now. */
static lpgemm_status_t know_device(lpgemm_config_t *config, lpg_device *device) {
  enum { MOST = 32 };
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static struct {
    lpgemm_backend_t asked;
    lpg_device device;
  } known[MOST];
  static int count;
  const lpgemm_backend_t asked = config->backend;
  int found = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < count && !found; i++) {
    found = known[i].asked == asked && known[i].device.index == config->device;
    if (found) *device = known[i].device;
  }
  pthread_mutex_unlock(&lock);
  if (found) {
    config->backend = device->backend;
    return device->backend == LPGEMM_BACKEND_CPU ? lpgemm_i_cpu_isa(&device->isa) : LPGEMM_SUCCESS;
  }
  LPG_TRY(open_device(config, device));
  pthread_mutex_lock(&lock);
  if (count < MOST) {
    known[count].asked = asked;
    known[count++].device = *device;
  }
  pthread_mutex_unlock(&lock);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_device_supports(const lpgemm_config_t *user_config, const lpgemm_weight_desc_t *desc,
                                       lpgemm_dtype_t x_type, lpgemm_dtype_t y_type, int64_t m) {
  lpgemm_config_t config;
  struct lpgemm_handle asked; /* for the length of this call: no memory, no threads */
  LPG_TRY(begin(user_config, &config, &asked));
  LPG_TRY(know_device(&config, &asked.device));
  return lpgemm_i_supports(&asked, desc, x_type, y_type, m);
}

/* ---- settings ---- */

lpgemm_backend_t lpgemm_get_backend(lpgemm_handle_t handle) {
  return lpgemm_i_is_live(handle, LPG_OBJECT_HANDLE) ? handle->device.backend : LPGEMM_BACKEND_AUTO;
}

const char *lpgemm_device_name(lpgemm_handle_t handle) {
  return lpgemm_i_is_live(handle, LPG_OBJECT_HANDLE) ? handle->device.name : "";
}

lpgemm_status_t lpgemm_set_stream(lpgemm_handle_t handle, lpgemm_stream_t stream) {
  LPG_TRY(lpgemm_i_check_handle(handle));
  handle->stream = stream;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_set_num_threads(lpgemm_handle_t handle, int32_t num_threads) {
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_TRY(check_threads("num_threads", num_threads));
  if (!handle->pool || num_threads == handle->device.threads) return LPGEMM_SUCCESS;
  lpg_pool *pool = lpgemm_i_pool_resized(handle->pool, num_threads);
  LPG_CHECK(pool, LPGEMM_OUT_OF_MEMORY, "no memory for %d threads", num_threads);
  lpgemm_i_pool_destroy(handle->pool);
  handle->pool = pool;
  handle->device.threads = lpgemm_i_pool_threads(pool);
  memset(handle->remembered, 0, sizeof handle->remembered); /* times depend on the number of threads */
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_set_workspace(lpgemm_handle_t handle, void *workspace, size_t bytes) {
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_CHECK(workspace || bytes == 0, LPGEMM_NULL_POINTER, "workspace is NULL, but bytes is %zu", bytes);
  LPG_CHECK((uintptr_t)workspace % 256 == 0, LPGEMM_MISALIGNED, "workspace is %p; it must be 256-byte aligned",
            workspace);
  handle->workspace = workspace;
  handle->workspace_bytes = workspace ? bytes : 0;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_set_pointer_mode(lpgemm_handle_t handle, lpgemm_pointer_mode_t mode) {
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_CHECK(mode == LPGEMM_POINTER_HOST || mode == LPGEMM_POINTER_DEVICE, LPGEMM_INVALID_ARGUMENT,
            "mode is %d; it must be LPGEMM_POINTER_HOST or LPGEMM_POINTER_DEVICE", (int)mode);
  handle->pointer_mode = mode;
  return LPGEMM_SUCCESS;
}
