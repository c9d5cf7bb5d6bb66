/* Unpacking on the GPU: codes, or exact values rounded once, as unpack.c gives them. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../cuda/cuda.h"
#include "../layouts/unit.h"
#include "pack.h"
#include "sections.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Every tile_k divides chunk_k. Rows are padded by 16 bytes, so that they stay aligned for vectors and the 32 lanes of
 * a warp find their columns in different banks. */
static constexpr int chunk_k = 1024, row_bytes = chunk_k + 16;

struct unpack_args {
  lpg_packed packed;
  const uint8_t *blob;
  void *out;
  lpgemm_dtype_t out_type;
  int64_t ldo;
  int64_t first_row_tile;
  const int32_t *order; /* of columns, or NULL */
};

/* A chunk of 16 rows by 1024 columns: codes as the API has them, one a byte, in shared memory. A thread takes all that
 * a lane has of a tile. */
template <int Bits>
__device__ inline void stage_codes(const unpack_args &a, int64_t row_tile, int64_t k0, uint8_t *staged) {
  constexpr int tile_k = lpg_tile_k(Bits), words = lpg_lane_words(Bits), unit_k = 4 * lpg_unit_codes(Bits);
  const uint32_t flips = lpg_stored_flip(a.packed.desc.type) * 0x0101u;
  const uint8_t *codes = a.blob + a.packed.section[LPG_SECTION_CODES].offset;
  const int tiles = (int)min((int64_t)(chunk_k / tile_k), a.packed.k_tiles - k0 / tile_k);
  for (int i = threadIdx.x; i < 32 * tiles; i += 256) {
    const int lane = i % 32, tile = i / 32;
    const uint8_t *from = codes + lpg_tile_offset(Bits, a.packed.k_tiles, row_tile, k0 / tile_k + tile);
    uint32_t word[words];
#pragma unroll
    for (int v = 0; v < words; v += 4) {
      const uint4 vector = __ldcs((const uint4 *)(from + lpg_word_offset(lane, v)));
      word[v] = vector.x;
      word[v + 1] = vector.y;
      word[v + 2] = vector.z;
      word[v + 3] = vector.w;
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
#pragma unroll
      for (int unit = 0; unit < tile_k / unit_k; unit++) {
        uint8_t *to = staged + (lane / 4 + 8 * half) * row_bytes + tile * tile_k + unit * unit_k + lane % 4 * 2;
#pragma unroll
        for (int pair = 0; pair < lpg_unit_codes(Bits) / 2; pair++) {
          const uint32_t two = lpg_unit_pair(Bits, word + 2 * unit * lpg_unit_words(Bits) + half, 2, pair);
          *(uint16_t *)(to + pair / 2 * LPG_STEP_K + pair % 2 * 8) = (uint16_t)(__byte_perm(two, 0, 0x4420) ^ flips);
        }
      }
    }
  }
}

/* 16 columns, which lie in one group, of one row of the output. */
__device__ inline void store_values(const unpack_args &a, const uint8_t *codes, int64_t row, int64_t k, int count) {
  const lpg_group_terms g = lpg_terms_at(&a.packed, a.blob, lpg_packed_row(&a.packed, row), k);
  for (int i = 0; i < count; i++) {
    const int64_t column = a.order ? a.order[k + i] : k + i;
    lpg_store_f64(a.out_type, a.out, row * a.ldo + column, lpg_weight_value(&g, codes[i]));
  }
}

template <class T>
__device__ inline T round_to(float x);
template <>
__device__ inline float round_to<float>(float x) {
  return x;
}
template <>
__device__ inline __half round_to<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ inline __nv_bfloat16 round_to<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

/* Stores `count` of 16 numbers; whole vectors where they are aligned. */
template <class T>
__device__ inline void store_16(T *to, const T (&number)[16], int count) {
  if (count == 16 && (uintptr_t)to % 16 == 0) {
#pragma unroll
    for (int i = 0; i < (int)sizeof number / 16; i++) __stcs((uint4 *)to + i, ((const uint4 *)number)[i]);
  } else {
#pragma unroll
    for (int i = 0; i < 16; i++) {
      if (i < count) to[i] = number[i];
    }
  }
}

/* The same in fp32, where that gives the same: see is_exact_in_f32(). group: scale and zero. Integers are
 * value = step * code + offset. A weight of 0 is +0 whatever its factors' signs, so +0 is added to it, and -0, which
 * changes nothing, to the others. NaN keeps its bits only in store_values(). */
