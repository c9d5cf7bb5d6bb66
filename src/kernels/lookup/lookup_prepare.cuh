/* X on its way to shared memory: fixed point, then tables (lookup_table.h). A warp takes a chunk of a row of X at a
 * time, and each lane the table of its number in every unit of the chunk.
 *
 * A table's 32 bytes are its digits, the lowest first, each of entries 0 to 7. */
#pragma once

#include "../prim/async.cuh"
#include "lookup_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

__device__ inline float x_value(const lookup_args &a, int64_t at) {
  switch (a.x_type) {
    case LPGEMM_F16: return __half2float(((const __half *)a.x)[at]);
    case LPGEMM_BF16: return __uint_as_float((uint32_t)((const uint16_t *)a.x)[at] << 16);
    case LPGEMM_I8: return (float)((const int8_t *)a.x)[at];
    case LPGEMM_E4M3: return e4m3_value(a.x[at]);
    default: return __half2float(__ushort_as_half((unsigned short)(a.x[at] << 8)));
  }
}

/* The bytes that have the same place in four words, as words: a 4 x 4 transpose. */
__device__ inline void transpose_bytes(const uint32_t (&row)[4], uint32_t (&column)[4]) {
  const uint32_t a = __byte_perm(row[0], row[1], 0x5140), b = __byte_perm(row[2], row[3], 0x5140);
  const uint32_t c = __byte_perm(row[0], row[1], 0x7362), d = __byte_perm(row[2], row[3], 0x7362);
  column[0] = __byte_perm(a, b, 0x5410);
  column[1] = __byte_perm(a, b, 0x7632);
  column[2] = __byte_perm(c, d, 0x5410);
  column[3] = __byte_perm(c, d, 0x7632);
}

template <int Bits>
__device__ inline void store_table(const int32_t *q, uint8_t *to) {
  uint32_t first[4], second[4], low[4], high[4];
#pragma unroll
  for (int e = 0; e < 4; e++) {
    first[e] = lpg_table_digits(lpg_table_entry(Bits, q, e));
    second[e] = lpg_table_digits(lpg_table_entry(Bits, q, e + 4));
  }
  transpose_bytes(first, low);
  transpose_bytes(second, high);
  ((uint4 *)to)[0] = make_uint4(low[0], high[0], low[1], high[1]);
  ((uint4 *)to)[1] = make_uint4(low[2], high[2], low[3], high[3]);
}

/* A lane's part of a chunk of a row of X. */
template <class T>
struct table_task {
  static constexpr int codes = 4 / T::Bits; /* of a table */
  float x[4];
  int column, chunk; /* of X's rows, and of the slice */

  __device__ void load(const lookup_args &a, int task, int first_chunk, int chunks, int lane) {
    column = T::Columns == 1 ? 0 : task / chunks;
    chunk = task - column * chunks;
    const int64_t k = (int64_t)(first_chunk + chunk) * LPG_CHUNK_K, row = min(column, a.m - 1) * a.ldx;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int64_t at = k + i / codes * (LPG_CHUNK_K / T::Bits) + lpg_table_column(T::Bits, lane, i % codes);
      x[i] = at < a.k ? x_value(a, row + at) : 0.0f;
    }
  }

  __device__ void store(const lookup_args &a, uint8_t *memory, int lane) const {
    constexpr int precision = lpg_table_precision(T::Bits);
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) most = max(most, __float_as_uint(x[i]) & 0x7fffffffu);
    most = __reduce_max_sync(~0u, most);
    const bool finite = !lpg_is_not_finite(most);
    const int exponent = finite ? lpg_fixed_exponent(most) : 0;
    const float inverse_unit = __uint_as_float(lpg_power_bits(precision - 1 - exponent));
    int32_t q[4], sum = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      q[i] = finite ? __float2int_rn(x[i] * inverse_unit) : 0;
      sum += q[i];
    }
    sum = __reduce_add_sync(~0u, sum);
    uint8_t *const to = memory + column * a.plan.x_stride + chunk * T::chunk_bytes;
#pragma unroll
    for (int u = 0; u < T::Bits; u++)
      store_table<T::Bits>(q + u * codes, to + u * T::unit_bytes + lane * LPG_TABLE_BYTES);
    if (lane != 0) return;
    const float most_code = (float)((1 << T::Bits) - 1);
    const float center = T::General ? 1.0f : a.numbers.center - most_code, rest = T::General ? 1.0f : a.numbers.rest;
    chunk_sums sums;
    sums.unit = finite ? __uint_as_float(lpg_power_bits(exponent - precision + 1)) : NAN;
    sums.low = (float)(sum & ((1 << low_bits) - 1)) * center;
    sums.high = (float)(sum >> low_bits) * center;
    sums.sum = (float)sum * rest;
    *(chunk_sums *)(to + T::Bits * T::unit_bytes) = sums;
  }
};

/* The tasks that follow the warp's first one, which was loaded before. */
template <class T>
__device__ inline void make_tables(const lookup_args &a, table_task<T> &task, int first_chunk, int chunks, int warp,
                                   int lane, uint8_t *memory) {
  for (int at = warp; at < chunks * T::Columns; at += T::warps) {
    if (at != warp) task.load(a, at, first_chunk, chunks, lane);
    task.store(a, memory, lane);
  }
}

}  // namespace
}  // namespace lpg
