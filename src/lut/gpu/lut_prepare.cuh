/* X to shared memory: fixed point, then tables (lut_table.h). A warp makes half of the tables of a chunk at a time;
 * every lane writes the copy that it will read, in its own bank. */
#pragma once

#include "../../kernels/prim/async.cuh"
#include "lut_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

__device__ inline float x_value(const lut_args &a, int64_t at) {
  switch (a.x_type) {
    case LPGEMM_F16: return __half2float(((const __half *)a.x)[at]);
    case LPGEMM_BF16: return __uint_as_float((uint32_t)((const uint16_t *)a.x)[at] << 16);
    case LPGEMM_I8: return (float)((const int8_t *)a.x)[at];
    case LPGEMM_E4M3: return e4m3_value(a.x[at]);
    default: return __half2float(__ushort_as_half((unsigned short)(a.x[at] << 8)));
  }
}

/* Half of the tables of a chunk. Lane 4 g + t loads the four elements of X of table g of lanes t. */
template <class T>
struct table_task {
  float x[4];
  int chunk, half; /* chunk: of the CTA's part of K */

  __device__ void load(const lut_args &a, int task, int first_chunk, int lane) {
    chunk = task / 2;
    half = task % 2;
    const int64_t k = (int64_t)(first_chunk + chunk) * LPG_CHUNK_K;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int64_t at = k + lpg_table_column(T::Bits, lane / 4, lane % 4, i);
      x[i] = at < a.k ? x_value(a, at) : 0.0f;
    }
  }

  __device__ void store(const lut_args &a, uint8_t *memory, int lane) const {
    uint32_t most = 0, magnitudes = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) most = max(most, __float_as_uint(x[i]) & 0x7fffffffu);
    most = __reduce_max_sync(~0u, most);
    const bool finite = !lpg_is_not_finite(most);
    const int exponent = finite ? lpg_fixed_exponent(most) : 0;
    const float coarse = __uint_as_float(lpg_power_bits(LPG_TABLE_COARSE - exponent));
#pragma unroll
    for (int i = 0; i < 4; i++) magnitudes += finite ? __float2uint_ru(fabsf(x[i]) * coarse) : 0;
    magnitudes = __reduce_add_sync(~0u, magnitudes);
    const int unit_exponent = lpg_table_unit(T::Bits, exponent, __float_as_uint((float)magnitudes));
    const float inverse_unit = __uint_as_float(lpg_power_bits(-unit_exponent));
    int32_t q[4], sum = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      q[i] = finite ? __float2int_rn(x[i] * inverse_unit) : 0;
      sum += q[i];
    }
    sum = __reduce_add_sync(~0u, sum);
    int32_t *to = (int32_t *)(memory + chunk * LPG_LUT_GPU_TABLES + half * (LPG_TABLES / 2) * T::table_bytes) + lane;
#pragma unroll 1
    for (int table = half * (LPG_TABLES / 2); table < (half + 1) * (LPG_TABLES / 2); table++) {
      int32_t of_table[4];
#pragma unroll
      for (int i = 0; i < 4; i++) of_table[i] = __shfl_sync(~0u, q[i], 4 * table + lane % 4);
#pragma unroll
      for (int e = 0; e < LPG_TABLE_ENTRIES / 2; e++) {
        const int32_t entry = lpg_table_entry(of_table, e);
        to[e * LPG_LANES] = entry;
        to[(LPG_TABLE_ENTRIES - 1 - e) * LPG_LANES] = -entry;
      }
      to += T::table_bytes / 4;
    }
    if (half != 0 || lane != 0) return;
    const float unit = finite ? __uint_as_float(lpg_power_bits(unit_exponent)) : NAN;
    ((chunk_sums *)(memory + a.plan.scale_data))[chunk] = {unit, sum, a.center * sum, (float)sum * a.scale_data.rest};
  }
};

/* The warp's tasks; its first one is loaded already. */
template <class T>
__device__ inline void make_tables(const lut_args &a, table_task<T> &task, int first_chunk, int chunks, int warp,
                                   int lane, uint8_t *memory) {
  for (int at = warp; at < 2 * chunks; at += T::warps) {
    if (at != warp) task.load(a, at, first_chunk, lane);
    task.store(a, memory, lane);
  }
}

}  // namespace
}  // namespace lpg
