/* From a call to what kernels read of the weights: the dequantiser's constants, and where scales and zeros lie. */
#pragma once

#include "../plan/scheduler.cuh"
#include "dequant.cuh"
#include "scales.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- the dequantiser's constants ---- */

/* Integers: d = stored - center, value = step * stored + offset. A fixed zero takes the nearest center. */
static void set_integers(const lpgemm_weight_desc_t &d, int bits, dequantiser_args &dequantiser,
                         scales_args &scale_data) {
  const float step = (float)lpg_integer_step(d.type), offset = (float)lpg_integer_offset(d.type);
  const float zero = d.zero == LPGEMM_ZERO_CONSTANT ? d.zero_constant : 0.0f;
  scale_data.step = scale_data.factor = step;
  scale_data.inverse_step = 1.0f / step;
  scale_data.offset = offset;
  scale_data.most = (float)(1 << bits);
  dequantiser.center = fminf(fmaxf(rintf((zero - offset) / step), 0.0f), scale_data.most);
  scale_data.fixed_shift = step * dequantiser.center + offset - zero;
}

/* A codebook of two is a line. It is counted from the value next to zero, so that nothing cancels. */
static void set_line(const float *value, dequantiser_args &dequantiser, scales_args &scale_data) {
  dequantiser.center = fabsf(value[0]) <= fabsf(value[1]) ? 0.0f : 1.0f;
  scale_data.factor = value[1] - value[0];
  scale_data.fixed_shift = value[(int)dequantiser.center];
}

/* Divides a codebook by a factor and rounds it to X's type; the largest relative error of a value. */
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

/* For fp16 the largest value becomes one in [2^14, 2^15), so that the others have all their digits; bf16 has room.
 * `wide` rounds these values and their products with scales, so of a few factors that one is taken with which X's type
 * holds them best; it goes on the sums. Few, since every call looks for it. */
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

/* with_line: codebooks of two are lines to the integers' dequantiser, and not tables. */
static void set_dequantiser(const lpg_call &call, bool with_line, dequantiser_args &dequantiser,
                            scales_args &scale_data) {
  const lpgemm_weight_desc_t &d = call.problem.weights->desc;
  const int bits = call.problem.weights->bits;
  scale_data.factor = scale_data.step = 1.0f;
  const bool bf16 = call.problem.x_type == LPGEMM_BF16;
  if (lpg_is_integer_kind(d.type)) {
    set_integers(d, bits, dequantiser, scale_data);
  } else if (lpg_kind(d.type) == LPGEMM_KIND_FLOAT) {
    if (!bf16) scale_data.factor = ldexpf(1.0f, 16 - (1 << (lpg_exponent_bits(d.type) - 1)));
    dequantiser.exponent_bits = lpg_exponent_bits(d.type);
    dequantiser.mantissa_bits = lpg_low_field(d.type);
    dequantiser.nan_code = d.type == LPGEMM_E4M3;
    dequantiser.nan_exponent = d.type == LPGEMM_E5M2;
  } else if (bits == 1 && with_line) {
    set_line(d.codebook, dequantiser, scale_data);
  } else {
    set_codebook(d.codebook, 1 << bits, bf16, dequantiser, scale_data);
  }
  scale_data.mode = d.zero == LPGEMM_ZERO_PER_GROUP ? zero_per_group
                    : d.zero == LPGEMM_ZERO_MINIMUM ? zero_minimum
                                                    : zero_fixed;
  scale_data.has_shift = scale_data.mode != zero_fixed || scale_data.fixed_shift != 0.0f;
}

/* For `wide`, which makes values of e4m3 (e4m3_dequantiser). */
static inline void set_gemm_dequantiser(const lpg_call &call, dequantiser_args &dequantiser, scales_args &scale_data) {
  set_dequantiser(call, false, dequantiser, scale_data);
  if (call.problem.weights->desc.type == LPGEMM_E4M3) scale_data.factor = 1.0f;
}

/* ---- scales and zeros ---- */

/* Adds a section, if there is one, behind `offset` of the stage. */
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
  s.groups = lpg_block_groups(&axis);
  s.block_bytes = s.groups * s.slot_bytes;
  s.blocks_each = axis.count <= 1 ? 0 : axis.k < block_k ? 1 : (int)(axis.k / block_k);
  s.bytes = lpg_chunk_bytes(&weights, id, chunk);
  s.offset = offset;
  offset += row_tiles * s.bytes;
}

/* Returns the bytes of a chunk of all. */
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
