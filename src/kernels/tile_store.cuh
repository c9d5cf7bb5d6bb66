/* From the sums of items, which warps have in registers by row tiles, to outputs, in a fixed order. */
#pragma once

#include "activation_type.cuh"
#include "blocks.cuh"
#include "epilogue.cuh"
#include "prim/async.cuh"
#include "prim/barrier.cuh"
#include "prim/cluster.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Y of 16 bits without anything else that the epilogue may do: four neighbours at once. */
__device__ inline void store_four(const epilogue_args &e, uint16_t *y, float4 v, float x_scale) {
  const auto scaled = [&](float x) { return e.alpha * (x * e.global_scale) * x_scale; };
  const float a = scaled(v.x), b = scaled(v.y), c = scaled(v.z), d = scaled(v.w);
  *(uint2 *)y = e.y_type == LPGEMM_F16 ? make_uint2(f16_x::round_two(a, b), f16_x::round_two(c, d))
                                       : make_uint2(bf16_x::round_two(a, b), bf16_x::round_two(c, d));
}

/* Where sums of 16 tokens are brought together: of the rows of a warp, which stores them by itself, or of an item, for
 * which S slices of K are added up. Block of threads `to` of the cluster gets the tokens from 16 to / S on, those of
 * one slice after the other. */
template <class T, bool Alone>
struct sums_area {
  static constexpr int warps = Alone ? 1 : T::warps, threads = 32 * warps;
  static constexpr int rows = warps * T::row_tiles * LPG_TILE_ROWS;
  static constexpr int stride = rows + 4; /* floats; tokens begin in different banks */

  float *sums;
  int slices, rank, own; /* own: tokens of the block of threads */

  /* A warp's sums from token `first` on. */
  template <class Product>
  __device__ void send(const Product &product, int first) const {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int first_row = Alone ? 0 : threadIdx.x / 32 * T::row_tiles * LPG_TILE_ROWS;
#pragma unroll
    for (int j = 0; j < LPG_PASS_TOKENS / 8; j++) {
      const int token = j * 8 + 2 * t, to = token / own; /* 2 t and 2 t + 1 go to the same block */
      float *const at = sums + (rank * own + token % own) * stride + first_row + g;
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
          float *const place = at + i % 2 * stride + r * LPG_TILE_ROWS + i / 2 * 8;
          const float sum = product.sum[r][(first / 8 + j) * 4 + i];
          if (Alone) {
            *place = sum;
          } else {
            store_to_block(shared_address(place), to, sum);
          }
        }
      }
    }
  }

  /* Adds the slices up and stores outputs, from row n and token m on. */
  template <class Args>
  __device__ void store(const Args &a, const float *factors, int m, int n) const {
    constexpr int fours = rows / 4, sweep = threads / fours; /* tokens at once */
    const epilogue_args &e = a.epilogue;
    const int thread = threadIdx.x % threads, row = thread % fours * 4;
    if (e.only_scales && lpg_bytes(e.y_type) == 2 && ((uintptr_t)e.y | e.ldy * 2) % 8 == 0 && n + rows <= a.n) {
      const float4 factor = *(const float4 *)(factors + row);
      uint16_t *const y = (uint16_t *)e.y + (int64_t)(m + thread / fours) * e.ldy + n + row;
#pragma unroll
      for (int i = 0; i < LPG_PASS_TOKENS / sweep; i++) {
        const int token = thread / fours + i * sweep;
        if (token >= own || m + token >= a.m) break;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int s = 0; s < (Alone ? 1 : slices); s++) {
          const float4 one = *(const float4 *)(sums + (s * own + token) * stride + row);
          sum = make_float4(sum.x + one.x, sum.y + one.y, sum.z + one.z, sum.w + one.w);
        }
        store_four(e, y + i * sweep * e.ldy,
                   make_float4(sum.x * factor.x, sum.y * factor.y, sum.z * factor.z, sum.w * factor.w),
                   x_scale_of(e, m + token));
      }
      return;
    }
#pragma unroll 1
    for (int i = thread; i < own * rows; i += threads) {
      const int token = i / rows, r = i % rows;
      if (m + token >= a.m || n + r >= a.n) continue;
      if constexpr (T::integer_sums) {
        if (e.y_type == LPGEMM_I32) { /* of one slice: integers, as bits */
          store_integer(e, m + token, n + r, __float_as_int(sums[token * stride + r]));
          continue;
        }
      }
      float sum = 0.0f;
      for (int s = 0; s < (Alone ? 1 : slices); s++) sum += sums[(s * own + token) * stride + r];
      store_real(e, m + token, n + r, sum * factors[r]);
    }
  }
};

/* Takes an item's sums from registers to outputs, 16 tokens a pass. With slices, `pass` counts the passes of all items:
 * two areas take turns, and a barrier for each, from `barriers` on, says that all sums are there. */
template <class T, bool Alone, class Args, class Work, class Product>
__device__ inline void store_item(const Args &a, const Work &w, int item, const Product &product, const float *factors,
                                  uint8_t *memory, uint32_t barriers, int &pass) {
  constexpr int tokens = LPG_PASS_TOKENS;
  using area_type = sums_area<T, Alone>;
  const int slices = a.plan.slices, lane = threadIdx.x % 32, first_token = w.token_item(item) * T::Tokens;
  const int first_row = Alone ? threadIdx.x / 32 * area_type::rows : 0;
  area_type area = {(float *)(memory + a.plan.sums), slices, w.rank, tokens / slices};
  if (Alone) area.sums += threadIdx.x / 32 * (tokens * area_type::stride);
  float *const even = area.sums;
#pragma unroll 1
  for (int first = 0; first < T::Tokens && first_token + first < a.m; first += tokens, pass++) {
    if (!Alone) area.sums = even + pass % 2 * (tokens * area_type::stride);
#pragma unroll
    for (int which = 0; which < T::Tokens; which += tokens) { /* registers have no index */
      if (which == first) area.send(product, which);
    }
    __syncwarp();
    if (!Alone) {
      const uint32_t barrier = barriers + 8 * (pass % 2);
      if (lane < slices) arrive_at(barrier, lane);
      wait_cluster_barrier(barrier, pass / 2 % 2);
    }
    area.store(a, factors + first_row, first_token + first + w.rank * area.own, w.row_item(item) * T::rows + first_row);
    __syncwarp();
  }
}

}  // namespace
}  // namespace lpg
