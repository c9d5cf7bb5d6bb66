/* gemm from the host: plan -> arguments -> launch. */
#pragma once

#include "../launch/launch.cuh"
#include "../launch/number.h"
#include "../operand/expand.h"
#include "../operand/operand_args.cuh"
#include "../operand/x_copy.h"
#include "gemm.cuh"
#include "gemm_mode.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Stream-K: its place in the workspace, behind all else. */
static void place_stream(const lpg_call &call, lpg_gemm_scales mode, gemm_args &a) {
  const int32_t ctas = a.plan.clusters * a.plan.multicast;
  a.stream_sums = (float4 *)((uint8_t *)call.workspace + lpg_gemm_scratch_bytes(&call.problem, mode));
  a.stream_flags = (uint64_t *)(a.stream_sums + (int64_t)ctas * (LPG_GEMM_STREAM_SUMS / 16));
  a.stream_number = lpgemm_i_launch_number();
}

/* In the workspace, behind the copy of X, as are images. */
static lpgemm_status_t prepare_scales(const lpg_call &call, gemm_args &a) {
  const lpg_packed &weights = *call.problem.weights;
  float *const factors = (float *)((uint8_t *)call.workspace + lpg_x_copy_bytes(&call.problem, 2));
  a.line_factors = factors;
  a.prepared = (const uint8_t *)(factors + weights.n_padded);
  a.line_groups = (int32_t)lpg_gemm_scale_groups(&weights);
  a.block_groups = lpg_block_groups(&weights.group);
  return lpgemm_i_cuda_gemm_prepare(&call, factors, factors + weights.n_padded);
}

static lpgemm_status_t make_image(const lpg_call &call, lpgemm_dtype_t type, gemm_args &a) {
  const lpg_packed &weights = *call.problem.weights;
  float *const factors = (float *)((uint8_t *)call.workspace + lpg_x_copy_bytes(&call.problem, 2));
  uint8_t *const image = (uint8_t *)(factors + weights.n_padded);
  a.line_factors = factors;
  a.image = image;
  a.image_rows = (int32_t)lpg_ceil_div(weights.desc.n, LPG_IMAGE_ROWS);
  a.image_columns = lpg_image_columns(weights.desc.k);
  return call.skip_product ? LPGEMM_SUCCESS : lpgemm_i_cuda_expand_pieces(&call, type, image, factors);
}

/* The weights that a dequantiser is for: one without a line here does not compile. */
template <lpg_gemm_weights Weights>
struct for_weights {
  static constexpr lpg_gemm_weights weights = Weights;
};
template <class Dequantiser>
struct dequantises;
template <class X, int Bits>
struct dequantises<codebook_dequantiser<X, Bits>> : for_weights<LPG_GEMM_CODEBOOKS> {};
template <class X, int Bits>
struct dequantises<integer_dequantiser<X, Bits>> : for_weights<LPG_GEMM_INTEGERS> {};
template <class X, int Bits>
struct dequantises<float_dequantiser<X, Bits>> : for_weights<LPG_GEMM_FLOATS> {};
template <class X, int Bits>
struct dequantises<e4m3_dequantiser<X, Bits>> : for_weights<LPG_GEMM_E4M3_WEIGHTS> {};
template <class X, int Bits>
struct dequantises<halved_dequantiser<X, Bits>> : for_weights<LPG_GEMM_HALVED_FLOATS> {};

/* Whether there is a kernel. */
template <class X, template <class, int> class Dequantiser, int Bits, int TileM, int Teams, int Warps,
          lpg_gemm_scales Form, bool Experts>
constexpr bool gemm_exists() {
  constexpr lpg_gemm_weights weights = dequantises<Dequantiser<X, Bits>>::weights;
  if (!lpg_gemm_scales_exist(Form, X::mantissa == 7, weights, Bits)) return false;
  if (!Experts) return lpg_gemm_has(Form, TileM, Teams * Warps);
  return lpg_gemm_takes_experts(Form, weights, Bits) && lpg_gemm_has_for_experts(Form, Bits, TileM, Teams * Warps);
}

/* The kernels for a type of X and a dequantiser: of a scale mode, of a work tile, without and with experts (or paired
 * rows); null where there is none. A table, since code for each would be larger than its kernel's arguments are worth.
 */
using gemm_function = void (*)(gemm_args);
struct gemm_tile_kernels {
  gemm_function of_tile[LPG_GEMM_TILE_COUNT][2];
};
struct gemm_kernels {
  gemm_tile_kernels of_mode[LPG_GEMM_SCALES_COUNT];
};

template <class X, template <class, int> class Dequantiser, int Bits, int TileM, int Teams, int Warps,
          lpg_gemm_scales Form, bool Experts>
