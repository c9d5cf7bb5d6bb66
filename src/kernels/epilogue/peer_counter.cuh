/* What CTAs of a cluster send to one another, round after round, is counted by mbarriers of each (sm_90 and later): so
 * nobody fences what it sends, and nobody waits at the cluster's barrier, whose fence takes as long as all that a
 * thread has loaded and stored before.
 *
 * Two mbarriers and two areas, in turn. A CTA that has all of its own round begins the next one while others still wait
 * for theirs, so it must not count there; it cannot be two rounds ahead, since a round ends only when all have begun
 * it. Who has begun a round reads nothing of the one before. */
#pragma once

#include "../prim/barrier.cuh"
#include "../prim/cluster.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct peer_counter {
  uint32_t first; /* address of the first mbarrier; at the same offset in all CTAs */
  int ctas, rank;

  __device__ uint32_t of(int round) const { return first + 8 * (round % 2); }

  /* By all threads, at the start; cluster_wait() is to follow before anything is sent. */
  __device__ void start() const {
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0) {
      init_barrier(of(0), ctas);
      init_barrier(of(1), ctas);
      fence_barriers();
    }
    __syncwarp();
    cluster_arrive_only();
#endif
  }

  /* Says that this CTA has read what came in the round before, and will be sent so many bytes in this one. By all
   * threads, behind __syncthreads(). */
  __device__ void begin(int round, int bytes) const {
#if __CUDA_ARCH__ >= 900
    const int cta = (int)threadIdx.x;
    if (cta >= ctas) return;
    if (cta == rank) {
      arrive_and_expect(of(round), bytes);
    } else {
      arrive_remote(of(round), (uint32_t)cta);
    }
#endif
  }

  /* Sends four floats to the CTA of that rank. to: the place in this CTA's shared memory that has the same offset. */
  __device__ void send(int round, const void *to, uint32_t cta, float4 v) const {
    store_counted(shared_address(to), cta, v, of(round));
  }

  /* Waits until all has come that this CTA is sent in the round. */
  __device__ void wait(int round) const {
#if __CUDA_ARCH__ >= 900
    wait_barrier(of(round), (uint32_t)round / 2 % 2);
#endif
  }
};

}  // namespace
}  // namespace lpg
