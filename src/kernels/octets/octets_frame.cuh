/* The frame of the kernels for X of 8 bits by weights that become bytes in registers.
 *
 *   four warps bring an image of X and the packed weights into stages in shared memory, by bulk copies
 *   eight warps multiply what the stages hold: octets.cuh, octets_units.cuh
 *   the sums of all slices of K are added up; epilogue, store */
#pragma once

#include "../prim/follow.cuh"
#include "../prim/logic.cuh"
#include "../prim/wgmma.cuh"
#include "octets_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The scales and zeros of a stage, of a warp's row tiles from row_tile on; `unit` counts 128 columns of a row. A lane
 * brings those of a row tile and 128 columns, and arrives when they are there. */
template <class T>
__device__ inline void bring_numbers(const octets_groups &g, uint32_t to, uint32_t full, int warp, int row_tile,
                                     int row_tiles, int unit, int lane) {
  constexpr int all = T::rows / LPG_TILE_ROWS * T::units, each = all / LPG_OCTETS_COPY_WARPS;
  if (lane >= each) return;
  const int64_t tile = min(row_tile + lane / T::units, row_tiles - 1);
  const int group = min((unit + lane % T::units) >> g.log2, g.last), slot = warp * each + lane;
  const uint8_t *const scales = g.scales + tile * g.scale_row + group * 32;
  copy16_async(to + slot * 32, scales);
  copy16_async(to + slot * 32 + 16, scales + 16);
  if (T::Zeros && g.zeros) copy16_async(to + all * 32 + slot * 16, g.zeros + tile * g.zero_row + group * 16);
  arrive_when_copied(full);
}

/* The zero that all groups have, in all stages: nobody brings it, and nothing else is ever there. */
template <class T>
__device__ inline void fill_zeros(const octets_args &a, uint8_t *memory) {
  constexpr int words = T::rows * T::units / 4;
  for (int i = threadIdx.x; i < a.plan.stages * words; i += T::threads) {
    uint8_t *const stage = memory + a.plan.numbers_ring + i / words * T::numbers_bytes;
    ((uint32_t *)(stage + T::rows * T::units * 2))[i % words] = a.groups.zero;
  }
}

/* Each of the four warps brings a quarter of the item's row tiles; the first two X as well. What a copy is told must be
 * the same in all lanes: else they would be told one by one. */
template <class T>
__device__ inline void bring_stages(const octets_args &a, const octets_work &w, uint32_t base, int warp, int lane) {
  constexpr int row_tiles = T::rows / LPG_TILE_ROWS, each = row_tiles / LPG_OCTETS_COPY_WARPS;
  constexpr int x_parts = T::stage_k / LPG_OCTETS_X_K, tile_bytes = T::w_vectors * 512;
  octets_ring ring(a.plan, base, 1); /* fresh stages are empty */
  for (int item = w.first_item; item < w.items; item += w.stride) {
    const int token = w.token_item(item) * T::Tokens, row_tile = w.row_item(item) * row_tiles;
    const int tokens = min(T::Tokens, a.image_tokens - token), tiles = min(row_tiles, a.row_tiles - row_tile);
    const uint8_t *codes = a.codes + (row_tile + warp * each) * a.row_bytes + (int64_t)w.first * tile_bytes;
    const uint8_t *image =
        a.image + (int64_t)token * LPG_OCTETS_X_K + ((int64_t)w.first * x_parts + warp) * a.image_stage;
    for (int left = w.stages, vectors = a.row_vectors - w.first * T::w_vectors; left > 0; left--) {
      const int bytes = min(T::w_vectors, vectors) * 512;
      wait_barrier(ring.full + 8, ring.parity);
      if (lane == 0) {
        if (warp == 0) arrive_and_expect(ring.full, tokens * T::stage_k + tiles * bytes);
        if (warp < x_parts) copy_bulk(ring.x + warp * T::x_part, image, tokens * LPG_OCTETS_X_K, ring.full);
#pragma unroll
        for (int r = 0; r < each; r++) {
          if (warp * each + r >= tiles) break;
          copy_bulk(ring.codes + (warp * each + r) * tile_bytes, codes + r * a.row_bytes, bytes, ring.full);
        }
      }
      if constexpr (T::grouped) {
        const int unit = (w.first + w.stages - left) * T::units;
        bring_numbers<T>(a.groups, ring.numbers, ring.full, warp, row_tile + warp * each, a.row_tiles, unit, lane);
      }
      codes += tile_bytes;
      image += x_parts * a.image_stage;
      vectors -= T::w_vectors;
      ring.advance<T>(a.plan);
    }
    __syncwarp();
    if (a.plan.slices > 1) {
      if (T::grouped) wait_copies<0>();
      wait_for_parts();
      fence_for_tensor_cores(); /* sums have lain where copies will come */
    }
  }
}

/* The common case, 16-bit outputs that are only scaled, in whole pieces of 16 bytes: the same arithmetic as that of
 * store_item(), which it leaves the others to (false). 16 tokens a pass. Sums: integers, or of groups fp32. */
