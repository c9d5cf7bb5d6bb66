/* X on its way to shared memory: fixed point, cut into planes that lie as the packed codes do (bits_fixed.h).
 *
 * A k block of a row of X takes T::block_words words. The planes of its two chunks come first: for lane
 * (g, t), column 8 b + g of block b is a word (1 bit) or two (2 bits) at [lane][chunk][b]. Then, for each chunk, four
 * numbers (chunk_scales). */
#pragma once

#include "gemv1_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Counts come out of the second product (bits.cuh) in two parts, the low planes' and the high planes' by 2^12, both
 * times 2^-20. */
constexpr int low_planes = 12, count_exponent = -20;

/* What a chunk of a row of X has besides its planes. With fixed zeros the sums are multiplied by what they count. */
struct chunk_scales {
  alignas(16) float unit; /* times 2^20; NaN if the chunk has an infinity or NaN */
  float low, high, sum;   /* sum of its integers, times 2^-20: in the same two parts, and rounded */
};

/* Of every byte and eight rows: swaps bit j of row i with bit i of row j. */
template <int Rows>
__device__ inline void transpose_bytes(uint32_t (&row)[Rows]) {
#pragma unroll
  for (int log2 = 2; log2 >= 0; log2--) {
    const int by = 1 << log2;
    const uint32_t mask = log2 == 2 ? 0x0f0f0f0fu : log2 == 1 ? 0x33333333u : 0x55555555u;
#pragma unroll
    for (int i = 0; i < Rows; i++) {
      if (i & by) continue;
      const uint32_t swapped = ((row[i] >> by) ^ row[i + by]) & mask;
      row[i + by] ^= swapped;
      row[i] ^= swapped << by;
    }
  }
}

/* Swaps bit j of row i with bit i of row j. */
__device__ inline void transpose(uint32_t (&row)[32]) {
#pragma unroll
  for (int i = 0; i < 16; i++) {
    const uint32_t low = row[i], high = row[i + 16];
    row[i] = __byte_perm(low, high, 0x5410);
    row[i + 16] = __byte_perm(low, high, 0x7632);
  }
#pragma unroll
  for (int i = 0; i < 32; i++) {
    if (i & 8) continue;
    const uint32_t low = row[i], high = row[i + 8];
    row[i] = __byte_perm(low, high, 0x6240);
    row[i + 8] = __byte_perm(low, high, 0x7351);
  }
  transpose_bytes(row);
}

/* The row of transpose() whose bit place is that of column 16 step + c of a chunk in the packed words of its lane:
 * FORMAT.md section 5.1. c = 0, 1 stand for 2t, 2t + 1, and 2, 3 for 2t + 8, 2t + 9. With 2 bits a lane has two words
 * for a chunk; the rows of the second are those between, and are taken apart afterwards. */
__device__ constexpr int row_of(int bits, int step, int c) {
  return (bits == 1 ? step : step % 4 * 2 + step / 4) + c / 2 * 8 + c % 2 * 16;
}

/* The lane's 32 numbers of a chunk of X as they are stored, two a word: columns first + 16 step + 8 half + {0, 1}. */
__device__ inline void load_scales(const uint16_t *from, int64_t columns, uint32_t (&two)[16]) {
  if (((uintptr_t)from & 3) == 0 && columns > 8 * 15 + 1) { /* none is beyond the row */
#pragma unroll
    for (int i = 0; i < 16; i++) two[i] = *(const uint32_t *)(from + 8 * i);
    return;
  }
#pragma unroll
  for (int i = 0; i < 16; i++) {
    two[i] = 8 * i < columns ? from[8 * i] : 0u;
    if (8 * i + 1 < columns) two[i] |= (uint32_t)from[8 * i + 1] << 16;
  }
}

/* A number's bits as fp32. */
__device__ inline float widen(uint32_t bits, int is_bf16) {
  return is_bf16 ? __uint_as_float(bits << 16) : __half2float(__ushort_as_half((unsigned short)bits));
}

