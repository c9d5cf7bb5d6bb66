/* The kernel that packs GPTQ's words in an order of columns.
 *
 * Neighbours in the order lie anywhere in a row, and a word has several columns. So a block brings its 16 rows to
 * shared memory first, column by column: byte g of a column has the codes of rows g and g + 8 (of 8 bits they have a
 * byte each). What a lane needs of a column is then one byte. */
#pragma once

#include "../kernels/prim/shared.cuh"
#include "../pack/pack_rows.cuh"
#include "at.h"
#include "nibbles.cuh"
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

/* The same of words of eight nibbles: a thread takes one of four rows and of those 8 further. */
template <int Threads, bool IsWide>
__device__ inline void stage_nibbles(const lpg_rows_args &a, int64_t row0, uint8_t *columns) {
  const int rows = (int)min((int64_t)LPG_TILE_ROWS, a.rows - row0), lines = (int)lpg_ceil_div(a.at.k, 8);
  const uint8_t *const from = a.at.codes + (a.first_source_row + row0) * 4;
#pragma unroll 4
  for (int i = threadIdx.x; i < 2 * lines; i += Threads) {
    const int first = i % 2 * 4, line = i / 2;
    uint32_t word[2][4], even[4], odd[4];
    load_rows<IsWide>(from + line * a.at.line * 4, first, rows, word[0]);
    load_rows<IsWide>(from + line * a.at.line * 4, first + 8, rows, word[1]);
#pragma unroll
    for (int r = 0; r < 4; r++) part_nibbles(word[0][r], word[1][r], &even[r], &odd[r]);
    transpose(even);
    transpose(odd);
    uint8_t *const to = columns + lpg_ordered_place(4, (uint32_t)line * 8) + first;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      *(uint32_t *)(to + 2 * j * lpg_ordered_column(4)) = even[j];
      *(uint32_t *)(to + (2 * j + 1) * lpg_ordered_column(4)) = odd[j];
    }
  }
}

