/* stripe: from global memory to the ring of a team. */
#pragma once

#include "stripe_scales.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* A warp's copies: each a part of its team's X, and the codes, scales and zeros of its own rows of W. What they need to
 * know is found once a work tile, since the warps of a team wait meanwhile. */
template <class T>
struct slab_loader {
  static constexpr int x_rows = T::TileM / LPG_STRIPE_TEAM;
  const stripe_args &a;
  const int team, own, lane;
  stripe_cursor at;
  const uint8_t *codes, *x; /* the lane's first piece of slab 0 */
  int more_rows;            /* row tiles that there are behind the first */
  int rows_of_x;            /* from the lane's first one on */
  stripe_piece piece;       /* of scales and zeros */

  __device__ slab_loader(const stripe_args &a, int first, int team, int own, int lane)
      : a(a), team(team), own(own), lane(lane), at(first, a.plan.units) {
    set_tile();
  }

  __device__ int first_m() const { return (at.tile - stripe_n_tile(a.plan, at.tile) * a.plan.m_tiles) * T::TileM; }
  __device__ int first_row_tile() const {
    return min((stripe_n_tile(a.plan, at.tile) * LPG_STRIPE_TEAM + own) * T::row_tiles, a.row_tiles - 1);
  }

  __device__ void set_tile() {
    const int row_tile = first_row_tile(), m = first_m() + own * x_rows + lane / 8;
    codes = a.codes + row_tile * a.row_bytes + lane * 16;
    more_rows = a.row_tiles - 1 - row_tile;
    x = (const uint8_t *)a.x + (m * a.ldx + lane % 8 * 8) * 2;
    rows_of_x = a.m - m;
    piece.set_rows(a, row_tile, lane);
  }

  /* What is beyond K becomes zero. Rows beyond M stay as they were in shared memory: their outputs are never stored. */
  __device__ void load_x(int slab, uint32_t stage) const {
    const int row = lane / 8;
    const uint32_t even = stage + own * x_rows * 128 + row * 128 + ((lane % 8 ^ row) << 4), odd = even ^ 64; /* rows 8 i; 8 i + 4 */
    const uint8_t *from = x + (int64_t)slab * (LPG_STRIPE_K * 2);
    if ((slab + 1) * LPG_STRIPE_K <= a.k) {
#pragma unroll
      for (int i = 0; i < x_rows; i += 4, from += a.ldx * 8) {
        if (i < rows_of_x) copy16_async((i % 8 ? odd : even) + i * 128, from);
      }
      return;
    }
    const int bytes = min(max(a.k - slab * LPG_STRIPE_K - lane % 8 * 8, 0), 8) * 2;
    if (bytes == 0) from = x - lane % 8 * 16; /* the row's beginning, of which nothing is read */
#pragma unroll 1
    for (int i = 0; i < x_rows && i < rows_of_x; i += 4, from += a.ldx * 8) {
      copy_some_async((i % 8 ? odd : even) + i * 128, from, bytes);
    }
  }

  /* Row tiles beyond the matrix, and what is beyond K, become zero. */
  __device__ void load_codes(int slab, uint32_t stage) const {
    const int first = slab * T::vectors;
    const uint8_t *from = codes + (int64_t)first * 512;
    const uint32_t to = stage + a.plan.codes + (own * T::row_tiles * T::vectors * 32 + lane) * 16;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++, from += a.row_bytes) {
#pragma unroll
      for (int v = 0; v < T::vectors; v++) {
        copy16_async(to + (r * T::vectors + v) * 512, from + v * 512, first + v < a.row_vectors && r <= more_rows);
      }
    }
  }

  __device__ void load_scales(int slab, uint32_t stage) const {
    const uint32_t scales = stage + a.plan.scales + own * a.plan.warp_scales;
    piece.copy(slab, scales);
    if ((T::Zeros || T::ScaleGroups > 1) && a.scale_pieces > 32) { /* rare, and not worth registers */
      stripe_piece more;
      more.set_rows(a, first_row_tile(), lane + 32);
      more.copy(slab, scales);
    }
    if (T::Zeros && a.plan.shift) load_sums(slab, stage + a.plan.sums_of_x);
  }

  /* Starts the copies of the team's slab of a unit and moves on to the next unit. */
  __device__ void load(uint32_t stage) {
    const int slab = at.unit * T::Teams + team;
    load_codes(slab, stage);
    load_x(slab, stage);
    load_scales(slab, stage);
    at.next(a.plan.units);
    if (at.unit == 0) set_tile();
  }

  __device__ void load_sums(int slab, uint32_t to) const {
    const int64_t x_rows_all = lpg_stripe_x_rows(&a.plan);
    const float *from = a.sums_of_x + (int64_t)slab * T::ScaleGroups * x_rows_all + first_m();
    for (int i = own * 32 + lane; i < T::ScaleGroups * T::TileM / 4; i += 32 * LPG_STRIPE_TEAM) {
      const int group = i / (T::TileM / 4), four = i % (T::TileM / 4);
      copy16_async(to + i * 16, from + group * x_rows_all + four * 4);
    }
  }
};

/* Waits until all but the youngest stages - 1 or, with `next`, stages - 2 groups of the thread's copies are there. */
__device__ inline void wait_for_stage(int stages, bool next) {
  switch (stages - next) {
    case 1: wait_copies<0>(); break;
    case 2: wait_copies<1>(); break;
    case 3: wait_copies<2>(); break;
    case 4: wait_copies<3>(); break;
    case 5: wait_copies<4>(); break;
    default: wait_copies<5>(); break;
  }
}

}  // namespace
}  // namespace lpg
