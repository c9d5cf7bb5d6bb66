/* Row exponents of a blob on the GPU, from its scales. */
#include "pack_device.h"
#include "sections.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

enum { piece_groups = 4 }; /* that a thread looks at together, under one super scale */

struct exponents_args {
  lpg_packed packed;
  uint8_t *blob;
  int64_t first, end;
  unsigned *scale_span;
  int groups, under_one; /* of a row; those under a super scale, all if there is none */
};

__device__ inline void widen(lpg_exponents *all, const lpg_exponents &more) {
  all->low = min(all->low, more.low);
  all->high = max(all->high, more.high);
  all->bad |= more.bad;
}

/* Lanes 8 and 16 apart look at other groups of the same row. */
__device__ inline lpg_exponents of_warp(lpg_exponents e) {
#pragma unroll
  for (int apart = 8; apart <= 16; apart *= 2) {
    const lpg_exponents other = {__shfl_xor_sync(0xffffffffu, e.low, apart),
                                 __shfl_xor_sync(0xffffffffu, e.high, apart),
                                 __shfl_xor_sync(0xffffffffu, e.bad, apart)};
    widen(&e, other);
  }
  return e;
}

/* The numbers of rows r and r + 8 lie side by side. */
__device__ inline lpg_line eight_rows_on(lpg_line line) {
  line.offset += line.bytes;
  line.shift ^= 4;
  return line;
}

/* Pieces first, first + step, ... of a row. */
__device__ inline lpg_exponents exponents_of(const exponents_args &a, const lpg_line &line, const lpg_line &supers,
                                             int64_t row, int first, int step) {
  const bool two_levels = a.packed.desc.super_scale_type != 0;
  const unsigned pieces = (unsigned)(a.under_one + piece_groups - 1) / piece_groups; /* under one super scale */
  lpg_exponents found = lpg_no_exponents();
  for (unsigned piece = first;; piece += step) {
    const int s = piece / pieces, begin = s * a.under_one + piece % pieces * piece_groups;
    if (begin >= a.groups) break;
    const int end = min(begin + piece_groups, min((s + 1) * a.under_one, a.groups));
    lpg_ranks ranks = lpg_no_ranks();
#pragma unroll
    for (int i = 0; i < piece_groups; i++) {
      const uint32_t number = lpg_get_number(&line, a.blob, min(begin + i, end - 1));
      lpg_add_rank(line.type, number, &ranks);
    }
    if (!lpg_add_extremes(line.type, ranks, two_levels ? lpg_line_value(&supers, a.blob, s) : 1.0f, &found)) {
      lpg_add_exponents(&a.packed, a.blob, row, begin, end, &found);
    }
  }
  return found;
}

/* A block has a row tile. The groups of a row are for the 16 threads that have it. */
static __global__ void __launch_bounds__(128) row_exponents_kernel(const __grid_constant__ exponents_args a) {
  constexpr int warps = 4, sharers = 16;
  __shared__ lpg_exponents of_row[warps][LPG_TILE_ROWS];
  const int64_t first = a.first + (int64_t)blockIdx.x * LPG_TILE_ROWS;
  const int warp = threadIdx.x / 32, r = threadIdx.x % 8, share = threadIdx.x / 8;
  lpg_line line = lpg_line_of(&a.packed, LPG_SECTION_SCALES, first + r), supers = {};
  if (a.packed.desc.super_scale_type) supers = lpg_line_of(&a.packed, LPG_SECTION_SUPER_SCALES, first + r);
#pragma unroll 1
  for (int half = 0; half < 2; half++) {
    const lpg_exponents found = of_warp(exponents_of(a, line, supers, first + r + 8 * half, share, sharers));
    if (threadIdx.x % 32 < 8) of_row[warp][r + 8 * half] = found;
    line = eight_rows_on(line);
    supers = eight_rows_on(supers);
  }
  __syncthreads();
  if (threadIdx.x >= LPG_TILE_ROWS) return;
  const int64_t row = first + threadIdx.x;
  lpg_exponents found = of_row[0][threadIdx.x];
  for (int w = 1; w < warps; w++) widen(&found, of_row[w][threadIdx.x]);
  if (row >= a.end) found = lpg_no_exponents();
  ((int8_t *)a.blob + a.packed.section[LPG_SECTION_ROW_EXPONENTS].offset)[row] = lpg_row_exponent_of(found);
  const uint32_t span = lpg_span_of(found);
  if (span > 0) atomicMax(a.scale_span, span);
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_put_exponents(const lpg_packed *packed, int64_t first_row, int64_t rows, uint8_t *blob,
                                            lpg_pack_report *report, cudaStream_t stream) {
  if (packed->section[LPG_SECTION_ROW_EXPONENTS].bytes == 0 || rows == 0) return LPGEMM_SUCCESS;
  const int64_t groups = packed->group.count;
  const int64_t under_one = packed->super.count > 1 ? packed->super.k / packed->group.k : groups;
  const lpg::exponents_args args = {*packed,
                                    blob,
                                    first_row,
                                    first_row + rows,
                                    &report->scale_span,
                                    (int)groups,
                                    (int)(packed->desc.super_scale_type ? under_one : groups)};
  return lpg::launch((const void *)lpg::row_exponents_kernel, dim3((unsigned)lpg_ceil_div(rows, LPG_TILE_ROWS)), 128, 0,
                     stream, args);
}
