/* Quantising weights on the GPU with the arithmetic of fit.h, so that the bytes are those of quantize.c: compiled
 * without contraction of products and sums. A thread fits the groups that must be seen together. Rows are taken in
 * parts, with at most 56 MiB of scratch: their fp64 values and their codes. */
#include "../cuda/cuda.h"
#include "fit.h"
#include "pack.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int64_t scratch_bytes = 56 << 20;
constexpr unsigned many_blocks = 132 * 16;

static unsigned blocks_for(int64_t items) {
  const int64_t blocks = lpg_ceil_div(items, 256);
  return (unsigned)(blocks < 1 ? 1 : blocks > many_blocks ? many_blocks : blocks);
}

struct weights_args {
  const void *w;
  lpgemm_dtype_t type;
  int64_t rows, k, ld;
  double global_scale;
  double *x;
  unsigned long long *first_bad;
};

/* The index of the first weight that is not finite. */
static __global__ void __launch_bounds__(256) check_finite_kernel(const weights_args a) {
  for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < a.rows * a.k; i += (int64_t)gridDim.x * 256) {
    const float x = lpg_load(a.type, a.w, i / a.k * a.ld + i % a.k);
    if (!(x - x == 0.0f)) atomicMin(a.first_bad, (unsigned long long)i);
  }
}

static __global__ void __launch_bounds__(256) widen_kernel(const weights_args a) {
  for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < a.rows * a.k; i += (int64_t)gridDim.x * 256) {
    a.x[i] = (double)lpg_load(a.type, a.w, i / a.k * a.ld + i % a.k) / a.global_scale;
  }
}

/* In device memory: the quantiser points to the plan beside it. */
struct fit_tables {
  lpg_packed packed;
  lpg_quantizer quantizer;
};

struct fit_args {
  const fit_tables *tables;
  int64_t first_row, rows, parts, groups_a_part;
  const double *x;
  uint8_t *codes, *blob;
};

static __global__ void __launch_bounds__(64) fit_kernel(const fit_args a) {
  const int64_t k = a.tables->packed.desc.k;
  for (int64_t i = (int64_t)blockIdx.x * 64 + threadIdx.x; i < a.rows * a.parts; i += (int64_t)gridDim.x * 64) {
    const int64_t row = i / a.parts, first = i % a.parts * a.groups_a_part;
    lpg_quantize_groups(&a.tables->quantizer, a.first_row + row, first, lpg_groups_end(&a.tables->packed, first),
                        a.x + row * k, a.codes + row * k, a.blob);
  }
}

/* ---- on the host ---- */

struct scratch {
  fit_tables tables;
  unsigned long long first_bad;
};

static lpgemm_status_t check_finite(const lpg_packed *packed, const weights_args &args, cudaStream_t stream) {
  unsigned long long found = ~0ull;
  LPG_CUDA(cudaMemcpyAsync(args.first_bad, &found, sizeof found, cudaMemcpyHostToDevice, stream));
  LPG_TRY(launch((const void *)check_finite_kernel, dim3(blocks_for(args.rows * args.k)), 256, 0, stream, args));
  LPG_CUDA(cudaMemcpyAsync(&found, args.first_bad, sizeof found, cudaMemcpyDeviceToHost, stream));
  LPG_CUDA(cudaStreamSynchronize(stream));
  if (found == ~0ull) return LPGEMM_SUCCESS;
  const int64_t row = (int64_t)found / args.k, column = (int64_t)found % args.k;
  uint32_t bits = 0;
  const size_t bytes = (size_t)lpg_bytes(args.type);
  LPG_CUDA(cudaMemcpy(&bits, (const uint8_t *)args.w + (size_t)(row * args.ld + column) * bytes, bytes,
                      cudaMemcpyDeviceToHost));
  return lpgemm_i_refuse_weight(lpg_number_value(args.type, bits), row, column);
}

