/* The warps of a wide kernel that copy: two bring X, two the weights, each into a ring of stages. */
#pragma once

#include "wide_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* A stage of X: 64 columns of all tokens of the item, rows of 128 bytes, of which 16-byte piece i is at i ^ (row % 8). A
 * lane has one piece of every eighth row. Columns that are not there are zero, and tokens that are not there repeat the
 * last. */
template <class T>
__device__ inline void load_x_stage(const wide_args &a, uint32_t to, int token, int column, int warp, int lane,
                                    bool aligned) {
  const int piece = lane % 8, first_row = warp * 4 + lane / 8;
  const int first_column = column + piece * 8, bytes = min(max(a.k - first_column, 0), 8) * 2;
  const uint16_t *const x = bytes > 0 ? a.x + first_column : a.x;
  const uint32_t at = to + first_row * 128 + ((piece ^ first_row) << 4);
  if (aligned && token + T::Tokens <= a.m) {
    const uint16_t *from = x + (int64_t)(token + first_row) * a.ldx;
#pragma unroll
    for (int row = 0; row < T::Tokens; row += 8, from += 8 * a.ldx) copy_some_async(at + row * 128, from, bytes);
    return;
  }
#pragma unroll 1
  for (int row = 0; row < T::Tokens; row += 8) {
    const uint16_t *const from = x + (int64_t)min(token + first_row + row, a.m - 1) * a.ldx;
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

template <class T>
__device__ inline void load_x(const wide_args &a, const wide_work &w, ring x, int warp, int lane) {
  const bool aligned = (uintptr_t)a.x % 16 == 0 && a.ldx % 8 == 0;
  for (int item = w.first_item; item < w.items; item += w.stride) {
    const int token = w.token_item(item) * T::Tokens;
    for (int i = 0; i < w.blocks * (block_k / LPG_WIDE_STAGE_K); i++) {
      x.wait_empty();
      load_x_stage<T>(a, x.memory + x.stage * T::x_stage_bytes, token, w.first_block * block_k + i * LPG_WIDE_STAGE_K,
                      warp, lane, aligned);
      if (aligned) {
        arrive_when_copied(x.full + 8 * x.stage);
      } else {
        arrive(x.full + 8 * x.stage);
      }
      x.advance();
    }
  }
}

/* A stage of weights: of all row tiles of the item, one after the other, whole tiles as they are packed. A lane has a
 * row tile. Row tiles that are not there repeat the last; what is beyond the columns is zero. */
template <class T>
__device__ inline void load_weights(const wide_args &a, const wide_work &w, ring weights, int lane) {
  constexpr int row_tiles = LPG_WIDE_ROWS / LPG_TILE_ROWS, tile_bytes = T::w_vectors * 512;
  for (int item = w.first_item; item < w.items; item += w.stride) {
    const int row_tile = min(w.row_item(item) * row_tiles + lane % row_tiles, a.row_tiles - 1);
    const int first = w.first_block * T::Bits;
    const uint8_t *from = a.codes + row_tile * a.row_bytes + (int64_t)first * 512;
    int left = (a.row_vectors - first) * 512;
    for (int i = w.blocks * (steps / T::w_steps); i > 0; i--) {
      weights.wait_empty();
      const uint32_t stage = weights.memory + weights.stage * T::w_stage_bytes, full = weights.full + 8 * weights.stage;
      const int bytes = min(max(left, 0), tile_bytes);
      for (int at = bytes + lane * 16; at < tile_bytes; at += 512) {
        for (int r = 0; r < row_tiles; r++) store_words(stage + r * tile_bytes + at, 0, 0, 0, 0);
      }
      T::Product::load_stage(stage + lane % row_tiles * tile_bytes, from, bytes, full, lane, row_tiles);
      from += tile_bytes;
      left -= tile_bytes;
      weights.advance();
    }
  }
}

}  // namespace
}  // namespace lpg
