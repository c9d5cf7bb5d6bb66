/* gemm8 from the host: plan -> arguments -> launch. */
#pragma once

#include "../launch/launch.cuh"
#include "gemm8.cuh"
#include "gemm8_units.cuh"
#include "gemm8_x.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* with(kernel) for the kernel of that mode and work tile, if there is one. */
template <class Weights, int TileM, int RowTiles, class With>
static lpgemm_status_t with_units(lpg_gemm8_mode mode, With with) {
  if constexpr (lpg_gemm8_has_tile(1, Weights::Bits, TileM, RowTiles)) {
    if (mode.grouped) return with((const void *)gemm8_kernel<gemm8_unit_traits<Weights, TileM, RowTiles, true>>);
    if constexpr (Weights::by_e4m3)
      return with((const void *)gemm8_kernel<gemm8_unit_traits<Weights, TileM, RowTiles, false>>);
  }
  return LPGEMM_SUCCESS;
}

template <int Bits_>
struct gemm8_i8_integer {
  static constexpr int Bits = Bits_;
  template <int TileM, int RowTiles, class With>
  static lpgemm_status_t with_kernel(lpg_gemm8_mode mode, With with) {
    if (!mode.grouped) {
      if constexpr (lpg_gemm8_has_tile(0, Bits, TileM, RowTiles)) {
        return with((const void *)gemm8_kernel<gemm8_row_traits<Bits, TileM, RowTiles>>);
      }
      return LPGEMM_SUCCESS;
    }
    if (mode.become == LPG_GEMM8_CENTERED) {
      if constexpr (lpg_gemm8_has_centered(Bits)) return with_units<centered_i8<Bits>, TileM, RowTiles>(mode, with);
    } else {
      if constexpr (Bits < 8) return with_units<less_zero_i8<Bits>, TileM, RowTiles>(mode, with);
    }
    return LPGEMM_SUCCESS;
  }
};

template <int Bits_>
struct gemm8_e4m3_integer {
  static constexpr int Bits = Bits_;
  template <int TileM, int RowTiles, class With>
  static lpgemm_status_t with_kernel(lpg_gemm8_mode mode, With with) {
    if (mode.become == LPG_GEMM8_CENTERED) {
      if constexpr (Bits == 4) return with_units<centered_e4m3, TileM, RowTiles>(mode, with);
    }
    return with_units<less_zero_e4m3<Bits>, TileM, RowTiles>(mode, with);
  }
};

template <int Bits_>
struct gemm8_e4m3_float {
  static constexpr int Bits = Bits_;
  template <int TileM, int RowTiles, class With>
  static lpgemm_status_t with_kernel(lpg_gemm8_mode mode, With with) {
    return with_units<float_e4m3<Bits>, TileM, RowTiles>(mode, with);
  }
};

template <class Kernels, int TileM, int RowTiles>
static lpgemm_status_t launch_gemm8(const lpg_call &call, lpg_gemm8_mode mode, gemm8_args &a) {
  using T = gemm8_traits<Kernels::Bits, TileM, RowTiles>;
  bool is_there = false;
  if (!call.skip_product) LPG_TRY(lpgemm_i_cuda_map_codes(&call, T::w_vectors, T::tile_n / LPG_TILE_ROWS, 0, &a.codes));
  LPG_TRY((Kernels::template with_kernel<TileM, RowTiles>(mode, [&](const void *kernel) {
    is_there = true;
    return launch_planned(call, kernel, a, true);
  })));
  LPG_CHECK(is_there, LPGEMM_INTERNAL_ERROR, "the plan's work tile has no kernel");
  return LPGEMM_SUCCESS;
}

static gemm8_groups make_gemm8_groups(const lpg_call &call) {
  const lpg_packed &weights = *call.problem.weights;
  const lpgemm_weight_desc_t &d = weights.desc;
  gemm8_groups g = {};
  g.scales = call.section[LPG_SECTION_SCALES];
  g.scale_row = weights.group.padded * lpg_slot_bytes(d.scale_type);
  if (d.zero == LPGEMM_ZERO_PER_GROUP) {
    g.zeros = call.section[LPG_SECTION_ZEROS];
    g.zero_row = weights.group.padded * lpg_slot_bytes(d.zero_type);
  }
  while (LPG_GEMM8_X_K << g.log2 < weights.group.k) g.log2++;
  g.last = (int32_t)weights.group.count - 1;
  g.scale_is_bf16 = d.scale_type == LPGEMM_BF16;
  g.zero = (uint32_t)lpg_gemm8_zero(&d) * 0x01010101u;
  return g;
}

