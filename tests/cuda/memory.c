/* The GPU as the framework sees it. Its test_alloc() memory is shared with the host, so that the same tests run on
 * either backend. */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "../framework.h"
#include "../test.h"
#include "gpu.h"

static void *allocate(size_t bytes) {
  void *memory = NULL;
  return cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal) == cudaSuccess ? memory : NULL;
}

static void release(void *memory) { GPU(cudaFree(memory)); }

static void wait(void) { GPU(cudaDeviceSynchronize()); }

/* ---- pages, by the driver's calls, which come from the library that the runtime has loaded ---- */

enum { PAGE = 2 << 20 };

static size_t whole_pages(size_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

static void *driver_function(const char *name) {
  void *function = NULL;
  enum cudaDriverEntryPointQueryResult found;
  GPU(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
  GPU(found != cudaDriverEntryPointSuccess);
  return function;
}

#define DRIVER(name) ((__typeof__(&name))(uintptr_t)driver_function(#name))

static CUmemLocation this_gpu(void) {
  CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
  GPU(cudaGetDevice(&location.id));
  return location;
}

static void set_access(void *pages, size_t bytes, CUmemAccess_flags flags) {
  CUmemAccessDesc access = {.location = this_gpu(), .flags = flags};
  GPU(cudaDeviceSynchronize());
  GPU(DRIVER(cuMemSetAccess)((CUdeviceptr)pages, whole_pages(bytes), &access, 1));
}

static void lock(void *pages, size_t bytes) { set_access(pages, bytes, CU_MEM_ACCESS_FLAGS_PROT_NONE); }
static void unlock(void *pages, size_t bytes) { set_access(pages, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE); }

static void *map(size_t bytes) {
  CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = this_gpu()};
  CUmemGenericAllocationHandle handle;
  CUdeviceptr address;
  size_t size = whole_pages(bytes);
  GPU(DRIVER(cuMemCreate)(&handle, size, &prop, 0));
  GPU(DRIVER(cuMemAddressReserve)(&address, size, 0, 0, 0));
  GPU(DRIVER(cuMemMap)(address, size, 0, handle, 0));
  GPU(DRIVER(cuMemRelease)(handle)); /* what is mapped stays */
  unlock((void *)address, bytes);
  return (void *)address;
}

static void unmap(void *pages, size_t bytes) {
  GPU(cudaDeviceSynchronize());
  GPU(DRIVER(cuMemUnmap)((CUdeviceptr)pages, whole_pages(bytes)));
  GPU(DRIVER(cuMemAddressFree)((CUdeviceptr)pages, whole_pages(bytes)));
}

const test_device test_cuda = {allocate, release, wait, map, lock, unlock, unmap};
