/* The kernel that packs IQ2_XXS and IQ2_XS, whose eight codes at a time are an entry of a grid and eight signs.
 *
 * A block brings 16 rows of 16 blocks to shared memory as they lie, and a thread takes one of them: 256 columns of a
 * row, which are those of a tile. Eight codes have two for each of four lanes, so it builds the words of all four, and
 * exchanges half of them with the thread that has the row 8 further: a vector of the packed form has both. */
#pragma once

#include <cuda_pipeline.h>

#include "../pack/pack_rows.cuh"
#include "at.h"
#include "iq2.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

template <int Type>
struct iq2 {
  static constexpr int bits = 3, bytes = lpg_ggml_bytes(Type), blocks = LPG_IQ2_BLOCKS;
  static constexpr int row_bytes = blocks * bytes; /* of 16 blocks */
  static constexpr int groups = LPG_IQ2_COLUMNS / lpg_ggml_group(Type);
  static constexpr int vectors = LPG_IQ2_COLUMNS / 8, unit_vectors = vectors / 2;
  static constexpr int unit_words = lpg_unit_words(bits), words = 2 * unit_words; /* that a lane has of a row */
  /* Rows 8 further begin 8 banks further on, and the scales of the next block 4. */
  static constexpr int half_bytes = 8 * row_bytes + 32, block_scales = groups * LPG_TILE_ROWS + 16;

  struct memory {
    alignas(16) uint8_t raw[2 * half_bytes];
    alignas(16) uint8_t scales[blocks * block_scales];
    alignas(16) uint16_t supers[blocks][LPG_TILE_ROWS];
    uint32_t grid[lpg_grid_entries(Type)];
  };
  static_assert(row_bytes % 16 == 0, "rows must stay aligned");
};

__device__ inline uint32_t half_word(const uint8_t *from) { return *(const uint16_t *)from; }

/* Eight codes of 3 bits, four bits each, by lanes: code 2t at 4t, code 2t + 1 at 16 + 4t. The same of an entry of the
 * grid, and of its signs, of which seven are stored. */
__device__ inline uint32_t spread_entry(uint32_t entry) { return (entry & 0x3333u) + (entry & 0xccccu) * 0x4000u; }
__device__ inline uint32_t spread_signs(uint32_t seven) {
  const uint32_t halves = lpg_eighth_sign(seven) * 0x8001u & 0x00550055u;
  return (halves * 0x11u & 0x05050505u) * 0x14u & 0x44444444u;
}

/* ---- from the source to shared memory ---- */

template <int Bytes>
__device__ inline void bring_row(const uint8_t *from, int bytes, uint8_t *to) {
  for (int i = (int)threadIdx.x % 16 * Bytes; i < bytes; i += 16 * Bytes) {
    if constexpr (Bytes >= 4) {
      __pipeline_memcpy_async(to + i, from + i, Bytes);
    } else {
      *(uint16_t *)(to + i) = (uint16_t)lpg_load16(from + i);
    }
  }
}

/* A row by 16 threads. */
template <int Type>
__device__ inline void bring_rows(const lpg_rows_args &a, int64_t row0, int64_t block, int blocks, uint8_t *raw) {
  constexpr int bytes = lpg_ggml_bytes(Type);
  const int row = (int)threadIdx.x / 16;
  const uint8_t *from =
      a.at.codes + (a.first_source_row + row0 + row) * a.at.line + (a.first_column / LPG_IQ2_COLUMNS + block) * bytes;
  uint8_t *to = raw + row / 8 * iq2<Type>::half_bytes + row % 8 * iq2<Type>::row_bytes;
  const uint32_t place =
      (uint32_t)(uintptr_t)from | (uint32_t)a.at.line | (uint32_t)(blocks * bytes); /* alike for all */
  if (place % 16 == 0) {
    bring_row<16>(from, blocks * bytes, to);
  } else if (place % 4 == 0) {
    bring_row<4>(from, blocks * bytes, to);
  } else {
    bring_row<2>(from, blocks * bytes, to);
  }
}

/* ---- a block of a row ---- */

/* Adds a pair of codes for each of four lanes to their words of a unit. */
template <int Words>
__device__ inline void put_pair(uint32_t eight, int unit, int pair, uint32_t (&word)[4][Words]) {
  constexpr int bits = 3;
  const lpg_field field = lpg_field_of(bits, pair);
  const int runs = field.word >= 0 ? 1 : lpg_splice_runs(bits);
#pragma unroll
  for (int t = 0; t < 4; t++) {
#pragma unroll
    for (int i = 0; i < runs; i++) {
      const lpg_run run = field.word >= 0 ? lpg_run{0, bits, field.word, field.shift} : lpg_splice(bits, pair, i);
      const int left = run.shift - run.code_bit - 4 * t;
      const uint32_t moved = left >= 0 ? eight << (left & 31) : eight >> (-left & 31);
      word[t][unit * lpg_unit_words(bits) + run.word] |= moved & lpg_half_masks(run.bits) << run.shift;
    }
  }
}

/* The words of four lanes of one unit, from the 16 vectors that begin at vector 16 * unit. */
template <int Type>
__device__ inline void take_vectors(const uint8_t *block, const uint32_t *grid, int unit,
                                    uint32_t (&word)[4][iq2<Type>::words]) {
  const uint8_t *from = block + 2 + unit * 32;
#pragma unroll
  for (int four = 0; four < 4; four++, from += 8) {
    uint32_t number[4];
#pragma unroll
    for (int i = 0; i < 4; i++) number[i] = half_word(from + 2 * i);
#pragma unroll
    for (int v = 0; v < 4; v++) {
      uint32_t eight;
      if (Type == 16) {
        const uint32_t index = number[v / 2] >> v % 2 * 8 & 255u, signs = number[2] | number[3] << 16;
        eight = grid[index] + spread_signs(signs >> 7 * v);
      } else {
        eight = grid[number[v] & 511u] + spread_signs(number[v] >> 9);
      }
      put_pair(eight, unit, four * 4 + v, word);
    }
  }
}