template <class T>
__device__ inline void store_fast(const unpack_args &a, const float *values, const uint8_t *codes, float2 group,
                                  int64_t row, int64_t k, int count) {
  const lpgemm_dtype_t type = a.packed.desc.type;
  const bool integers = lpg_is_integer_kind(type);
  const uint32_t flip = lpg_stored_flip(type);
  const float step = (float)lpg_integer_step(type), offset = (float)lpg_integer_offset(type) - group.y;
  const float unless_zero = group.x == 0.0f ? 0.0f : -0.0f;
  alignas(16) uint8_t code[16];
  *(uint4 *)code = *(const uint4 *)codes;
  alignas(16) T number[16];
  bool has_nan = false;
#pragma unroll
  for (int i = 0; i < 16; i++) {
    const float value = integers ? fmaf(step, (float)(code[i] ^ flip), offset) : values[code[i]] - group.y;
    const float weight = fmaf(value, group.x, value == 0.0f ? 0.0f : unless_zero);
    has_nan |= weight != weight;
    number[i] = round_to<T>(weight);
  }
  if (has_nan) return store_values(a, codes, row, k, count);
  store_16((T *)a.out + row * a.ldo + k, number, count);
}

__device__ inline void store_codes(const unpack_args &a, const uint8_t *codes, int64_t row, int64_t k, int count) {
  alignas(16) uint8_t code[16];
  *(uint4 *)code = *(const uint4 *)codes;
  uint8_t *to = (uint8_t *)a.out + row * a.ldo;
  if (!a.order) return store_16(to + k, code, count);
#pragma unroll
  for (int i = 0; i < 16; i++) {
    if (i < count) to[a.order[k + i]] = code[i];
  }
}

/* Scale and zero of every group of the chunk, [row][group from that of k0 on]. */
static constexpr int max_groups = chunk_k / LPG_STEP_K + 1;

__device__ inline void stage_groups(const unpack_args &a, int64_t row_tile, int64_t k0, float2 *groups) {
  const int64_t first = k0 / a.packed.group.k, end = (min(k0 + chunk_k, a.packed.desc.k) - 1) / a.packed.group.k + 1;
  const int count = (int)(end - first);
  for (int i = threadIdx.x; i < LPG_TILE_ROWS * count; i += 256) {
    const int64_t row = row_tile * LPG_TILE_ROWS + i / count, j = first + i % count;
    if (lpg_row_of_packed(&a.packed, row) < 0) continue;
    const lpg_group_terms g = lpg_terms_at(&a.packed, a.blob, row, j * a.packed.group.k);
    groups[i / count * max_groups + i % count] = make_float2(g.scale, g.zero);
  }
}

enum output { codes_out, values_out, fast_out };

template <int Bits, output Output>
__global__ void __launch_bounds__(256, Output == values_out ? 3 : 6) unpack_kernel(const unpack_args a) {
  __shared__ __align__(16) uint8_t staged[LPG_TILE_ROWS * row_bytes];
  __shared__ float values[Output == fast_out ? 1 << Bits : 1];
  __shared__ float2 groups[Output == fast_out ? LPG_TILE_ROWS * max_groups : 1];
  const int64_t row_tile = a.first_row_tile + blockIdx.y, k0 = (int64_t)blockIdx.x * chunk_k;
  if (Output == fast_out) {
    for (int i = threadIdx.x; i < 1 << Bits; i += 256) {
      values[i] = lpg_code_value(a.packed.desc.type, i, a.packed.desc.codebook);
    }
  }
  if (Output == fast_out) stage_groups(a, row_tile, k0, groups);
  stage_codes<Bits>(a, row_tile, k0, staged);
  __syncthreads();
  const uint32_t group_k = (uint32_t)a.packed.group.k, first_group = (uint32_t)k0 / group_k;
  for (int i = threadIdx.x; i < LPG_TILE_ROWS * chunk_k / 16; i += 256) {
    const int r = i / (chunk_k / 16), c = i % (chunk_k / 16) * 16;
    const int64_t row = lpg_row_of_packed(&a.packed, row_tile * LPG_TILE_ROWS + r), k = k0 + c;
    if (row < 0 || k >= a.packed.desc.k) continue;
    const int count = (int)min((int64_t)16, a.packed.desc.k - k);
    const uint8_t *codes = staged + r * row_bytes + c;
    float2 group = {};
    if (Output == fast_out) group = groups[r * max_groups + (uint32_t)k / group_k - first_group];
    if (Output == codes_out) store_codes(a, codes, row, k, count);
    if (Output == values_out) store_values(a, codes, row, k, count);
    if (Output == fast_out && a.out_type == LPGEMM_F32) store_fast<float>(a, values, codes, group, row, k, count);
    if (Output == fast_out && a.out_type == LPGEMM_F16) store_fast<__half>(a, values, codes, group, row, k, count);
    if (Output == fast_out && a.out_type == LPGEMM_BF16)
      store_fast<__nv_bfloat16>(a, values, codes, group, row, k, count);
  }
}

