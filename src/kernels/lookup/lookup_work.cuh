/* What the parts of the lookup kernels have in common: their arguments, and what their template parameters mean. */
#pragma once

#include "../blocks.cuh"
#include "../chunk_numbers.cuh"
#include "../epilogue.cuh"
#include "lookup_plan.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct lookup_args {
  lpg_lookup_plan plan;
  chunk_numbers_args numbers;
  const uint8_t *codes;
  int32_t row_bytes;   /* of the codes of a row tile */
  int32_t row_vectors; /* of them, 512 bytes each */
  int32_t row_tiles, n, m;
  int64_t k, ldx;
  const uint8_t *x;
  lpgemm_dtype_t x_type;
  epilogue_args epilogue;
};

/* Columns: rows of X; General: scales that are not fp16, or zeros that differ. */
template <int Bits_, int Columns_, bool General_>
struct lookup_traits {
  static constexpr int Bits = Bits_, Columns = Columns_;
  static constexpr bool General = General_;
  static constexpr int warps = LPG_LOOKUP_WARPS, threads = 32 * warps;
  static constexpr int row_tiles = LPG_LOOKUP_ROW_TILES, rows = row_tiles * LPG_TILE_ROWS; /* of weights */
  static constexpr int block_chunks = lpg_lookup_block_k(Bits) / LPG_CHUNK_K;
  static constexpr int vectors = Bits == 4 ? 2 : 1; /* of 512 bytes, of a row tile, in a block */
  static constexpr int unit_bytes = LPG_TABLE_LANES * LPG_TABLE_BYTES, chunk_bytes = lpg_lookup_chunk_bytes(Bits);
  static constexpr int sets = row_tiles / 2; /* of four rows of a lane, which a byte permutation takes at once */
  static constexpr int halves = sets / 2;    /* pairs of sets, whose sums are in one product's accumulators */
};

/* What a chunk of a row of X has behind its tables. With fixed zeros the sums are multiplied by what they count. */
struct chunk_sums {
  alignas(16) float unit; /* NaN if the chunk has an infinity or NaN */
  float low, high, sum;   /* sum of its integers: modulo 2^14 and what is above, and rounded */
};

constexpr int low_bits = 2 * LPG_DIGIT_BITS; /* what the two lower digits hold */

}  // namespace
}  // namespace lpg
