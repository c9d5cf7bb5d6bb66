/* gemm: the kernel that prepares scales and zeros of any type and level, so that gemm reads one kind only: for each
 * row and granule (lpg_granule_k()) a pair of fp32 (scale, rest), weight = d * scale + rest, where d is what the
 * dequantiser gives. Groups of 16 to 256 columns, by powers of two, are granules; larger and odd ones have several.
 *
 *   A CTA has a row tile, or several short ones; where row tiles are long and few, a cluster shares each.
 *   A thread has rows g and g + 8 of every stride-th granule; with two levels as K-quants have them, of every stride-th
 *   run of four, which share the upper level's value:
 *     pass 1: reads the packed scales and zeros, finds a bound of each row's weights
 *     pass 2: multiplies by the power of two that brings the bound near 2^top, stores; its inverse is the row's factor
 *
 * Up to `batch` granules a thread stay in registers between the passes; longer rows are read twice. Where rows of more
 * than LPG_GEMM_PREPARED_KEPT granules have two levels, the bound comes from the upper level alone, with the largest
 * value of the lower one. */
#include "../../cuda/cuda.h"
#include "../operand/operand_args.cuh"
#include "../operand/x_type.cuh"
#include "../prim/async.cuh"
#include "../prim/cluster.cuh"
#include "../prim/pdl.cuh"
#include "gemm_mode.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int batch = 4, cta_slots = 32, prepare_threads = cta_slots * 8; /* a slot: 8 threads, 16 rows of a granule */
constexpr int most_tiles = 4, most_parts = 8;

/* How packed values become fp32: a switch over all types is slow, and these are most. */
typedef enum packed_form { packed_other, packed_bytes, packed_f16, packed_bf16 } packed_form;

struct packed_section {
  scale_section at; /* values NULL: there is none */
  packed_form form;
  uint32_t flip; /* bytes: the sign bits of two */
  float bias;    /* what is too much then, with the exponent of 2^23 in front of a byte */
  int each;      /* granules that share a value; 0: all */
};

struct prepare_args {
  packed_section section[scale_roles];
  int row_tiles, granules; /* granules: of a row */
  int tiles, parts;        /* row tiles of a CTA; CTAs of a row tile */
  int stride_bits;         /* log2 of the slots that share a row tile */
  zero_mode mode;
  float step; /* the value of a code, less a fixed zero, is step * d + base */
  float base;
  float most;                  /* the largest magnitude of a value less a fixed zero */
  int lost_bits;               /* mantissa bits that scales lose */
  int supers;                  /* super-groups of a row, if the bound comes from them; else 0 */
  float most_scale, most_zero; /* the largest magnitudes of the lower level */
  int top;
  int split; /* scales as sums of two bf16 numbers, each in both halves of a word, in place of scale and rest */
  float *factors;
  float4 *prepared;
};

/* The values of rows g and g + 8 in a slot, as they are packed. */
__device__ inline uint2 load_packed(const scale_section &s, int row_tile, int index, int g) {
  const uint8_t *const slot =
      s.values + (int64_t)(row_tile >> s.row_shift) * s.row_bytes + (int64_t)index * s.slot_bytes;
  switch (s.slot_bytes) {
    case 64: return ((const uint2 *)slot)[g];
    case 32: return make_uint2(((const uint32_t *)slot)[g], 0);
    case 16: return make_uint2(((const uint16_t *)slot)[g], 0);
    default: return make_uint2(slot[g], 0);
  }
}

/* Two values from that. Not inlined: where a CTA has little to do, it is mostly code that it waits for. */
static __device__ __noinline__ float2 two_values(lpgemm_dtype_t type, uint2 packed) {
  float2 values;
  with_reader(type, [&](auto read) { values = read((const uint8_t *)&packed, 0); });
  return values;
}

