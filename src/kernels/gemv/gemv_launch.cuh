/* The decode kernels from the host: arguments, plan, launch. */
#pragma once

#include "../../cuda/cuda.h"
#include "../operand/operand_args.cuh"
#include "gemv.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- running ---- */

/* The plan, made once a problem. */
template <class T>
static lpgemm_status_t find_plan(const lpg_call &call, gemv_args &a) {
  static_assert(sizeof a.plan <= sizeof call.memo->words, "a memo is too small for a weights");
  if (call.memo && call.memo->filled) {
    memcpy(&a.plan, call.memo->words, sizeof a.plan);
    return LPGEMM_SUCCESS;
  }
  const lpg_packed &weights = *call.problem.weights;
  const lpg_gemv_kind kind =
      lpg_gemv_kind_of(&weights, T::TileM, a.scale_data.has_shift, a.scale_data.mode != zero_fixed);
  LPG_CHECK(lpg_gemv_make_plan(&kind, &weights, call.problem.m, call.device, &a.plan), LPGEMM_INTERNAL_ERROR,
            "a kernel was chosen that has no weights for k = %lld on %s", (long long)a.k, call.device->name);
  if (call.memo) {
    memcpy(call.memo->words, &a.plan, sizeof a.plan);
    call.memo->filled = 1;
  }
  return LPGEMM_SUCCESS;
}

template <class T>
static lpgemm_status_t run_gemv(const lpg_call &call, gemv_args &a) {
  const lpg_packed &weights = *call.problem.weights;
  add_sections(call, T::row_tiles, T::chunk, a.scale_data);
  a.codes = call.section[LPG_SECTION_CODES];
  a.row_bytes = weights.k_tiles * lpg_tile_bytes(weights.bits);
  a.row_vectors = (int32_t)(a.row_bytes / 512);
  a.row_tiles = (int32_t)weights.row_tiles;
  a.n = (int32_t)weights.desc.n;
  a.k = weights.desc.k;
  a.ldx = call.ldx;
  a.x_type = call.problem.x_type;
  a.epilogue = make_epilogue(call);
  LPG_TRY(find_plan<T>(call, a));
  for (int64_t first = 0; first < call.problem.m; first += T::TileM) { /* more rows of X than fit: one pass each */
    const int64_t left = call.problem.m - first;
    a.plan.x_rows = (int32_t)(left < T::TileM ? left : T::TileM);
    a.x = (const uint8_t *)call.x + first * call.ldx * lpg_bytes(a.x_type);
    LPG_TRY(launch_cluster((const void *)gemv_kernel<T>, dim3((unsigned)(a.plan.split_k * a.plan.clusters)),
                           a.plan.split_k, T::threads, (size_t)a.plan.shared_bytes, call.stream, a,
                           call.device->clusters[1] > 0));
    skip_rows(a.epilogue, T::TileM);
  }
  return LPGEMM_SUCCESS;
}

/* The instances of a kernel: for the weights' groups, and whether sums of X count. Only what counts from zero needs
 * them: integers, and codebooks of two. Functions of a class would be symbols of the library, `static` ones are not. */
template <class X, template <class, int> class Dequantiser, int Bits, int TileM, int ScaleSteps>
static lpgemm_status_t run_groups(const lpg_call &call, gemv_args &a) {
  constexpr bool may_shift = Dequantiser<X, Bits>::centered;
  return a.scale_data.has_shift ? run_gemv<gemv_traits<X, Dequantiser, Bits, TileM, ScaleSteps, may_shift>>(call, a)
                                : run_gemv<gemv_traits<X, Dequantiser, Bits, TileM, ScaleSteps, false>>(call, a);
}

template <class X, template <class, int> class Dequantiser, int Bits, int TileM>
static lpgemm_status_t run_any(const lpg_call &call) {
  gemv_args a = {};
  set_dequantiser(call, true, a.dequantiser, a.scale_data);
  switch (lpg_gemv_scale_steps(call.problem.weights)) {
    case 1: return run_groups<X, Dequantiser, Bits, TileM, 1>(call, a);
    case 2: return run_groups<X, Dequantiser, Bits, TileM, 2>(call, a);
    default: return run_groups<X, Dequantiser, Bits, TileM, 8>(call, a);
  }
}

template <class X, template <class, int> class Dequantiser, int Bits, int TileM, int ScaleSteps>
static lpgemm_status_t prepare_groups(size_t bytes) {
  constexpr bool may_shift = Dequantiser<X, Bits>::centered;
  const auto shifted = gemv_kernel<gemv_traits<X, Dequantiser, Bits, TileM, ScaleSteps, may_shift>>;
  LPG_TRY(allow_shared((const void *)gemv_kernel<gemv_traits<X, Dequantiser, Bits, TileM, ScaleSteps, false>>, bytes));
  return allow_shared((const void *)shifted, bytes);
}

template <class X, template <class, int> class Dequantiser, int Bits, int TileM>
static lpgemm_status_t prepare_any() {
  int device, bytes;
  LPG_CUDA(cudaGetDevice(&device));
  LPG_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  LPG_TRY((prepare_groups<X, Dequantiser, Bits, TileM, 1>((size_t)bytes)));
  LPG_TRY((prepare_groups<X, Dequantiser, Bits, TileM, 2>((size_t)bytes)));
  return prepare_groups<X, Dequantiser, Bits, TileM, 8>((size_t)bytes);
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_GEMV(symbol, x, dequantiser, bits, columns)                                    \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) {                                \
    return lpg::run_any<lpg::x##_x, lpg::dequantiser##_dequantiser, bits, columns>(*call); \
  }                                                                                        \
  extern "C" lpgemm_status_t symbol##_prepare(void) {                                      \
    return lpg::prepare_any<lpg::x##_x, lpg::dequantiser##_dequantiser, bits, columns>();  \
  }
