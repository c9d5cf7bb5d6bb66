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
  asm volatile(
      "{\n\t.reg .pred p;\n\t.reg .u32 up;\n\tagain_%=:\n\tld.acquire.gpu.global.u32 up, [%0];\n\t"
      "setp.eq.u32 p, up, 0;\n\t@p bra again_%=;\n\t}" ::"l"(flag)
      : "memory");
}

}  // namespace
}  // namespace lpg