static lpgemm_status_t quantize_rows(const lpg_packed *packed, const weights_args &all, const fit_tables *tables,
                                     int64_t first, int64_t rows, uint8_t *codes, uint8_t *blob, cudaStream_t stream) {
  weights_args part = all;
  part.w = (const uint8_t *)all.w + (size_t)(first * all.ld) * (size_t)lpg_bytes(all.type);
  part.rows = rows;
  LPG_TRY(launch((const void *)widen_kernel, dim3(blocks_for(rows * all.k)), 256, 0, stream, part));
  const bool two_levels = packed->desc.super_scale_type != 0;
  const fit_args fit = {tables,
                        first,
                        rows,
                        two_levels ? packed->super.count : packed->group.count,
                        two_levels ? packed->super.k / packed->group.k : 1,
                        part.x,
                        codes,
                        blob};
  LPG_TRY(launch((const void *)fit_kernel, dim3(4 * blocks_for(rows * fit.parts)), 64, 0, stream, fit));
  return lpgemm_i_cuda_put_codes(packed, codes, all.k, first, rows, blob, stream);
}

static lpgemm_status_t quantize(const lpg_packed *packed, lpgemm_quantize_method_t method, const void *w,
                                lpgemm_dtype_t w_type, int64_t ldw, uint8_t *blob, lpg_content *content, void *report,
                                scratch *small, double *x, int64_t rows_a_part, cudaStream_t stream) {
  const int64_t n = packed->desc.n, k = packed->desc.k;
  const weights_args args = {w, w_type, n, k, ldw, (double)packed->desc.global_scale, x, &small->first_bad};
  fit_tables tables;
  tables.packed = *packed;
  LPG_TRY(lpgemm_i_make_quantizer(packed, method, &tables.quantizer));
  LPG_TRY(check_finite(packed, args, stream));
  tables.quantizer.packed = &small->tables.packed;
  LPG_CUDA(cudaMemcpyAsync(&small->tables, &tables, sizeof tables, cudaMemcpyHostToDevice, stream));
  LPG_CUDA(cudaStreamSynchronize(stream)); /* tables lives on this stack */
  const uint64_t behind_codes = LPG_HEADER_BYTES + packed->section[LPG_SECTION_CODES].bytes;
  LPG_CUDA(cudaMemsetAsync(blob + behind_codes, 0, packed->total_bytes - behind_codes, stream));
  for (int64_t first = 0; first < n; first += rows_a_part) {
    const int64_t rows = n - first < rows_a_part ? n - first : rows_a_part;
    LPG_TRY(quantize_rows(packed, args, &small->tables, first, rows, (uint8_t *)(x + rows_a_part * k), blob, stream));
  }
  return lpgemm_i_cuda_seal(packed, blob, content, report, stream);
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_quantize(const lpg_packed *packed, lpgemm_quantize_method_t method, const void *w,
                                       lpgemm_dtype_t w_type, int64_t ldw, uint8_t *blob, lpg_content *content,
                                       void *scratch, cudaStream_t stream) {
  const int64_t k = packed->desc.k, row_bytes = k * (int64_t)(sizeof(double) + 1) + 1;
  int64_t rows = lpg::scratch_bytes / row_bytes / LPG_TILE_ROWS * LPG_TILE_ROWS;
  if (rows < LPG_TILE_ROWS) rows = LPG_TILE_ROWS;
  if (rows > packed->n_padded) rows = packed->n_padded;
  uint8_t *memory;
  const size_t small_bytes = (sizeof(lpg::scratch) + 255) / 256 * 256;
  LPG_CUDA(cudaMalloc((void **)&memory, small_bytes + (size_t)(rows * row_bytes)));
  const lpgemm_status_t status = lpg::quantize(packed, method, w, w_type, ldw, blob, content, scratch,
                                               (lpg::scratch *)memory, (double *)(memory + small_bytes), rows, stream);
  cudaFree(memory);
  return status;
}
