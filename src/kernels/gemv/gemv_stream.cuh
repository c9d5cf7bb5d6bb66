/* gemv: the stream of a warp's weights: loads from memory to registers, a k block ahead of the mma. */
#pragma once

#include "gemv_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* A lane's packed words of a k block of a super tile. */
template <class T>
struct block_words {
  uint32_t word[T::row_tiles][T::words];
};

/* Loads a block's 16-byte vectors one by one, each as soon as the registers that it replaces are free. */
template <class T>
struct weight_stream {
  const gemv_args &a;
  const work &w;
  cursor at;                             /* the next block */
  int first_row_tile, first_block, lane; /* first_row_tile, first_block: of the CTA */
  const uint8_t *codes[T::row_tiles];    /* the lane's words of the next block */
  int vectors;                           /* 512-byte vectors that are left of the row tile */

  __device__ weight_stream(const gemv_args &a, const work &w, const cursor &first, int first_row_tile, int first_block,
                           int lane)
      : a(a), w(w), at(first), first_row_tile(first_row_tile), first_block(first_block), lane(lane) {
    if (at.run > 0) find_run();
  }

  /* Loads all of a block. */
  __device__ void fill(block_words<T> &words) {
    if (at.run == 0) return;
#pragma unroll
    for (int v = 0; v < T::Bits; v++) load(words, v);
    end_block();
  }

  /* Brings what fill() will load to L2. */
  __device__ void prefetch() const {
    if (at.run == 0) return;
#pragma unroll
    for (int v = 0; v < T::Bits; v++) {
      if (vectors <= v / T::tile_vectors * T::tile_vectors) continue; /* beyond the matrix */
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) prefetch_to_l2(codes[r] + v * 512);
    }
  }

  /* Loads vector v of the row tiles; after the last block, words that nobody uses. */
  __device__ void load(block_words<T> &words, int v) const {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      uint32_t *word = &words.word[r][4 * v];
      if (T::tile_vectors == T::Bits) { /* a k block is one packed tile */
        load16(codes[r] + v * 512, word);
        continue;
      }
      if (T::Dequantiser::has_nan) { /* beyond the matrix no word may become NaN or infinite */
#pragma unroll
        for (int i = 0; i < 4; i++) word[i] = 0;
      }
      load16_if_more(vectors, v / T::tile_vectors * T::tile_vectors, codes[r] + v * 512, word);
    }
  }

  /* Returns whether the run goes on. */
  __device__ bool end_block() {
    if (--at.run > 0) {
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) codes[r] += T::block_bytes;
      vectors -= T::Bits;
      return true;
    }
    at.next_run_or_turn(w);
    if (at.run > 0) find_run();
    return false;
  }

  __device__ void find_run() {
    const int block = first_block + at.first_block + at.block;
    vectors = a.row_vectors - block * T::Bits;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) { /* row tiles beyond the matrix repeat the last */
      const int row_tile = min(first_row_tile + at.tile * T::row_tiles + r, a.row_tiles - 1);
      codes[r] = a.codes + row_tile * a.row_bytes + (int64_t)block * T::block_bytes + lane * 16;
    }
  }
};

}  // namespace
}  // namespace lpg
