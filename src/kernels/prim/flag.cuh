/* Flags in global memory, by which a warp of one CTA tells a warp of another that what it wrote may be read. */
#pragma once

#include <cstdint>

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* After __syncwarp(): all that the warp wrote before comes before the flag. */
__device__ inline void raise_flag(uint32_t *flag) {
  asm volatile("fence.acq_rel.gpu;\n\tst.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
}

/* Waits until it is raised. Each lane that is to read must wait itself. */
__device__ inline void wait_flag(const uint32_t *flag) {
  uint32_t is_up;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(is_up) : "l"(flag) : "memory");
  } while (is_up == 0);
}

}  // namespace
}  // namespace lpg
