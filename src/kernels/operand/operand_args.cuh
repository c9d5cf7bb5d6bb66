/* Fills kernel arguments from a call, on the host: the dequantiser's constants, and where scales and zeros lie. */
#pragma once

#include "../plan/scheduler.cuh"
#include "center.h"
#include "dequant.cuh"
#include "limits.h"
#include "scales.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- the dequantiser's constants ---- */

/* Integers: d = stored - center, value = step * stored + offset. center is the code next to a fixed zero; fixed_shift
 * is what is left of it. */
static void set_integers(const lpgemm_weight_desc_t &d, int bits, const lpg_center &center,
                         dequantiser_args &dequantiser, scales_args &scale_data) {
  scale_data.step = scale_data.factor = center.factor;
  scale_data.inverse_step = 1.0f / center.factor;
  scale_data.offset = (float)lpg_integer_offset(d.type);
  scale_data.most = (float)(1 << bits);
  dequantiser.center = center.code;
  scale_data.fixed_shift = center.rest;
}

/* A codebook of two values is linear in the code. d counts from the value next to zero, so that nothing cancels. */
static void set_line(const lpg_center &center, dequantiser_args &dequantiser, scales_args &scale_data) {
  dequantiser.center = center.code;
  scale_data.factor = center.factor;
  scale_data.fixed_shift = center.rest;
}

/* Divides a codebook by a factor and rounds it to X's type. Returns the largest relative error of a value. */
static double round_codebook(const float *value, int entries, bool bf16, float factor, uint16_t *rounded) {
  double worst = 0.0;
  for (int i = 0; i < entries; i++) {
    const double exact = (double)value[i] / (double)factor;
    rounded[i] = bf16 ? lpg_f64_to_bf16(exact) : lpg_f64_to_f16(exact);
    const double held = (double)(bf16 ? lpg_bf16_to_f32(rounded[i]) : lpg_f16_to_f32(rounded[i]));
    if (exact != 0.0) worst = fmax(worst, fabs(held - exact) / fabs(exact));
  }
  return worst;
}

/* Chooses the factor of a codebook; it goes on the sums. With fp16 the largest value becomes one in [2^14, 2^15), so
 * that the others keep all their bits; bf16 has room. gemm rounds these values and their products with scales, so a few
 * factors are tried and the one with the least error of rounding is taken. Only a few, since every call does this. */
static void set_codebook(const float *value, int entries, bool bf16, dequantiser_args &dequantiser,
                         scales_args &scale_data) {
  float most = 0.0f;
  for (int i = 0; i < entries; i++) most = fmaxf(most, fabsf(value[i]));
  int exponent = 0;
  const float mantissa = most > 0.0f ? frexpf(most, &exponent) : 1.0f, base = ldexpf(1.0f, exponent - (bf16 ? 0 : 15));
  const int factors = 128 / entries;
  double least = INFINITY;
  for (int i = 0; i < factors && least > 0.0; i++) {
    const float factor = base * (1.0f - (1.0f - mantissa) * (float)i / (float)factors);
    uint16_t rounded[16];
    const double worst = round_codebook(value, entries, bf16, factor, rounded);
    if (worst >= least) continue;
    least = worst;
    scale_data.factor = factor;
    for (int j = 0; j < entries; j++) dequantiser.value[j] = rounded[j];
  }
}

