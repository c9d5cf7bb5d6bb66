/* Tables in shared memory that do not change any more: reads that the compiler may move. */
#pragma once

#include <cstdint>

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Four bytes at `address` + Offset. Not before what the address was computed from: keep() holds that behind a barrier.
 */
template <int Offset>
__device__ inline int read_entry(uint32_t address) {
  int entry;
  asm("ld.shared.s32 %0, [%1+%2];" : "=r"(entry) : "r"(address), "n"(Offset));
  return entry;
}

}  // namespace
}  // namespace lpg
