/* Loads packed weights to registers: the units of a warp's run, several ahead of the one that is multiplied. */
#pragma once

#include "../kernels/epilogue/split_k_warps.cuh"
#include "gemv1_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* What a lane holds of a unit. */
template <class T>
struct unit_words {
  uint32_t word[T::row_tiles][4 * T::vectors];
  typename T::scale_data scale_data[T::row_tiles];
};

/* The units of a warp's run, in order. */
template <class T>
struct unit_stream : part_cursor {
  const gemv1_args &a;
  int lane, chunk, vectors; /* the lane's chunk of the next unit; vectors that a row tile has from this unit on */
  const uint8_t *codes[T::row_tiles], *scales[T::row_tiles], *zeros[T::row_tiles];

  __device__ unit_stream(const gemv1_args &a, const warp_part &part, int lane) : part_cursor(part), a(a), lane(lane) {
    if (left > 0) start_tile(part.block);
  }

  __device__ void start_tile(int block) {
    const int at = first_block + block;
    chunk = at * T::chunks + lane % T::chunks;
    vectors = a.row_vectors - at * T::vectors;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) { /* row tiles beyond the last repeat it */
      const int64_t row_tile = min(tile * T::row_tiles + r, a.row_tiles - 1);
      codes[r] = a.codes + row_tile * a.row_bytes + at * (T::vectors * 512) + lane * 16;
      scales[r] = a.scale_data.scales + row_tile * a.scale_data.scale_row;
      zeros[r] = a.scale_data.zeros + row_tile * a.scale_data.zero_row;
    }
  }

  __device__ void load(unit_words<T> &unit) {
    if (left <= 0) return;
    const int group = min(chunk >> a.scale_data.group_shift, a.scale_data.last_group);
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int v = 0; v < T::vectors; v++) {
        if (v == 0) {
          load16(codes[r], unit.word[r]);
        } else {
          load16_if_more(vectors, v, codes[r] + v * 512, unit.word[r] + 4 * v);
        }
      }
      load_raw(a.scale_data, scales[r], zeros[r], group, lane / 4, unit.scale_data[r]);
      codes[r] += T::vectors * 512;
    }
    chunk += T::chunks;
    vectors -= T::vectors;
    if (next()) start_tile(0);
  }
};

}  // namespace
}  // namespace lpg
