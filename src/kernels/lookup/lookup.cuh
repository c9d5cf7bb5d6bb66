/* The lookup kernels: one or two rows of X by integers of 1, 2 and 4 bits, whose nibbles select sums of activations
 * from tables, with byte permutations (docs/lut.md).
 *
 *   make tables of the slice of X, in shared memory, while the first weights are on their way
 *   every warp for its even share of blocks:
 *     nibbles of four rows side by side, the same one of each row: a selector
 *     the table of these columns to registers, for 16 rows
 *     every digit by two byte permutations: where bit 3 of the nibble is clear, and where it is set
 *     bytes times 1 and 128, on the int8 tensor cores, which also tell four rows apart and add four lanes up
 *     after a chunk: sums += scale * (products - center * sum of X)
 *   combine the warps' and the slices' sums in a fixed order, apply the epilogue, store
 *
 * Half a table serves both halves: what a selector with its bits turned round finds counts negative. A byte permutation
 * repeats bit 7 of the byte that it finds where bit 3 of the nibble is set. With digits of 7 bits that is 0: so each of
 * the two finds nothing where the other one is meant. The top digit has a sign; stored with 63 on it, it counts
 * negative as digit - 63 ... and for the first permutation it is stored as a negative byte, digit - 64, of which -1 is
 * left where nothing is meant. So either way the two together have the digit less 64: a constant a lookup. */
#pragma once

#include "../prim/follow.cuh"
#include "../prim/mma.cuh"
#include "../slot_sums.cuh"
#include "lookup_prepare.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- weights on their way ---- */

/* A lane's words of a vector of each row tile: rows g and g + 8 of the first unit, then of the second. */
template <class T>
struct vector_words {
  uint32_t word[T::row_tiles][4];
};

/* What a warp loads next. */
template <class T>
struct vector_stream {
  const lookup_args &a;
  int tile, left_of_tile, left; /* the next vector's super tile; vectors of it, and of the share, that are left */
  int first_block, blocks;      /* of the block of threads */
  int lane, last, vectors;      /* the last row tile of the super tile; vectors of a row tile from the next one on */
  const uint8_t *codes;

  __device__ vector_stream(const lookup_args &a, int first_tile, int tile, int block, int left, int first_block,
                           int blocks, int lane)
      : a(a), tile(first_tile + tile), left(left * T::vectors), first_block(first_block), blocks(blocks), lane(lane) {
    if (left > 0) start_tile(block);
  }

  __device__ void start_tile(int block) {
    const int at = (first_block + block) * T::vectors, row_tile = tile * T::row_tiles;
    left_of_tile = (blocks - block) * T::vectors;
    last = min(T::row_tiles, a.row_tiles - row_tile) - 1;
    vectors = a.row_vectors - at;
    codes = a.codes + (int64_t)row_tile * a.row_bytes + (int64_t)at * 512 + lane * 16;
  }

  __device__ void load(vector_words<T> &to) {
    if (left <= 0) return;
    const uint8_t *const from = vectors > 0 ? codes : codes - 512; /* what is not there repeats the last */
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) load16(from + min(r, last) * a.row_bytes, to.word[r]);
    codes += 512;
    vectors--;
    left--;
    if (--left_of_tile == 0) {
      tile++;
      if (left > 0) start_tile(0);
    }
  }
};

/* ---- lookups ---- */

/* Bytes of (low, high) that the nibbles of the selector's low half pick; a nibble with bit 3: its bit 7 eight times. */
__device__ inline uint32_t pick(uint32_t low, uint32_t high, uint32_t selector) {
  uint32_t bytes;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(low), "r"(high), "r"(selector));
  return bytes;
}

/* The nibbles of one unit, four rows side by side. */
template <class T>
struct unit_nibbles {
  uint32_t first[T::sets][2], second[T::sets][2]; /* rows g, g + 8 of a row tile, and of the next; even and odd ones */

