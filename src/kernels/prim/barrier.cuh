/* Barriers: mbarriers in shared memory (sm_90 and later), the CTA's named barriers, fences, register counts.
 *
 * An mbarrier counts arrivals of threads and bytes of copies; when all are there its phase ends and the next begins. A
 * waiter names the phase by its parity: the first phase has parity 0, and waiting for parity 1 on a fresh mbarrier
 * returns at once. */
#ifndef LPG_PRIM_BARRIER_CUH
#define LPG_PRIM_BARRIER_CUH

#include <cstdint>

namespace lpg {
namespace { /* nothing here is a symbol of the library */

__device__ inline void init_barrier(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/* Makes initialised mbarriers visible to the cluster and to copies. */
__device__ inline void fence_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

/* Waits until the phase of that parity is over. */
__device__ inline void wait_barrier(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tagain_%=:\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t@!p bra "
      "again_%=;\n\t}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

/* Whether it is over; does not wait. */
__device__ inline bool barrier_is_over(uint32_t barrier, uint32_t parity) {
  uint32_t over;
  asm volatile(
      "{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
      : "=r"(over)
      : "r"(barrier), "r"(parity)
      : "memory");
  return over;
}

/* One arrival. */
__device__ inline void arrive(uint32_t barrier) {
  asm volatile("{\n\t.reg .b64 s;\n\tmbarrier.arrive.shared.b64 s, [%0];\n\t}" ::"r"(barrier) : "memory");
}

/* Arrives, and adds `bytes` to what the copies must bring before this phase ends. */
__device__ inline void arrive_and_expect(uint32_t barrier, int bytes) {
  asm volatile("{\n\t.reg .b64 s;\n\tmbarrier.arrive.expect_tx.shared.b64 s, [%0], %1;\n\t}" ::"r"(barrier), "r"(bytes)
               : "memory");
}

/* Adds the bytes without arriving. */
__device__ inline void expect_bytes(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/* Makes an arrival when all cp.async copies that the thread has started are done. */
__device__ inline void arrive_when_copied(uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
}

/* Arrives at the same mbarrier of the CTA of that rank in the cluster. Only for threads that have read and not written:
 * it is not meant to publish what the warp wrote. */
__device__ inline void arrive_remote(uint32_t barrier, uint32_t rank) {
  asm volatile(
      "{\n\t.reg .b32 remote;\n\tmapa.shared::cluster.u32 remote, %0, %1;\n\t"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n\t}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

/* The same for a warp that has written to that CTA's shared memory (one lane, behind __syncwarp()): what it wrote is
 * visible to who waits with wait_for_written(). */
__device__ inline void arrive_written(uint32_t barrier, uint32_t rank) {
  asm volatile(
      "{\n\t.reg .b32 remote;\n\tmapa.shared::cluster.u32 remote, %0, %1;\n\t"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n\t}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

/* Waits for the phase of that parity, and for what the warps wrote that have arrived so. */
__device__ inline void wait_for_written(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tagain_%=:\n\tmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], "
      "%1;\n\t@!p bra again_%=;\n\t}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

/* The CTA's numbered barriers 0 to 15 (bar.sync): `threads` threads, whole warps, must reach it; threads_arrive does
 * not wait for the others. */
__device__ inline void threads_meet(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ inline void threads_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/* Makes what cp.async and stores have written to shared memory visible to wgmma and TMA, which read shared memory by
 * themselves (the async proxy). */
__device__ inline void fence_for_tensor_cores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* Registers of each thread of a warpgroup; the CTA's warpgroups share what the kernel was launched with (sm_90a).
 * Producer warps give theirs up, consumer warps take them. */
template <int Registers>
__device__ inline void release_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

template <int Registers>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

}  // namespace
}  // namespace lpg

#endif
