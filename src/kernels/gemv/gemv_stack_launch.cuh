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

/* Calls use(traits{}) for groups of so many steps. */
template <class X, template <class, int> class Dequantiser, int Bits, class Use>
static lpgemm_status_t with_groups(int steps, Use use) {
  if constexpr (lpg_stack_has_steps(Bits, 1)) {
    if (steps == 1) return use(gemv_traits<X, Dequantiser, Bits, LPG_STACK_COLUMNS, 1, false>{});
  }
  if (steps == 2) return use(gemv_traits<X, Dequantiser, Bits, LPG_STACK_COLUMNS, 2, false>{});
  return use(gemv_traits<X, Dequantiser, Bits, LPG_STACK_COLUMNS, 8, false>{});
}

/* The same with the traits of the call's weights. */
template <class X, template <class, int> class Dequantiser, int Bits, class Use>
static lpgemm_status_t with_stack_traits(const lpg_call &call, Use use) {
  const lpg_packed *weights = call.problem.weights;
  const int steps = lpg_gemv_scale_steps(weights);
  if constexpr (has_e2m1<Dequantiser<X, Bits>>) {
    if (weights->desc.type == LPGEMM_FLOAT(2, 1)) return with_groups<X, e2m1_dequantiser, Bits>(steps, use);
  }
  return with_groups<X, Dequantiser, Bits>(steps, use);
}

/* The same with those of all kernels, one after the other. */
template <class X, template <class, int> class Dequantiser, int Bits, class Use>
static lpgemm_status_t with_each_stack_traits(Use use) {
  for (const int steps : {1, 2, 8}) {
    if (!lpg_stack_has_steps(Bits, steps)) continue;
    if constexpr (has_e2m1<Dequantiser<X, Bits>>) {
      LPG_TRY((with_groups<X, e2m1_dequantiser, Bits>(steps, use)));
    }
    LPG_TRY((with_groups<X, Dequantiser, Bits>(steps, use)));
  }
  return LPGEMM_SUCCESS;
}

}  // namespace
}  // namespace lpg
