/* Dequantises packed weights into images for the dense GEMM, of work tiles (dequant_plan.h) or of pieces (expand.h):
 * value, zero and scale in fp32, rounded once to the image's type; to 8 bits without the scale, exactly.
 *
 *   a CTA has a row tile, or a part of its columns; each of its warps has a run of spans of them:
 *     scales and zeros of up to 16 groups to shared memory
 *     for every span in these, and every stage (128 bytes of a row) of a span:
 *       dequantise in the order of the packed words, to the stage's places in shared memory; copy them to the image */
#include "../../cuda/cuda.h"
#include "../operand/expand.h"
#include "../plan/scheduler.cuh"
#include "../prim/async.cuh"
#include "../prim/pdl.cuh"
#include "../prim/shared.cuh"
#include "../prim/wgmma.cuh"
#include "dequant_weight.cuh"

#include <type_traits>

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- the kernel ---- */

constexpr int warps = 4, resident = 6; /* of a CTA; CTAs an SM */
constexpr int tile_row_tiles = LPG_DEQUANT_TILE_N / LPG_TILE_ROWS;

/* Bounds the weights of a row tile's rows: they are less than 2^(exponent + 1). By all threads of the CTA. Of two
 * levels only the upper one is read; codes of the lower one count as the largest that there are. */
__device__ inline void find_exponents(const expand_args &a, int row_tile, int (&exponent)[LPG_TILE_ROWS],
                                      expand_area &area) {
  if (threadIdx.x < LPG_TILE_ROWS) exponent[threadIdx.x] = -1000;
  __syncthreads();
  const int groups = (int)((a.k - 1) / a.bound.group_k + 1), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int found[2] = {-1000, -1000};
  const auto take = [&](float scale_of, float zero_of, int &most_found) {
    const double scale = fabs((double)scale_of) * a.scale_most, zero = fabs((double)zero_of) * a.zero_most;
    const double most = a.minima ? a.most * scale + zero : (a.most + zero) * scale;
    if (most > 0.0 && most < INFINITY) most_found = max(most_found, (int)(__double2hiint(most) >> 20) - 1023);
  };
  for (int first = warp * most_groups; first < groups; first += warps * most_groups) {
    const int count = min(most_groups, groups - first);
    load_scales(a.bound, row_tile, first, count, area.scale_data);
    __syncwarp();
    for (int j = lane / 8; j < count; j += 4) {
      const float4 two = area.scale_data[j][lane % 8];
      take(two.x, two.z, found[0]);
      take(two.y, two.w, found[1]);
    }
    __syncwarp();
  }
  for (int half = 0; half < 2; half++) {
    if (found[half] > -1000) atomicMax(&exponent[lane % 8 + 8 * half], found[half]);
  }
  __syncthreads();
}

/* The exponent of the power of two that a row's weights are multiplied by. */
__device__ inline int power_of(const expand_args &a, int row, int found) {
  if (a.scaling.finds) return found < -900 ? 0 : 14 - found;
  return a.scaling.top - (a.exponents ? a.exponents[row] : 0);
}

/* Writes the scales of a row tile to the table, for stages first .. end - 1, whose groups `area` holds from first_group
 * on; groups are whole stages. */
