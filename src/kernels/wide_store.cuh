/* From the sums of a wide kernel's slices to outputs, in a fixed order. */
#pragma once

#include "prim/cluster.cuh"
#include "wide_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* What takes a row's sums to what the epilogue expects: the row's scale, or the power of two that its scales have lost. */
__device__ inline float row_factor(const wide_args &a, int row) {
  const numbers_args &n = a.numbers;
  if (row >= a.row_tiles * LPG_TILE_ROWS) return 0.0f;
  if (n.which[role_scale] < 0) return n.factor;
  if (!n.scale_on_rows) {
    const int e = a.exponents[row] - n.scale_exponent;
    return n.factor * times_power(1.0f, e);
  }
  float scale = 1.0f;
  for (int role = role_scale; role <= role_super_scale; role++) {
    if (n.which[role] < 0) continue;
    const number_section &s = n.section[n.which[role]];
    const float2 two =
        read_pair(s.type, s.values + (int64_t)(row / LPG_TILE_ROWS) * s.row_bytes, row % 8);
    scale *= row % LPG_TILE_ROWS < 8 ? two.x : two.y;
  }
  return n.factor * scale;
}

/* Four neighbours in a row of Y. */
__device__ inline void store_four(const epilogue_args &e, int64_t m, int n, int count, float4 v) {
  const int64_t at = m * e.ldy + n;
  if (e.only_scales && count >= 4 && e.y_type != LPGEMM_F32 && ((uintptr_t)e.y + at * 2) % 8 == 0) {
    const auto scaled = [&](float x) { return e.alpha * (x * e.global_scale); };
    uint2 four;
    if (e.y_type == LPGEMM_F16) {
      four = make_uint2(f16_x::round_two(scaled(v.x), scaled(v.y)), f16_x::round_two(scaled(v.z), scaled(v.w)));
    } else {
      four = make_uint2(bf16_x::round_two(scaled(v.x), scaled(v.y)), bf16_x::round_two(scaled(v.z), scaled(v.w)));
    }
    *(uint2 *)((uint16_t *)e.y + at) = four;
    return;
  }
#pragma unroll 1
  for (int i = 0; i < min(count, 4); i++) store_real(e, m, n + i, i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w);
}

/* Brings the sums of an item to the blocks of threads that store them, 16 tokens at a time: rank j of S has tokens
 * 16 j / S .. of these, where it finds the sums of the slices one after the other. `pass` counts them over all items. */
template <class T>
__device__ inline void store_item(const wide_args &a, const wide_work &w, int item, const typename T::Product &product,
                                  const float *factors, uint8_t *memory, uint32_t barriers, int &pass) {
  constexpr int stride = LPG_WIDE_SUMS_STRIDE, tokens = LPG_WIDE_PASS_TOKENS;
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, g = lane / 4, t = lane % 4;
  const int slices = a.plan.slices, own = tokens / slices;
  const int first_token = w.token_item(item) * T::Tokens, first_row = w.row_item(item) * LPG_WIDE_ROWS;
#pragma unroll
  for (int first = 0; first < T::Tokens; first += tokens) {
    if (first_token + first >= a.m) break;
    float *const sums = (float *)(memory + a.plan.sums) + pass % 2 * (tokens * stride);
#pragma unroll
    for (int j = 0; j < tokens / 8; j++) {
      const int token = j * 8 + 2 * t, to = token / own; /* 2 t and 2 t + 1 go to the same block */
      float *const at = sums + (w.rank * own + token % own) * stride + warp * T::row_tiles * LPG_TILE_ROWS + g;
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
          float *const place = at + i % 2 * stride + r * LPG_TILE_ROWS + i / 2 * 8;
          const float sum = product.sum[r][(first / 8 + j) * 4 + i];
          if (slices > 1) {
            store_to_block(shared_address(place), to, sum);
          } else {
            *place = sum;
          }
        }
      }
    }
    const uint32_t barrier = barriers + pass % 2 * 8;
    __syncwarp();
    if (lane < slices) {
      if (slices > 1) {
        arrive_at(barrier, lane);
      } else {
        arrive(barrier);
      }
    }
    wait_cluster_barrier(barrier, pass / 2 % 2);
#pragma unroll 1
    for (int i = thread; i < own * (LPG_WIDE_ROWS / 4); i += 32 * LPG_WIDE_WARPS) {
      const int token = i / (LPG_WIDE_ROWS / 4), row = i % (LPG_WIDE_ROWS / 4) * 4;
      float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 1
      for (int s = 0; s < slices; s++) {
        const float4 one = *(const float4 *)(sums + (s * own + token) * stride + row);
        sum = make_float4(sum.x + one.x, sum.y + one.y, sum.z + one.z, sum.w + one.w);
      }
      const float4 factor = *(const float4 *)(factors + row);
      const int m = first_token + first + w.rank * own + token, n = first_row + row;
      if (m < a.m && n < a.n) {
        store_four(a.epilogue, m, n, a.n - n,
                   make_float4(sum.x * factor.x, sum.y * factor.y, sum.z * factor.z, sum.w * factor.w));
      }
    }
    pass++;
  }
}

}  // namespace
}  // namespace lpg
