/* Loads X by cp.async into shared memory, swizzled for wgmma: rows of 128 bytes, 16-byte piece i of a row at
 * i ^ (row % 8). */
#pragma once

#include "../prim/async.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* X in global memory: m rows of k elements of Bytes bytes; row pitch ldx elements. */
template <int Bytes>
struct x_matrix {
  const uint8_t *x;
  int64_t ldx;
  int m, k;

  __device__ x_matrix(const void *x, int64_t ldx, int m, int k) : x((const uint8_t *)x), ldx(ldx), m(m), k(k) {}

  /* Whether whole pieces can be copied. */
  __device__ bool aligned() const { return (uintptr_t)x % 16 == 0 && ldx * Bytes % 16 == 0; }

  /* A warp copies 128 bytes from k = k0 on of Rows rows from row m0 of X on. A lane copies one piece of every fourth
   * row. What is beyond K becomes zero. Rows beyond M stay as they were in shared memory: their outputs are never
   * stored. */
  template <int Rows>
  __device__ void load(uint32_t to, int m0, int k0, int lane, bool aligned) const {
    constexpr int each = 16 / Bytes;                                             /* elements of a piece */
    const int piece = lane % 8, first_row = lane / 8, rows = m - m0 - first_row; /* from the lane's first on */
    const int piece_k = k0 + piece * each, bytes = min(max(k - piece_k, 0), each) * Bytes;
    const int64_t pitch = ldx * Bytes;
    const uint8_t *from = x + (m0 + first_row) * pitch + (bytes > 0 ? piece_k * Bytes : 0);
    const uint32_t even = to + first_row * 128 + ((piece ^ first_row) << 4), odd = even ^ 64; /* rows 8 i; 8 i + 4 */
    if (aligned) {
#pragma unroll
      for (int row = 0; row < Rows; row += 4, from += 4 * pitch) {
        if (row < rows) copy_some_async((row % 8 ? odd : even) + row * 128, from, bytes);
      }
      return;
    }
#pragma unroll 1
    for (int row = 0; row < Rows && row < rows; row += 4, from += 4 * pitch) {
      uint32_t word[4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        word[i] = 0;
#pragma unroll
        for (int j = 0; j < 4; j += Bytes) {
          if (4 * i + j >= bytes) continue;
          const uint8_t *at = from + 4 * i + j;
          word[i] |= (Bytes == 4   ? *(const uint32_t *)at
                      : Bytes == 2 ? (uint32_t) * (const uint16_t *)at
                                   : (uint32_t)*at)
                     << 8 * j;
        }
      }
      store_words((row % 8 ? odd : even) + row * 128, word[0], word[1], word[2], word[3]);
    }
  }
};

}  // namespace
}  // namespace lpg
