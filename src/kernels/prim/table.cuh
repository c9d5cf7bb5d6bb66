/* Reads of tables in shared memory that are complete and do not change any more. */
#ifndef LPG_PRIM_TABLE_CUH
#define LPG_PRIM_TABLE_CUH

#include <cstdint>

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Four bytes at address + Offset. The asm is not volatile, so the compiler may move it, but not before the computation
 * of `address`: see load_matrices() in mma.cuh. */
template <int Offset>
__device__ inline int read_entry(uint32_t address) {
  int entry;
  asm("ld.shared.s32 %0, [%1+%2];" : "=r"(entry) : "r"(address), "n"(Offset));
  return entry;
}

}  // namespace
}  // namespace lpg

#endif
