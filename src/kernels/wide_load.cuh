/* The warps of a wide kernel that copy. A stage is 64 columns: X of all tokens of the item, and the weights whose tiles
 * begin there. Each of the four warps brings a quarter of both. */
#pragma once

#include "wide_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* X: rows of 128 bytes, of which 16-byte piece i is at i ^ (row % 8). A lane has one piece of every 16th row. Columns
 * that are not there are zero, and tokens that are not there repeat the last. */
template <class T>
__device__ inline void load_x(const wide_args &a, uint32_t to, int token, int column, int warp, int lane,
                              bool aligned) {
  const int piece = lane % 8, first_row = warp * 4 + lane / 8;
  const int first_column = column + piece * 8, bytes = min(max(a.k - first_column, 0), 8) * 2;
  const uint16_t *const x = bytes > 0 ? a.x + first_column : a.x;
  const uint32_t at = to + first_row * 128 + ((piece ^ first_row % 8) << 4);
  if (aligned && token + T::Tokens <= a.m) {
    const uint16_t *from = x + (int64_t)(token + first_row) * a.ldx;
#pragma unroll
    for (int row = 0; row < T::Tokens; row += 16, from += 16 * a.ldx) copy_some_async(at + row * 128, from, bytes);
    return;
  }
  const int last = a.m - 1 - token;
#pragma unroll 1
  for (int row = 0; row < T::Tokens; row += 16) {
    const uint16_t *const from = x + (int64_t)(token + min(first_row + row, last)) * a.ldx;
    if (aligned) {
      copy_some_async(at + row * 128, from, bytes);
      continue;
    }
    const auto two = [&](int i) {
      return (2 * i < bytes ? (uint32_t)from[i] : 0u) | (2 * i + 2 < bytes ? (uint32_t)from[i + 1] << 16 : 0u);
    };
    store_words(at + row * 128, two(0), two(2), two(4), two(6));
  }
}

/* Weights: of row tiles row_tile and following, one after the other, whole tiles as they are packed. `vectors`: of 512
 * bytes, of each row tile from `codes` on; beyond them all is zero. Row tiles that are not there repeat the last. */
template <class T>
__device__ inline void load_weights(const wide_args &a, uint32_t to, const uint8_t *codes, int row_tile, int vectors) {
  constexpr int row_tiles = T::rows / LPG_TILE_ROWS / LPG_WIDE_COPY_WARPS, tile_bytes = T::w_vectors * 512;
  if (row_tile + row_tiles <= a.row_tiles && vectors >= T::w_vectors) {
#pragma unroll
    for (int r = 0; r < row_tiles; r++, codes += a.row_bytes) {
#pragma unroll
      for (int v = 0; v < T::w_vectors; v++) copy16_async(to + r * tile_bytes + v * 512, codes + v * 512);
    }
    return;
  }
#pragma unroll 1
  for (int r = 0; r < row_tiles; r++) {
#pragma unroll 1
    for (int v = 0; v < T::w_vectors; v++) {
      copy16_async(to + r * tile_bytes + v * 512, v < vectors ? codes + v * 512 : a.codes, v < vectors);
    }
    if (row_tile + r + 1 < a.row_tiles) codes += a.row_bytes;
  }
}

/* Scales of a block of columns for all rows of an item, and the rows' exponents: a thread brings 16 bytes. */
template <class T>
__device__ inline void load_scales(const wide_args &a, uint32_t to, int row_tile, int block, int thread) {
  constexpr int row_tiles = T::rows / LPG_TILE_ROWS;
  const number_section &s = a.numbers.section[0];
  if (thread >= 64) {
    const int r = thread - 64;
    if (r >= row_tiles) return;
    copy16_async(to + LPG_WIDE_SCALE_BYTES + r * LPG_TILE_ROWS,
                 a.exponents + min(row_tile + r, a.row_tiles - 1) * LPG_TILE_ROWS);
    return;
  }
  const int pieces = s.groups * 2, r = s.groups == 2 ? thread / 4 : thread / 2, piece = thread & (pieces - 1);
  if (r >= row_tiles) return;
  const int group = s.blocks_each == 1 ? block * s.groups
                    : s.blocks_each    ? (unsigned)block / (unsigned)s.blocks_each
                                       : 0;
  const int first = group * s.slot_bytes + piece * 16;
  copy16_async(to + r * (LPG_TILE_ROWS * 4) + piece * 16,
               s.values + (int64_t)min(row_tile + r, a.row_tiles - 1) * s.row_bytes + first, first < s.row_bytes);
}

template <class T>
__device__ inline void load_items(const wide_args &a, const wide_work &w, stage_ring stages, int warp, int lane) {
  constexpr int row_tiles = T::rows / LPG_TILE_ROWS / LPG_WIDE_COPY_WARPS;
  constexpr int w_stages = T::w_steps / T::x_steps; /* stages that one of weights is for */
  const bool aligned = (uintptr_t)a.x % 16 == 0 && a.ldx % 8 == 0;
  const uint32_t part = warp * (T::w_stage_bytes / LPG_WIDE_COPY_WARPS) + lane * 16;
  for (int item = w.first_item; item < w.items; item += w.stride) {
    const int token = w.token_item(item) * T::Tokens, first = w.first_block * T::Bits;
    const int row_tile = (w.row_item(item) * LPG_WIDE_COPY_WARPS + warp) * row_tiles;
    const uint8_t *codes = a.codes + min(row_tile, a.row_tiles - 1) * a.row_bytes + (int64_t)first * 512 + lane * 16;
    int vectors = a.row_vectors - first;
    for (int i = 0; i < w.blocks * (steps / T::x_steps); i++) {
      stages.wait_empty();
      if (i % w_stages == 0) {
        load_weights<T>(a, stages.weights + stages.w_stage * T::w_stage_bytes + part, codes, row_tile, vectors);
        codes += T::w_vectors * 512;
        vectors -= T::w_vectors;
        stages.advance_weights();
      }
      if (!T::General && i % (steps / T::x_steps) == 0 && !a.numbers.scale_on_rows) {
        load_scales<T>(a, stages.scales + stages.slot * LPG_WIDE_SLOT_BYTES,
                       w.row_item(item) * (T::rows / LPG_TILE_ROWS), w.first_block + i / (steps / T::x_steps),
                       warp * 32 + lane);
        stages.advance_scales();
      }
      load_x<T>(a, stages.x + stages.stage * T::x_stage_bytes, token, w.first_block * block_k + i * LPG_WIDE_STAGE_K,
                warp, lane, aligned);
      if (aligned) {
        arrive_when_copied(stages.full());
      } else {
        wait_copies<0>();
        arrive(stages.full());
      }
      stages.advance();
    }
  }
  stages.wait_empty(); /* one that nobody multiplies: those who do wait for a stage ahead */
  arrive(stages.full());
}

}  // namespace
}  // namespace lpg
