/* The lookup kernels from the host: arguments, plan, launch. */
#pragma once

#include "../../cuda/cuda.h"
#include "lut.cuh"
#include "lut_limits.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The plan, made once a problem. */
static lpgemm_status_t find_lut_plan(const lpg_call &call, lpg_lut_gpu_plan &plan) {
  static_assert(sizeof plan <= sizeof call.memo->words, "a memo is too small for a plan");
  if (call.memo && call.memo->filled) {
    memcpy(&plan, call.memo->words, sizeof plan);
    return LPGEMM_SUCCESS;
  }
  double cost;
  LPG_CHECK(lpg_lut_gpu_make_plan(call.problem.weights, call.device, &plan, &cost), LPGEMM_INTERNAL_ERROR,
            "a kernel was chosen that has no plan for k = %lld on %s", (long long)call.problem.weights->desc.k,
            call.device->name);
  if (call.memo) {
    memcpy(call.memo->words, &plan, sizeof plan);
    call.memo->filled = 1;
  }
  return LPGEMM_SUCCESS;
}

template <class T>
static lpgemm_status_t launch_lut(const lpg_call &call, const lut_args &a) {
  return launch_cluster((const void *)lut_kernel<T>, dim3((unsigned)(a.plan.split_k * a.plan.clusters)), a.plan.split_k,
                        T::threads, (size_t)a.plan.shared_bytes, call.stream, a, true);
}

/* Row after row, each of which reads the weights again. */
template <int Bits>
static lpgemm_status_t run_lut(const lpg_call &call) {
  const lpg_packed &weights = *call.problem.weights;
  lut_args a = {};
  LPG_TRY(find_lut_plan(call, a.plan));
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
  const bool common = lpgemm_i_lut_gpu_is_common(&weights);
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
static lpgemm_status_t prepare_lut() {
  const void *const kernels[] = {(const void *)lut_kernel<lut_traits<Bits, false>>,
                                 (const void *)lut_kernel<lut_traits<Bits, true>>};
  int device, bytes;
  LPG_CUDA(cudaGetDevice(&device));
  LPG_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  for (const void *kernel : kernels) LPG_TRY(allow_shared(kernel, (size_t)bytes));
  return LPGEMM_SUCCESS;
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_LUT_GPU(symbol, bits)                                                               \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) { return lpg::run_lut<bits>(*call); } \
  extern "C" lpgemm_status_t symbol##_prepare(void) { return lpg::prepare_lut<bits>(); }
