/* Quantising activations on the GPU, to the bytes of src/cpu/activations.c: a block a row. For a scale of the whole
 * tensor a first kernel collects the largest magnitude in the place of the scale. */
#include <cuda_fp16.h>

#include "../cuda/cuda.h"
#include "../pack/activation.h"
#include "prim/follow.cuh"

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

/* Eight numbers of a row from k on as they are stored, as far as there are; those that are not there are 0. */
template <int Bytes>
struct eight_stored {
  alignas(16) uint32_t word[2 * Bytes];

  __device__ void load(const quantize_args &a, int64_t row, int64_t k) {
    const uint8_t *from = (const uint8_t *)a.x + (row * a.ldx + k) * Bytes;
    if ((uintptr_t)from % 16 == 0 && k + 8 <= a.k) {
#pragma unroll
      for (int i = 0; i < Bytes / 2; i++) ((uint4 *)word)[i] = ((const uint4 *)from)[i];
      return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const bool there = k + i < a.k;
      if (Bytes == 4) word[i] = there ? ((const uint32_t *)from)[i] : 0u;
      if (Bytes == 2) {
        const uint32_t half = there ? ((const uint16_t *)from)[i] : 0u;
        word[i / 2] = i % 2 ? word[i / 2] | half << 16 : half;
      }
    }
  }

  __device__ float number(lpgemm_dtype_t type, int i) const {
    if (Bytes == 4) return lpg_bits_f32(word[i]);
    const uint32_t half = word[i / 2] >> i % 2 * 16;
    return type == LPGEMM_BF16 ? lpg_bits_f32(half << 16) : __half2float(__ushort_as_half((unsigned short)half));
  }
};

/* A magnitude as bits, which order like the numbers. no_sign: only numbers of no sign count. */
__device__ inline uint32_t magnitude_bits(float x, bool no_sign) {
  const uint32_t bits = lpg_f32_bits(x), magnitude = bits & 0x7fffffffu;
  return no_sign && bits != magnitude && magnitude < 0x7f800000u ? 0u : magnitude;
}

/* The numbers of a row that a thread has, in the order of the row: eight, those of all other threads, eight and so on.
 * The first Held times eight stay in registers between two looks at them. */
template <int Bytes, int Threads, int Held>
struct thread_numbers {
  eight_stored<Bytes> held[Held > 0 ? Held : 1];

  /* look(numbers, k) for each eight; brings: they are not yet there. */
  template <class Look>
  __device__ void each(const quantize_args &a, int64_t row, bool brings, Look look) {
    if constexpr (Held > 0) {
      if (brings) {
#pragma unroll
        for (int i = 0; i < Held; i++) held[i].load(a, row, ((int64_t)i * Threads + threadIdx.x) * 8);
      }
#pragma unroll
      for (int i = 0; i < Held; i++) {
        const int64_t k = ((int64_t)i * Threads + threadIdx.x) * 8;
        if (k < a.k) look(held[i], k);
      }
    } else {
#pragma unroll 4
      for (int64_t k = threadIdx.x * 8; k < a.k; k += Threads * 8) {
        held[0].load(a, row, k);
        look(held[0], k);
      }
    }
  }
};

/* The largest magnitude of a row as bits; NaN and infinity come out as NaN, the largest. */
template <int Bytes, int Threads, int Held>
__device__ inline uint32_t largest_bits(const quantize_args &a, int64_t row,
                                        thread_numbers<Bytes, Threads, Held> &numbers) {
  __shared__ uint32_t of_warp[Threads / 32];
  const bool no_sign = lpg_kind(a.out_type) == LPGEMM_KIND_UINT;
  uint32_t most = 0;
  if (Bytes == 2 && !no_sign) { /* the bits of pairs, which order like the numbers */
    uint32_t pair = 0;
    numbers.each(a, row, true, [&](const eight_stored<Bytes> &eight, int64_t) {
#pragma unroll
      for (int i = 0; i < 4; i++) pair = __vmaxu2(pair, eight.word[i] & 0x7fff7fffu);
    });
    eight_stored<Bytes> largest;
    largest.word[0] = max(pair & 0xffff, pair >> 16);
    most = lpg_f32_bits(largest.number(a.x_type, 0));
  } else {
    numbers.each(a, row, true, [&](const eight_stored<Bytes> &eight, int64_t) {
#pragma unroll
      for (int i = 0; i < 8; i++) most = max(most, magnitude_bits(eight.number(a.x_type, i), no_sign));
    });
  }
  if (most >= 0x7f800000u) most = 0x7fc00000u;
  most = __reduce_max_sync(0xffffffffu, most);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = most;
  __syncthreads();
  return __reduce_max_sync(0xffffffffu, of_warp[threadIdx.x % (Threads / 32)]);
}

