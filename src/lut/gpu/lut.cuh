/* The GPU's lut: one row of X by integers of 1 to 4 bits, whose bits select sums of X from tables in shared memory
 * (docs/lut.md).
 *
 *   make the tables of the CTA's part of X while the first weights are loaded
 *   each warp, for the k blocks of its run, a chunk of 128 k at a time:
 *     bit planes of 16 rows a lane, the upper one first; every nibble is the address of a sum
 *     add up what is found, doubled before the next plane, and add that of the other lanes: all exact integers
 *     sums += scale * (what was found - center * sum of X)
 *   add up the partials of warps, then of CTAs (split-K), in a fixed order; epilogue
 *
 * Every lane has its own copy of the tables, in its own bank of shared memory: a lookup of 32 lanes takes one cycle,
 * whatever they look up. */
#pragma once

#include "../../kernels/epilogue/split_k_warps.cuh"
#include "../../kernels/prim/logic.cuh"
#include "../../kernels/prim/pdl.cuh"
#include "../../kernels/prim/table.cuh"
#include "lut_prepare.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- loads of weights ---- */

/* Scales and zeros of the row tile to which the lane's own rows belong. */
template <class T>
struct own_scales {
  const uint8_t *scales, *zeros;

  own_scales() = default;
  __device__ own_scales(const lut_args &a, int tile, int lane) {
    const int64_t own = min(tile * T::row_tiles + lane % 4 * T::own_rows / 2, a.row_tiles - 1);
    scales = a.scale_data.scales + own * a.scale_data.scale_row;
    zeros = a.scale_data.zeros + own * a.scale_data.zero_row;
  }

  /* Loads them as they are packed. */
  __device__ void load(const lut_args &a, int chunk, int lane, raw_scales<T::General> &raw) const {
    load_raw(a.scale_data, scales, zeros, min(chunk >> a.scale_data.group_shift, a.scale_data.last_group), lane / 4,
             raw);
  }
};

/* What a lane holds of a k block: words of each row tile, of its rows g and g + 8 in turn (lanes t = 2 and 3 have the
 * second half of the row tiles first); and the scales of its own rows. */
template <class T>
struct block_words {
  uint32_t word[T::row_tiles][4 * T::vectors];
  raw_scales<T::General> scale_data[T::chunks];

  /* The bit planes of chunk `chunk`, of row g (half 0) or g + 8 (half 1). */
  __device__ void planes(int tile, int half, int chunk, uint32_t (&plane)[T::Bits]) const {
#pragma unroll
    for (int i = 0; i < T::Bits; i++) plane[i] = word[tile][2 * (chunk * T::Bits + i) + half];
    lpg_words_to_planes(T::Bits, plane);
  }
};

/* The k blocks of a warp's run, in order. */
template <class T>
struct block_stream : part_cursor {
  const lut_args &a;
  int lane, last;     /* last row tile of the super tile */
  int chunk, vectors; /* first chunk of the next k block; vectors that a row tile has from this k block on */
  const uint8_t *codes;
  own_scales<T> scale_data;

  __device__ block_stream(const lut_args &a, const warp_part &part, int lane) : part_cursor(part), a(a), lane(lane) {
    if (left > 0) start_tile(part.block);
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
    for (int r = 0; r < T::row_tiles; r++) { /* row tiles beyond the last repeat it */
      const uint8_t *const from = codes + min(r ^ (lane >> 1 & 1) * (T::row_tiles / 2), last) * a.row_bytes;
#pragma unroll
      for (int v = 0; v < T::vectors; v++) {
        if (v == 0 || T::whole) {
          load16(from + v * 512, to.word[r] + 4 * v);
        } else { /* a missing vector has only k beyond X's */
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

/* The sums that nibbles 2 Byte and 2 Byte + 1 of a plane select. even, odd: these nibbles, each at its place in its
 * byte. tables: the chunk's, at the lane's bank. Entries are 128 bytes apart; a dot product of bytes makes the
 * address. */
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

/* From a row's sum of table entries to weights times X. Codes are counted from the half code next to the zero (or next
 * to where a minimum makes 0), as integers, so that weights that nearly cancel stay exact; `shift` adds what is left of
 * the zero. */
struct lut_scaling {
  float scale, shift;
  int center; /* in half codes, from the middle of the codes */
};

/* Of row g (half 0) or g + 8 (half 1). Fixed zeros are in the chunk's sums already. */
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

/* What one chunk's tables give for all rows of a lane. */
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

  /* Adds up the four lanes of a row. Lane t gets its own rows' sums: twice the lanes exchange half of what they
   * have. */
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

/* A lane's sums for its own rows of a super tile: rows g and g + 8 of one row tile, or one of them. */
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

  __device__ void store(float *partial, int lane, float factor) const {
#pragma unroll
    for (int i = 0; i < T::own_rows; i++) {
      partial[(lane % 4 * T::own_rows + i) * (LPG_TILE_ROWS / 2) + lane / 4] = total[i] * factor;
    }
  }
};

/* ---- the kernel ---- */

template <class T>
__global__ void __launch_bounds__(T::threads, 1) lut_kernel(const __grid_constant__ lut_args a) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  const lpg_lut_gpu_plan &p = a.plan;
  pdl_launch_next();
  if (a.epilogue.device_alpha) pdl_wait(); /* reads_product() reads device_alpha */
  const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
  const warp_part part(p, T::warps, warp, reads_product(a.epilogue));
  const int first_chunk = part.first_block * T::chunks, chunks = part.blocks * T::chunks;
  int left = part.left, tile = part.tile, block = part.block;

  if (p.split_k > 1) cluster_arrive(); /* others may write partials here from now on */
  pdl_wait();
  table_task<T> task;
  if (warp < 2 * chunks) task.load(a, warp, first_chunk, lane);
  block_words<T> next = {};
  block_stream<T> stream(a, part, lane);
  stream.load(next);
  make_tables<T>(a, task, first_chunk, chunks, warp, lane, memory);
  __syncthreads();

  const uint32_t tables = shared_address(memory) + lane * 4;
  const chunk_sums *const x_sums = (const chunk_sums *)(memory + p.scale_data);
  const float factor = T::General ? 1.0f : 0.5f * a.scale_data.step;
  own_sums<T> rows;
  rows.clear();
#pragma unroll 1
  for (; left > 0; left--, block++) {
    block_words<T> words = next;
    stream.load(next);
    const uint32_t at = keep(tables + block * (T::chunks * LPG_LUT_GPU_TABLES)); /* lookups stay behind those loads */
#pragma unroll
    for (int c = 0; c < T::chunks; c++) {
      const int chunk = block * T::chunks + c;
      int sum[T::own_rows];
      if (!T::ahead)
        own_scales<T>(a, part.first_tile + tile, lane).load(a, first_chunk + chunk, lane, words.scale_data[c]);
      lut_sums<T>(words, c, at + c * LPG_LUT_GPU_TABLES).add_lanes(lane % 4, sum);
      rows.add(a.scale_data, words.scale_data[c], x_sums[chunk], lane % 4, sum);
    }
    if (block < part.blocks - 1 && left > 1) continue;
    rows.store((float *)(memory + p.slots + (tile + warp) * p.slot_bytes), lane, factor);
    rows.clear();
    block = -1;
    tile++;
  }
  if (p.split_k > 1) cluster_wait(); /* all CTAs of the cluster have started */
  __syncthreads();
  combine_sums<T>(a, part, memory, [](int, int, float sum) { return sum; });
}

}  // namespace
}  // namespace lpg
