/* gemv with stacks of experts: what the token form (gemv_fan.cuh) and the segment form (gemv_segment.cuh) share.
 *
 * A strip is a super tile of one expert by as many rows of X as are multiplied at once. Strips are taken in rounds; in
 * a round a warp has a run of (strip, k block) pairs. `Work` says which: warp, first_block and blocks (of the CTA),
 * shares(round), has_round(round), place(round, strip) and expert_of(place). */
#pragma once

#include "gemv.cuh"
#include "gemv_stack_plan.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct stack_args {
  gemv_args product;   /* its plan is not used */
  const uint8_t *blob; /* of the first expert */
  int64_t stride;      /* of experts, in bytes */
  const float *row_scales;
  int32_t bias_stride;
};

/* Where a strip lies: whose rows of X it meets, and its super tile of the expert. */
struct strip_place {
  int item, super_tile;
};

/* Where a warp is: in a run of k blocks of one strip. */
struct strip_cursor {
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

  /* In the first round from that one on in which the warp has work. */
  template <class Work>
  __device__ void start_from(const Work &w, int which) {
    start(w, which);
    while (run == 0 && w.has_round(round + 1)) start(w, round + 1);
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
    if (run == 0 && w.has_round(round + 1)) start_from(w, round + 1);
  }
};

/* gemv's stream of weights, along strips. */
template <class T, class Work>
struct strip_stream : weight_stream<T> {
  const stack_args &stack;
  const Work &w;
  strip_cursor next; /* the next block */

  __device__ strip_stream(const stack_args &a, const work &unused, const Work &w, const strip_cursor &first, int lane)
      : weight_stream<T>(a.product, unused, cursor{}, 0, 0, lane), stack(a), w(w), next(first) {
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
    const gemv_args &a = stack.product;
    const strip_place at = w.place(next.round, next.strip);
    const int block = w.first_block + next.block;
    const int64_t before = w.expert_of(at) * stack.stride;
    this->vectors = a.row_vectors - block * T::Bits;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) { /* row tiles beyond the matrix repeat the last */
      const int row_tile = min(at.super_tile * T::row_tiles + r, a.row_tiles - 1);
      this->codes[r] = a.codes + before + row_tile * a.row_bytes + (int64_t)block * T::block_bytes + this->lane * 16;
    }
  }
};

/* A warp's scales, as gemv has them: a chunk is copied while the one before it is used. One section, a copy a lane. */
template <class T, class Work>
struct strip_scales {
  const stack_args &stack;
  const Work &w;
  strip_cursor at; /* the next chunk to copy */
  int lane;
  const uint8_t *raw;
  bool waited; /* all copies so far have been waited for */
  scale_table table;

  __device__ strip_scales(const stack_args &a, const Work &w, const strip_cursor &first, int lane, uint8_t *memory,
                          int table_bytes)
      : stack(a), w(w), at(first), lane(lane), raw(memory + table_bytes), waited(false) {
    table.scale = table.shift = (float2 *)memory;
    table.center = nullptr;
  }

