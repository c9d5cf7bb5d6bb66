/* Quantising activations on the GPU, to the bytes of src/cpu/activations.c: a block a row, of which 8192 columns stay
 * in registers between finding its scale and writing its codes. For a scale of the whole tensor a first kernel collects
 * the largest magnitude in the place of the scale. */
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "../cuda/cuda.h"
#include "../pack/activation.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct quantize_args {
  int64_t m, k, ldx, ldo;
  const void *x;
  lpgemm_dtype_t out_type;
  uint8_t *out;
  float *scale;
  int one_scale;
};

constexpr int quantize_threads = 128, quantize_warps = quantize_threads / 32;
constexpr int kept = 8;                     /* eights of numbers that a thread has in registers: a chunk */
constexpr int sweep = 8 * quantize_threads; /* columns between two of them */

/* ---- numbers ---- */

/* Eight numbers of a row, as they lie. */
template <lpgemm_dtype_t Type>
struct eight {
  static constexpr int bytes = Type == LPGEMM_F32 ? 4 : 2, words = 2 * bytes;
  uint32_t word[words];

  /* From column k on; those that are not there are 0. */
  __device__ void load(const quantize_args &a, int64_t row, int64_t k) {
    const uint8_t *const from = (const uint8_t *)a.x + (row * a.ldx + k) * bytes;
    if ((uintptr_t)from % 16 == 0 && k + 8 <= a.k) {
#pragma unroll
      for (int i = 0; i < words; i += 4) {
        const uint4 four = *(const uint4 *)(from + 4 * i);
        word[i] = four.x, word[i + 1] = four.y, word[i + 2] = four.z, word[i + 3] = four.w;
      }
      return;
    }
#pragma unroll
    for (int i = 0; i < words; i++) word[i] = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) {
      if (k + i >= a.k) continue;
      if (bytes == 4) word[i % words] = ((const uint32_t *)from)[i];
      if (bytes == 2) word[i / 2] |= (uint32_t)((const uint16_t *)from)[i] << i % 2 * 16;
    }
  }

  __device__ float operator[](int i) const {
    if (Type == LPGEMM_F32) return lpg_bits_f32(word[i % words]);
    const uint32_t half = i % 2 ? word[i / 2] >> 16 : word[i / 2] & 0xffffu;
    return Type == LPGEMM_BF16 ? lpg_bits_f32(half << 16) : __half2float(__ushort_as_half((unsigned short)half));
  }
};

/* The largest magnitude so far, in the bits of the type, which order like the numbers. */
template <lpgemm_dtype_t Type>
struct largest {
  static constexpr bool pairs = Type != LPGEMM_F32;
  static constexpr uint32_t infinity = Type == LPGEMM_F16 ? 0x7c00u : Type == LPGEMM_BF16 ? 0x7f80u : 0x7f800000u;
  uint32_t bits = 0; /* of two numbers, if pairs */

  __device__ void add(const eight<Type> &numbers) {
#pragma unroll
    for (int i = 0; i < eight<Type>::words; i++) {
      bits = pairs ? __vmaxu2(bits, numbers.word[i] & 0x7fff7fffu) : max(bits, numbers.word[i] & 0x7fffffffu);
    }
  }

  /* Only numbers of no sign, but also infinities and NaN of any, count. */
  __device__ void add_no_sign(const eight<Type> &numbers) {
    constexpr uint32_t sign = pairs ? 0x8000u : 0x80000000u;
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const uint32_t word = numbers.word[pairs ? i / 2 : i % eight<Type>::words];
      const uint32_t number = !pairs ? word : i % 2 ? word >> 16 : word & 0xffffu, magnitude = number & (sign - 1);
      if (number < sign || magnitude >= infinity) bits = max(bits, magnitude);
    }
  }

  /* As fp32's bits; NaN and infinity come out as NaN, the largest. */
  __device__ uint32_t as_f32() const {
    const uint32_t most = pairs ? max(bits >> 16, bits & 0xffffu) : bits;
    if (most >= infinity) return 0x7fc00000u;
    if (Type == LPGEMM_F16) return lpg_f32_bits(__half2float(__ushort_as_half((unsigned short)most)));
    return Type == LPGEMM_BF16 ? most << 16 : most;
  }
};

