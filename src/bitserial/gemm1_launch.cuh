/* Planes of bits, or bytes, from the host: X to images, then chunk after chunk of weights to images, and the product.
 */
#pragma once

#include "../kernels/launch/launch.cuh"
#include "gemm1_wgmma.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

static lpgemm_status_t run_gemm1(const lpg_call &call) {
  const lpg_problem &problem = call.problem;
  const lpgemm_weight_desc_t &d = problem.weights->desc;
  gemm1_args a = {};
  a.plan = plan_of<lpg_gemm1_plan>(call);
  uint8_t *const x_image = (uint8_t *)call.workspace;
  int32_t *const x_sums = (int32_t *)(x_image + lpg_gemm1_x_total(&a.plan));
  uint8_t *const w_image = (uint8_t *)x_sums + lpg_gemm1_sums_bytes(&a.plan);
  int32_t *const scale_data = (int32_t *)(w_image + a.plan.chunk_tiles * lpg_gemm1_w_bytes(&a.plan));
  a.x_image = x_image;
  a.x_sums = x_sums;
  a.w_image = w_image;
  a.scale_data = scale_data;
  a.n = (int32_t)d.n;
  a.m = (int32_t)problem.m;
  a.step = lpg_integer_step(d.type) * lpg_integer_step(problem.x_type);
  a.epilogue = make_epilogue(call);
  if (!call.skip_product) LPG_TRY(lpgemm_i_gemm1_make_x_planes(&call, &a.plan, x_image, x_sums));
  for (a.first_tile = 0; a.first_tile < a.plan.n_tiles; a.first_tile += a.tiles) {
    const int32_t left = a.plan.n_tiles - a.first_tile;
    a.tiles = left < a.plan.chunk_tiles ? left : a.plan.chunk_tiles;
    if (!call.skip_product) {
      LPG_TRY(lpgemm_i_gemm1_make_w_planes(&call, &a.plan, a.first_tile, a.tiles, w_image, scale_data));
    }
    const int64_t tiles = (int64_t)a.tiles * a.plan.m_tiles;
    const int64_t clusters = tiles > a.plan.clusters ? a.plan.clusters : tiles;
    LPG_TRY(launch_planned(call, (const void *)gemm1_kernel, a, false, clusters));
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t load_gemm1(const lpg_device *device) {
  LPG_TRY(load_kernels(device, gemm1_kernel));
  return lpgemm_i_gemm1_prepare_images();
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_GEMM1(symbol)                                                                   \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) { return lpg::run_gemm1(*call); } \
  extern "C" lpgemm_status_t symbol##_load(const lpg_device *device) { return lpg::load_gemm1(device); }
