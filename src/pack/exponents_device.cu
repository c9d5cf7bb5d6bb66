/* Row exponents of a blob on the GPU, from its scales.
 *
 * A block has a row tile, and a warp half of its rows: half of each slot of 16 numbers, which lanes load as vectors. Of
 * a row only the smallest scale that is not 0 counts, and the largest: of all its groups, or of those under one super
 * scale. What follows from the description the host has found, and types are constants. */
#include <cuda_pipeline.h>

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

/* ---- two levels: a lane takes groups under one super scale ---- */

constexpr int pieces = 32; /* at a time, one a lane */

/* What products have for exponents, as bits of their magnitudes, which are in their order. */
struct products {
  uint32_t below, most; /* one less than the least that is not 0, and the largest */
};

/* Of super scales that 8 rows have. */
struct supers_of_rows {
  float value[half_slot]; /* magnitudes; 0 where products with them do not count, or must be looked at one by one */
  unsigned bad, large;    /* which of them are not finite, or so large that a product may not be */
};

__device__ inline supers_of_rows load_supers(lpgemm_dtype_t type, const uint8_t *from) {
  constexpr float most = 0x1p119f; /* no scale is beyond 2^9 */
  uint32_t number[half_slot];
  supers_of_rows s = {};
  if (type == LPGEMM_F32) {
    load_half<4>(from, number);
  } else {
    load_half<2>(from, number);
  }
#pragma unroll
  for (int place = 0; place < half_slot; place++) {
    const float value = fabsf(type == LPGEMM_F16   ? lpg_f16_to_f32((uint16_t)number[place])
                              : type == LPGEMM_F32 ? lpg_bits_f32(number[place])
                                                   : lpg_bf16_to_f32((uint16_t)number[place]));
    const bool is_finite = value - value == 0.0f;
    s.bad |= (unsigned)!is_finite << place;
    s.large |= (unsigned)(is_finite && value >= most) << place;
    s.value[place] = value < most ? value : 0.0f;
  }
  return s;
}

/* The magnitude of a scale; 0 if it is not finite, which *bad says then. */
template <lpgemm_dtype_t Type>
__device__ inline float scale_value(uint32_t number, int place, unsigned *bad) {
  if constexpr (Type == LPGEMM_E4M3) {
    const bool is_finite = (number & 0x7fu) != 0x7fu;
    *bad |= (unsigned)!is_finite << place;
    return is_finite ? fabsf(lpg_number_value(Type, number)) : 0.0f;
  }
  return (float)(Type == LPGEMM_I8 ? abs((int)(int8_t)number) : (int)number);
}

/* A place among the groups of a row: group in_one of those under super scale `one`. */
struct group_place {
  int one, in_one;

  __device__ group_place(int group, int under_one) : one(group / under_one), in_one(group - one * under_one) {}
  __device__ void step(const group_place &by, int under_one) {
    one += by.one, in_one += by.in_one;
    if (in_one >= under_one) one++, in_one -= under_one;
  }
};

