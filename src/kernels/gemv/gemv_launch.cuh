/* gemv from the host: plan -> arguments -> launch. */
#pragma once

#include "../launch/launch.cuh"
#include "../operand/operand_args.cuh"
#include "gemv.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* An instance of the kernel, and what the host must know of it. */
struct gemv_instance {
  void (*kernel)(gemv_args);
  int threads, row_tiles, chunk, x_rows;
};
template <class T>
static constexpr gemv_instance instance_of = {gemv_kernel<T>, T::threads, T::row_tiles, T::chunk, T::TileM};

static lpgemm_status_t run_gemv(const lpg_call &call, gemv_args &a, const gemv_instance &instance) {
  const lpg_packed &weights = *call.problem.weights;
  LPG_CHECK(instance.threads == call.planned->launch.threads, LPGEMM_INTERNAL_ERROR,
            "gemv has %d threads, and a plan for %d", instance.threads, call.planned->launch.threads);
  add_sections(call, instance.row_tiles, instance.chunk, a.scale_data);
  a.codes = call.section[LPG_SECTION_CODES];
  a.row_bytes = weights.k_tiles * lpg_tile_bytes(weights.bits);
  a.row_vectors = (int32_t)(a.row_bytes / 512);
  a.row_tiles = (int32_t)weights.row_tiles;
  a.n = (int32_t)weights.desc.n;
  a.k = weights.desc.k;
  a.ldx = call.ldx;
  a.x_type = call.problem.x_type;
  a.epilogue = make_epilogue(call);
  a.plan = plan_of<lpg_gemv_plan>(call);
  a.x_k = (int32_t)weights.x_k;
  if (call.gathers && !call.skip_product) a.order = (const int32_t *)call.section[LPG_SECTION_COLUMN_ORDER];
  for (int64_t first = 0; first < call.problem.m; first += instance.x_rows) { /* a pass for as many rows as fit */
    const int64_t left = call.problem.m - first;
    a.plan.x_rows = (int32_t)(left < instance.x_rows ? left : instance.x_rows);
    a.x = (const uint8_t *)call.x + first * call.ldx * lpg_bytes(a.x_type);
    LPG_TRY(launch_planned(call, (const void *)instance.kernel, a, call.device->clusters[1] > 0));
    skip_rows(a.epilogue, instance.x_rows);
  }
  return LPGEMM_SUCCESS;
}

/* The kernel for scales of two levels, if there is one for such weights. */
template <class X, template <class, int> class Dequantiser, int Bits, int ScaleSteps>
constexpr lpgemm_dtype_t level_codes = Dequantiser<X, Bits>::centered || Dequantiser<X, Bits>::table_bytes > 0
                                           ? lpg_gemv_codes(Dequantiser<X, Bits>::centered, Bits, ScaleSteps)
                                           : 0;

template <class X, template <class, int> class Dequantiser, int Bits, int TileM, int ScaleSteps, lpgemm_dtype_t Codes>
using level_traits = gemv_traits<X, Dequantiser, Bits, TileM, ScaleSteps, Codes != LPGEMM_I8, Codes>;

/* The kernel with half the warps, if there is one: without sums of X. */
template <class X, template <class, int> class Dequantiser, int Bits, int TileM>
constexpr bool has_half = lpg_gemv_has_half(Bits, TileM) && Dequantiser<X, Bits>::centered;

template <class X, template <class, int> class Dequantiser, int Bits, int TileM, int ScaleSteps>
using half_cta_traits = gemv_traits<X, Dequantiser, Bits, TileM, ScaleSteps, false, 0, true>;

/* The instances of a kernel: for the weights' groups, and whether sums of X count. Only what counts from zero needs
 * them: integers, and codebooks of two. Functions of a class would be symbols of the library, `static` ones are not. */
template <class X, template <class, int> class Dequantiser, int Bits, int TileM, int ScaleSteps>
static const gemv_instance &instance_for(const lpg_call &call, bool has_shift) {
  constexpr bool may_shift = Dequantiser<X, Bits>::centered;
  constexpr lpgemm_dtype_t codes = level_codes<X, Dequantiser, Bits, ScaleSteps>;
  if constexpr (codes != 0) {
    if (lpg_gemv_codes_of(call.problem.weights, has_shift))
      return instance_of<level_traits<X, Dequantiser, Bits, TileM, ScaleSteps, codes>>;
  }
  if constexpr (has_half<X, Dequantiser, Bits, TileM>) {
    using half = half_cta_traits<X, Dequantiser, Bits, TileM, ScaleSteps>;
    if (!has_shift && plan_of<lpg_gemv_plan>(call).warps == half::warps) return instance_of<half>;
  }
  return has_shift ? instance_of<gemv_traits<X, Dequantiser, Bits, TileM, ScaleSteps, may_shift>>
                   : instance_of<gemv_traits<X, Dequantiser, Bits, TileM, ScaleSteps, false>>;
}

