/* Row exponents of a blob on the GPU, from its scales. */
#include "pack_device.h"
#include "sections.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct exponents_args {
  lpg_packed packed;
  uint8_t *blob;
  int64_t first, end;
  unsigned *scale_span;
  int groups, under_one; /* of a row; of those the groups under a super scale, 0: there is none */
};

/* Of a row: its exponents, or, of scales on one level, their least and greatest rank. */
struct row_extremes {
  int low, high, bad;
};

__device__ inline void widen(row_extremes *all, const row_extremes &more) {
  all->low = min(all->low, more.low);
  all->high = max(all->high, more.high);
  all->bad |= more.bad;
}

/* Lanes 8 and 16 apart look at other groups of the same row. */
__device__ inline row_extremes of_warp(row_extremes e) {
#pragma unroll
  for (int apart = 8; apart <= 16; apart *= 2) {
    const row_extremes other = {__shfl_xor_sync(0xffffffffu, e.low, apart), __shfl_xor_sync(0xffffffffu, e.high, apart),
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

/* Groups first, first + step, ... of scales on one level. */
__device__ inline row_extremes ranks_of(const exponents_args &a, const lpg_line &line, int first, int step) {
  lpg_ranks ranks = lpg_no_ranks();
  for (int j = first; j < a.groups; j += step) lpg_add_rank(line.type, lpg_get_number(&line, a.blob, j), &ranks);
  return {(int)min(ranks.least, (uint32_t)INT32_MAX), (int)ranks.most, 0};
}

/* Groups under the super scales first, first + step, ... */
__device__ inline row_extremes exponents_of(const exponents_args &a, const lpg_line &line, const lpg_line &supers,
                                            int64_t row, int first, int step) {
  lpg_exponents found = lpg_no_exponents();
  for (int s = first; s * a.under_one < a.groups; s += step) {
    const int begin = s * a.under_one, end = min(begin + a.under_one, a.groups);
    lpg_ranks ranks = lpg_no_ranks();
    for (int j = begin; j < end; j++) lpg_add_rank(line.type, lpg_get_number(&line, a.blob, j), &ranks);
    if (!lpg_add_extremes(line.type, ranks, lpg_line_value(&supers, a.blob, s), &found)) {
      lpg_add_exponents(&a.packed, a.blob, row, begin, end, &found);
    }
  }
  return {found.low, found.high, found.bad};
}

__device__ inline lpg_exponents finish(const exponents_args &a, int64_t row, const row_extremes &all) {
  lpg_exponents found = {all.low, all.high, all.bad};
  if (a.under_one > 0) return found;
  found = lpg_no_exponents();
  const lpg_ranks ranks = {(uint32_t)all.low, (uint32_t)all.high};
  if (!lpg_add_extremes(lpg_section_type(&a.packed.desc, LPG_SECTION_SCALES), ranks, 1.0f, &found)) {
    lpg_add_exponents(&a.packed, a.blob, row, 0, a.groups, &found);
  }
  return found;
}

/* A block has a row tile. The groups of a row are for the 16 threads that have it. */
static __global__ void __launch_bounds__(128) row_exponents_kernel(const __grid_constant__ exponents_args a) {
  constexpr int warps = 4, sharers = 16;
  __shared__ row_extremes of_row[warps][LPG_TILE_ROWS];
  const int64_t first = a.first + (int64_t)blockIdx.x * LPG_TILE_ROWS;
  const int warp = threadIdx.x / 32, r = threadIdx.x % 8, share = threadIdx.x / 8;
  lpg_line line = lpg_line_of(&a.packed, LPG_SECTION_SCALES, first + r), supers = {};
  if (a.under_one > 0) supers = lpg_line_of(&a.packed, LPG_SECTION_SUPER_SCALES, first + r);
#pragma unroll 1
  for (int half = 0; half < 2; half++) {
    const row_extremes found =
        of_warp(a.under_one > 0 ? exponents_of(a, line, supers, first + r + 8 * half, share, sharers)
                                : ranks_of(a, line, share, sharers));
    if (threadIdx.x % 32 < 8) of_row[warp][r + 8 * half] = found;
    line = eight_rows_on(line);
    supers = eight_rows_on(supers);
  }
  __syncthreads();
  if (threadIdx.x >= LPG_TILE_ROWS) return;
  const int64_t row = first + threadIdx.x;
  row_extremes all = of_row[0][threadIdx.x];
  for (int w = 1; w < warps; w++) widen(&all, of_row[w][threadIdx.x]);
  const lpg_exponents found = row < a.end ? finish(a, row, all) : lpg_no_exponents();
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
                                    packed->desc.super_scale_type ? (int)under_one : 0};
  return lpg::launch((const void *)lpg::row_exponents_kernel, dim3((unsigned)lpg_ceil_div(rows, LPG_TILE_ROWS)), 128, 0,
                     stream, args);
}