  __device__ void copy_next() {
    if (at.run > 0) {
      const strip_place place = w.place(at.round, at.strip);
      scale_section own = stack.product.scale_data.section[0];
      own.values += w.expert_of(place) * stack.stride;
      if (stack.product.scale_data.sections > 0) {
        copy_one<T::row_tiles, T::chunk>(own, lane, place.super_tile * T::row_tiles, stack.product.row_tiles,
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
    convert_scales<T>(stack.product.scale_data, raw, table, lane);
    __syncwarp();
    copy_next();
  }
};

/* Starts to copy k blocks of rows of X, a row and block a warp. Beyond the matrix X is zero. source(i): where row i
 * begins; NULL: nowhere, and it is zero if `clears`, else nobody reads it. The whole warp calls it, all lanes with the
 * same i. Each CTA begins with another block (rotation), so that they do not all read the same part of L2. */
template <class T, class Source>
__device__ inline void stage_rows(const gemv_args &a, int rows, int first_block, int blocks, int rotation, int stride,
                                  uint8_t *to, bool clears, Source source) {
  const int lane = threadIdx.x % 32, warp = same_in_warp(threadIdx.x / 32);
  const bool aligned = (uintptr_t)a.x % 16 == 0 && a.ldx % 8 == 0;
  const int shift = (unsigned)rotation % (unsigned)blocks;
  for (int i = warp; i < rows * blocks; i += T::warps) {
    const int row = (unsigned)i / (unsigned)blocks, turned = i - row * blocks + shift;
    const int block = turned < blocks ? turned : turned - blocks;
    const uint16_t *const from = source(row);
    if (!from && !clears) continue;
    const int64_t k = (int64_t)(first_block + block) * block_k + lane * 8;
    uint8_t *out = to + row * stride + block * (block_k * 2) + lane * 16;
    if (aligned && k + 8 <= a.k) {
      copy16_async(shared_address(out), from ? from + k : (const uint16_t *)a.x, from != nullptr);
      continue;
    }
    const auto at = [&](int j) { return from && k + j < a.k ? (uint32_t)from[k + j] : 0u; };
    *(uint4 *)out = make_uint4(at(0) | at(1) << 16, at(2) | at(3) << 16, at(4) | at(5) << 16, at(6) | at(7) << 16);
  }
}

/* The sums of a row of W, and of that eight further on, for row m of Y; of a row of gates these are gate and up. scale:
 * the expert's global one. */
__device__ inline void store_two(const stack_args &a, int expert, float scale, int64_t m, int row_tile, int g,
                                 float sum, float sum8) {
  const epilogue_args &e = a.product.epilogue;
  const int64_t bias = (int64_t)expert * a.bias_stride;
  const int row = row_tile * LPG_TILE_ROWS + g;
  float first = scale, second = scale;
  if (a.row_scales && row < a.product.row_tiles * LPG_TILE_ROWS) {
    const float *const own = (const float *)((const uint8_t *)a.row_scales + expert * a.stride) + row;
    first *= own[0];
    second *= own[8];
  }
  if (e.paired) {
    const int column = row_tile * 8 + g, outputs = a.product.n / 2;
    if (column < outputs) store_pair(e, m, column, outputs, bias, sum * first, sum8 * second);
    return;
  }
  if (e.only_scales) { /* the common case of down */
    const float x_scale = x_scale_of(e, m);
    const int64_t at = m * e.ldy + row;
    if (row < a.product.n) store_rounded(e.y_type, e.y, at, e.alpha * (sum * first) * x_scale);
    if (row + 8 < a.product.n) store_rounded(e.y_type, e.y, at + 8, e.alpha * (sum8 * second) * x_scale);
    return;
  }
  if (row < a.product.n) column_epilogue(e, row, bias + row).store(m, sum * first);
  if (row + 8 < a.product.n) column_epilogue(e, row + 8, bias + row + 8).store(m, sum8 * second);
}

/* Brings the biases of a strip's rows to L2: they are read where nothing else is left to do. */
template <class T>
__device__ inline void prefetch_biases(const stack_args &a, int expert, int super_tile) {
  const epilogue_args &e = a.product.epilogue;
  const int bytes = lpg_bytes(e.bias_type), row = super_tile * T::tile_n, n = a.product.n;
  const uint8_t *const biases = (const uint8_t *)e.bias + (int64_t)expert * a.bias_stride * bytes;
  if (e.paired && row / 2 < n / 2) {
    prefetch_to_l2(biases + row / 2 * bytes);
    prefetch_to_l2(biases + (n / 2 + row / 2) * bytes);
  } else if (!e.paired && row < n) {
    prefetch_to_l2(biases + row * bytes);
  }
}

/* Multiplies a run of k blocks of a strip. x: the lane's rows of X at the first of them. */
template <class T, class Work>
__device__ inline void multiply_strip(int run, uint32_t (&x)[T::x_tiles], const typename T::Dequantiser &dequantiser,
                                      strip_stream<T, Work> &weights, strip_scales<T, Work> &scale_data,
                                      block_words<T> &words, int g, row_centers<T> &centers, accumulators<T> &totals) {
  for (int left = run; left > 0; left -= T::chunk) {
    scale_data.take();
    scale_table table = scale_data.table;
#pragma unroll 1
    for (int i = min(left, T::chunk); i > 0; i--) {
      multiply_block<T>(weights.a.scale_data, dequantiser, weights, words, x, nullptr, table, g, centers, totals);
      weights.end_block();
      table.to_next_block(T::pairs);
#pragma unroll
      for (int j = 0; j < T::x_tiles; j++) x[j] += block_k * 2;
    }
  }
}

/* The warps' partials of a tile of a round whose tiles have so many (strip, k block) pairs each. */
__device__ inline partial_span span_of(const lpg_partition &shares, int tile, int pairs, work none) {
  none.blocks = none.most_blocks = pairs;
  return partial_span(none, shares, tile);
}

}  // namespace
}  // namespace lpg
