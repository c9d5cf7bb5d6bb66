/* The CTA's dynamic shared memory, which the launch gives it, and its addresses. */
#ifndef LPG_PRIM_SHARED_CUH
#define LPG_PRIM_SHARED_CUH

#include <cstdint>

/* Declares it in a kernel: `memory`, an array of `type`. A macro, so that the compiler sees the array there. */
#define LPG_SHARED_MEMORY(type, alignment) \
  extern __shared__ __align__(alignment)   \
  type memory[]

/* Declares a variable in a kernel whose CTAs access each other's, or which is accessed by its address. */
#define LPG_SHARED_VARIABLE(type, name) __shared__ type name

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The 32-bit address that instructions on shared memory take. */
__device__ inline uint32_t shared_address(const void *pointer) { return (uint32_t)__cvta_generic_to_shared(pointer); }

}  // namespace
}  // namespace lpg

#endif