/* The same, of the form that the section has. */
__device__ inline float2 values_of_bytes(const packed_section &s, uint2 packed) {
  const uint32_t two = packed.x ^ s.flip;
  return make_float2(lpg_bits_f32(0x4b000000u | (two & 255)) - s.bias,
                     lpg_bits_f32(0x4b000000u | (two >> 8 & 255)) - s.bias);
}
__device__ inline float2 values_of_f16(uint2 packed) { return __half22float2(f16_x::in(packed.x)); }
__device__ inline float2 values_of_bf16(uint2 packed) {
  return make_float2(lpg_bits_f32(packed.x << 16), lpg_bits_f32(packed.x & 0xffff0000u));
}

__host__ __device__ inline bool is_upper(int role) { return role == role_super_scale || role == role_super_zero; }

/* The j-th granule of a thread's batch that begins at `first`. Levels: the lower level is bytes, a value a granule, the
 * upper one fp16, and a run of granules shares its value. Known to the compiler, it is less than half the code. */
template <bool Levels>
__device__ inline int granule_of(const prepare_args &a, int first, int j) {
  return first + (Levels ? j : j << a.stride_bits);
}

/* The packed scales and zeros of a row tile and `batch` granules. */
template <bool Levels>
struct packed_scales {
  uint2 packed[scale_roles][batch];
  int count; /* of the batch's granules, those that there are: short rows do not fill it */

  __device__ void load(const prepare_args &a, int row_tile, int first, int g) {
    const int left = a.granules - first;
    count = min(Levels ? left : (left + (1 << a.stride_bits) - 1) >> a.stride_bits, batch);
#pragma unroll
    for (int role = 0; role < scale_roles; role++) {
      const packed_section &s = a.section[role];
      if (s.at.values == nullptr) continue;
      const uint8_t *const row = s.at.values + (int64_t)(row_tile >> s.at.row_shift) * s.at.row_bytes;
      if (Levels && is_upper(role)) {
        const int super = s.each ? (unsigned)first / (unsigned)s.each : 0;
        packed[role][0].x = ((const uint32_t *)row)[super * LPG_TILE_ROWS / 2 + g];
        continue;
      }
#pragma unroll
      for (int j = 0; j < batch; j++) {
        if (j >= count) break;
        const int granule = granule_of<Levels>(a, first, j);
        if (Levels) {
          packed[role][j].x = ((const uint16_t *)row)[granule * LPG_TILE_ROWS / 2 + g];
          continue;
        }
        const int index = s.each == 1 ? granule : s.each ? (unsigned)granule / (unsigned)s.each : 0;
        packed[role][j] = load_packed(s.at, row_tile, index, g);
      }
    }
  }

  /* Calls use(j, values) for the values of a role, if it has any. */
  template <class Use>
  __device__ void each(const prepare_args &a, scale_role role, Use use) const {
    const packed_section &s = a.section[role];
    if (s.at.values == nullptr) return;
    if (Levels && is_upper(role)) {
      const float2 values = values_of_f16(packed[role][0]);
#pragma unroll
      for (int j = 0; j < batch; j++) use(j, values);
    } else if (Levels || s.form == packed_bytes) {
#pragma unroll
      for (int j = 0; j < batch; j++) use(j, values_of_bytes(s, packed[role][j]));
    } else if (s.form == packed_f16) {
#pragma unroll
      for (int j = 0; j < batch; j++) use(j, values_of_f16(packed[role][j]));
    } else if (s.form == packed_bf16) {
#pragma unroll
      for (int j = 0; j < batch; j++) use(j, values_of_bf16(packed[role][j]));
    } else {
#pragma unroll
      for (int j = 0; j < batch; j++) {
        if (j < count) use(j, two_values(s.at.type, packed[role][j]));
      }
    }
  }
};

/* x rounded to `lost` mantissa bits fewer. */
__device__ inline float without_bits(float x, int lost) {
  return lpg_bits_f32((lpg_f32_bits(x) + (1u << lost >> 1)) & ~0u << lost);
}

/* The largest magnitudes that the weights of two rows may have. */
__device__ inline float2 bound_of(const prepare_args &a, float2 scale, float2 zero) {
  const auto bound = [&](float scale, float zero) {
    return a.mode == zero_minimum ? a.most * fabsf(scale) + fabsf(zero) : (a.most + fabsf(zero)) * fabsf(scale);
  };
  return make_float2(bound(scale.x, zero.x), bound(scale.y, zero.y));
}

