/* The bits kernels from the host. */
#pragma once

#include "gemv1.cuh"
#include "gemv1_frame_launch.cuh"
#include "gemv1_limits.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

template <int Bits, bool General>
static lpgemm_status_t launch_columns(const lpg_call &call, const bits_args &a) {
  return a.plan.columns == 1 ? launch_bits<bits_traits<Bits, 1, General>>(call, a)
                             : launch_bits<bits_traits<Bits, LPG_BITS_MOST_X, General>>(call, a);
}

template <int Bits>
static lpgemm_status_t run_bits(const lpg_call &call) {
  const lpg_plan &plan = *call.problem.plan;
  bits_args a = {};
  LPG_TRY(make_bits_args(call, lpg_bits_form_of(Bits, call.problem.m), a));
  return lpgemm_i_bits_is_common(&plan) ? launch_columns<Bits, false>(call, a) : launch_columns<Bits, true>(call, a);
}

template <int Bits>
static lpgemm_status_t prepare_bits() {
  LPG_TRY((prepare_one<bits_traits<Bits, 1, false>>()));
  LPG_TRY((prepare_one<bits_traits<Bits, 1, true>>()));
  LPG_TRY((prepare_one<bits_traits<Bits, LPG_BITS_MOST_X, false>>()));
  return prepare_one<bits_traits<Bits, LPG_BITS_MOST_X, true>>();
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_BITS(symbol, bits)                                                                   \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) { return lpg::run_bits<bits>(*call); } \
  extern "C" lpgemm_status_t symbol##_prepare(void) { return lpg::prepare_bits<bits>(); }