__device__ inline float scale_of(const quantize_args &a, uint32_t most_bits) {
  return lpg_activation_scale((double)lpg_bits_f32(most_bits), a.out_type);
}

template <int Bytes>
static __global__ void __launch_bounds__(256) tensor_largest_kernel(const quantize_args a) {
  for (int64_t row = blockIdx.x; row < a.m; row += gridDim.x) {
    thread_numbers<Bytes, 256, 0> numbers;
    const uint32_t most = largest_bits(a, row, numbers);
    if (threadIdx.x == 0) atomicMax((unsigned *)a.scale, most);
  }
}

static __global__ void tensor_scale_kernel(const quantize_args a) {
  a.scale[0] = scale_of(a, lpg_f32_bits(a.scale[0]));
}

/* The code of x as lpg_activation_code() gives it, which divides in fp64: `quotient`, x / scale to a few units of fp32,
 * says which code it is unless it lies next to a tie. A function, since it is long, and rare where speed matters. */
__device__ __noinline__ uint32_t code_of(lpgemm_dtype_t type, float x, float scale, float quotient) {
  const float magnitude = fabsf(quotient);
  if (lpg_is_integer_kind(type)) {
    const float top = (float)lpg_activation_top(type), low = lpg_kind(type) == LPGEMM_KIND_INT ? -top : 0.0f;
    const float code = lpg_kind(type) == LPGEMM_KIND_BIPOLAR ? (quotient + top) * 0.5f : quotient;
    const float within = fminf(fmaxf(code, low), top), whole = rintf(within), off = fabsf(within - whole);
    if (fabsf(off - 0.5f) > 1e-3f && magnitude == magnitude) return (uint32_t)(int)whole & 0xffu; /* not for NaN */
  } else if (magnitude >= 0x1p-6f && magnitude < 440.0f) { /* three digits of the mantissa stay */
    const uint32_t bits = lpg_f32_bits(magnitude), left = bits & 0xfffffu;
    if (left < 0x80000u - 64u || left > 0x80000u + 64u) {
      const uint32_t rounded = (bits + 0x80000u) >> 20; /* exponent and digits, biased by 127 */
      return (rounded - (120u << 3)) | (lpg_f32_bits(x) >> 24 & 0x80u);
    }
  }
  return lpg_activation_code(type, (double)x, scale);
}

/* The codes of eight numbers of INT(b), four a word, if the quotient x / scale says for all which they are: it is off
 * by less than 2^-22 of itself, and a code is at most 127. */
__device__ inline bool signed_codes(const float (&x)[8], float inverse, uint32_t (&word)[2]) {
  const float magic = 12582912.0f; /* 1.5 * 2^23: its last digits are the nearest integer */
  uint32_t bits[8];
  float most_off = 0.0f;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const float shifted = fmaf(x[i], inverse, magic);
    most_off = fmaxf(most_off, fabsf(fmaf(x[i], inverse, magic - shifted)));
    bits[i] = lpg_f32_bits(shifted);
  }
#pragma unroll
  for (int i = 0; i < 2; i++) {
    word[i] = __byte_perm(__byte_perm(bits[4 * i], bits[4 * i + 1], 0x0040),
                          __byte_perm(bits[4 * i + 2], bits[4 * i + 3], 0x0040), 0x5410);
  }
  return most_off < 0.5f - 0x1p-14f;
}

/* The same of E4M3, by the bits of quotients that keep three digits of the mantissa, and of zeros. */
__device__ inline bool e4m3_codes(const float (&x)[8], float inverse, uint32_t (&word)[2]) {
  bool sure = true;
  uint32_t code[8];
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const uint32_t bits = lpg_f32_bits(x[i] * inverse), magnitude = bits & 0x7fffffffu;
    const uint32_t off_tie = (magnitude & 0xfffffu) - (0x80000u - 64u);
    const bool normal = magnitude - 0x3c800000u < 0x43e40000u - 0x3c800000u; /* from 2^-6 to below 456 */
    sure = sure && ((normal && off_tie > 128u) || x[i] == 0.0f);
    code[i] = x[i] == 0.0f ? 0u : (((magnitude + 0x80000u) >> 20) - (120u << 3)) | (bits >> 24 & 0x80u);
  }
#pragma unroll
  for (int i = 0; i < 2; i++) {
    word[i] = code[4 * i] | code[4 * i + 1] << 8 | code[4 * i + 2] << 16 | code[4 * i + 3] << 24;
  }
  return sure;
}

