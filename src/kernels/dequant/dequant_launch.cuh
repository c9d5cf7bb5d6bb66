/* Expanding weights and multiplying them in work tiles of 256 x 128, from the host: chunk after chunk of rows. */
#pragma once

#include "../launch/launch.cuh"
#include "../operand/expand.h"
#include "dequant_mma.cuh"
#include "dequant_wgmma.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The kernel that multiplies. Only one of the two is compiled for an architecture. */
template <class Types, bool Wgmma, bool Promotes>
static const void *dequant_kernel() {
  using T = dequant_traits<Types, Promotes>;
  if constexpr (Wgmma) {
    return (const void *)dequant_wgmma_kernel<T>;
  } else {
    return (const void *)dequant_mma_kernel<T>;
  }
}

/* Whether there may be a table of groups' scales, and whether by wgmma sums are promoted in any case: without a table
 * gemm_image.cuh multiplies fp16. */
template <class Types>
constexpr bool may_have_table = Types::image != LPGEMM_BF16 &&Types::image != LPGEMM_F32;
template <class Types>
constexpr bool promotes_all = Types::image == LPGEMM_E4M3 || Types::image == LPGEMM_F16;

/* Chunk after chunk: expands, multiplies. */
static lpgemm_status_t run_chunks(const lpg_call &call, const void *kernel, lpgemm_dtype_t image, dequant_args &a) {
  float *const scale_data = (float *)((uint8_t *)call.workspace + a.plan.chunk_tiles * lpg_dequant_tile_bytes(&a.plan));
  a.image = (const uint8_t *)call.workspace;
  a.scale_data = scale_data;
  for (a.first_tile = 0; a.first_tile < a.plan.n_tiles; a.first_tile += a.tiles) {
    const int32_t left = a.plan.n_tiles - a.first_tile;
    a.tiles = left < a.plan.chunk_tiles ? left : a.plan.chunk_tiles;
    if (!call.skip_product) {
      LPG_TRY(lpgemm_i_cuda_expand(&call, image, a.plan.k_stages, a.first_tile, a.tiles, call.workspace, scale_data));
    }
    const int64_t tiles = (int64_t)a.tiles * a.plan.m_tiles;
    const int64_t clusters = a.plan.persistent && tiles > a.plan.clusters ? a.plan.clusters : tiles;
    LPG_TRY(launch_planned(call, kernel, a, call.device->clusters[1] > 0, clusters));
  }
  return LPGEMM_SUCCESS;
}

template <class Types, bool Wgmma>
static lpgemm_status_t run_dequant(lpg_call call) {
  constexpr int x_bytes = dequant_traits<Types, false>::x_bytes;
  const lpg_packed &weights = *call.problem.weights;
  dequant_args a = {};
  a.scaling = lpgemm_i_expand_scaling(&call.problem, Types::image);
  a.plan = plan_of<lpg_dequant_plan>(call);
  void *const copy = call.workspace; /* in front of the image */
  call.workspace = (uint8_t *)copy + lpg_dequant_copy_bytes(&call.problem, x_bytes);
  LPG_TRY(lpgemm_i_cuda_copy_x(&call, x_bytes, copy));
  a.exponents = (const int8_t *)call.section[LPG_SECTION_ROW_EXPONENTS];
  a.groups = make_groups(call);
  a.n = (int32_t)weights.desc.n;
  a.m = (int32_t)call.problem.m;
  a.k = (int32_t)weights.desc.k;
  a.ldx = call.ldx;
  a.x = call.x;
  a.epilogue = make_epilogue(call);
  if constexpr (Wgmma && may_have_table<Types>) {
    if (a.scaling.in_table) return run_chunks(call, dequant_kernel<Types, Wgmma, true>(), Types::image, a);
  }
  constexpr bool promotes = promotes_all<Types> && Wgmma;
  return run_chunks(call, dequant_kernel<Types, Wgmma, promotes>(), Types::image, a);
}

/* Whether weights that fp16 cannot hold are multiplied in tf32. */
template <class Types, bool Wgmma>
constexpr bool may_be_tf32 = Types::image == LPGEMM_F16 &&Wgmma;

template <class Types, bool Wgmma>
static lpgemm_status_t run_dequant_any(const lpg_call &call) {
  if constexpr (may_be_tf32<Types, Wgmma>) {
    if (lpgemm_i_expand_image(&call.problem, Types::image, Wgmma) == LPGEMM_F32)
      return run_dequant<tf32_types, Wgmma>(call);
  }
  return run_dequant<Types, Wgmma>(call);
}

template <class Types, bool Wgmma>
static lpgemm_status_t load_dequant(const lpg_device *device) {
  constexpr bool promotes = promotes_all<Types> && Wgmma, has_table = may_have_table<Types> && Wgmma;
  LPG_TRY(load_kernels(device, dequant_kernel<Types, Wgmma, promotes>()));
  if (has_table) LPG_TRY(load_kernels(device, dequant_kernel<Types, Wgmma, has_table>()));
  return lpgemm_i_cuda_prepare_expand(Types::image);
}

template <class Types, bool Wgmma>
static lpgemm_status_t load_dequant_any(const lpg_device *device) {
  if constexpr (may_be_tf32<Types, Wgmma>) LPG_TRY((load_dequant<tf32_types, Wgmma>(device)));
  return load_dequant<Types, Wgmma>(device);
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. wgmma: 1 on sm_90a. */
#define LPG_DEQUANT(symbol, x, wgmma)                                  \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) {            \
    return lpg::run_dequant_any<lpg::x##_types, wgmma>(*call);         \
  }                                                                    \
  extern "C" lpgemm_status_t symbol##_load(const lpg_device *device) { \
    return lpg::load_dequant_any<lpg::x##_types, wgmma>(device);       \
  }
