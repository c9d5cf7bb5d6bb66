/* blocks.h as kernels see it. */
#pragma once

#include "partition.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int block_k = LPG_BLOCK_K;
constexpr int steps = block_k / LPG_STEP_K; /* of a block */

/* The first thing of a part, and how many it has. */
__device__ inline int first_of(const lpg_partition &s, int part) { return part * s.each + min(part, s.more); }
__device__ inline int count_of(const lpg_partition &s, int part) { return s.each + (part < s.more); }

/* Where a work tile lies: bands of Band row work tiles, in each all row of X work tiles, in each of these all the
 * band's rows, so that those that run at the same time read the same weights and X. */
template <int Band>
struct tile_bands {
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
};

/* Where the halves of the rows of X of work tiles lie that come so: those behind the whole ones. */
template <class Work>
struct halves_of : Work {
  int whole;

  __device__ explicit halves_of(const Work &w) : Work(w), whole(w.tiles) {
    this->tiles = 2 * (this->n_tiles * this->m_tiles - whole);
  }
  __device__ int n_tile(int half) const { return Work::n_tile(whole + half / 2); }
  __device__ int m_tile(int half) const { return 2 * Work::m_tile(whole + half / 2) + half % 2; }
};

/* What a kernel's template parameters say together, of work tiles of half the rows of X, in stages with room for whole
 * ones. */
template <class Whole>
struct half_traits : Whole {
  using whole = Whole;
  static constexpr int TileM = Whole::TileM / 2;
};

template <class T>
constexpr bool is_half = T::TileM < T::whole::TileM;

}  // namespace
}  // namespace lpg
