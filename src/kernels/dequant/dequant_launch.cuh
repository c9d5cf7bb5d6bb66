/* Expanding weights and multiplying them, from the host: chunk after chunk of rows. */
#pragma once

#include "../../cuda/cuda.h"
#include "dequant_limits.h"
#include "dequant_mma.cuh"
#include "dequant_wgmma.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The kernel that multiplies, and its threads. Only one of the two is compiled for an architecture. */
template <class Scales, bool Wgmma, bool Promotes>
struct dequant_form {
  using T = dequant_traits<Scales, Promotes>;
  static constexpr int threads = Wgmma ? dequant_wgmma_threads : dequant_mma_threads;

  static const void *kernel() {
    if constexpr (Wgmma) {
      return (const void *)dequant_wgmma_kernel<T>;
    } else {
      return (const void *)dequant_mma_kernel<T>;
    }
  }
};

/* Whether there may be a table of groups' scales, and whether sums are promoted in any case. */
template <class Scales>
constexpr bool may_have_table = Scales::image != LPGEMM_BF16;
template <class Scales>
constexpr bool promotes_all = Scales::image == LPGEMM_E4M3;

/* Chunk after chunk: expands, multiplies. */
template <class Form>
static lpgemm_status_t run_chunks(const lpg_call &call, lpgemm_dtype_t image, dequant_args &a) {
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
    LPG_TRY(launch_cluster(Form::kernel(), dim3((unsigned)(clusters * a.plan.cluster)), a.plan.cluster, Form::threads,
                           (size_t)a.plan.shared_bytes, call.stream, a, call.device->clusters[1] > 0));
  }
  return LPGEMM_SUCCESS;
}

template <class Scales, bool Wgmma>
static lpgemm_status_t run_dequant(lpg_call call) {
  constexpr int x_bytes = dequant_traits<Scales, false>::x_bytes;
  const lpg_packed &weights = *call.problem.weights;
  dequant_args a = {};
  a.scaling = lpgemm_i_expand_scaling(&call.problem, Scales::image);
  LPG_CHECK(lpg_dequant_make_plan(&weights, call.problem.m, x_bytes, a.scaling, Wgmma, call.device, &a.plan),
            LPGEMM_INTERNAL_ERROR, "a kernel was chosen that has no weights on %s", call.device->name);
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
  if constexpr (Wgmma && may_have_table<Scales>) {
    if (a.scaling.in_table) return run_chunks<dequant_form<Scales, Wgmma, true>>(call, Scales::image, a);
  }
  return run_chunks<dequant_form<Scales, Wgmma, promotes_all<Scales> && Wgmma>>(call, Scales::image, a);
}

template <class Scales, bool Wgmma>
static lpgemm_status_t prepare_dequant() {
  int device, shared;
  LPG_CUDA(cudaGetDevice(&device));
  LPG_CUDA(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  LPG_TRY((allow_shared(dequant_form < Scales, Wgmma, promotes_all<Scales> && Wgmma > ::kernel(), (size_t)shared)));
  if (Wgmma && may_have_table<Scales>) {
    LPG_TRY((allow_shared(dequant_form < Scales, Wgmma, may_have_table<Scales> && Wgmma > ::kernel(), (size_t)shared)));
  }
  LPG_TRY(lpgemm_i_cuda_prepare_copy_x());
  return lpgemm_i_cuda_prepare_expand(Scales::image);
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. wgmma: 1 on sm_90a. */
#define LPG_DEQUANT(symbol, x, wgmma)                                                                                 \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) { return lpg::run_dequant<lpg::x##_scales, wgmma>(*call); } \
  extern "C" lpgemm_status_t symbol##_prepare(void) { return lpg::prepare_dequant<lpg::x##_scales, wgmma>(); }