__device__ inline uint32_t largest_of_block(uint32_t most) {
  __shared__ uint32_t of_warp[quantize_warps];
  most = __reduce_max_sync(0xffffffffu, most);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = most;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < quantize_warps; i++) most = max(most, of_warp[i]);
  return most;
}

__device__ inline float scale_of(const quantize_args &a, uint32_t most_bits) {
  return lpg_activation_scale((double)lpg_bits_f32(most_bits), a.out_type);
}

/* What a thread has of a chunk of a row. */
template <lpgemm_dtype_t Type>
struct chunk_numbers {
  eight<Type> of[kept];

  __device__ static int64_t column(int64_t chunk, int i) { return (chunk * kept + i) * sweep + threadIdx.x * 8; }

  __device__ void load(const quantize_args &a, int64_t row, int64_t chunk) {
#pragma unroll
    for (int i = 0; i < kept; i++) {
      if (column(chunk, i) < a.k) of[i].load(a, row, column(chunk, i));
    }
  }

  /* The largest magnitude of the thread's; the first chunk is read last, and stays. */
  __device__ uint32_t load_largest(const quantize_args &a, int64_t row, int64_t chunks) {
    const bool no_sign = lpg_kind(a.out_type) == LPGEMM_KIND_UINT;
    largest<Type> most;
#pragma unroll 1
    for (int64_t chunk = chunks; chunk-- > 0;) {
      load(a, row, chunk);
#pragma unroll
      for (int i = 0; i < kept; i++) {
        if (column(chunk, i) < a.k) no_sign ? most.add_no_sign(of[i]) : most.add(of[i]);
      }
    }
    return most.as_f32();
  }
};

__device__ inline int64_t chunks_of(const quantize_args &a) { return (a.k + kept * sweep - 1) / (kept * sweep); }

/* ---- codes ----
 *
 * A code is that of x / scale in fp64, as lpg_activation_code() has it. That of x times a bit less than 1 / scale and
 * that of x times a bit more are on either side of it: where they are the same, it is that. */

/* Adds that take an integer to the lowest digits of fp32. */
constexpr float lowest_digits = 0x1.8p23f;

__device__ inline uint32_t low_bytes(const float (&sum)[4]) {
  return __byte_perm(__byte_perm(lpg_f32_bits(sum[0]), lpg_f32_bits(sum[1]), 0x0040),
                     __byte_perm(lpg_f32_bits(sum[2]), lpg_f32_bits(sum[3]), 0x0040), 0x5410);
}

struct signed_codes {
  __device__ explicit signed_codes(lpgemm_dtype_t) {}
  __device__ uint32_t four(const float (&x)[4], float inverse, float) const {
    float sum[4];
#pragma unroll
    for (int i = 0; i < 4; i++) sum[i] = fmaf(x[i], inverse, lowest_digits);
    return low_bytes(sum);
  }
};

struct unsigned_codes {
  __device__ explicit unsigned_codes(lpgemm_dtype_t) {}
  __device__ uint32_t four(const float (&x)[4], float inverse, float) const {
    float sum[4];
#pragma unroll
    for (int i = 0; i < 4; i++) sum[i] = fmaf(fmaxf(x[i], 0.0f), inverse, lowest_digits);
    return low_bytes(sum);
  }
};

/* Half of x / scale and half the largest number: digits are lost to the sum, so that `slack` is what tells the sides
 * apart. */
struct bipolar_codes {
  float half;

  __device__ explicit bipolar_codes(lpgemm_dtype_t type) : half(0.5f * (float)lpg_activation_top(type)) {}
  __device__ uint32_t four(const float (&x)[4], float inverse, float slack) const {
    float sum[4];
#pragma unroll
    for (int i = 0; i < 4; i++) sum[i] = fmaf(x[i], 0.5f * inverse, half + slack) + lowest_digits;
    return low_bytes(sum);
  }
};

