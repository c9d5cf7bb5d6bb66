/* blocks.h as kernels see it. */
#pragma once

#include "partition.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int block_k = LPG_BLOCK_K;
constexpr int steps = block_k / LPG_STEP_K; /* of a block */

/* The first thing of a part, and how many it has. */
__device__ inline int first_of(const lpg_shares &s, int part) { return part * s.each + min(part, s.more); }
__device__ inline int count_of(const lpg_shares &s, int part) { return s.each + (part < s.more); }

/* Where an item lies: bands of Band row items, in each all token items, in each of these all the band's rows, so that
 * those that run at the same time read the same weights and X. */
template <int Band>
struct item_bands {
  int row_items, token_items;

  __device__ int band_rows(int band) const { return min(row_items - band * Band, Band); }
  __device__ int band(int item) const { return (unsigned)item / (unsigned)(Band * token_items); }
  __device__ int row_item(int item) const {
    const int b = band(item), in_band = item - b * Band * token_items;
    return b * Band + (unsigned)in_band % (unsigned)band_rows(b);
  }
  __device__ int token_item(int item) const {
    const int b = band(item), in_band = item - b * Band * token_items;
    return (unsigned)in_band / (unsigned)band_rows(b);
  }
};

/* Where the halves of the tokens of items lie that come so: those behind the whole ones. */
template <class Work>
struct halves_of : Work {
  int whole;

  __device__ explicit halves_of(const Work &w) : Work(w), whole(w.items) {
    this->items = 2 * (this->row_items * this->token_items - whole);
  }
  __device__ int row_item(int half) const { return Work::row_item(whole + half / 2); }
  __device__ int token_item(int half) const { return 2 * Work::token_item(whole + half / 2) + half % 2; }
};

/* What a kernel's template parameters say together, of items of half the tokens, in stages with room for whole ones. */
template <class Whole>
struct half_traits : Whole {
  using whole = Whole;
  static constexpr int Tokens = Whole::Tokens / 2;
};

template <class T>
constexpr bool is_half = T::Tokens < T::whole::Tokens;

}  // namespace
}  // namespace lpg
