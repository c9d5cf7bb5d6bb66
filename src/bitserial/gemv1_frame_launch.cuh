/* Kernels of bits_frame.cuh from the host: arguments, plan, launch. */
#pragma once

#include "../kernels/launch/launch.cuh"
#include "gemv1_frame.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

static lpgemm_status_t make_gemv1_args(const lpg_call &call, gemv1_args &a) {
  const lpg_packed &weights = *call.problem.weights;
  a.plan = plan_of<lpg_gemv1_plan>(call);
  set_chunk_scales(call, a.scale_data);
  a.codes = call.section[LPG_SECTION_CODES];
  a.row_bytes = weights.k_tiles * lpg_tile_bytes(weights.bits);
  a.row_vectors = (int32_t)(a.row_bytes / 512);
  a.row_tiles = (int32_t)weights.row_tiles;
  a.n = (int32_t)weights.desc.n;
  a.m = (int32_t)call.problem.m;
  a.k = weights.desc.k;
  a.ldx = call.ldx;
  a.x = call.x;
  a.is_bf16 = call.problem.x_type == LPGEMM_BF16;
  a.epilogue = make_epilogue(call);
  return LPGEMM_SUCCESS;
}

template <class T>
static lpgemm_status_t launch_gemv1(const lpg_call &call, const gemv1_args &a) {
  return launch_planned(call, (const void *)gemv1_kernel<T>, a, true);
}

}  // namespace
}  // namespace lpg
