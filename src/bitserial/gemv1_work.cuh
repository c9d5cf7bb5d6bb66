/* The arguments of the gemv1 kernels. */
#pragma once

#include "../kernels/epilogue/epilogue.cuh"
#include "../kernels/operand/scales_chunk.cuh"
#include "../kernels/plan/scheduler.cuh"
#include "gemv1_plan.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct gemv1_args {
  lpg_gemv1_plan plan;
  chunk_scales_args scale_data;
  const uint8_t *codes;
  int64_t row_bytes;   /* bytes of the codes of a row tile */
  int32_t row_vectors; /* the same in vectors of 512 bytes */
  int32_t row_tiles, n, m;
  int64_t k, ldx;
  const void *x;
  int is_bf16;
  epilogue_args epilogue;
};

}  // namespace
}  // namespace lpg
