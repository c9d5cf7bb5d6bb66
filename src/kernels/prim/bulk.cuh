/* Copies of whole runs of bytes that one thread starts, and barriers that count their bytes (sm_90 and later). */
#pragma once

#include <cstdint>

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Arrives at the barrier, whose phase ends when so many bytes have come as well. */
__device__ inline void arrive_with_bytes(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/* Multiples of 16 bytes, aligned to 16. */
__device__ inline void copy_bulk(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

}  // namespace
}  // namespace lpg
