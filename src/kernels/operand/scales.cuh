/* Scales and zeros: sections of the packed weights, copied to shared memory a chunk of k blocks at a time, and read
 * there as fp32. What a stored value means is the same for all families; what they do with it is their own. */
#pragma once

#include <cuda_fp16.h>

#include "../../internal.h"
#include "../prim/async.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- arguments ---- */

/* One section as a warp reads it, k block after k block. */
struct scale_section {
  const uint8_t *values;
  lpgemm_dtype_t type;
  int slot_bytes;    /* bytes of the 16 values of a row tile and scale group */
  int row_bytes;     /* of all scale groups of a row tile, or of as many as share them */
  int row_shift;     /* 2^this row tiles share scales */
  int groups;        /* granules (lpg_granule_k()) of a k block, at least one */
  int block_bytes;   /* bytes of their values */
  int granules_each; /* granules that share a value; 0: all of them */
  int bytes;         /* of a chunk of k blocks of one row tile, in shared memory */
  int offset;        /* of the first row tile, in the stage's scales */
};

enum scale_role { role_scale, role_super_scale, role_zero, role_super_zero, scale_roles };

/* What is common has a faster way: fp16 scales and nothing else; or with zeros a group that are codes, a byte each. */
enum scales_form { form_any, form_f16, form_f16_zeros };

enum zero_mode { zero_fixed, zero_per_group, zero_minimum };

struct scales_args {
  scale_section section[scale_roles];
  int sections;           /* how many the weights have */
  int which[scale_roles]; /* index of each role's section; -1: absent */
  scales_form form;
  int one_copy; /* one section, and a lane copies at most 16 bytes of it a chunk */
  zero_mode mode;
  float factor;             /* weight = factor * d + rest */
  float offset;             /* of a stored integer: value = step * stored + offset */
  float step, inverse_step; /* 1 or 2, and 1 / step */
  float most;               /* the largest center */
  float fixed_shift;        /* zero_fixed: shift = scale * fixed_shift */
  int has_shift;            /* fixed_shift is not 0, or zeros differ */
  /* For weights that are scaled before the MMA (gemm). */
  int scale_exponent; /* the largest scale of a row is used near 2^this */
  int scale_on_rows;  /* one scale a row: it goes on the sums */
};

/* ---- copies ---- */

/* Starts the copies of a chunk of k blocks, from `block` on, of row tiles row_tile .. row_tile + RowTiles - 1 to `raw`
 * (shared memory). The whole warp takes part. Row tiles beyond the matrix repeat the last one; values beyond its K
 * become zero. */
