/* What the parts of the lookup kernels have in common: their arguments, and what their template parameters mean. */
#pragma once

#include "../../kernels/epilogue/epilogue.cuh"
#include "../../kernels/operand/scales_chunk.cuh"
#include "../../kernels/plan/scheduler.cuh"
#include "lut_plan.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct lut_args {
  lpg_lut_gpu_plan plan;
  chunk_scales_args scale_data;
  const uint8_t *codes;
  int32_t row_bytes;   /* of the codes of a row tile */
  int32_t row_vectors; /* of them, 512 bytes each */
  int32_t row_tiles, n, m;
  int32_t center; /* fixed zeros: of the numbers' center, how far it is from the middle of the codes */
  int64_t k, ldx;
  const uint8_t *x; /* one row */
  lpgemm_dtype_t x_type;
  epilogue_args epilogue;
};

/* General: scales that are not fp16, or zeros that differ. */
template <int Bits_, bool General_>
struct lut_traits {
  using sum_type = float;
  static constexpr int Bits = Bits_, TileM = 1;
  static constexpr bool General = General_;
  static constexpr int warps = lpg_lut_gpu_warps(Bits), threads = 32 * warps;
  static constexpr int row_tiles = lpg_lut_gpu_row_tiles(Bits), tile_n = row_tiles * LPG_TILE_ROWS; /* of weights */
  static constexpr int lane_rows = 2 * row_tiles; /* of a super tile, that a lane has words of: g and g + 8 of each */
  static constexpr int own_rows = lane_rows / 4;  /* of these, that it scales: the four lanes of a row share them */
  static constexpr int vectors = lpg_lut_gpu_vectors(Bits), chunks = lpg_lut_gpu_chunks(Bits); /* of a block */
  static constexpr bool whole = lpg_lane_words(Bits) == 4 * vectors; /* it is a tile of the packed form */
  static constexpr bool ahead =
      Bits > 2; /* scales and zeros come with the words of their block, which is faster there */
  static constexpr int table_bytes = LPG_TABLE_ENTRIES * LPG_LANES * 4;
};

/* What a chunk has besides its tables. */
struct chunk_sums {
  alignas(16) float unit; /* NaN if the chunk has an infinity or NaN */
  int32_t sum, centered;  /* of its integers; times the fixed zero's center */
  float rest;             /* times what is left of the fixed zero */
};
static_assert(sizeof(chunk_sums) == LPG_LUT_GPU_SCALES, "shared memory is laid out by the plan");

}  // namespace
}  // namespace lpg