template <class Image>
__device__ inline void store_scales(const expand_args &a, int row_tile, int first, int end, int first_group, int lane,
                                    const expand_area &area) {
  const int64_t tile = blockIdx.x / tile_row_tiles;
  const int r = lane % LPG_TILE_ROWS, in_tile = blockIdx.x % tile_row_tiles * LPG_TILE_ROWS + r;
  for (int stage = first + lane / LPG_TILE_ROWS; stage < end; stage += 2) {
    const int group = (uint32_t)(stage * stage_k_of<Image>) / (uint32_t)a.groups.group_k;
    const float4 two = area.scale_data[group - first_group][r % 8];
    a.scale_data[(tile * a.k_stages + stage) * LPG_DEQUANT_TILE_N + in_tile] = row_tile * LPG_TILE_ROWS + r >= a.n
                                                                                   ? 0.0f
                                                                               : r < 8 ? two.x
                                                                                       : two.y;
  }
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
constexpr bool has_stmatrix = true;
#else
constexpr bool has_stmatrix = false;
#endif

/* Dequantises stage `piece` of a piece of K: from the lane's words to their places in `area`. */
template <class Image, int Bits, bool Integers>
__device__ inline void expand_piece(const values_of<Integers> &values, const uint32_t *word, int piece,
                                    group_walk<Image::scaled> &walk, expand_area &area) {
  constexpr int unit_words = lpg_unit_words(Bits), unit_steps = lpg_unit_codes(Bits) / 4;
  constexpr int bytes = (int)sizeof(typename Image::pair);
  constexpr bool by_matrices = std::is_same_v<typename Image::pair, uint32_t> && has_stmatrix;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  /* of matrix lane / 8 of a step: rows 0 and 8, then the same with the next 16 bytes */
  const uint32_t row = shared_address(area.piece) + lane % 16 * LPG_DEQUANT_STAGE_BYTES + (lane / 16 ^ lane % 8) * 16;
#pragma unroll
  for (int s = 0; s < stage_k_of<Image> / LPG_STEP_K; s++) {
    const int step = piece * (stage_k_of<Image> / LPG_STEP_K) + s;
    walk.step();
    typename Image::pair pairs[4];
#pragma unroll
    for (int half = 0; half < 2; half++) {
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const uint32_t *unit = word + step / unit_steps * unit_words * 2 + half;
        const float2 two = values.both_of(lpg_unit_pair(Bits, unit, 2, step % unit_steps * 2 + i));
        pairs[half + 2 * i] = Image::round(walk.weight(two.x, half), walk.weight(two.y, half));
      }
    }
    if constexpr (by_matrices) {
      store_matrices(row ^ s * 32, pairs);
    } else {
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const int in_row = (s * 8 + j / 2 * 4 + t) * bytes, at = in_row / 16 ^ g;
        *(typename Image::pair *)(area.piece + (g + j % 2 * 8) * LPG_DEQUANT_STAGE_BYTES + at * 16 + in_row % 16) =
            pairs[j];
      }
    }
  }
}

/* A stage's columns from `columns` on are beyond K: zero, so that nothing of them gets into a sum. */
template <class Image>
__device__ inline void clear_columns(int columns, int lane, expand_area &area) {
  constexpr int bytes = (int)sizeof(typename Image::pair) / 2;
  for (int i = columns * LPG_TILE_ROWS + lane; i < stage_k_of<Image> * LPG_TILE_ROWS; i += 32) {
    const int row = i % LPG_TILE_ROWS, in_row = i / LPG_TILE_ROWS * bytes, at = in_row / 16 ^ row % 8;
    for (int b = 0; b < bytes; b++) area.piece[row * LPG_DEQUANT_STAGE_BYTES + at * 16 + in_row % 16 + b] = 0;
  }
}

/* Where the rows of a row tile begin in the image of a stage; row_tile_of: its number in the work tile. A consumer warp
 * of wgmma has 16 rows of every 64: with this order these are two neighbouring row tiles. */
__device__ inline int image_row(int row_tile_of) {
  const int warp = row_tile_of / 2;
  return warp / 4 * 128 + row_tile_of % 2 * 64 + warp % 4 * LPG_TILE_ROWS;
}

/* Where a row tile's part of stage 0 begins in the image, and how far it is to the next stage. */
struct image_place {
  uint8_t *first;
  int stage_bytes;

  __device__ explicit image_place(const expand_args &a) {
    const int each = a.in_pieces ? LPG_IMAGE_ROWS / LPG_TILE_ROWS : tile_row_tiles, in_tile = blockIdx.x % each;
    const int row = a.in_pieces ? in_tile * LPG_TILE_ROWS : image_row(in_tile);
    stage_bytes = a.in_pieces ? LPG_IMAGE_PIECE : LPG_DEQUANT_W_BYTES;
    first = a.image + blockIdx.x / each * ((int64_t)a.k_stages * stage_bytes) + row * LPG_DEQUANT_STAGE_BYTES;
  }
};

