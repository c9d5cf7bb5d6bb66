/* stripe from the host: plan -> arguments -> launches. */
#pragma once

#include "../launch/launch.cuh"
#include "../operand/operand_args.cuh"
#include "../operand/scaled.h"
#include "../operand/x_copy.h"
#include "stripe.cuh"
#include "stripe_parts.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Where each section lies in a stage; in the order of scales_args.section. */
static void place_sections(const lpg_packed &weights, stripe_args &a) {
  const lpg_section_id ids[] = {LPG_SECTION_SCALES, LPG_SECTION_SUPER_SCALES, LPG_SECTION_ZEROS,
                                LPG_SECTION_SUPER_ZEROS};
  const int unit_k = lpg_stripe_k_of(&weights);
  int offset = 0, which = 0;
  for (lpg_section_id id : ids) {
    if (weights.section[id].bytes == 0) continue;
    const lpg_axis &axis = *lpg_section_axis(&weights, id);
    stripe_section &s = a.section[which++];
    s.groups = axis.count > 1 && axis.k < unit_k ? (int)(unit_k / axis.k) : 1;
    s.units_each = axis.count <= 1 ? 0 : axis.k <= unit_k ? 1 : (int)(axis.k / unit_k);
    s.bytes = s.groups * lpg_slot_bytes(lpg_section_type(&weights.desc, id));
    s.pitch = lpg_stripe_section_bytes(&weights, id);
    s.offset = offset;
    offset += LPG_STRIPE_ROW_TILES * s.pitch;
    a.scale_pieces += LPG_STRIPE_ROW_TILES * lpg_stripe_pieces(&weights, id);
  }
  const lpgemm_weight_desc_t &d = weights.desc;
  const bool zeros = a.plan.zeros && d.zero == LPGEMM_ZERO_PER_GROUP && d.zero_type == LPGEMM_U8;
  a.quick_bf16 = d.scale_type == LPGEMM_BF16;
  a.quick = (d.scale_type == LPGEMM_F16 || d.scale_type == LPGEMM_BF16) && !d.super_scale_type && !a.plan.shift &&
            (zeros || !a.plan.zeros);
}

/* may_shift: the instance's. */
static lpgemm_status_t run_stripe(lpg_call call, stripe_args &a, const void *kernel, bool may_shift) {
  const lpg_packed &weights = *call.problem.weights;
  const lpg_stripe_plan &p = a.plan;
  uint8_t *workspace = (uint8_t *)call.workspace;
  add_sections(call, LPG_STRIPE_ROW_TILES, 1, a.scale_data);
  place_sections(weights, a);
  a.partials = (float *)workspace;
  workspace += 2 * p.ctas * lpg_stripe_partial(&p) * 4;
  a.sums_of_x = (float *)workspace;
  if (p.shift) workspace += lpg_stripe_x_rows(&p) * p.units * p.scale_groups * 4;
  LPG_TRY(lpgemm_i_cuda_copy_x(&call, 2, workspace));
  a.codes = call.section[LPG_SECTION_CODES];
  a.row_bytes = weights.k_tiles * lpg_tile_bytes(weights.bits);
  a.row_vectors = (int32_t)(a.row_bytes / 512);
  a.row_tiles = (int32_t)weights.row_tiles;
  a.n = (int32_t)weights.desc.n;
  a.m = (int32_t)call.problem.m;
  a.exponents = (const int8_t *)call.section[LPG_SECTION_ROW_EXPONENTS];
  a.scale_exponent = lpgemm_i_scale_exponent(&weights.desc, lpg_half_type(call.problem.x_type));
  a.k = (int32_t)weights.desc.k;
  a.ldx = call.ldx;
  a.x = call.x;
  a.epilogue = make_epilogue(call);
  if (p.shift && !call.skip_product) LPG_TRY(lpgemm_i_cuda_stripe_sums_of_x(&call, &p, a.sums_of_x));
  LPG_TRY(launch_planned(call, kernel, a, call.device->clusters[1] > 0));
  if (p.stripes.more == 0 && p.stripes.each % p.units == 0) return LPGEMM_SUCCESS; /* every work tile is whole */
  return lpgemm_i_cuda_stripe_add(&call, &p, may_shift ? 1.0f : a.scale_data.factor, a.partials);
}

/* The instances that do not scale weights: `use` gets the one that the plan asks for. Zeros and small groups have one
 * work tile, and scales of small groups come the way that zeros do: every instance takes a second or two of compiling.
 */
template <class X, template <class, int> class Dequantiser, int Bits, class Use>
static lpgemm_status_t with_instance(const lpg_stripe_plan &p, Use use) {
  constexpr int warps = LPG_STRIPE_WARPS;
  constexpr bool centered = Dequantiser<X, Bits>::centered; /* others have no zeros */
  constexpr int unit_k = lpg_stripe_k(Bits, centered);
  if (p.scale_groups == unit_k / 16) return use(stripe_traits<X, Dequantiser, Bits, warps, 64, unit_k / 16, true>());
  if (p.scale_groups > 1) return use(stripe_traits<X, Dequantiser, Bits, warps, 64, unit_k / 32, true>());
  if constexpr (centered) {
    if (p.zeros) return use(stripe_traits<X, Dequantiser, Bits, warps, 64, 1, true>());
  }
  return p.tile_m == 64 ? use(stripe_traits<X, Dequantiser, Bits, warps, 64, 1, false>())
                        : use(stripe_traits<X, Dequantiser, Bits, warps, 32, 1, false>());
}