template <class T, class Sums>
__device__ inline bool store_scaled(const octets_args &a, const octets_work &w, int item, const Sums &sums,
                                    const float *factors, uint8_t *memory, int warp, int lane) {
  constexpr int rows = T::row_tiles * LPG_TILE_ROWS, pitch = rows * 2 + 16, pieces = rows / 8; /* of a token */
  const epilogue_args &e = a.epilogue;
  const int first_row = w.row_item(item) * T::rows, token = w.token_item(item) * T::Tokens, own = warp * rows;
  if (!e.only_scales || lpg_bytes(e.y_type) != 2 || ((uintptr_t)e.y | e.ldy * 2) % 16 != 0) return false;
  if (first_row + T::rows > a.n) return false;
  uint8_t *const place = memory + a.plan.sums + warp * lpg_sums_bytes(LPG_PASS_TOKENS, rows);
  const uint32_t to = shared_address(place) + lane % 8 * pitch +
                      (T::row_tiles == 2 ? lane / 8 * 16 : lane / 16 * 8 * pitch + lane / 8 % 2 * 16);
  float factor[T::row_tiles][2];
#pragma unroll
  for (int i = 0; i < 2 * T::row_tiles; i++) factor[i / 2][i % 2] = factors[own + lane / 4 + 8 * i];
  float scale[T::Tokens / 8][2]; /* all are read before they are needed */
#pragma unroll
  for (int i = 0; i < T::Tokens / 4; i++) {
    scale[i / 2][i % 2] = x_scale_of(e, min(token + i / 2 * 8 + lane % 4 * 2 + i % 2, a.m - 1));
  }
  uint16_t *const y = (uint16_t *)e.y + first_row + own;
#pragma unroll
  for (int first = 0; first < T::Tokens; first += LPG_PASS_TOKENS) {
    if (token + first >= a.m) break;
    uint32_t pairs[2][T::row_tiles][2];
#pragma unroll
    for (int j = 0; j < 2; j++) {
#pragma unroll
      for (int i = 0; i < 2 * T::row_tiles; i++) {
        const auto *const two = &sums.sum[i / 2][(first / 8 + j) * 4 + i % 2 * 2];
        float v[2];
#pragma unroll
        for (int t = 0; t < 2; t++) {
          v[t] = e.alpha * ((float)two[t] * factor[i / 2][i % 2] * e.global_scale) * scale[first / 8 + j][t];
        }
        pairs[j][i / 2][i % 2] = e.y_type == LPGEMM_F16 ? f16_x::round_two(v[0], v[1]) : bf16_x::round_two(v[0], v[1]);
      }
    }
    if constexpr (T::row_tiles == 2) {
      store_transposed(to, pairs[0][0][0], pairs[0][0][1], pairs[0][1][0], pairs[0][1][1]);
      store_transposed(to + 8 * pitch, pairs[1][0][0], pairs[1][0][1], pairs[1][1][0], pairs[1][1][1]);
    } else {
      store_transposed(to, pairs[0][0][0], pairs[0][0][1], pairs[1][0][0], pairs[1][0][1]);
    }
    __syncwarp();
#pragma unroll
    for (int i = lane; i < LPG_PASS_TOKENS * pieces; i += 32) {
      const int t = i / pieces, piece = i % pieces;
      if (token + first + t >= a.m) continue;
      *(uint4 *)(y + (token + first + t) * e.ldy + piece * 8) = *(const uint4 *)(place + t * pitch + piece * 16);
    }
    __syncwarp();
  }
  return true;
}

/* Barriers of the ring; then nothing is read or written before the kernels before are done. */
template <class T>
__device__ inline void begin_octets(const octets_args &a, uint32_t base) {
  let_next_start();
  if (threadIdx.x == 0) {
    for (int i = 0; i < a.plan.stages; i++) {
      init_barrier(base + 16 * i, T::full_arrivals);
      init_barrier(base + 16 * i + 8, T::warps);
    }
    fence_barriers();
  }
  __syncthreads();
  wait_for_previous();
}

template <class T>
__global__ void __launch_bounds__(T::threads, 1) octets_kernel(const __grid_constant__ octets_args a) {
  extern __shared__ __align__(1024) uint8_t memory[];
  const uint32_t base = shared_address(memory);
  if constexpr (T::grouped && T::Zeros) {
    if (!a.groups.zeros) fill_zeros<T>(a, memory);
  }
  begin_octets<T>(a, base);
  const octets_work w(a);
  const int warp = same_in_warp(threadIdx.x / 32), lane = threadIdx.x % 32;
  if (warp >= T::warps) {
    give_registers_back<T::copy_registers>();
    bring_stages<T>(a, w, base, warp - T::warps, lane);
  } else {
    take_registers<T::registers>();
    T::multiply(a, w, base, memory, warp, lane);
  }
}

}  // namespace
}  // namespace lpg
