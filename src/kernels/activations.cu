/* Quantising activations on the GPU, to the bytes of src/cpu/activations.c: a block a row. For a scale of the whole
 * tensor a first kernel collects the largest magnitude in the place of the scale. */
#include "../cuda/cuda.h"
#include "../pack/activation.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct quantize_args {
  int64_t m, k, ldx, ldo;
  const void *x;
  lpgemm_dtype_t x_type, out_type;
  void *out;
  float *scale;
  int one_scale;
};

/* The largest magnitude of a row as bits, which order like the numbers; NaN and infinity come out as NaN, the largest.
 */
__device__ inline uint32_t largest_bits(const quantize_args &a, int64_t row) {
  __shared__ uint32_t of_warp[8];
  uint32_t most = 0;
  for (int64_t j = threadIdx.x; j < a.k; j += 256) {
    const uint32_t bits = lpg_f32_bits(lpg_load(a.x_type, a.x, row * a.ldx + j)) & 0x7fffffffu;
    most = max(most, bits >= 0x7f800000u ? 0x7fc00000u : bits);
  }
  most = __reduce_max_sync(0xffffffffu, most);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = most;
  __syncthreads();
  for (int i = 0; i < 8; i++) most = max(most, of_warp[i]);
  return most;
}

__device__ inline float scale_of(const quantize_args &a, uint32_t most_bits) {
  return lpg_activation_scale((double)lpg_bits_f32(most_bits), a.out_type);
}

static __global__ void __launch_bounds__(256) tensor_largest_kernel(const quantize_args a) {
  for (int64_t row = blockIdx.x; row < a.m; row += gridDim.x) {
    const uint32_t most = largest_bits(a, row);
    if (threadIdx.x == 0) atomicMax((unsigned *)a.scale, most);
  }
}

static __global__ void tensor_scale_kernel(const quantize_args a) {
  a.scale[0] = scale_of(a, lpg_f32_bits(a.scale[0]));
}

static __global__ void __launch_bounds__(256) quantize_kernel(const quantize_args a) {
  for (int64_t row = blockIdx.x; row < a.m; row += gridDim.x) {
    const float scale = a.one_scale ? a.scale[0] : scale_of(a, largest_bits(a, row));
    if (!a.one_scale && threadIdx.x == 0) a.scale[row] = scale;
    for (int64_t j = threadIdx.x; j < a.k; j += 256) {
      const double v = (double)lpg_load(a.x_type, a.x, row * a.ldx + j);
      ((uint8_t *)a.out)[row * a.ldo + j] = lpg_activation_code(a.out_type, v, scale);
    }
  }
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_quantize_activations(int64_t m, int64_t k, const void *x, lpgemm_dtype_t x_type,
                                                   int64_t ldx, lpgemm_dtype_t out_type, void *out, int64_t ldo,
                                                   float *scale, lpgemm_x_scale_t mode, cudaStream_t stream) {
  const lpg::quantize_args args = {m, k, ldx, ldo, x, x_type, out_type, out, scale, mode == LPGEMM_X_SCALE_TENSOR};
  const dim3 grid((unsigned)(m < 65535 ? m : 65535));
  if (args.one_scale) {
    LPG_CUDA(cudaMemsetAsync(scale, 0, sizeof *scale, stream));
    LPG_TRY(lpg::launch((const void *)lpg::tensor_largest_kernel, grid, 256, 0, stream, args));
    LPG_TRY(lpg::launch((const void *)lpg::tensor_scale_kernel, dim3(1), 1, 0, stream, args));
  }
  return lpg::launch((const void *)lpg::quantize_kernel, grid, 256, 0, stream, args);
}

lpgemm_status_t lpgemm_i_cuda_prepare_activations(void) {
  LPG_TRY(lpg::allow_shared((const void *)lpg::tensor_largest_kernel, 0));
  LPG_TRY(lpg::allow_shared((const void *)lpg::tensor_scale_kernel, 0));
  return lpg::allow_shared((const void *)lpg::quantize_kernel, 0);
}