/* A block of threads has a row after the other. */
template <int Bytes, int Threads, int Held>
static __global__ void __launch_bounds__(Threads) quantize_kernel(const quantize_args a) {
  let_next_start(); /* which waits for this one's end */
  for (int64_t row = blockIdx.x; row < a.m; row += gridDim.x) {
    thread_numbers<Bytes, Threads, Held> numbers;
    const float scale = a.one_scale ? a.scale[0] : scale_of(a, largest_bits(a, row, numbers)), inverse = 1.0f / scale;
    const bool fast = inverse >= 0x1p-126f && inverse < INFINITY; /* else, and for NaN, all go the long way */
    if (!a.one_scale && threadIdx.x == 0) a.scale[row] = scale;
    numbers.each(a, row, a.one_scale, [&](const eight_stored<Bytes> &eight, int64_t k) {
      uint8_t *const to = (uint8_t *)a.out + row * a.ldo + k;
      float x[8];
      uint32_t word[2];
#pragma unroll
      for (int i = 0; i < 8; i++) x[i] = eight.number(a.x_type, i);
      bool sure = false;
      if (fast && lpg_kind(a.out_type) == LPGEMM_KIND_INT) sure = signed_codes(x, inverse, word);
      if (fast && a.out_type == LPGEMM_E4M3) sure = e4m3_codes(x, inverse, word);
      if (!sure) {
        word[0] = word[1] = 0;
#pragma unroll
        for (int i = 0; i < 8; i++) {
          word[i / 4] |= code_of(a.out_type, x[i], scale, fast ? x[i] * inverse : NAN) << i % 4 * 8;
        }
      }
      if ((uintptr_t)to % 8 == 0 && k + 8 <= a.k) {
        *(uint2 *)to = make_uint2(word[0], word[1]);
      } else {
#pragma unroll
        for (int i = 0; i < 8; i++) {
          if (k + i < a.k) to[i] = (uint8_t)(word[i / 4] >> i % 4 * 8);
        }
      }
    });
  }
}

/* The forms of the kernel: with(kernel, threads, columns that its registers hold), the first that holds a row is taken,
 * or the last, which reads rows twice. With few rows blocks of more threads are done earlier. */
struct quantize_form {
  const void *kernel;
  int threads;
  int64_t columns;
};
template <int Bytes, int Threads, int Held>
static quantize_form form_of() {
  return {(const void *)quantize_kernel<Bytes, Threads, Held>, Threads, (int64_t)Threads * 8 * Held};
}
static const quantize_form forms[2][5] = {
    {form_of<2, 256, 2>(), form_of<2, 256, 4>(), form_of<2, 1024, 1>(), form_of<2, 1024, 2>(), form_of<2, 256, 0>()},
    {form_of<4, 256, 1>(), form_of<4, 256, 2>(), form_of<4, 1024, 1>(), form_of<4, 1024, 1>(), form_of<4, 256, 0>()}};

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_quantize_activations(int64_t m, int64_t k, const void *x, lpgemm_dtype_t x_type,
                                                   int64_t ldx, lpgemm_dtype_t out_type, void *out, int64_t ldo,
                                                   float *scale, lpgemm_x_scale_t mode, cudaStream_t stream) {
  const lpg::quantize_args args = {m, k, ldx, ldo, x, x_type, out_type, out, scale, mode == LPGEMM_X_SCALE_TENSOR};
  const dim3 grid((unsigned)(m < 65535 ? m : 65535));
  const int four = lpg_bytes(x_type) == 4;
  if (args.one_scale) {
    LPG_CUDA(cudaMemsetAsync(scale, 0, sizeof *scale, stream));
    LPG_TRY(
        lpg::launch(four ? (const void *)lpg::tensor_largest_kernel<4> : (const void *)lpg::tensor_largest_kernel<2>,
                    grid, 256, 0, stream, args));
    LPG_TRY(lpg::launch((const void *)lpg::tensor_scale_kernel, dim3(1), 1, 0, stream, args));
  }
  int form = m <= 264 && k > 2048 ? 2 : 0;
  while (form < 4 && lpg::forms[four][form].columns < k) form++;
  const lpg::quantize_form &f = lpg::forms[four][form];
  return lpg::launch(f.kernel, grid, f.threads, 0, stream, args);
}

lpgemm_status_t lpgemm_i_cuda_prepare_activations(void) {
  LPG_TRY(lpg::allow_shared((const void *)lpg::tensor_largest_kernel<2>, 0));
  LPG_TRY(lpg::allow_shared((const void *)lpg::tensor_largest_kernel<4>, 0));
  LPG_TRY(lpg::allow_shared((const void *)lpg::tensor_scale_kernel, 0));
  for (const auto &of_type : lpg::forms) {
    for (const auto &form : of_type) LPG_TRY(lpg::allow_shared(form.kernel, 0));
  }
  return LPGEMM_SUCCESS;
}
