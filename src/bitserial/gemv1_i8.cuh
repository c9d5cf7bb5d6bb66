/* The counts kernels: up to four rows of int8 by weights of 1 and 2 bits with one scale a row, whose packed words go
 * to the binary tensor cores untouched (docs/bitserial.md). bits_frame.cuh has the frame.
 *
 * Nothing scales a product before its row is summed up, so counts of all columns that a warp has of a row tile are
 * added up by the tensor cores, and become sums of products, integers, only then. */
#pragma once

#include "../kernels/prim/mma_b1.cuh"
#include "gemv1_frame.cuh"
#include "gemv1_i8_plan.h"
#include "gemv1_scales.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- X on its way to shared memory ----
 *
 * Of two vectors of weights lane (g, t) finds four words of column g of a block at [two vectors][block][lane]. Then,
 * for each row of X, the sums of its chunks. */

/* The lane's two neighbours among the columns, as a half of a word. */
__device__ inline uint32_t load_two_bytes(const uint8_t *from, int64_t columns) {
  if (((uintptr_t)from & 1) == 0 && columns > 1) return *(const uint16_t *)from;
  return columns <= 0 ? 0u : columns == 1 ? from[0] : from[0] | (uint32_t)from[1] << 8;
}

/* The part of one lane t in cutting a chunk of a row of X into planes. */
template <class T>
struct byte_task {
  uint32_t row[8]; /* for transpose_bytes(); of a word's bytes two are of columns 2t, 2t + 1, two 8 further on */
  int column, chunk;

  /* Tasks that are not there are the last ones, so that all lanes take part. */
  __device__ void load(const gemv1_args &a, int task, int first_block, int blocks) {
    const int each = blocks * (T::chunks * 4), all = each * T::TileM, some = min(task, all - 8 + task % 8);
    column = T::TileM == 1 ? 0 : some / each;
    chunk = (some - column * each) / 4;
    const int64_t k = ((int64_t)first_block * T::chunks + chunk) * LPG_CHUNK_K + 2 * (some % 4);
    const uint8_t *const from = (const uint8_t *)a.x + min(column, a.m - 1) * a.ldx + k;
#pragma unroll
    for (int step = 0; step < 8; step++) {
      const uint32_t low = load_two_bytes(from + 16 * step, a.k - k - 16 * step);
      const uint32_t high = load_two_bytes(from + 16 * step + 8, a.k - k - 16 * step - 8);
      row[row_of(T::Bits, step, 0)] = __byte_perm(low, high, 0x5140);
    }
  }

  __device__ void store(const gemv1_args &a, uint8_t *memory) {
    const int t = threadIdx.x % 4, word = chunk * T::Bits;
    int sum = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) sum = __dp4a((int)row[i], 0x01010101, sum);
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    transpose_bytes(row);
    uint32_t *const block = (uint32_t *)memory + (word / 4 * T::plane_blocks + column) * 128 + t * 4 + word % 4;
#pragma unroll
    for (int q = 0; q < 8; q++) store_plane(block + q * 16, row[q], q > 0 ? row[q - 1] : 0u);
    if (T::Bits == 2) store_plane(block + ((T::TileM - column) * 128 + column * 16), row[7], row[7]);
    if (t == 0) chunk_sums(a, memory)[column * chunks(a) + chunk] = sum;
  }

  /* Of a plane what stands beside bit 0 of the codes, and beside bit 1. */
  __device__ static void store_plane(uint32_t *to, uint32_t beside0, uint32_t beside1) {
    constexpr uint32_t even = 0x55555555u;
    if (T::Bits == 1) {
      *to = beside0;
    } else {
      *(uint2 *)to = make_uint2((beside0 & even) | (beside1 & even) << 1, (beside0 >> 1 & even) | (beside1 & ~even));
    }
  }

  /* Sums of X: [row of X][chunk]. */
  __device__ static int *chunk_sums(const gemv1_args &a, uint8_t *memory) {
    return (int *)(memory + a.plan.row_chunks);
  }
  __device__ static int chunks(const gemv1_args &a) {
    return (a.plan.k_part.each + (a.plan.k_part.more > 0)) * T::chunks;
  }
};

/* ---- products ---- */

template <class T>
struct counted_products {
  const gemv1_args &a;
  int first_tile, tiles, blocks, lane; /* tiles and blocks: of the CTA */
  int count[T::plane_blocks][4];
  raw_scales<true> raw; /* of rows g and g + 8 of a tile, for the block's outputs: on their way meanwhile */

  __device__ counted_products(const gemv1_args &a, int first_tile, int tiles, int blocks, int lane)
      : a(a), first_tile(first_tile), tiles(tiles), blocks(blocks), lane(lane) {
    clear();
    load_scales(threadIdx.x);
  }

  __device__ void clear() {
#pragma unroll
    for (int b = 0; b < T::plane_blocks; b++) {
#pragma unroll
      for (int i = 0; i < 4; i++) count[b][i] = 0;
    }
  }

