/* Unpacking on the GPU: codes, or exact values rounded once, as unpack.c gives them. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../cuda/cuda.h"
#include "../layouts/unit.h"
#include "pack.h"
#include "sections.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

static constexpr int chunk_k = 256, row_bytes = chunk_k + 16; /* every tile_k divides 256; rows stay 16-byte aligned */

struct unpack_args {
  lpg_plan plan;
  const uint8_t *blob;
  void *out;
  lpgemm_dtype_t out_type;
  int64_t ldo;
  int64_t first_row_tile;
};

/* A chunk of 16 rows by 256 columns: codes as the API has them, one a byte, in shared memory. */
template <int Bits>
__device__ inline void stage_codes(const unpack_args &a, int64_t row_tile, int64_t k0, uint8_t *staged) {
  constexpr int tile_k = lpg_tile_k(Bits), words = lpg_unit_words(Bits), unit_k = 4 * lpg_unit_codes(Bits);
  constexpr int units_a_tile = tile_k / unit_k, tiles = chunk_k / tile_k;
  const uint32_t flips = lpg_stored_flip(a.plan.desc.type) * 0x0101u;
  const uint8_t *codes = a.blob + a.plan.section[LPG_SECTION_CODES].offset;
  for (int i = threadIdx.x; i < 64 * units_a_tile * tiles; i += 256) {
    const int row_half = i % 2, lane = i / 2 % 32, unit = i / 64 % units_a_tile, tile = i / 64 / units_a_tile;
    if (k0 / tile_k + tile >= a.plan.k_tiles) continue;
    const uint8_t *from = codes + lpg_tile_offset(Bits, a.plan.k_tiles, row_tile, k0 / tile_k + tile);
    uint32_t word[words];
#pragma unroll
    for (int w = 0; w < words; w++) {
      word[w] = __ldcs((const uint32_t *)(from + lpg_word_offset(lane, 2 * (unit * words + w) + row_half)));
    }
    uint8_t *to = staged + (lane / 4 + 8 * row_half) * row_bytes + tile * tile_k + unit * unit_k + lane % 4 * 2;
#pragma unroll
    for (int pair = 0; pair < lpg_unit_codes(Bits) / 2; pair++) {
      const uint32_t two = lpg_unit_pair(Bits, word, 1, pair);
      *(uint16_t *)(to + pair / 2 * LPG_STEP_K + pair % 2 * 8) = (uint16_t)((two | two >> 8) ^ flips);
    }
  }
}

/* 16 columns, which lie in one group, of one row. */
__device__ inline void store_values(const unpack_args &a, const uint8_t *codes, int64_t row, int64_t k, int count) {
  const lpg_group_terms g = lpg_terms_at(&a.plan, a.blob, row, k);
  for (int i = 0; i < count; i++) {
    lpg_store_f64(a.out_type, a.out, row * a.ldo + k + i, lpg_weight_value(&g, codes[i]));
  }
}

/* The same for fp16 where fp32 arithmetic is exact: see is_exact_in_f32(). A weight of 0 is +0 whatever its factors'
 * signs, so +0 is added to it, and -0, which changes nothing, to the others. Conversion forgets a NaN's sign. */
__device__ inline void store_halves(const unpack_args &a, const float *values, const uint8_t *codes, int64_t row,
                                    int64_t k, int count) {
  const lpg_group_terms g = lpg_terms_at(&a.plan, a.blob, row, k);
  const float unless_zero = g.scale == 0.0f ? 0.0f : -0.0f;
  __half half[16];
  bool has_nan = false;
#pragma unroll
  for (int i = 0; i < 16; i++) {
    const float value = values[codes[i]] - g.zero;
    const float weight = fmaf(value, g.scale, value == 0.0f ? 0.0f : unless_zero);
    has_nan |= weight != weight;
    half[i] = __float2half_rn(weight);
  }
  if (has_nan) return store_values(a, codes, row, k, count);
  __half *to = (__half *)a.out + row * a.ldo + k;
  if (count == 16 && (uintptr_t)to % 16 == 0) {
    __stcs((uint4 *)to, ((const uint4 *)half)[0]);
    __stcs((uint4 *)to + 1, ((const uint4 *)half)[1]);
  } else {
#pragma unroll
    for (int i = 0; i < 16; i++) {
      if (i < count) to[i] = half[i];
    }
  }
}