/* The slots of pieces [first, first + 32) to shared memory, those of a piece together. */
template <int Slot, int PieceBytes>
__device__ inline void bring_pieces(const exponents_args &a, const uint8_t *slots, int first, uint8_t *to) {
  constexpr int halves = Slot / 8; /* copies a slot */
  const int last = min(first + pieces, a.pieces) - 1, first_one = first / a.pieces_of_one,
            last_one = last / a.pieces_of_one;
  const int from = first_one * a.under_one + (first - first_one * a.pieces_of_one) * most_groups;
  const int stop = min(
      min(last_one * a.under_one + (last - last_one * a.pieces_of_one + 1) * most_groups, (last_one + 1) * a.under_one),
      a.groups);
  const group_place by(threads / halves, a.under_one);
  group_place at(from + (int)threadIdx.x / halves, a.under_one);
  for (int i = (int)threadIdx.x; i < (stop - from) * halves; i += threads, at.step(by, a.under_one)) {
    const int piece = at.one * a.pieces_of_one + at.in_one / most_groups - first;
    __pipeline_memcpy_async(to + piece * PieceBytes + at.in_one % most_groups * Slot + i % halves * 8,
                            slots + (int64_t)from * Slot + i * 8, 8);
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
}

/* Groups of a row, one by one. */
static __device__ __noinline__ void look_at_each(const exponents_args &a, int64_t row, int begin, int end,
                                                 lpg_exponents *to) {
  lpg_exponents found = lpg_no_exponents();
  lpg_add_exponents(&a.packed, a.blob, row, begin, end, &found);
  atomicMin(&to->low, found.low);
  atomicMax(&to->high, found.high);
  atomicOr(&to->bad, found.bad);
}

template <lpgemm_dtype_t Type>
__device__ inline lpg_exponents scan_products(const exponents_args &a, const uint8_t *slots, const uint8_t *super_slots,
                                              int64_t first_row) {
  constexpr int slot = lpg_slot_bytes(Type), piece_bytes = most_groups * slot + 8; /* so lanes find different banks */
  __shared__ __align__(16) uint8_t staged[pieces * piece_bytes];
  __shared__ lpg_exponents of_each[threads / 32][half_slot];
  const int lane = (int)threadIdx.x % 32, half = (int)threadIdx.x / 32, super_bytes = lpg_slot_bytes(a.super_type);
  products all[half_slot];
  unsigned bad = 0;
#pragma unroll
  for (int place = 0; place < half_slot; place++) all[place] = {UINT32_MAX, 0};
  if (lane < half_slot) of_each[half][lane] = lpg_no_exponents();
#pragma unroll 1
  for (int first = 0; first < a.pieces; first += pieces) {
    const int piece = min(first + lane, a.pieces - 1), s = piece / a.pieces_of_one;
    const int begin = s * a.under_one + (piece - s * a.pieces_of_one) * most_groups;
    const int end = min(begin + most_groups, min((s + 1) * a.under_one, a.groups));
    const supers_of_rows supers = load_supers(a.super_type, super_slots + s * super_bytes + half * (super_bytes / 2));
    if (first > 0) __syncthreads();
    bring_pieces<slot, piece_bytes>(a, slots, first, staged);
    __syncthreads();
    const uint8_t *own = staged + (piece - first) * piece_bytes + half * (slot / 2);
#pragma unroll 4
    for (int j = 0; j < end - begin; j++) {
      uint32_t number[half_slot];
      load_half<Type == LPGEMM_UINT(4) ? 0 : lpg_bytes(Type)>(own + j * slot, number);
#pragma unroll
      for (int place = 0; place < half_slot; place++) {
        const float scale = scale_value<Type>(number[place], place, &bad);
        const uint32_t product = lpg_f32_bits(scale * supers.value[place]);
        all[place].below = min(all[place].below, product - 1); /* 0 becomes the largest number */
        all[place].most = max(all[place].most, product);
      }
    }
    bad |= supers.bad;
    for (unsigned large = supers.large; large; large &= large - 1) {
      const int place = __ffs((int)large) - 1;
      look_at_each(a, first_row + lpg_slot_row(half * half_slot + place), begin, end, &of_each[half][place]);
    }
  }
  bad = __reduce_or_sync(whole_warp, bad);
  products own = {UINT32_MAX, 0};
#pragma unroll
  for (int place = 0; place < half_slot; place++) {
    const uint32_t below = __reduce_min_sync(whole_warp, all[place].below);
    const uint32_t most = __reduce_max_sync(whole_warp, all[place].most);
    if (lane == place) own = {below, most};
  }
  __syncwarp();
  lpg_exponents found = of_each[half][lane % half_slot];
  found.bad |= (int)(bad >> lane % half_slot & 1u);
  if (own.most > 0) {
    found.low = min(found.low, lpg_exponent_of(lpg_bits_f32(own.below + 1)));
    found.high = max(found.high, lpg_exponent_of(lpg_bits_f32(own.most)));
  }
  return found;
}

template <lpgemm_dtype_t Type, bool HasSupers>
static __global__ void __launch_bounds__(threads, 16) row_exponents_kernel(const __grid_constant__ exponents_args a) {
  const int lane = (int)threadIdx.x % 32, half = (int)threadIdx.x / 32;
  const int64_t first = a.first + (int64_t)blockIdx.x * LPG_TILE_ROWS;
  const uint32_t tile = (uint32_t)(first / LPG_TILE_ROWS) / a.tiles_a_scale;
  const uint8_t *slots = a.scales.section + tile * a.scales.tile_bytes;
  lpg_exponents found;
  if constexpr (HasSupers) {
    found = scan_products<Type>(a, slots, a.supers.section + tile * a.supers.tile_bytes, first);
  } else {
    found = scan_scales<Type>(a, slots + half * (lpg_slot_bytes(Type) / 2));
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