/* The scales of a block of a row, 16 bytes apart. */
template <int Type>
__device__ inline void take_scales(const uint8_t *block, uint8_t *to) {
#pragma unroll
  for (int group = 0; group < iq2<Type>::groups; group++) {
    uint32_t scale;
    if (Type == 16) {
      scale = half_word(block + 8 + 8 * group) >> 12;
    } else {
      scale = block[66 + group / 2] >> group % 2 * 4 & 15u;
    }
    to[group * LPG_TILE_ROWS] = (uint8_t)(2 * scale + 1);
  }
}

/* Stores the words of lanes t and t + 2 of both rows, where t is 1 for the thread of the second one: each sends the
 * other what it needs. All lanes of a warp must come here. */
template <int Words>
__device__ inline unsigned long long store_both(const uint32_t (&word)[4][Words], bool is_second, bool is_block,
                                                uint8_t *to, uint64_t key) {
  constexpr int next = lpg_word_offset(0, 4);
  unsigned long long hash = 0;
#pragma unroll
  for (int pair = 0; pair < 2; pair++) {
    uint32_t both[2 * Words];
#pragma unroll
    for (int w = 0; w < Words; w++) {
      const uint32_t even = word[2 * pair][w], odd = word[2 * pair + 1][w];
      const uint32_t other = __shfl_xor_sync(0xffffffffu, is_second ? even : odd, 16);
      both[2 * w] = is_second ? other : even;
      both[2 * w + 1] = is_second ? odd : other;
    }
    if (!is_block) continue;
#pragma unroll
    for (int v = 0; v < Words / 2; v++) {
      const uint4 vector = make_uint4(both[4 * v], both[4 * v + 1], both[4 * v + 2], both[4 * v + 3]);
      const int at = v * next + pair * 32;
      __stcs((uint4 *)(to + at), vector);
      hash += hash_vector(vector, key + (uint64_t)(at / 8) * LPG_HASH_STEP);
    }
  }
  return hash;
}

/* ---- the kernel ---- */

/* Numbers of the blocks, as they lie in their sections. */
template <int Type>
__device__ inline void store_iq2_numbers(const lpg_rows_args &a, const typename iq2<Type>::memory &m, int64_t row_tile,
                                         int64_t block, int blocks) {
  constexpr int groups = iq2<Type>::groups;
  const lpg_numbers_to &scales = a.numbers[LPG_SECTION_SCALES], &supers = a.numbers[LPG_SECTION_SUPER_SCALES];
  const int64_t tile = a.first_row / LPG_TILE_ROWS + row_tile;
  uint4 *const to = (uint4 *)(scales.section + (tile * scales.padded + block * groups) * LPG_TILE_ROWS);
  for (int i = (int)threadIdx.x; i < blocks * groups; i += 256) {
    to[i] = *(const uint4 *)(m.scales + i / groups * iq2<Type>::block_scales + i % groups * LPG_TILE_ROWS);
  }
  uint4 *const super = (uint4 *)(supers.section + (tile * supers.padded + block) * LPG_TILE_ROWS * 2);
  if ((int)threadIdx.x < 2 * blocks) super[threadIdx.x] = ((const uint4 *)m.supers)[threadIdx.x];
}

template <int Type>
__global__ void __launch_bounds__(256, 5)
    pack_iq2_kernel(const __grid_constant__ lpg_rows_args a, const __grid_constant__ lpg_iq2_grid grid) {
  constexpr int bits = iq2<Type>::bits;
  static_assert(lpg_tile_k(bits) == LPG_IQ2_COLUMNS, "a block of a row is that of a tile");
  __shared__ typename iq2<Type>::memory m;
  const int own = (int)threadIdx.x % 16, second = (int)threadIdx.x / 16 % 2, g = (int)threadIdx.x / 32;
  const int64_t row_tile = blockIdx.y, block = (int64_t)blockIdx.x * LPG_IQ2_BLOCKS;
  const int blocks = (int)min((int64_t)LPG_IQ2_BLOCKS, a.k_tiles - block);
  bring_rows<Type>(a, row_tile * LPG_TILE_ROWS, block, blocks, m.raw);
  __pipeline_commit();
  for (int i = (int)threadIdx.x; i < lpg_grid_entries(Type); i += 256) m.grid[i] = spread_entry(grid.entry[i]);
  __pipeline_wait_prior(0);
  __syncthreads();
  uint32_t word[4][iq2<Type>::words] = {};
  if (own < blocks) {
    const uint8_t *from = m.raw + second * iq2<Type>::half_bytes + g * iq2<Type>::row_bytes + own * iq2<Type>::bytes;
    take_scales<Type>(from, m.scales + own * iq2<Type>::block_scales + 2 * g + second);
    m.supers[own][2 * g + second] = (uint16_t)half_word(from);
#pragma unroll
    for (int unit = 0; unit < 2; unit++) take_vectors<Type>(from, m.grid, unit, word);
  }
  const int64_t at = lpg_tile_offset(bits, a.k_tiles, row_tile, block + own) + (4 * g + second) * 16;
  const uint64_t key = lpg_hash_key((uint64_t)(a.first_byte + at) / 8);
  const unsigned long long hash = store_both(word, second != 0, own < blocks, a.codes + at, key);
  __syncthreads();
  store_iq2_numbers<Type>(a, m, row_tile, block, blocks);
  if (a.found) add_hash(a.found->hash, hash);
}

}  // namespace
}  // namespace lpg
