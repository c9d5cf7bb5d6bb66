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
__device__ inline uint4 read_each(const lpg_rows_args &a, const lpg_at &at, int64_t row, int64_t k) {
  uint32_t word[4];
  const bool is_row = row < a.rows;
  const int64_t n = is_row ? source_row(a, row) : 0;
#pragma unroll
  for (int i = 0; i < 16; i += 4) {
    word[i / 4] = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const bool is_code = is_row && k + i + j < a.k;
      const uint32_t code = is_code ? Reader::template code<Bits>(at, n, source_column(a, k + i + j)) : a.flip;
      word[i / 4] |= code << 8 * j;
    }
  }
  return make_uint4(word[0], word[1], word[2], word[3]);
}

/* ---- the source's codes in shared memory ---- */

/* 16 codes with the four of a lane side by side: columns 2t, 2t + 8, 2t + 1 and 2t + 9 are word t. */
__device__ inline uint4 by_lanes(uint4 c) {
  return make_uint4(__byte_perm(c.x, c.z, 0x5140), __byte_perm(c.x, c.z, 0x7362), __byte_perm(c.y, c.w, 0x5140),
                    __byte_perm(c.y, c.w, 0x7362));
}

/* Four bytes each of four words become four words of one byte each. */
__device__ inline void transpose(uint32_t (&x)[4]) {
  const uint32_t a = __byte_perm(x[0], x[1], 0x5140), b = __byte_perm(x[2], x[3], 0x5140);
  const uint32_t c = __byte_perm(x[0], x[1], 0x7362), d = __byte_perm(x[2], x[3], 0x7362);
  x[0] = __byte_perm(a, b, 0x5410), x[1] = __byte_perm(a, b, 0x7632);
  x[2] = __byte_perm(c, d, 0x5410), x[3] = __byte_perm(c, d, 0x7632);
}

/* Codes that are copied lie there as in the source, all others by lanes. */
template <class Reader>
__device__ inline void put_codes(uint8_t *to, uint4 codes) {
  *(uint4 *)to = Reader::copies ? codes : by_lanes(codes);
}

template <class Reader>
__device__ inline uint32_t lane_codes(const uint8_t *step, unsigned t) {
  if (!Reader::copies) return *(const uint32_t *)(step + 4 * t);
  return __byte_perm(*(const uint16_t *)(step + 2 * t), *(const uint16_t *)(step + 8 + 2 * t), 0x5140);
}

template <class Reader>
__device__ inline void place_of(unsigned i, int *row, int *column) {
  *row = (int)(Reader::rows_first ? i % LPG_TILE_ROWS : i / (chunk_k / 16));
  *column = (int)(Reader::rows_first ? i / LPG_TILE_ROWS : i % (chunk_k / 16)) * 16;
}

constexpr int turns = LPG_TILE_ROWS * chunk_k / 16 / 256; /* of a chunk: 16 codes a thread and turn */

/* The source's rows that a thread reads, one a turn. */
struct rows_of_turns {
  int64_t n[turns];
};

template <class Reader>
__device__ inline rows_of_turns find_rows(const lpg_rows_args &a, int64_t row0) {
  rows_of_turns rows;
#pragma unroll
  for (int turn = 0; turn < turns; turn++) {
    int r, c;
    place_of<Reader>(turn * 256 + threadIdx.x, &r, &c);
    rows.n[turn] = source_row(a, min(row0 + r, a.rows - 1));
  }
  return rows;
}

/* All turns load before any of them stores, so that what they wait for is waited for once. What is no code is read
 * from a place where there is one. */
