/* The kernel that packs GPTQ's words in an order of columns.
 *
 * Neighbours in the order lie anywhere in a row, and a word has several columns. So a block brings its 16 rows to
 * shared memory first, column by column: byte g of a column has the codes of rows g and g + 8 (of 8 bits they have a
 * byte each). What a lane needs of a column is then one byte. */
#pragma once

#include "../pack/pack_rows.cuh"
#include "at.h"
#include "ordered.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Four neighbouring rows of one line of words; `row` of them on there is none. */
template <bool IsWide>
__device__ inline void load_rows(const uint8_t *line, int row, int rows, uint32_t (&word)[4]) {
  if constexpr (IsWide) {
    lpg_load_words(line + row * 4, 16, 16, word);
  } else {
#pragma unroll
    for (int i = 0; i < 4; i++) word[i] = lpg_load32(line + min(row + i, rows - 1) * 4);
  }
}

/* Columns of the file into shared memory: a thread takes 16 columns of four rows and of those 8 further. */
template <int Bits, bool IsWide>
__device__ inline void stage_columns(const lpg_rows_args &a, int64_t row0, uint8_t *columns) {
  constexpr int words = (Bits + 1) / 2, bytes = lpg_ordered_column(Bits);
  const int rows = (int)min((int64_t)LPG_TILE_ROWS, a.rows - row0), sixteens = (int)((a.at.k + 15) / 16);
  const int lines = (int)((a.at.k * Bits + 31) / 32);
  const uint8_t *const from = a.at.codes + (a.first_source_row + row0) * 4;
#pragma unroll 2
  for (int i = threadIdx.x; i < 2 * sixteens; i += LPG_ORDERED_THREADS) {
    const int first = i % 2 * 4, sixteen = i / 2, bit = sixteen * 16 * Bits;
    uint32_t word[2][words][4];
#pragma unroll
    for (int w = 0; w < words; w++) {
      const uint8_t *line = from + min(bit / 32 + w, lines - 1) * a.at.line * 4;
      load_rows<IsWide>(line, first, rows, word[0][w]);
      load_rows<IsWide>(line, first + 8, rows, word[1][w]);
    }
    lpg_codes16 codes[2][4];
#pragma unroll
    for (int half = 0; half < 2; half++) {
#pragma unroll
      for (int r = 0; r < 4; r++) {
        uint32_t own[words + 1] = {};
#pragma unroll
        for (int w = 0; w < words; w++) own[w] = word[half][w][r];
        if (Bits == 3 && bit % 32 != 0) own[0] = own[0] >> 16 | own[1] << 16, own[1] >>= 16;
        codes[half][r] = lpg_sixteen_fields(own, Bits);
      }
    }
    uint8_t *const to = columns + lpg_ordered_place(Bits, (uint32_t)(sixteen * 16)) + first;
#pragma unroll
    for (int four = 0; four < 4; four++) {
      uint32_t low[4], high[4];
#pragma unroll
      for (int r = 0; r < 4; r++) {
        low[r] = codes[0][r].word[four];
        high[r] = codes[1][r].word[four];
        if (bytes == 8) low[r] += high[r] << 4;
      }
      transpose(low);
      if (bytes == 16) transpose(high);
#pragma unroll
      for (int j = 0; j < 4; j++) {
        *(uint32_t *)(to + (four * 4 + j) * bytes) = low[j];
        if (bytes == 16) *(uint32_t *)(to + (four * 4 + j) * bytes + 8) = high[j];
      }
    }
  }
}

/* A lane's four codes of one step, for rows g and g + 8: of columns 2t, 2t + 8, 2t + 1 and 2t + 9 of the order, which
 * begins at `order`, and of which so many are left. own: byte g of the first column. */
template <int Bits, bool IsWhole>
__device__ inline void gather_step(const int32_t *order, int left, uint32_t none, const uint8_t *own,
                                   uint32_t (&codes)[2]) {
  constexpr uint32_t low = 0x0f0f0f0fu;
  uint32_t column[4], there = 0xffffffffu;
  if constexpr (IsWhole) {
    const int2 first = __ldg((const int2 *)order), second = __ldg((const int2 *)(order + 8));
    column[0] = (uint32_t)first.x, column[1] = (uint32_t)second.x;
    column[2] = (uint32_t)first.y, column[3] = (uint32_t)second.y;
  } else {
    there = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int at = i / 2 + i % 2 * 8;
      column[i] = at < left ? (uint32_t)order[at] : 0;
      there |= at < left ? 255u << 8 * i : 0u;
    }
  }
  uint32_t byte[4], more[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const uint8_t *from = own + lpg_ordered_place(Bits, column[i]);
    byte[i] = *from;
    if (lpg_ordered_column(Bits) == 16) more[i] = from[8];
  }
  codes[0] = __byte_perm(__byte_perm(byte[0], byte[1], 0x0040), __byte_perm(byte[2], byte[3], 0x0040), 0x5410);
  if constexpr (lpg_ordered_column(Bits) == 16) {
    codes[1] = __byte_perm(__byte_perm(more[0], more[1], 0x0040), __byte_perm(more[2], more[3], 0x0040), 0x5410);
  } else {
    codes[1] = codes[0] >> 4 & low, codes[0] &= low;
  }
  if constexpr (!IsWhole) { /* what is no column is 0, as it is stored */
    codes[0] = (codes[0] & there) | (none & ~there), codes[1] = (codes[1] & there) | (none & ~there);
  }
}

