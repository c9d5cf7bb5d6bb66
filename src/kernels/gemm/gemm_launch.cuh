/* The wide kernels from the host: arguments, plan, launch. */
#pragma once

#include "../../cuda/cuda.h"
#include "../operand/operand_args.cuh"
#include "../operand/x_copy.h"
#include "gemm.cuh"
#include "gemm_limits.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* What is remembered of a problem. */
struct wide_memo {
  lpg_wide_plan plan;
  int item;
};

/* The plan that takes the least time, in so many parts of K or (0) in any number; false if there is none. */
static bool make_wide_plan(const lpg_call &call, int64_t m, lpg_wide_form form, int parts, wide_memo &best) {
  double cost = 0.0;
  return lpgemm_i_wide_choose(call.problem.plan, m, form, call.device, parts, lpg_x_has_map(&call), &best.plan,
                              &best.item, &cost);
}

/* Found once a problem, for X as it mostly lies. */
static lpgemm_status_t find_wide_plan(const lpg_call &call, lpg_wide_form form, wide_memo &best) {
  static_assert(sizeof best <= sizeof call.memo->words, "a memo is too small for a plan");
  lpg_memo *const memo = lpg_x_has_map(&call) ? call.memo : NULL;
  if (memo && memo->filled) {
    memcpy(&best, memo->words, sizeof best);
    return LPGEMM_SUCCESS;
  }
  const int parts =
      call.problem.batch_invariant ? lpgemm_i_wide_invariant_parts(call.problem.plan, form, call.device) : 0;
  LPG_CHECK(make_wide_plan(call, call.problem.m, form, parts, best), LPGEMM_INTERNAL_ERROR,
            "a kernel was chosen that has no plan on %s", call.device->name);
  if (memo) {
    memcpy(memo->words, &best, sizeof best);
    memo->filled = 1;
  }
  return LPGEMM_SUCCESS;
}

template <class T>
static lpgemm_status_t run_wide(const lpg_call &call, wide_args &a) {
  const lpg_plan &plan = *call.problem.plan;
  add_sections(call, T::row_tiles, 1, a.numbers);
  a.exponents = (const int8_t *)call.section[LPG_SECTION_ROW_EXPONENTS];
  a.row_tiles = (int32_t)plan.row_tiles;
  a.n = (int32_t)plan.desc.n;
  a.m = (int32_t)call.problem.m;
  a.k = (int32_t)plan.desc.k;
  a.ldx = call.ldx;
  a.x = (const uint16_t *)call.x;
  a.stage_groups = lpg_wide_stage_groups(&plan, T::stage_k);
  a.epilogue = make_epilogue(call);
  const int cluster = a.plan.slices * a.plan.share;
  if (!call.skip_product) {
    a.x_has_map = lpg_x_has_map(&call);
    if (a.x_has_map) LPG_TRY(lpgemm_i_cuda_map_x(&call, LPG_WIDE_BOX_K, T::box_tokens, &a.x_map));
    LPG_TRY(lpgemm_i_cuda_map_codes(&call, T::w_vectors, T::rows / LPG_TILE_ROWS, &a.codes_map));
  }
  return launch_cluster((const void *)wide_kernel<T>, dim3((unsigned)(cluster * a.plan.groups)), cluster, T::threads,
                        (size_t)a.plan.shared_bytes, call.stream, a, true);
}

/* The weights that a decoder is for: one without a line here does not compile. */
template <class Decoder>
extern const lpg_wide_weights weights_of;
template <class X, int Bits>
constexpr lpg_wide_weights weights_of<codebook_decoder<X, Bits>> = LPG_WIDE_CODEBOOKS;
template <class X, int Bits>
constexpr lpg_wide_weights weights_of<integer_decoder<X, Bits>> = LPG_WIDE_INTEGERS;
template <class X, int Bits>
constexpr lpg_wide_weights weights_of<float_decoder<X, Bits>> = LPG_WIDE_FLOATS;
template <class X, int Bits>
constexpr lpg_wide_weights weights_of<e4m3_decoder<X, Bits>> = LPG_WIDE_E4M3_WEIGHTS;

/* Whether there is a kernel. */
template <class X, template <class, int> class Decoder, int Bits, int Tokens, int RowTiles, int Teams, int Warps,
          lpg_wide_form Form>
constexpr bool wide_exists() {
  using D = Decoder<X, Bits>;
  return lpg_wide_has(Form, Bits, Tokens, RowTiles, Teams, Teams * Warps) &&
         lpg_wide_form_exists(Form, X::mantissa == 7, weights_of<D>, Bits);
}

/* Functions of a class would be symbols of the library, `static` ones are not. */
template <class X, template <class, int> class Decoder, int Bits, int Tokens, int RowTiles, int Teams, int Warps,
          lpg_wide_form Form>
static lpgemm_status_t run_if_there(const lpg_call &call, wide_args &a) {
  if constexpr (wide_exists<X, Decoder, Bits, Tokens, RowTiles, Teams, Warps, Form>()) {
    return run_wide<wide_traits<X, Decoder, Bits, Tokens, RowTiles, Teams, Warps, Form>>(call, a);
  } else {
    return lpgemm_i_fail(LPGEMM_INTERNAL_ERROR, __FILE__, __LINE__, "the form has no kernel for the item chosen");
  }
}

