/* stripe: from global memory to the ring of a team. */
#pragma once

#include "../prim/barrier.cuh"
#include "stripe_scales.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* A warp's copies: each a part of its team's X, and the codes, scales and zeros of its own rows of W. What they need to
 * know is found once a work tile. */
template <class T>
struct slab_loader {
  static constexpr int x_rows = T::TileM / LPG_STRIPE_TEAM;
  const stripe_args &a;
  const int team, own, lane;
  stripe_cursor at;
  uint32_t kept; /* where in shared memory the lane keeps what it knows of the work tile, since registers are short: its
                    stripe_piece, and lane_pieces behind those of all lanes. Bit 1 of `how`: all of the warp's rows of W
                    and X are there */

  /* The lane's first pieces of slab 0, in pieces of 16 bytes. */
  struct lane_pieces {
    uint32_t codes, x;
  };

  __device__ slab_loader(const stripe_args &a, uint32_t pieces, int first, int team, int own, int lane)
      : a(a),
        team(team),
        own(own),
        lane(lane),
        at(first, a.plan.units, team),
        kept(pieces + ((team * LPG_STRIPE_TEAM + own) * 32 + lane) * 16) {
    set_tile();
  }

  __device__ int first_x() const { /* of the warp's part of X */
    return (at.tile - stripe_n_tile(a.plan, at.tile) * a.plan.m_tiles) * T::TileM + own * x_rows;
  }
  __device__ int first_row_tile() const {
    return min((stripe_n_tile(a.plan, at.tile) * LPG_STRIPE_TEAM + own) * T::row_tiles, a.row_tiles - 1);
  }

  __device__ void set_tile() {
    const int row_tile = first_row_tile(), m = first_x();
    stripe_piece first;
    first.set_rows(a, own, row_tile, lane);
    if (row_tile + T::row_tiles <= a.row_tiles && m + x_rows <= a.m) first.how |= 2;
    first.put(kept);
    store_two(at_lane_pieces(), (uint32_t)(row_tile * (a.row_bytes / 16)) + lane,
              (uint32_t)((m + lane / 8) * (a.ldx / 8)) + lane % 8);
  }

  __device__ uint32_t at_lane_pieces() const {
    const int thread = (team * LPG_STRIPE_TEAM + own) * 32 + lane;
    return kept + LPG_STRIPE_THREADS * 16 - thread * 8;
  }
  __device__ lane_pieces pieces() const {
    uint32_t word[2];
    load_two(at_lane_pieces(), word);
    return {word[0], word[1]};
  }
  __device__ const uint8_t *codes_of(const lane_pieces &p, int slab) const {
    return a.codes + (uint64_t)(p.codes + slab * (T::vectors * 32)) * 16;
  }
  __device__ const uint8_t *x_of(const lane_pieces &p, int slab) const {
    return (const uint8_t *)a.x + (uint64_t)(p.x + slab * 8) * 16;
  }

  /* What is beyond K or N becomes zero. Rows of X beyond M stay as they were in shared memory: their outputs are never
   * stored. */
  __device__ void load_some(int slab, uint32_t x_to, uint32_t codes_to) const {
    const lane_pieces own_pieces = pieces();
    const int first = slab * T::vectors, more_rows = a.row_tiles - 1 - first_row_tile();
#pragma unroll 1
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int v = 0; v < T::vectors; v++) {
        const bool valid = first + v < a.row_vectors && r <= more_rows;
        const uint8_t *const from = valid ? codes_of(own_pieces, slab) + r * a.row_bytes + v * 512 : a.codes;
        copy16_async(codes_to + (r * T::vectors + v) * 512, from, valid);
      }
    }
    const int bytes = min(max(a.k - slab * LPG_STRIPE_K - lane % 8 * 8, 0), 8) * 2;
    const uint8_t *from = bytes ? x_of(own_pieces, slab) : x_of(own_pieces, 0) - lane % 8 * 16;
    const int rows = a.m - first_x() - lane / 8;
#pragma unroll 1
    for (int i = 0; i < x_rows && i < rows; i += 4, from += a.ldx * 8) {
      copy_some_async((x_to ^ (i % 8 ? 64 : 0)) + i * 128, from, bytes);
    }
  }

  __device__ void load_whole(int slab, uint32_t x_to, uint32_t codes_to) const {
    const lane_pieces own_pieces = pieces();
    const uint8_t *from = codes_of(own_pieces, slab);
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++, from += a.row_bytes) {
#pragma unroll
      for (int v = 0; v < T::vectors; v++) copy16_async(codes_to + (r * T::vectors + v) * 512, from + v * 512);
    }
    from = x_of(own_pieces, slab);
    const uint32_t odd = x_to ^ 64;
#pragma unroll
    for (int i = 0; i < x_rows; i += 4, from += a.ldx * 8) copy16_async((i % 8 ? odd : x_to) + i * 128, from);
  }

  /* Starts the copies of the next slab to a stage, and moves on. full: its mbarrier. */
  __device__ void load(uint32_t stage, uint32_t full) {
    const lpg_stripe_plan &p = a.plan;
    const int slab = at.slab, tile = at.tile;
    const uint32_t x_to = stage + (own * x_rows + lane / 8) * 128 + ((lane % 8 ^ lane / 8) << 4);
    const uint32_t codes_to = stage + p.codes + (own * T::row_tiles * T::vectors * 32 + lane) * 16;
    stripe_piece first;
    first.get(kept);
    if ((first.how & 2) && (slab + 1) * LPG_STRIPE_K <= a.k) {
      load_whole(slab, x_to, codes_to);
    } else {
      load_some(slab, x_to, codes_to);
    }
    first.copy(slab, stage + p.scales);
    if ((T::Zeros || T::ScaleGroups > 1) && a.scale_pieces > 32) { /* rare, and not worth registers */
      stripe_piece more;
      more.set_rows(a, own, first_row_tile(), lane + 32);
      more.copy(slab, stage + p.scales);
    }
    if (T::Zeros && p.shift) load_sums(slab, stage + p.sums_of_x);
    arrive_when_copied(full);
    at.next(p.units);
    if (at.tile != tile) set_tile();
  }

  __device__ void load_sums(int slab, uint32_t to) const {
    const int64_t x_rows_all = lpg_stripe_x_rows(&a.plan);
    const float *from = a.sums_of_x + (int64_t)slab * T::ScaleGroups * x_rows_all + first_x() - own * x_rows;
    for (int i = own * 32 + lane; i < T::ScaleGroups * T::TileM / 4; i += 32 * LPG_STRIPE_TEAM) {
      const int group = i / (T::TileM / 4), four = i % (T::TileM / 4);
      copy16_async(to + i * 16, from + group * x_rows_all + four * 4);
    }
  }
};

}  // namespace
}  // namespace lpg