template <class Reader, int Bits, bool IsWide>
__device__ inline void stage_sixteens(const lpg_rows_args &a, const lpg_at &at, const rows_of_turns &from,
                                      int64_t first_column, int rows, int columns, uint8_t *staged) {
  lpg_codes16 codes[turns];
  int r, c;
#pragma unroll
  for (int turn = 0; turn < turns; turn++) {
    place_of<Reader>(turn * 256 + threadIdx.x, &r, &c);
    codes[turn] = Reader::template codes<Bits, IsWide>(at, from.n[turn], first_column + min(c, columns - 16));
  }
#pragma unroll
  for (int turn = 0; turn < turns; turn++) {
    place_of<Reader>(turn * 256 + threadIdx.x, &r, &c);
    const uint32_t none = a.flip * 0x01010101u, *word = codes[turn].word;
    const bool is_code = r < rows && c < columns;
    put_codes<Reader>(staged + r * row_bytes + c,
                      is_code ? make_uint4(word[0], word[1], word[2], word[3]) : make_uint4(none, none, none, none));
  }
}

/* The same of codes in bytes. */
template <class Reader>
__device__ inline void copy_sixteens(const lpg_rows_args &a, int64_t row0, int64_t first_column, int rows, int columns,
                                     uint8_t *staged) {
  int r, c;
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
    const uint8_t *from = a.at.codes + n * a.at.line + column;
    if ((uintptr_t)from % 16 == 0) {
      __pipeline_memcpy_async(to, from, 16);
    } else {
      const lpg_codes16 codes = Reader::template codes<8, false>(a.at, n, column);
      *(uint4 *)to = make_uint4(codes.word[0], codes.word[1], codes.word[2], codes.word[3]);
    }
  }
}

/* 16 rows of 1024 codes into shared memory. Neighbouring threads take neighbouring columns, or rows where the source
 * has those side by side. */
template <class Reader, int Bits>
__device__ inline void stage_codes(const lpg_rows_args &a, const lpg_at &at, const rows_of_turns &from, int64_t row0,
                                   int64_t k0, uint8_t *staged) {
  const int rows = (int)min((int64_t)LPG_TILE_ROWS, a.rows - row0), columns = (int)min((int64_t)chunk_k, a.k - k0);
  const int64_t first_column = a.first_column + k0;
  if (a.each || columns <= 0 || columns % 16 != 0) {
    int r, c;
#pragma unroll 1
    for (int turn = 0; turn < turns; turn++) {
      place_of<Reader>(turn * 256 + threadIdx.x, &r, &c);
      put_codes<Reader>(staged + r * row_bytes + c, read_each<Reader, Bits>(a, at, row0 + r, k0 + c));
    }
    return;
  }
  if constexpr (Reader::copies) {
    copy_sixteens<Reader>(a, row0, first_column, rows, columns, staged);
    return;
  }
  if constexpr (Reader::has_wide) {
    if (Reader::template is_wide<Bits>(at)) {
      stage_sixteens<Reader, Bits, true>(a, at, from, first_column, rows, columns, staged);
      return;
    }
  }
  if constexpr (!Reader::copies) {
    stage_sixteens<Reader, Bits, false>(a, at, from, first_column, rows, columns, staged);
  }
}

/* ---- tiles ---- */

/* The words of one unit of a lane's row, `stride` words apart, from its codes of a step each. */
template <int Bits>
__device__ inline void build_unit(const uint32_t *step, uint32_t flips, uint32_t *word, int stride) {
  constexpr int steps = lpg_unit_codes(Bits) / 4;
  if constexpr (lpg_is_pow2_width(Bits)) { /* a step's codes are fields of the four bytes */
    uint32_t all = 0, all_flips = 0;
#pragma unroll
    for (int s = 0; s < steps; s++) {
      all += step[s] << Bits * s;
      all_flips += flips << Bits * s;
    }
    *word = all ^ all_flips;
  } else {
#pragma unroll
    for (int s = 0; s < steps; s++) {
      const lpg_field first = lpg_field_of(Bits, 2 * s), second = lpg_field_of(Bits, 2 * s + 1);
      const uint32_t codes = step[s] ^ flips;
      if (Bits <= 4 && first.word >= 0 && first.word == second.word) { /* neighbours: both at once */
        word[first.word * stride] += ((codes | codes >> (8 - Bits)) & lpg_half_masks(2 * Bits)) << first.shift;
      } else {
        lpg_unit_put_pair(Bits, word, stride, 2 * s, codes & 0x00ff00ffu);
        lpg_unit_put_pair(Bits, word, stride, 2 * s + 1, codes >> 8 & 0x00ff00ffu);
      }
    }
  }
}

