/* From the sums of a work tile, which warps hold in registers, through shared memory to the outputs. */
#pragma once

#include "../operand/x_type.cuh"
#include "../plan/scheduler.cuh"
#include "epilogue.cuh"
#include "store_pairs.cuh"
#include "sums.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Sets the sums of row tiles to zero. */
template <int RowTiles, int Count>
__device__ inline void clear_sums(float (&sum)[RowTiles][Count]) {
#pragma unroll
  for (int r = 0; r < RowTiles; r++) {
#pragma unroll
    for (int i = 0; i < Count; i++) sum[r][i] = 0.0f;
  }
}

/* ---- 16-bit outputs that get only scales, C and a bias ---- */

/* Whether outputs are such, and vectors of `bytes` bytes of Y and C are aligned. */
__host__ __device__ inline bool has_vectors(const epilogue_args &e, int bytes) {
  const uint64_t y = (uintptr_t)e.y | e.ldy * 2, c = e.c ? (uintptr_t)e.c | e.ldc * 2 : 0;
  return e.only_sums && lpg_bytes(e.y_type) == 2 && (y | c) % bytes == 0;
}

/* Stands for a missing C or bias: adding -0 changes no value. */
constexpr uint32_t no_pair = 0x80008000u;

__device__ inline float bias_of(const epilogue_args &e, int64_t n) {
  return e.bias ? load_real(e.bias_type, e.bias, n) : -0.0f;
}

__device__ inline float scaled(const epilogue_args &e, float sum, float x_scale) {
  return __fmul_rn(__fmul_rn(e.alpha, sum * e.global_scale), x_scale);
}

__device__ inline uint32_t round_two(const epilogue_args &e, float2 v) {
  return e.y_type == LPGEMM_F16 ? f16_x::round_two(v.x, v.y) : bf16_x::round_two(v.x, v.y);
}

/* Adds to each value its element of C and its bias. */
__device__ inline void add_two(const epilogue_args &e, float2 &v, uint32_t c, float bias_x, float bias_y) {
  const auto widen = [&](uint16_t x) { return e.y_type == LPGEMM_F16 ? f16_x::widen(x) : bf16_x::widen(x); };
  v.x = fmaf(e.beta, widen((uint16_t)c), v.x) + bias_x;
  v.y = fmaf(e.beta, widen((uint16_t)(c >> 16)), v.y) + bias_y;
}

__device__ inline uint32_t scaled_two(const epilogue_args &e, float a, float b, float x_scale) {
  return round_two(e, make_float2(scaled(e, a, x_scale), scaled(e, b, x_scale)));
}

/* Stores four neighbouring outputs: scaled only; or with C and biases. */
__device__ inline void store_four(const epilogue_args &e, uint16_t *y, float4 v, float x_scale) {
  *(uint2 *)y = make_uint2(scaled_two(e, v.x, v.y, x_scale), scaled_two(e, v.z, v.w, x_scale));
}

__device__ inline void store_four(const epilogue_args &e, uint16_t *y, float4 v, float x_scale, uint2 c, float4 bias) {
  float2 first = {scaled(e, v.x, x_scale), scaled(e, v.y, x_scale)};
  float2 second = {scaled(e, v.z, x_scale), scaled(e, v.w, x_scale)};
  if (!e.only_scales) {
    add_two(e, first, c.x, bias.x, bias.y);
    add_two(e, second, c.y, bias.z, bias.w);
  }
  *(uint2 *)y = make_uint2(round_two(e, first), round_two(e, second));
}

/* ---- sums ---- */

/* Sums of a warp in its own shared memory, sums[row of X][row]. */
template <int Rows>
struct own_sums {
  const float *sums;

  __device__ float one(int x_row, int row) const { return sums[x_row * lpg_sums_stride(Rows) + row]; }