__device__ inline void store_codes(const unpack_args &a, const uint8_t *codes, int64_t row, int64_t k, int count) {
  uint8_t *to = (uint8_t *)a.out + row * a.ldo + k;
  if (count == 16 && (uintptr_t)to % 16 == 0) {
    __stcs((uint4 *)to, *(const uint4 *)codes);
  } else {
    for (int i = 0; i < count; i++) to[i] = codes[i];
  }
}

enum output { codes_out, values_out, halves_out };

template <int Bits, output Output>
__global__ void __launch_bounds__(256) unpack_kernel(const unpack_args a) {
  __shared__ alignas(16) uint8_t staged[LPG_TILE_ROWS * row_bytes];
  __shared__ float values[1 << Bits];
  const int64_t row_tile = a.first_row_tile + blockIdx.y, k0 = (int64_t)blockIdx.x * chunk_k;
  if (Output == halves_out) {
    for (int i = threadIdx.x; i < 1 << Bits; i += 256) {
      values[i] = lpg_code_value(a.plan.desc.type, i, a.plan.desc.codebook);
    }
  }
  stage_codes<Bits>(a, row_tile, k0, staged);
  __syncthreads();
  const int r = threadIdx.x / 16, c = threadIdx.x % 16 * 16;
  const int64_t row = row_tile * LPG_TILE_ROWS + r, k = k0 + c;
  if (row >= a.plan.desc.n || k >= a.plan.desc.k) return;
  const int count = (int)min((int64_t)16, a.plan.desc.k - k);
  const uint8_t *codes = staged + r * row_bytes + c;
  if (Output == codes_out) store_codes(a, codes, row, k, count);
  if (Output == values_out) store_values(a, codes, row, k, count);
  if (Output == halves_out) store_halves(a, values, codes, row, k, count);
}

/* ---- on the host ---- */

/* 1 if (value - zero) * scale has at most 24 significant bits for every code, so that fp32 holds it exactly wherever
 * fp16 does not round it to zero: at most 9 bits of an integer or 8 of a float, a zero of 9 bits, 11 bits of a scale.
 */
static bool is_exact_in_f32(const lpgemm_weight_desc_t &d) {
  const bool narrow =
      lpg_is_integer_kind(d.type) || (lpg_kind(d.type) == LPGEMM_KIND_FLOAT && d.zero == LPGEMM_ZERO_NONE);
  const bool zeros = d.zero == LPGEMM_ZERO_NONE ||
                     (d.zero == LPGEMM_ZERO_CONSTANT && d.zero_constant == (float)(int)d.zero_constant &&
                      d.zero_constant >= -256.0f && d.zero_constant <= 256.0f) ||
                     (d.zero == LPGEMM_ZERO_PER_GROUP && !lpg_is_real(d.zero_type));
  return narrow && zeros && d.scale_type != LPGEMM_F32 && d.super_scale_type == 0 && d.global_scale == 1.0f;
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

lpgemm_status_t lpgemm_i_cuda_unpack(const lpg_plan *plan, const uint8_t *blob, lpgemm_dtype_t out_type, void *out,
                                     int64_t ldo, cudaStream_t stream) {
  const void *kernel = out_type == LPGEMM_U8 ? lpg::kernel_of<lpg::codes_out>(plan->bits)
                       : out_type == LPGEMM_F16 && lpg::is_exact_in_f32(plan->desc)
                           ? lpg::kernel_of<lpg::halves_out>(plan->bits)
                           : lpg::kernel_of<lpg::values_out>(plan->bits);
  constexpr int64_t most = 65535; /* row tiles a launch */
  for (int64_t first = 0; first < plan->row_tiles; first += most) {
    const int64_t tiles = plan->row_tiles - first < most ? plan->row_tiles - first : most;
    const lpg::unpack_args args = {*plan, blob, out, out_type, ldo, first};
    LPG_TRY(lpg::launch(kernel, dim3((unsigned)lpg_ceil_div(plan->k_padded, lpg::chunk_k), (unsigned)tiles), 256, 0,
                        stream, args));
  }
  return LPGEMM_SUCCESS;
}