template <class X, template <class, int> class Dequantiser, int Bits, int TileM>
static lpgemm_status_t run_any(const lpg_call &call) {
  const lpg_packed *weights = call.problem.weights;
  gemv_args a = {};
  set_dequantiser(call, true, a.dequantiser, a.scale_data);
  const bool has_shift = a.scale_data.has_shift;
  switch (lpg_gemv_scale_steps(weights)) {
    case 1: return run_gemv(call, a, instance_for<X, Dequantiser, Bits, TileM, 1>(call, has_shift));
    case 2: return run_gemv(call, a, instance_for<X, Dequantiser, Bits, TileM, 2>(call, has_shift));
    default: return run_gemv(call, a, instance_for<X, Dequantiser, Bits, TileM, 8>(call, has_shift));
  }
}

template <class X, template <class, int> class Dequantiser, int Bits, int TileM, int ScaleSteps>
static lpgemm_status_t load_groups(const lpg_device *device) {
  constexpr bool may_shift = Dequantiser<X, Bits>::centered;
  constexpr lpgemm_dtype_t codes = level_codes<X, Dequantiser, Bits, ScaleSteps>;
  if constexpr (codes != 0) {
    LPG_TRY(load_kernels(device, gemv_kernel<level_traits<X, Dequantiser, Bits, TileM, ScaleSteps, codes>>));
  }
  if constexpr (has_half<X, Dequantiser, Bits, TileM>)
    LPG_TRY(load_kernels(device, gemv_kernel<half_cta_traits<X, Dequantiser, Bits, TileM, ScaleSteps>>));
  return load_kernels(device, gemv_kernel<gemv_traits<X, Dequantiser, Bits, TileM, ScaleSteps, false>>,
                      gemv_kernel<gemv_traits<X, Dequantiser, Bits, TileM, ScaleSteps, may_shift>>);
}

template <class X, template <class, int> class Dequantiser, int Bits, int TileM>
static lpgemm_status_t load_any(const lpg_device *device) {
  LPG_TRY((load_groups<X, Dequantiser, Bits, TileM, 1>(device)));
  LPG_TRY((load_groups<X, Dequantiser, Bits, TileM, 2>(device)));
  return load_groups<X, Dequantiser, Bits, TileM, 8>(device);
}

template <class X, template <class, int> class Dequantiser, int Bits, int TileM>
static lpgemm_status_t run_gemv_any(const lpg_call &call) {
  if constexpr (has_halved<Dequantiser<X, Bits>>) {
    if (lpg_is_halved(call.problem.weights->desc.type, call.problem.x_type))
      return run_any<X, halved_dequantiser, Bits, TileM>(call);
  }
  if constexpr (has_e2m1<Dequantiser<X, Bits>>) {
    if (call.problem.weights->desc.type == LPGEMM_FLOAT(2, 1)) return run_any<X, e2m1_dequantiser, Bits, TileM>(call);
  }
  return run_any<X, Dequantiser, Bits, TileM>(call);
}

template <class X, template <class, int> class Dequantiser, int Bits, int TileM>
static lpgemm_status_t load_gemv_any(const lpg_device *device) {
  if constexpr (has_halved<Dequantiser<X, Bits>>) LPG_TRY((load_any<X, halved_dequantiser, Bits, TileM>(device)));
  if constexpr (has_e2m1<Dequantiser<X, Bits>>) LPG_TRY((load_any<X, e2m1_dequantiser, Bits, TileM>(device)));
  return load_any<X, Dequantiser, Bits, TileM>(device);
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_GEMV(symbol, x, dequantiser, bits, columns)                                           \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) {                                       \
    return lpg::run_gemv_any<lpg::x##_x, lpg::dequantiser##_dequantiser, bits, columns>(*call);   \
  }                                                                                               \
  extern "C" lpgemm_status_t symbol##_load(const lpg_device *device) {                            \
    return lpg::load_gemv_any<lpg::x##_x, lpg::dequantiser##_dequantiser, bits, columns>(device); \
  }
