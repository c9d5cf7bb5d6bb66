/* Clusters: CTAs that run together and access each other's shared memory (sm_90 and later). Before sm_90 a CTA is alone
 * and these functions do nothing. */
#ifndef LPG_PRIM_CLUSTER_CUH
#define LPG_PRIM_CLUSTER_CUH

#include <cstdint>

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The CTA's number in its cluster, and the cluster's in the grid (both of one dimension): no division. */
__device__ inline int cluster_rank() {
  uint32_t rank = 0;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
#endif
  return (int)rank;
}

__device__ inline int cluster_number() {
  uint32_t number = blockIdx.x;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %clusterid.x;" : "=r"(number));
#endif
  return (int)number;
}

/* The cluster's barrier, in two halves: all threads of all CTAs arrive, then wait. What a thread wrote to shared memory
 * before it arrived is visible after the wait. */
__device__ inline void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

/* Arrives without publishing anything: for threads that have only read, or have published already (mbarriers that they
 * initialised: fence_barriers()). */
__device__ inline void cluster_arrive_only() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}

__device__ inline void cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

/* Stores four floats to the shared memory of the CTA of that rank. `address`: the place in this CTA's shared memory
 * that has the same offset. */
__device__ inline void store_to_block(uint32_t address, uint32_t rank, float4 v) {
#if __CUDA_ARCH__ >= 900
  uint32_t remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(remote), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
#endif
}

/* The same with one value. */
__device__ inline void store_to_block(uint32_t address, uint32_t rank, float v) {
#if __CUDA_ARCH__ >= 900
  uint32_t remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(remote), "f"(v) : "memory");
#endif
}

__device__ inline void store_to_block(uint32_t address, uint32_t rank, int32_t v) {
  store_to_block(address, rank, __int_as_float(v));
}

/* The same in two steps: first the address in the cluster's shared memory window, then the store. */
__device__ inline uint32_t address_in_block(uint32_t address, uint32_t rank) {
  uint32_t remote = address;
#if __CUDA_ARCH__ >= 900
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
#endif
  return remote;
}

__device__ inline void store_at(uint32_t remote, uint32_t value) {
#if __CUDA_ARCH__ >= 900
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(remote), "r"(value) : "memory");
#endif
}

/* Loads from such an address. */
__device__ inline float load_one_at(uint32_t remote) {
  float v = 0.0f;
#if __CUDA_ARCH__ >= 900
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(remote) : "memory");
#endif
  return v;
}

__device__ inline float4 load_four_at(uint32_t remote) {
  float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#if __CUDA_ARCH__ >= 900
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(remote)
               : "memory");
#endif
  return v;
}

}  // namespace
}  // namespace lpg

#endif
