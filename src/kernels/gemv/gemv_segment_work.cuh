/* The segment form: what rounds a CTA has, and which warp takes which part of them. */
#pragma once

#include "../plan/expert_rows.cuh"
#include "gemv_segment_plan.h"
#include "gemv_stack.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct segment_args : stack_args {
  lpg_segment_plan plan;
  const int32_t *offsets, *x_row; /* x_row: by which X has its rows; NULL: in order */
  int32_t experts, m, x_rows;
  int offsets_final; /* 1: they may be read before the kernel ahead is done */
};

/* Offsets past L1, which may hold what a layer before has left there: they may be read before pdl_wait(). */
struct fresh_offsets {
  const int32_t *at;
  __device__ int32_t operator[](int i) const { return __ldcg(at + i); }
};

/* Strips of an item that follow one another. */
struct segment_round {
  int expert, first_row, rows; /* of X and Y */
  int super_tile, tiles;
  int x_place;   /* of the item's rows of X: one of two */
  int next_item; /* of an item's first round: the round that begins the next item; else 0, and where there is none */
  float scale;   /* the expert's global one */
};
static_assert(sizeof(segment_round) == LPG_SEGMENT_ROUND_BYTES, "a round has its place in the plan");

/* Fills the cluster's rounds and returns how many they are: work of one warp. */
__device__ inline int find_rounds(const segment_args &a, int cluster, uint8_t *memory, segment_round *rounds) {
  const lpg_segment_plan &p = a.plan;
  fill_expert_rows(fresh_offsets{a.offsets}, a.experts, a.m, memory + p.experts,
                   [](int rows) { return (rows + LPG_STACK_COLUMNS - 1) / LPG_STACK_COLUMNS; });
  __syncwarp();
  const expert_rows rows(memory + p.experts, a.experts);
  const lpg_partition part = lpg_partition_of(rows.first_tile[a.experts] * p.super_tiles, p.clusters);
  const int first = first_of(part, cluster), end = first + count_of(part, cluster);
  int count = 0, item_round = 0;
  for (int strip = first; strip < end; count++) {
    const int item = (unsigned)strip / (unsigned)p.super_tiles, super_tile = strip - item * p.super_tiles;
    const int expert = rows.expert_of(item);
    const bool begins = count == 0 || super_tile == 0;
    const int row = rows.first_row[expert] + (item - rows.first_tile[expert]) * LPG_STACK_COLUMNS;
    const int tiles = min(min(p.super_tiles - super_tile, p.round_tiles), end - strip);
    if (threadIdx.x % 32 == 0) {
      if (begins && count > 0) rounds[item_round].next_item = count;
      const int columns = min(rows.first_row[expert + 1] - row, (int)LPG_STACK_COLUMNS);
      rounds[count] = {expert, row, columns, super_tile, tiles, item % 2, 0, 1.0f};
    }
    if (begins) item_round = count;
    strip += tiles;
  }
  return count;
}

/* The work of a CTA. */
template <class T>
struct segment_work {
  segment_round *round;
  int rounds, first_block, blocks, warp;

  /* The whole CTA. */
  __device__ segment_work(const segment_args &a, int cluster, int rank, int warp, uint8_t *memory)
      : round((segment_round *)(memory + a.plan.rounds + LPG_SEGMENT_ROUND_BYTES)),
        first_block(first_of(a.plan.k_part, rank)),
        blocks(reads_product(a.product.epilogue) ? count_of(a.plan.k_part, rank) : 0),
        warp(warp) {
    int *const found = (int *)(memory + a.plan.rounds);
    if (warp == 0) {
      const int count = find_rounds(a, cluster, memory, round);
      if (threadIdx.x == 0) *found = count;
    }
    __syncthreads();
    rounds = *found;
  }

  /* The global scales, which are not needed before sums are: some threads. */
  __device__ void add_scales(const segment_args &a) const {
    if (blocks == 0) return; /* no product, so its scale does not count, NaN or not */
#pragma unroll 1
    for (int i = threadIdx.x; i < rounds; i += T::threads) {
      round[i].scale = lpg_expert_scale(a.blob + round[i].expert * a.stride);
    }
  }

  __device__ bool has_round(int which) const { return which < rounds; }
  /* (strip, k block) pairs of a round for each warp. */
  __device__ lpg_partition shares(int which) const {
    const int units = round[which].tiles * blocks;
    return {units / T::warps, units % T::warps};
  }
  __device__ strip_place place(int which, int strip) const { return {which, round[which].super_tile + strip}; }
  __device__ int expert_of(const strip_place &place) const { return round[place.item].expert; }
};

}  // namespace
}  // namespace lpg