__device__ inline float2 larger(float2 a, float2 b) { return make_float2(fmaxf(a.x, b.x), fmaxf(a.y, b.y)); }

/* Scales and rests of `batch` granules, before the row's power of two. */
template <bool Levels>
struct prepared_scales {
  float2 scale[batch], rest[batch]; /* rest: a zero is not yet multiplied by the scale */
  int count;                        /* of them, those that there are */

  __device__ void load(const prepare_args &a, int row_tile, int first, int g) {
    packed_scales<Levels> scale_data;
    scale_data.load(a, row_tile, first, g);
    count = scale_data.count;
#pragma unroll
    for (int j = 0; j < batch; j++) {
      scale[j] = make_float2(1.0f, 1.0f);
      rest[j] = make_float2(0.0f, 0.0f);
    }
    const auto times = [](float2 &x, float2 y) {
      x.x *= y.x;
      x.y *= y.y;
    };
    scale_data.each(a, role_scale, [&](int j, float2 x) { scale[j] = x; });
    scale_data.each(a, role_super_scale, [&](int j, float2 x) { times(scale[j], x); });
    scale_data.each(a, role_zero, [&](int j, float2 x) { rest[j] = x; });
    scale_data.each(a, role_super_zero, [&](int j, float2 x) { times(rest[j], x); });
#pragma unroll
    for (int j = 0; j < batch; j++) {
      scale[j].x = without_bits(scale[j].x, a.lost_bits);
      scale[j].y = without_bits(scale[j].y, a.lost_bits);
    }
  }

  __device__ void bound(const prepare_args &a, float2 &most) const {
#pragma unroll
    for (int j = 0; j < batch; j++) {
      if (j < count) most = larger(most, bound_of(a, scale[j], rest[j]));
    }
  }
};

/* A bound of the weights of a super-group. */
__device__ inline float2 super_bound(const prepare_args &a, int row_tile, int super, int g) {
  float2 value[2] = {make_float2(1.0f, 1.0f), make_float2(0.0f, 0.0f)};
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const scale_section &s = a.section[i ? role_super_zero : role_super_scale].at;
    if (s.values == nullptr) continue;
    const float most = i ? a.most_zero : a.most_scale;
    const float2 two = two_values(s.type, load_packed(s, row_tile, super, g));
    value[i] = make_float2(two.x * most, two.y * most);
  }
  return bound_of(a, value[0], value[1]);
}

/* Scale and rest. With a zero, their product is exact: the scale has lost bits enough, see lpgemm_i_gemm_lost_digits().
 */
__device__ inline float2 prepare(const prepare_args &a, float scale, float zero, float power) {
  const float s = scale * power;
  if (a.mode == zero_minimum) return make_float2(s * a.step, fmaf(a.base, s, zero * power));
  return make_float2(s * a.step, (a.base - zero) * s);
}

/* A scale as its two parts; one that is not finite is the first alone. */
__device__ inline float2 split_scale(float scale) {
  const uint2 parts = two_parts<bf16_x>(scale, scale);
  return make_float2(__uint_as_float(parts.x), isfinite(scale) ? __uint_as_float(parts.y) : 0.0f);
}

/* The largest of all CTAs' values of a row, which lie at the same place in each; fp32 values that are not negative are
 * in order as integers. */
__device__ inline int most_of_cluster(const int *own, int parts) {
  int most = 0;
  for (int rank = 0; rank < parts; rank++) {
    most = max(most, __float_as_int(load_one_at(address_in_block(shared_address(own), rank))));
  }
  return most;
}

using row_bounds = int[most_tiles][LPG_TILE_ROWS]; /* bits of fp32 */

