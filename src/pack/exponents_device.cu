/* Row exponents of a blob on the GPU, from its scales.
 *
 * A block has a row tile, and a warp half of its rows: half of each slot of 16 numbers, which lanes load as vectors. Of
 * a row only the smallest scale that is not 0 counts, and the largest: of all its groups, or of those under one super
 * scale. What follows from the description the host has found, and types are constants. */
#include "pack_device.h"
#include "sections.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int threads = 64;
constexpr int most_groups = 16; /* of a piece: neighbours under one super scale, which a lane takes */
constexpr int half_slot = LPG_TILE_ROWS / 2;
constexpr unsigned whole_warp = 0xffffffffu;

/* The slots of a section. */
struct slots {
  const uint8_t *section;
  int64_t tile_bytes; /* of a row tile */
};

struct exponents_args {
  lpg_packed packed;
  uint8_t *blob;
  slots scales, supers;
  lpgemm_dtype_t super_type;
  int64_t first, end;
  unsigned *scale_span;
  uint32_t tiles_a_scale;
  int groups, under_one; /* of a row; and under a super scale */
  int pieces_of_one, pieces;
};

/* The 8 numbers of half a slot. Bytes: of a number; 0: half of one. */
template <int Bytes>
__device__ inline void load_half(const uint8_t *from, uint32_t (&number)[half_slot]) {
  constexpr int bits = Bytes == 0 ? 4 : 8 * Bytes, each = 32 / bits, words = half_slot / each;
  constexpr uint32_t mask = Bytes == 4 ? 0xffffffffu : (1u << bits % 32) - 1u;
  uint32_t word[words];
  if constexpr (words == 1) {
    word[0] = *(const uint32_t *)from;
  } else if constexpr (words == 2) {
    const uint2 two = *(const uint2 *)from;
    word[0] = two.x, word[1] = two.y;
  } else {
#pragma unroll
    for (int i = 0; i < words; i += 4) {
      const uint4 four = *(const uint4 *)(from + 4 * i);
      word[i] = four.x, word[i + 1] = four.y, word[i + 2] = four.z, word[i + 3] = four.w;
    }
  }
#pragma unroll
  for (int place = 0; place < half_slot; place++) number[place] = word[place / each] >> place % each * bits & mask;
}

/* Adds the numbers of a group to the ranks of the rows, in the order of a slot: rows 0, 8, 1, 9 and so on. */
template <lpgemm_dtype_t Type>
__device__ inline void add_group(const uint8_t *from, lpg_ranks (&ranks)[half_slot]) {
  uint32_t number[half_slot];
  load_half<Type == LPGEMM_UINT(4) ? 0 : lpg_bytes(Type)>(from, number);
#pragma unroll
  for (int place = 0; place < half_slot; place++) lpg_add_rank(lpg_rank_terms_of(Type), number[place], &ranks[place]);
}

__device__ inline void no_ranks(lpg_ranks (&ranks)[half_slot]) {
#pragma unroll
  for (int place = 0; place < half_slot; place++) ranks[place] = lpg_no_ranks();
}

__device__ inline void load_supers(const exponents_args &a, const uint8_t *from, float (&value)[half_slot]) {
  uint32_t number[half_slot];
  if (a.super_type == LPGEMM_F32) {
    load_half<4>(from, number);
  } else {
    load_half<2>(from, number);
  }
#pragma unroll
  for (int place = 0; place < half_slot; place++) {
    value[place] = a.super_type == LPGEMM_F16   ? lpg_f16_to_f32((uint16_t)number[place])
                   : a.super_type == LPGEMM_F32 ? lpg_bits_f32(number[place])
                                                : lpg_bf16_to_f32((uint16_t)number[place]);
  }
}

/* ---- one level: a lane of the first eight gets what its place of the slots has ---- */