/* The sum makes 0 of -0, which has no sign here. */
struct e4m3_codes {
  __device__ explicit e4m3_codes(lpgemm_dtype_t) {}
  __device__ static uint32_t two(float a, float b, float inverse) {
    const float2 both = make_float2(fmaf(a, inverse, 0.0f), fmaf(b, inverse, 0.0f));
    return __nv_cvt_float2_to_fp8x2(both, __NV_SATFINITE, __NV_E4M3);
  }
  __device__ uint32_t four(const float (&x)[4], float inverse, float) const {
    return two(x[0], x[1], inverse) | two(x[2], x[3], inverse) << 16;
  }
};

/* Stores the codes of eight numbers from column k on; false if that of one may be another. */
template <class Codes, lpgemm_dtype_t Type>
__device__ inline bool store_codes(const quantize_args &a, const Codes &codes, const eight<Type> &numbers, int64_t row,
                                   int64_t k, float less, float more) {
  uint32_t four[2];
  bool sure = true;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const float x[4] = {numbers[4 * i], numbers[4 * i + 1], numbers[4 * i + 2], numbers[4 * i + 3]};
    four[i] = codes.four(x, less, -0x1p-14f);
    sure = sure && four[i] == codes.four(x, more, 0x1p-14f);
  }
  uint8_t *const to = a.out + row * a.ldo + k;
  if ((uintptr_t)to % 8 == 0 && k + 8 <= a.k) {
    *(uint2 *)to = make_uint2(four[0], four[1]);
    return sure;
  }
#pragma unroll
  for (int i = 0; i < 8; i++) {
    if (k + i < a.k) to[i] = (uint8_t)(four[i / 4] >> i % 4 * 8);
  }
  return sure;
}

/* The same by a division for each. */
template <lpgemm_dtype_t Type>
__device__ inline void store_divided(const quantize_args &a, int64_t row, int64_t k, float scale) {
#pragma unroll 1
  for (int64_t i = k; i < min(k + 8, a.k); i++) {
    const double x = (double)lpg_load(Type, a.x, row * a.ldx + i);
    a.out[row * a.ldo + i] = lpg_activation_code(a.out_type, x, scale);
  }
}

/* ---- kernels ---- */

template <lpgemm_dtype_t Type>
static __global__ void __launch_bounds__(quantize_threads) tensor_largest_kernel(const quantize_args a) {
  for (int64_t row = blockIdx.x; row < a.m; row += gridDim.x) {
    chunk_numbers<Type> numbers;
    const uint32_t most = largest_of_block(numbers.load_largest(a, row, chunks_of(a)));
    if (threadIdx.x == 0) atomicMax((unsigned *)a.scale, most);
  }
}

static __global__ void tensor_scale_kernel(const quantize_args a) {
  a.scale[0] = scale_of(a, lpg_f32_bits(a.scale[0]));
}

template <class Codes, lpgemm_dtype_t Type>
static __global__ void __launch_bounds__(quantize_threads, Type == LPGEMM_F32 ? 4 : 8)
    quantize_kernel(const quantize_args a) {
  const Codes codes(a.out_type);
  const int64_t chunks = chunks_of(a);
  for (int64_t row = blockIdx.x; row < a.m; row += gridDim.x) {
    chunk_numbers<Type> numbers;
    float scale;
    if (a.one_scale) {
      numbers.load(a, row, 0);
      scale = a.scale[0];
    } else {
      scale = scale_of(a, largest_of_block(numbers.load_largest(a, row, chunks)));
      if (threadIdx.x == 0) a.scale[row] = scale;
    }
    const float inverse = 1.0f / scale, less = inverse * (1.0f - 0x1p-22f), more = inverse * (1.0f + 0x1p-22f);
    const bool normal = inverse >= 0x1p-120f && inverse < 0x1p120f; /* not for NaN */
#pragma unroll 1
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
      if (chunk > 0) numbers.load(a, row, chunk);
      uint32_t unsure = 0;
#pragma unroll
      for (int i = 0; i < kept; i++) {
        const int64_t k = numbers.column(chunk, i);
        if (k < a.k && !(store_codes(a, codes, numbers.of[i], row, k, less, more) && normal)) unsure |= 1u << i;
      }
      for (; unsure != 0; unsure &= unsure - 1) { /* next to a tie */
        store_divided<Type>(a, row, numbers.column(chunk, __ffs((int)unsure) - 1), scale);
      }
    }
  }
}

