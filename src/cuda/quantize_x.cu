/* Quantising activations on the GPU, to the bytes of src/cpu/activations.c: a block a row, which stays in registers
 * between finding its scale and writing its codes. For a scale of the whole tensor a first kernel collects the largest
 * magnitude in the place of the scale. Rows that are too long, or do not lie in aligned eights, are read twice and
 * number by number. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "../kernels/prim/pdl.cuh"
#include "../pack/activation.h"
#include "cuda.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct quantize_args {
  int64_t m, k, ldx, ldo;
  const void *x;
  uint8_t *out;
  float *scale;
  lpgemm_dtype_t x_type, out_type;
  float top; /* the largest number of out_type */
  bool no_sign, one_scale;
};

constexpr int least_threads = 128, most_threads = 1024; /* of a block */

/* ---- numbers ---- */

/* Eight numbers of a row, as they lie. */
template <lpgemm_dtype_t Type>
struct eight {
  static constexpr int bytes = Type == LPGEMM_F32 ? 4 : 2, words = 2 * bytes;
  uint32_t word[words];

  __device__ void load(const char *from) {
#pragma unroll
    for (int i = 0; i < words; i += 4) {
      const uint4 four = *(const uint4 *)(from + 4 * i);
      word[i] = four.x, word[i + 1] = four.y, word[i + 2] = four.z, word[i + 3] = four.w;
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

/* Waits for the kernel before, and says which row is the block's. */
__device__ inline int64_t begin_row() {
  pdl_launch_next();
  pdl_wait();
  return (int64_t)blockIdx.y * gridDim.x + blockIdx.x;
}

/* What a thread has of a row. */
template <lpgemm_dtype_t Type>
struct row_scales {
  static constexpr int kept = Type == LPGEMM_F32 ? 4 : 8; /* eights */
  eight<Type> of[kept];

  __device__ static int step() { return 8 * (int)blockDim.x; }
  __device__ static int column(int i) { return 8 * (int)threadIdx.x + i * step(); }

  __device__ void load(const quantize_args &a, int64_t row) {
    const char *const from = (const char *)a.x + (row * a.ldx + column(0)) * eight<Type>::bytes;
#pragma unroll
    for (int i = 0; i < kept; i++) {
      if (column(i) < (int)a.k) of[i].load(from + i * step() * eight<Type>::bytes);
    }
  }

  __device__ uint32_t largest_magnitude(const quantize_args &a, bool no_sign) const {
    largest<Type> most;
#pragma unroll
    for (int i = 0; i < kept; i++) {
      if (column(i) < (int)a.k) no_sign ? most.add_no_sign(of[i]) : most.add(of[i]);
    }
    return most.as_f32();
  }
};

__device__ inline uint32_t largest_of_block(uint32_t most) {
  __shared__ uint32_t of_warp[most_threads / 32];
  most = __reduce_max_sync(0xffffffffu, most);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = most;
  __syncthreads();
  return __reduce_max_sync(0xffffffffu, threadIdx.x % 32 < blockDim.x / 32 ? of_warp[threadIdx.x % 32] : 0u);
}

__device__ inline float scale_of(const quantize_args &a, uint32_t most_bits) {
  return lpg_activation_scale((double)lpg_bits_f32(most_bits), a.out_type);
}

/* ---- codes ----
 *
 * A code is that of x / scale in fp64, as lpg_activation_code() has it. That of x times a bit less than 1 / scale and
 * that of x times a bit more are on either side of it: where they are the same, it is that. Else eight numbers are
 * divided, but not if numbers have 16 bits, and codes few: then x * top / most is a tie or at least 2^-20 of it away
 * from one. The scale is most / top, rounded, so all ties of a scale go to the side to which it was not rounded, or, if
 * it is exact, to the even code. */
struct sides {
  float less, more; /* the same if all ties are on one side */
  bool normal;      /* not for NaN */

  __device__ explicit sides(float scale) {
    const float inverse = 1.0f / scale;
    less = inverse * (1.0f - 0x1p-22f), more = inverse * (1.0f + 0x1p-22f);
    normal = inverse >= 0x1p-120f && inverse < 0x1p120f;
  }
  /* most: the largest magnitude, of which the scale was made. */
  __device__ void choose(float scale, float top, float most) {
    const float rest = fmaf(-scale, top, most); /* exactly */
    if (rest < 0.0f) more = less;
    if (rest > 0.0f) less = more;
  }
};

/* The number of a type of 16 bits next to x. */
template <lpgemm_dtype_t Type>
__device__ inline float nearest(float x) {
  return Type == LPGEMM_F16 ? __half2float(__float2half_rn(x)) : __bfloat162float(__float2bfloat16_rn(x));
}

/* Adds that take an integer to the lowest digits of fp32. */
constexpr float lowest_digits = 0x1.8p23f;

__device__ inline uint32_t low_bytes(const float (&sum)[4]) {
  return __byte_perm(__byte_perm(lpg_f32_bits(sum[0]), lpg_f32_bits(sum[1]), 0x0040),
                     __byte_perm(lpg_f32_bits(sum[2]), lpg_f32_bits(sum[3]), 0x0040), 0x5410);
}

struct signed_codes {
  static constexpr bool few_bits = true; /* a few bits times a power of two, and so is the middle of two */
  static constexpr bool no_sign = false;
  __device__ explicit signed_codes(float) {}
  __device__ uint32_t four(const float (&x)[4], float inverse, float) const {
    float sum[4];
#pragma unroll
    for (int i = 0; i < 4; i++) sum[i] = fmaf(x[i], inverse, lowest_digits);
    return low_bytes(sum);
  }
};

struct unsigned_codes {
  static constexpr bool few_bits = true, no_sign = true;
  __device__ explicit unsigned_codes(float) {}
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
  static constexpr bool few_bits = false, no_sign = false;
  float half;

  __device__ explicit bipolar_codes(float top) : half(0.5f * top) {}
  __device__ uint32_t four(const float (&x)[4], float inverse, float slack) const {
    float sum[4];
#pragma unroll
    for (int i = 0; i < 4; i++) sum[i] = fmaf(x[i], 0.5f * inverse, half + slack) + lowest_digits;
    return low_bytes(sum);
  }
};

/* The sum makes 0 of -0, which has no sign here. */
struct e4m3_codes {
  static constexpr bool few_bits = true, no_sign = false;
  __device__ explicit e4m3_codes(float) {}
  __device__ static uint32_t two(float a, float b, float inverse) {
    const float2 both = make_float2(fmaf(a, inverse, 0.0f), fmaf(b, inverse, 0.0f));
    return __nv_cvt_float2_to_fp8x2(both, __NV_SATFINITE, __NV_E4M3);
  }
  __device__ uint32_t four(const float (&x)[4], float inverse, float) const {
    return two(x[0], x[1], inverse) | two(x[2], x[3], inverse) << 16;
  }
};

template <class Codes, lpgemm_dtype_t Type>
constexpr bool known_ties = (Type != LPGEMM_F32) && Codes::few_bits;

/* Stores the codes of eight numbers; false if that of one may be another. */
template <class Codes, lpgemm_dtype_t Type>
__device__ inline bool store_codes(const Codes &codes, const eight<Type> &numbers, const sides &by, uint8_t *to) {
  uint32_t four[2];
  bool sure = true;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const float x[4] = {numbers[4 * i], numbers[4 * i + 1], numbers[4 * i + 2], numbers[4 * i + 3]};
    four[i] = codes.four(x, by.less, -0x1p-14f);
    if (by.less == by.more) continue;
    const uint32_t other = codes.four(x, by.more, 0x1p-14f);
    if (known_ties<Codes, Type>) {
      four[i] ^= (four[i] ^ other) & (four[i] & 0x01010101u) * 0xffu; /* of the two the even one */
    } else {
      sure = sure && four[i] == other;
    }
  }
  *(uint2 *)to = make_uint2(four[0], four[1]);
  return sure;
}

/* Stores the code of every number from `first` on, `step` apart, by a division for each. */
__device__ inline void store_divided(const quantize_args &a, int64_t row, int64_t first, int64_t last, int step,
                                     float scale) {
  for (int64_t k = first; k < last; k += step) {
    const double x = (double)lpg_load(a.x_type, a.x, row * a.ldx + k);
    a.out[row * a.ldo + k] = lpg_activation_code(a.out_type, x, scale);
  }
}

/* ---- kernels ---- */

template <class Codes, lpgemm_dtype_t Type>
static __global__ void __launch_bounds__(most_threads) quantize_kernel(const quantize_args a) {
  const int64_t row = begin_row();
  if (row >= a.m) return;
  row_scales<Type> numbers;
  numbers.load(a, row);
  const uint32_t most = a.one_scale ? 0 : largest_of_block(numbers.largest_magnitude(a, Codes::no_sign));
  float scale = a.one_scale ? a.scale[0] : lpg_bits_f32(most) / a.top;
  sides by(scale);
  if (known_ties<Codes, Type>) by.choose(scale, a.top, nearest<Type>(scale * a.top)); /* of the tensor, or the row */
  uint32_t unsure = 0;
  if (by.normal) {
    const Codes codes(a.top);
    uint8_t *const to = a.out + row * a.ldo + numbers.column(0);
#pragma unroll
    for (int i = 0; i < numbers.kept; i++) {
      if (numbers.column(i) < (int)a.k && !store_codes(codes, numbers.of[i], by, to + i * numbers.step())) {
        unsure |= 1u << i;
      }
    }
  } else if (!a.one_scale) {
    scale = scale_of(a, most);
  }
  if (threadIdx.x == 0 && !a.one_scale) a.scale[row] = scale;
  if (!by.normal) store_divided(a, row, threadIdx.x, a.k, (int)blockDim.x, scale);
  for (; unsure != 0; unsure &= unsure - 1) {
    const int k = numbers.column(__ffs((int)unsure) - 1);
    store_divided(a, row, k, k + 8, 1, scale);
  }
}

template <lpgemm_dtype_t Type>
static __global__ void __launch_bounds__(most_threads) tensor_largest_kernel(const quantize_args a) {
  const int64_t row = begin_row();
  if (row >= a.m) return;
  row_scales<Type> numbers;
  numbers.load(a, row);
  const uint32_t most = largest_of_block(numbers.largest_magnitude(a, a.no_sign));
  if (threadIdx.x == 0) atomicMax((unsigned *)a.scale, most);
}

static __global__ void tensor_scale_kernel(const quantize_args a) {
  pdl_launch_next();
  pdl_wait();
  if (threadIdx.x == 0) a.scale[0] = scale_of(a, lpg_f32_bits(a.scale[0]));
}

/* Any row, by threads that take a number each. */
__device__ inline uint32_t largest_of_any_row(const quantize_args &a, int64_t row) {
  uint32_t most = 0;
  for (int64_t k = threadIdx.x; k < a.k; k += blockDim.x) {
    const float x = lpg_load(a.x_type, a.x, row * a.ldx + k), magnitude = fabsf(x);
    if (!(magnitude < INFINITY)) most = 0x7fc00000u;
    if (magnitude == x || !a.no_sign) most = max(most, lpg_f32_bits(magnitude));
  }
  return largest_of_block(most);
}

static __global__ void __launch_bounds__(most_threads) any_tensor_largest_kernel(const quantize_args a) {
  const int64_t row = begin_row();
  if (row >= a.m) return;
  const uint32_t most = largest_of_any_row(a, row);
  if (threadIdx.x == 0) atomicMax((unsigned *)a.scale, most);
}

static __global__ void __launch_bounds__(most_threads) any_quantize_kernel(const quantize_args a) {
  const int64_t row = begin_row();
  if (row >= a.m) return;
  const float scale = a.one_scale ? a.scale[0] : scale_of(a, largest_of_any_row(a, row));
  if (threadIdx.x == 0 && !a.one_scale) a.scale[row] = scale;
  store_divided(a, row, threadIdx.x, a.k, (int)blockDim.x, scale);
}

/* ---- which kernel, by the types of numbers and codes ---- */

typedef void (*kernel_function)(const quantize_args);

template <class Codes>
static kernel_function quantizer_to(lpgemm_dtype_t x_type) {
  return x_type == LPGEMM_F16    ? quantize_kernel<Codes, LPGEMM_F16>
         : x_type == LPGEMM_BF16 ? quantize_kernel<Codes, LPGEMM_BF16>
                                 : quantize_kernel<Codes, LPGEMM_F32>;
}

static kernel_function quantizer(lpgemm_dtype_t x_type, lpgemm_dtype_t out_type) {
  switch (lpg_kind(out_type)) {
    case LPGEMM_KIND_UINT: return quantizer_to<unsigned_codes>(x_type);
    case LPGEMM_KIND_INT: return quantizer_to<signed_codes>(x_type);
    case LPGEMM_KIND_BIPOLAR: return quantizer_to<bipolar_codes>(x_type);
    default: return quantizer_to<e4m3_codes>(x_type);
  }
}

static kernel_function tensor_largest(lpgemm_dtype_t x_type) {
  return x_type == LPGEMM_F16    ? tensor_largest_kernel<LPGEMM_F16>
         : x_type == LPGEMM_BF16 ? tensor_largest_kernel<LPGEMM_BF16>
                                 : tensor_largest_kernel<LPGEMM_F32>;
}

/* Scales that a thread has in registers, if rows are eights in aligned places and a block has all of one; else 0. */
static int numbers_kept(const quantize_args &a) {
  const uint64_t in = (uintptr_t)a.x | (uint64_t)(a.ldx * lpg_bytes(a.x_type)),
                 out = (uintptr_t)a.out | (uint64_t)a.ldo;
  const int kept = 8 * (a.x_type == LPGEMM_F32 ? row_scales<LPGEMM_F32>::kept : row_scales<LPGEMM_F16>::kept);
  return in % 16 == 0 && out % 8 == 0 && a.k % 8 == 0 && a.k <= (int64_t)kept * most_threads ? kept : 0;
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_quantize_activations(const lpg_device *device, int64_t m, int64_t k, const void *x,
                                                   lpgemm_dtype_t x_type, int64_t ldx, lpgemm_dtype_t out_type,
                                                   void *out, int64_t ldo, float *scale, lpgemm_x_scale_t mode,
                                                   cudaStream_t stream) {
  const lpg::quantize_args args = {.m = m,
                                   .k = k,
                                   .ldx = ldx,
                                   .ldo = ldo,
                                   .x = x,
                                   .out = (uint8_t *)out,
                                   .scale = scale,
                                   .x_type = x_type,
                                   .out_type = out_type,
                                   .top = (float)lpg_activation_top(out_type),
                                   .no_sign = lpg_kind(out_type) == LPGEMM_KIND_UINT,
                                   .one_scale = mode == LPGEMM_X_SCALE_TENSOR};
  const int64_t across = m < 1 << 25 ? m : 1 << 25;
  const dim3 grid((unsigned)across, (unsigned)((m + across - 1) / across));
  const int kept = lpg::numbers_kept(args);
  int threads = lpg::least_threads;
  while (threads < lpg::most_threads && (int64_t)threads * kept < k) threads *= 2;
  const auto launch = [&](lpg::kernel_function kernel, dim3 blocks) {
    return lpg::launch_cluster((const void *)kernel, blocks, 1, threads, 0, stream, args, device->clusters[1] > 0);
  };
  if (args.one_scale) {
    LPG_CUDA(cudaMemsetAsync(scale, 0, sizeof *scale, stream));
    LPG_TRY(launch(kept ? lpg::tensor_largest(x_type) : lpg::any_tensor_largest_kernel, grid));
    LPG_TRY(launch(lpg::tensor_scale_kernel, dim3(1)));
  }
  return launch(kept ? lpg::quantizer(x_type, out_type) : lpg::any_quantize_kernel, grid);
}

lpgemm_status_t lpgemm_i_cuda_prepare_activations(void) {
  static const lpgemm_dtype_t x_types[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32};
  static const lpgemm_dtype_t out_types[] = {LPGEMM_I8, LPGEMM_U8, LPGEMM_BIPOLAR(8), LPGEMM_E4M3};
  LPG_TRY(lpg::allow_shared((const void *)lpg::tensor_scale_kernel, 0));
  LPG_TRY(lpg::allow_shared((const void *)lpg::any_tensor_largest_kernel, 0));
  LPG_TRY(lpg::allow_shared((const void *)lpg::any_quantize_kernel, 0));
  for (int x = 0; x < 3; x++) {
    LPG_TRY(lpg::allow_shared((const void *)lpg::tensor_largest(x_types[x]), 0));
    for (int out = 0; out < 4; out++) {
      LPG_TRY(lpg::allow_shared((const void *)lpg::quantizer(x_types[x], out_types[out]), 0));
    }
  }
  return LPGEMM_SUCCESS;
}