template <int RowTiles, int Chunk>
__device__ inline void copy_all(const scales_args &a, int lane, int row_tile, int row_tiles, int block, uint32_t raw) {
  int begin = -lane; /* minus the lane's first piece in this section */
#pragma unroll 1
  for (int i = 0; i < a.sections; i++) {
    const scale_section &s = a.section[i];
    const int size = s.slot_bytes < 16 ? 8 : 16, each = Chunk * s.block_bytes / size;
    int piece = -begin;
#pragma unroll 1
    for (; piece < RowTiles * each; piece += 32) {
      int r = 0;
#pragma unroll
      for (int next = 1; next < RowTiles; next++) r += piece >= next * each;
      const int at = (piece - r * each) * size;
      int first = block * s.block_bytes + at;
      if (s.granules_each != 1) {
        const int granule = (unsigned)first / (unsigned)s.slot_bytes, in_slot = first - granule * s.slot_bytes;
        const int group = s.granules_each ? (unsigned)granule / (unsigned)s.granules_each : 0;
        first = group * s.slot_bytes + in_slot;
      }
      const uint8_t *from = s.values + (int64_t)(min(row_tile + r, row_tiles - 1) >> s.row_shift) * s.row_bytes + first;
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

/* The same for one section of which each lane copies at most 16 bytes (one_copy). */
template <int RowTiles, int Chunk>
__device__ inline void copy_one(const scale_section &s, int lane, int row_tile, int row_tiles, int block,
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
      s.granules_each ? block * s.block_bytes + at : at & (s.block_bytes - 1); /* all blocks share a group */
  const uint8_t *from = s.values + (int64_t)(min(row_tile + r, row_tiles - 1) >> s.row_shift) * s.row_bytes + first;
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

/* Every type that scales and zeros may have, as packed.c checks them; all families read them by these lists, except
 * where a faster way is known. LPG_UPPER_SCALES: types of the upper of two levels. LPG_FLOAT_SCALES: with what one
 * level may be besides unsigned integers. LPG_SCALE_VALUE_TYPES: all that are not read as unsigned bytes, as u8 and
 * 6-bit values are. */
#define LPG_UPPER_SCALES(type) type(LPGEMM_F16) type(LPGEMM_BF16) type(LPGEMM_F32)
#define LPG_FLOAT_SCALES(type) LPG_UPPER_SCALES(type) type(LPGEMM_E4M3) type(LPGEMM_E8M0)
#define LPG_SCALE_VALUE_TYPES(type) LPG_FLOAT_SCALES(type) type(LPGEMM_U16) type(LPGEMM_I8) type(LPGEMM_UINT(4))

template <lpgemm_dtype_t Type>
__device__ inline float scale_value(uint32_t bits) {
  if constexpr (Type == LPGEMM_F16) {
    return __half2float(__ushort_as_half((unsigned short)bits));
  } else if constexpr (Type == LPGEMM_BF16) {
    return lpg_bits_f32(bits << 16);
  } else if constexpr (Type == LPGEMM_F32) {
    return lpg_bits_f32(bits);
  } else if constexpr (Type == LPGEMM_E4M3) {
    return e4m3_value(bits);
  } else if constexpr (Type == LPGEMM_E8M0) {
    return e8m0_value(bits);
  } else if constexpr (Type == LPGEMM_I8) {
    return (float)(int8_t)bits;
  } else {
    static_assert(lpg_kind(Type) == LPGEMM_KIND_UINT, "a type of LPG_NUMBER_TYPES has no value");
    return (float)bits;
  }
}

/* The value of a type that is known at run time only; one level. */
#define LPG_SCALE_VALUE_CASE(type) \
  case type: return scale_value<type>(bits);
__device__ inline float scale_value(lpgemm_dtype_t type, uint32_t bits) {
  switch (type) {
    LPG_FLOAT_SCALES(LPG_SCALE_VALUE_CASE)
    default: return scale_value<LPGEMM_U8>(bits);
  }
}
#undef LPG_SCALE_VALUE_CASE

/* The values of rows g and g + 8 of a row tile; slot: its 16 values. */
template <lpgemm_dtype_t Type>
struct two_scales {
  __device__ float2 operator()(const uint8_t *slot, int g) const {
    constexpr int slot_bytes = lpg_slot_bytes(Type);
    if constexpr (Type == LPGEMM_F16) return __half22float2(((const __half2 *)slot)[g]);
    uint32_t first, second;
    if constexpr (slot_bytes == LPG_TILE_ROWS * 4) {
      const uint2 two = ((const uint2 *)slot)[g];
      first = two.x;
      second = two.y;
    } else if constexpr (slot_bytes == LPG_TILE_ROWS * 2) {
      const uint32_t two = ((const uint32_t *)slot)[g];
      first = two & 0xffffu;
      second = two >> 16;
    } else if constexpr (slot_bytes == LPG_TILE_ROWS) {
      const uint32_t two = ((const uint16_t *)slot)[g];
      first = two & 0xffu;
      second = two >> 8;
    } else {
      first = slot[g] & 15;
      second = slot[g] >> 4;
    }
    return make_float2(scale_value<Type>(first), scale_value<Type>(second));
  }
};

/* Calls `use` with the two_scales of that type, so that the type is looked at once for many reads. */
#define LPG_READER_CASE(type) \
  case type: use(two_scales<type>()); break;
template <class Use>
__device__ inline void with_reader(lpgemm_dtype_t type, Use use) {
  switch (type) {
    LPG_SCALE_VALUE_TYPES(LPG_READER_CASE)
    default: use(two_scales<LPGEMM_U8>()); break;
  }
}

template <class Use>
__device__ inline void with_upper_reader(lpgemm_dtype_t type, Use use) {
  switch (type) { LPG_UPPER_SCALES(LPG_READER_CASE) }
}
#undef LPG_READER_CASE

}  // namespace
}  // namespace lpg