/* Writes the factors of a row tile's sums, of which area holds the first group's scales. */
__device__ inline void store_factors(const expand_args &a, int row_tile, const int *power, int lane,
                                     const expand_area &area) {
  if (lane >= LPG_TILE_ROWS || row_tile * LPG_TILE_ROWS >= a.n) return;
  const float4 two = area.scale_data[0][lane % 8];
  const float factor = a.scaling.on_rows ? lane < 8 ? two.x : two.y : ldexpf(1.0f, -power[lane]);
  a.scale_data[blockIdx.x * LPG_TILE_ROWS + lane] = a.scaling.halved ? 2.0f * factor : factor;
}

using expand_areas = expand_area[warps];

template <class Image, int Bits, bool Integers>
__global__ void __launch_bounds__(warps * 32, resident) expand_kernel(const __grid_constant__ expand_args a) {
  LPG_SHARED_VARIABLE(expand_areas, areas);
  __shared__ float table[Integers ? 1 : 1 << Bits];
  __shared__ int power[LPG_TILE_ROWS];
  /* A warp expands a span at a time: whole stages and whole packed tiles. */
  constexpr int span_k = lpg_tile_k(Bits) < stage_k_of<Image> ? stage_k_of<Image> : lpg_tile_k(Bits);
  constexpr int stages = span_k / stage_k_of<Image>, vectors = span_k * Bits / block_k;
  const int row_tile = a.first_row_tile + blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = threadIdx.x; !Integers && i < 1 << Bits; i += warps * 32) {
    table[i] = lpg_code_value(a.type, (uint32_t)i ^ lpg_stored_flip(a.type), a.codebook) * lpg_exp2i(-a.value_exponent);
  }
  pdl_launch_next();
  pdl_wait();
  const bool inside = row_tile * LPG_TILE_ROWS < a.n;
  if (inside) a.groups.prefetch(row_tile, threadIdx.x, warps * 32);
  if (inside && a.scaling.finds) find_exponents(a, row_tile, power, areas[warp]);
  if (threadIdx.x < LPG_TILE_ROWS) {
    const int row = row_tile * LPG_TILE_ROWS + threadIdx.x;
    const bool needs_power = !Image::wide_range && !a.scaling.on_rows && !a.scaling.in_table && row < a.n;
    const int e = needs_power ? power_of(a, row, power[threadIdx.x]) : 0;
    power[threadIdx.x] = e;
    if (a.scaling.finds && blockIdx.y == 0 && !a.in_pieces)
      a.scale_data[blockIdx.x * LPG_TILE_ROWS + threadIdx.x] = ldexpf(1.0f, -e);
  }
  __syncthreads();
  const values_of<Integers> values = {table};
  expand_area &area = areas[warp];
  const image_place image(a);
  const uint8_t *const codes = a.codes + (int64_t)row_tile * a.row_bytes + lane * 16;
  const auto load = [&](int span, uint32_t(&word)[4 * vectors]) {
#pragma unroll
    for (int v = 0; v < vectors; v++) {
      uint4 vector = make_uint4(0, 0, 0, 0);
      const int at = span * vectors + v;
      if (inside && at < a.row_vectors) vector = *(const uint4 *)(codes + (int64_t)at * 512);
      word[4 * v] = vector.x, word[4 * v + 1] = vector.y, word[4 * v + 2] = vector.z, word[4 * v + 3] = vector.w;
    }
  };
  const int all = (int)lpg_ceil_div(a.k_stages, stages), parts = gridDim.y * warps, part = blockIdx.y * warps + warp;
  const int end = (int)((int64_t)all * (part + 1) / parts);
  uint32_t word[4 * vectors];