template <class X, template <class, int> class Decoder, int Bits, lpg_wide_form Form>
static lpgemm_status_t run_item(const lpg_call &call, wide_args &a, int item) {
#define LPG_ITEM(tokens, row_tiles, teams, warps) run_if_there<X, Decoder, Bits, tokens, row_tiles, teams, warps, Form>,
  lpgemm_status_t (*const run[])(const lpg_call &, wide_args &) = {LPG_WIDE_ITEMS(LPG_ITEM)};
#undef LPG_ITEM
  return run[item](call, a);
}

template <class X, template <class, int> class Decoder, int Bits, int Tokens, int RowTiles, int Teams, int Warps,
          lpg_wide_form Form>
static lpgemm_status_t prepare_if_there(size_t shared_bytes) {
  if constexpr (wide_exists<X, Decoder, Bits, Tokens, RowTiles, Teams, Warps, Form>()) {
    using T = wide_traits<X, Decoder, Bits, Tokens, RowTiles, Teams, Warps, Form>;
    return allow_shared((const void *)wide_kernel<T>, shared_bytes);
  }
  return LPGEMM_SUCCESS;
}

template <class X, template <class, int> class Decoder, int Bits, lpg_wide_form Form>
static lpgemm_status_t prepare_form(size_t shared_bytes) {
#define LPG_ITEM(tokens, row_tiles, teams, warps) \
  LPG_TRY((prepare_if_there<X, Decoder, Bits, tokens, row_tiles, teams, warps, Form>(shared_bytes)));
  LPG_WIDE_ITEMS(LPG_ITEM)
#undef LPG_ITEM
  return LPGEMM_SUCCESS;
}

/* In the workspace, behind the copy of X. */
static lpgemm_status_t make_lines(const lpg_call &call, wide_args &a) {
  const lpg_plan &plan = *call.problem.plan;
  float *const factors = (float *)((uint8_t *)call.workspace + lpg_x_copy_bytes(&call.problem, 2));
  a.line_factors = factors;
  a.lines = (const uint8_t *)(factors + plan.n_padded);
  a.line_groups = (int32_t)lpg_wide_groups(&plan);
  a.block_groups = lpg_block_groups(&plan.group);
  return lpgemm_i_cuda_wide_lines(&call, factors, factors + plan.n_padded);
}

template <class X, template <class, int> class Decoder, int Bits>
static lpgemm_status_t run_form(lpg_call call) {
  const lpg_wide_scaling scaling =
      lpgemm_i_wide_scaling(call.problem.plan, call.problem.x_type, call.problem.scale_span);
  wide_args a = {};
  wide_memo memo = {};
  set_wide_decoder(call, a.decoder, a.numbers);
  a.numbers.scale_exponent = scaling.exponent;
  a.numbers.scale_on_rows = scaling.on_rows;
  LPG_TRY(lpgemm_i_cuda_copy_x(&call, 2, call.workspace));
  LPG_TRY(find_wide_plan(call, scaling.form, memo));
  a.plan = memo.plan;
  if (scaling.form == LPG_WIDE_LINES) LPG_TRY(make_lines(call, a));
#define LPG_FORM(form) run_item<X, Decoder, Bits, form>,
  lpgemm_status_t (*const run[])(const lpg_call &, wide_args &, int) = {LPG_WIDE_EACH_FORM(LPG_FORM)};
#undef LPG_FORM
  return run[scaling.form](call, a, memo.item);
}

/* Of floats of 8 bits e4m3 has a decoder of its own. */
template <class X, template <class, int> class Decoder, int Bits>
constexpr bool has_e4m3 = Bits == 8 && weights_of<Decoder<X, Bits>> == LPG_WIDE_FLOATS;

template <class X, template <class, int> class Decoder, int Bits>
static lpgemm_status_t run_wide_any(const lpg_call &call) {
  if constexpr (has_e4m3<X, Decoder, Bits>) {
    if (call.problem.plan->desc.type == LPGEMM_E4M3) return run_form<X, e4m3_decoder, Bits>(call);
  }
  return run_form<X, Decoder, Bits>(call);
}

template <class X, template <class, int> class Decoder, int Bits>
static lpgemm_status_t prepare_wide_any() {
  int device, bytes;
  LPG_CUDA(cudaGetDevice(&device));
  LPG_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
#define LPG_FORM(form)                                            \
  LPG_TRY((prepare_form<X, Decoder, Bits, form>((size_t)bytes))); \
  if constexpr (has_e4m3<X, Decoder, Bits>) LPG_TRY((prepare_form<X, e4m3_decoder, Bits, form>((size_t)bytes)));
  LPG_WIDE_EACH_FORM(LPG_FORM)
#undef LPG_FORM
  LPG_TRY(lpgemm_i_cuda_prepare_wide_lines());
  return lpgemm_i_cuda_prepare_copy_x();
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_WIDE(symbol, x, decoder, bits)                                     \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) {                    \
    return lpg::run_wide_any<lpg::x##_x, lpg::decoder##_decoder, bits>(*call); \
  }                                                                            \
  extern "C" lpgemm_status_t symbol##_prepare(void) {                          \
    return lpg::prepare_wide_any<lpg::x##_x, lpg::decoder##_decoder, bits>();  \
  }
