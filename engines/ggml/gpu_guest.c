/* Products for a ggml-cuda that ggml-cuda.patch was applied to. It keeps the whole graph, and calls this for products
 * with weights in buffers of LPGEMM-CUDA0 and so on: nothing is copied, nothing waits, and it may capture what is
 * launched. */
#include <ggml-impl.h>
#include <pthread.h>

#include "gpu.h"

enum { MOST_STREAMS = 64 };

/* What the patch expects to find by the name ggml_cuda_guest. */
typedef struct guest_calls {
  int (*gpu)(
      ggml_backend_buffer_type_t type); /* CUDA's number of the GPU in whose memory its buffers lie; negative: none */
  bool (*supports)(const struct ggml_tensor *op);
  bool (*multiply)(int gpu, void *stream, struct ggml_tensor *op);
} guest_calls;

static lpgemm_ggml_gpu_context
    *contexts[MOST_STREAMS]; /* until the process ends, since nobody says when a stream does */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static lpgemm_ggml_gpu_context *find_or_open(int gpu, cudaStream_t stream) {
  int i = 0;
  while (i < MOST_STREAMS && contexts[i] && (contexts[i]->gpu != gpu || contexts[i]->stream != stream)) i++;
  if (i == MOST_STREAMS) {
    GGML_LOG_ERROR("lpgemm: more than %d streams\n", MOST_STREAMS);
    return NULL;
  }
  if (!contexts[i]) contexts[i] = lpgemm_ggml_open_context(gpu, stream);
  return contexts[i];
}

static int gpu_of(ggml_backend_buffer_type_t type) { return lpgemm_ggml_place_of(type)->gpu; }

static bool supports(const struct ggml_tensor *op) {
  const bool is_product = op->op == GGML_OP_MUL_MAT || op->op == GGML_OP_MUL_MAT_ID;
  return is_product && lpgemm_ggml_supports(op, op->src[0]->buffer->buft, false) && lpgemm_ggml_gpu_can_multiply(op);
}

static bool multiply(int gpu, void *stream, struct ggml_tensor *op) {
  if (!stream) return false; /* to open_context() none means one of its own */
  pthread_mutex_lock(&lock);
  lpgemm_ggml_gpu_context *context = find_or_open(gpu, stream);
  pthread_mutex_unlock(&lock);
  if (!context || cudaSetDevice(gpu) != cudaSuccess) return false;
  context->x = NULL; /* nobody says where a graph begins, so none is known to be still the same */
  if (lpgemm_ggml_gpu_multiply(context, op)) return true;
  lpgemm_ggml_failed("multiplying", op->src[0]);
  return false;
}

void *lpgemm_ggml_guest(void) {
  static guest_calls calls = {.gpu = gpu_of, .supports = supports, .multiply = multiply};
  return &calls;
}
