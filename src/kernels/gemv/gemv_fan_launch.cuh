/* The token form from the host: plan -> arguments -> launch. */
#pragma once

#include "gemv_fan.cuh"
#include "gemv_stack_launch.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

template <class T, bool In>
static lpgemm_status_t run_fan(const lpg_call &call, fan_args &a) {
  const lpg_fan_call &fan = (const lpg_fan_call &)call; /* its first member */
  set_stack<T>(call, a);
  a.plan = plan_of<lpg_fan_plan>(call);
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
  return with_stack_traits<X, Dequantiser, Bits>(call,
                                                 [&](auto traits) { return run_fan<decltype(traits), In>(call, a); });
}

template <class X, template <class, int> class Dequantiser, int Bits, bool In>
static lpgemm_status_t load_fan_any(const lpg_device *device) {
  return with_each_stack_traits<X, Dequantiser, Bits>(
      [&](auto traits) { return load_kernels(device, fan_kernel<decltype(traits), In>); });
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
