/* From the sums of items, which warps have in registers by row tiles, to outputs. */
#pragma once

#include "../operand/x_type.cuh"
#include "../plan/scheduler.cuh"
#include "epilogue.cuh"
#include "sums.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Sums of row tiles to which nothing was added yet. */
template <int RowTiles, int Count>
__device__ inline void clear_sums(float (&sum)[RowTiles][Count]) {
#pragma unroll
  for (int r = 0; r < RowTiles; r++) {
#pragma unroll
    for (int i = 0; i < Count; i++) sum[r][i] = 0.0f;
  }
}

/* ---- outputs of 16 bits on which the epilogue has only scales, C and a bias ---- */

/* Whether they are, and Y and C lie so that vectors of so many bytes can be stored and read. */
__device__ inline bool has_vectors(const epilogue_args &e, int bytes) {
  const uint64_t y = (uintptr_t)e.y | e.ldy * 2, c = e.c ? (uintptr_t)e.c | e.ldc * 2 : 0;
  return e.only_sums && lpg_bytes(e.y_type) == 2 && (y | c) % bytes == 0;
}

/* -0 is added to what nothing is added to: it changes no number. */
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

/* Adds two of C, and the bias of each. */
__device__ inline void add_two(const epilogue_args &e, float2 &v, uint32_t c, float bias_x, float bias_y) {
  const auto widen = [&](uint16_t x) { return e.y_type == LPGEMM_F16 ? f16_x::widen(x) : bf16_x::widen(x); };
  v.x = fmaf(e.beta, widen((uint16_t)c), v.x) + bias_x;
  v.y = fmaf(e.beta, widen((uint16_t)(c >> 16)), v.y) + bias_y;
}

__device__ inline uint32_t scaled_two(const epilogue_args &e, float a, float b, float x_scale) {
  return round_two(e, make_float2(scaled(e, a, x_scale), scaled(e, b, x_scale)));
}

/* Four neighbours at once: only scaled, or with C and biases too. */
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

/* Sums of a warp in its own shared memory, sums[token][row]. */
template <int Rows>
struct own_sums {
  const float *sums;

  __device__ float one(int token, int row) const { return sums[token * lpg_sums_stride(Rows) + row]; }

  /* Of Tokens tokens from `token` on, `step` apart, of which there are `tokens`. */
  template <int Tokens>
  __device__ void ones(float (&sum)[Tokens], int token, int step, int tokens, int row) const {
#pragma unroll
    for (int i = 0; i < Tokens; i++) sum[i] = one(min(token + i * step, tokens - 1), row);
  }

  /* The same of four neighbours. */
  template <int Tokens>
  __device__ void fours(float4 (&sum)[Tokens], int token, int step, int tokens, int row) const {
    (void)tokens; /* there is room for all */
#pragma unroll
    for (int i = 0; i < Tokens; i++) {
      sum[i] = *(const float4 *)(sums + (token + i * step) * lpg_sums_stride(Rows) + row);
    }
  }
};

/* Stores the outputs of `tokens` tokens by Rows rows, from token m and row n on, which is number `thread` of Threads
 * that share the work. */
