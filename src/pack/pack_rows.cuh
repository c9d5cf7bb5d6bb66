/* The kernel that packs rows on the GPU, a template over the arrangement of the source and the width: it brings 16 rows
 * of 1024 codes into shared memory, builds tiles of them and hashes what it stores. */
#pragma once

#include <cuda_pipeline.h>

#include "../cuda/cuda.h"
#include "../layouts/unit.h"
#include "at.h"
#include "pack_device.h"
#include "sections.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Every tile_k divides chunk_k. Rows are padded by 16 bytes, so that they stay aligned for vectors and the 32 lanes of
 * a warp find their columns in different banks. */
static constexpr int chunk_k = 1024, row_bytes = chunk_k + 16;

/* A block packs 16 rows of chunks_a_block chunks. */
static constexpr int chunks_a_block = 4;

/* ---- the source ---- */

__device__ inline int64_t source_row(const lpg_rows_args &a, int64_t row) {
  return a.row_order ? __ldg(a.row_order + row) : a.first_source_row + row;
}

__device__ inline int64_t source_column(const lpg_rows_args &a, int64_t k) {
  return a.column_order ? __ldg(a.column_order + k) : a.first_column + k;
}

/* 16 codes, code by code: columns in an order, or not at multiples of 16, or in the chunk of the last ones. What is no
 * code reads as stored 0. */
template <class Reader, int Bits>
__device__ inline uint4 read_each(const lpg_rows_args &a, int64_t row, int64_t k) {
  uint32_t word[4];
  const bool is_row = row < a.rows;
  const int64_t n = is_row ? source_row(a, row) : 0;
#pragma unroll
  for (int i = 0; i < 16; i += 4) {
    word[i / 4] = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const bool is_code = is_row && k + i + j < a.k;
      const uint32_t code = is_code ? Reader::template code<Bits>(a.at, n, source_column(a, k + i + j)) : a.flip;
      word[i / 4] |= code << 8 * j;
    }
  }
  return make_uint4(word[0], word[1], word[2], word[3]);
}

/* ---- an order of columns, where words have several columns of a row and rows side by side (GPTQ) ----
 *
 * Code by code a word would come from memory as often as it has codes, each time with some others in between. So all
 * words of the block's 16 rows come to shared memory first, in their own order, and codes are taken from there. */