/* Those of scaled weights, if there is one with so many scale groups; Zeros: of groups. */
template <class X, template <class, int> class Dequantiser, int Bits, int Groups, bool Zeros, class Use>
static lpgemm_status_t with_scaled(const lpg_stripe_plan &p, Use use) {
  using traits = stripe_traits<X, Dequantiser, Bits, LPG_STRIPE_WARPS, LPG_STRIPE_SCALED_M, Groups, Zeros, true>;
  constexpr bool centered = Dequantiser<X, Bits>::centered;
  if constexpr (lpg_stripe_has_scaled(Bits, centered, traits::is_float, Groups, traits::unit_k)) {
    if constexpr (centered && !Zeros) {
      if (p.zeros) return with_scaled<X, Dequantiser, Bits, Groups, true>(p, use);
    }
    return use(traits());
  }
  return LPGEMM_INTERNAL_ERROR;
}

/* All instances. */
template <class X, template <class, int> class Dequantiser, int Bits, class Use>
static lpgemm_status_t with_any(const lpg_stripe_plan &p, Use use) {
  constexpr int unit_k = lpg_stripe_k(Bits, Dequantiser<X, Bits>::centered);
  if (p.tile_m != LPG_STRIPE_SCALED_M) return with_instance<X, Dequantiser, Bits>(p, use);
  return p.scale_groups == 1             ? with_scaled<X, Dequantiser, Bits, 1, false>(p, use)
         : p.scale_groups == unit_k / 32 ? with_scaled<X, Dequantiser, Bits, unit_k / 32, false>(p, use)
                                         : with_scaled<X, Dequantiser, Bits, unit_k / 16, false>(p, use);
}

template <class X, template <class, int> class Dequantiser, int Bits>
static lpgemm_status_t run_instance(const lpg_call &call) {
  stripe_args a = {};
  a.plan = plan_of<lpg_stripe_plan>(call);
  set_dequantiser(call, true, a.dequantiser, a.scale_data);
  return with_any<X, Dequantiser, Bits>(a.plan, [&](auto traits) {
    using T = decltype(traits);
    return run_stripe(call, a, (const void *)stripe_kernel<T>, T::may_shift);
  });
}

/* Loads every instance: by all plans that ask for one. */
template <class X, template <class, int> class Dequantiser, int Bits>
static lpgemm_status_t load_instances(const lpg_device *device) {
  using one = Dequantiser<X, Bits>;
  constexpr int unit_k = lpg_stripe_k(Bits, one::centered), groups[] = {1, unit_k / 32, unit_k / 16};
  constexpr bool is_float = !one::centered && one::table_bytes == 0;
  const int rows[] = {32, 64, LPG_STRIPE_SCALED_M};
  for (int i = 0; i < 18; i++) {
    lpg_stripe_plan p = {};
    p.tile_m = rows[i % 3];
    p.zeros = i / 3 % 2;
    p.scale_groups = groups[i / 6];
    if (p.tile_m == LPG_STRIPE_SCALED_M &&
        !lpg_stripe_has_scaled(Bits, one::centered, is_float, p.scale_groups, unit_k))
      continue;
    LPG_TRY((with_any<X, Dequantiser, Bits>(
        p, [&](auto traits) { return load_kernels(device, stripe_kernel<decltype(traits)>); })));
  }
  return LPGEMM_SUCCESS;
}

template <class X, template <class, int> class Dequantiser, int Bits>
static lpgemm_status_t run_stripe_any(const lpg_call &call) {
  if constexpr (has_halved<Dequantiser<X, Bits>>) {
    if (lpg_is_halved(call.problem.weights->desc.type, call.problem.x_type))
      return run_instance<X, halved_dequantiser, Bits>(call);
  }
  return run_instance<X, Dequantiser, Bits>(call);
}

template <class X, template <class, int> class Dequantiser, int Bits>
static lpgemm_status_t load_stripe_any(const lpg_device *device) {
  if constexpr (has_halved<Dequantiser<X, Bits>>) LPG_TRY((load_instances<X, halved_dequantiser, Bits>(device)));
  LPG_TRY((load_instances<X, Dequantiser, Bits>(device)));
  return lpgemm_i_cuda_prepare_stripe();
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_STRIPE(symbol, x, dequantiser, bits)                                           \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) {                                \
    return lpg::run_stripe_any<lpg::x##_x, lpg::dequantiser##_dequantiser, bits>(*call);   \
  }                                                                                        \
  extern "C" lpgemm_status_t symbol##_load(const lpg_device *device) {                     \
    return lpg::load_stripe_any<lpg::x##_x, lpg::dequantiser##_dequantiser, bits>(device); \
  }
