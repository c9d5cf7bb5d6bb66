/* The lookup kernels: a row of X by integers of 1 and 2 bits, whose bits select sums of activations from tables in
 * shared memory (docs/lut.md).
 *
 *   make tables of the slice of X while the first weights are on their way
 *   every warp for its even share of blocks, a chunk of 128 columns at a time:
 *     the planes of bits of 16 rows a lane, the upper one first; every nibble is the address of a sum
 *     what is found is added up, before the next plane doubled, and added to the other lanes'. All are exact integers
 *     sums += scale * (what was found - center * sum of X)
 *   combine the warps' and the slices' sums in a fixed order, apply the epilogue, store
 *
 * Every lane has tables of its own in its own bank of shared memory: a lookup of 32 lanes takes one cycle, whatever
 * they look up. */
#pragma once

#include "../prim/follow.cuh"
#include "../prim/logic.cuh"
#include "../prim/table.cuh"
#include "../slot_sums.cuh"
#include "lookup_prepare.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int lane_rows = 2 * LPG_LOOKUP_ROW_TILES; /* of a super tile: g and g + 8 of each row tile */

/* ---- weights on their way ---- */

/* A lane's words of a vector of each row tile: rows g and g + 8 of the first unit, then of the second. Lanes t = 2 and
 * 3 have the second half of the row tiles first. */
template <class T>
struct vector_words {
  uint32_t word[T::row_tiles][4];

  /* Plane `bit` of chunk `chunk`, of row g (half 0) or g + 8. */
  __device__ uint32_t plane(int tile, int half, int chunk, int bit) const {
    const uint32_t units[2] = {word[tile][half + 2 * chunk], word[tile][half + 2 * (T::Bits - 1)]};
    return lpg_plane_of(T::Bits, units, bit);
  }
};

/* What a warp loads next. */
template <class T>
struct vector_stream {
  const lookup_args &a;
  int tile, left_of_tile, left; /* the next vector's super tile; vectors of it, and of the share, that are left */
  int first_block, blocks;      /* of the block of threads */
  int lane, last;               /* the last row tile of the super tile */
  const uint8_t *codes;

  __device__ vector_stream(const lookup_args &a, int first_tile, int tile, int block, int left, int first_block,
                           int blocks, int lane)
      : a(a), tile(first_tile + tile), left(left), first_block(first_block), blocks(blocks), lane(lane) {
    if (left > 0) start_tile(block);
  }

  __device__ void start_tile(int block) {
    const int row_tile = tile * T::row_tiles;
    left_of_tile = blocks - block;
    last = min(T::row_tiles, a.row_tiles - row_tile) - 1;
    codes = a.codes + (int64_t)row_tile * a.row_bytes + (int64_t)(first_block + block) * 512 + lane * 16;
  }

  __device__ void load(vector_words<T> &to) {
    if (left <= 0) return;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++)
      load16(codes + min(r ^ (lane & 2) * T::own_tiles, last) * a.row_bytes, to.word[r]);
    codes += 512;
    left--;
    if (--left_of_tile == 0) {
      tile++;
      if (left > 0) start_tile(0);
    }
  }
};

/* ---- lookups ---- */

/* The sums that nibbles 2 Byte and 2 Byte + 1 of a plane select; even, odd: its nibbles, each in a byte. tables: of the
 * chunk, for the lane. Entries are 128 bytes apart, and a product of bytes makes the address. */
template <int Byte>
__device__ inline int two_entries(uint32_t even, uint32_t odd, uint32_t tables) {
  constexpr uint32_t pick = 128u << (8 * Byte);
  constexpr int table_bytes = LPG_TABLE_ENTRIES * LPG_LANES * 4;
  return read_entry<2 * Byte * table_bytes>(__dp4a(even, pick, tables)) +
         read_entry<(2 * Byte + 1) * table_bytes>(__dp4a(odd, pick, tables));
}

__device__ inline int entries_of(uint32_t plane, uint32_t tables) {
  const uint32_t even = plane & 0x0f0f0f0fu, odd = plane >> 4 & 0x0f0f0f0fu;
  return two_entries<0>(even, odd, tables) + two_entries<1>(even, odd, tables) + two_entries<2>(even, odd, tables) +
         two_entries<3>(even, odd, tables);
}