/* From one tile to the next that a warp stores, of so many warps: bytes, and what that adds to the key of a hash. */
template <int Bits, int Warps>
struct next_tile {
  static constexpr int bytes = Warps * lpg_tile_bytes(Bits);
  static constexpr uint64_t key = (uint64_t)(bytes / 8) * LPG_HASH_STEP;
};

/* Stores all that a lane has of a tile, at its first word. Returns its part of the hash. */
template <int Words>
__device__ inline unsigned long long store_words(const uint32_t (&word)[Words], uint8_t *to, uint64_t key) {
  constexpr int next = lpg_word_offset(0, 4);
  unsigned long long hash = 0;
#pragma unroll
  for (int v = 0; v < Words; v += 4) {
    const uint4 vector = make_uint4(word[v], word[v + 1], word[v + 2], word[v + 3]);
    __stcs((uint4 *)(to + v / 4 * next), vector);
    hash += hash_vector(vector, key + (uint64_t)(v / 4 * next / 8) * LPG_HASH_STEP);
  }
  return hash;
}

/* The same of one unit of both rows, from the lane's first word of the tile on. */
template <int Bits, int Unit>
__device__ inline unsigned long long store_unit(const uint32_t (&word)[2 * Bits], uint8_t *to, uint64_t key) {
  unsigned long long hash = 0;
#pragma unroll
  for (int i = 0; i < Bits; i++) {
    const int at = lpg_word_offset(0, 2 * (Unit * Bits + i));
    __stcs((uint2 *)(to + at), make_uint2(word[2 * i], word[2 * i + 1]));
    hash += lpg_hash_by_key(word[2 * i] | (uint64_t)word[2 * i + 1] << 32, key + (uint64_t)(at / 8) * LPG_HASH_STEP);
  }
  return hash;
}

/* The words of a unit of one row of a lane, from staged codes. Collects in `seen` which bits they have. */
template <class Reader, int Bits>
__device__ inline void take_unit(const uint8_t *row, unsigned t, uint32_t flips, uint32_t *word, uint32_t *seen) {
  constexpr int steps = lpg_unit_codes(Bits) / 4;
  uint32_t step[steps];
#pragma unroll
  for (int s = 0; s < steps; s++) {
    step[s] = lane_codes<Reader>(row + s * LPG_STEP_K, t);
    if (Reader::copies) *seen |= step[s];
  }
  build_unit<Bits>(step, flips, word, 2);
}

/* Builds and stores a staged chunk: a thread takes all that a lane has of a tile, or, where tiles are so wide that
 * there are too few for the warps, one unit. Returns its part of the hash. */
