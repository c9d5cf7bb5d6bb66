/* gemv1 with int8 X, from the host. */
#pragma once

#include "gemv1_frame_launch.cuh"
#include "gemv1_i8.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

template <int Bits>
static lpgemm_status_t run_gemv1_i8(const lpg_call &call) {
  gemv1_args a = {};
  LPG_TRY(make_gemv1_args(call, a));
  switch (a.plan.tile_m) {
    case 1: return launch_gemv1<gemv1_i8_traits<Bits, 1>>(call, a);
    case 2: return launch_gemv1<gemv1_i8_traits<Bits, 2>>(call, a);
    default: return launch_gemv1<gemv1_i8_traits<Bits, LPG_GEMV1_I8_MOST_X>>(call, a);
  }
}

template <int Bits>
static lpgemm_status_t load_gemv1_i8(const lpg_device *device) {
  return load_kernels(device, gemv1_kernel<gemv1_i8_traits<Bits, 1>>, gemv1_kernel<gemv1_i8_traits<Bits, 2>>,
                      gemv1_kernel<gemv1_i8_traits<Bits, LPG_GEMV1_I8_MOST_X>>);
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_GEMV1_I8(symbol, bits)                                                                   \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) { return lpg::run_gemv1_i8<bits>(*call); } \
  extern "C" lpgemm_status_t symbol##_load(const lpg_device *device) { return lpg::load_gemv1_i8<bits>(device); }
