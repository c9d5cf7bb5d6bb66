/* Scales and zeros as kernels find them: sections of the packed form, copied to shared memory a chunk of blocks of 256
 * columns at a time. What a number is, is the same to all; what becomes of it is each family's. */
#pragma once

#include <cuda_fp16.h>

#include "../internal.h"
#include "prim/async.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- arguments ---- */

/* One section as a warp reads it, block after block. */
struct number_section {
  const uint8_t *values;
  lpgemm_dtype_t type;
  int slot_bytes;  /* of the 16 values of a row tile and group */
  int row_bytes;   /* of all groups of a row tile */
  int groups;      /* of a block, at least one */
  int block_bytes; /* of them */
  int blocks_each; /* blocks that share a group; 0: all of them */
  int bytes;       /* of a chunk of blocks of a row tile, in shared memory */
  int offset;      /* of the first row tile's, there */
};

enum number_role { role_scale, role_super_scale, role_zero, role_super_zero, number_roles };
enum zero_mode { zero_fixed, zero_per_group, zero_minimum };

struct numbers_args {
  number_section section[number_roles];
  int sections;            /* that there are */
  int which[number_roles]; /* the section of each role; -1: absent */
  int only_f16_scales;     /* and nothing else: the common case */
  int one_copy;            /* one section, of which each lane copies at most 16 bytes a chunk */
  zero_mode mode;
  float factor;             /* weight = factor * d + rest */
  float offset;             /* of a stored integer: value = step * stored + offset */
  float step, inverse_step; /* 1 or 2, and 1 / step */
  float most;               /* the largest center */
  float fixed_shift;        /* zero_fixed: shift = scale * this */
  int has_shift;            /* fixed_shift is not 0, or zeros differ */
  /* For weights that are scaled before they are multiplied. */
  int scale_exponent; /* the largest scale of a row is brought near 2^this */
  int scale_on_rows;  /* one scale a row: it goes on the sums */
};

/* ---- copies ---- */

/* Starts to copy the values of a chunk of blocks of row tiles row_tile .. row_tile + RowTiles - 1 to `raw`. Row tiles
 * that are not there repeat the last; what is beyond the columns is zero. */
template <int RowTiles, int Chunk>
__device__ inline void copy_all(const numbers_args &a, int lane, int row_tile, int row_tiles, int block, uint32_t raw) {
  int begin = -lane; /* piece of the lane's first, counted from the section's first */
#pragma unroll 1
  for (int i = 0; i < a.sections; i++) {
    const number_section &s = a.section[i];
    const int size = s.slot_bytes < 16 ? 8 : 16, each = Chunk * s.block_bytes / size;
    int piece = -begin;
    for (; piece < RowTiles * each; piece += 32) {
      int r = 0;
#pragma unroll
      for (int next = 1; next < RowTiles; next++) r += piece >= next * each;
      const int at = (piece - r * each) * size;
      int first = block * s.block_bytes + at;
      if (s.blocks_each != 1) {
        const int in_chunk = (unsigned)at / (unsigned)s.block_bytes, in_block = at - in_chunk * s.block_bytes;
        const int group = s.blocks_each ? (unsigned)(block + in_chunk) / (unsigned)s.blocks_each : 0;
        first = group * s.block_bytes + in_block;
      }
      const uint8_t *from = s.values + (int64_t)min(row_tile + r, row_tiles - 1) * s.row_bytes + first;
      const uint32_t to = raw + s.offset + r * s.bytes + at;
      if (size == 16) {
        copy16_async(to, from, first < s.row_bytes);
      } else {
        copy8_async(to, from, first < s.row_bytes);
      }
    }
    begin = RowTiles * each - piece;
  }
}

/* The same where there is one section, of which each lane copies at most 16 bytes. */
template <int RowTiles, int Chunk>
__device__ inline void copy_one(const number_section &s, int lane, int row_tile, int row_tiles, int block,
                                uint32_t raw) {
  const int chunk_bytes = Chunk * s.block_bytes;
  int at = lane * 16, r = 0;
#pragma unroll
  for (int next = 1; next < RowTiles; next++) {
    if (lane * 16 < next * chunk_bytes) continue;
    at -= chunk_bytes;
    r++;
  }
  if (at >= chunk_bytes) return;
  const int first =
      s.blocks_each ? block * s.block_bytes + at : at & (s.block_bytes - 1); /* all blocks have the same */
  const uint8_t *from = s.values + (int64_t)min(row_tile + r, row_tiles - 1) * s.row_bytes + first;
  copy16_async(raw + s.offset + r * s.bytes + at, from, first < s.row_bytes);
}

/* ---- from packed to fp32 ---- */

__device__ inline float e4m3_value(uint32_t code) {
  const uint32_t half = (code & 0x80u) << 8 | (code & 0x7fu) << 7;
  const float value = __half2float(__ushort_as_half((unsigned short)half)) * 256.0f;
  return (code & 0x7fu) == 0x7fu ? NAN : value;
}

/* 2^(code - 127); 255 is NaN. */
__device__ inline float e8m0_value(uint32_t code) {
  return lpg_bits_f32(code == 0 ? 0x00400000u : code == 255 ? 0x7fc00000u : code << 23);
}

/* Calls `use` with what reads the two numbers, of rows g and g + 8, that a section of that type has for a group: so
 * that many are read with one look at the type. */
template <class Use>
__device__ inline void with_reader(lpgemm_dtype_t type, Use use) {
  const auto words = [&](auto values) {
    use([=](const uint8_t *slot, int g) { return values(((const uint32_t *)slot)[g]); });
  };
  const auto bytes = [&](auto value) {
    use([=](const uint8_t *slot, int g) {
      const uint32_t two = ((const uint16_t *)slot)[g];
      return make_float2(value(two & 0xffu), value(two >> 8));
    });
  };
  switch (type) {
    case LPGEMM_F32: use([](const uint8_t *slot, int g) { return ((const float2 *)slot)[g]; }); break;
    case LPGEMM_F16: words([](uint32_t two) { return __half22float2(*(const __half2 *)&two); }); break;
    case LPGEMM_BF16:
      words([](uint32_t two) { return make_float2(lpg_bits_f32(two << 16), lpg_bits_f32(two & 0xffff0000u)); });
      break;
    case LPGEMM_UINT(16):
      words([](uint32_t two) { return make_float2((float)(two & 0xffffu), (float)(two >> 16)); });
      break;
    case LPGEMM_UINT(4):
      use([](const uint8_t *slot, int g) { return make_float2((float)(slot[g] & 15), (float)(slot[g] >> 4)); });
      break;
    case LPGEMM_E4M3: bytes([](uint32_t code) { return e4m3_value(code); }); break;
    case LPGEMM_E8M0: bytes([](uint32_t code) { return e8m0_value(code); }); break;
    case LPGEMM_INT(8): bytes([](uint32_t code) { return (float)(int8_t)code; }); break;
    default: bytes([](uint32_t code) { return (float)code; }); break;
  }
}

}  // namespace
}  // namespace lpg
