/* gemm8: the producer warps, which fill the ring of stages. Packed weights come by TMA, scales of groups by cp.async,
 * and X by bulk copies of its image; or, where it is read directly, by cp.async: then the warps put its bytes in the
 * order of packed weights themselves, and no kernel need run ahead. */
#pragma once

#include "../epilogue/split_k_exchange.cuh"
#include "../operand/bit_planes.h"
#include "../prim/async.cuh"
#include "../prim/barrier.cuh"
#include "../prim/pdl.cuh"
#include "gemm8_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

template <class T>
__device__ inline void load_stage_codes(const gemm8_args &a, const gemm8_ring &ring, int stage, int row_tile) {
  copy_box(ring.codes, &a.codes, 0, stage * T::w_vectors, row_tile, ring.full,
           l2_policy(lpg_reads_once(a.plan.n_tiles, a.plan.m_tiles, a.plan.whole)));
}

/* Loads the scales and zeros of a stage, if groups have some; row_tile: the work tile's first. Each producer warp has a
 * quarter of the row tiles, a lane one of them and 128 k; its arrival on the full mbarrier follows its copies. */
template <class T>
__device__ inline void load_stage_scales(const gemm8_args &a, const gemm8_ring &ring, int stage, int row_tile, int warp,
                                         int lane) {
  if constexpr (T::grouped) {
    constexpr int row_tiles = T::tile_n / LPG_TILE_ROWS, own = row_tiles / LPG_GEMM8_PRODUCER_WARPS;
    constexpr int all = row_tiles * T::units, each = all / LPG_GEMM8_PRODUCER_WARPS;
    if (lane >= each) return;
    const gemm8_groups &g = a.groups;
    const uint32_t to = ring.scale_data;
    const int64_t tile = min(row_tile + warp * own + lane / T::units, a.row_tiles - 1);
    const int group = min((stage * T::units + lane % T::units) >> g.log2, g.last), place = warp * each + lane;
    const uint8_t *const scales = g.scales + tile * g.scale_row + group * 32;
    copy16_async(to + place * 32, scales);
    copy16_async(to + place * 32 + 16, scales + 16);
    if (T::Zeros && g.zeros) copy16_async(to + all * 32 + place * 16, g.zeros + tile * g.zero_row + group * 16);
    arrive_when_copied(ring.full);
  }
}

/* Asks for the weights of a stage, whose X comes later. */
template <class T>
__device__ inline void load_stage_weights(const gemm8_args &a, const gemm8_ring &ring, int stage, int row_tile,
                                          int warp, int lane) {
  if (warp == 0 && is_elected()) {
    expect_bytes(ring.full, T::w_bytes);
    load_stage_codes<T>(a, ring, stage, row_tile);
  }
  load_stage_scales<T>(a, ring, stage, row_tile, warp, lane);
}

/* A producer thread's pieces of X, 16 k each: eight threads have 128 k of a row. The thread copies its pieces to their
 * places, and later, when they have come, puts their bytes in order there. */
template <class T>
struct direct_x {
  static constexpr int threads = LPG_GEMM8_PRODUCER_WARPS * 32, row_step = threads / 8, own_rows = T::TileM / row_step;
  static constexpr int row_bytes = row_step * LPG_GEMM8_X_K; /* from one of the thread's rows to the next, in a stage */
  static constexpr int parts = T::stage_k / LPG_GEMM8_X_K;
  const uint8_t *from; /* the thread's first piece of the next stage that is copied */
  uint32_t to;         /* the same in a stage */
  int rows, left;      /* of the work tile from the thread's first row on; bytes from the piece on */
  int sum[own_rows];

  __device__ direct_x(const gemm8_args &a, int first_x_row, int first_k) : sum{} {
    const int thread = threadIdx.x % threads, piece = thread % 8, row = thread / 8;
    rows = a.m - first_x_row - row;
    left = a.k - first_k - piece * 16;
    from = a.x + (first_x_row + row) * a.ldx + first_k + piece * 16;
    to = row * LPG_GEMM8_X_K + ((piece ^ row % 8) << 4);
  }

  /* Starts to copy the pieces of a stage to x. What is beyond K becomes zero; rows beyond M stay as they were: their
   * outputs are never stored. */
  __device__ void copy(const gemm8_args &a, uint32_t x) {
#pragma unroll 1
    for (int part = 0; part < parts; part++, from += LPG_GEMM8_X_K, left -= LPG_GEMM8_X_K) {
      const uint8_t *row = left > 0 ? from : a.x;
      const int64_t step = left > 0 ? row_step * a.ldx : 0;
#pragma unroll
      for (int i = 0; i < own_rows; i++, row += step) {
        if (i * row_step < rows) copy_some_async(x + to + part * T::x_part + i * row_bytes, row, min(max(left, 0), 16));
      }
    }
    commit_copies();
  }

  /* Puts the bytes of the pieces at x in the order of packed weights, and adds up the rows. Rows beyond M too: their
   * outputs are never stored. */
  __device__ void arrange(uint32_t x) {
    constexpr int at_once = own_rows < 4 ? own_rows : 4;
#pragma unroll 1
    for (int part = 0; part < parts; part++) {
#pragma unroll
      for (int first = 0; first < own_rows; first += at_once) {
        const uint32_t at = x + to + part * T::x_part + first * row_bytes;
        uint32_t word[at_once][4];
#pragma unroll
        for (int i = 0; i < at_once; i++) load_words(at + i * row_bytes, word[i]);
#pragma unroll
        for (int i = 0; i < at_once; i++) {
          if constexpr (T::integer_sums) {
#pragma unroll
            for (int j = 0; j < 4; j++) sum[first + i] = __dp4a((int)word[i][j], 0x01010101, sum[first + i]);
          }
          store_words(at + i * row_bytes, lpg_bit_planes_x_bytes(word[i], 0), lpg_bit_planes_x_bytes(word[i], 1),
                      lpg_bit_planes_x_bytes(word[i], 2), lpg_bit_planes_x_bytes(word[i], 3));
        }
      }
    }
  }

