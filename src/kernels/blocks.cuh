/* blocks.h as kernels see it. */
#pragma once

#include "blocks.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int block_k = LPG_BLOCK_K;
constexpr int steps = block_k / LPG_STEP_K; /* of a block */

/* The first thing of a part, and how many it has. */
__device__ inline int first_of(const lpg_shares &s, int part) { return part * s.each + min(part, s.more); }
__device__ inline int count_of(const lpg_shares &s, int part) { return s.each + (part < s.more); }

}  // namespace
}  // namespace lpg
