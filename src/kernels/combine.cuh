/* From the sums of warps and slices to outputs, in a fixed order. */
#pragma once

#include "decode_work.cuh"
#include "prim/cluster.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The slots of a super tile: the warps that multiply its first and its last block say which. */
struct slot_span {
  uint16_t first, last;
};

template <class T>
__device__ inline void store_slot(const lpg_decode_plan &p, uint8_t *buffer, int slot, int lane,
                                  const accumulators<T> &totals) {
  const int g = lane / 4, t = lane % 4;
#pragma unroll
  for (int r = 0; r < T::row_tiles; r++) {
    float *out = (float *)(buffer + slot * p.slot_bytes) + r * LPG_TILE_ROWS;
#pragma unroll
    for (int j = 0; j < T::x_tiles; j++) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int column = j * 8 + 2 * t + i % 2, row = g + i / 2 * 8;
        if (column < p.x_rows) out[column * T::rows + row] = totals.sum[r][j][i];
      }
    }
  }
}

/* Adds up what the warps have, a super tile a warp, and brings it to the block of threads that stores the super tile:
 * rank tile % slices, where the sums of a slice lie together. A slot holds the super tile's rows, column after column
 * of X. */
__device__ inline void send_sums(const lpg_decode_plan &p, const work &w, int slice, const uint8_t *slots,
                                 const slot_span *spans, uint8_t *inbox) {
  const int lane = threadIdx.x % 32;
  const unsigned slices = p.slices;
  for (int tile = w.warp; tile < w.round_tiles; tile += warps) {
    const slot_span span = spans[tile];
    uint8_t *to = inbox + slice * p.inbox_slice + (unsigned)tile / slices * p.slot_bytes;
    for (int i = lane * 16; i < p.slot_bytes; i += 512) {
      float4 sum = {};
      for (int s = span.first; w.blocks && s <= span.last; s++) {
        const float4 part = *(const float4 *)(slots + s * p.slot_bytes + i);
        sum.x += part.x;
        sum.y += part.y;
        sum.z += part.z;
        sum.w += part.w;
      }
      store_to_block(shared_address(to + i), (unsigned)tile % slices, sum);
    }
  }
}

/* Adds up the sums of warps (one slice) or slices for the super tiles of this block of threads; stores the outputs. */
template <class T>
__device__ inline void store_outputs(const decode_args &a, const work &w, int first_super_tile, int slice, int m0,
                                     const uint8_t *slots, const slot_span *spans, const uint8_t *inbox) {
  const lpg_decode_plan &p = a.plan;
  for (int tile = w.warp * p.slices + slice, at = w.warp; tile < w.round_tiles; tile += warps * p.slices, at += warps) {
    const slot_span span = spans[tile];
    const uint8_t *first = p.slices > 1 ? inbox + at * p.slot_bytes : slots + span.first * p.slot_bytes;
    const int stride = p.slices > 1 ? p.inbox_slice : p.slot_bytes;
    const int count = p.slices > 1 ? p.slices : w.blocks ? span.last - span.first + 1 : 0;
    const int n0 = (first_super_tile + w.first_tile + tile) * T::rows;
#pragma unroll 1
    for (int i = threadIdx.x % 32; i < T::rows * p.x_rows; i += 32) {
      float sum = 0.0f;
#pragma unroll 1
      for (int c = 0; c < count; c++) sum += *(const float *)(first + c * stride + i * 4);
      const int n = n0 + i % T::rows, m = m0 + i / T::rows;
      if (n < a.n && m < a.m) store_real(a.epilogue, m, n, sum);
    }
  }
}

}  // namespace
}  // namespace lpg