/* All words of a lane of the tile whose columns begin at `order`. */
template <int Bits, bool IsWhole>
__device__ inline void gather_tile(const int32_t *order, int left, uint32_t none, const uint8_t *own,
                                   uint32_t (&word)[lpg_lane_words(Bits)]) {
  constexpr int steps = lpg_unit_codes(Bits) / 4, units = lpg_tile_k(Bits) / (steps * LPG_STEP_K);
#pragma unroll
  for (int unit = 0; unit < units; unit++) {
    uint32_t step[2][steps];
#pragma unroll
    for (int s = 0; s < steps; s++) {
      const int skipped = (unit * steps + s) * LPG_STEP_K;
      uint32_t codes[2];
      gather_step<Bits, IsWhole>(order + skipped, left - skipped, none, own, codes);
      step[0][s] = codes[0], step[1][s] = codes[1];
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
      build_unit<Bits>(step[half], none, word + 2 * unit * lpg_unit_words(Bits) + half, 2);
    }
  }
}

template <int Bits>
__device__ inline unsigned long long store_ordered(const lpg_rows_args &a, const uint8_t *columns, int64_t row_tile) {
  constexpr int tile_k = lpg_tile_k(Bits), warps = LPG_ORDERED_THREADS / 32;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t at = lpg_tile_offset(Bits, a.k_tiles, row_tile, warp) + lane * 16;
  const int rows = (int)min((int64_t)LPG_TILE_ROWS, a.rows - row_tile * LPG_TILE_ROWS);
  const uint32_t none = a.flip * 0x01010101u;
  const uint8_t *const own = columns + lane / 4;
  const int32_t *order = a.column_order + warp * tile_k + lane % 4 * 2;
  uint8_t *to = a.codes + at;
  uint64_t key = lpg_hash_key((uint64_t)(a.first_byte + at) / 8);
  unsigned long long hash = 0;
  for (int tile = (int)warp; tile < (int)a.k_tiles; tile += warps) {
    uint32_t word[lpg_lane_words(Bits)] = {};
    if ((tile + 1) * tile_k <= (int)a.k) {
      gather_tile<Bits, true>(order, tile_k, none, own, word);
    } else {
      gather_tile<Bits, false>(order, (int)a.k - tile * tile_k - (int)(lane % 4 * 2), none, own, word);
    }
    if (rows < LPG_TILE_ROWS) { /* so are rows of padding */
#pragma unroll
      for (int w = 0; w < lpg_lane_words(Bits); w++) {
        if ((int)(lane / 4) + w % 2 * 8 >= rows) word[w] = 0;
      }
    }
    hash += store_words(word, to, key);
    order += warps * tile_k;
    to += next_tile<Bits, warps>::bytes;
    key += next_tile<Bits, warps>::key;
  }
  return hash;
}

/* A block takes 16 rows whole. */
template <class Reader, int Bits>
__global__ void __launch_bounds__(LPG_ORDERED_THREADS, 2) pack_ordered_kernel(const __grid_constant__ lpg_rows_args a) {
  extern __shared__ uint4 memory[];
  uint8_t *const columns = (uint8_t *)memory;
  const int64_t row_tile = blockIdx.y, row0 = row_tile * LPG_TILE_ROWS;
  if (row0 + LPG_TILE_ROWS <= a.rows && a.first_source_row % 4 == 0 && a.at.line % 4 == 0 &&
      (uintptr_t)a.at.codes % 16 == 0) {
    stage_columns<Bits, true>(a, row0, columns);
  } else {
    stage_columns<Bits, false>(a, row0, columns);
  }
  __syncthreads();
  const unsigned long long hash = store_ordered<Bits>(a, columns, row_tile);
  store_numbers<Reader, LPG_ORDERED_THREADS>(a, a.at, row0, 0, (uint32_t)(a.k_tiles * lpg_tile_k(Bits)), true);
  if (a.found) add_hash(a.found->hash, hash);
}

}  // namespace
}  // namespace lpg
