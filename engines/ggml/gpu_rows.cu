/* Rows of X and Y are brought where lpgemm_run() takes them: X in bf16, and rows of an expert one after the other. */
#include <cuda_bf16.h>

#include "gpu.h"

namespace {

enum { THREADS = 256, VECTOR = 8 };

/* The next kernel may start, and waits for this one as a whole. The kernel before has ended after it. */
static __device__ inline void follow() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
}

static __device__ inline float *row_of(const lpgemm_ggml_rows &r, uint32_t row) {
  const uint32_t ne0 = (uint32_t)r.ne[0], ne1 = (uint32_t)r.ne[1];
  const uint32_t above = row / ne0;
  return r.data + row % ne0 * r.stride[0] + above % ne1 * r.stride[1] + above / ne1 * r.stride[2];
}

static __device__ inline void store(float *to, const float (&x)[VECTOR]) {
  reinterpret_cast<float4 *>(to)[0] = make_float4(x[0], x[1], x[2], x[3]);
  reinterpret_cast<float4 *>(to)[1] = make_float4(x[4], x[5], x[6], x[7]);
}

static __device__ inline void store(__nv_bfloat16 *to, const float (&x)[VECTOR]) {
  __nv_bfloat162 pairs[VECTOR / 2];
  for (int i = 0; i < VECTOR / 2; i++) pairs[i] = __floats2bfloat162_rn(x[2 * i], x[2 * i + 1]);
  *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(pairs);
}

struct gather_args {
  lpgemm_ggml_rows from;
  void *to;
  const int32_t *position;
  int64_t vectors; /* of a row */
  int64_t all;
  bool aligned;
};

/* A thread has 8 columns of a row. */
template <class T>
static __global__ void __launch_bounds__(THREADS) gather(const __grid_constant__ gather_args a) {
  follow();
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= a.all) return;
  const uint32_t row = (uint32_t)(i / a.vectors);
  const int64_t column = (i - row * a.vectors) * VECTOR;
  const int64_t to_row = a.position ? a.position[row] : row;
  if (to_row < 0) return;
  const float *from = row_of(a.from, row) + column;
  alignas(16) float x[VECTOR];
  if (a.aligned) {
    reinterpret_cast<float4 *>(x)[0] = reinterpret_cast<const float4 *>(from)[0];
    reinterpret_cast<float4 *>(x)[1] = reinterpret_cast<const float4 *>(from)[1];
  } else {
    for (int j = 0; j < VECTOR; j++) x[j] = from[j];
  }
  store(static_cast<T *>(a.to) + to_row * a.from.length + column, x);
}

struct scatter_args {
  const float *from;
  lpgemm_ggml_rows to;
  const int32_t *position;
  int64_t all;
};

/* A thread has one number. */
static __global__ void __launch_bounds__(THREADS) scatter(const __grid_constant__ scatter_args a) {
  follow();
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= a.all) return;
  const uint32_t row = (uint32_t)(i / a.to.length);
  const int64_t column = i - row * a.to.length;
  const int32_t from_row = a.position[row];
  row_of(a.to, row)[column] = from_row < 0 ? 0 : a.from[from_row * a.to.length + column];
}

static int64_t count(const lpgemm_ggml_rows &r) { return r.ne[0] * r.ne[1] * r.ne[2]; }

static cudaError_t launch(const void *kernel, int64_t threads, void *args, bool follows, cudaStream_t stream) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)((threads + THREADS - 1) / THREADS));
  config.blockDim = dim3(THREADS);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = follows;
  return cudaLaunchKernelExC(&config, kernel, &args);
}

static bool is_aligned(const lpgemm_ggml_rows &r) {
  bool fits = reinterpret_cast<uintptr_t>(r.data) % 16 == 0;
  for (int i = 0; i < 3; i++) fits = fits && (r.ne[i] == 1 || r.stride[i] % 4 == 0);
  return fits;
}

}  // namespace

bool lpgemm_ggml_may_follow(void) {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, (const void *)scatter) == cudaSuccess && attributes.ptxVersion >= 90;
}

cudaError_t lpgemm_ggml_gather(const lpgemm_ggml_rows *from, void *to, bool is_bf16, const int32_t *position,
                               bool follows, cudaStream_t stream) {
  const int64_t vectors = from->length / VECTOR;
  gather_args args = {*from, to, position, vectors, vectors * count(*from), is_aligned(*from)};
  const void *kernel = is_bf16 ? (const void *)gather<__nv_bfloat16> : (const void *)gather<float>;
  return launch(kernel, args.all, &args, follows, stream);
}

cudaError_t lpgemm_ggml_scatter(const float *from, const lpgemm_ggml_rows *to, const int32_t *position, bool follows,
                                cudaStream_t stream) {
  scatter_args args = {from, *to, position, to->length * count(*to)};
  return launch((const void *)scatter, args.all, &args, follows, stream);
}
