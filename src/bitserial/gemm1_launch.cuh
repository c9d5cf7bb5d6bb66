/* Planes of bits, or bytes, from the host: X to images, then chunk after chunk of weights to images, and the product.
 */
#pragma once

#include "../cuda/cuda.h"
#include "gemm1_limits.h"
#include "gemm1_wgmma.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* What multiplies: whether codes stay bytes, and the instruction. */
struct planes_of_bits {
  static constexpr int bytes = 0;
  using wgmma = wgmma_b1;
};
struct planes_of_bytes {
  static constexpr int bytes = 1;
  using wgmma = wgmma_i8_wide;
};

template <class Form>
static lpgemm_status_t run_planes(const lpg_call &call) {
  const lpg_problem &problem = call.problem;
  const lpgemm_weight_desc_t &d = problem.plan->desc;
  planes_args a = {};
  LPG_CHECK(lpg_planes_make_plan(problem.plan, problem.m, lpg_bits(problem.x_type), Form::bytes, call.device, &a.plan),
            LPGEMM_INTERNAL_ERROR, "a kernel was chosen that has no plan on %s", call.device->name);
  uint8_t *const x_image = (uint8_t *)call.workspace;
  int32_t *const x_sums = (int32_t *)(x_image + lpg_planes_x_total(&a.plan));
  uint8_t *const w_image = (uint8_t *)x_sums + lpg_planes_sums_bytes(&a.plan);
  int32_t *const numbers = (int32_t *)(w_image + a.plan.chunk_items * lpg_planes_w_bytes(&a.plan));
  a.x_image = x_image;
  a.x_sums = x_sums;
  a.w_image = w_image;
  a.numbers = numbers;
  a.n = (int32_t)d.n;
  a.m = (int32_t)problem.m;
  a.step = lpg_integer_step(d.type) * lpg_integer_step(problem.x_type);
  a.epilogue = make_epilogue(call);
  if (!call.skip_product) LPG_TRY(lpgemm_i_planes_slice_x(&call, &a.plan, Form::bytes, x_image, x_sums));
  for (a.first_item = 0; a.first_item < a.plan.row_items; a.first_item += a.items) {
    const int32_t left = a.plan.row_items - a.first_item;
    a.items = left < a.plan.chunk_items ? left : a.plan.chunk_items;
    if (!call.skip_product) {
      LPG_TRY(lpgemm_i_planes_slice_weights(&call, &a.plan, Form::bytes, a.first_item, a.items, w_image, numbers));
    }
    const int64_t items = (int64_t)a.items * a.plan.token_items;
    const int64_t clusters = items > a.plan.groups ? a.plan.groups : items;
    LPG_TRY(launch_cluster((const void *)planes_kernel<typename Form::wgmma>,
                           dim3((unsigned)(clusters * a.plan.cluster)), a.plan.cluster, planes_threads,
                           LPG_PLANES_SHARED, call.stream, a));
  }
  return LPGEMM_SUCCESS;
}

template <class Form>
static lpgemm_status_t prepare_planes() {
  LPG_TRY(allow_shared((const void *)planes_kernel<typename Form::wgmma>, LPG_PLANES_SHARED));
  return lpgemm_i_planes_prepare_images();
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. form: bits or bytes. */
#define LPG_PLANES(symbol, form)                                                                                    \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) { return lpg::run_planes<lpg::planes_of_##form>(*call); } \
  extern "C" lpgemm_status_t symbol##_prepare(void) { return lpg::prepare_planes<lpg::planes_of_##form>(); }