template <class Reader, int Bits>
__device__ inline unsigned long long store_chunk(const lpg_rows_args &a, const uint8_t *staged, int64_t row_tile,
                                                 int64_t first_tile, uint32_t *seen) {
  constexpr int tile_k = lpg_tile_k(Bits), unit_k = 4 * lpg_unit_codes(Bits), units = tile_k / unit_k;
  constexpr bool by_units = units == 2 && !lpg_is_pow2_width(Bits);
  constexpr int warps = by_units ? 4 : 8; /* as many tiles at once */
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32 % warps;
  const bool is_second = by_units && threadIdx.x / 32 >= warps;
  const uint32_t flips = a.flip * 0x01010101u;
  const int tiles = (int)min((int64_t)(chunk_k / tile_k), a.k_tiles - first_tile);
  const int64_t at = lpg_tile_offset(Bits, a.k_tiles, row_tile, first_tile + warp) + lane * 16;
  const uint8_t *row = staged + lane / 4 * row_bytes + warp * tile_k + (is_second ? unit_k : 0);
  uint8_t *to = a.codes + at;
  uint64_t key = lpg_hash_key((uint64_t)(a.first_byte + at) / 8);
  unsigned long long hash = 0;
  for (int tile = (int)warp; tile < tiles; tile += warps) {
    if constexpr (by_units) {
      uint32_t word[2 * Bits] = {};
#pragma unroll
      for (int half = 0; half < 2; half++) {
        take_unit<Reader, Bits>(row + 8 * half * row_bytes, lane % 4, flips, word + half, seen);
      }
      hash += is_second ? store_unit<Bits, 1>(word, to, key) : store_unit<Bits, 0>(word, to, key);
    } else {
      uint32_t word[lpg_lane_words(Bits)] = {};
#pragma unroll
      for (int half = 0; half < 2; half++) {
#pragma unroll
        for (int unit = 0; unit < units; unit++) {
          take_unit<Reader, Bits>(row + 8 * half * row_bytes + unit * unit_k, lane % 4, flips,
                                  word + 2 * unit * lpg_unit_words(Bits) + half, seen);
        }
      }
      hash += store_words(word, to, key);
    }
    row += warps * tile_k;
    to += next_tile<Bits, warps>::bytes;
    key += next_tile<Bits, warps>::key;
  }
  return hash;
}

/* ---- numbers of a source that has them among its codes ---- */

/* Which numbers a thread reads and writes: those of one pair of rows. */
struct pair_of_rows {
  int64_t n[2]; /* rows of the source */
  bool is_row[2];
  int64_t tile;
};

/* Groups that begin before column k. */
__device__ inline uint32_t groups_before(uint32_t k, uint32_t group_k) {
  const uint32_t most = k + group_k - 1;
  return (group_k & (group_k - 1)) != 0 ? most / group_k : most >> (31 - __clz((int)group_k));
}

/* A section's numbers of the groups that begin in columns [k0, end), and, at the end of the rows, those of padding
 * columns, by so many threads of which each has up to Most numbers of each row at a time. Loads come before stores, as
 * above. */
template <class Reader, int Threads, int Most, int Id>
__device__ inline bool store_section(const lpg_rows_args &a, const lpg_at &at, const pair_of_rows &pair, uint32_t k0,
                                     uint32_t end, bool is_last) {
  constexpr int groups = Threads / 8; /* a turn */
  const unsigned thread = threadIdx.x % Threads;
  const lpg_numbers_to &to = a.numbers[Id];
  bool bad = false;
  if (!to.section) return false;
  const uint32_t stop = is_last ? (uint32_t)to.padded : groups_before(end, to.group_k);
  for (uint32_t group = groups_before(k0, to.group_k) + thread / 8; group < stop; group += Most * groups) {
    uint32_t number[Most][2];
#pragma unroll
    for (int i = 0; i < Most; i++) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const bool is_number = pair.is_row[half] && group + i * groups < min(stop, (uint32_t)to.count);
        number[i][half] = is_number ? Reader::number(at, (lpg_section_id)Id, pair.n[half],
                                                     (int64_t)(group + i * groups) + to.first_group)
                                    : 0;
      }
    }
    const int here = (int)min((stop - group + groups - 1) / groups, (uint32_t)Most);
#pragma unroll
    for (int i = 0; i < Most; i++) bad |= max(number[i][0], number[i][1]) > to.largest;
    put_numbers<Most, groups>(to, pair.tile, thread % 8, group, here, number);
  }
  return bad;
}

