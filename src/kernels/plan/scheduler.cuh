/* Which work tile is where, and who takes what: partition.h for kernels. */
#pragma once

#include "partition.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int block_k = LPG_BLOCK_K;
constexpr int steps = block_k / LPG_STEP_K; /* MMA steps of a k block */

/* The first thing of a part, and how many things it has. */
__device__ inline int first_of(const lpg_partition &s, int part) { return part * s.each + min(part, s.more); }
__device__ inline int count_of(const lpg_partition &s, int part) { return s.each + (part < s.more); }

/* From the number of a work tile to its place: bands of Band tiles along N; in a band one row of X tiles after the
 * other; in that the band's N tiles. Tiles that run at the same time are then neighbours and share weights and X in
 * L2. */
template <int Band>
struct tile_bands {
  static constexpr bool is_placed = false;
  int n_tiles, m_tiles;

  __device__ int band_rows(int band) const { return min(n_tiles - band * Band, Band); }
  __device__ int band(int tile) const { return (unsigned)tile / (unsigned)(Band * m_tiles); }
  __device__ int n_tile(int tile) const {
    const int b = band(tile), in_band = tile - b * Band * m_tiles;
    return b * Band + (unsigned)in_band % (unsigned)band_rows(b);
  }
  __device__ int m_tile(int tile) const {
    const int b = band(tile), in_band = tile - b * Band * m_tiles;
    return (unsigned)in_band / (unsigned)band_rows(b);
  }
  /* A work tile's first row of X, and from which on it has none: it may reach past the last. */
  __device__ int2 x_rows_of(int tile, int tile_m, int m) const { return {m_tile(tile) * tile_m, m}; }
};

/* Where the outputs of a work tile lie: from row m of X on, none from m_end on, and from row n of W on. bias: of its
 * expert, elements from the first expert's. */
struct tile_place {
  int m, m_end, n, bias;
};

/* A value from shared memory that is the same for all lanes. The compiler must see that: else loops that depend on it
 * count as divergent, and what the main loop has in uniform registers moves to those of every lane. */
__device__ inline int agreed(int x) { return __reduce_max_sync(0xffffffffu, x); }

/* A work tile whose place was found before; rows of W may come in pairs. What split-K asks of a scheduler. */
struct placed_tile {
  static constexpr bool is_placed = true;
  static constexpr int first_rank = 0;
  int rank;
  const tile_place *at;
};

template <class T, class Args, class Work>
__device__ inline tile_place place_of(const Args &a, const Work &w, int tile) {
  if constexpr (Work::is_placed) {
    const tile_place at = *w.at;
    return {agreed(at.m), agreed(at.m_end), agreed(at.n), agreed(at.bias)};
  } else {
    const int2 x_rows = w.x_rows_of(tile, T::TileM, a.m);
    return {x_rows.x, x_rows.y, w.n_tile(tile) * T::tile_n, 0};
  }
}

}  // namespace
}  // namespace lpg
