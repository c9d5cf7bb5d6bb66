/* Reads of global memory that run beside the thread (sm_80 and later). */
#pragma once

#include <cstdint>

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The address that instructions on shared memory take. */
__device__ inline uint32_t shared_address(const void *pointer) { return (uint32_t)__cvta_generic_to_shared(pointer); }

/* 16 bytes past L1. */
__device__ inline void copy16_async(uint32_t to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

/* The same if `valid`, else 16 zero bytes, and nothing is read. */
__device__ inline void copy16_async(uint32_t to, const void *from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}

/* The first `bytes` of 16; the others become zero. */
__device__ inline void copy_some_async(uint32_t to, const void *from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

/* The same with 8 bytes, aligned to 8. */
__device__ inline void copy8_async(uint32_t to, const void *from, bool valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(valid ? 8 : 0) : "memory");
}

/* Bytes (a multiple of 16) to this block's shared memory, as one copy; they count as bytes of the barrier (sm_90 and
 * later). */
__device__ inline void copy_bulk(uint32_t to, const void *from, int bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

/* Bytes (a multiple of 16) to the same place in the shared memory of the blocks of the cluster whose bits `blocks` has
 * (sm_90 and later); they count as bytes of the same barrier of each. */
__device__ inline void copy_to_blocks(uint32_t to, const void *from, int bytes, uint32_t barrier, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], "
      "%4;" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier), "h"(blocks)
      : "memory");
}

/* The same with a box of a matrix that the tensor map (a kernel's parameter) describes, from that column and row on;
 * what is beyond the matrix is zero. */
__device__ inline void copy_box_to_blocks(uint32_t to, const void *map, int column, int row, uint32_t barrier,
                                          uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, "
      "%3}], [%4], %5;" ::"r"(to),
      "l"(map), "r"(column), "r"(row), "r"(barrier), "h"(blocks)
      : "memory");
}

/* True for one lane of a warp, all of which call it, as the compiler knows: what it asks TMA
 * for needs no loop over lanes. */
__device__ inline bool is_elected() {
  uint32_t elected;
  asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(elected));
  return elected != 0;
}

/* A box to this block's shared memory alone: of a matrix, and of three dimensions. */
__device__ inline void copy_box(uint32_t to, const void *map, int column, int row, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          to),
      "l"(map), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}

__device__ inline void copy_box(uint32_t to, const void *map, int x, int y, int z, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::
          "r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier)
      : "memory");
}

/* Brings what lies there to the L2 cache. */
__device__ inline void prefetch_to_l2(const void *at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }

/* Closes the thread's current batch of copies. */
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/* Reads 16 bytes that nobody reads again, past L1, into four words. */
__device__ inline void load16(const void *from, uint32_t *word) {
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
               : "l"(from));
}

/* The same if number > index; else the words stay as they are. */
__device__ inline void load16_if_more(int number, int index, const void *from, uint32_t *word) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.gt.s32 p, %5, %6;\n\t"
      "@p ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n\t}"
      : "+r"(word[0]), "+r"(word[1]), "+r"(word[2]), "+r"(word[3])
      : "l"(from), "r"(number), "r"(index));
}

/* Reads and stores 16 bytes of shared memory by its address; reads 4, and 2. */
__device__ inline void load_words(uint32_t from, uint32_t *word) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
               : "r"(from)
               : "memory");
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

/* Waits for all of the thread's copies, in a batch or not. */
__device__ inline void wait_all_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/* Waits until at most Left of the thread's batches are under way. */
template <int Left>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
}

}  // namespace
}  // namespace lpg
