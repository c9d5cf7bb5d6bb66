/* The lookup kernels: a row of X by integers of 1 to 4 bits, whose bits select sums of activations from tables in
 * shared memory (docs/lut.md).
 *
 *   make tables of the slice of X while the first weights are on their way
 *   every warp for its even share of blocks, a chunk of 128 columns at a time:
 *     the planes of bits of 16 rows a lane, the upper one first; every nibble is the address of a sum
 *     what is found is added up, before the next plane doubled, and added to the other lanes'. All are exact integers
 *     sums += scale * (what was found - center * sum of X)
 *   combine the warps' and the parts of K' sums in a fixed order, apply the epilogue, store
 *
 * Every lane has tables of its own in its own bank of shared memory: a lookup of 32 lanes takes one cycle, whatever
 * they look up. */
#pragma once

#include "../../kernels/epilogue/split_k_warps.cuh"
#include "../../kernels/prim/logic.cuh"
#include "../../kernels/prim/pdl.cuh"
#include "../../kernels/prim/table.cuh"
#include "lut_prepare.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- weights on their way ---- */

/* Scales and zeros of a lane's own rows' tile. */
template <class T>
struct own_scales {
  const uint8_t *scales, *zeros;

  own_scales() = default;
  __device__ own_scales(const lut_args &a, int tile, int lane) {
    const int64_t own = min(tile * T::row_tiles + lane % 4 * T::own_rows / 2, a.row_tiles - 1);
    scales = a.scale_data.scales + own * a.scale_data.scale_row;
    zeros = a.scale_data.zeros + own * a.scale_data.zero_row;
  }

  /* As they are packed. */
  __device__ void load(const lut_args &a, int chunk, int lane, raw_scales<T::General> &raw) const {
    load_raw(a.scale_data, scales, zeros, min(chunk >> a.scale_data.group_shift, a.scale_data.last_group), lane / 4,
             raw);
  }
};

/* What a lane has of a block: words of each row tile, of its rows g and g + 8 in turn, where lanes t = 2 and 3 have the
 * second half of the row tiles first; and numbers of its own rows. */
template <class T>
struct block_words {
  uint32_t word[T::row_tiles][4 * T::vectors];
  raw_scales<T::General> scale_data[T::chunks];

  /* The planes of chunk `chunk`, of row g (half 0) or g + 8. */
  __device__ void planes(int tile, int half, int chunk, uint32_t (&plane)[T::Bits]) const {
#pragma unroll
    for (int i = 0; i < T::Bits; i++) plane[i] = word[tile][2 * (chunk * T::Bits + i) + half];
    lpg_words_to_planes(T::Bits, plane);
  }
};

/* What a warp loads next. */
template <class T>
struct block_stream : part_cursor {
  const lut_args &a;
  int lane, last;     /* the last row tile of the super tile */
  int chunk, vectors; /* the next block's first chunk; vectors of a row tile from it on */
  const uint8_t *codes;
  own_scales<T> scale_data;

  __device__ block_stream(const lut_args &a, const warp_part &share, int lane) : part_cursor(share), a(a), lane(lane) {
    if (left > 0) start_tile(share.block);
  }

  __device__ void start_tile(int block) {
    const int at = first_block + block, row_tile = tile * T::row_tiles;
    last = min(T::row_tiles, a.row_tiles - row_tile) - 1;
    chunk = at * T::chunks;
    vectors = a.row_vectors - at * T::vectors;
    codes = a.codes + (int64_t)row_tile * a.row_bytes + (int64_t)at * (T::vectors * 512) + lane * 16;
    scale_data = own_scales<T>(a, tile, lane);
  }

  __device__ void load(block_words<T> &to) {
    if (left <= 0) return;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) { /* what is not there repeats the last */
      const uint8_t *const from = codes + min(r ^ (lane >> 1 & 1) * (T::row_tiles / 2), last) * a.row_bytes;
#pragma unroll
      for (int v = 0; v < T::vectors; v++) {
        if (v == 0 || T::whole) {
          load16(from + v * 512, to.word[r] + 4 * v);
        } else { /* only columns that X does not have are missing */
          load16_if_more(vectors, v, from + v * 512, to.word[r] + 4 * v);
        }
      }
    }
#pragma unroll
    for (int c = 0; c < T::chunks && T::ahead; c++) scale_data.load(a, chunk + c, lane, to.scale_data[c]);
    codes += T::vectors * 512;
    chunk += T::chunks;
    vectors -= T::vectors;
    if (next()) start_tile(0);
  }
};