/* The unit of signed bytes is 1, or brings centred codes down again; that of integers in e4m3 is 2^9 times its smallest
 * number, and that of floats makes up for the exponents' biases. */
static gemm8_bytes_args make_gemm8_bytes(const lpg_packed &weights, lpg_gemm8_mode mode) {
  gemm8_bytes_args b = {};
  if (mode.become == LPG_GEMM8_FLOATS) {
    const int exponent = lpg_exponent_bits(weights.desc.type);
    b.unit = lpg_exp2i(7 - ((1 << (exponent - 1)) - 1));
    b.float_up = (uint32_t)(3 - lpg_low_field(weights.desc.type));
    b.float_mask = (((1u << (weights.bits - 1)) - 1) << b.float_up) * 0x01010101u;
  } else if (mode.by_e4m3) {
    b.unit = 512.0f;
  } else {
    b.unit = mode.become == LPG_GEMM8_CENTERED ? lpg_exp2i(weights.bits - 8) : 1.0f;
  }
  return b;
}

template <class Kernels>
static lpgemm_status_t run_gemm8(const lpg_call &call) {
  const lpg_packed &weights = *call.problem.weights;
  const lpg_gemm8_mode mode = lpg_gemm8_mode_of(&weights, call.problem.x_type);
  const lpg_gemm8_planned planned = plan_of<lpg_gemm8_planned>(call);
  const lpg_gemm8_workspace at = lpg_gemm8_workspace_of(&weights, call.problem.m);
  gemm8_args a = {};
  a.plan = planned.plan;
  a.row_tiles = (int32_t)weights.row_tiles;
  a.n = (int32_t)weights.desc.n;
  a.m = (int32_t)call.problem.m;
  a.x = (const uint8_t *)call.x;
  a.ldx = call.ldx;
  a.k = (int32_t)weights.desc.k;
  a.rows = make_gemm8_rows(call);
  a.image = (const uint8_t *)call.workspace;
  a.image_rows = (int32_t)lpg_gemm8_x_rows(call.problem.m);
  a.image_stage = (int64_t)a.image_rows * LPG_GEMM8_X_K;
  a.x_sums = (const int32_t *)(a.image + at.x_sums);
  a.factors = (const float *)(a.image + at.factors);
  a.offsets = (const int32_t *)(a.image + at.offsets);
  a.epilogue = make_epilogue(call);
  a.plan.exchanges = a.plan.exchanges && stores_pieces(a.epilogue, a.n);
  if (!call.skip_product && !a.plan.direct) LPG_TRY(lpgemm_i_gemm8_prepare_call(&call));
  if (lpg_gemm8_promotes(mode)) {
    a.groups = make_gemm8_groups(call);
    a.bytes = make_gemm8_bytes(weights, mode);
  }
#define LPG_TILE(x_rows, row_tiles) launch_gemm8<Kernels, x_rows, row_tiles>,
  static lpgemm_status_t (*const launch[])(const lpg_call &, lpg_gemm8_mode,
                                           gemm8_args &) = {LPG_GEMM8_TILES(LPG_TILE)};
#undef LPG_TILE
  return launch[planned.tile](call, mode, a);
}

template <class Kernels>
static lpgemm_status_t load_gemm8(const lpg_device *device) {
  const auto load = [&](const void *kernel) { return load_kernels(device, kernel); };
  for (int i = 0; i < 4; i++) {
    lpg_gemm8_mode mode = {};
    mode.grouped = i / 2;
    mode.become = i % 2 ? LPG_GEMM8_CENTERED : LPG_GEMM8_LESS_ZERO;
#define LPG_TILE(x_rows, row_tiles) LPG_TRY((Kernels::template with_kernel<x_rows, row_tiles>(mode, load)));
    LPG_GEMM8_TILES(LPG_TILE)
#undef LPG_TILE
  }
  return lpgemm_i_gemm8_prepare_x();
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_GEMM8(symbol, x, dequantiser, bits)                           \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) {               \
    return lpg::run_gemm8<lpg::gemm8_##x##_##dequantiser<bits>>(*call);   \
  }                                                                       \
  extern "C" lpgemm_status_t symbol##_load(const lpg_device *device) {    \
    return lpg::load_gemm8<lpg::gemm8_##x##_##dequantiser<bits>>(device); \
  }
