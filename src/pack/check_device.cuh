/* Looks for the first number that is too large, on the GPU: once packing has noticed that there is one. */
#pragma once

#include "pack_device.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

static constexpr unsigned long long none = ~0ull;

struct find_args {
  lpg_at at;          /* codes, one a byte; or */
  lpg_array_at array; /* numbers, if it has data */
  const int32_t *row_order, *column_order;
  int64_t rows, columns;
  uint32_t largest;
  unsigned long long *first_bad; /* row * columns + column, in the order of packing; `none` before */
};

static __global__ void __launch_bounds__(256) find_kernel(const find_args a) {
  for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < a.rows * a.columns; i += (int64_t)gridDim.x * 256) {
    const int64_t row = i / a.columns, column = i % a.columns;
    const int64_t n = a.row_order ? a.row_order[row] : row, k = a.column_order ? a.column_order[column] : column;
    const uint32_t number = a.array.data ? lpg_array_number(&a.array, n, k) : lpg_at_bytes_code(&a.at, 8, n, k);
    if (number > a.largest) atomicMin(a.first_bad, (unsigned long long)i);
  }
}

}  // namespace
}  // namespace lpg