/* ---- lookups ---- */

/* The sums that nibbles 2 Byte and 2 Byte + 1 of a plane select; even, odd: its nibbles, each where it is in its byte.
 * tables: of the chunk, for the lane. Entries are 128 bytes apart, and a product of bytes makes the address. */
template <int Byte>
__device__ inline int two_entries(uint32_t even, uint32_t odd, uint32_t tables) {
  constexpr int table_bytes = LPG_TABLE_ENTRIES * LPG_LANES * 4;
  return read_entry<2 * Byte * table_bytes>(__dp4a(even, 128u << (8 * Byte), tables)) +
         read_entry<(2 * Byte + 1) * table_bytes>(__dp4a(odd, 8u << (8 * Byte), tables));
}

__device__ inline int entries_of(uint32_t plane, uint32_t tables) {
  const uint32_t even = plane & 0x0f0f0f0fu, odd = plane & 0xf0f0f0f0u;
  return two_entries<0>(even, odd, tables) + two_entries<1>(even, odd, tables) + two_entries<2>(even, odd, tables) +
         two_entries<3>(even, odd, tables);
}

/* ---- scales and zeros ---- */

/* What sums of a row become: products with the codes counted from the half code next to the zero (or next to where a
 * minimum makes 0), as integers, so that weights that nearly cancel stay exact; and what is left of the zero. */
struct lut_scaling {
  float scale, shift;
  int center; /* from the middle of the codes */
};

/* Of row g (half 0) or g + 8; fixed zeros are in the sums already. */
__device__ inline lut_scaling scaling_of(const chunk_scales_args &a, const raw_scales<false> &raw, int half) {
  const __half2 two = *(const __half2 *)&raw.scales;
  const float scale = half ? __high2float(two) : __low2float(two);
  return {scale, 0.0f, 0};
}

__device__ inline lut_scaling scaling_of(const chunk_scales_args &a, const raw_scales<true> &raw, int half) {
  const float scale = a.scales ? scale_value(a.scale_type, half ? raw.scale.y : raw.scale.x) : 1.0f;
  const float step = 0.5f * a.step, middle = 0.5f * a.most_center;
  if (a.zero == chunk_zero_fixed) return {scale * step, scale * step * a.rest, (int)(a.center - middle)};
  const float zero = scale_value(a.zero_type, half ? raw.zero.y : raw.zero.x);
  const float level = a.zero == chunk_zero_minimum ? __fdividef(-zero, scale) : zero;
  const float center = fminf(fmaxf(rintf((level - a.offset) / step), 0.0f), a.most_center);
  const float value = fmaf(center, step, a.offset);
  const float shift = a.zero == chunk_zero_minimum ? fmaf(value, scale, zero) : scale * (value - zero);
  return {scale * step, shift, (int)(center - middle)};
}

/* What is found in the tables of a chunk, for all rows. */
template <class T>
struct lut_sums {
  int found[T::lane_rows];

  __device__ lut_sums(const block_words<T> &words, int chunk, uint32_t tables) {
#pragma unroll
    for (int r = 0; r < T::lane_rows; r++) {
      uint32_t plane[T::Bits];
      words.planes(r / 2, r % 2, chunk, plane);
      found[r] = entries_of(plane[T::Bits - 1], tables);
#pragma unroll
      for (int bit = T::Bits - 2; bit >= 0; bit--) found[r] += found[r] + entries_of(plane[bit], tables);
    }
  }

  /* Of all lanes of a row. Lane t gets those of its own rows: the lanes halve what they have, twice. */
  __device__ void add_lanes(int t, int (&sum)[T::own_rows]) const {
    int half[T::lane_rows / 2];
#pragma unroll
    for (int r = 0; r < T::lane_rows / 2; r++) {
      half[r] = found[r] + __shfl_xor_sync(~0u, found[r + T::lane_rows / 2], 2);
    }
#pragma unroll
    for (int r = 0; r < T::own_rows; r++) {
      const int mine = t & 1 ? half[r + T::own_rows] : half[r], other = t & 1 ? half[r] : half[r + T::own_rows];
      sum[r] = mine + __shfl_xor_sync(~0u, other, 1);
    }
  }
};

