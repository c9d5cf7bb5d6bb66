/* X to shared memory: fixed point, then cut into bit planes in the order of the packed codes (gemv1_fixed.h).
 *
 * A k block of a row of X takes T::block_words words. First the planes of its two chunks: lane (g, t) finds column 8 b
 * + g of block b as one word (1 bit) or two (2 bits) at [lane][chunk][b]. Then an x_chunk for each chunk. */
#pragma once

#include "gemv1_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The second MMA (gemv1.cuh) gives counts in two parts, of the low planes and, by 2^12, of the high planes; both times
 * 2^-20. */
constexpr int low_planes = 12, count_exponent = -20;

/* What a chunk of a row of X has besides its planes. With fixed zeros the sums are multiplied by the center and by the
 * rest of the zero. */
struct x_chunk {
  alignas(16) float unit; /* times 2^20; NaN if the chunk has an infinity or NaN */
  float low, high, sum;   /* sum of its integers times 2^-20: in the same two parts, and as a whole */
};

/* In each byte of eight rows: swaps bit j of row i with bit i of row j. */
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

/* The row of transpose() whose bit position is that of k = 16 step + c of a chunk in the lane's packed words (FORMAT.md
 * section 5.1). c = 0, 1 stand for 2 t, 2 t + 1, and 2, 3 for 2 t + 8, 2 t + 9. With 2 bits a lane has two words a
 * chunk; the rows of the second lie between those of the first, and are separated afterwards. */
__device__ constexpr int row_of(int bits, int step, int c) {
  return (bits == 1 ? step : step % 4 * 2 + step / 4) + c / 2 * 8 + c % 2 * 16;
}

/* The lane's 32 elements of a chunk of X as they are stored, two a word: `from` and the next one, and those 8, 16 and
 * so on further on. Those beyond the row, which has `left` elements more, are zero. */
__device__ inline void load_x(const uint16_t *from, int64_t left, uint32_t (&two)[16]) {
  if (((uintptr_t)from & 3) == 0 && left > 8 * 15 + 1) { /* all belong to the row */
#pragma unroll
    for (int i = 0; i < 16; i++) two[i] = *(const uint32_t *)(from + 8 * i);
    return;
  }
#pragma unroll
  for (int i = 0; i < 16; i++) {
    two[i] = 8 * i < left ? from[8 * i] : 0u;
    if (8 * i + 1 < left) two[i] |= (uint32_t)from[8 * i + 1] << 16;
  }
}

/* The bits of an element as fp32. */
__device__ inline float widen(uint32_t bits, int is_bf16) {
  return is_bf16 ? __uint_as_float(bits << 16) : __half2float(__ushort_as_half((unsigned short)bits));
}

/* Writes the 24 planes of transposed integers: column q goes to lane (q % 8, t), block q / 8. */
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
    /* Against bit 0 of the codes stands bit q of the integers, against bit 1 bit q - 1; then the sign bit. */
    constexpr uint32_t even = 0x55555555u;
    const uint32_t beside0 = q < T::digits - 1 ? row[q] : q == T::digits ? row[T::digits - 1] : 0u;
    const uint32_t beside1 = q > 0 && q < T::digits ? row[q - 1] : q == T::digits + 1 ? row[T::digits - 1] : 0u;
    *(uint2 *)at = make_uint2((beside0 & even) | (beside1 & even) << 1, (beside0 >> 1 & even) | (beside1 & ~even));
  }
}

/* One lane's part in cutting a chunk of a row of X into planes; the four lanes of a quad cut a chunk. */
template <class T>
struct plane_task {
  uint32_t two[16];
  int x_row, chunk;

  /* Threads without a task repeat one of the last ones, so that whole warps take part in the shuffles. */
  __device__ void load(const gemv1_args &a, int task, int first_block, int blocks) {
    const int each = blocks * (T::chunks * 4), all = each * T::TileM, some = min(task, all - 8 + task % 8),
              t = some % 4;
    x_row = T::TileM == 1 ? 0 : some / each;
    chunk = (some - x_row * each) / 4;
    const int64_t k = ((int64_t)first_block * T::chunks + chunk) * LPG_CHUNK_K + 2 * t;
    load_x((const uint16_t *)a.x + min(x_row, a.m - 1) * a.ldx + k, a.k - k, two);
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
    uint32_t *const block = (uint32_t *)(memory + x_row * a.plan.x_stride) + chunk / 2 * T::block_words;
    store_planes<T>(row, block + t * (6 * T::Bits) + chunk % 2 * (3 * T::Bits));
    if (t != 0) return;
    const float center = T::General ? 1.0f : a.scale_data.center, rest = T::General ? 1.0f : a.scale_data.rest;
    const float scale = __uint_as_float(lpg_power_bits(count_exponent));
    x_chunk x_sums;
    x_sums.unit = finite ? __uint_as_float(lpg_power_bits(exponent - T::digits + 1 - count_exponent)) : NAN;
    x_sums.low = (float)(sum & ((1 << low_planes) - 1)) * scale * center;
    x_sums.high = (float)(sum >> low_planes) * scale * center;
    x_sums.sum = (float)sum * scale * rest;
    ((x_chunk *)(block + T::plane_words))[chunk % 2] = x_sums;
  }
};

}  // namespace
}  // namespace lpg
