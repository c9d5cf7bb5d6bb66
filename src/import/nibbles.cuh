/* The kernel that packs words of eight nibbles, as GPTQ and AWQ have them, without shared memory.
 *
 * A word of the packed form has eight codes of one row, and so has one of GPTQ's, of other columns; one of AWQ's has
 * eight rows of one column. So a thread loads what makes whole words of the packed form, and exchanges nibbles between
 * them, and bytes: some 40 instructions for 64 codes. */
#pragma once

#include "../pack/pack_rows.cuh"
#include "at.h"
#include "device.h"
#include "nibbles.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Scales and zeros of both formats, as classes that store_numbers takes: scales of two bytes with rows side by side. */
template <int Bits>
struct gptq_numbers {
  static constexpr bool has_supers = false;
  static __device__ uint32_t number(const lpg_at &at, lpg_section_id id, int64_t n, int64_t group) {
    return id == LPG_SECTION_ZEROS ? lpg_gptq_zero(&at, Bits, n, group)
                                   : lpg_load16(at.scales.data + (group * at.n + n) * 2);
  }
};

struct awq_numbers {
  static constexpr bool has_supers = false;
  static __device__ uint32_t number(const lpg_at &at, lpg_section_id id, int64_t n, int64_t group) {
    return id == LPG_SECTION_ZEROS ? lpg_awq_zero(&at, n, group) : lpg_load16(at.scales.data + (group * at.n + n) * 2);
  }
};

/* The low nibbles of both words, and the high ones: those of `first` in the lower half of each byte. */
__device__ inline void part_nibbles(uint32_t first, uint32_t second, uint32_t *low, uint32_t *high) {
  constexpr uint32_t mask = 0x0f0f0f0fu;
  *low = (first & mask) | (second << 4 & ~mask);
  *high = (first >> 4 & mask) | (second & ~mask);
}

/* The words that all 16 rows have of a tile for some of its lanes: of unit u, row i of the first eight and that 8 rows
 * further. What `i` counts, rows or lanes, the forms know. */
template <int Count>
struct lane_words {
  uint32_t word[Count][4]; /* as they lie: unit 0 of both rows, then unit 1 */
};

/* Stores the vectors of lanes `step` apart, at the first one's place. Returns their part of the hash. */
template <int Step, int Count>
__device__ inline unsigned long long store_lanes(const lane_words<Count> &words, uint32_t flips, uint8_t *to,
                                                 uint64_t key) {
  unsigned long long hash = 0;
#pragma unroll
  for (int i = 0; i < Count; i++) {
    const uint32_t *w = words.word[i];
    const uint4 vector = make_uint4(w[0] ^ flips, w[1] ^ flips, w[2] ^ flips, w[3] ^ flips);
    __stcs((uint4 *)(to + i * Step * 16), vector);
    hash += hash_vector(vector, key + (uint64_t)(i * Step * 2) * LPG_HASH_STEP);
  }
  return hash;
}

/* AWQ: a thread takes the columns of a lane's t, of all rows of a tile: two neighbouring words of each column. */
struct awq_nibbles {
  using numbers = awq_numbers;
  static constexpr int row_tiles = LPG_NIBBLES_AWQ_TILES; /* 64 bytes of each column */
  static __device__ int tile_of(int lane) { return lane / 4; }

  static __device__ unsigned long long pack(const lpg_at &at, int64_t n, int64_t k, int lane, uint32_t flips,
                                            uint8_t *to, uint64_t key) {
    constexpr int row_of_byte[4] = {0, 4, 1, 5}; /* of its low nibble; the high one's is two further */
    const int64_t line = at.line * 4;
    const uint8_t *from = at.codes + (k + lane % 4 * 2) * line + n / 2;
    uint2 both[4][4];
#pragma unroll
    for (int step = 0; step < 4; step++) {
#pragma unroll
      for (int c = 0; c < 4; c++) {
        both[step][c] = __ldg((const uint2 *)(from + (step * LPG_STEP_K + c / 2 + c % 2 * 8) * line));
      }
    }
    lane_words<8> words;
#pragma unroll
    for (int i = 0; i < 4; i++) { /* i / 2: the unit, i % 2: the half of the rows */
      uint32_t low[4], high[4];
#pragma unroll
      for (int c = 0; c < 4; c++) {
        const uint2 first = both[i / 2 * 2][c], second = both[i / 2 * 2 + 1][c];
        part_nibbles(i % 2 ? first.y : first.x, i % 2 ? second.y : second.x, &low[c], &high[c]);
      }
      transpose(low);
      transpose(high);
#pragma unroll
      for (int b = 0; b < 4; b++) {
        words.word[row_of_byte[b]][i] = low[b];
        words.word[row_of_byte[b] + 2][i] = high[b];
      }
    }
    return store_lanes<4>(words, flips, to + lane % 4 * 16, key + (uint64_t)(lane % 4 * 2) * LPG_HASH_STEP);
  }
};

