/* Table lookup on the GPU, from the host: plan -> arguments -> launch. */
#pragma once

#include "../../kernels/launch/launch.cuh"
#include "lut.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

template <class T>
static lpgemm_status_t launch_lut(const lpg_call &call, const lut_args &a) {
  return launch_planned(call, (const void *)lut_kernel<T>, a, true);
}

/* Row after row, each of which reads the weights again. */
template <int Bits>
static lpgemm_status_t run_lut(const lpg_call &call) {
  const lpg_packed &weights = *call.problem.weights;
  lut_args a = {};
  a.plan = plan_of<lpg_lut_gpu_plan>(call);
  set_chunk_scales(call, a.scale_data);
  a.codes = call.section[LPG_SECTION_CODES];
  a.row_bytes = (int32_t)(weights.k_tiles * lpg_tile_bytes(weights.bits));
  a.row_vectors = a.row_bytes / 512;
  a.row_tiles = (int32_t)weights.row_tiles;
  a.n = (int32_t)weights.desc.n;
  a.k = weights.desc.k;
  a.ldx = call.ldx;
  a.m = 1;
  a.center = (int32_t)(a.scale_data.center - 0.5f * a.scale_data.most_center);
  a.x = (const uint8_t *)call.x;
  a.x_type = call.problem.x_type;
  a.epilogue = make_epilogue(call);
  const bool common = lpg_lut_gpu_is_common(&weights);
  for (int64_t row = 0; row < call.problem.m; row++) {
    const lpgemm_status_t status =
        common ? launch_lut<lut_traits<Bits, false>>(call, a) : launch_lut<lut_traits<Bits, true>>(call, a);
    LPG_TRY(status);
    if (a.x) a.x += a.ldx * lpg_bytes(a.x_type);
    skip_rows(a.epilogue, 1);
  }
  return LPGEMM_SUCCESS;
}

template <int Bits>
static lpgemm_status_t load_lut(const lpg_device *device) {
  return load_kernels(device, lut_kernel<lut_traits<Bits, false>>, lut_kernel<lut_traits<Bits, true>>);
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_LUT_GPU(symbol, bits)                                                               \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) { return lpg::run_lut<bits>(*call); } \
  extern "C" lpgemm_status_t symbol##_load(const lpg_device *device) { return lpg::load_lut<bits>(device); }