template <lpgemm_dtype_t Type>
__device__ inline lpg_exponents scan_scales(const exponents_args &a, const uint8_t *slot) {
  constexpr int bytes = lpg_slot_bytes(Type);
  const int lane = (int)threadIdx.x % 32;
  lpg_ranks ranks[half_slot];
  no_ranks(ranks);
#pragma unroll 4
  for (int j = lane; j < a.groups; j += 32) add_group<Type>(slot + j * bytes, ranks);
  unsigned bad = 0;
#pragma unroll
  for (int place = 0; place < half_slot; place++) bad |= (unsigned)ranks[place].bad << place;
  bad = __reduce_or_sync(whole_warp, bad);
  lpg_ranks own = lpg_no_ranks();
#pragma unroll
  for (int place = 0; place < half_slot; place++) {
    const uint32_t below = __reduce_min_sync(whole_warp, ranks[place].below);
    const uint32_t most = __reduce_max_sync(whole_warp, ranks[place].most);
    if (lane == place) own.below = below, own.most = most, own.bad = (int)(bad >> place & 1u);
  }
  lpg_exponents found = lpg_no_exponents();
  if (lane < half_slot) lpg_add_extremes(Type, own, 1.0f, &found); /* which no product can spoil */
  return found;
}

/* ---- two levels ---- */

/* One by one, since a product overflows or became 0: into shared memory. */
static __device__ __noinline__ void look_at_each(const exponents_args &a, int64_t row, int begin, int end,
                                                 lpg_exponents *to) {
  lpg_exponents found = lpg_no_exponents();
  lpg_add_exponents(&a.packed, a.blob, row, begin, end, &found);
  atomicMin(&to->low, found.low);
  atomicMax(&to->high, found.high);
  atomicOr(&to->bad, found.bad);
}

template <lpgemm_dtype_t Type>
__device__ inline lpg_exponents scan_products(const exponents_args &a, const uint8_t *slot, const uint8_t *super_slot,
                                              int64_t first) {
  __shared__ lpg_exponents of_each[threads / 32][half_slot];
  constexpr int bytes = lpg_slot_bytes(Type);
  const int lane = (int)threadIdx.x % 32, half = (int)threadIdx.x / 32;
  const int super_bytes = lpg_slot_bytes(a.super_type);
  lpg_exponents all[half_slot];
#pragma unroll
  for (int place = 0; place < half_slot; place++) all[place] = lpg_no_exponents();
  if (lane < half_slot) of_each[half][lane] = lpg_no_exponents();
  __syncwarp();
#pragma unroll 1
  for (int piece = lane; piece < a.pieces; piece += 32) {
    const int s = a.pieces_of_one == 1 ? piece : piece / a.pieces_of_one;
    const int begin = s * a.under_one + (piece - s * a.pieces_of_one) * most_groups;
    const int end = min(begin + most_groups, min((s + 1) * a.under_one, a.groups));
    lpg_ranks ranks[half_slot];
    float super[half_slot];
    no_ranks(ranks);
    load_supers(a, super_slot + s * super_bytes, super);
#pragma unroll 8
    for (int j = begin; j < end; j++) add_group<Type>(slot + j * bytes, ranks);
    unsigned spoilt = 0;
#pragma unroll
    for (int place = 0; place < half_slot; place++) {
      if (!lpg_add_extremes(Type, ranks[place], super[place], &all[place])) spoilt |= 1u << place;
    }
    for (; spoilt; spoilt &= spoilt - 1) {
      const int place = __ffs((int)spoilt) - 1;
      look_at_each(a, first + lpg_slot_row(half * half_slot + place), begin, end, &of_each[half][place]);
    }
  }
  lpg_exponents found = lpg_no_exponents();
#pragma unroll
  for (int place = 0; place < half_slot; place++) {
    const int low = __reduce_min_sync(whole_warp, all[place].low);
    const int high = __reduce_max_sync(whole_warp, all[place].high);
    const int bad = (int)__reduce_or_sync(whole_warp, (unsigned)all[place].bad);
    if (lane == place) found.low = low, found.high = high, found.bad = bad;
  }
  __syncwarp();
  if (lane < half_slot) {
    const lpg_exponents &more = of_each[half][lane];
    found.low = min(found.low, more.low), found.high = max(found.high, more.high), found.bad |= more.bad;
  }
  return found;
}

