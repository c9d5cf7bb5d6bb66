/* Kernels of bits_frame.cuh from the host: arguments, plan, launch. */
#pragma once

#include "../cuda/cuda.h"
#include "gemv1_frame.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The plan, made once a problem. */
static lpgemm_status_t find_gemv1_plan(const lpg_call &call, const lpg_gemv1_mode &form, lpg_gemv1_plan &plan) {
  static_assert(sizeof plan <= sizeof call.memo->words, "a memo is too small for a plan");
  if (call.memo && call.memo->filled) {
    memcpy(&plan, call.memo->words, sizeof plan);
    return LPGEMM_SUCCESS;
  }
  double cost;
  LPG_CHECK(lpg_gemv1_make_plan(call.problem.weights, form, call.device, &plan, &cost), LPGEMM_INTERNAL_ERROR,
            "a kernel was chosen that has no plan for k = %lld on %s", (long long)call.problem.weights->desc.k,
            call.device->name);
  if (call.memo) {
    memcpy(call.memo->words, &plan, sizeof plan);
    call.memo->filled = 1;
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t make_gemv1_args(const lpg_call &call, const lpg_gemv1_mode &form, gemv1_args &a) {
  const lpg_packed &weights = *call.problem.weights;
  LPG_TRY(find_gemv1_plan(call, form, a.plan));
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
  return launch_cluster((const void *)gemv1_kernel<T>, dim3((unsigned)(a.plan.split_k * a.plan.clusters)),
                        a.plan.split_k, T::threads, (size_t)a.plan.shared_bytes, call.stream, a, true);
}

template <class T>
static lpgemm_status_t prepare_one() {
  int device, bytes;
  LPG_CUDA(cudaGetDevice(&device));
  LPG_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return allow_shared((const void *)gemv1_kernel<T>, (size_t)bytes);
}

}  // namespace
}  // namespace lpg