  /* Writes the sums of the rows, all pieces arranged, to x_sums. */
  __device__ void put_sums(int *x_sums) {
#pragma unroll
    for (int i = 0; i < own_rows; i++) {
#pragma unroll
      for (int lanes = 1; lanes < 8; lanes *= 2) sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], lanes);
      if (threadIdx.x % 8 == 0) x_sums[threadIdx.x % threads / 8 + i * row_step] = sum[i];
    }
  }
};

/* The producer warps' share in adding up the parts of K. */
template <class T>
__device__ inline void wait_for_sums(const gemm8_args &a) {
  if (T::grouped) wait_copies<0>();
  if (a.plan.exchanges) {
    wait_for_exchange(a, T::threads);
  } else {
    wait_for_parts();
  }
  fence_for_tensor_cores(); /* partial sums may have lain where TMA writes next */
}

/* The CTA's one work tile, X read directly, two stages ahead. early: stages whose weights are asked for. */
template <class T>
__device__ inline void load_direct(const gemm8_args &a, const gemm8_work &w, gemm8_ring &ring, int early,
                                   uint8_t *memory, int warp, int lane) {
  const int row_tile = w.n_tile(w.first_tile) * (T::tile_n / LPG_TILE_ROWS);
  direct_x<T> x(a, w.m_tile(w.first_tile) * T::TileM, w.first * T::stage_k);
  gemm8_ring ahead = ring;
#pragma unroll 1
  for (int i = 0; i < w.stages + LPG_GEMM8_DIRECT_AHEAD; i++) {
    if (i >= LPG_GEMM8_DIRECT_AHEAD) { /* before the wait: consumers release a stage when the next one has come */
      wait_copies<LPG_GEMM8_DIRECT_AHEAD - 1>();
      x.arrange(ring.x);
      if (T::integer_sums && i + 1 == w.stages + LPG_GEMM8_DIRECT_AHEAD) x.put_sums((int *)(memory + a.plan.x_sums));
      fence_for_tensor_cores();
      __syncwarp();
      if (lane == 0) arrive(ring.full);
      ring.advance<T>(a.plan);
    }
    if (i < w.stages) {
      wait_barrier(ahead.full + 8, ahead.parity);
      if (i >= early) load_stage_weights<T>(a, ahead, w.first + i, row_tile, warp, lane);
      x.copy(a, ahead.x);
      ahead.advance<T>(a.plan);
    } else {
      commit_copies(); /* none, for the count */
    }
  }
}

/* All work tiles, X from its image. early: stages of the first one whose weights are asked for. */
template <class T, class Work>
__device__ inline void load_images(const gemm8_args &a, const Work &w, gemm8_ring &ring, int early, int warp,
                                   int lane) {
  constexpr int row_tiles = T::tile_n / LPG_TILE_ROWS, x_parts = T::stage_k / LPG_GEMM8_X_K;
  for (int tile = w.first_tile; tile < w.tiles; tile += w.stride) {
    const int x_row = w.m_tile(tile) * T::TileM, row_tile = w.n_tile(tile) * row_tiles;
    const int x_rows = min(T::TileM, a.image_rows - x_row);
    const uint8_t *image = a.image + (int64_t)x_row * LPG_GEMM8_X_K + (int64_t)w.first * x_parts * a.image_stage;
    for (int stage = w.first; stage < w.first + w.stages; stage++, early--, image += x_parts * a.image_stage) {
      if (T::grouped || warp == 0) wait_barrier(ring.full + 8, ring.parity);
      if (warp == 0 && is_elected()) {
        arrive_and_expect(ring.full, x_rows * T::stage_k + (early > 0 ? 0 : T::w_bytes));
        if (early <= 0) load_stage_codes<T>(a, ring, stage, row_tile);
#pragma unroll
        for (int i = 0; i < x_parts; i++) {
          copy_bulk(ring.x + i * T::x_part, image + i * a.image_stage, x_rows * LPG_GEMM8_X_K, ring.full);
        }
      }
      if (early <= 0) load_stage_scales<T>(a, ring, stage, row_tile, warp, lane);
      ring.advance<T>(a.plan);
    }
    __syncwarp();
    if (!is_half<T> && a.plan.split_k > 1) wait_for_sums<T>(a);
  }
}

/* Fills the stages of whole work tiles. Weights do not wait for the kernel before. */
template <class T>
__device__ inline void load_tiles(const gemm8_args &a, const gemm8_work &w, gemm8_ring &ring, uint8_t *memory, int warp,
                                  int lane) {
  const int early = w.first_tile < w.tiles ? min(a.plan.stages, w.stages) : 0;
  gemm8_ring ahead = ring;
#pragma unroll 1
  for (int i = 0; i < early; i++) {
    load_stage_weights<T>(a, ahead, w.first + i, w.n_tile(w.first_tile) * (T::tile_n / LPG_TILE_ROWS), warp, lane);
    ahead.advance<T>(a.plan);
  }
  pdl_wait();
  if (!a.plan.direct) return load_images<T>(a, w, ring, early, warp, lane);
  load_direct<T>(a, w, ring, early, memory, warp, lane);
  if (a.plan.split_k > 1) wait_for_sums<T>(a);
}

}  // namespace
}  // namespace lpg