/* Word `line` of row r is words[line * 16 + r]. */
__device__ inline void stage_words(const lpg_rows_args &a, int64_t row0, uint32_t *words) {
  const int r = threadIdx.x % LPG_TILE_ROWS;
  const uint32_t *from = (const uint32_t *)a.at.codes + a.first_source_row + row0 + r;
  if (row0 + r < a.rows) {
#pragma unroll 4
    for (int line = threadIdx.x / LPG_TILE_ROWS; line < a.staged_lines; line += 256 / LPG_TILE_ROWS) {
      __pipeline_memcpy_async(words + line * LPG_TILE_ROWS + r, from + line * a.at.line, 4);
    }
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
}

/* The code of a column: 32 of them fill `Bits` words. */
template <int Bits>
__device__ inline uint32_t staged_code(const uint32_t *words, int r, uint32_t column) {
  const uint32_t bit = column % 32 * Bits, shift = bit % 32;
  const uint32_t *word = words + (column / 32 * Bits + bit / 32) * LPG_TILE_ROWS + r;
  uint32_t code = *word >> shift;
  if (32 % Bits != 0 && shift + Bits > 32) code |= word[LPG_TILE_ROWS] << (32 - shift);
  return code & ((1u << Bits) - 1u);
}

/* As read_each(), from there. The order is read four columns at once: k is a multiple of 16. */
template <int Bits>
__device__ inline uint4 read_staged(const lpg_rows_args &a, const uint32_t *words, bool is_row, int r, int64_t k) {
  uint32_t word[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int64_t first = k + 4 * i;
    word[i] = a.flip * 0x01010101u;
    if (!is_row || first >= a.k) continue;
    int4 column = {};
    if (first + 4 <= a.k) {
      column = __ldg((const int4 *)(a.column_order + first));
    } else {
      column.x = a.column_order[first];
      column.y = first + 1 < a.k ? a.column_order[first + 1] : 0;
      column.z = first + 2 < a.k ? a.column_order[first + 2] : 0;
    }
    const uint32_t four =
        staged_code<Bits>(words, r, (uint32_t)column.x) | staged_code<Bits>(words, r, (uint32_t)column.y) << 8 |
        staged_code<Bits>(words, r, (uint32_t)column.z) << 16 | staged_code<Bits>(words, r, (uint32_t)column.w) << 24;
    const uint32_t there = first + 4 <= a.k ? 0xffffffffu : (1u << 8 * (int)(a.k - first)) - 1u;
    word[i] = (four & there) | (word[i] & ~there);
  }
  return make_uint4(word[0], word[1], word[2], word[3]);
}

/* ---- the source's codes in shared memory ---- */

template <class Reader>
__device__ inline void place_of(int i, int *row, int *column) {
  *row = Reader::rows_first ? i % LPG_TILE_ROWS : i / (chunk_k / 16);
  *column = (Reader::rows_first ? i / LPG_TILE_ROWS : i % (chunk_k / 16)) * 16;
}

/* 16 rows of 1024 codes, as the source has them, into shared memory, 16 codes a thread and turn. Neighbouring threads
 * take neighbouring columns, or rows where the source has those side by side. */
template <class Reader, int Bits>
__device__ inline void stage_codes(const lpg_rows_args &a, int64_t row0, int64_t k0, const uint32_t *words,
                                   uint8_t *staged) {
  constexpr int turns = LPG_TILE_ROWS * chunk_k / 16 / 256;
  const int rows = (int)min((int64_t)LPG_TILE_ROWS, a.rows - row0), columns = (int)min((int64_t)chunk_k, a.k - k0);
  int r, c;
  if (a.each || columns % 16 != 0) {
#pragma unroll 1
    for (int turn = 0; turn < turns; turn++) {
      place_of<Reader>(turn * 256 + threadIdx.x, &r, &c);
      uint4 *const to = (uint4 *)(staged + r * row_bytes + c);
      if (Reader::has_words && a.staged_lines > 0) {
        *to = read_staged<Bits>(a, words, r < rows, r, k0 + c);
      } else {
        *to = read_each<Reader, Bits>(a, row0 + r, k0 + c);
      }
    }
    return;
  }
  const int64_t first_column = a.first_column + k0;
#pragma unroll
  for (int turn = 0; turn < turns; turn++) {
    place_of<Reader>(turn * 256 + threadIdx.x, &r, &c);
    uint8_t *to = staged + r * row_bytes + c;
    if (r >= rows || c >= columns) {
      const uint32_t none = a.flip * 0x01010101u;
      *(uint4 *)to = make_uint4(none, none, none, none);
      continue;
    }
    const int64_t n = source_row(a, row0 + r), column = first_column + c;
    if (Reader::copies) {
      const uint8_t *from = a.at.codes + n * a.at.line + column;
      if ((uintptr_t)from % 16 == 0) {
        __pipeline_memcpy_async(to, from, 16);
        continue;
      }
    }
    const lpg_codes16 codes = Reader::template codes<Bits>(a.at, n, column);
    *(uint4 *)to = make_uint4(codes.word[0], codes.word[1], codes.word[2], codes.word[3]);
  }
}

/* ---- tiles ---- */

/* The words of one unit of a lane's row, from staged codes; `stride` words apart. Collects in `seen` which bits the
 * codes have; a flip does not change those above the width. */
template <int Bits>
__device__ inline void build_unit(const uint8_t *codes, uint32_t flips, uint32_t *word, int stride, uint32_t *seen) {
#pragma unroll
  for (int pair = 0; pair < lpg_unit_codes(Bits) / 2; pair++) {
    const uint32_t two = *(const uint16_t *)(codes + pair / 2 * LPG_STEP_K + pair % 2 * 8) ^ flips;
    *seen |= two;
    lpg_unit_put_pair(Bits, word, stride, pair, __byte_perm(two, 0, 0x4140));
  }
}

/* Builds and stores a staged chunk: a thread takes all that a lane has of a tile. Returns its part of the hash. */
template <int Bits>
__device__ inline unsigned long long store_chunk(const lpg_rows_args &a, const uint8_t *staged, int64_t row_tile,
                                                 int64_t first_tile, uint32_t *seen) {
  constexpr int tile_k = lpg_tile_k(Bits), words = lpg_lane_words(Bits), unit_k = 4 * lpg_unit_codes(Bits);
  unsigned long long hash = 0;
  const int tiles = (int)min((int64_t)(chunk_k / tile_k), a.k_tiles - first_tile);
  for (int i = threadIdx.x; i < 32 * tiles; i += 256) {
    const int lane = i % 32, tile = i / 32;
    uint32_t word[words] = {};
#pragma unroll
    for (int half = 0; half < 2; half++) {
#pragma unroll
      for (int unit = 0; unit < tile_k / unit_k; unit++) {
        const int k = tile * tile_k + unit * unit_k + lane % 4 * 2;
        build_unit<Bits>(staged + (lane / 4 + 8 * half) * row_bytes + k, a.flip * 0x0101u,
                         word + 2 * unit * lpg_unit_words(Bits) + half, 2, seen);
      }
    }
    const int64_t offset = lpg_tile_offset(Bits, a.k_tiles, row_tile, first_tile + tile);
#pragma unroll
    for (int v = 0; v < words; v += 4) {
      const uint4 vector = make_uint4(word[v], word[v + 1], word[v + 2], word[v + 3]);
      const int64_t at = offset + lpg_word_offset(lane, v);
      __stcs((uint4 *)(a.codes + at), vector);
      hash += hash_vector(vector, (uint64_t)(a.first_byte + at) / 8);
    }
  }
  return hash;
}

/* ---- numbers of a source that has them among its codes ---- */

/* Of the groups that begin in columns [k0, end), and, at the end of the rows, those of padding columns. Each of them is
 * read and written by one block, right after the codes beside which it lies. */
template <class Reader>
__device__ inline void store_numbers(const lpg_rows_args &a, int64_t row0, uint32_t k0, uint32_t end, bool is_last) {
  bool bad = false;
  const int64_t row_tile = (a.first_row + row0) / LPG_TILE_ROWS,
                tile = a.shares ? row_tile / a.tiles_a_scale : row_tile;
#pragma unroll 1
  for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++) {
    const lpg_numbers_to &to = a.numbers[id];
    if (!to.section) continue;
    const uint32_t first = (k0 + to.group_k - 1) / to.group_k;
    const uint32_t stop = is_last ? (uint32_t)to.padded : (end + to.group_k - 1) / to.group_k;
    for (uint32_t i = threadIdx.x; i < (stop - first) * 8; i += 256) {
      const int64_t group = first + i / 8, row = row0 + i % 8;
      uint32_t pair[2];
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const int64_t r = a.shares ? row0 : row + 8 * half;
        pair[half] = r < a.rows && group < to.count
                         ? Reader::number(a.at, (lpg_section_id)id, source_row(a, r), group + to.first_group)
                         : 0;
      }
      bad |= max(pair[0], pair[1]) > to.largest;
      put_numbers(to, tile, (int)(i % 8), group, pair[0], pair[1]);
    }
  }
  if (bad) a.found->any_bad = 1;
}