template <class T, int Rows, int Threads, class Sums, class Args>
__device__ inline void store_sums(const Args &a, const Sums &sums, int tokens, int thread, const float *factors, int m,
                                  int n) {
  constexpr int fours = Rows / 4, sweep = Threads / fours, batch = Threads == 32 ? LPG_PASS_TOKENS / sweep : 2;
  const epilogue_args &e = a.epilogue;
  tokens = min(tokens, a.m - m);
  if (has_vectors(e, 8) && (n + Rows <= a.n || a.n % 4 == 0)) {
    const int row = thread % fours * 4;
    if (n + row >= a.n) return;
    const float4 factor = *(const float4 *)(factors + row);
    const float4 bias = {bias_of(e, n + row), bias_of(e, n + row + 1), bias_of(e, n + row + 2),
                         bias_of(e, n + row + 3)};
    int token = thread / fours;
    uint16_t *y = (uint16_t *)e.y + (int64_t)(m + token) * e.ldy + n + row;
    const uint16_t *old = (const uint16_t *)e.c + (int64_t)(m + token) * e.ldc + n + row;
#pragma unroll 1
    for (; token < tokens; token += batch * sweep, y += batch * sweep * e.ldy, old += batch * sweep * e.ldc) {
      float4 sum[batch];
      uint2 c[batch];
#pragma unroll
      for (int i = 0; i < batch; i++) {
        c[i] = make_uint2(no_pair, no_pair);
        if (e.c && token + i * sweep < tokens) c[i] = *(const uint2 *)(old + i * sweep * e.ldc);
      }
      sums.fours(sum, token, sweep, tokens, row);
#pragma unroll
      for (int i = 0; i < batch; i++) {
        if (token + i * sweep >= tokens) break;
        store_four(e, y + i * sweep * e.ldy,
                   make_float4(sum[i].x * factor.x, sum[i].y * factor.y, sum[i].z * factor.z, sum[i].w * factor.w),
                   x_scale_of(e, m + token + i * sweep), c[i], bias);
      }
    }
    return;
  }
  /* Else a thread has a row of the weights, and several tokens' sums, and numbers of C, are on their way together. */
  static_assert(Threads % Rows == 0, "a thread has a row");
  constexpr int step = Threads / Rows, together = 4, unaligned = Threads == 32 ? 8 : 4; /* as registers allow */
  const int r = thread % Rows;
  if (n + r >= a.n) return;
  if constexpr (T::integer_sums) {
    if (e.y_type == LPGEMM_I32) { /* integers, as bits */
#pragma unroll 1
      for (int token = thread / Rows; token < tokens; token += step) {
        store_integer(e, m + token, n + r, __float_as_int(sums.one(token, r)));
      }
      return;
    }
  }
  const float factor = factors[r];
  if (e.only_scales && lpg_bytes(e.y_type) == 2) {
    uint16_t *const y = (uint16_t *)e.y + (int64_t)m * e.ldy + n + r;
#pragma unroll 1
    for (int first = thread / Rows; first < tokens; first += unaligned * step) {
      float sum[unaligned];
      sums.ones(sum, first, step, tokens, r);
#pragma unroll
      for (int i = 0; i < unaligned; i++) {
        const int token = first + i * step;
        const float one = sum[i] * factor;
        if (token < tokens) y[token * e.ldy] = (uint16_t)scaled_two(e, one, one, x_scale_of(e, m + token));
      }
    }
    return;
  }
  const column_epilogue column(e, n + r);
#pragma unroll 1
  for (int token = thread / Rows; token < tokens; token += together * step) {
    float sum[together], c[together];
    sums.ones(sum, token, step, tokens, r);
#pragma unroll
    for (int i = 0; i < together; i++) c[i] = column.read_c(m + min(token + i * step, tokens - 1));
#pragma unroll
    for (int i = 0; i < together; i++) {
      if (token + i * step < tokens) column.store(m + token + i * step, sum[i] * factor, c[i]);
    }
  }
}

/* Puts a warp's sums of 16 tokens from `first` on there; its first row is `row`. */
template <class T, class Product>
__device__ inline void put_sums(const Product &product, float *sums, int stride, int row, int first) {
  constexpr int tokens = LPG_PASS_TOKENS;
  const int lane = threadIdx.x % 32;
  float *const own = sums + 2 * (lane % 4) * stride + row + lane / 4;
#pragma unroll
  for (int which = 0; which < T::Tokens; which += tokens) { /* registers have no index */
    if (which != first) continue;
#pragma unroll
    for (int j = 0; j < tokens / 8; j++) {
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

/* Takes a warp's sums from registers to outputs, 16 tokens a pass; factors: of its rows. */
template <class T, class Args, class Work, class Product>
__device__ inline void store_item(const Args &a, const Work &w, int item, const Product &product, const float *factors,
                                  uint8_t *memory) {
  constexpr int tokens = LPG_PASS_TOKENS, rows = T::row_tiles * LPG_TILE_ROWS;
  const int lane = threadIdx.x % 32, first_row = threadIdx.x / 32 * rows, first_token = w.token_item(item) * T::Tokens;
  float *const sums = (float *)(memory + a.plan.sums + threadIdx.x / 32 * lpg_sums_bytes(tokens, rows));
#pragma unroll 1
  for (int first = 0; first < T::Tokens && first_token + first < a.m; first += tokens) {
    put_sums<T>(product, sums, lpg_sums_stride(rows), 0, first);
    __syncwarp();
    store_sums<T, rows, 32>(a, own_sums<rows>{sums}, tokens, lane, factors + first_row, first_token + first,
                            w.row_item(item) * T::rows + first_row);
    __syncwarp();
  }
}

}  // namespace
}  // namespace lpg
