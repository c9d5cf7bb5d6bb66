/* Row exponents of a blob on the GPU, from its scales.
 *
 * A block has a row tile, and a thread half a piece of it: half of the slots of 16 numbers of some groups under one
 * super scale, which it loads as vectors. Of a piece only the smallest scale of each row that is not 0 counts, and the
 * largest. They go to shared memory, where a thread looks at those of one row. */
#include "pack_device.h"
#include "sections.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int threads = 128, pieces = threads / 2; /* at a time */
constexpr int most_groups = 16;                    /* of a piece */
constexpr int half_slot = LPG_TILE_ROWS / 2;

struct exponents_args {
  lpg_packed packed;
  uint8_t *blob;
  int64_t first, end;
  unsigned *scale_span;
  int groups, under_one; /* of a row; those under a super scale, all if there is none */
};

/* The numbers of a row, from those of the first row of its tile: lpg_line_of() without divisions of 64 bits. */
__device__ inline lpg_line line_of(const lpg_packed &packed, lpg_section_id id, int64_t row) {
  const uint32_t tile = (uint32_t)(row / LPG_TILE_ROWS) / (uint32_t)packed.tiles_a_scale;
  const int r = (int)(row % LPG_TILE_ROWS);
  lpg_line line;
  line.type = lpg_section_type(&packed.desc, id);
  line.bytes = line.type == LPGEMM_UINT(4) ? 0 : lpg_bytes(line.type);
  line.stride = lpg_slot_bytes(line.type);
  line.shift = 4 * (lpg_row_slot(r) % 2);
  line.offset = (int64_t)packed.section[id].offset +
                (int64_t)tile * lpg_section_axis(&packed, id)->padded * line.stride +
                (line.bytes == 0 ? lpg_row_slot(r) / 2 : lpg_row_slot(r) * line.bytes);
  return line;
}

/* Groups [begin, end) of a row tile, under super scale s. */
struct piece {
  int s, begin, end;

  __device__ piece(const exponents_args &a, int index) {
    const unsigned each = (unsigned)(a.under_one + most_groups - 1) / most_groups; /* under a super scale */
    s = (unsigned)index / each;
    begin = s * a.under_one + (unsigned)index % each * most_groups;
    end = min(begin + most_groups, min((s + 1) * a.under_one, a.groups));
  }
};

/* The 8 numbers of half a slot. Bytes: of a number; 0: half of one. */
template <int Bytes>
__device__ inline void load_half(const uint8_t *from, uint32_t (&number)[half_slot]) {
  constexpr int bits = Bytes == 0 ? 4 : 8 * Bytes, each = 32 / bits, words = half_slot / each;
  constexpr uint32_t mask = Bytes == 4 ? 0xffffffffu : (1u << bits % 32) - 1u;
  uint32_t word[words];
  if constexpr (words == 1) {
    word[0] = *(const uint32_t *)from;
  } else {
#pragma unroll
    for (int i = 0; i < words; i += 2) {
      const uint2 two = *(const uint2 *)(from + 4 * i);
      word[i] = two.x;
      word[i + 1] = two.y;
    }
  }
#pragma unroll
  for (int place = 0; place < half_slot; place++) number[place] = word[place / each] >> place % each * bits & mask;
}

/* Of each row of half a piece the ranks that count, in the order of a slot: rows 0, 8, 1, 9 and so on. */
template <int Bytes>
__device__ inline void find_ranks(const lpg_rank_terms &terms, const uint8_t *from, int64_t stride, int groups,
                                  lpg_ranks (&ranks)[half_slot]) {
#pragma unroll
  for (int place = 0; place < half_slot; place++) ranks[place] = lpg_no_ranks();
#pragma unroll 4
  for (int j = 0; j < groups; j++) {
    uint32_t number[half_slot];
    load_half<Bytes>(from + j * stride, number);
#pragma unroll
    for (int place = 0; place < half_slot; place++) lpg_add_rank(terms, number[place], &ranks[place]);
  }
}

__device__ inline void widen(lpg_exponents *all, const lpg_exponents &more) {
  all->low = min(all->low, more.low);
  all->high = max(all->high, more.high);
  all->bad |= more.bad;
}

