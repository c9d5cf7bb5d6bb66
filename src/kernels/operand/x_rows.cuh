/* X on its way to shared memory, as the tensor cores of sm_90a read it: rows of 128 bytes, of which 16-byte piece i is
 * at i ^ (row % 8). */
#pragma once

#include "../prim/async.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* X in global memory: m rows of k numbers of Bytes bytes each, the rows ldx numbers apart. */
template <int Bytes>
struct x_matrix {
  const uint8_t *x;
  int64_t ldx;
  int m, k;

  __device__ x_matrix(const void *x, int64_t ldx, int m, int k) : x((const uint8_t *)x), ldx(ldx), m(m), k(k) {}

  /* Whole pieces can be copied. */
  __device__ bool aligned() const { return (uintptr_t)x % 16 == 0 && ldx * Bytes % 16 == 0; }

  /* A warp copies 128 bytes from `column` on of Rows rows from `row of X` on. A lane has one piece of every fourth row.
   * Columns that are not there are zero; rows of X that are not there stay what they were, since nobody stores their
   * outputs. */
  template <int Rows>
  __device__ void load(uint32_t to, int token, int column, int lane, bool aligned) const {
    constexpr int each = 16 / Bytes;                                                /* numbers of a piece */
    const int piece = lane % 8, first_row = lane / 8, rows = m - token - first_row; /* from the lane's first on */
    const int first_column = column + piece * each, bytes = min(max(k - first_column, 0), each) * Bytes;
    const int64_t pitch = ldx * Bytes;
    const uint8_t *from = x + (token + first_row) * pitch + (bytes > 0 ? first_column * Bytes : 0);
    const uint32_t even = to + first_row * 128 + ((piece ^ first_row) << 4), odd = even ^ 64; /* rows 8 i, 8 i + 4 on */
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
          word[i] |= (Bytes == 2 ? (uint32_t) * (const uint16_t *)at : (uint32_t)*at) << 8 * j;
        }
      }
      store_words((row % 8 ? odd : even) + row * 128, word[0], word[1], word[2], word[3]);
    }
  }
};

}  // namespace
}  // namespace lpg