#pragma unroll 1
  for (int span = (int)((int64_t)all * part / parts); span < end;) {
    const int k0 = span * span_k, first_group = (uint32_t)min(k0, a.k - 1) / (uint32_t)a.groups.group_k;
    const int64_t held = (int64_t)(first_group + most_groups) * a.groups.group_k / span_k;
    const int held_end = (int)min((int64_t)end, max(held, (int64_t)span + 1)); /* whose groups there is room for */
    const int last_group = (uint32_t)(min(held_end * span_k, a.k) - 1) / (uint32_t)a.groups.group_k;
    load(span, word);
    if (inside) load_scales(a.groups, row_tile, first_group, last_group - first_group + 1, area.scale_data);
    __syncwarp();
    if (a.in_pieces && span == 0) store_factors(a, row_tile, power, lane, area);
    if (a.scaling.in_table) {
      store_scales<Image>(a, row_tile, span * stages, min(held_end * stages, a.k_stages), first_group, lane, area);
    }
    __syncwarp();
    set_centers<Image::scaled, Integers>(a, power, last_group - first_group + 1, lane, area);
    __syncwarp();
    group_walk<Image::scaled> walk(a, k0, lane, area);
#pragma unroll 1
    for (; span < held_end; span++) {
      uint32_t next[4 * vectors];
      if (vectors <= 2) load(span + 1, next); /* more of them take too many registers */
#pragma unroll
      for (int piece = 0; piece < stages; piece++) {
        const int stage = span * stages + piece;
        if (stage >= a.k_stages) break;
        expand_piece<Image, Bits, Integers>(values, word, piece, walk, area);
        __syncwarp();
        if (a.k < (stage + 1) * stage_k_of<Image>) {
          clear_columns<Image>(max(0, a.k - stage * stage_k_of<Image>), lane, area);
          __syncwarp();
        }
        uint4 *const to = (uint4 *)(image.first + (int64_t)stage * image.stage_bytes) + lane;
#pragma unroll
        for (int i = 0; i < piece_bytes / 512; i++) to[i * 32] = ((const uint4 *)area.piece)[i * 32 + lane];
        __syncwarp();
      }
      if (vectors > 2) load(span + 1, next);
#pragma unroll
      for (int i = 0; i < 4 * vectors; i++) word[i] = next[i];
    }
  }
}

/* ---- on the host ---- */

template <class Image, bool Integers>
static const void *kernel_of(int bits) {
  switch (bits) {
    case 1: return (const void *)expand_kernel<Image, 1, Integers>;
    case 2: return (const void *)expand_kernel<Image, 2, Integers>;
    case 3: return (const void *)expand_kernel<Image, 3, Integers>;
    case 4: return (const void *)expand_kernel<Image, 4, Integers>;
    case 5: return (const void *)expand_kernel<Image, 5, Integers>;
    case 6: return (const void *)expand_kernel<Image, 6, Integers>;
    case 7: return (const void *)expand_kernel<Image, 7, Integers>;
    default: return (const void *)expand_kernel<Image, 8, Integers>;
  }
}

static const void *kernel_for(lpgemm_dtype_t type, bool integers, int bits) {
  switch (type) {
    case LPGEMM_F32: return kernel_of<tf32_image, false>(bits); /* rare: integers come from the table as well */
    case LPGEMM_F16:
      return integers ? kernel_of<half_image<f16_x>, true>(bits) : kernel_of<half_image<f16_x>, false>(bits);
    case LPGEMM_BF16:
      return integers ? kernel_of<half_image<bf16_x>, true>(bits) : kernel_of<half_image<bf16_x>, false>(bits);
    case LPGEMM_I8: return integers ? kernel_of<i8_image, true>(bits) : kernel_of<i8_image, false>(bits);
    default: return integers ? kernel_of<e4m3_image, true>(bits) : kernel_of<e4m3_image, false>(bits);
  }
}

