/* Rows of X by index, and by the column order of the expert that they meet.
 *
 *   without an order: a thread has 16 bytes of every `CTAs in y`-th row, and asks for several rows' at once
 *   with one: a CTA has a row, finds its expert, and picks number by number; the row comes from L1 */
#include "experts.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int row_threads = 128, ordered_threads = 256, rows_at_once = 4;

struct gather_rows_args {
  lpg_gather call;
  int vectors; /* rows of X can be read in pieces of 16 bytes */
};

/* From here on no expert has rows. The whole CTA; all threads get it. */
__device__ inline int64_t rows_of_all(const lpg_gather &g) {
  __shared__ int most;
  if (!g.offsets) return g.rows;
  const int64_t last = g.offsets[g.experts];
  if (last >= g.rows) return g.rows; /* the common case; else an earlier offset may be larger (lpg_offset()) */
  if (threadIdx.x == 0) most = 0;
  __syncthreads();
  int own = 0;
  for (int e = threadIdx.x; e <= g.experts; e += blockDim.x) own = max(own, g.offsets[e]);
  atomicMax(&most, own);
  __syncthreads();
  return most < g.rows ? most : g.rows;
}

/* The row of X, -1: there is none. */
__device__ inline int64_t source_row(const lpg_gather &g, int64_t row) {
  const int64_t from = g.row ? g.row[row] : row;
  return from < g.x_rows ? from : -1;
}

__device__ inline void put_scale(const lpg_gather &g, int64_t row, int64_t from) {
  if (g.x_scale) g.out_scale[row] = from >= 0 ? g.x_scale[from] : 0.0f;
}

template <class T>
static __global__ void __launch_bounds__(row_threads) gather_plain_kernel(const gather_rows_args a) {
  constexpr int each = 16 / sizeof(T);
  const lpg_gather &g = a.call;
  const int64_t first = ((int64_t)blockIdx.x * row_threads + threadIdx.x) * each, step = gridDim.y;
  pdl_launch_next();
  pdl_wait();
  const int64_t rows = rows_of_all(g);
  const int count = (int)min(g.k - first, (int64_t)each);
  for (int64_t row = blockIdx.y; row < rows; row += rows_at_once * step) {
    alignas(16) T value[rows_at_once][each];
    int64_t from[rows_at_once];
#pragma unroll
    for (int i = 0; i < rows_at_once; i++) from[i] = row + i * step < rows ? source_row(g, row + i * step) : -1;
#pragma unroll
    for (int i = 0; i < rows_at_once; i++) {
      const T *const x = (const T *)g.x + from[i] * g.ldx + first;
      *(uint4 *)value[i] = make_uint4(0, 0, 0, 0);
      if (from[i] < 0) continue;
      if (a.vectors && count == each) {
        *(uint4 *)value[i] = *(const uint4 *)x;
      } else {
#pragma unroll
        for (int j = 0; j < each; j++) value[i][j] = j < count ? x[j] : (T)0;
      }
    }
#pragma unroll
    for (int i = 0; i < rows_at_once; i++) {
      const int64_t to = row + i * step;
      if (to >= rows) continue;
      if (count > 0) *(uint4 *)((T *)g.out + to * g.ldo + first) = *(const uint4 *)value[i];
      if (first == 0) put_scale(g, to, from[i]);
    }
  }
}

/* The expert whose rows hold `row`: the one before the first that begins later. The whole CTA. */
__device__ inline int expert_of_row(const lpg_gather &g, int64_t row) {
  __shared__ int next;
  if (!g.offsets) return 0;
  __syncthreads(); /* the last one was read */
  if (threadIdx.x == 0) next = g.experts;
  __syncthreads();
  for (int e = threadIdx.x; e <= g.experts; e += blockDim.x) {
    if (g.offsets[e] > row) {
      atomicMin(&next, e);
      break;
    }
  }
  __syncthreads();
  return max(next - 1, 0);
}

template <class T>
static __global__ void __launch_bounds__(ordered_threads) gather_ordered_kernel(const gather_rows_args a) {
  constexpr int each = 16 / sizeof(T);
  const lpg_gather &g = a.call;
  pdl_launch_next();
  pdl_wait();
  const int64_t rows = rows_of_all(g);
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t from = source_row(g, row);
    const int32_t *const order = (const int32_t *)(g.order + expert_of_row(g, row) * g.order_stride);
    const T *const x = (const T *)g.x + from * g.ldx;
    T *const out = (T *)g.out + row * g.ldo;
    for (int64_t first = threadIdx.x * each; first < g.k; first += ordered_threads * each) {
      alignas(16) T value[each];
      int column[each];
#pragma unroll
      for (int i = 0; i < each; i++) column[i] = first + i < g.k ? __ldg(order + first + i) : 0;
#pragma unroll
      for (int i = 0; i < each; i++) value[i] = from >= 0 && first + i < g.k ? x[column[i]] : (T)0;
      *(uint4 *)(out + first) = *(const uint4 *)value;
    }
    if (threadIdx.x == 0) put_scale(g, row, from);
  }
}

template <class T>
static lpgemm_status_t gather_rows(const lpg_device *device, const lpg_gather &call, void *stream) {
  const gather_rows_args a = {call, (uintptr_t)call.x % 16 == 0 && call.ldx * (int64_t)sizeof(T) % 16 == 0};
  const int64_t full = 16 * (int64_t)(device->sms > 0 ? device->sms : 1); /* CTAs that run at once, about */
  const bool follows = may_follow(device);
  if (call.order) {
    const dim3 grid((unsigned)(call.rows < full / 2 ? call.rows : full / 2));
    return launch_cluster((const void *)gather_ordered_kernel<T>, grid, 1, ordered_threads, 0, stream, a, follows);
  }
  const int64_t pieces = lpg_ceil_div(call.k * (int64_t)sizeof(T), 16 * row_threads);
  int64_t ctas = lpg_ceil_div(full, pieces);
  ctas = ctas < call.rows ? ctas : call.rows;
  return launch_cluster((const void *)gather_plain_kernel<T>, dim3((unsigned)pieces, (unsigned)ctas), 1, row_threads, 0,
                        stream, a, follows);
}

template <class T>
static lpgemm_status_t load_gather() {
  LPG_TRY(allow_shared((const void *)gather_plain_kernel<T>, 0));
  return allow_shared((const void *)gather_ordered_kernel<T>, 0);
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_gather_rows(const lpg_device *device, const lpg_gather *call, cudaStream_t stream) {
  if (call->rows == 0 || call->k == 0) return LPGEMM_SUCCESS;
  switch (call->bytes) {
    case 1: return lpg::gather_rows<uint8_t>(device, *call, stream);
    case 2: return lpg::gather_rows<uint16_t>(device, *call, stream);
    default: return lpg::gather_rows<uint32_t>(device, *call, stream);
  }
}

lpgemm_status_t lpgemm_i_cuda_load_gather_rows(void) {
  LPG_TRY(lpg::load_gather<uint8_t>());
  LPG_TRY(lpg::load_gather<uint16_t>());
  return lpg::load_gather<uint32_t>();
}