/* ---- scales and zeros ---- */

/* What sums of a row become: products with the codes counted from the half code next to the zero (or next to where a
 * minimum makes 0), as integers, so that weights that nearly cancel stay exact; and what is left of the zero. */
struct lookup_scaling {
  float scale, shift;
  int center; /* from the middle of the codes */
};

/* Of row g (half 0) or g + 8; fixed zeros are in the sums already. */
__device__ inline lookup_scaling scaling_of(const chunk_numbers_args &a, const raw_numbers<false> &raw, int half) {
  const __half2 two = *(const __half2 *)&raw.scales;
  const float scale = half ? __high2float(two) : __low2float(two);
  return {scale, 0.0f, 0};
}

__device__ inline lookup_scaling scaling_of(const chunk_numbers_args &a, const raw_numbers<true> &raw, int half) {
  const float scale = a.scales ? number_value(a.scale_type, half ? raw.scale.y : raw.scale.x) : 1.0f;
  const float step = 0.5f * a.step, middle = 0.5f * a.most_center;
  if (a.zero == chunk_zero_fixed) return {scale * step, scale * step * a.rest, (int)(a.center - middle)};
  const float zero = number_value(a.zero_type, half ? raw.zero.y : raw.zero.x);
  const float level = a.zero == chunk_zero_minimum ? __fdividef(-zero, scale) : zero;
  const float center = fminf(fmaxf(rintf((level - a.offset) / step), 0.0f), a.most_center);
  const float value = fmaf(center, step, a.offset);
  const float shift = a.zero == chunk_zero_minimum ? fmaf(value, scale, zero) : scale * (value - zero);
  return {scale * step, shift, (int)(center - middle)};
}

/* What is found in the tables of a chunk, for all rows. */
template <class T>
struct lookup_sums {
  int found[lane_rows];

  __device__ lookup_sums(const vector_words<T> &words, int in_block, uint32_t tables) {
#pragma unroll
    for (int r = 0; r < lane_rows; r++) {
      found[r] = entries_of(words.plane(r / 2, r % 2, in_block, T::Bits - 1), tables);
      if (T::Bits == 2) found[r] += found[r] + entries_of(words.plane(r / 2, r % 2, in_block, 0), tables);
    }
  }

  /* Of all lanes of a row. Lane t gets those of its own row tiles: the lanes halve what they have, twice. */
  __device__ void add_lanes(int t, int (&sum)[T::own_tiles][2]) const {
    int half[lane_rows / 2];
#pragma unroll
    for (int r = 0; r < lane_rows / 2; r++) {
      half[r] = found[r] + __shfl_xor_sync(~0u, found[r + lane_rows / 2], 2);
    }
#pragma unroll
    for (int r = 0; r < lane_rows / 4; r++) {
      const int mine = t & 1 ? half[r + lane_rows / 4] : half[r], other = t & 1 ? half[r] : half[r + lane_rows / 4];
      sum[r / 2][r % 2] = mine + __shfl_xor_sync(~0u, other, 1);
    }
  }
};

/* Scales and zeros of a chunk, for the lane's own row tiles, as they are packed. */
template <class T>
struct chunk_raw {
  raw_numbers<T::General> of[T::own_tiles];

  __device__ chunk_raw(const lookup_args &a, int tile, int chunk, int lane) {
    const int group = min(chunk >> a.numbers.group_shift, a.numbers.last_group);
#pragma unroll
    for (int i = 0; i < T::own_tiles; i++) {
      const int64_t row_tile = min(tile * T::row_tiles + lane % 4 * T::own_tiles + i, a.row_tiles - 1);
      load_raw(a.numbers, a.numbers.scales + row_tile * a.numbers.scale_row,
               a.numbers.zeros + row_tile * a.numbers.zero_row, group, lane / 4, of[i]);
    }
  }
};