  __device__ void take(const vector_words<T> &from, int unit) {
#pragma unroll
    for (int s = 0; s < T::sets; s++) {
      const uint32_t *const a = from.word[2 * s] + 2 * unit, *const b = from.word[2 * s + 1] + 2 * unit;
      first[s][0] = lpg_even_nibbles(a[0], a[1]);
      first[s][1] = lpg_odd_nibbles(a[0], a[1]);
      second[s][0] = lpg_even_nibbles(b[0], b[1]);
      second[s][1] = lpg_odd_nibbles(b[0], b[1]);
    }
  }
};

/* What bytes count: B of the products. Byte i of a selector's four is row i of a set, whose sums are in column i, or in
 * column 4 + i for the second set of a pair. Of A, the first half has digits that count 1, the second those of 128. */
struct byte_weights {
  uint32_t plus[2], minus[2], high[2]; /* 1, -1; 128 and -128 are the same bits */

  __device__ explicit byte_weights(int lane) {
    const int g = lane / 4;
#pragma unroll
    for (int s = 0; s < 2; s++) {
      const uint32_t mask = g / 4 == s ? 0xffu << (8 * (g % 4)) : 0u;
      plus[s] = mask & 0x01010101u;
      minus[s] = mask;
      high[s] = mask & 0x80808080u;
    }
  }
};

/* The sums of a chunk as the tensor cores have them. Bits of a float that is `zero` more: an integer is added to its
 * mantissa. Lane (g, t) has of pair p row tile 4 p + t: rows g and g + 8, of the two lower digits, then of the upper
 * ones. */
template <class T>
struct lookup_sums {
  static constexpr float zero = 12582912.0f; /* 1.5 * 2^23 */
  int sum[T::halves][4];

  __device__ void clear() {
#pragma unroll
    for (int p = 0; p < T::halves; p++) {
#pragma unroll
      for (int i = 0; i < 4; i++) sum[p][i] = 0x4b400000;
    }
  }

  __device__ float low(int p, int row) const { return __int_as_float(sum[p][row]) - zero; }
  __device__ float high(int p, int row) const { /* less 64 * 128 a lookup */
    return __int_as_float(sum[p][2 + row]) - (zero - (float)(64 * 128 * 32 * T::Bits));
  }
};

/* Looks up one nibble of all rows, for each row of X. tables: of the nibble, for the lane. */
template <class T>
__device__ inline void look_up(const unit_nibbles<T> &nibbles, int odd, uint32_t byte, const uint8_t *tables,
                               int x_stride, const byte_weights &weights, lookup_sums<T> (&sums)[T::Columns]) {
  uint32_t selector[T::sets];
#pragma unroll
  for (int s = 0; s < T::sets; s++) selector[s] = pick(nibbles.first[s][odd], nibbles.second[s][odd], byte);
#pragma unroll
  for (int c = 0; c < T::Columns; c++) {
    const uint4 lower = ((const uint4 *)(tables + c * x_stride))[0],
                upper = ((const uint4 *)(tables + c * x_stride))[1];
    const uint32_t top_low = upper.z + LPG_TOP_TO_FIRST * 0x01010101u;
    const uint32_t top_high = upper.w + LPG_TOP_TO_FIRST * 0x01010101u;
#pragma unroll
    for (int s = 0; s < T::sets; s++) {
      const uint32_t at = selector[s], turned = ~at;
      int(&sum)[4] = sums[c].sum[s / 2];
      const uint32_t clear[4] = {pick(lower.x, lower.y, at), pick(upper.x, upper.y, at), pick(lower.z, lower.w, at),
                                 pick(top_low, top_high, at)};
      mma_i8::multiply_by_unsigned(sum, clear, weights.plus[s % 2], weights.high[s % 2]);
      const uint32_t set[4] = {pick(lower.x, lower.y, turned), pick(upper.x, upper.y, turned),
                               pick(lower.z, lower.w, turned), pick(upper.z, upper.w, turned)};
      mma_i8::multiply(sum, set, weights.minus[s % 2], weights.high[s % 2]);
    }
  }
}