/* Writes the 24 planes that transposed integers make: column q of lane (q % 8, t), block q / 8. */
template <class T>
__device__ inline void store_planes(const uint32_t (&row)[32], uint32_t *to) {
  constexpr int lane_words = 6 * T::Bits, g_words = 4 * lane_words;
#pragma unroll
  for (int q = 0; q < LPG_PLANES; q++) {
    uint32_t *const at = to + q % 8 * g_words + q / 8 * T::Bits;
    if (T::Bits == 1) {
      *at = row[q];
      continue;
    }
    /* Beside bit 0 of the codes bit q of the numbers, beside bit 1 bit q - 1; then the sign's. */
    constexpr uint32_t even = 0x55555555u;
    const uint32_t beside0 = q < T::digits - 1 ? row[q] : q == T::digits ? row[T::digits - 1] : 0u;
    const uint32_t beside1 = q > 0 && q < T::digits ? row[q - 1] : q == T::digits + 1 ? row[T::digits - 1] : 0u;
    *(uint2 *)at = make_uint2((beside0 & even) | (beside1 & even) << 1, (beside0 >> 1 & even) | (beside1 & ~even));
  }
}

/* The part of one lane t in cutting a chunk of a row of X into planes. */
template <class T>
struct plane_task {
  uint32_t two[16];
  int column, chunk;

  /* Tasks that are not there are the last ones, so that all lanes take part. */
  __device__ void load(const gemv1_args &a, int task, int first_block, int blocks) {
    const int each = blocks * (T::chunks * 4), all = each * T::TileM, some = min(task, all - 8 + task % 8),
              t = some % 4;
    column = T::TileM == 1 ? 0 : some / each;
    chunk = (some - column * each) / 4;
    const int64_t k = ((int64_t)first_block * T::chunks + chunk) * LPG_CHUNK_K + 2 * t;
    load_scales((const uint16_t *)a.x + min(column, a.m - 1) * a.ldx + k, a.k - k, two);
  }

  __device__ void store(const gemv1_args &a, uint8_t *memory) const {
    const int t = threadIdx.x % 4;
    uint32_t row[32], most = 0;
#pragma unroll
    for (int i = 0; i < 16; i++) most = __vmaxu2(most, two[i] & 0x7fff7fffu);
    most = max(most & 0xffffu, most >> 16);
    most = max(most, __shfl_xor_sync(~0u, most, 1));
    most = max(most, __shfl_xor_sync(~0u, most, 2));
    const uint32_t magnitude = __float_as_uint(widen(most, a.is_bf16));
    const bool finite = !lpg_is_not_finite(magnitude);
    const int exponent = finite ? lpg_fixed_exponent(magnitude) : 0;
    const float inverse_unit = __uint_as_float(lpg_power_bits(T::digits - 1 - exponent));
    int sum = 0;
#pragma unroll
    for (int i = 0; i < 32; i++) {
      const float x = widen(i % 2 ? two[i / 2] >> 16 : two[i / 2] & 0xffffu, a.is_bf16);
      const int fixed = finite ? __float2int_rn(x * inverse_unit) : 0;
      sum += fixed;
      row[row_of(T::Bits, i / 4, i % 4)] = (uint32_t)fixed;
    }
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    transpose(row);
    uint32_t *const block = (uint32_t *)(memory + column * a.plan.x_stride) + chunk / 2 * T::block_words;
    store_planes<T>(row, block + t * (6 * T::Bits) + chunk % 2 * (3 * T::Bits));
    if (t != 0) return;
    const float center = T::General ? 1.0f : a.scale_data.center, rest = T::General ? 1.0f : a.scale_data.rest;
    const float scale = __uint_as_float(lpg_power_bits(count_exponent));
    chunk_scales scale_data;
    scale_data.unit = finite ? __uint_as_float(lpg_power_bits(exponent - T::digits + 1 - count_exponent)) : NAN;
    scale_data.low = (float)(sum & ((1 << low_planes) - 1)) * scale * center;
    scale_data.high = (float)(sum >> low_planes) * scale * center;
    scale_data.sum = (float)sum * scale * rest;
    ((chunk_scales *)(block + T::plane_words))[chunk % 2] = scale_data;
  }
};

}  // namespace
}  // namespace lpg
