/* The kernel that gathers the columns of X by the weights' column order.
 *
 *   a CTA has every `CTAs in y`-th row and a range of columns; a thread 16 bytes of the output:
 *     once: read the order of its columns, before it waits for the kernel before (the order is part of the weights)
 *     for each row: the row to shared memory, 16 bytes a thread; gather there; store
 * Rows that do not fit into shared memory are gathered from memory. */
#include "x_gather.h"

#include "../../cuda/cuda.h"
#include "../prim/pdl.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int gather_threads = 1024;

struct x_gather_args {
  const uint8_t *x;
  int64_t ldx, pitch; /* in elements */
  int k, m;
  const int32_t *order;
  uint8_t *out;
};

/* A row to shared memory: whole vectors where it is aligned. */
template <class T>
__device__ inline void stage_row(const T *row, int k, T *staged) {
  constexpr int each = 16 / sizeof(T);
  int first = 0;
  if ((uintptr_t)row % 16 == 0) {
    first = k / each * each;
    for (int i = threadIdx.x; i < k / each; i += gather_threads) ((uint4 *)staged)[i] = __ldg((const uint4 *)row + i);
  }
  for (int i = first + threadIdx.x; i < k; i += gather_threads) staged[i] = row[i];
}

/* T: the unsigned integer that an element is as wide as. */
template <class T, bool Staged>
static __global__ void __launch_bounds__(gather_threads) x_gather_kernel(const x_gather_args a) {
  constexpr int each = 16 / sizeof(T);
  extern __shared__ __align__(16) uint8_t memory[];
  T *const staged = (T *)memory;
  pdl_launch_next();
  const int first = (blockIdx.x * gather_threads + threadIdx.x) * each;
  int from[each];
#pragma unroll
  for (int i = 0; i < each; i++) from[i] = first + i < a.k ? __ldg(a.order + first + i) : 0;
  pdl_wait();
  for (int64_t row = blockIdx.y; row < a.m; row += gridDim.y) {
    const T *const x = (const T *)a.x + row * a.ldx;
    if (Staged) {
      __syncthreads(); /* nobody reads the row before any more */
      stage_row(x, a.k, staged);
      __syncthreads();
    }
    if (first >= a.k) continue;
    alignas(16) T value[each];
#pragma unroll
    for (int i = 0; i < each; i++) value[i] = first + i < a.k ? (Staged ? staged[from[i]] : x[from[i]]) : (T)0;
    *(uint4 *)((T *)a.out + row * a.pitch + first) = *(const uint4 *)value;
  }
}

template <class T>
static lpgemm_status_t gather(const lpg_device *device, const x_gather_args &a, void *stream) {
  constexpr int64_t columns = gather_threads * 16 / (int64_t)sizeof(T); /* of a CTA */
  const size_t row_bytes = (size_t)a.k * sizeof(T);
  const bool fits = (int64_t)row_bytes <= device->shared_memory;
  const int64_t x_blocks = lpg_ceil_div(a.k, columns), most = 4 * (int64_t)device->sms / x_blocks;
  const int64_t rows = a.m < most ? a.m : most > 0 ? most : 1;
  return launch_cluster(fits ? (const void *)x_gather_kernel<T, true> : (const void *)x_gather_kernel<T, false>,
                        dim3((unsigned)x_blocks, (unsigned)(rows < 65535 ? rows : 65535)), 1, gather_threads,
                        fits ? row_bytes : 0, stream, a, device->clusters[1] > 0);
}

template <class T>
static lpgemm_status_t load(int shared_memory) {
  LPG_TRY(allow_shared((const void *)x_gather_kernel<T, true>, (size_t)shared_memory));
  return allow_shared((const void *)x_gather_kernel<T, false>, 0);
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_gather_x(const lpg_device *device, int64_t m, int64_t k, const void *x,
                                       lpgemm_dtype_t x_type, int64_t ldx, const int32_t *order, void *out,
                                       int64_t pitch, lpgemm_stream_t stream) {
  const lpg::x_gather_args args = {(const uint8_t *)x, ldx, pitch, (int)k, (int)m, order, (uint8_t *)out};
  switch (lpg_bytes(x_type)) {
    case 1: return lpg::gather<uint8_t>(device, args, stream);
    case 2: return lpg::gather<uint16_t>(device, args, stream);
    default: return lpg::gather<uint32_t>(device, args, stream);
  }
}

lpgemm_status_t lpgemm_i_cuda_load_gather_x(void) {
  int device, shared_memory;
  LPG_CUDA(cudaGetDevice(&device));
  LPG_CUDA(cudaDeviceGetAttribute(&shared_memory, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  LPG_TRY(lpg::load<uint8_t>(shared_memory));
  LPG_TRY(lpg::load<uint16_t>(shared_memory));
  return lpg::load<uint32_t>(shared_memory);
}