/* ---- scales and zeros ---- */

/* What sums of a row become: the products with the codes counted from the half code next to the zero (or next to where
 * a minimum makes 0), in two parts that are exact, so that weights that nearly cancel stay exact. */
struct lookup_scaling {
  float scale, shift, center;

  /* With fixed zeros the chunk's numbers have center and rest in them. */
  __device__ float add(const raw_numbers<false> &, const chunk_sums &x, float low, float high, float total) const {
    const float product = fmaf((float)(1 << low_bits), high - x.high, low - x.low);
    return fmaf((product + x.sum) * x.unit, scale, total);
  }

  __device__ float add(const raw_numbers<true> &, const chunk_sums &x, float low, float high, float total) const {
    const float part = fmaf(-center, x.low, low);
    const float product = fmaf((float)(1 << low_bits), fmaf(-center, x.high, high), part);
    return fmaf(product * x.unit, scale, fmaf(x.sum * x.unit, shift, total));
  }
};

/* Of row g (half 0) or g + 8. Centers count from the middle of the codes, as the tables do. */
__device__ inline lookup_scaling scaling_of(const chunk_numbers_args &, const raw_numbers<false> &raw, int half) {
  const __half2 two = *(const __half2 *)&raw.scales;
  return {half ? __high2float(two) : __low2float(two), 0.0f, 0.0f};
}

__device__ inline lookup_scaling scaling_of(const chunk_numbers_args &a, const raw_numbers<true> &raw, int half) {
  const float scale = a.scales ? number_value(a.scale_type, half ? raw.scale.y : raw.scale.x) : 1.0f;
  const float step = 0.5f * a.step, middle = 0.5f * a.most_center;
  if (a.zero == chunk_zero_fixed) return {scale * step, scale * step * a.rest, a.center - middle};
  const float zero = number_value(a.zero_type, half ? raw.zero.y : raw.zero.x);
  const float level = a.zero == chunk_zero_minimum ? __fdividef(-zero, scale) : zero;
  const float center = fminf(fmaxf(rintf((level - a.offset) / step), 0.0f), a.most_center);
  const float value = fmaf(center, step, a.offset);
  const float shift = a.zero == chunk_zero_minimum ? fmaf(value, scale, zero) : scale * (value - zero);
  return {scale * step, shift, center - middle};
}

/* A chunk's scales and zeros of the lane's rows, as they are packed. */
template <class T>
struct chunk_raw {
  raw_numbers<T::General> pair[T::halves];

  __device__ void load(const lookup_args &a, int tile, int chunk, int lane) {
    const int group = min(chunk >> a.numbers.group_shift, a.numbers.last_group);
#pragma unroll
    for (int p = 0; p < T::halves; p++) {
      const int64_t row_tile = min(tile * T::row_tiles + 4 * p + lane % 4, a.row_tiles - 1);
      load_raw(a.numbers, a.numbers.scales + row_tile * a.numbers.scale_row,
               a.numbers.zeros + row_tile * a.numbers.zero_row, group, lane / 4, pair[p]);
    }
  }
};

/* A warp's sums for a super tile. */
template <class T>
struct tile_totals {
  float total[T::Columns][T::halves][2];

  __device__ void clear() {
#pragma unroll
    for (int c = 0; c < T::Columns; c++) {
#pragma unroll
      for (int p = 0; p < T::halves; p++) total[c][p][0] = total[c][p][1] = 0.0f;
    }
  }

  /* numbers: of the first row of X. */
  __device__ void add(const lookup_args &a, const chunk_raw<T> &raw, const uint8_t *numbers,
                      const lookup_sums<T> (&sums)[T::Columns]) {
#pragma unroll
    for (int c = 0; c < T::Columns; c++) {
      const chunk_sums x = *(const chunk_sums *)(numbers + c * a.plan.x_stride);
#pragma unroll
      for (int p = 0; p < T::halves; p++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
          float &all = total[c][p][half];
          all = scaling_of(a.numbers, raw.pair[p], half)
                    .add(raw.pair[p], x, sums[c].low(p, half), sums[c].high(p, half), all);
        }
      }
    }
  }

  __device__ void store(float *slot, int lane, float factor) const {
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int c = 0; c < T::Columns; c++) {
#pragma unroll
      for (int p = 0; p < T::halves; p++) {
        float *const at = slot + ((4 * p + t) * T::Columns + c) * LPG_TILE_ROWS + g;
        at[0] = total[c][p][0] * factor;
        at[8] = total[c][p][1] * factor;
      }
    }
  }
};

