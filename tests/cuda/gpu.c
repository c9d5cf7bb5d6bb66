#include "gpu.h"

#include <cuda_runtime_api.h>

#include "../test.h"

void gpu_must(const char *file, int line, int error, const char *call) {
  if (error == 0) return;
  test_fail(file, line, "%s gave error %d (%s)", call, error, cudaGetErrorString((cudaError_t)error));
  exit(1);
}

/* [size, canary][the caller's bytes][canary] */
enum { GUARD = 256, CANARY = 0xA5 };

static size_t total_bytes(size_t bytes) { return GUARD + (bytes + GUARD - 1) / GUARD * GUARD + GUARD; }

void *gpu_alloc(size_t bytes, int fill) {
  uint8_t *base = NULL;
  GPU(cudaMalloc((void **)&base, total_bytes(bytes)));
  GPU(cudaMemset(base, CANARY, total_bytes(bytes)));
  GPU(cudaMemset(base + GUARD, fill, bytes));
  GPU(cudaMemcpy(base, &bytes, sizeof bytes, cudaMemcpyHostToDevice));
  GPU(cudaDeviceSynchronize());
  return base + GUARD;
}

void *gpu_copy(const void *host, size_t bytes) {
  if (!host) return NULL;
  void *gpu = gpu_alloc(bytes, 0);
  GPU(cudaMemcpy(gpu, host, bytes, cudaMemcpyHostToDevice));
  GPU(cudaDeviceSynchronize());
  return gpu;
}

void gpu_read(void *host, const void *gpu, size_t bytes) {
  GPU(cudaDeviceSynchronize());
  GPU(cudaMemcpy(host, gpu, bytes, cudaMemcpyDeviceToHost));
}

void gpu_free(void *gpu) {
  if (!gpu) return;
  uint8_t *base = (uint8_t *)gpu - GUARD, before[GUARD], after[2 * GUARD];
  size_t bytes = 0;
  gpu_read(before, base, sizeof before);
  memcpy(&bytes, before, sizeof bytes);
  size_t end = total_bytes(bytes) - GUARD - bytes;
  gpu_read(after, (uint8_t *)gpu + bytes, end);
  for (size_t i = sizeof bytes; i < GUARD; i++) {
    if (before[i] == CANARY) continue;
    test_fail(__FILE__, __LINE__, "written %zu bytes before %zu bytes of GPU memory", GUARD - i, bytes);
    break;
  }
  for (size_t i = 0; i < end; i++) {
    if (after[i] == CANARY) continue;
    test_fail(__FILE__, __LINE__, "written %zu bytes past %zu bytes of GPU memory", i + 1, bytes);
    break;
  }
  GPU(cudaFree(base));
}