/* with_line: codebooks of two values go to the integer dequantiser instead of a table. */
static void set_dequantiser(const lpg_call &call, bool with_line, dequantiser_args &dequantiser,
                            scales_args &scale_data) {
  const lpgemm_weight_desc_t &d = call.problem.weights->desc;
  const int bits = call.problem.weights->bits;
  const lpg_center center = lpg_center_of(&d);
  scale_data.factor = scale_data.step = 1.0f;
  const bool bf16 = call.problem.x_type == LPGEMM_BF16;
  if (lpg_is_integer_kind(d.type)) {
    set_integers(d, bits, center, dequantiser, scale_data);
  } else if (lpg_kind(d.type) == LPGEMM_KIND_FLOAT) {
    const int halved = lpg_is_halved(d.type, call.problem.x_type);
    if (!bf16) scale_data.factor = ldexpf(1.0f, 16 - (1 << (lpg_exponent_bits(d.type) - 1)) + halved);
    dequantiser.exponent_bits = lpg_exponent_bits(d.type);
    dequantiser.mantissa_bits = lpg_low_field(d.type);
    dequantiser.nan_code = d.type == LPGEMM_E4M3;
    dequantiser.nan_exponent = d.type == LPGEMM_E5M2;
  } else if (bits == 1 && with_line) {
    set_line(center, dequantiser, scale_data);
  } else {
    set_codebook(d.codebook, 1 << bits, bf16, dequantiser, scale_data);
  }
  scale_data.mode = d.zero == LPGEMM_ZERO_PER_GROUP ? zero_per_group
                    : d.zero == LPGEMM_ZERO_MINIMUM ? zero_minimum
                                                    : zero_fixed;
  scale_data.has_shift = scale_data.mode != zero_fixed || scale_data.fixed_shift != 0.0f;
}

/* For gemm, whose e4m3 dequantiser makes the values themselves (e4m3_dequantiser). */
static inline void set_gemm_dequantiser(const lpg_call &call, dequantiser_args &dequantiser, scales_args &scale_data) {
  set_dequantiser(call, false, dequantiser, scale_data);
  if (call.problem.weights->desc.type == LPGEMM_E4M3) scale_data.factor = 1.0f;
}

/* ---- scales and zeros ---- */

/* Adds a section, if the weights have it, at `offset` of the stage's scales, and moves `offset` behind it. */
static void add_section(const lpg_call &call, lpg_section_id id, scale_role role, int row_tiles, int chunk,
                        scales_args &scale_data, int &offset) {
  const lpg_packed &weights = *call.problem.weights;
  const lpg_axis &axis = *lpg_section_axis(&weights, id);
  scale_data.which[role] = -1;
  if (weights.section[id].bytes == 0) return;
  scale_data.which[role] = scale_data.sections;
  scale_section &s = scale_data.section[scale_data.sections++];
  s.values = call.section[id];
  s.type = lpg_section_type(&weights.desc, id);
  s.slot_bytes = lpg_slot_bytes(s.type);
  s.row_bytes = (int)axis.padded * s.slot_bytes;
  s.row_shift = lpg_scale_shift(&weights);
  s.groups = lpg_block_groups(&axis);
  s.block_bytes = s.groups * s.slot_bytes;
  s.blocks_each = axis.count <= 1 ? 0 : axis.k < block_k ? 1 : (int)(axis.k / block_k);
  s.bytes = lpg_chunk_bytes(&weights, id, chunk);
  s.offset = offset;
  offset += row_tiles * s.bytes;
}

/* Returns the bytes of one chunk of all sections, in shared memory. */
static int add_sections(const lpg_call &call, int row_tiles, int chunk, scales_args &scale_data) {
  int offset = 0;
  add_section(call, LPG_SECTION_SCALES, role_scale, row_tiles, chunk, scale_data, offset);
  add_section(call, LPG_SECTION_SUPER_SCALES, role_super_scale, row_tiles, chunk, scale_data, offset);
  add_section(call, LPG_SECTION_ZEROS, role_zero, row_tiles, chunk, scale_data, offset);
  add_section(call, LPG_SECTION_SUPER_ZEROS, role_super_zero, row_tiles, chunk, scale_data, offset);
  scale_data.only_f16_scales =
      scale_data.sections == 1 && scale_data.section[0].type == LPGEMM_F16 && scale_data.which[role_scale] == 0;
  const scale_section &s = scale_data.section[0];
  scale_data.one_copy =
      scale_data.sections == 1 && s.blocks_each <= 1 && s.slot_bytes >= 16 && row_tiles * chunk * s.block_bytes <= 512;
  return offset;
}

}  // namespace
}  // namespace lpg