/* A warp's sums for the lane's own rows of a super tile: rows g and g + 8 of one row tile, or one of both. */
template <class T>
struct own_sums {
  float total[T::own_rows];

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < T::own_rows; i++) total[i] = 0.0f;
  }

  __device__ void add(const chunk_scales_args &a, const raw_scales<T::General> &raw, const chunk_sums &x, int t,
                      const int (&sum)[T::own_rows]) {
#pragma unroll
    for (int i = 0; i < T::own_rows; i++) {
      const lut_scaling s = scaling_of(a, raw, (t * T::own_rows + i) % 2);
      float &all = total[i];
      if (T::General) {
        const float product = (float)(sum[i] - s.center * x.sum) * x.unit;
        all = fmaf(product, s.scale, fmaf((float)x.sum * x.unit, s.shift, all));
      } else {
        all = fmaf(((float)(sum[i] - x.centered) + x.rest) * x.unit, s.scale, all);
      }
    }
  }

  __device__ void store(float *slot, int lane, float factor) const {
#pragma unroll
    for (int i = 0; i < T::own_rows; i++) {
      slot[(lane % 4 * T::own_rows + i) * (LPG_TILE_ROWS / 2) + lane / 4] = total[i] * factor;
    }
  }
};

/* ---- the kernel ---- */

template <class T>
__global__ void __launch_bounds__(T::threads, 1) lut_kernel(const __grid_constant__ lut_args a) {
  extern __shared__ __align__(1024) uint8_t memory[];
  const lpg_lut_gpu_plan &p = a.plan;
  pdl_launch_next();
  if (a.epilogue.device_alpha) pdl_wait(); /* reads_product() reads it */
  const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
  const warp_part share(p, T::warps, warp, reads_product(a.epilogue));
  const int first_chunk = share.first_block * T::chunks, chunks = share.blocks * T::chunks;
  int left = share.left, tile = share.tile, block = share.block;

  if (p.split_k > 1) cluster_arrive(); /* before the others may write here */
  pdl_wait();
  table_task<T> task;
  if (warp < 2 * chunks) task.load(a, warp, first_chunk, lane);
  block_words<T> next = {};
  block_stream<T> stream(a, share, lane);
  stream.load(next);
  make_tables<T>(a, task, first_chunk, chunks, warp, lane, memory);
  __syncthreads();

  const uint32_t tables = shared_address(memory) + lane * 4;
  const chunk_sums *const scale_data = (const chunk_sums *)(memory + p.scale_data);
  const float factor = T::General ? 1.0f : 0.5f * a.scale_data.step;
  own_sums<T> rows;
  rows.clear();
#pragma unroll 1
  for (; left > 0; left--, block++) {
    block_words<T> words = next;
    stream.load(next);
    const uint32_t at = keep(tables + block * (T::chunks * LPG_LUT_GPU_TABLES)); /* lookups come after those loads */
#pragma unroll
    for (int c = 0; c < T::chunks; c++) {
      const int chunk = block * T::chunks + c;
      int sum[T::own_rows];
      if (!T::ahead)
        own_scales<T>(a, share.first_tile + tile, lane).load(a, first_chunk + chunk, lane, words.scale_data[c]);
      lut_sums<T>(words, c, at + c * LPG_LUT_GPU_TABLES).add_lanes(lane % 4, sum);
      rows.add(a.scale_data, words.scale_data[c], scale_data[chunk], lane % 4, sum);
    }
    if (block < share.blocks - 1 && left > 1) continue;
    rows.store((float *)(memory + p.slots + (tile + warp) * p.slot_bytes), lane, factor);
    rows.clear();
    block = -1;
    tile++;
  }
  if (p.split_k > 1) cluster_wait(); /* the others have started */
  __syncthreads();
  combine_sums<T>(a, share, memory, [](int, int, float sum) { return sum; });
}

}  // namespace
}  // namespace lpg
