/* Programmatic dependent launch, PDL (griddepcontrol, sm_90 and later): the next kernel in the stream may start, and do
 * what needs no input, while the one before it still runs its last CTAs.
 *
 * A kernel that does so is launched with launch_cluster(..., true), and touches before pdl_wait() only what is final:
 * packed weights, and what docs/kernels/README.md names. */
#ifndef LPG_PRIM_PDL_CUH
#define LPG_PRIM_PDL_CUH

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Lets the next kernel start as soon as there is room. It still waits, in its pdl_wait(), for the end of this one. */
__device__ inline void pdl_launch_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Waits until the kernel before is done and its writes are visible. */
__device__ inline void pdl_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace
}  // namespace lpg

#endif
