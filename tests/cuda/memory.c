/* Memory that the GPU and the host share, so that the same tests run on either backend. */
#include <cuda_runtime_api.h>

#include "../framework.h"

static void *allocate(size_t bytes) {
  void *memory = NULL;
  return cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal) == cudaSuccess ? memory : NULL;
}

static void release(void *memory) { cudaFree(memory); }

const test_memory test_cuda_memory = {allocate, release};
