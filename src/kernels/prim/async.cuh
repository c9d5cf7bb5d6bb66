/* Copies and loads: cp.async (sm_80), bulk copies and TMA (sm_90), and loads and stores by an address in shared memory.
 *
 * A thread starts a copy and goes on. cp.async is waited for by the thread itself (commit_copies, wait_copies) or
 * through an mbarrier; bulk copies and TMA always count their bytes on an mbarrier. TMA is one descriptor-driven copy
 * of a box (a rectangle) of a matrix. */
#ifndef LPG_PRIM_ASYNC_CUH
#define LPG_PRIM_ASYNC_CUH

#include <cstdint>

#include "shared.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* cp.async of 16 bytes, past L1. */
__device__ inline void copy16_async(uint32_t to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

/* The same if `valid`; else 16 zero bytes are written and nothing is read. */
__device__ inline void copy16_async(uint32_t to, const void *from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}

/* Copies the first `bytes` of 16 bytes; the others become zero. */
__device__ inline void copy_some_async(uint32_t to, const void *from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

/* The same with 8 bytes, aligned to 8. */
__device__ inline void copy8_async(uint32_t to, const void *from, bool valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(valid ? 8 : 0) : "memory");
}

/* Bulk copy to this CTA's shared memory. `bytes`: a multiple of 16, counted on `barrier` (sm_90 and later). */
__device__ inline void copy_bulk(uint32_t to, const void *from, int bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

/* The same as a multicast: to the same offset in the shared memory of every CTA of the cluster whose bit is set in
 * `ctas`; the bytes count on the same mbarrier of each of them. */
__device__ inline void copy_to_blocks(uint32_t to, const void *from, int bytes, uint32_t barrier, uint16_t ctas) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], "
      "%4;" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier), "h"(ctas)
      : "memory");
}

/* TMA multicast: a box of the matrix that the tensor map describes (a kernel parameter), from (column, row) on. What
 * lies outside the matrix is written as zero. */
__device__ inline void copy_box_to_blocks(uint32_t to, const void *map, int column, int row, uint32_t barrier,
                                          uint16_t ctas) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, "
      "%3}], [%4], %5;" ::"r"(to),
      "l"(map), "r"(column), "r"(row), "r"(barrier), "h"(ctas)
      : "memory");
}

/* True for exactly one lane; all lanes of the warp must call it. The compiler knows that it is one lane, so it makes no
 * loop over lanes around the TMA instructions behind it. */
__device__ inline bool is_elected() {
  uint32_t elected;
  asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(elected));
  return elected != 0;
}

/* How L2 keeps what copies read: what is read once goes before other lines. */
__device__ inline uint64_t l2_policy(bool is_read_once) {
  uint64_t policy;
  asm("{\n\t.reg .pred p;\n\t.reg .b64 once, usual;\n\tsetp.ne.s32 p, %1, 0;\n\t"
      "createpolicy.fractional.L2::evict_first.b64 once, 1.0;\n\t"
      "createpolicy.fractional.L2::evict_normal.b64 usual, 1.0;\n\t"
      "selp.b64 %0, once, usual, p;\n\t}"
      : "=l"(policy)
      : "r"((int)is_read_once));
  return policy;
}

/* TMA of a box of two dimensions to this CTA's shared memory only. */
__device__ inline void copy_box(uint32_t to, const void *map, int column, int row, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          to),
      "l"(map), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}

/* The same of three and four dimensions, with a policy for L2. */
__device__ inline void copy_box(uint32_t to, const void *map, int x, int y, int z, uint32_t barrier, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3, "
      "%4}], [%5], %6;" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier), "l"(policy)
      : "memory");
}

__device__ inline void copy_box(uint32_t to, const void *map, int x, int y, int z, int w, uint32_t barrier,
                                uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3, "
      "%4, %5}], [%6], %7;" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier), "l"(policy)
      : "memory");
}

/* TMA of a box of this CTA's shared memory to a matrix; what lies outside of the matrix is not written. Threads that
 * wrote the box there have fenced (fence_for_tensor_cores()). The thread's stores since the last commit are a group. */
__device__ inline void store_box(const void *map, int column, int row, uint32_t from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(column),
               "r"(row), "r"(from)
               : "memory");
}

__device__ inline void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

/* Waits until the thread's stores have read shared memory. */
__device__ inline void wait_stores_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

/* Fetches the descriptor that copy_box() or store_box() will read. */
__device__ inline void prefetch_map(const void *map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory"); }

/* Loads the cache line at `at` into L2. */
__device__ inline void prefetch_to_l2(const void *at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }

/* Closes the thread's current group of cp.async copies. */
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/* Loads 16 bytes that nobody reads again into four words, past L1. */
__device__ inline void load16(const void *from, uint32_t *word) {
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
               : "l"(from));
}

/* The same if count > index; else the words keep their values. */
__device__ inline void load16_if_more(int count, int index, const void *from, uint32_t *word) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.gt.s32 p, %5, %6;\n\t"
      "@p ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n\t}"
      : "+r"(word[0]), "+r"(word[1]), "+r"(word[2]), "+r"(word[3])
      : "l"(from), "r"(count), "r"(index));
}

/* Loads 1, 2 or 4 bytes that no kernel writes. The load stays where it stands, ahead of its use. */
template <int Bytes>
__device__ inline uint32_t load_small(const void *from) {
  uint32_t word;
  if (Bytes == 4) {
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(word) : "l"(from));
  } else if (Bytes == 2) {
    asm volatile("{\n\t.reg .u16 h;\n\tld.global.nc.u16 h, [%1];\n\tcvt.u32.u16 %0, h;\n\t}" : "=r"(word) : "l"(from));
  } else {
    asm volatile("{\n\t.reg .u16 h;\n\tld.global.nc.u8 h, [%1];\n\tcvt.u32.u16 %0, h;\n\t}" : "=r"(word) : "l"(from));
  }
  return word;
}

/* Loads and stores of shared memory by address: 16 bytes; load_two_words: 8 bytes; load_word: 4 bytes; load_half: 2
 * bytes. */
__device__ inline void load_words(uint32_t from, uint32_t *word) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
               : "r"(from)
               : "memory");
}

__device__ inline void load_two_words(uint32_t from, uint32_t *word) {
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(word[0]), "=r"(word[1]) : "r"(from) : "memory");
}

__device__ inline float4 load_four(uint32_t from) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(from)
               : "memory");
  return v;
}

__device__ inline uint32_t load_word(uint32_t from) {
  uint32_t word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
  return word;
}

__device__ inline uint32_t load_half(uint32_t from) {
  uint32_t half;
  asm volatile("{\n\t.reg .u16 h;\n\tld.shared.u16 h, [%1];\n\tcvt.u32.u16 %0, h;\n\t}"
               : "=r"(half)
               : "r"(from)
               : "memory");
  return half;
}

__device__ inline void store_words(uint32_t to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

/* Waits for all cp.async copies of the thread, in a closed group or not. */
__device__ inline void wait_all_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/* Waits until at most Left of the thread's groups are still under way. */
template <int Left>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
}

}  // namespace
}  // namespace lpg

#endif