/* ---- the kernel ---- */

/* Four blocks of an SM hide what the loads of threads wait for. */
template <class Reader, int Bits>
__global__ void __launch_bounds__(256, 4) pack_rows_kernel(const __grid_constant__ lpg_rows_args a) {
  constexpr int buffers = Reader::copies ? 2 : 1;
  __shared__ alignas(16) uint8_t staged[buffers][LPG_TILE_ROWS * row_bytes];
  constexpr uint32_t too_high = 0xffffu & ~(((1u << Bits) - 1u) * 0x0101u); /* in two codes */
  constexpr int tiles = chunk_k / lpg_tile_k(Bits);
  const int64_t row_tile = blockIdx.y, row0 = row_tile * LPG_TILE_ROWS;
  const int64_t chunks = lpg_ceil_div(a.k_tiles, tiles), first = (int64_t)blockIdx.x * a.chunks;
  const int64_t end = min(first + a.chunks, chunks);
  unsigned long long hash = 0;
  uint32_t seen = 0;
  extern __shared__ uint32_t words[];
  if (Reader::has_words && a.staged_lines > 0) stage_words(a, row0, words);
  if (Reader::copies) {
    stage_codes<Reader, Bits>(a, row0, first * chunk_k, words, staged[0]);
    __pipeline_commit();
  }
  for (int64_t chunk = first; chunk < end; chunk++) {
    const uint8_t *here = staged[(chunk - first) % buffers];
    if (!Reader::copies) {
      stage_codes<Reader, Bits>(a, row0, chunk * chunk_k, words, staged[0]);
    } else if (chunk + 1 < end) { /* the next one is under way while this one is stored */
      stage_codes<Reader, Bits>(a, row0, (chunk + 1) * chunk_k, words, staged[(chunk + 1 - first) % buffers]);
      __pipeline_commit();
      __pipeline_wait_prior(1);
    } else {
      __pipeline_wait_prior(0);
    }
    __syncthreads();
    hash += store_chunk<Bits>(a, here, row_tile, chunk * tiles, &seen);
    __syncthreads();
  }
  if (Reader::has_numbers && (!a.shares || (a.first_row + row0) / LPG_TILE_ROWS % a.tiles_a_scale == 0)) {
    store_numbers<Reader>(a, row0, (uint32_t)(first * chunk_k), (uint32_t)(end * chunk_k), end == chunks);
  }
  if (!a.found) return;
  if (Reader::copies && (seen & too_high)) a.found->any_bad = 1;
  add_hash(a.found->hash, hash);
}

}  // namespace
}  // namespace lpg
