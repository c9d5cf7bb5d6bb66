/* The token form: which warp takes which part of the work, and its streams of weights and scales. */
#pragma once

#include "gemv_fan_items.cuh"
#include "gemv_scales.cuh"
#include "gemv_stream.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Where a strip lies: its item, and its super tile of the expert. */
struct fan_place {
  int item, super_tile;
};

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
  __device__ int tile_of(int strip) const { return In ? quotient(strip, each) : strip; }
  __device__ fan_place place(int round, int strip) const {
    if (In) {
      const int tile = quotient(strip, each);
      return {strip - tile * each, first_tile + round * round_tiles + tile};
    }
    const int all = first_tile + round * round_tiles + strip, item = quotient(all, super_tiles);
    return {item, all - item * super_tiles};
  }
};

/* Where a warp is: in a run of k blocks of one strip. */
struct fan_cursor {
  int round, strip, block, run, left; /* strip: in the round; run: blocks from here on; left: those behind the run */

  template <class Work>
  __device__ void start(const Work &w, int which) {
    round = which;
    const lpg_partition s = w.shares(round);
    const int first = first_of(s, w.warp);
    left = count_of(s, w.warp);
    strip = left > 0 ? quotient(first, w.blocks) : 0;
    block = left > 0 ? first - strip * w.blocks : 0;
    run = min(left, w.blocks - block);
    left -= run;
  }

  /* To the next run of the round; run is 0 at its end. */
  template <class Work>
  __device__ void next(const Work &w) {
    strip++;
    block = 0;
    run = min(left, w.blocks);
    left -= run;
  }

  /* The same, but at the end of a round to the next one in which the warp has work. */
  template <class Work>
  __device__ void next_or_round(const Work &w) {
    next(w);
    while (run == 0 && (round + 1) * w.round_tiles < w.tiles) start(w, round + 1);
  }
};

/* gemv's stream of weights, along strips. */
template <class T, bool In>
struct fan_stream : weight_stream<T> {
  const fan_args &fan;
  const fan_work<T, In> &w;
  fan_cursor next; /* the next block */

  __device__ fan_stream(const fan_args &a, const work &unused, const fan_work<T, In> &w, const fan_cursor &first,
                        int lane)
      : weight_stream<T>(a.product, unused, cursor{}, 0, 0, lane), fan(a), w(w), next(first) {
    if (next.run > 0) find_run();
  }

  __device__ void fill(block_words<T> &words) {
    if (next.run == 0) return;
#pragma unroll
    for (int v = 0; v < T::Bits; v++) this->load(words, v);
    end_block();
  }

  __device__ void end_block() {
    if (--next.run > 0) {
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) this->codes[r] += T::block_bytes;
      this->vectors -= T::Bits;
    } else {
      next.next_or_round(w);
      if (next.run > 0) find_run();
    }
  }

  __device__ void find_run() {
    const gemv_args &a = fan.product;
    const fan_place at = w.place(next.round, next.strip);
    const int block = w.first_block + next.block;
    const int64_t before = w.items.item[at.item].expert * fan.stride;
    this->vectors = a.row_vectors - block * T::Bits;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) { /* row tiles beyond the matrix repeat the last */
      const int row_tile = min(at.super_tile * T::row_tiles + r, a.row_tiles - 1);
      this->codes[r] = a.codes + before + row_tile * a.row_bytes + (int64_t)block * T::block_bytes + this->lane * 16;
    }
  }
};

/* A warp's scales, as gemv has them: a chunk is copied while the one before it is used. One section, a copy a lane. */
template <class T, bool In>
struct fan_scales {
  const fan_args &fan;
  const fan_work<T, In> &w;
  fan_cursor at; /* the next chunk to copy */
  int lane;
  const uint8_t *raw;
  bool waited; /* all copies so far have been waited for */
  scale_table table;

  __device__ fan_scales(const fan_args &a, const fan_work<T, In> &w, const fan_cursor &first, int lane, uint8_t *memory)
      : fan(a), w(w), at(first), lane(lane), raw(memory + a.plan.scale_table_bytes), waited(false) {
    table.scale = table.shift = (float2 *)memory;
    table.center = nullptr;
  }

  __device__ void copy_next() {
    if (at.run > 0) {
      const fan_place place = w.place(at.round, at.strip);
      scale_section own = fan.product.scale_data.section[0];
      own.values += w.items.item[place.item].expert * fan.stride;
      if (fan.product.scale_data.sections > 0) {
        copy_one<T::row_tiles, T::chunk>(own, lane, place.super_tile * T::row_tiles, fan.product.row_tiles,
                                         w.first_block + at.block, shared_address(raw));
      }
      at.block += T::chunk;
      at.run -= T::chunk;
      if (at.run <= 0) at.next_or_round(w);
    }
    commit_copies();
  }

  __device__ void take() {
    if (!waited) wait_copies<0>();
    waited = false;
    __syncwarp();
    convert_scales<T>(fan.product.scale_data, raw, table, lane);
    __syncwarp();
    copy_next();
  }
};

}  // namespace
}  // namespace lpg