template <bool Levels>
__global__ void __launch_bounds__(prepare_threads, Levels ? 4 : 3)
    gemm_prepare_kernel(const __grid_constant__ prepare_args a) {
  LPG_SHARED_VARIABLE(row_bounds, most_of_cta);
  LPG_SHARED_VARIABLE(row_bounds, most_bits);
  const int g = threadIdx.x % 8, slot = threadIdx.x / 8, stride = 1 << a.stride_bits;
  const int part = (unsigned)blockIdx.x % (unsigned)a.parts;
  const int tile = slot >> a.stride_bits; /* of the CTA; 0 where it has one */
  const int row_tile = (unsigned)blockIdx.x / (unsigned)a.parts * a.tiles + tile;
  const int own = a.tiles > 1 ? slot & (stride - 1) : part * cta_slots + slot;
  const int own_first = Levels ? own * batch : own;
  const int granules = row_tile < a.row_tiles ? a.granules : 0;
  pdl_launch_next();
  if (threadIdx.x < most_tiles * LPG_TILE_ROWS) most_of_cta[0][threadIdx.x] = 0;
  __syncthreads();
  prepared_scales<Levels> scales;
  float2 most = make_float2(0.0f, 0.0f);
  for (int super = own; super < a.supers; super += stride) most = larger(most, super_bound(a, row_tile, super, g));
#pragma unroll 1
  for (int first = own_first; a.supers == 0 && first < granules; first += stride * batch) {
    scales.load(a, row_tile, first, g);
    scales.bound(a, most);
  }
  atomicMax(&most_of_cta[tile][g], __float_as_int(most.x));
  atomicMax(&most_of_cta[tile][g + 8], __float_as_int(most.y));
  __syncthreads();
  if (a.parts > 1) {
    cluster_arrive();
    cluster_wait();
  }
  if (threadIdx.x < most_tiles * LPG_TILE_ROWS) {
    const int *const own = &most_of_cta[0][threadIdx.x];
    most_bits[0][threadIdx.x] = a.parts > 1 ? most_of_cluster(own, a.parts) : *own;
  }
  __syncthreads();
  if (a.parts > 1) cluster_arrive_only(); /* this CTA has read the others' */
  const auto power_of = [&](int row) {
    const float bound = __int_as_float(most_bits[tile][row]);
    const int e = bound > 0.0f ? a.top - (bound < INFINITY ? ilogbf(bound) : 127) : 0;
    return max(min(e, 126), -126);
  };
  pdl_wait(); /* the call before may still read what it has prepared; this one's scales come from weights alone */
  const float power = ldexpf(1.0f, power_of(g)), other = ldexpf(1.0f, power_of(g + 8));
  if (own_first == 0 && row_tile < a.row_tiles) { /* the inverses are exact */
    a.factors[row_tile * LPG_TILE_ROWS + g] = ldexpf(1.0f, -power_of(g));
    a.factors[row_tile * LPG_TILE_ROWS + g + 8] = ldexpf(1.0f, -power_of(g + 8));
  }
  const bool again = a.supers > 0 || a.granules > stride * batch;
  float4 *const out = a.prepared + (int64_t)row_tile * a.granules * 8 + g;
#pragma unroll 1
  for (int first = own_first; first < granules; first += stride * batch) {
    if (again) scales.load(a, row_tile, first, g);
#pragma unroll
    for (int j = 0; j < batch; j++) {
      if (j >= scales.count) break;
      float2 one = prepare(a, scales.scale[j].x, scales.rest[j].x, power);
      float2 two = prepare(a, scales.scale[j].y, scales.rest[j].y, other);
      if (a.split) {
        one = split_scale(one.x);
        two = split_scale(two.x);
      }
      out[granule_of<Levels>(a, first, j) * 8] = make_float4(one.x, one.y, two.x, two.y);
    }
  }
  if (a.parts > 1) cluster_wait(); /* no CTA ends while others read its bounds */
}

/* each: granules that share a value; 0: all. */
static void set_section(const scale_section &at, int each, packed_section &s) {
  const bool is_signed = at.type == LPGEMM_I8;
  s.at = at;
  s.each = each;
  s.form = at.type == LPGEMM_F16                                                                    ? packed_f16
           : at.type == LPGEMM_BF16                                                                 ? packed_bf16
           : at.slot_bytes == LPG_TILE_ROWS && (is_signed || lpg_kind(at.type) == LPGEMM_KIND_UINT) ? packed_bytes
                                                                                                    : packed_other;
  s.flip = is_signed ? 0x8080 : 0;
  s.bias = is_signed ? 8388736.0f : 8388608.0f;
}

