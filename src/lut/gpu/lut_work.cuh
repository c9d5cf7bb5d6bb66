/* The arguments of the GPU's lut kernels, and the meaning of their template parameters. */
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
  int32_t row_bytes;   /* bytes of the codes of a row tile */
  int32_t row_vectors; /* the same in vectors of 512 bytes */
  int32_t row_tiles, n, m;
  int32_t center; /* fixed zeros: the center, in half codes from the middle of the codes */
  int64_t k, ldx;
  const uint8_t *x; /* a single row */
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
  static constexpr int row_tiles = lpg_lut_gpu_row_tiles(Bits), tile_n = row_tiles * LPG_TILE_ROWS; /* rows of W */
  static constexpr int lane_rows = 2 * row_tiles; /* rows of a super tile that a lane has words of: two a row tile */
  static constexpr int own_rows = lane_rows / 4;  /* of these, the rows it scales: four lanes share a row */
  static constexpr int vectors = lpg_lut_gpu_vectors(Bits), chunks = lpg_lut_gpu_chunks(Bits); /* of a k block */
  static constexpr bool whole = lpg_lane_words(Bits) == 4 * vectors; /* a k block is one packed tile */
  static constexpr bool ahead = Bits > 2; /* scales and zeros come with their k block's words: faster there */
  static constexpr int table_bytes = LPG_TABLE_ENTRIES * LPG_LANES * 4;
};

/* What a chunk has besides its tables. */
struct chunk_sums {
  alignas(16) float unit; /* NaN if the chunk has an infinity or NaN */
  int32_t sum, centered;  /* sum of its integers; the same times the fixed zero's center */
  float rest;             /* the sum times what is left of the fixed zero */
};
static_assert(sizeof(chunk_sums) == LPG_LUT_GPU_SCALES, "shared memory is laid out by the plan");

}  // namespace
}  // namespace lpg
