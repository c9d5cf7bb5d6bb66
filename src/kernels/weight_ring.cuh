/* Weights on their way: copies that run ahead of a warp's work. */
#pragma once

#include "decode_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* A warp's ring of stages, filled ahead of use; a stage holds a block of a super tile and its numbers. */
template <class T>
struct weight_ring {
  const decode_args &a;
  work ahead;
  int first_row_tile, first_block, lane; /* of the block of threads */
  const uint8_t *codes, *numbers;        /* what the lane copies next; numbers with one_copy */
  bool copies_numbers;
  uint32_t base, stage; /* in shared memory: the ring, and the current stage's offset */

  __device__ weight_ring(const decode_args &a, const work &w, int first_row_tile, int first_block, int lane,
                         const uint8_t *ring)
      : a(a),
        ahead(w),
        first_row_tile(first_row_tile),
        first_block(first_block),
        lane(lane),
        base(shared_address(ring)),
        stage(0) {
    copies_numbers = a.numbers.one_copy && lane * 16 < T::row_tiles * a.numbers.section[0].block_bytes;
    start_round();
  }

  /* Starts copies to the stages first .. end - 1. */
  __device__ void fill_stages(int first, int end) {
#pragma unroll 1
    for (int i = first; i < end; i++) fill(i * a.plan.stage_bytes);
  }

  /* Of the next round that has work, if there is one. */
  __device__ void start_round() {
    while (ahead.run == 0 && ahead.round + 1 < ahead.rounds) ahead.start_round();
    find_run();
  }

  /* What the lane copies first of a run. */
  __device__ void find_run() {
    const int64_t row_tile = first_row_tile + ahead.tile * T::row_tiles;
    const int block = first_block + ahead.block;
    codes = a.codes + row_tile * a.row_bytes + (int64_t)block * T::block_bytes + lane * 16;
    if (!a.numbers.one_copy) return;
    const number_section &s = a.numbers.section[0];
    const int r = T::row_tiles > 1 && lane * 16 >= s.block_bytes, at = lane * 16 - r * s.block_bytes;
    numbers = s.values + (row_tile + r) * s.row_bytes + block * s.block_bytes + at;
  }

  /* Starts copying the next block to the stage at that offset. */
  __device__ void fill(uint32_t offset) {
    if (ahead.run > 0) {
      const uint32_t to = base + offset;
      const int block = first_block + ahead.block, row_tile = first_row_tile + ahead.tile * T::row_tiles;
      const bool whole = block < a.whole_blocks && (T::row_tiles == 1 || row_tile + 1 < a.row_tiles);
      if (whole) {
        copy_codes(to + lane * 16);
      } else {
        copy_edge(row_tile, block, to + lane * 16);
      }
      if (whole && a.numbers.one_copy) {
        copy16_async_if(copies_numbers, to + a.numbers.section[0].offset + lane * 16, numbers);
      } else {
        copy_numbers<T::row_tiles>(a.numbers, row_tile, a.row_tiles, block, to, lane);
      }
      codes += T::block_bytes;
      numbers += a.numbers.section[0].block_bytes;
      ahead.block++;
      if (--ahead.run == 0) {
        ahead.next_run();
        start_round();
      }
    }
    commit_copies();
  }

  __device__ void copy_codes(uint32_t to) const {
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
#pragma unroll
      for (int v = 0; v < T::Bits; v++) {
        copy16_async(to + r * T::block_bytes + v * 512, codes + r * a.row_bytes + v * 512);
      }
    }
  }

  /* The last block of columns, or a super tile that is not whole. */
  __device__ void copy_edge(int row_tile, int block, uint32_t to) const {
#pragma unroll 1
    for (int v = 0; v < T::row_tiles * T::Bits; v++) {
      const int r = v / T::Bits, in_block = v % T::Bits * 512;
      const bool inside = row_tile + r < a.row_tiles && (int64_t)block * T::block_bytes + in_block < a.row_bytes;
      copy16_async(to + r * T::block_bytes + in_block, codes + r * a.row_bytes + in_block, inside);
    }
  }

  /* Waits for the current stage. */
  __device__ void wait() const {
    wait_copies<T::stages - 1>();
    __syncwarp();
  }

  /* Waits for the first stage and the copies that were started right after it. */
  __device__ void wait_for_second() const { wait_copies<T::stages - 1>(); }

  /* Gives the current stage back, to be filled with a later block. */
  __device__ void release() {
    __syncwarp();
    fill(stage);
    stage += a.plan.stage_bytes;
    if (stage == T::stages * a.plan.stage_bytes) stage = 0;
  }
};

}  // namespace
}  // namespace lpg