/* Whether the kernel for two levels takes them. */
static bool has_levels(const prepare_args &a, scale_role lower, scale_role upper) {
  const packed_section &low = a.section[lower], &up = a.section[upper];
  return low.at.values && up.at.values && low.form == packed_bytes && low.each == 1 && up.form == packed_f16 &&
         up.each % batch == 0;
}

static const void *prepare_kernel(bool levels) {
  return levels ? (const void *)gemm_prepare_kernel<true> : (const void *)gemm_prepare_kernel<false>;
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_gemm_prepare(const lpg_call *call, float *factors, void *prepared) {
  const lpg_packed &weights = *call->problem.weights;
  const lpgemm_weight_desc_t &d = weights.desc;
  if (call->skip_product || weights.row_tiles == 0 || d.k == 0) return LPGEMM_SUCCESS;
  lpg::dequantiser_args dequantiser = {};
  lpg::scales_args scale_data = {};
  lpg::set_gemm_dequantiser(*call, dequantiser, scale_data);
  lpg::add_sections(*call, 1, 1, scale_data);
  lpg::prepare_args a = {};
  a.granules = (int)lpg_gemm_scale_groups(&weights);
  a.row_tiles = (int)weights.row_tiles;
  const int64_t granule_k = lpg_granule_k(&weights.group);
  const int group_each = (int)(weights.group.k / granule_k);
  const int super_each = weights.super.count > 1 ? (int)(weights.super.k / granule_k) : 0;
  for (int role = 0; role < lpg::scale_roles; role++) {
    if (scale_data.which[role] < 0) continue;
    lpg::set_section(scale_data.section[scale_data.which[role]], lpg::is_upper(role) ? super_each : group_each,
                     a.section[role]);
  }
  const bool levels = lpg::has_levels(a, lpg::role_scale, lpg::role_super_scale) &&
                      (d.zero_type == 0 || lpg::has_levels(a, lpg::role_zero, lpg::role_super_zero));
  const int units = levels ? (a.granules + lpg::batch - 1) / lpg::batch : a.granules; /* of a thread */
  a.tiles = a.parts = 1;
  int slots = lpg::cta_slots; /* that share a row tile */
  while (a.tiles < lpg::most_tiles && 2 * units <= slots) a.tiles *= 2, slots /= 2;
  while (a.parts < lpg::most_parts && units > slots && a.row_tiles * a.parts < 2 * call->device->sms)
    a.parts *= 2, slots *= 2;
  while (1 << a.stride_bits < slots) a.stride_bits++;
  a.mode = scale_data.mode;
  a.step = scale_data.factor;
  a.base = scale_data.fixed_shift;
  a.most = (float)weights.values.most;
  if (a.granules > LPG_GEMM_PREPARED_KEPT && d.super_scale_type && (!d.zero_type || d.super_zero_type)) {
    a.supers = weights.super.count > 1 ? (int)weights.super.count : 1;
    a.most_scale = (float)lpgemm_i_largest_value(d.scale_type, NULL);
    if (d.zero_type) a.most_zero = (float)lpgemm_i_largest_value(d.zero_type, NULL);
  }
  a.lost_bits = lpgemm_i_gemm_lost_digits(&weights);
  a.top = call->problem.x_type == LPGEMM_BF16 ? 0 : 14;
  a.split = lpgemm_i_gemm_scaling(&weights, call->problem.x_type, call->problem.scale_span).mode ==
            LPG_GEMM_SCALES_PREPARED_SPLIT;
  a.factors = factors;
  a.prepared = (float4 *)prepared;
  const unsigned ctas = (unsigned)((a.row_tiles + a.tiles - 1) / a.tiles * a.parts);
  return lpg::launch_cluster(lpg::prepare_kernel(levels), dim3(ctas), a.parts, lpg::prepare_threads, 0, call->stream, a,
                             true);
}

lpgemm_status_t lpgemm_i_cuda_load_gemm_prepare(void) {
  LPG_TRY(lpg::allow_shared(lpg::prepare_kernel(false), 0));
  return lpg::allow_shared(lpg::prepare_kernel(true), 0);
}