  /* Count sums of row `row`: of rows of X x_row, x_row + step and so on. Those from x_rows on repeat the last. */
  template <int Count>
  __device__ void ones(float (&sum)[Count], int x_row, int step, int x_rows, int row) const {
#pragma unroll
    for (int i = 0; i < Count; i++) sum[i] = one(min(x_row + i * step, x_rows - 1), row);
  }

  /* The same of four neighbouring rows. */
  template <int Count>
  __device__ void fours(float4 (&sum)[Count], int x_row, int step, int x_rows, int row) const {
    (void)x_rows; /* there is room for all Count */
#pragma unroll
    for (int i = 0; i < Count; i++) {
      sum[i] = *(const float4 *)(sums + (x_row + i * step) * lpg_sums_stride(Rows) + row);
    }
  }
};

/* Stores the outputs of x_rows rows of X by Rows rows of W, from `place` on. Threads threads share the work, this is
 * number `thread`. factors: of the Rows rows. */
template <class T, int Rows, int Threads, class Sums, class Args>
__device__ inline void store_sums(const Args &a, const Sums &sums, int x_rows, int thread, const float *factors,
                                  const tile_place &place) {
  constexpr int fours = Rows / 4, sweep = Threads / fours, batch = Threads == 32 ? LPG_PASS_ROWS / sweep : 2;
  const epilogue_args &e = a.epilogue;
  const int m = place.m, n = place.n, bias_row = place.bias + n;
  x_rows = min(x_rows, place.m_end - m);
  if (has_vectors(e, 8) && (n + Rows <= a.n || a.n % 4 == 0)) {
    const int row = thread % fours * 4;
    if (n + row >= a.n) return;
    const float4 factor = *(const float4 *)(factors + row);
    const float4 bias = {bias_of(e, bias_row + row), bias_of(e, bias_row + row + 1), bias_of(e, bias_row + row + 2),
                         bias_of(e, bias_row + row + 3)};
    int x_row = thread / fours;
    uint16_t *y = (uint16_t *)e.y + (int64_t)(m + x_row) * e.ldy + n + row;
    const uint16_t *old = (const uint16_t *)e.c + (int64_t)(m + x_row) * e.ldc + n + row;
#pragma unroll 1
    for (; x_row < x_rows; x_row += batch * sweep, y += batch * sweep * e.ldy, old += batch * sweep * e.ldc) {
      float4 sum[batch];
      uint2 c[batch];
#pragma unroll
      for (int i = 0; i < batch; i++) {
        c[i] = make_uint2(no_pair, no_pair);
        if (e.c && x_row + i * sweep < x_rows) c[i] = *(const uint2 *)(old + i * sweep * e.ldc);
      }
      sums.fours(sum, x_row, sweep, x_rows, row);
#pragma unroll
      for (int i = 0; i < batch; i++) {
        if (x_row + i * sweep >= x_rows) break;
        store_four(e, y + i * sweep * e.ldy,
                   make_float4(sum[i].x * factor.x, sum[i].y * factor.y, sum[i].z * factor.z, sum[i].w * factor.w),
                   x_scale_of(e, m + x_row + i * sweep), c[i], bias);
      }
    }
    return;
  }
  /* Else a thread has one row of W; the sums and the elements of C of several rows of X are loaded together. */
  static_assert(Threads % Rows == 0, "a thread has a row");
  constexpr int step = Threads / Rows, together = 4, unaligned = Threads == 32 ? 8 : 4; /* as registers allow */
  const int r = thread % Rows;
  if (n + r >= a.n) return;
  if constexpr (T::integer_sums) {
    if (e.y_type == LPGEMM_I32) { /* int32 sums, held as bits */
#pragma unroll 1
      for (int x_row = thread / Rows; x_row < x_rows; x_row += step) {
        store_integer(e, m + x_row, n + r, __float_as_int(sums.one(x_row, r)));
      }
      return;
    }
  }
  const float factor = factors[r];
  if (e.only_scales && lpg_bytes(e.y_type) == 2) {
    uint16_t *const y = (uint16_t *)e.y + (int64_t)m * e.ldy + n + r;
#pragma unroll 1
    for (int first = thread / Rows; first < x_rows; first += unaligned * step) {
      float sum[unaligned];
      sums.ones(sum, first, step, x_rows, r);
#pragma unroll
      for (int i = 0; i < unaligned; i++) {
        const int x_row = first + i * step;
        const float one = sum[i] * factor;
        if (x_row < x_rows) y[x_row * e.ldy] = (uint16_t)scaled_two(e, one, one, x_scale_of(e, m + x_row));
      }
    }
    return;
  }
  const column_epilogue column(e, n + r, bias_row + r);
#pragma unroll 1
  for (int x_row = thread / Rows; x_row < x_rows; x_row += together * step) {
    float sum[together], c[together];
    sums.ones(sum, x_row, step, x_rows, r);
#pragma unroll
    for (int i = 0; i < together; i++) c[i] = column.read_c(m + min(x_row + i * step, x_rows - 1));
#pragma unroll
    for (int i = 0; i < together; i++) {
      if (x_row + i * step < x_rows) column.store(m + x_row + i * step, sum[i] * factor, c[i]);
    }
  }
}

