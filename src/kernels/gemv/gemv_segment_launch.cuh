/* The segment form from the host: plan -> arguments -> launch. */
#pragma once

#include "gemv_segment.cuh"
#include "gemv_stack_launch.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

template <class T>
static lpgemm_status_t run_segments(const lpg_call &call, segment_args &a) {
  set_stack<T>(call, a);
  a.plan = plan_of<lpg_segment_plan>(call);
  a.offsets = call.offsets;
  a.experts = call.problem.experts;
  a.m = (int32_t)call.problem.m;
  a.x_row = call.x_row;
  a.x_rows = (int32_t)(call.x_row ? call.x_rows : call.problem.m);
  a.offsets_final = call.offsets_final;
  return launch_planned(call, (const void *)segment_kernel<T>, a, call.device->clusters[1] > 0);
}

template <class X, template <class, int> class Dequantiser, int Bits>
static lpgemm_status_t run_segments_any(const lpg_call &call) {
  segment_args a = {};
  set_dequantiser(call, true, a.product.dequantiser, a.product.scale_data);
  return with_stack_traits<X, Dequantiser, Bits>(call,
                                                 [&](auto traits) { return run_segments<decltype(traits)>(call, a); });
}

template <class X, template <class, int> class Dequantiser, int Bits>
static lpgemm_status_t load_segments(const lpg_device *device) {
  return with_each_stack_traits<X, Dequantiser, Bits>(
      [&](auto traits) { return load_kernels(device, segment_kernel<decltype(traits)>); });
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_SEGMENT(symbol, x, dequantiser, bits)                                          \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) {                                \
    return lpg::run_segments_any<lpg::x##_x, lpg::dequantiser##_dequantiser, bits>(*call); \
  }                                                                                        \
  extern "C" lpgemm_status_t symbol##_load(const lpg_device *device) {                     \
    return lpg::load_segments<lpg::x##_x, lpg::dequantiser##_dequantiser, bits>(device);   \
  }
