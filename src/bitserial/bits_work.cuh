/* What the parts of the bits kernels have in common: their arguments, and what their template parameters mean. */
#pragma once

#include "../kernels/blocks.cuh"
#include "../kernels/chunk_numbers.cuh"
#include "../kernels/epilogue.cuh"
#include "bits_plan.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct bits_args {
  lpg_bits_plan plan;
  chunk_numbers_args numbers;
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