/* The same for work tiles whose rows of W may come in pairs. */
template <class T, int Rows, int Threads, class Work, class Sums, class Args>
__device__ inline void store_rows(const Args &a, const Sums &sums, int x_rows, int thread, const float *factors,
                                  const tile_place &place) {
  if constexpr (Work::is_placed) {
    if (a.epilogue.paired) return store_pairs<Rows, Threads>(a, sums, x_rows, thread, factors, place);
  }
  store_sums<T, Rows, Threads>(a, sums, x_rows, thread, factors, place);
}

/* Writes a warp's sums of 16 rows of X, from `first` on, to `sums`; `row`: where its first row goes. */
template <class T, class Product>
__device__ inline void put_sums(const Product &product, float *sums, int stride, int row, int first) {
  constexpr int x_rows = LPG_PASS_ROWS;
  const int lane = threadIdx.x % 32;
  float *const own = sums + 2 * (lane % 4) * stride + row + lane / 4;
#pragma unroll
  for (int which = 0; which < T::TileM; which += x_rows) { /* registers cannot be indexed */
    if (which != first) continue;
#pragma unroll
    for (int j = 0; j < x_rows / 8; j++) {
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
          own[(8 * j + i % 2) * stride + r * LPG_TILE_ROWS + i / 2 * 8] = product.sum[r][(which / 8 + j) * 4 + i];
        }
      }
    }
  }
}

/* Stores a warp's rows of a work tile, 16 rows of X a pass, through the warp's own shared memory. factors: of all rows
 * of the work tile. */
template <class T, class Args, class Work, class Product>
__device__ inline void store_tile(const Args &a, const Work &w, int tile, const Product &product, const float *factors,
                                  uint8_t *memory) {
  constexpr int x_rows = LPG_PASS_ROWS, rows = T::row_tiles * LPG_TILE_ROWS;
  const int lane = threadIdx.x % 32, first_row = threadIdx.x / 32 * rows;
  tile_place place = place_of<T>(a, w, tile);
  place.n += first_row;
  float *const sums = (float *)(memory + a.plan.sums + threadIdx.x / 32 * lpg_sums_bytes(x_rows, rows));
#pragma unroll 1
  for (int first = 0; first < T::TileM && place.m < place.m_end; first += x_rows, place.m += x_rows) {
    put_sums<T>(product, sums, lpg_sums_stride(rows), 0, first);
    __syncwarp();
    store_rows<T, rows, 32, Work>(a, own_sums<rows>{sums}, x_rows, lane, factors + first_row, place);
    __syncwarp();
  }
}

}  // namespace
}  // namespace lpg
