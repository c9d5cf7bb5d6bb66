/* The token form: which experts are named, and by whom. Every CTA finds out for itself, in shared memory.
 *
 * Slots of one expert, in their order, make its items, 8 each; items stand in the order of their first slots. Where a
 * token names an expert twice its first slot stands for both, with the sum of their weights. */
#pragma once

#include "../prim/pdl.cuh"
#include "gemv_fan_plan.h"
#include "gemv_stack.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct fan_args : stack_args {
  lpg_fan_plan plan;
  const int32_t *expert; /* of a slot */
  const float *weight;
  int32_t experts, first_expert, top_k;
};

struct fan_item {
  int16_t slot[LPG_STACK_COLUMNS]; /* -1: none */
  int16_t token[LPG_STACK_COLUMNS];
  float weight[LPG_STACK_COLUMNS];
  int expert;
  float scale; /* the expert's global one */
  float unused[2];

  /* The row of X of column c; some row where there is none. */
  template <bool In>
  __device__ int row(int c) const {
    return max((int)(In ? slot : token)[c], 0);
  }
};
static_assert(sizeof(fan_item) == LPG_FAN_ITEM_BYTES, "an item has its place in the plan");

struct fan_items {
  fan_item *item;
  int *expert;     /* of each slot, -1: left out */
  float *weight;   /* of each slot */
  int *first;      /* the expert again, -1 also for a slot that another one of its token stands for */
  uint32_t *leads; /* a bit a slot: an item begins with it; behind them the number of items */
  int count;

  __device__ fan_items(const lpg_fan_plan &p, uint8_t *memory)
      : item((fan_item *)(memory + p.items)),
        expert((int *)(memory + p.experts)),
        weight((float *)(expert + p.slots)),
        first((int *)(weight + p.slots)),
        leads((uint32_t *)(first + p.slots)) {}

  __device__ int items_before(int slot) const {
    int items = __popc(leads[slot / 32] & ((1u << slot % 32) - 1));
    for (int w = 0; w < slot / 32; w++) items += __popc(leads[w]);
    return items;
  }

  /* The whole CTA, which has a thread for every slot. */
  __device__ void find(const fan_args &a) {
    const int slots = a.plan.slots;
    if (slots > 32) {
      find_by_threads(a);
    } else if (threadIdx.x < 32) {
      find_by_warp(a);
    }
    __syncthreads();
    count = (int)leads[LPG_FAN_MOST_SLOTS / 32];
  }

  /* The global scales, which are not needed before sums are: some threads. */
  __device__ void add_scales(const fan_args &a) const {
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
      item[i].scale = lpg_expert_scale(a.blob + item[i].expert * a.stride);
    }
  }

  /* The expert of the thread's slot, -1: left out; notes it with its weight, and clears an item. */
  __device__ int read_slot(const fan_args &a, int slot) const {
    if (slot >= a.plan.slots) return -1;
    /* past L1, which may hold what a layer before has left there: `fanin` reads them before its pdl_wait() */
    const int64_t e = (int64_t)__ldcg(a.expert + slot) - a.first_expert;
    const float read = a.weight ? __ldcg(a.weight + slot) : 1.0f;
    const int own = e >= 0 && e < a.experts ? (int)e : -1;
    expert[slot] = own;
    weight[slot] = own >= 0 ? read : 1.0f;
    *(int4 *)item[slot].slot = make_int4(-1, -1, -1, -1);
    *(int4 *)item[slot].token = make_int4(-1, -1, -1, -1);
    return own;
  }

  __device__ void put(int which, int column, int slot, int token, float sum, int own) const {
    fan_item &to = item[which];
    to.slot[column] = (int16_t)slot;
    to.token[column] = (int16_t)token;
    to.weight[column] = sum;
    to.expert = own;
  }

  __device__ void find_by_warp(const fan_args &a) const {
    const int slot = threadIdx.x, token = (unsigned)slot / (unsigned)a.top_k, begin = token * a.top_k;
    const uint32_t before = (1u << slot) - 1;
    int own = read_slot(a, slot);
    __syncwarp();
    const uint32_t same = __match_any_sync(0xffffffffu, own);
    if (own >= 0 && (same & before) >> begin) own = -1; /* of the token, which has the slots from `begin` on */
    const uint32_t mine = same & __ballot_sync(0xffffffffu, own >= 0);
    const int rank = __popc(mine & before), column = rank % LPG_STACK_COLUMNS;
    const uint32_t lead = __ballot_sync(0xffffffffu, own >= 0 && column == 0);
    if (slot < a.plan.slots) first[slot] = own;
    if (slot == 0) leads[LPG_FAN_MOST_SLOTS / 32] = __popc(lead);
    if (own < 0) return;
    float sum = weight[slot];
    for (int j = slot + 1; j < begin + a.top_k; j++) {
      if (same >> j & 1) sum += weight[j];
    }
    uint32_t own_leads = lead & mine & (before | 1u << slot); /* the last of them begins the item */
    put(__popc(lead & ((1u << (31 - __clz(own_leads))) - 1)), column, slot, token, sum, own);
  }

  __device__ void find_by_threads(const fan_args &a) const {
    const int slots = a.plan.slots, slot = threadIdx.x, token = (unsigned)slot / (unsigned)a.top_k;
    int own = read_slot(a, slot);
    __syncthreads();
    float sum = 0.0f;
    if (slot < slots) {
      const int begin = token * a.top_k;
      for (int j = begin; own >= 0 && j < begin + a.top_k; j++) {
        if (expert[j] != own) continue;
        if (j < slot) own = -1;
        if (j >= slot) sum = j == slot ? weight[j] : sum + weight[j];
      }
      first[slot] = own;
    }
    __syncthreads();
    int lead = -1, rank = 0;
    if (own >= 0) {
#pragma unroll 4
      for (int j = 0; j <= slot; j++) {
        if (first[j] != own) continue;
        if (rank % LPG_STACK_COLUMNS == 0) lead = j;
        rank++;
      }
    }
    const uint32_t word = __ballot_sync(0xffffffffu, own >= 0 && lead == slot);
    if (slot < slots && slot % 32 == 0) leads[slot / 32] = word;
    __syncthreads();
    if (own >= 0) put(items_before(lead), (rank - 1) % LPG_STACK_COLUMNS, slot, token, sum, own);
    if (slot == 0) {
      leads[LPG_FAN_MOST_SLOTS / 32] = items_before(slots - 1) + (leads[(slots - 1) / 32] >> (slots - 1) % 32 & 1);
    }
  }
};

}  // namespace
}  // namespace lpg
