/* What CTAs of a cluster send to one another, round after round, is counted by an mbarrier of each (sm_90 and later):
 * so nobody fences what it sends, and nobody waits at the cluster's barrier, whose fence takes as long as all that a
 * thread has loaded and stored before. */
#pragma once

#include "../prim/barrier.cuh"
#include "../prim/cluster.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct peer_counter {
  uint32_t barrier; /* address; at the same offset in all CTAs */
  int ctas, rank;

  /* By all threads, at the start; cluster_wait() is to follow before anything is sent. */
  __device__ void start() const {
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0) {
      init_barrier(barrier, ctas);
      fence_barriers();
    }
    __syncwarp();
    cluster_arrive_only();
#endif
  }

  /* Says that this CTA has read what came in the round before, and will be sent so many bytes in this one. By all
   * threads, behind __syncthreads(). */
  __device__ void begin_round(int bytes) const {
#if __CUDA_ARCH__ >= 900
    const int cta = (int)threadIdx.x;
    if (cta >= ctas) return;
    if (cta == rank) {
      arrive_and_expect(barrier, bytes);
    } else {
      arrive_remote(barrier, (uint32_t)cta);
    }
#endif
  }

  /* Sends four floats to that CTA. `address`: as for store_to_block(). */
  __device__ void send(const void *to, uint32_t cta, float4 v) const {
    store_counted(shared_address(to), cta, v, barrier);
  }

  /* Waits until all has come that this CTA is sent in the round. */
  __device__ void wait(int round) const {
#if __CUDA_ARCH__ >= 900
    wait_barrier(barrier, (uint32_t)round % 2);
#endif
  }
};

}  // namespace
}  // namespace lpg
