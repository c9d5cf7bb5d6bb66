/* What the parts of the bits kernels have in common: their arguments, and what their template parameters mean. */
#pragma once

#include "../kernels/blocks.cuh"
#include "../kernels/epilogue.cuh"
#include "bits_plan.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

enum bits_zero { bits_zero_fixed, bits_zero_per_group, bits_zero_minimum };

/* Scales and zeros in the packed form, and what follows from the type of the weights. */
struct bits_numbers {
  const uint8_t *scales, *zeros; /* NULL: absent */
  lpgemm_dtype_t scale_type, zero_type;
  bits_zero zero;
  int scale_slot, zero_slot; /* bytes of the 16 values of a row tile and group */
  int64_t scale_row, zero_row;
  int group_shift, last_group; /* of chunk c: min(c >> group_shift, last_group) */
  float step, offset;          /* value of a stored code: step * code + offset */
  float most_center;           /* twice the largest code */
  float center, rest;          /* fixed zeros: twice the code from which codes are counted; what is left of the zero,
                                  counted in halves of a step */
};

struct bits_args {
  lpg_bits_plan plan;
  bits_numbers numbers;
  const uint8_t *codes;
  int64_t row_bytes;   /* of the codes of a row tile */
  int32_t row_vectors; /* of them, 512 bytes each */
  int32_t row_tiles, n, m;
  int64_t k, ldx;
  const uint16_t *x;
  int is_bf16;
  epilogue_args epilogue;
};

/* Columns: rows of X, 1 or an even number; General: scales that are not fp16, or zeros that differ.
 *
 * Four things stand side by side in the lanes t of a unit: its four chunks for the only row of X, or its two chunks for
 * two rows of X, in turn. */
template <int Bits_, int Columns_, bool General_>
struct bits_traits {
  static constexpr int Bits = Bits_, Columns = Columns_;
  static constexpr bool General = General_;
  static constexpr int warps = LPG_BITS_WARPS, threads = 32 * warps, row_tiles = lpg_bits_row_tiles(Columns);
  static constexpr int chunks = lpg_bits_chunks(Columns), blocks = chunks / 2; /* of a unit; blocks of 256 columns */
  static constexpr int pairs = Columns == 1 ? 1 : Columns / 2;                 /* of rows of X; or the only one */
  static constexpr int rows = row_tiles * LPG_TILE_ROWS;                       /* of weights */
  static constexpr int vectors = Bits * blocks;                                /* of 512 bytes, of a row tile */
  /* Units whose loads are under way. */
  static constexpr int depth = Bits == 1 ? 4 : General ? 2 : 3;
  static constexpr int block_words = lpg_bits_block_words(Bits), plane_words = lpg_bits_plane_words(Bits);
  static constexpr int digits = lpg_fixed_digits(Bits);
};

}  // namespace
}  // namespace lpg
