/* Reads of global memory into L2 alone (sm_90 and later). */
#pragma once

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Starts to bring `bytes` bytes to L2; address and bytes are multiples of 16. */
__device__ inline void prefetch_to_l2(const void *from, int bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}

}  // namespace
}  // namespace lpg