/* Sets the bound for scaling.finds. */
static void set_bound(const lpg_call &call, expand_args &a) {
  const lpgemm_weight_desc_t &d = call.problem.weights->desc;
  a.bound = a.groups;
  a.scale_most = a.zero_most = 1.0;
  if (!d.super_scale_type || !d.super_zero_type) return; /* one level, or zeros of only one */
  a.bound = upper_sections(a.groups);
  a.scale_most = lpgemm_i_largest_value(d.scale_type, NULL);
  a.zero_most = lpgemm_i_largest_value(d.zero_type, NULL);
}

/* Of row tiles first .. first + count - 1. */
static lpgemm_status_t expand(const lpg_call *call, lpgemm_dtype_t type, int32_t k_stages, int64_t first, int64_t count,
                              int32_t in_pieces, void *image, float *scale_data) {
  const lpg_packed &weights = *call->problem.weights;
  const lpgemm_weight_desc_t &d = weights.desc;
  const bool integers = lpg_is_integer_kind(d.type) && lpg_integer_step(d.type) == 1;
  expand_args a = {};
  a.scaling = lpgemm_i_expand_scaling(&call->problem, type);
  a.groups = make_sections(*call);
  a.minima = d.zero == LPGEMM_ZERO_MINIMUM;
  a.type = d.type;
  memcpy(a.codebook, d.codebook, sizeof a.codebook);
  a.offset = (float)lpg_integer_offset(d.type) - 8388608.0f;
  a.most = lpgemm_i_largest_value(d.type, d.codebook);
  set_bound(*call, a);
  if (type == LPGEMM_F16 && !integers && !a.scaling.on_rows && !a.scaling.in_table && a.most > 0.0) {
    const int e = ilogb(a.most); /* up to 100 all powers of two stay within fp32 */
    a.value_exponent = abs(e) <= 30 ? 0 : e < -100 ? -100 : e > 100 ? 100 : e;
  }
  if (a.scaling.halved) a.value_exponent = 1;
  a.codes = call->section[LPG_SECTION_CODES];
  a.exponents = (const int8_t *)call->section[LPG_SECTION_ROW_EXPONENTS];
  a.row_bytes = weights.k_tiles * lpg_tile_bytes(weights.bits);
  a.row_vectors = (int32_t)(a.row_bytes / 512);
  a.n = (int32_t)d.n;
  a.k = (int32_t)d.k;
  a.k_stages = k_stages;
  a.first_row_tile = (int32_t)first;
  a.in_pieces = in_pieces;
  a.image = (uint8_t *)image;
  a.scale_data = scale_data;
  /* As many CTAs a row tile as run at once: they all start together and have several k blocks each. */
  const int64_t blocks = lpg_ceil_div(d.k, block_k * warps), room = call->device->sms * resident / count,
                most = room > 1 ? room : 1;
  return launch_cluster(kernel_for(type, integers, weights.bits),
                        dim3((unsigned)count, (unsigned)(blocks < most ? blocks : most)), 1, warps * 32, 0,
                        call->stream, a, call->device->clusters[1] > 0);
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_expand(const lpg_call *call, lpgemm_dtype_t type, int32_t k_stages, int32_t first,
                                     int32_t count, void *image, float *scale_data) {
  const int64_t each = lpg::tile_row_tiles;
  return lpg::expand(call, type, k_stages, first * each, count * each, 0, image, scale_data);
}

lpgemm_status_t lpgemm_i_cuda_expand_pieces(const lpg_call *call, lpgemm_dtype_t type, void *image, float *factors) {
  const lpg_packed &weights = *call->problem.weights;
  const int64_t tiles = lpg_round_up(weights.row_tiles, LPG_IMAGE_ROWS / LPG_TILE_ROWS);
  return lpg::expand(call, type, lpg_image_columns(weights.desc.k), 0, tiles, 1, image, factors);
}

lpgemm_status_t lpgemm_i_cuda_prepare_expand(lpgemm_dtype_t type) {
  for (int bits = 1; bits <= 8; bits++) {
    LPG_TRY(lpg::allow_shared(lpg::kernel_for(type, false, bits), 0));
    LPG_TRY(lpg::allow_shared(lpg::kernel_for(type, true, bits), 0));
  }
  return LPGEMM_SUCCESS;
}
