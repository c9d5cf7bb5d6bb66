/* Copies from global to shared memory that run beside the thread (sm_80 and later). */
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

/* The same for the lanes with `wanted`, without a branch. */
__device__ inline void copy16_async_if(bool wanted, uint32_t to, const void *from) {
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %0, 0;\n\t@p cp.async.cg.shared.global [%1], [%2], 16;\n\t}" ::"r"(
                   (uint32_t)wanted),
               "r"(to), "l"(from)
               : "memory");
}

/* The first if `valid`, else 16 zero bytes, and nothing is read. */
__device__ inline void copy16_async(uint32_t to, const void *from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}

/* 8 bytes, aligned to 8. */
__device__ inline void copy8_async(uint32_t to, const void *from, bool valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(valid ? 8 : 0) : "memory");
}

/* Closes the thread's current batch of copies. */
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/* Waits until at most Left of the thread's batches are under way. */
template <int Left>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
}

}  // namespace
}  // namespace lpg