constexpr gemm_function kernel_if_there() {
  if constexpr (gemm_exists<X, Dequantiser, Bits, TileM, Teams, Warps, Form, Experts>()) {
    return gemm_kernel<gemm_traits<X, Dequantiser, Bits, TileM, Teams, Warps, Form, Experts>>;
  }
  return nullptr;
}

template <class X, template <class, int> class Dequantiser, int Bits, lpg_gemm_scales Form>
constexpr gemm_tile_kernels kernels_of_mode() {
#define LPG_TILE(x_rows, teams, warps)                                         \
  {kernel_if_there<X, Dequantiser, Bits, x_rows, teams, warps, Form, false>(), \
   kernel_if_there<X, Dequantiser, Bits, x_rows, teams, warps, Form, true>()},
  return {{LPG_GEMM_TILES(LPG_TILE)}};
#undef LPG_TILE
}

#define LPG_MODE(name, word) kernels_of_mode<X, Dequantiser, Bits, LPG_GEMM_SCALES_##name>(),
template <class X, template <class, int> class Dequantiser, int Bits>
static constexpr gemm_kernels kernels_of = {{LPG_GEMM_EACH_SCALES(LPG_MODE)}};
#undef LPG_MODE

/* All rows of W, or those of a chunk. */
static lpgemm_status_t run_rows(const lpg_call &call, gemm_args &a, const gemm_tile_kernels &kernels,
                                lpg_gemm_scales mode, int tile) {
  const lpg_packed &weights = *call.problem.weights;
  const lpg_gemm_kind kind = lpg_gemm_kind_of(&weights, lpgemm_i_gemm_tiles[tile], mode, a.plan.multicast);
  const bool takes_experts = call.problem.experts > 0 || call.problem.paired;
  const gemm_function kernel = kernels.of_tile[tile][takes_experts];
  LPG_CHECK(kernel, LPGEMM_INTERNAL_ERROR, "the scale mode has no kernel for the work tile of the plan");
  if (lpg_gemm_is_prepared(mode)) LPG_TRY(prepare_scales(call, a));
  if (mode == LPG_GEMM_SCALES_IMAGE) LPG_TRY(make_image(call, lpg_half_type(call.problem.x_type), a));
  add_sections(call, 1, 1, a.scale_data);
  const scale_role roles[] = {role_scale, role_zero};
  for (int i = 0; i < 2; i++) {
    const int which = a.scale_data.which[roles[i]];
    if (which >= 0) a.copied[i] = a.scale_data.section[which];
    const int upper = a.scale_data.which[i ? role_super_zero : role_super_scale];
    if (upper >= 0) a.upper[i] = a.scale_data.section[upper];
  }
  if (lpg_gemm_has_rests(mode)) {
    a.largest_value[0] = (float)weights.values.most * a.scale_data.inverse_step;
    if (weights.desc.zero_type) a.largest_value[1] = (float)lpgemm_i_largest_value(weights.desc.zero_type, NULL);
  }
  a.exponents = (const int8_t *)call.section[LPG_SECTION_ROW_EXPONENTS];
  a.row_tiles = (int32_t)weights.row_tiles;
  a.n = (int32_t)weights.desc.n;
  a.m = (int32_t)call.problem.m;
  a.k = (int32_t)weights.desc.k;
  a.ldx = call.ldx;
  a.x = (const uint16_t *)call.x;
  a.stage_groups = lpg_gemm_stage_groups(&weights, kind.stage_k);
  a.epilogue = make_epilogue(call);
  if (!lpg_gemm_makes(mode) && !takes_experts && lpg_gemm_factors_take(&weights.desc)) {
    a.scale_data.factor *= a.epilogue.global_scale;
    a.epilogue.global_scale = 1.0f;
  }
  const bool pieces = stores_pieces(a.epilogue, a.n);
  a.plan.exchanges = a.plan.exchanges && pieces;
  a.plan.boxes = a.plan.boxes && pieces && is_plain(a.epilogue);
  if (a.plan.boxes) {
    LPG_TRY(lpgemm_i_cuda_map_y(a.epilogue.y, a.n, a.m, a.epilogue.ldy, output_lines::rows, output_lines::x_rows,
                                &a.y_map));
  }
  a.experts = {call.problem.experts, (int32_t)call.bias_stride, call.offsets, call.blob,
               call.row_scales,      (int64_t)call.stride};
  if (!call.skip_product) {
    const int row_tiles = kind.tile_n / LPG_TILE_ROWS, w_vectors = kind.w_stage_bytes / (row_tiles * 512);
    a.x_has_map = lpg_x_has_map(&call);
    if (a.x_has_map) {
      LPG_TRY(lpgemm_i_cuda_map_x(&call, LPG_GEMM_BOX_K, a.plan.x_rows / lpg_gemm_x_boxes(kind.tile.tile_m), &a.x_map));
    }
    if (mode != LPG_GEMM_SCALES_IMAGE)
      LPG_TRY(lpgemm_i_cuda_map_codes(&call, w_vectors, row_tiles, takes_experts, &a.codes_map));
  }
  if (a.plan.streamed > 0) place_stream(call, mode, a);
  return launch_planned(call, (const void *)kernel, a, true);
}