/* Each of them is read and written by one block, right after the codes beside which it lies. */
template <class Reader, int Threads, int Most = 4>
__device__ inline void store_numbers(const lpg_rows_args &a, const lpg_at &at, int64_t row0, uint32_t k0, uint32_t end,
                                     bool is_last) {
  const int64_t row_tile = (a.first_row + row0) / LPG_TILE_ROWS;
  if (a.shares && row_tile % a.tiles_a_scale != 0) return; /* an earlier tile's block has them */
  pair_of_rows pair;
  pair.tile = a.shares ? row_tile / a.tiles_a_scale : row_tile;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int64_t row = a.shares ? row0 : row0 + threadIdx.x % 8 + 8 * half;
    pair.is_row[half] = row < a.rows;
    pair.n[half] = source_row(a, pair.is_row[half] ? row : row0);
  }
  bool bad = store_section<Reader, Threads, Most, LPG_SECTION_SCALES>(a, at, pair, k0, end, is_last);
  bad |= store_section<Reader, Threads, Most, LPG_SECTION_ZEROS>(a, at, pair, k0, end, is_last);
  if constexpr (Reader::has_supers) {
    bad |= store_section<Reader, Threads, Most, LPG_SECTION_SUPER_SCALES>(a, at, pair, k0, end, is_last);
    bad |= store_section<Reader, Threads, Most, LPG_SECTION_SUPER_ZEROS>(a, at, pair, k0, end, is_last);
  }
  if (bad) a.found->any_bad = 1;
}

/* ---- the kernel ---- */

/* Four blocks of an SM hide what the loads of threads wait for. */
template <class Reader, int Bits>
__global__ void __launch_bounds__(256, 4) pack_rows_kernel(const __grid_constant__ lpg_rows_args a) {
  constexpr int buffers = Reader::copies ? 2 : 1;
  __shared__ __align__(16) uint8_t staged[buffers][LPG_TILE_ROWS * row_bytes];
  constexpr uint32_t too_high = ~(((1u << Bits) - 1u) * 0x01010101u);
  constexpr int tiles = chunk_k / lpg_tile_k(Bits);
  const int64_t row_tile = blockIdx.y, row0 = row_tile * LPG_TILE_ROWS;
  const int64_t chunks = lpg_ceil_div(a.k_tiles, tiles), first = (int64_t)blockIdx.x * a.chunks;
  const int64_t end = min(first + a.chunks, chunks);
  unsigned long long hash = 0;
  uint32_t seen = 0;
  lpg_at at = a.at;
  const rows_of_turns from = find_rows<Reader>(a, row0);
  if (Reader::grid_entries) { /* looked up once for four or eight codes */
    __shared__ uint16_t grid[Reader::grid_entries + 1];
    for (int i = threadIdx.x; i < Reader::grid_entries; i += 256) grid[i] = __ldg(a.at.grid + i);
    at.grid = grid;
    __syncthreads();
  }
  if (Reader::copies) {
    stage_codes<Reader, Bits>(a, at, from, row0, first * chunk_k, staged[0]);
    __pipeline_commit();
  }
  for (int64_t chunk = first; chunk < end; chunk++) {
    const uint8_t *here = staged[(chunk - first) % buffers];
    if (!Reader::copies) {
      stage_codes<Reader, Bits>(a, at, from, row0, chunk * chunk_k, staged[0]);
    } else if (chunk + 1 < end) { /* the next one is under way while this one is stored */
      stage_codes<Reader, Bits>(a, at, from, row0, (chunk + 1) * chunk_k, staged[(chunk + 1 - first) % buffers]);
      __pipeline_commit();
      __pipeline_wait_prior(1);
    } else {
      __pipeline_wait_prior(0);
    }
    __syncthreads();
    hash += store_chunk<Reader, Bits>(a, here, row_tile, chunk * tiles, &seen);
    __syncthreads();
  }
  if constexpr (Reader::has_numbers) {
    store_numbers<Reader, 256>(a, at, row0, (uint32_t)(first * chunk_k), (uint32_t)(end * chunk_k), end == chunks);
  }
  if (!a.found) return;
  if (Reader::copies && (seen & too_high)) a.found->any_bad = 1;
  add_hash(a.found->hash, hash);
}

}  // namespace
}  // namespace lpg
