/* The counts kernels from the host. */
#pragma once

#include "gemv1_frame_launch.cuh"
#include "gemv1_i8.cuh"
#include "gemv1_i8_limits.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

template <int Bits>
static lpgemm_status_t run_counts(const lpg_call &call) {
  bits_args a = {};
  LPG_TRY(make_bits_args(call, lpg_counts_form_of(Bits, call.problem.m), a));
  switch (a.plan.columns) {
    case 1: return launch_bits<counts_traits<Bits, 1>>(call, a);
    case 2: return launch_bits<counts_traits<Bits, 2>>(call, a);
    default: return launch_bits<counts_traits<Bits, LPG_COUNTS_MOST_X>>(call, a);
  }
}

template <int Bits>
static lpgemm_status_t prepare_counts() {
  LPG_TRY((prepare_one<counts_traits<Bits, 1>>()));
  LPG_TRY((prepare_one<counts_traits<Bits, 2>>()));
  return prepare_one<counts_traits<Bits, LPG_COUNTS_MOST_X>>();
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_COUNTS(symbol, bits)                                                                   \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) { return lpg::run_counts<bits>(*call); } \
  extern "C" lpgemm_status_t symbol##_prepare(void) { return lpg::prepare_counts<bits>(); }
