/* gemv with stacks of experts from the host: what the token form and the segment form share. */
#pragma once

#include "../launch/launch.cuh"
#include "../operand/operand_args.cuh"
#include "gemv_stack.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

template <class T>
static void set_stack(const lpg_call &call, stack_args &a) {
  const lpg_packed &weights = *call.problem.weights;
  gemv_args &product = a.product;
  add_sections(call, T::row_tiles, T::chunk, product.scale_data);
  product.codes = call.section[LPG_SECTION_CODES];
  product.row_bytes = weights.k_tiles * lpg_tile_bytes(weights.bits);
  product.row_vectors = (int32_t)(product.row_bytes / 512);
  product.row_tiles = (int32_t)weights.row_tiles;
  product.n = (int32_t)weights.desc.n;
  product.k = weights.desc.k;
  product.x = call.x;
  product.ldx = call.ldx;
  product.x_type = call.problem.x_type;
  product.epilogue = make_epilogue(call);
  a.blob = call.blob;
  a.stride = (int64_t)call.stride;
  a.row_scales = call.row_scales;
  a.bias_stride = (int32_t)call.bias_stride;
}

/* Calls use(traits{}) with the traits of the weights' groups. Groups of 16 columns are a way of fp4. */
template <class X, template <class, int> class Dequantiser, int Bits, class Use>
static lpgemm_status_t with_stack_traits(const lpg_call &call, Use use) {
  switch (lpg_gemv_scale_steps(call.problem.weights)) {
    case 1:
      if constexpr (lpg_stack_has_steps(Bits, 1)) {
        return use(gemv_traits<X, Dequantiser, Bits, LPG_STACK_COLUMNS, 1, false>{});
      }
      return LPGEMM_NOT_SUPPORTED; /* the planner refuses it */
    case 2: return use(gemv_traits<X, Dequantiser, Bits, LPG_STACK_COLUMNS, 2, false>{});
    default: return use(gemv_traits<X, Dequantiser, Bits, LPG_STACK_COLUMNS, 8, false>{});
  }
}

}  // namespace
}  // namespace lpg