template <lpgemm_dtype_t Type, bool HasSupers>
static __global__ void __launch_bounds__(threads, 16) row_exponents_kernel(const __grid_constant__ exponents_args a) {
  const int lane = (int)threadIdx.x % 32, half = (int)threadIdx.x / 32;
  const int64_t first = a.first + (int64_t)blockIdx.x * LPG_TILE_ROWS;
  const uint32_t tile = (uint32_t)(first / LPG_TILE_ROWS) / a.tiles_a_scale;
  const uint8_t *slot = a.scales.section + tile * a.scales.tile_bytes + half * (lpg_slot_bytes(Type) / 2);
  lpg_exponents found;
  if constexpr (HasSupers) {
    const uint8_t *super_slot =
        a.supers.section + tile * a.supers.tile_bytes + half * (lpg_slot_bytes(a.super_type) / 2);
    found = scan_products<Type>(a, slot, super_slot, first);
  } else {
    found = scan_scales<Type>(a, slot);
  }
  const int64_t row = first + lpg_slot_row(half * half_slot + lane % half_slot);
  const bool is_row = lane < half_slot && row < a.end;
  if (lane < half_slot) { /* rows of padding too */
    int8_t *const to = (int8_t *)a.blob + a.packed.section[LPG_SECTION_ROW_EXPONENTS].offset;
    to[row] = is_row ? lpg_row_exponent_of(found) : (int8_t)0;
  }
  const uint32_t span = __reduce_max_sync(whole_warp, is_row ? lpg_span_of(found) : 0u);
  if (lane == 0 && span > 0) atomicMax(a.scale_span, span); /* one a warp: they queue for it */
}

static const void *kernel_of(lpgemm_dtype_t type, bool has_supers) {
  switch (type) { /* all that a description may have */
    case LPGEMM_UINT(4): return (const void *)row_exponents_kernel<LPGEMM_UINT(4), true>;
    case LPGEMM_UINT(6): return (const void *)row_exponents_kernel<LPGEMM_UINT(6), true>;
    case LPGEMM_I8: return (const void *)row_exponents_kernel<LPGEMM_I8, true>;
    case LPGEMM_E4M3:
      return has_supers ? (const void *)row_exponents_kernel<LPGEMM_E4M3, true>
                        : (const void *)row_exponents_kernel<LPGEMM_E4M3, false>;
    case LPGEMM_E8M0: return (const void *)row_exponents_kernel<LPGEMM_E8M0, false>;
    case LPGEMM_F16: return (const void *)row_exponents_kernel<LPGEMM_F16, false>;
    case LPGEMM_BF16: return (const void *)row_exponents_kernel<LPGEMM_BF16, false>;
    default: return (const void *)row_exponents_kernel<LPGEMM_F32, false>;
  }
}

static slots slots_of(const lpg_packed *packed, lpg_section_id id, const uint8_t *blob) {
  const lpgemm_dtype_t type = lpg_section_type(&packed->desc, id);
  return {blob + packed->section[id].offset, lpg_section_axis(packed, id)->padded * lpg_slot_bytes(type)};
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_put_exponents(const lpg_packed *packed, int64_t first_row, int64_t rows, uint8_t *blob,
                                            lpg_pack_report *report, cudaStream_t stream) {
  if (packed->section[LPG_SECTION_ROW_EXPONENTS].bytes == 0 || rows == 0) return LPGEMM_SUCCESS;
  lpg::exponents_args args = {};
  args.packed = *packed;
  args.blob = blob;
  args.scales = lpg::slots_of(packed, LPG_SECTION_SCALES, blob);
  args.super_type = packed->desc.super_scale_type;
  if (args.super_type) args.supers = lpg::slots_of(packed, LPG_SECTION_SUPER_SCALES, blob);
  args.first = first_row;
  args.end = first_row + rows;
  args.scale_span = &report->scale_span;
  args.tiles_a_scale = (uint32_t)packed->tiles_a_scale;
  args.groups = (int)packed->group.count;
  args.under_one = packed->super.count > 1 ? (int)(packed->super.k / packed->group.k) : args.groups;
  if (args.under_one < 1) args.under_one = 1; /* without a column */
  args.pieces_of_one = (int)lpg_ceil_div(args.under_one, lpg::most_groups);
  args.pieces = args.pieces_of_one * (int)lpg_ceil_div(args.groups, args.under_one);
  return lpg::launch(lpg::kernel_of(packed->desc.scale_type, args.super_type != 0),
                     dim3((unsigned)lpg_ceil_div(rows, LPG_TILE_ROWS)), lpg::threads, 0, stream, args);
}
