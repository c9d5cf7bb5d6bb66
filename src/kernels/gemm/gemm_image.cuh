/* Dense GEMM of expanded weights by gemm's work tiles (sm_90a): chunk after chunk of rows, which gemm's host code cuts.
 */
#pragma once

#include "../operand/expand.h"
#include "gemm_launch.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* In place of a dequantiser: there is nothing to do. */
template <class X, int Bits>
struct no_dequantiser {
  static constexpr bool centered = false;
  __device__ static void fill_table(const dequantiser_args &, uint8_t *, int, int) {}
};

template <class X, int TileM, int Teams, int Warps>
constexpr gemm_function image_kernel_if_there() {
  if constexpr (lpg_gemm_has(LPG_GEMM_SCALES_IMAGE, TileM, Teams * Warps)) {
    return gemm_kernel<gemm_traits<X, no_dequantiser, 16, TileM, Teams, Warps, LPG_GEMM_SCALES_IMAGE>>;
  }
  return nullptr;
}

#define LPG_TILE(x_rows, teams, warps) {image_kernel_if_there<X, x_rows, teams, warps>(), nullptr},
template <class X>
static constexpr gemm_tile_kernels image_kernels = {{LPG_GEMM_TILES(LPG_TILE)}};
#undef LPG_TILE

template <class X>
static lpgemm_status_t run_image(const lpg_call &call) {
  gemm_args a = {};
  return run_chunks(call, a, image_kernels<X>, LPG_GEMM_SCALES_IMAGE);
}

template <class X>
static lpgemm_status_t load_image(const lpg_device *device) {
  LPG_TRY(load_kernels_of(device, image_kernels<X>));
  return lpgemm_i_cuda_prepare_expand(X::exponent == 5 ? LPGEMM_F16 : LPGEMM_BF16);
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_DEQUANT_IMAGE(symbol, x)                                                                    \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) { return lpg::run_image<lpg::x##_x>(*call); } \
  extern "C" lpgemm_status_t symbol##_load(const lpg_device *device) { return lpg::load_image<lpg::x##_x>(device); }
