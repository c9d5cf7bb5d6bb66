/* The token form: which warp takes which part of the work. */
#pragma once

#include "gemv_fan_items.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The work of a CTA. A tile is what sums belong to: a strip on the way out, a super tile on the way in. */
template <class T, bool In>
struct fan_work {
  fan_items items;
  int super_tiles, round_tiles;  /* of an expert; of a round, the most */
  int first_tile, tiles, each;   /* of the CTA; strips of a tile */
  int first_block, blocks, warp; /* of the CTA */

  __device__ fan_work(const lpg_fan_plan &p, const fan_items &found, int cluster, int rank, int warp)
      : items(found), super_tiles(p.super_tiles), round_tiles(p.round_tiles), warp(warp) {
    const lpg_partition part = lpg_partition_of(In ? super_tiles : items.count * super_tiles, p.clusters);
    first_tile = first_of(part, cluster);
    tiles = count_of(part, cluster);
    each = In ? items.count : 1;
    first_block = first_of(p.k_part, rank);
    blocks = count_of(p.k_part, rank);
  }

  __device__ int tiles_of(int round) const { return min(tiles - round * round_tiles, round_tiles); }
  /* (strip, k block) pairs of a round for each warp. */
  __device__ lpg_partition shares(int round) const {
    const int units = max(tiles_of(round), 0) * each * blocks;
    return {units / T::warps, units % T::warps};
  }
  __device__ bool has_round(int round) const { return round * round_tiles < tiles; }
  __device__ int expert_of(const strip_place &place) const { return items.item[place.item].expert; }
  __device__ int tile_of(int strip) const { return In ? quotient(strip, each) : strip; }
  __device__ strip_place place(int round, int strip) const {
    if (In) {
      const int tile = quotient(strip, each);
      return {strip - tile * each, first_tile + round * round_tiles + tile};
    }
    const int all = first_tile + round * round_tiles + strip, item = quotient(all, super_tiles);
    return {item, all - item * super_tiles};
  }
};

}  // namespace
}  // namespace lpg