  __device__ void multiply(const unit_words<T> &unit, const uint32_t *x) {
#pragma unroll
    for (int v = 0; v < T::vectors; v += 2) {
#pragma unroll
      for (int b = 0; b < T::plane_blocks; b++) {
        const uint4 planes = ((const uint4 *)x)[(v / 2 * T::plane_blocks + b) * 32 + lane];
        add_and_popc_256(count[b], unit.word[0] + 4 * v, planes.x, planes.y);
        add_and_popc_256(count[b], unit.word[0] + 4 * v + 4, planes.z, planes.w);
      }
    }
  }

  /* To a slot: [row of X][row]. Lane t has columns 2t and 2t + 1 of a block; with 2 bits those that count negative are
   * a block of their own. */
  __device__ void store(int32_t *slot) {
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int m = 0; m < T::TileM; m++) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        int sum = (count[m][2 * half] + 2 * count[m][2 * half + 1]) << 2 * t;
        if (T::Bits == 1 && t == 3) sum -= count[m][2 * half + 1] << 8;
        if (T::Bits == 2 && t == m / 2) sum -= count[T::plane_blocks - 1][2 * half + m % 2] << 8;
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        if (t == m % 4) slot[m * LPG_TILE_ROWS + half * 8 + g] = sum;
      }
    }
    clear();
  }

  /* ---- outputs ---- */

  __device__ void load_scales(int pair) {
    if (blocks == 0 || pair >= tiles * 8) return;
    const int64_t row_tile = min(first_tile + pair / 8, a.row_tiles - 1);
    load_raw(a.scale_data, a.scale_data.scales + row_tile * a.scale_data.scale_row,
             a.scale_data.zeros + row_tile * a.scale_data.zero_row, 0, pair % 8, raw);
  }

  /* Scales and zeros to shared memory, sums of the slice of X to that of all blocks of the cluster. */
  __device__ void finish(int slice, uint8_t *memory) {
    row_scaling *const rows = (row_scaling *)(memory + a.plan.rows);
    for (int pair = threadIdx.x; pair < tiles * 8; pair += T::threads) {
      if (pair != (int)threadIdx.x) load_scales(pair);
#pragma unroll
      for (int half = 0; half < 2; half++) {
        rows[pair / 8 * LPG_TILE_ROWS + half * 8 + pair % 8] = scaling_of(a.scale_data, raw, half);
      }
    }
    const int m = threadIdx.x / 32;
    if (m >= T::TileM) return;
    const int *const sums = T::task::chunk_sums(a, memory) + m * T::task::chunks(a);
    int sum = 0;
    for (int c = lane; c < blocks * T::chunks; c += 32) sum += sums[c];
    sum = __reduce_add_sync(~0u, sum);
    int *const to = (int *)(memory + a.plan.row_slices) + slice * T::TileM + m;
    if (lane < a.plan.split_k) store_to_block(shared_address(to), lane, sum);
  }

  /* Codes are counted from the half code next to the zero, exactly; what is left of it goes on the sum of X. */
  __device__ float value(int row, int m, int32_t sum, const uint8_t *memory) const {
    if (blocks == 0) return 0.0f;
    const row_scaling s = ((const row_scaling *)(memory + a.plan.rows))[row];
    const int *const split_k = (const int *)(memory + a.plan.row_slices);
    int x = 0;
    for (int i = 0; i < a.plan.split_k; i++) x += split_k[i * T::TileM + m];
    return fmaf((float)(2 * sum - (int)s.center * x), s.scale, s.shift * (float)x);
  }
};
static_assert(sizeof(row_scaling) == LPG_GEMV1_I8_ROW_BYTES, "shared memory is laid out by the plan");

/* ---- the parameter of the frame ---- */

/* Scales and zeros are not for units. */
struct no_scales {};
__device__ inline void load_raw(const chunk_scales_args &, const uint8_t *, const uint8_t *, int, int, no_scales &) {}

/* Columns: rows of X. */
template <int Bits_, int TileM_>
struct gemv1_i8_traits {
  using task = byte_task<gemv1_i8_traits>;
  using products = counted_products<gemv1_i8_traits>;
  using scale_data = no_scales;
  using sum_type = int32_t;
  static constexpr int Bits = Bits_, TileM = TileM_;
  static constexpr int warps = LPG_GEMV1_WARPS, threads = 32 * warps, row_tiles = 1, tile_n = LPG_TILE_ROWS;
  static constexpr int chunks = LPG_GEMV1_I8_CHUNKS;  /* of a unit */
  static constexpr int vectors = Bits * (chunks / 2); /* of 512 bytes, of a row tile */
  static constexpr int depth = Bits == 1 ? 4 : 3;     /* units whose loads are under way */
  static constexpr int plane_blocks = lpg_gemv1_i8_blocks(Bits, TileM);
  static constexpr int unit_x_words = vectors * plane_blocks * 64;
};

}  // namespace
}  // namespace lpg
