/* The token form from the host: plan -> arguments -> launch. */
#pragma once

#include "../launch/launch.cuh"
#include "../operand/operand_args.cuh"
#include "gemv_fan.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

template <class T, bool In>
static lpgemm_status_t run_fan(const lpg_call &call, fan_args &a) {
  const lpg_fan_call &fan = (const lpg_fan_call &)call; /* its first member */
  const lpg_packed &weights = *call.problem.weights;
  gemv_args &product = a.product;
  add_sections(call, T::row_tiles, T::chunk, product.scale_data);
  product.codes = call.section[LPG_SECTION_CODES];
  product.row_bytes = weights.k_tiles * lpg_tile_bytes(weights.bits);
  product.row_vectors = (int32_t)(product.row_bytes / 512);
  product.row_tiles = (int32_t)weights.row_tiles;
  product.n = (int32_t)weights.desc.n;
  product.k = weights.desc.k;
  product.x = call.x;
  product.ldx = call.ldx;
  product.x_type = call.problem.x_type;
  product.epilogue = make_epilogue(call);
  a.plan = plan_of<lpg_fan_plan>(call);
  a.blob = call.blob;
  a.stride = (int64_t)call.stride;
  a.row_scales = call.row_scales;
  a.bias_stride = (int32_t)call.bias_stride;
  a.expert = fan.expert;
  a.weight = fan.weight;
  a.experts = call.problem.experts;
  a.first_expert = fan.first_expert;
  a.top_k = call.problem.top_k;
  return launch_planned(call, (const void *)fan_kernel<T, In>, a, call.device->clusters[1] > 0);
}

template <class X, template <class, int> class Dequantiser, int Bits, bool In>
static lpgemm_status_t run_fan_any(const lpg_call &call) {
  fan_args a = {};
  set_dequantiser(call, true, a.product.dequantiser, a.product.scale_data);
  switch (lpg_gemv_scale_steps(call.problem.weights)) {
    case 1:
      if constexpr (lpg_fan_has_steps(Bits, 1)) {
        return run_fan<gemv_traits<X, Dequantiser, Bits, LPG_FAN_COLUMNS, 1, false>, In>(call, a);
      }
      return LPGEMM_NOT_SUPPORTED; /* the planner refuses it */
    case 2: return run_fan<gemv_traits<X, Dequantiser, Bits, LPG_FAN_COLUMNS, 2, false>, In>(call, a);
    default: return run_fan<gemv_traits<X, Dequantiser, Bits, LPG_FAN_COLUMNS, 8, false>, In>(call, a);
  }
}

template <class X, template <class, int> class Dequantiser, int Bits, bool In>
static lpgemm_status_t load_fan_any(const lpg_device *device) {
  if constexpr (lpg_fan_has_steps(Bits, 1)) {
    LPG_TRY(load_kernels(device, fan_kernel<gemv_traits<X, Dequantiser, Bits, LPG_FAN_COLUMNS, 1, false>, In>));
  }
  return load_kernels(device, fan_kernel<gemv_traits<X, Dequantiser, Bits, LPG_FAN_COLUMNS, 2, false>, In>,
                      fan_kernel<gemv_traits<X, Dequantiser, Bits, LPG_FAN_COLUMNS, 8, false>, In>);
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. way: 0 out, 1 in. */
#define LPG_FAN(symbol, x, dequantiser, bits, way)                                           \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) {                                  \
    return lpg::run_fan_any<lpg::x##_x, lpg::dequantiser##_dequantiser, bits, way>(*call);   \
  }                                                                                          \
  extern "C" lpgemm_status_t symbol##_load(const lpg_device *device) {                       \
    return lpg::load_fan_any<lpg::x##_x, lpg::dequantiser##_dequantiser, bits, way>(device); \
  }