/* ---- on the host ---- */

/* 1 if (value - zero) is exact in fp32 and its product with the scale too, so that rounding that is the one rounding:
 * at most 9 bits of an integer or 8 of a float, a zero of 9 bits, 11 bits of a scale. fp32 outputs take any scale,
 * since the product is then the one rounding; 16-bit outputs none so small that fp32 would round the product before. */
static bool is_exact_in_f32(const lpgemm_weight_desc_t &d, lpgemm_dtype_t out_type) {
  const bool narrow =
      lpg_is_integer_kind(d.type) || (lpg_kind(d.type) == LPGEMM_KIND_FLOAT && d.zero == LPGEMM_ZERO_NONE);
  const bool zeros = d.zero == LPGEMM_ZERO_NONE ||
                     (d.zero == LPGEMM_ZERO_CONSTANT && d.zero_constant == (float)(int)d.zero_constant &&
                      d.zero_constant >= -256.0f && d.zero_constant <= 256.0f) ||
                     (d.zero == LPGEMM_ZERO_PER_GROUP && !lpg_is_real(d.zero_type));
  const bool scales = out_type == LPGEMM_F32 || d.scale_type == 0 || d.scale_type == LPGEMM_F16 ||
                      d.scale_type == LPGEMM_E4M3 ||
                      (out_type == LPGEMM_F16 && d.scale_type != LPGEMM_F32); /* far below fp16 everything is 0 */
  const bool plain = d.columns == LPGEMM_COLUMNS_PLAIN && d.row_scales == 0;
  return narrow && zeros && scales && plain && d.super_scale_type == 0 && d.global_scale == 1.0f;
}

template <output Output>
static const void *kernel_of(int bits) {
  switch (bits) {
    case 1: return (const void *)unpack_kernel<1, Output>;
    case 2: return (const void *)unpack_kernel<2, Output>;
    case 3: return (const void *)unpack_kernel<3, Output>;
    case 4: return (const void *)unpack_kernel<4, Output>;
    case 5: return (const void *)unpack_kernel<5, Output>;
    case 6: return (const void *)unpack_kernel<6, Output>;
    case 7: return (const void *)unpack_kernel<7, Output>;
    default: return (const void *)unpack_kernel<8, Output>;
  }
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_unpack(const lpg_packed *packed, const uint8_t *blob, lpgemm_dtype_t out_type, void *out,
                                     int64_t ldo, cudaStream_t stream) {
  const void *kernel = out_type == LPGEMM_U8                          ? lpg::kernel_of<lpg::codes_out>(packed->bits)
                       : lpg::is_exact_in_f32(packed->desc, out_type) ? lpg::kernel_of<lpg::fast_out>(packed->bits)
                                                                      : lpg::kernel_of<lpg::values_out>(packed->bits);
  const bool in_order = packed->desc.columns != LPGEMM_COLUMNS_PLAIN;
  const int32_t *order = in_order ? (const int32_t *)(blob + packed->section[LPG_SECTION_COLUMN_ORDER].offset) : NULL;
  if (packed->x_k > packed->desc.k) { /* columns that these weights do not have */
    const size_t bytes = (size_t)lpg_bytes(out_type);
    LPG_CUDA(
        cudaMemset2DAsync(out, (size_t)ldo * bytes, 0, (size_t)packed->x_k * bytes, (size_t)packed->desc.n, stream));
  }
  if (packed->desc.k == 0) return LPGEMM_SUCCESS;
  constexpr int64_t most = 65535; /* row tiles a launch */
  for (int64_t first = 0; first < packed->row_tiles; first += most) {
    const int64_t tiles = packed->row_tiles - first < most ? packed->row_tiles - first : most;
    const lpg::unpack_args args = {*packed, blob, out, out_type, ldo, first, order};
    LPG_TRY(lpg::launch(kernel, dim3((unsigned)lpg_ceil_div(packed->k_padded, lpg::chunk_k), (unsigned)tiles), 256, 0,
                        stream, args));
  }
  return LPGEMM_SUCCESS;
}
