/* Kernels that follow one another in a stream (sm_90 and later): the next one's blocks may start, and get ready, while
 * the one before has its last ones. Such a kernel is launched with launch_cluster(..., true) and touches global
 * memory only after it has waited for the one before. */
#pragma once

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Says that the next kernel may start as soon as there is room; it waits for this one's end by itself. */
__device__ inline void pdl_launch_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Until the kernel before is done, and what it wrote is visible. */
__device__ inline void pdl_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace
}  // namespace lpg