static lpgemm_status_t run_chunks(lpg_call call, gemm_args &a, const gemm_tile_kernels &kernels, lpg_gemm_scales mode) {
  LPG_TRY(lpgemm_i_cuda_copy_x(&call, 2, call.workspace));
  const lpg_gemm_planned planned = plan_of<lpg_gemm_planned>(call);
  a.plan = planned.plan;
  const int64_t n = call.problem.weights->desc.n, rows = lpg_gemm_chunk_rows(call.problem.weights, mode);
  if (rows >= n) return run_rows(call, a, kernels, mode, planned.tile);
  for (int64_t begin = 0; begin < n; begin += rows) {
    lpg_call chunk = call;
    gemm_args own = a;
    lpg_packed part;
    lpgemm_i_slice(&chunk, begin, begin + rows < n ? begin + rows : n, &part);
    LPG_TRY(run_rows(chunk, own, kernels, mode, planned.tile));
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t run_kernels(const lpg_call &call, const gemm_kernels &kernels) {
  const lpg_gemm_scaling scaling =
      lpgemm_i_gemm_scaling(call.problem.weights, call.problem.x_type, call.problem.scale_span);
  gemm_args a = {};
  set_gemm_dequantiser(call, a.dequantiser, a.scale_data);
  a.scale_data.scale_exponent = scaling.exponent;
  a.scale_data.scale_on_rows = scaling.on_rows;
  a.field_power = scaling.field_power;
  return run_chunks(call, a, kernels.of_mode[scaling.mode], scaling.mode);
}

static lpgemm_status_t load_kernels_of(const lpg_device *device, const gemm_tile_kernels &kernels) {
  for (const auto &tile : kernels.of_tile) {
    for (const gemm_function kernel : tile) {
      if (kernel) LPG_TRY(load_kernels(device, kernel));
    }
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t load_kernels_of(const lpg_device *device, const gemm_kernels &kernels) {
  for (const gemm_tile_kernels &mode : kernels.of_mode) LPG_TRY(load_kernels_of(device, mode));
  return LPGEMM_SUCCESS;
}

/* Of floats of 8 bits e4m3 has a dequantiser of its own. */
template <class X, template <class, int> class Dequantiser, int Bits>
constexpr bool has_e4m3 = Bits == 8 && dequantises<Dequantiser<X, Bits>>::weights == LPG_GEMM_FLOATS;

template <class X, template <class, int> class Dequantiser, int Bits>
static lpgemm_status_t run_gemm_any(const lpg_call &call) {
  if constexpr (has_e4m3<X, Dequantiser, Bits>) {
    if (call.problem.weights->desc.type == LPGEMM_E4M3) return run_kernels(call, kernels_of<X, e4m3_dequantiser, Bits>);
  }
  if constexpr (has_halved<Dequantiser<X, Bits>>) {
    if (lpg_is_halved(call.problem.weights->desc.type, call.problem.x_type))
      return run_kernels(call, kernels_of<X, halved_dequantiser, Bits>);
  }
  return run_kernels(call, kernels_of<X, Dequantiser, Bits>);
}

template <class X, template <class, int> class Dequantiser, int Bits>
static lpgemm_status_t load_gemm_any(const lpg_device *device) {
  if constexpr (has_e4m3<X, Dequantiser, Bits>) {
    LPG_TRY(load_kernels_of(device, kernels_of<X, e4m3_dequantiser, Bits>));
  }
  if constexpr (has_halved<Dequantiser<X, Bits>>) {
    LPG_TRY(load_kernels_of(device, kernels_of<X, halved_dequantiser, Bits>));
  }
  LPG_TRY(load_kernels_of(device, kernels_of<X, Dequantiser, Bits>));
  return lpgemm_i_cuda_load_gemm_prepare();
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_GEMM(symbol, x, dequantiser, bits)                                           \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) {                              \
    return lpg::run_gemm_any<lpg::x##_x, lpg::dequantiser##_dequantiser, bits>(*call);   \
  }                                                                                      \
  extern "C" lpgemm_status_t symbol##_load(const lpg_device *device) {                   \
    return lpg::load_gemm_any<lpg::x##_x, lpg::dequantiser##_dequantiser, bits>(device); \
  }