/* Columns of the file into shared memory: a thread takes 16 columns of four rows and of those 8 further. */
template <int Bits, int Threads, bool IsWide>
__device__ inline void stage_columns(const lpg_rows_args &a, int64_t row0, uint8_t *columns) {
  constexpr int words = (Bits + 1) / 2, bytes = lpg_ordered_column(Bits);
  const int rows = (int)min((int64_t)LPG_TILE_ROWS, a.rows - row0), sixteens = (int)((a.at.k + 15) / 16);
  const int lines = (int)((a.at.k * Bits + 31) / 32);
  const uint8_t *const from = a.at.codes + (a.first_source_row + row0) * 4;
#pragma unroll 2
  for (int i = threadIdx.x; i < 2 * sixteens; i += Threads) {
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

/* ---- nibbles: a thread takes the columns of a lane's t, of all rows, and has what eight lanes have of a tile ---- */

/* The columns of one step that begins at `order`, by rows: byte c of word g has the codes that column c of the lane has
 * in rows g and g + 8. */
template <bool IsWhole>
__device__ inline void gather_columns(const int32_t *order, int left, uint32_t none, const uint8_t *columns,
                                      uint32_t (&by_rows)[8]) {
  uint32_t first[4], second[4];
  int32_t column[4];
  if constexpr (IsWhole) {
    const int2 a = __ldg((const int2 *)order), b = __ldg((const int2 *)(order + 8));
    column[0] = a.x, column[1] = b.x, column[2] = a.y, column[3] = b.y;
  }
#pragma unroll
  for (int c = 0; c < 4; c++) {
    const int at = c / 2 + c % 2 * 8;
    const bool is_column = IsWhole || at < left;
    if constexpr (!IsWhole) column[c] = is_column ? order[at] : 0;
    const uint2 both = *(const uint2 *)(columns + lpg_ordered_place(4, (uint32_t)column[c]));
    first[c] = is_column ? both.x : none;
    second[c] = is_column ? both.y : none;
  }
  transpose(first);
  transpose(second);
#pragma unroll
  for (int g = 0; g < 4; g++) by_rows[g] = first[g], by_rows[4 + g] = second[g];
}

template <bool IsWhole>
__device__ inline unsigned long long store_tile(const int32_t *order, int left, uint32_t flips, int rows,
                                                const uint8_t *columns, uint8_t *to, uint64_t key) {
  lane_words<8> words;
#pragma unroll
  for (int unit = 0; unit < 2; unit++) {
    uint32_t step[2][8];
#pragma unroll
    for (int s = 0; s < 2; s++) {
      const int skipped = (2 * unit + s) * LPG_STEP_K;
      gather_columns<IsWhole>(order + skipped, left - skipped, flips, columns, step[s]);
    }
#pragma unroll
    for (int g = 0; g < 8; g++) {
      uint32_t *w = words.word[g] + 2 * unit;
      part_nibbles(step[0][g], step[1][g], &w[0], &w[1]);
      if (rows < LPG_TILE_ROWS) { /* rows of padding are 0, as they are stored */
        if (g >= rows) w[0] = flips;
        if (g + 8 >= rows) w[1] = flips;
      }
    }
  }
  return store_lanes<4>(words, flips, to, key);
}

template <int Threads>
__device__ inline unsigned long long store_nibbles(const lpg_rows_args &a, const uint8_t *columns, int64_t row_tile) {
  constexpr int bits = 4, tile_k = lpg_tile_k(bits), tiles = Threads / 4; /* at a time */
  const int t = (int)threadIdx.x % 4, first = (int)threadIdx.x / 4;
  const int64_t at = lpg_tile_offset(bits, a.k_tiles, row_tile, first) + t * 16;
  const int rows = (int)min((int64_t)LPG_TILE_ROWS, a.rows - row_tile * LPG_TILE_ROWS);
  const uint32_t flips = a.flip * 0x11111111u;
  const int32_t *order = a.column_order + first * tile_k + 2 * t;
  uint8_t *to = a.codes + at;
  uint64_t key = lpg_hash_key((uint64_t)(a.first_byte + at) / 8);
  unsigned long long hash = 0;
#pragma unroll 1
  for (int tile = first; tile < (int)a.k_tiles; tile += tiles) {
    if ((tile + 1) * tile_k <= (int)a.k) {
      hash += store_tile<true>(order, tile_k, flips, rows, columns, to, key);
    } else {
      hash += store_tile<false>(order, (int)a.k - tile * tile_k - 2 * t, flips, rows, columns, to, key);
    }
    order += tiles * tile_k;
    to += next_tile<bits, tiles>::bytes;
    key += next_tile<bits, tiles>::key;
  }
  return hash;
}

/* ---- other widths ---- */

template <int Bits, int Threads>
__device__ inline unsigned long long store_ordered(const lpg_rows_args &a, const uint8_t *columns, int64_t row_tile) {
  constexpr int tile_k = lpg_tile_k(Bits), warps = Threads / 32;
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
template <int Bits, int Threads>
__global__ void __launch_bounds__(Threads, Threads == LPG_ORDERED_FEWER ? 3 : 2)
    pack_ordered_kernel(const __grid_constant__ lpg_rows_args a) {
  LPG_SHARED_MEMORY(uint4, 16);
  uint8_t *const columns = (uint8_t *)memory;
  const int64_t row_tile = blockIdx.y, row0 = row_tile * LPG_TILE_ROWS;
  const bool is_wide = row0 + LPG_TILE_ROWS <= a.rows && a.first_source_row % 4 == 0 && a.at.line % 4 == 0 &&
                       (uintptr_t)a.at.codes % 16 == 0;
  if constexpr (Bits == 4) {
    is_wide ? stage_nibbles<Threads, true>(a, row0, columns) : stage_nibbles<Threads, false>(a, row0, columns);
  } else {
    is_wide ? stage_columns<Bits, Threads, true>(a, row0, columns)
            : stage_columns<Bits, Threads, false>(a, row0, columns);
  }
  store_numbers<gptq_numbers<Bits>, Threads, 2>(a, a.at, row0, 0, (uint32_t)(a.k_tiles * lpg_tile_k(Bits)), true);
  __syncthreads();
  unsigned long long hash;
  if constexpr (Bits == 4) {
    hash = store_nibbles<Threads>(a, columns, row_tile);
  } else {
    hash = store_ordered<Bits, Threads>(a, columns, row_tile);
  }
  if (a.found) add_hash(a.found->hash, hash);
}

}  // namespace
}  // namespace lpg
