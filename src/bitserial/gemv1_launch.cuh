/* gemv1 with X of 16 bits, from the host. */
#pragma once

#include "gemv1.cuh"
#include "gemv1_frame_launch.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

template <int Bits, bool General>
static lpgemm_status_t launch_columns(const lpg_call &call, const gemv1_args &a) {
  return a.plan.tile_m == 1 ? launch_gemv1<gemv1_traits<Bits, 1, General>>(call, a)
                            : launch_gemv1<gemv1_traits<Bits, LPG_GEMV1_MOST_X, General>>(call, a);
}

template <int Bits>
static lpgemm_status_t run_gemv1(const lpg_call &call) {
  const lpg_packed &weights = *call.problem.weights;
  gemv1_args a = {};
  LPG_TRY(make_gemv1_args(call, a));
  return lpg_gemv1_is_common(&weights) ? launch_columns<Bits, false>(call, a) : launch_columns<Bits, true>(call, a);
}

template <int Bits>
static lpgemm_status_t load_gemv1(const lpg_device *device) {
  return load_kernels(device, gemv1_kernel<gemv1_traits<Bits, 1, false>>, gemv1_kernel<gemv1_traits<Bits, 1, true>>,
                      gemv1_kernel<gemv1_traits<Bits, LPG_GEMV1_MOST_X, false>>,
                      gemv1_kernel<gemv1_traits<Bits, LPG_GEMV1_MOST_X, true>>);
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_GEMV1(symbol, bits)                                                                   \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) { return lpg::run_gemv1<bits>(*call); } \
  extern "C" lpgemm_status_t symbol##_load(const lpg_device *device) { return lpg::load_gemv1<bits>(device); }
