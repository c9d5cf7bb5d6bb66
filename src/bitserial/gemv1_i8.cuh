/* gemv1 for int8: up to four rows of X by weights of 1 and 2 bits with one scale a row. The packed words go to the
 * binary MMA as they are (docs/bitserial.md); gemv1_frame.cuh has the kernel.
 *
 * No product is scaled before its row is summed up. So the tensor cores add up the counts of all k that a warp has of a
 * row tile, and only then they become integer sums of products. */
#pragma once

#include "../kernels/prim/mma_b1.cuh"
#include "gemv1_frame.cuh"
#include "gemv1_i8_plan.h"
#include "gemv1_scales.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- X to shared memory ----
 *
 * For two vectors of weights lane (g, t) finds four words of column g of a block at [two vectors][block][lane]. Behind
 * all planes lie the sums of the chunks of each row of X. */

/* Two neighbouring bytes as the low half of a word; those beyond the row, which has `left` bytes more, are zero. */
__device__ inline uint32_t load_two_bytes(const uint8_t *from, int64_t left) {
  if (((uintptr_t)from & 1) == 0 && left > 1) return *(const uint16_t *)from;
  return left <= 0 ? 0u : left == 1 ? from[0] : from[0] | (uint32_t)from[1] << 8;
}

/* One lane's part in cutting a chunk of a row of X into planes; the four lanes of a quad cut a chunk. */
template <class T>
struct byte_task {
  uint32_t row[8]; /* for transpose_bytes(); a word's bytes are k = 2 t, 2 t + 8, 2 t + 1, 2 t + 9 */
  int x_row, chunk;

  /* Threads without a task repeat one of the last ones, so that whole warps take part in the shuffles. */
  __device__ void load(const gemv1_args &a, int task, int first_block, int blocks) {
    const int each = blocks * (T::chunks * 4), all = each * T::TileM, some = min(task, all - 8 + task % 8);
    x_row = T::TileM == 1 ? 0 : some / each;
    chunk = (some - x_row * each) / 4;
    const int64_t k = ((int64_t)first_block * T::chunks + chunk) * LPG_CHUNK_K + 2 * (some % 4);
    const uint8_t *const from = (const uint8_t *)a.x + min(x_row, a.m - 1) * a.ldx + k;
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
    uint32_t *const block = (uint32_t *)memory + (word / 4 * T::plane_blocks + x_row) * 128 + t * 4 + word % 4;
#pragma unroll
    for (int q = 0; q < 8; q++) store_plane(block + q * 16, row[q], q > 0 ? row[q - 1] : 0u);
    if (T::Bits == 2) store_plane(block + ((T::TileM - x_row) * 128 + x_row * 16), row[7], row[7]);
    if (t == 0) chunk_sums(a, memory)[x_row * chunks(a) + chunk] = sum;
  }

  /* Stores a plane: what goes against bit 0 of the codes and, with 2 bits, against bit 1. */
  __device__ static void store_plane(uint32_t *to, uint32_t beside0, uint32_t beside1) {
    constexpr uint32_t even = 0x55555555u;
    if (T::Bits == 1) {
      *to = beside0;
    } else {
      *(uint2 *)to = make_uint2((beside0 & even) | (beside1 & even) << 1, (beside0 >> 1 & even) | (beside1 & ~even));
    }
  }

  /* Sums of the chunks of X: [row of X][chunk]. */
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
  int first_tile, tiles, blocks, lane; /* of the CTA */
  int count[T::plane_blocks][4];
  raw_scales<true> raw; /* scales and zeros of rows g and g + 8 of a row tile, for finish(): loaded meanwhile */

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

  /* Writes a partial: [row of X][row]. Lane t has columns 2 t and 2 t + 1 of a block; with 2 bits the columns of the
   * sign bits are a block of their own. */
  __device__ void store(int32_t *partial) {
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
        if (t == m % 4) partial[m * LPG_TILE_ROWS + half * 8 + g] = sum;
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

  /* Scales and zeros go to shared memory; the sums of the CTA's part of X go to the shared memory of every CTA of the
   * cluster. */
  __device__ void finish(int rank, uint8_t *memory) {
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
    int *const to = (int *)(memory + a.plan.row_slices) + rank * T::TileM + m;
    if (lane < a.plan.split_k) store_to_block(shared_address(to), lane, sum);
  }

  /* The code is counted from the half code next to the zero (center), exactly; what is left of the zero goes on the sum
   * of X (shift). */
  __device__ float value(int row, int m, int32_t sum, const uint8_t *memory) const {
    if (blocks == 0) return 0.0f;
    const row_scaling s = ((const row_scaling *)(memory + a.plan.rows))[row];
    const int *const x_sums = (const int *)(memory + a.plan.row_slices);
    int x = 0;
    for (int i = 0; i < a.plan.split_k; i++) x += x_sums[i * T::TileM + m];
    return fmaf((float)(2 * sum - (int)s.center * x), s.scale, s.shift * (float)x);
  }
};
static_assert(sizeof(row_scaling) == LPG_GEMV1_I8_ROW_BYTES, "shared memory is laid out by the plan");

/* ---- T of gemv1_frame.cuh ---- */

/* Units have no scales and zeros: they belong to whole rows. */
struct no_scales {};
__device__ inline void load_raw(const chunk_scales_args &, const uint8_t *, const uint8_t *, int, int, no_scales &) {}

/* TileM: rows of X. */
template <int Bits_, int TileM_>
struct gemv1_i8_traits {
  using task = byte_task<gemv1_i8_traits>;
  using products = counted_products<gemv1_i8_traits>;
  using scale_data = no_scales;
  using sum_type = int32_t;
  static constexpr int Bits = Bits_, TileM = TileM_;
  static constexpr int warps = LPG_GEMV1_WARPS, threads = 32 * warps, row_tiles = 1, tile_n = LPG_TILE_ROWS;
  static constexpr int chunks = LPG_GEMV1_I8_CHUNKS;  /* of 128 k, of a unit */
  static constexpr int vectors = Bits * (chunks / 2); /* of 512 bytes, of a row tile of a unit */
  static constexpr int depth = Bits == 1 ? 4 : 3;     /* units whose loads are under way */
  static constexpr int plane_blocks = lpg_gemv1_i8_blocks(Bits, TileM);
  static constexpr int unit_x_words = vectors * plane_blocks * 64;
};

}  // namespace
}  // namespace lpg
