/* Expanding weights and multiplying them, from the host: chunk after chunk of rows. */
#pragma once

#include "../../cuda/cuda.h"
#include "dequant_limits.h"
#include "dequant_mma.cuh"
#include "dequant_wgmma.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The kernel that multiplies, and its threads. Only one of the two is compiled for an architecture. */
template <class Numbers, bool Wgmma, bool Promotes>
struct dense_form {
  using T = dense_traits<Numbers, Promotes>;
  static constexpr int threads = Wgmma ? dense_wgmma_threads : dense_mma_threads;

  static const void *kernel() {
    if constexpr (Wgmma) {
      return (const void *)dense_wgmma_kernel<T>;
    } else {
      return (const void *)dense_mma_kernel<T>;
    }
  }
};

/* Whether there may be a table of groups' scales, and whether sums are promoted in any case. */
template <class Numbers>
constexpr bool may_have_table = Numbers::image != LPGEMM_BF16;
template <class Numbers>
constexpr bool promotes_all = Numbers::image == LPGEMM_E4M3;

/* Chunk after chunk: expands, multiplies. */
template <class Form>
static lpgemm_status_t run_chunks(const lpg_call &call, lpgemm_dtype_t image, dense_args &a) {
  float *const numbers = (float *)((uint8_t *)call.workspace + a.plan.chunk_items * lpg_dense_item_bytes(&a.plan));
  a.image = (const uint8_t *)call.workspace;
  a.numbers = numbers;
  for (a.first_item = 0; a.first_item < a.plan.row_items; a.first_item += a.items) {
    const int32_t left = a.plan.row_items - a.first_item;
    a.items = left < a.plan.chunk_items ? left : a.plan.chunk_items;
    if (!call.skip_product) {
      LPG_TRY(lpgemm_i_cuda_expand(&call, image, a.plan.k_stages, a.first_item, a.items, call.workspace, numbers));
    }
    const int64_t items = (int64_t)a.items * a.plan.token_items;
    const int64_t clusters = a.plan.persistent && items > a.plan.groups ? a.plan.groups : items;
    LPG_TRY(launch_cluster(Form::kernel(), dim3((unsigned)(clusters * a.plan.cluster)), a.plan.cluster, Form::threads,
                           (size_t)a.plan.shared_bytes, call.stream, a, call.device->clusters[1] > 0));
  }
  return LPGEMM_SUCCESS;
}

template <class Numbers, bool Wgmma>
static lpgemm_status_t run_dense(lpg_call call) {
  constexpr int x_bytes = dense_traits<Numbers, false>::x_bytes;
  const lpg_plan &plan = *call.problem.plan;
  dense_args a = {};
  a.scaling = lpgemm_i_expand_scaling(&call.problem, Numbers::image);
  LPG_CHECK(lpg_dense_make_plan(&plan, call.problem.m, x_bytes, a.scaling, Wgmma, call.device, &a.plan),
            LPGEMM_INTERNAL_ERROR, "a kernel was chosen that has no plan on %s", call.device->name);
  void *const copy = call.workspace; /* in front of the image */
  call.workspace = (uint8_t *)copy + lpg_dense_copy_bytes(&call.problem, x_bytes);
  LPG_TRY(lpgemm_i_cuda_copy_x(&call, x_bytes, copy));
  a.exponents = (const int8_t *)call.section[LPG_SECTION_ROW_EXPONENTS];
  a.groups = make_groups(call);
  a.n = (int32_t)plan.desc.n;
  a.m = (int32_t)call.problem.m;
  a.k = (int32_t)plan.desc.k;
  a.ldx = call.ldx;
  a.x = call.x;
  a.epilogue = make_epilogue(call);
  if constexpr (Wgmma && may_have_table<Numbers>) {
    if (a.scaling.in_table) return run_chunks<dense_form<Numbers, Wgmma, true>>(call, Numbers::image, a);
  }
  return run_chunks<dense_form<Numbers, Wgmma, promotes_all<Numbers> && Wgmma>>(call, Numbers::image, a);
}

template <class Numbers, bool Wgmma>
static lpgemm_status_t prepare_dense() {
  int device, shared;
  LPG_CUDA(cudaGetDevice(&device));
  LPG_CUDA(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  LPG_TRY((allow_shared(dense_form < Numbers, Wgmma, promotes_all<Numbers> && Wgmma > ::kernel(), (size_t)shared)));
  if (Wgmma && may_have_table<Numbers>) {
    LPG_TRY((allow_shared(dense_form < Numbers, Wgmma, may_have_table<Numbers> && Wgmma > ::kernel(), (size_t)shared)));
  }
  LPG_TRY(lpgemm_i_cuda_prepare_copy_x());
  return lpgemm_i_cuda_prepare_expand(Numbers::image);
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. wgmma: 1 on sm_90a. */
#define LPG_DENSE(symbol, x, wgmma)                                                                                  \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) { return lpg::run_dense<lpg::x##_numbers, wgmma>(*call); } \
  extern "C" lpgemm_status_t symbol##_prepare(void) { return lpg::prepare_dense<lpg::x##_numbers, wgmma>(); }