typedef void (*quantize_function)(const quantize_args);

/* By the types of numbers and codes. */
template <class Codes>
static quantize_function quantizer_of(lpgemm_dtype_t x_type) {
  return x_type == LPGEMM_F16    ? quantize_kernel<Codes, LPGEMM_F16>
         : x_type == LPGEMM_BF16 ? quantize_kernel<Codes, LPGEMM_BF16>
                                 : quantize_kernel<Codes, LPGEMM_F32>;
}

static const void *quantizer(lpgemm_dtype_t x_type, lpgemm_dtype_t out_type) {
  switch (lpg_kind(out_type)) {
    case LPGEMM_KIND_UINT: return (const void *)quantizer_of<unsigned_codes>(x_type);
    case LPGEMM_KIND_INT: return (const void *)quantizer_of<signed_codes>(x_type);
    case LPGEMM_KIND_BIPOLAR: return (const void *)quantizer_of<bipolar_codes>(x_type);
    default: return (const void *)quantizer_of<e4m3_codes>(x_type);
  }
}

static const void *tensor_largest(lpgemm_dtype_t x_type) {
  return x_type == LPGEMM_F16    ? (const void *)tensor_largest_kernel<LPGEMM_F16>
         : x_type == LPGEMM_BF16 ? (const void *)tensor_largest_kernel<LPGEMM_BF16>
                                 : (const void *)tensor_largest_kernel<LPGEMM_F32>;
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_quantize_activations(int64_t m, int64_t k, const void *x, lpgemm_dtype_t x_type,
                                                   int64_t ldx, lpgemm_dtype_t out_type, void *out, int64_t ldo,
                                                   float *scale, lpgemm_x_scale_t mode, cudaStream_t stream) {
  const lpg::quantize_args args = {m, k, ldx, ldo, x, out_type, (uint8_t *)out, scale, mode == LPGEMM_X_SCALE_TENSOR};
  const dim3 grid((unsigned)(m < 65535 ? m : 65535));
  if (args.one_scale) {
    LPG_CUDA(cudaMemsetAsync(scale, 0, sizeof *scale, stream));
    LPG_TRY(lpg::launch(lpg::tensor_largest(x_type), grid, lpg::quantize_threads, 0, stream, args));
    LPG_TRY(lpg::launch((const void *)lpg::tensor_scale_kernel, dim3(1), 1, 0, stream, args));
  }
  return lpg::launch(lpg::quantizer(x_type, out_type), grid, lpg::quantize_threads, 0, stream, args);
}

lpgemm_status_t lpgemm_i_cuda_prepare_activations(void) {
  static const lpgemm_dtype_t x_types[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32};
  static const lpgemm_dtype_t out_types[] = {LPGEMM_I8, LPGEMM_U8, LPGEMM_BIPOLAR(8), LPGEMM_E4M3};
  LPG_TRY(lpg::allow_shared((const void *)lpg::tensor_scale_kernel, 0));
  for (int x = 0; x < 3; x++) {
    LPG_TRY(lpg::allow_shared(lpg::tensor_largest(x_types[x]), 0));
    for (int out = 0; out < 4; out++) LPG_TRY(lpg::allow_shared(lpg::quantizer(x_types[x], out_types[out]), 0));
  }
  return LPGEMM_SUCCESS;
}
