/* Looks for the first number of an array that is too large, on the GPU: once packing has noticed that there is one. */
#pragma once

#include "../cuda/cuda.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Where the first bad element lies, as its index in the row-major array; `none` if there is none. */
static constexpr unsigned long long none = ~0ull;

struct check_args {
  const uint8_t *data;
  int64_t rows, columns, ld; /* in elements */
  int64_t column_rows;       /* the one row is a column-major matrix of so many rows; 0 = it is not */
  int element_bytes;
  uint32_t largest;
  unsigned long long *first_bad; /* `none` before */
};

__device__ inline uint32_t element(const check_args &a, int64_t at) {
  return a.element_bytes == 2 ? ((const uint16_t *)a.data)[at] : a.data[at];
}

__device__ inline void check_span(const check_args &a, int64_t from, int64_t to) {
  for (int64_t at = from; at < to; at++) {
    if (element(a, at) <= a.largest) continue;
    const int64_t n = a.column_rows;
    atomicMin(a.first_bad, (unsigned long long)(n ? at % n * (a.columns / n) + at / n : at));
    if (!n) return; /* in order, so that no smaller one follows */
  }
}

/* One warp a row and grid stride; 16 bytes a lane where the row is aligned. Bytes are compared through their high bits:
 * largest is 2^b - 1, so a byte is too large exactly if it has a bit above b. */
static __global__ void __launch_bounds__(256) check_kernel(const check_args a) {
  const int lane = threadIdx.x % 32;
  const bool masks = a.element_bytes == 1 && (a.largest & (a.largest + 1)) == 0;
  const uint32_t high = ~(a.largest * 0x01010101u);
  constexpr int64_t piece = 2048; /* columns that a warp takes at once */
  const int64_t pieces = lpg_ceil_div(a.columns, piece), total = a.rows * pieces;
  for (int64_t i = (int64_t)blockIdx.x * 8 + threadIdx.x / 32; i < total; i += (int64_t)gridDim.x * 8) {
    const int64_t row = i / pieces, c0 = i % pieces * piece;
    const int64_t from = row * a.ld + c0, to = row * a.ld + min(a.columns, c0 + piece);
    const bool vectors = masks && ((uintptr_t)a.data + (uintptr_t)from) % 16 == 0;
    const int64_t whole = vectors ? (to - from) / 16 : 0;
    const uint4 *v = (const uint4 *)(a.data + (vectors ? from : 0));
    uint32_t bad = 0;
#pragma unroll 4
    for (int64_t j = lane; j < whole; j += 32) {
      const uint4 w = __ldcs(v + j);
      bad |= (w.x | w.y | w.z | w.w) & high;
    }
    if (bad) check_span(a, from, to);
    for (int64_t at = from + whole * 16 + lane; at < to; at += 32) check_span(a, at, at + 1);
  }
}

static constexpr unsigned many_blocks = 132 * 16;

static unsigned blocks_for(int64_t items, int64_t items_a_block) {
  const int64_t blocks = lpg_ceil_div(items, items_a_block);
  return (unsigned)(blocks < 1 ? 1 : blocks > many_blocks ? many_blocks : blocks);
}

static lpgemm_status_t check_array(const check_args &args, cudaStream_t stream) {
  if (args.rows == 0 || args.columns == 0) return LPGEMM_SUCCESS;
  return launch((const void *)check_kernel, dim3(blocks_for(args.rows * lpg_ceil_div(args.columns, 2048), 8)), 256, 0,
                stream, args);
}

}  // namespace
}  // namespace lpg
