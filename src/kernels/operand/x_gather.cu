/* The kernels that gather the columns of X by the weights' column order. A thread makes 16 bytes of a row of the
 * output; it reads the order of its columns once, before it waits for the kernel before (the order is part of the
 * weights).
 *
 *   few rows, and rows of which two do not fit shared memory: straight from memory, by many small CTAs
 *   many rows: a CTA has 16 KB of every `CTAs in y`-th row; the whole of the row comes to shared memory by cp.async
 * while the one before is gathered */
#include "x_gather.h"

#include "../../cuda/cuda.h"
#include "../prim/pdl.cuh"
#include "../prim/shared.cuh"
#include "x_row.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct x_gather_args {
  const uint8_t *x;
  int64_t ldx, pitch; /* in elements */
  int k, x_k, m;      /* k: columns of the output; x_k: of X */
  const int32_t *order;
  uint8_t *out;
};

/* What a thread makes of each row: 16 bytes of T, the unsigned integer that an element is as wide as. */
template <class T>
struct gathered {
  static constexpr int each = 16 / sizeof(T);
  int first, count, from[each];

  __device__ gathered(const x_gather_args &a) {
    first = (blockIdx.x * blockDim.x + threadIdx.x) * each;
    count = min(a.k - first, each);
#pragma unroll
    for (int i = 0; i < each; i++) from[i] = i < count ? __ldg(a.order + first + i) : 0;
  }

  /* x: the row, in any memory. */
  __device__ void store(const x_gather_args &a, int64_t row, const T *x) const {
    if (count <= 0) return;
    alignas(16) T value[each];
#pragma unroll
    for (int i = 0; i < each; i++) value[i] = i < count ? x[from[i]] : (T)0;
    *(uint4 *)((T *)a.out + row * a.pitch + first) = *(const uint4 *)value;
  }
};

template <class T>
__device__ inline const T *row_of(const x_gather_args &a, int64_t row) {
  return (const T *)a.x + row * a.ldx;
}

constexpr int few_threads = 128, many_threads = 1024;

template <class T>
static __global__ void __launch_bounds__(few_threads) gather_few_kernel(const x_gather_args a) {
  pdl_launch_next();
  const gathered<T> own(a);
  pdl_wait();
  for (int64_t row = blockIdx.y; row < a.m; row += gridDim.y) own.store(a, row, row_of<T>(a, row));
}

template <class T>
static __global__ void __launch_bounds__(many_threads) gather_many_kernel(const x_gather_args a) {
  LPG_SHARED_MEMORY(uint8_t, 16);
  const int64_t row_bytes = lpg_round_up((int64_t)a.x_k * (int)sizeof(T), 16);
  const auto buffer = [&](int i) { return (T *)(memory + i * row_bytes); };
  pdl_launch_next();
  const gathered<T> own(a);
  pdl_wait();
  if (blockIdx.y < a.m) copy_row(row_of<T>(a, blockIdx.y), a.x_k, buffer(0), many_threads);
  commit_copies();
  int now = 0;
  for (int64_t row = blockIdx.y; row < a.m; row += gridDim.y, now ^= 1) {
    const int64_t next = row + gridDim.y;
    if (next < a.m) copy_row(row_of<T>(a, next), a.x_k, buffer(now ^ 1), many_threads);
    commit_copies();
    wait_copies<1>();
    __syncthreads();
    own.store(a, row, buffer(now));
    __syncthreads(); /* nobody reads the row any more */
  }
}

template <class T>
static lpgemm_status_t gather(const lpg_device *device, const x_gather_args &a, void *stream) {
  constexpr int few_rows = 8; /* from 16 on, loads of 2 bytes are slower (H100, 2026-11-25, docs/log/2026-11.md) */
  const int64_t row_bytes = lpg_round_up((int64_t)a.k * (int64_t)sizeof(T), 16);
  const int64_t x_bytes = lpg_round_up((int64_t)a.x_k * (int64_t)sizeof(T), 16);
  const bool many = a.m > few_rows && 2 * x_bytes <= device->shared_memory;
  const int threads = many ? many_threads : few_threads;
  const int64_t ctas = lpg_ceil_div(row_bytes, threads * 16), most = many ? lpg_ceil_div(2 * device->sms, ctas) : 65535;
  return launch_cluster(many ? (const void *)gather_many_kernel<T> : (const void *)gather_few_kernel<T>,
                        dim3((unsigned)ctas, (unsigned)(a.m < most ? a.m : most)), 1, threads,
                        many ? (size_t)(2 * x_bytes) : 0, stream, a, device->clusters[1] > 0);
}

template <class T>
static lpgemm_status_t load(int shared_memory) {
  LPG_TRY(allow_shared((const void *)gather_many_kernel<T>, (size_t)shared_memory));
  return allow_shared((const void *)gather_few_kernel<T>, 0);
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_gather_x(const lpg_device *device, const lpg_packed *packed, int64_t m, const void *x,
                                       lpgemm_dtype_t x_type, int64_t ldx, const int32_t *order, void *out,
                                       int64_t pitch, lpgemm_stream_t stream) {
  const lpg::x_gather_args args = {(const uint8_t *)x, ldx,    pitch, (int)packed->desc.k,
                                   (int)packed->x_k,   (int)m, order, (uint8_t *)out};
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