/* A warp's sums for a super tile: of rows g and g + 8 of the lane's own row tiles. */
template <class T>
struct tile_totals {
  float total[T::own_tiles][2];

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < T::own_tiles; i++) total[i][0] = total[i][1] = 0.0f;
  }

  __device__ void add(const lookup_args &a, const chunk_raw<T> &raw, const chunk_sums &x,
                      const int (&sum)[T::own_tiles][2]) {
#pragma unroll
    for (int i = 0; i < T::own_tiles; i++) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const lookup_scaling s = scaling_of(a.numbers, raw.of[i], half);
        float &all = total[i][half];
        if (T::General) {
          const float product = (float)(sum[i][half] - s.center * x.sum) * x.unit;
          all = fmaf(product, s.scale, fmaf((float)x.sum * x.unit, s.shift, all));
        } else {
          all = fmaf(((float)(sum[i][half] - x.centered) + x.rest) * x.unit, s.scale, all);
        }
      }
    }
  }

  __device__ void store(float *slot, int lane, float factor) const {
#pragma unroll
    for (int i = 0; i < 2 * T::own_tiles; i++) {
      slot[(lane % 4 * T::own_tiles + i / 2) * LPG_TILE_ROWS + i % 2 * 8 + lane / 4] = total[i / 2][i % 2] * factor;
    }
  }
};

/* ---- the kernel ---- */

template <class T>
__global__ void __launch_bounds__(T::threads, 1) lookup_kernel(const __grid_constant__ lookup_args a) {
  extern __shared__ __align__(1024) uint8_t memory[];
  const lpg_lookup_plan &p = a.plan;
  let_next_start();
  if (a.epilogue.device_alpha) wait_for_previous(); /* reads_product() reads it */
  const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
  const int slice = p.slices > 1 ? blockIdx.x % (unsigned)p.slices : 0;
  const int group = p.slices > 1 ? blockIdx.x / (unsigned)p.slices : blockIdx.x;
  const int first_tile = first_of(p.group, group), tiles = count_of(p.group, group);
  const int first_block = first_of(p.slice, slice), blocks = reads_product(a.epilogue) ? count_of(p.slice, slice) : 0;
  const unsigned all = (unsigned)(tiles * blocks);
  const lpg_shares shares = {(int)(all / T::warps), (int)(all % T::warps)};
  const int first = first_of(shares, warp), chunks = blocks * T::chunks;
  int left = count_of(shares, warp), tile = left > 0 ? first / blocks : 0, block = first - tile * blocks;

  if (p.slices > 1) cluster_arrive(); /* before the others may write here */
  wait_for_previous();
  table_task<T> task;
  if (warp < 2 * chunks) task.load(a, warp, first_block * T::chunks, lane);
  vector_words<T> next = {};
  vector_stream<T> stream(a, first_tile, tile, block, left, first_block, blocks, lane);
  stream.load(next);
  make_tables<T>(a, task, first_block * T::chunks, chunks, warp, lane, memory);
  __syncthreads();

  const uint32_t tables = (uint32_t)keep((int)shared_address(memory) + lane * 4);
  const chunk_sums *const numbers = (const chunk_sums *)(memory + p.numbers);
  const float factor = T::General ? 1.0f : 0.5f * a.numbers.step;
  tile_totals<T> totals;
  totals.clear();
#pragma unroll 1
  for (; left > 0; left--, block++) {
    const vector_words<T> words = next;
    stream.load(next);
#pragma unroll
    for (int c = 0; c < T::chunks; c++) {
      const int chunk = block * T::chunks + c;
      const chunk_raw<T> raw(a, first_tile + tile, first_block * T::chunks + chunk, lane);
      int sum[T::own_tiles][2];
      lookup_sums<T>(words, c, tables + chunk * LPG_LOOKUP_TABLES).add_lanes(lane % 4, sum);
      totals.add(a, raw, numbers[chunk], sum);
    }
    if (block < blocks - 1 && left > 1) continue;
    totals.store((float *)(memory + p.slots + (tile + warp) * p.slot_bytes), lane, factor);
    totals.clear();
    block = -1;
    tile++;
  }
  if (p.slices > 1) cluster_wait(); /* the others have started */
  __syncthreads();
  combine_sums<T>(a, shares, first_tile, tiles, blocks, slice, memory, [](int, int, float sum) { return sum; });
}

}  // namespace
}  // namespace lpg
