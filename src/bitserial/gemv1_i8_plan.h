/* What the counts kernels make of X, and what their plans need to know: plain arithmetic, for C and CUDA.
 *
 * Bytes of X become columns of bits beside weights that stay packed. Beside bit i of a weight's code a number a counts
 * 2^i a, in two's complement of 7 + bits digits: column q has bit q of it, and the last column counts negative. The
 * first 8 columns of a row of X are a tensor-core block; with 2 bits the ninth of every row of X share another. */
#ifndef LPG_BITSERIAL_GEMV1_I8_PLAN_H
#define LPG_BITSERIAL_GEMV1_I8_PLAN_H

#include "gemv1_plan.h"

enum {
  LPG_GEMV1_I8_MOST_X = 4,      /* rows of X; 8 spill */
  LPG_GEMV1_I8_CHUNKS = 4,      /* of 128 columns, of a unit */
  LPG_GEMV1_I8_ROW_BYTES = 12,  /* of what a row of weights has in shared memory: scale, shift, center */
  LPG_GEMV1_I8_MOST_K = 1 << 20 /* sums of so many columns fit 32 bits, wherever the zero is among the codes */
};

/* Columns of bits of a row of X. */
LPG_FN int lpg_gemv1_i8_planes(int bits) { return 7 + bits; }

/* What column q counts. */
LPG_FN int32_t lpg_gemv1_i8_weight(int bits, int q) { return q == lpg_gemv1_i8_planes(bits) - 1 ? -(1 << q) : 1 << q; }

/* What column q holds beside bit i of a code. */
LPG_FN uint32_t lpg_gemv1_i8_bit(int32_t a, int i, int q) { return (uint32_t)(a * (1 << i)) >> q & 1u; }

/* Tensor-core blocks of so many rows of X. */
LPG_FN int lpg_gemv1_i8_blocks(int bits, int columns) { return columns + bits - 1; }

/* For m rows. Nanoseconds: H200, 2026-11-23, 2048 x 2048 to 57344 x 8192, 1, 2 and 4 rows. */
static inline lpg_gemv1_mode lpg_gemv1_i8_mode_of(int bits, int64_t m) {
  lpg_gemv1_mode f = LPG_ZERO;
  f.tile_m = m <= 1 ? 1 : m <= 2 ? 2 : LPG_GEMV1_I8_MOST_X;
  f.row_tiles = 1;
  f.chunks = LPG_GEMV1_I8_CHUNKS;
  f.x_parts = 1;
  f.x_bytes = 2 * bits * lpg_gemv1_i8_blocks(bits, f.tile_m) * 256;
  f.row_bytes = LPG_GEMV1_I8_ROW_BYTES;
  f.chunk_bytes = f.slice_bytes = 4 * f.tile_m;
  f.unit = 29.5 * bits;
  f.planes = 6.0 * f.chunks * f.tile_m;
  return f;
}

#endif
