/* int8 by integer weights: weights become bytes in registers, the operand that the int8 tensor cores of sm_90a take
 * from there.
 *
 *   four warps bring an image of X and the packed weights into stages in shared memory, by bulk copies
 *   eight warps, each with 16 or 32 rows:
 *     make bytes of the codes of a few steps of 32 columns while the tensor cores multiply those before
 *   the sums of all slices of K are added up; epilogue, store
 *
 * Sums are int32 all the way; they begin with what the offset and the zero of a row add. */
#pragma once

#include "../../bitserial/planes_slice.h"
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

/* A lane's packed words of the stage that is being multiplied. */
template <class T>
struct octets_words {
  uint32_t word[T::row_tiles][4 * T::w_vectors];

  /* Loads what is needed first in the batch of steps that begins there. */
  __device__ void load(uint32_t stage, int step) {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int v = 0; v < T::w_vectors; v++) {
        if (T::first_step(v) / T::batch == step / T::batch) {
          load_words(stage + (r * T::w_vectors + v) * 512, &word[r][4 * v]);
        }
      }
    }
  }
};

template <class T>
struct octets_sums {
  int sum[T::row_tiles][T::Tokens / 2];

  /* What offset and zero of rows and sums of tokens make together; adds: else another slice has it. */
  __device__ void begin(const octets_args &a, const octets_work &w, int item, int warp, int lane) {
    const bool adds = w.rank == 0 && w.stages > 0;
    const int2 *const x_sums = (const int2 *)(a.x_sums + w.token_item(item) * T::Tokens) + lane % 4;
    const int32_t *const offsets =
        a.offsets + w.row_item(item) * T::rows + warp * T::row_tiles * LPG_TILE_ROWS + lane / 4;
    int own[T::row_tiles][2];
#pragma unroll
    for (int i = 0; i < 2 * T::row_tiles; i++) own[i / 2][i % 2] = adds ? offsets[8 * i] : 0;
#pragma unroll
    for (int j = 0; j < T::Tokens / 8; j++) {
      const int2 two = adds ? x_sums[4 * j] : make_int2(0, 0);
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
        for (int i = 0; i < 4; i++) sum[r][4 * j + i] = own[r][i / 2] * (i % 2 ? two.y : two.x);
      }
    }
  }

  __device__ void start(const uint32_t (&weights)[T::batch][T::row_tiles][4], uint32_t x, int step) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < T::batch; i++) {
      const int at = step + i;
      const uint64_t rows = swizzled_rows(x + at / 4 * (T::x_part / 16) + at % 4 * 2);
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) wgmma_u8_by_i8::multiply(sum[r], weights[i][r], rows);
    }
    wgmma_commit();
  }
};

/* Sums as tile_store.cuh takes them: fp32, or the integers' bits. */
template <class T>
struct stored_sums {
  float sum[T::row_tiles][T::Tokens / 2];

  __device__ stored_sums(const octets_sums<T> &sums, bool as_bits) {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int i = 0; i < T::Tokens / 2; i++) {
        sum[r][i] = as_bits ? __int_as_float(sums.sum[r][i]) : (float)sums.sum[r][i];
      }
    }
  }
};

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

template <class T>
__device__ inline void multiply_items(const octets_args &a, const octets_work &w, uint32_t base, uint8_t *memory,
                                      int warp, int lane) {
  octets_ring ring(a.plan, base, 0);
  float *const factors = (float *)(memory + a.plan.factors);
  const uint32_t own_codes = warp * T::row_tiles * T::w_vectors * 512 + lane * 16;
  uint32_t operand[2][T::batch][T::row_tiles][4];
  octets_words<T> words;
  octets_sums<T> sums;
#pragma unroll 1
  for (int item = w.first_item; item < w.items; item += w.stride) {
    const int row = warp * T::row_tiles * LPG_TILE_ROWS + lane;
    if (lane < T::row_tiles * LPG_TILE_ROWS)
      factors[row] = w.stages ? a.factors[w.row_item(item) * T::rows + row] : 0.0f;
    sums.begin(a, w, item, warp, lane);
    uint32_t before = 0; /* the barrier of the stage that the tensor cores have not yet done */
    if (w.stages > 0) {
      wait_barrier(ring.full, ring.parity);
      words.load(ring.codes + own_codes, 0);
    }
#pragma unroll 1
    for (int left = w.stages; left > 0; left--) {
      const uint32_t x = swizzled_place(ring.x), full = ring.full, parity = ring.parity;
#pragma unroll
      for (int first = 0; first < T::stage_steps; first += T::batch) {
        uint32_t(&weights)[T::batch][T::row_tiles][4] = operand[first / T::batch % 2];
#pragma unroll
        for (int i = 0; i < T::batch * 4; i++) {
          const int step = first + i / 4, half = i % 2, sixteen = i / 2 % 2;
#pragma unroll
          for (int r = 0; r < T::row_tiles; r++) {
            weights[i / 4][r][half + 2 * sixteen] =
                (uint32_t)keep((int)lpg_planes_bytes_of_weights(T::Bits, words.word[r] + half, 2, step * 2 + sixteen));
          }
        }
        sums.start(weights, x, first);
        const int next = first + T::batch;
        if (next == T::stage_steps) {
          ring.advance<T>(a.plan);
          wait_barrier(left > 1 ? ring.full : full, left > 1 ? ring.parity : parity); /* without a branch */
        }
        words.load(ring.codes + own_codes, next % T::stage_steps);
        wgmma_wait<1>();
        if (first == 0) {
          __syncwarp();
          if (lane == 0 && before != 0) arrive(before);
          before = full + 8;
        }
      }
    }
    wgmma_wait<0>();
    __syncwarp();
    if (lane == 0 && before != 0) arrive(before);
    if (a.plan.slices > 1) {
      store_parts<T>(a, w, item, stored_sums<T>(sums, true), factors, memory);
    } else if (!store_scaled<T>(a, w, item, sums, factors, memory, warp, lane)) {
      store_item<T>(a, w, item, stored_sums<T>(sums, a.epilogue.y_type == LPGEMM_I32), factors, memory);
    }
  }
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
  begin_octets<T>(a, base);
  const octets_work w(a);
  const int warp = same_in_warp(threadIdx.x / 32), lane = threadIdx.x % 32;
  if (warp >= T::warps) {
    give_registers_back<T::copy_registers>();
    bring_stages<T>(a, w, base, warp - T::warps, lane);
  } else {
    take_registers<T::registers>();
    multiply_items<T>(a, w, base, memory, warp, lane);
  }
}

}  // namespace
}  // namespace lpg