__device__ inline void widen(lpg_ranks *all, const lpg_ranks &more) {
  all->below = min(all->below, more.below);
  all->most = max(all->most, more.most);
  all->bad |= more.bad;
}

template <int Bytes>
static __global__ void __launch_bounds__(threads, 8) row_exponents_kernel(const __grid_constant__ exponents_args a) {
  __shared__ lpg_ranks found[pieces][LPG_TILE_ROWS + 1]; /* one more, so that threads find different banks */
  __shared__ int super_of[pieces];                       /* -1: there is no such piece */
  __shared__ lpg_exponents of_row[threads / LPG_TILE_ROWS][LPG_TILE_ROWS];
  const int64_t first = a.first + (int64_t)blockIdx.x * LPG_TILE_ROWS;
  const lpg_line line = line_of(a.packed, LPG_SECTION_SCALES, first);
  const int share = threadIdx.x / LPG_TILE_ROWS, place = threadIdx.x % LPG_TILE_ROWS, r = place / 2 + place % 2 * 8;
  const lpg_rank_terms terms = lpg_rank_terms_of(line.type);
  lpg_line supers = {};
  if (a.packed.desc.super_scale_type) supers = line_of(a.packed, LPG_SECTION_SUPER_SCALES, first + r);
  lpg_exponents all = lpg_no_exponents();
  lpg_ranks of_pieces = lpg_no_ranks(); /* without super scales */
  for (int done = 0; piece(a, done).begin < a.groups; done += pieces) {
    const piece own(a, done + threadIdx.x / 2);
    const int second = threadIdx.x % 2;
    if (second == 0) super_of[threadIdx.x / 2] = own.begin < own.end ? own.s : -1;
    if (own.begin < own.end) {
      lpg_ranks ranks[half_slot];
      find_ranks<Bytes>(terms, a.blob + line.offset + own.begin * line.stride + second * (line.stride / 2), line.stride,
                        own.end - own.begin, ranks);
#pragma unroll
      for (int i = 0; i < half_slot; i++) found[threadIdx.x / 2][second * half_slot + i] = ranks[i];
    }
    __syncthreads();
#pragma unroll 1
    for (int i = share; i < pieces; i += threads / LPG_TILE_ROWS) {
      const int super = super_of[i];
      if (super < 0) break;
      if (!supers.type) {
        widen(&of_pieces, found[i][place]);
      } else if (!lpg_add_extremes(line.type, found[i][place], lpg_line_value(&supers, a.blob, super), &all)) {
        const piece of(a, done + i);
        lpg_add_exponents(&a.packed, a.blob, first + r, of.begin, of.end, &all);
      }
    }
    __syncthreads();
  }
  if (!supers.type) lpg_add_extremes(line.type, of_pieces, 1.0f, &all); /* which no product can spoil */
  of_row[share][r] = all;
  __syncthreads();
  if (threadIdx.x >= LPG_TILE_ROWS) return;
  const int64_t row = first + threadIdx.x;
  all = lpg_no_exponents();
  for (int i = 0; i < threads / LPG_TILE_ROWS && row < a.end; i++) widen(&all, of_row[i][threadIdx.x]);
  ((int8_t *)a.blob + a.packed.section[LPG_SECTION_ROW_EXPONENTS].offset)[row] = lpg_row_exponent_of(all);
  const uint32_t span = lpg_span_of(all);
  if (span > 0) atomicMax(a.scale_span, span);
}

static const void *kernel_of(lpgemm_dtype_t type) {
  if (type == LPGEMM_UINT(4)) return (const void *)row_exponents_kernel<0>;
  switch (lpg_bytes(type)) {
    case 1: return (const void *)row_exponents_kernel<1>;
    case 2: return (const void *)row_exponents_kernel<2>;
    default: return (const void *)row_exponents_kernel<4>;
  }
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
  return lpg::launch(lpg::kernel_of(lpg_section_type(&packed->desc, LPG_SECTION_SCALES)),
                     dim3((unsigned)lpg_ceil_div(rows, LPG_TILE_ROWS)), lpg::threads, 0, stream, args);
}