/* GPTQ: a thread takes rows g and g + 8 of a tile, for which four lanes have words. */
struct gptq_nibbles {
  using numbers = gptq_numbers<4>;
  static constexpr int row_tiles = LPG_NIBBLES_GPTQ_TILES;
  static __device__ int tile_of(int lane) { return lane / 8; }

  static __device__ unsigned long long pack(const lpg_at &at, int64_t n, int64_t k, int lane, uint32_t flips,
                                            uint8_t *to, uint64_t key) {
    constexpr int words_k = lpg_tile_k(4) / 8; /* of a tile's row */
    const int64_t line = at.line * 4;
    const uint8_t *from = at.codes + k / 8 * line + (n + lane % 8) * 4;
    uint32_t row[2][words_k];
#pragma unroll
    for (int w = 0; w < words_k; w++) {
      row[0][w] = lpg_load32(from + w * line);
      row[1][w] = lpg_load32(from + w * line + LPG_TILE_ROWS / 2 * 4);
    }
    lane_words<4> words;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const uint32_t *w = row[i % 2] + i / 2 * 4; /* two steps of two words: columns 0 to 7 and 8 to 15 */
      uint32_t codes[4];
      part_nibbles(w[0], w[2], &codes[0], &codes[2]);
      part_nibbles(w[1], w[3], &codes[1], &codes[3]);
      transpose(codes);
#pragma unroll
      for (int t = 0; t < 4; t++) words.word[t][i] = codes[t];
    }
    return store_lanes<1>(words, flips, to + lane % 8 * 64, key + (uint64_t)(lane % 8 * 8) * LPG_HASH_STEP);
  }
};

/* A block takes row tiles of a warp's, and as many warps their columns in turn. Whole tiles only, and words that are
 * aligned: the host has seen to it. */
template <class Form>
__global__ void __launch_bounds__(256, 3) pack_nibbles_kernel(const __grid_constant__ lpg_rows_args a) {
  constexpr int bits = 4, warps = 8, tile_k = lpg_tile_k(bits), tiles = chunk_k / tile_k;
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const int64_t first_tile = (int64_t)blockIdx.y * Form::row_tiles, row_tile = first_tile + Form::tile_of(lane);
  const int64_t first = (int64_t)blockIdx.x * a.chunks * tiles, end = min(first + a.chunks * tiles, a.k_tiles);
  const int64_t at = lpg_tile_offset(bits, a.k_tiles, row_tile, first + warp);
  const int64_t n = a.first_source_row + row_tile * LPG_TILE_ROWS;
  const uint32_t flips = a.flip * 0x11111111u;
  uint8_t *to = a.codes + at;
  uint64_t key = lpg_hash_key((uint64_t)(a.first_byte + at) / 8);
  unsigned long long hash = 0;
  if (row_tile * LPG_TILE_ROWS < a.rows) {
#pragma unroll 1
    for (int64_t tile = first + warp; tile < end; tile += warps) {
      hash += Form::pack(a.at, n, a.first_column + tile * tile_k, lane, flips, to, key);
      to += next_tile<bits, warps>::bytes;
      key += next_tile<bits, warps>::key;
    }
  }
  const int64_t row0 = (first_tile + warp % Form::row_tiles) * LPG_TILE_ROWS;
  constexpr int parts = warps / Form::row_tiles; /* warps that have the numbers of one row tile */
  const int64_t share = lpg_ceil_div(end - first, (int64_t)parts),
                from = min(first + warp / Form::row_tiles * share, end);
  const int64_t stop = min(from + share, end);
  if (row0 < a.rows && from < stop) {
    store_numbers<typename Form::numbers, 32>(a, a.at, row0, (uint32_t)(from * tile_k), (uint32_t)(stop * tile_k),
                                              stop == a.k_tiles);
  }
  if (a.found) add_hash(a.found->hash, hash);
}

}  // namespace
}  // namespace lpg
