/* A row of X as the caller has it, on its way to shared memory, where its columns are gathered. */
#pragma once

#include "../prim/async.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The CTA's threads start to copy a row of k elements: by cp.async what fills vectors of 16 bytes of an aligned row,
 * the rest at once. `to` is aligned to 16 bytes. */
template <class T>
__device__ inline void copy_row(const T *row, int k, T *to, int threads) {
  constexpr int each = 16 / sizeof(T);
  int first = 0;
  if ((uintptr_t)row % 16 == 0) {
    first = k / each * each;
#pragma unroll 1
    for (int i = threadIdx.x; i < k / each; i += threads) {
      copy16_async(shared_address(to) + i * 16, (const uint8_t *)row + i * 16);
    }
  }
#pragma unroll 1
  for (int i = first + threadIdx.x; i < k; i += threads) to[i] = row[i];
}

}  // namespace
}  // namespace lpg
