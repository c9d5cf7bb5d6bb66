/* The CUDA runtime and the driver as far as the library and its tests call them, for one emulated GPU: an H200 whose
 * memory is that of the host. Everything is done when the call returns. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <mutex>

#include "tensor_map.h"

namespace {

constexpr size_t alignment = 256;

std::map<const char *, size_t> allocated; /* begin, bytes */
std::mutex of_allocated;

cudaError_t allocate(void **memory, size_t bytes) {
  char *const begin = (char *)aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment + alignment);
  if (!begin) return cudaErrorMemoryAllocation;
  const std::lock_guard<std::mutex> lock(of_allocated);
  allocated[begin] = bytes;
  *memory = begin;
  return cudaSuccess;
}

bool is_allocated(const void *pointer) {
  const std::lock_guard<std::mutex> lock(of_allocated);
  auto next = allocated.upper_bound((const char *)pointer);
  if (next == allocated.begin()) return false;
  --next;
  return (const char *)pointer < next->first + next->second + alignment;
}

CUresult encode_tiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t dimensions, void *base,
                      const cuuint64_t *size, const cuuint64_t *pitch, const cuuint32_t *box, const cuuint32_t *step,
                      CUtensorMapInterleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                      CUtensorMapFloatOOBfill) {
  simt::tensor_map m = {};
  m.base = (const uint8_t *)base;
  m.dimensions = (uint8_t)dimensions;
  m.element = type == CU_TENSOR_MAP_DATA_TYPE_UINT8 ? 1 : type == CU_TENSOR_MAP_DATA_TYPE_UINT16 ? 2 : 4;
  m.is_swizzled = swizzle == CU_TENSOR_MAP_SWIZZLE_128B;
  if ((uintptr_t)base % 16 != 0 || dimensions > 4) return CUDA_ERROR_INVALID_VALUE;
  if (box[0] * m.element % 16 != 0 || (m.is_swizzled && box[0] * m.element > 128)) return CUDA_ERROR_INVALID_VALUE;
  for (cuuint32_t d = 0; d < dimensions; d++) {
    if (size[d] == 0 || box[d] == 0 || box[d] > 256 || step[d] != 1) return CUDA_ERROR_INVALID_VALUE;
    m.size[d] = size[d];
    m.box[d] = (uint16_t)box[d];
    if (d == 0) continue;
    if (pitch[d - 1] % 16 != 0 || pitch[d - 1] >= (cuuint64_t)1 << 40) return CUDA_ERROR_INVALID_VALUE;
    m.pitch[d - 1] = pitch[d - 1];
  }
  memset(map, 0, sizeof *map);
  memcpy(map, &m, sizeof m);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int *count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int *device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char *cudaGetErrorString(cudaError_t) { return "an error of the emulated GPU"; }
const char *cudaGetErrorName(cudaError_t) { return "simt"; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int) {
  memset(p, 0, sizeof *p);
  strcpy(p->name, "NVIDIA H200");
  p->major = 9;
  p->multiProcessorCount = 132;
  p->sharedMemPerBlockOptin = 227 << 10;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int) {
  *value = 0;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *) {
  memset(attributes, 0, sizeof *attributes);
  attributes->ptxVersion = 90;
  return cudaSuccess;
}
/* Those of a real H200: tests/devices.c. */
cudaError_t cudaOccupancyMaxActiveClusters(int *count, const void *, const cudaLaunchConfig_t *config) {
  const int blocks = (int)config->attrs[0].val.clusterDim.x, counts[] = {0, 132, 66, 39, 30, 0, 17, 0, 15};
  *count = blocks <= 8 ? counts[blocks] : 0;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes) { return allocate(memory, bytes); }
cudaError_t cudaMallocManaged(void **memory, size_t bytes, unsigned) { return allocate(memory, bytes); }
cudaError_t cudaFree(void *memory) {
  const std::lock_guard<std::mutex> lock(of_allocated);
  allocated.erase((const char *)memory);
  free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind) {
  if (bytes) memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}
cudaError_t cudaMemset(void *to, int value, size_t bytes) {
  memset(to, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t) { return cudaMemset(to, value, bytes); }
cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t) {
  for (size_t i = 0; i < height; i++) memset((char *)to + i * pitch, value, width);
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
  memset(attributes, 0, sizeof *attributes);
  attributes->type = is_allocated(pointer) ? cudaMemoryTypeManaged : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult *found) {
  const bool is_there = strcmp(name, "cuTensorMapEncodeTiled") == 0;
  *function = is_there ? (void *)encode_tiled : nullptr;
  *found = is_there ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

}  // extern "C"