/* Multiplies what a block has of a super tile. x: the tables of the block's first chunk. */
template <class T>
__device__ inline void multiply_block(const lookup_args &a, int tile, int chunk, const uint8_t *x, int lane,
                                      const byte_weights &weights, vector_words<T> &words, vector_stream<T> &stream,
                                      tile_totals<T> &totals) {
  constexpr int chunk_units = T::Bits; /* a vector has two units */
  lookup_sums<T> sums[T::Columns];
  chunk_raw<T> raw;
#pragma unroll 1
  for (int v = 0; v < T::vectors; v++) {
    unit_nibbles<T> nibbles[2];
    nibbles[0].take(words, 0);
    nibbles[1].take(words, 1);
    stream.load(words);
#pragma unroll
    for (int u = 0; u < 2; u++) {
      const int unit = 2 * v + u;
      if (unit % chunk_units == 0) {
        raw.load(a, tile, chunk + unit / chunk_units, lane);
#pragma unroll
        for (int c = 0; c < T::Columns; c++) sums[c].clear();
      }
      const uint8_t *tables =
          x + unit / chunk_units * T::chunk_bytes + unit % chunk_units * T::unit_bytes + lane % 4 * LPG_TABLE_BYTES;
#pragma unroll 1
      for (uint32_t byte = 0x40; byte < 0x84; byte += 0x11, tables += 8 * LPG_TABLE_BYTES) { /* i and 4 + i */
        look_up<T>(nibbles[u], 0, byte, tables, a.plan.x_stride, weights, sums);
        look_up<T>(nibbles[u], 1, byte, tables + 4 * LPG_TABLE_BYTES, a.plan.x_stride, weights, sums);
      }
      if (unit % chunk_units == chunk_units - 1) {
        totals.add(a, raw, x + unit / chunk_units * T::chunk_bytes + T::Bits * T::unit_bytes, sums);
      }
    }
  }
}

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
  const int first = first_of(shares, warp), chunks = blocks * T::block_chunks;
  int left = count_of(shares, warp), tile = left > 0 ? first / blocks : 0, block = first - tile * blocks;

  if (p.slices > 1) cluster_arrive(); /* before the others may write here */
  wait_for_previous();
  table_task<T> task;
  if (warp < chunks * T::Columns) task.load(a, warp, first_block * T::block_chunks, chunks, lane);
  vector_words<T> words = {};
  vector_stream<T> stream(a, first_tile, tile, block, left, first_block, blocks, lane);
  stream.load(words);
  make_tables<T>(a, task, first_block * T::block_chunks, chunks, warp, lane, memory);
  __syncthreads();

  const byte_weights weights(lane);
  const float factor = T::General ? 1.0f : 0.5f * a.numbers.step;
  tile_totals<T> totals;
  totals.clear();
#pragma unroll 1
  for (; left > 0; left--, block++) {
    const int chunk = (first_block + block) * T::block_chunks;
    multiply_block<T>(a, first_tile + tile, chunk, memory + block * T::block_chunks * T::chunk_bytes, lane, weights,
                      words, stream, totals);
    if (block < blocks - 1 && left > 1) continue;
    totals.store((float *)(memory + p.slots + (tile + warp) * p.slot_bytes), lane, factor);
    totals.clear();
    block = -1;
    tile++;
  }
  __syncthreads();
  combine_sums<T>(a, shares, first_tile, tiles, blocks, slice, memory);
}

}  // namespace
}  // namespace lpg
