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
static lpgemm_status_t find_plan(const lpg_call &call, decode_args &a) {
  static_assert(sizeof a.plan <= sizeof call.memo->words, "a memo is too small for a plan");
  if (call.memo && call.memo->filled) {
    memcpy(&a.plan, call.memo->words, sizeof a.plan);
    return LPGEMM_SUCCESS;
  }
  const lpg_plan &plan = *call.problem.plan;
  const lpg_decode_kind kind = lpg_decode_kind_of(&plan, T::Columns, a.numbers.has_shift, a.numbers.mode != zero_fixed);
  LPG_CHECK(lpg_decode_make_plan(&kind, &plan, call.problem.m, call.device, &a.plan), LPGEMM_INTERNAL_ERROR,
            "a kernel was chosen that has no plan for k = %lld on %s", (long long)a.k, call.device->name);
  if (call.memo) {
    memcpy(call.memo->words, &a.plan, sizeof a.plan);
    call.memo->filled = 1;
  }
  return LPGEMM_SUCCESS;
}

template <class T>
static lpgemm_status_t run_decode(const lpg_call &call, decode_args &a) {
  const lpg_plan &plan = *call.problem.plan;
  add_sections(call, T::row_tiles, T::chunk, a.numbers);
  a.codes = call.section[LPG_SECTION_CODES];
  a.row_bytes = plan.k_tiles * lpg_tile_bytes(plan.bits);
  a.row_vectors = (int32_t)(a.row_bytes / 512);
  a.row_tiles = (int32_t)plan.row_tiles;
  a.n = (int32_t)plan.desc.n;
  a.k = plan.desc.k;
  a.ldx = call.ldx;
  a.x_type = call.problem.x_type;
  a.epilogue = make_epilogue(call);
  LPG_TRY(find_plan<T>(call, a));
  for (int64_t first = 0; first < call.problem.m; first += T::Columns) { /* more rows of X than fit: one pass each */
    const int64_t left = call.problem.m - first;
    a.plan.x_rows = (int32_t)(left < T::Columns ? left : T::Columns);
    a.x = (const uint8_t *)call.x + first * call.ldx * lpg_bytes(a.x_type);
    LPG_TRY(launch_cluster((const void *)decode_kernel<T>, dim3((unsigned)(a.plan.slices * a.plan.groups)),
                           a.plan.slices, T::threads, (size_t)a.plan.shared_bytes, call.stream, a,
                           call.device->clusters[1] > 0));
    skip_rows(a.epilogue, T::Columns);
  }
  return LPGEMM_SUCCESS;
}

/* The instances of a kernel: for the weights' groups, and whether sums of X count. Only what counts from zero needs
 * them: integers, and codebooks of two. Functions of a class would be symbols of the library, `static` ones are not. */
template <class X, template <class, int> class Decoder, int Bits, int Columns, int Granule>
static lpgemm_status_t run_groups(const lpg_call &call, decode_args &a) {
  constexpr bool may_shift = Decoder<X, Bits>::centered;
  return a.numbers.has_shift ? run_decode<decode_traits<X, Decoder, Bits, Columns, Granule, may_shift>>(call, a)
                             : run_decode<decode_traits<X, Decoder, Bits, Columns, Granule, false>>(call, a);
}

template <class X, template <class, int> class Decoder, int Bits, int Columns>
static lpgemm_status_t run_any(const lpg_call &call) {
  decode_args a = {};
  set_decoder(call, true, a.decoder, a.numbers);
  switch (lpg_decode_granule(call.problem.plan)) {
    case 1: return run_groups<X, Decoder, Bits, Columns, 1>(call, a);
    case 2: return run_groups<X, Decoder, Bits, Columns, 2>(call, a);
    default: return run_groups<X, Decoder, Bits, Columns, 8>(call, a);
  }
}

template <class X, template <class, int> class Decoder, int Bits, int Columns, int Granule>
static lpgemm_status_t prepare_groups(size_t bytes) {
  constexpr bool may_shift = Decoder<X, Bits>::centered;
  const auto shifted = decode_kernel<decode_traits<X, Decoder, Bits, Columns, Granule, may_shift>>;
  LPG_TRY(allow_shared((const void *)decode_kernel<decode_traits<X, Decoder, Bits, Columns, Granule, false>>, bytes));
  return allow_shared((const void *)shifted, bytes);
}

template <class X, template <class, int> class Decoder, int Bits, int Columns>
static lpgemm_status_t prepare_any() {
  int device, bytes;
  LPG_CUDA(cudaGetDevice(&device));
  LPG_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  LPG_TRY((prepare_groups<X, Decoder, Bits, Columns, 1>((size_t)bytes)));
  LPG_TRY((prepare_groups<X, Decoder, Bits, Columns, 2>((size_t)bytes)));
  return prepare_groups<X, Decoder, Bits, Columns, 8>((size_t)bytes);
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_DECODE(symbol, x, decoder, bits, columns)                              \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) {                        \
    return lpg::run_any<lpg::x##_x, lpg::decoder##_decoder, bits, columns>(*call); \
  }                                                                                \
  extern "C" lpgemm_status_t symbol##_prepare(void) {                              \
    return lpg::prepare_any<lpg::x##_x, lpg::decoder##_decoder, bits, columns>();  \
  }
