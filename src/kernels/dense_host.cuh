/* Expanding weights and multiplying them, from the host: chunk after chunk of rows. */
#pragma once

#include "../cuda/cuda.h"
#include "dense_limits.h"
#include "dense_mma.cuh"
#include "dense_wgmma.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The kernel that multiplies, and its threads. */
template <class X, bool Wgmma>
struct dense_form {
  using T = dense_traits<X>;
  static constexpr int threads = Wgmma ? dense_wgmma_threads : dense_mma_threads;

  /* Only one of them is compiled for an architecture. */
  static const void *kernel() {
    if constexpr (Wgmma) return (const void *)dense_wgmma_kernel<T>;
    if constexpr (!Wgmma) return (const void *)dense_mma_kernel<T>;
  }
};

template <class X, bool Wgmma>
static lpgemm_status_t run_dense(const lpg_call &call) {
  using form = dense_form<X, Wgmma>;
  const lpg_plan &plan = *call.problem.plan;
  dense_args a = {};
  a.scaling = lpgemm_i_expand_scaling(&plan, call.problem.x_type);
  LPG_CHECK(lpg_dense_make_plan(&plan, call.problem.m, form::T::x_bytes, a.scaling.finds, Wgmma, call.device, &a.plan),
            LPGEMM_INTERNAL_ERROR, "a kernel was chosen that has no plan on %s", call.device->name);
  const int64_t image_bytes = a.plan.chunk_items * lpg_dense_item_bytes(&a.plan);
  float *const found = (float *)((uint8_t *)call.workspace + image_bytes);
  a.image = (const uint8_t *)call.workspace;
  a.found = found;
  a.exponents = (const int8_t *)call.section[LPG_SECTION_ROW_EXPONENTS];
  a.groups = make_groups(call);
  a.n = (int32_t)plan.desc.n;
  a.m = (int32_t)call.problem.m;
  a.k = (int32_t)plan.desc.k;
  a.ldx = call.ldx;
  a.x = call.x;
  a.epilogue = make_epilogue(call);
  for (a.first_item = 0; a.first_item < a.plan.row_items; a.first_item += a.items) {
    const int32_t left = a.plan.row_items - a.first_item;
    a.items = left < a.plan.chunk_items ? left : a.plan.chunk_items;
    if (!call.skip_product) {
      LPG_TRY(lpgemm_i_cuda_expand(&call, a.plan.k_stages, a.first_item, a.items, call.workspace, found));
    }
    const int64_t items = (int64_t)a.items * a.plan.token_items;
    const int64_t clusters = Wgmma && items > a.plan.groups ? a.plan.groups : items;
    LPG_TRY(launch_cluster(form::kernel(), dim3((unsigned)(clusters * a.plan.cluster)), a.plan.cluster, form::threads,
                           (size_t)a.plan.shared_bytes, call.stream, a));
  }
  return LPGEMM_SUCCESS;
}

template <class X, bool Wgmma>
static lpgemm_status_t prepare_dense() {
  int device, bytes;
  LPG_CUDA(cudaGetDevice(&device));
  LPG_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  LPG_TRY(allow_shared(dense_form<X, Wgmma>::kernel(), (size_t)bytes));
  return lpgemm_i_cuda_prepare_expand();
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. wgmma: 1 on sm_90a. */
#define LPG_DENSE(symbol, x, wgmma)                                                                              \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) { return lpg::run_dense<lpg::x##_x, wgmma>(*call); }   \
  extern "C" lpgemm_status_t symbol##_prepare(void) { return lpg::prepare_dense<lpg::x##_x, wgmma>(); }          \
  extern "C" size_t symbol##_workspace(const lpg_problem *problem, const lpg_device *device) {                    \
    return lpgemm_i_dense_workspace(problem, device, wgmma);                                                      \
  }                                                                                                               \
  extern "C" const char *symbol##_refuses(const lpg_problem *problem, const lpg_device *device) {                \
    return lpgemm_i_dense_refuses(problem, device, wgmma);                                                        \
  }                                                                                                               \
  extern "C" double symbol##_estimate(const lpg_problem *problem, const lpg_device *device) {                    \
    return lpgemm_i_dense_estimate(problem, device, wgmma);                                                       \
  }
