/* The wide kernels from the host: arguments, plan, launch. */
#pragma once

#include <stdlib.h>
#include "../cuda/cuda.h"
#include "weights_host.cuh"
#include "wide.cuh"
#include "wide_limits.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* What is remembered of a problem. */
struct wide_memo {
  lpg_wide_plan plan;
  int tokens;
};

/* Slices of K that a call takes whose rows must not depend on M: those for 32 rows. */
static int fixed_slices_log2(const lpg_call &call, int general) {
  const lpg_wide_kind kind = lpg_wide_kind_of(call.problem.plan, 32, general);
  lpg_wide_plan plan;
  double cost;
  if (!lpg_wide_make_plan(&kind, call.problem.plan, 32, call.device, -1, &plan, &cost)) return 0;
  int log2 = 0;
  while (1 << log2 < plan.slices) log2++;
  return log2;
}

/* The plan and the tokens of an item that take the least time, found once a problem. */
static lpgemm_status_t find_wide_plan(const lpg_call &call, int general, int most_tokens, wide_memo &best) {
  static_assert(sizeof best <= sizeof call.memo->words, "a memo is too small for a plan");
  if (call.memo && call.memo->filled) {
    memcpy(&best, call.memo->words, sizeof best);
    return LPGEMM_SUCCESS;
  }
  const int slices_log2 = getenv("LPG_S") ? atoi(getenv("LPG_S")) : call.problem.batch_invariant ? fixed_slices_log2(call, general) : -1;
  double least = 0.0;
  best.tokens = 0;
  for (int tokens = 32; tokens <= most_tokens; tokens *= 2) {
    if (getenv("LPG_T") && atoi(getenv("LPG_T")) != tokens) continue; //HACK
    const lpg_wide_kind kind = lpg_wide_kind_of(call.problem.plan, tokens, general);
    lpg_wide_plan plan;
    double cost;
    if (!lpg_wide_make_plan(&kind, call.problem.plan, call.problem.m, call.device, slices_log2, &plan, &cost)) continue;
    if (best.tokens > 0 && cost >= least) continue;
    least = cost;
    best.plan = plan;
    best.tokens = tokens;
  }
  LPG_CHECK(best.tokens > 0, LPGEMM_INTERNAL_ERROR, "a kernel was chosen that has no plan on %s", call.device->name);
  if (call.memo) {
    memcpy(call.memo->words, &best, sizeof best);
    call.memo->filled = 1;
  }
  return LPGEMM_SUCCESS;
}

template <class T>
static lpgemm_status_t run_wide(const lpg_call &call, wide_args &a) {
  const lpg_plan &plan = *call.problem.plan;
  a.numbers.raw_exponents = add_sections(call, T::row_tiles, T::chunk, a.numbers);
  a.codes = call.section[LPG_SECTION_CODES];
  a.exponents = (const int8_t *)call.section[LPG_SECTION_ROW_EXPONENTS];
  a.row_bytes = plan.k_tiles * lpg_tile_bytes(plan.bits);
  a.row_vectors = (int32_t)(a.row_bytes / 512);
  a.row_tiles = (int32_t)plan.row_tiles;
  a.n = (int32_t)plan.desc.n;
  a.m = (int32_t)call.problem.m;
  a.k = (int32_t)plan.desc.k;
  a.ldx = call.ldx;
  a.x = (const uint16_t *)call.x;
  a.epilogue = make_epilogue(call);
  return launch_cluster((const void *)wide_kernel<T>, dim3((unsigned)(a.plan.slices * a.plan.groups)), a.plan.slices,
                        T::threads, (size_t)a.plan.shared_bytes, call.stream, a);
}

/* Functions of a class would be symbols of the library, `static` ones are not. */
template <class X, template <class, int> class Decoder, int Bits, template <class> class Product, bool General>
static lpgemm_status_t run_tokens(const lpg_call &call, wide_args &a, int tokens) {
  switch (tokens) {
    case 32: return run_wide<wide_traits<X, Decoder, Bits, 32, Product, General>>(call, a);
    case 64: return run_wide<wide_traits<X, Decoder, Bits, 64, Product, General>>(call, a);
    default: return run_wide<wide_traits<X, Decoder, Bits, 128, Product, General>>(call, a);
  }
}

template <class X, template <class, int> class Decoder, int Bits, template <class> class Product>
static lpgemm_status_t run_wide_any(const lpg_call &call) {
  const lpg_wide_scaling scaling = lpgemm_i_wide_scaling(call.problem.plan, call.problem.x_type);
  wide_args a = {};
  wide_memo memo = {};
  set_decoder(call, false, a.decoder, a.numbers);
  a.numbers.scale_exponent = scaling.exponent;
  a.numbers.scale_on_rows = scaling.on_rows;
  if (Decoder<X, Bits>::centered) a.numbers.factor = 1.0f; /* the step is taken before the scale */
  LPG_TRY(find_wide_plan(call, scaling.general, 128, memo));
  a.plan = memo.plan;
  return scaling.general ? run_tokens<X, Decoder, Bits, Product, true>(call, a, memo.tokens)
                         : run_tokens<X, Decoder, Bits, Product, false>(call, a, memo.tokens);
}

template <class X, template <class, int> class Decoder, int Bits, template <class> class Product, int Tokens>
static lpgemm_status_t prepare_tokens(size_t bytes) {
  LPG_TRY(allow_shared((const void *)wide_kernel<wide_traits<X, Decoder, Bits, Tokens, Product, false>>, bytes));
  return allow_shared((const void *)wide_kernel<wide_traits<X, Decoder, Bits, Tokens, Product, true>>, bytes);
}

template <class X, template <class, int> class Decoder, int Bits, template <class> class Product>
static lpgemm_status_t prepare_wide_any() {
  int device, bytes;
  LPG_CUDA(cudaGetDevice(&device));
  LPG_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  LPG_TRY((prepare_tokens<X, Decoder, Bits, Product, 32>((size_t)bytes)));
  LPG_TRY((prepare_tokens<X, Decoder, Bits, Product, 64>((size_t)bytes)));
  return prepare_tokens<X, Decoder, Bits, Product, 128>((size_t)bytes);
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_WIDE(symbol, x, decoder, bits, product)                                                     \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) {                                             \
    return lpg::run_wide_any<lpg::x##_x, lpg::decoder##_decoder, bits, lpg::product##_product>(*call);  \
  }                                                                                                     \
  extern "C" lpgemm_status_t symbol##_prepare(void) {                                                   \
    return lpg::prepare_wide_any<lpg::x##_x, lpg::decoder##_decoder, bits, lpg::product##_product>();   \
  }                                                                                                     \
  extern "C" const char *symbol##_refuses(const lpg_problem *problem, const lpg_device *device) {       \
    return lpgemm_i_wide_refuses(problem, device, 128);                                                 \
  }
