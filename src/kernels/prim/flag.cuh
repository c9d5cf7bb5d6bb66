/* Flags in global memory, by which a warp of one CTA tells a warp of another that what it wrote may be read. What the
 * memory held before is not known: a flag is up when it is the number of the launch (lpgemm_i_launch_number()), and
 * whoever waited for it lowers it. */
#ifndef LPG_PRIM_FLAG_CUH
#define LPG_PRIM_FLAG_CUH

#include <cstdint>

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* After __syncwarp(): all that the warp wrote before comes before the flag. */
__device__ inline void raise_flag(uint64_t *flag, uint64_t number) {
  asm volatile("fence.acq_rel.gpu;\n\tst.release.gpu.global.u64 [%0], %1;" ::"l"(flag), "l"(number) : "memory");
}

/* Waits until it is raised. Each lane that is to read must wait itself. */
__device__ inline void wait_flag(const uint64_t *flag, uint64_t number) {
  asm volatile(
      "{\n\t.reg .pred p;\n\t.reg .u64 up;\n\tagain_%=:\n\tld.acquire.gpu.global.u64 up, [%0];\n\t"
      "setp.ne.u64 p, up, %1;\n\t@p bra again_%=;\n\t}" ::"l"(flag),
      "l"(number)
      : "memory");
}

}  // namespace
}  // namespace lpg

#endif
