/* From a call to what kernels read of the weights: the decoder's constants, and where scales and zeros lie. */
#pragma once

#include "../plan/scheduler.cuh"
#include "dequant.cuh"
#include "scales.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- the decoder's constants ---- */

/* Integers: d = stored - center, value = step * stored + offset. A fixed zero takes the nearest center. */
static void set_integers(const lpgemm_weight_desc_t &d, int bits, decoder_args &decoder, numbers_args &numbers) {
  const float step = (float)lpg_integer_step(d.type), offset = (float)lpg_integer_offset(d.type);
  const float zero = d.zero == LPGEMM_ZERO_CONSTANT ? d.zero_constant : 0.0f;
  numbers.step = numbers.factor = step;
  numbers.inverse_step = 1.0f / step;
  numbers.offset = offset;
  numbers.most = (float)(1 << bits);
  decoder.center = fminf(fmaxf(rintf((zero - offset) / step), 0.0f), numbers.most);
  numbers.fixed_shift = step * decoder.center + offset - zero;
}

/* A codebook of two is a line. It is counted from the value next to zero, so that nothing cancels. */
static void set_line(const float *value, decoder_args &decoder, numbers_args &numbers) {
  decoder.center = fabsf(value[0]) <= fabsf(value[1]) ? 0.0f : 1.0f;
  numbers.factor = value[1] - value[0];
  numbers.fixed_shift = value[(int)decoder.center];
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
static void set_codebook(const float *value, int entries, bool bf16, decoder_args &decoder, numbers_args &numbers) {
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
    numbers.factor = factor;
    for (int j = 0; j < entries; j++) decoder.value[j] = rounded[j];
  }
}

/* with_line: codebooks of two are lines to the integers' decoder, and not tables. */
static void set_decoder(const lpg_call &call, bool with_line, decoder_args &decoder, numbers_args &numbers) {
  const lpgemm_weight_desc_t &d = call.problem.plan->desc;
  const int bits = call.problem.plan->bits;
  numbers.factor = numbers.step = 1.0f;
  const bool bf16 = call.problem.x_type == LPGEMM_BF16;
  if (lpg_is_integer_kind(d.type)) {
    set_integers(d, bits, decoder, numbers);
  } else if (lpg_kind(d.type) == LPGEMM_KIND_FLOAT) {
    if (!bf16) numbers.factor = ldexpf(1.0f, 16 - (1 << (lpg_exponent_bits(d.type) - 1)));
    decoder.exponent_bits = lpg_exponent_bits(d.type);
    decoder.mantissa_bits = lpg_low_field(d.type);
    decoder.nan_code = d.type == LPGEMM_E4M3;
    decoder.nan_exponent = d.type == LPGEMM_E5M2;
  } else if (bits == 1 && with_line) {
    set_line(d.codebook, decoder, numbers);
  } else {
    set_codebook(d.codebook, 1 << bits, bf16, decoder, numbers);
  }
  numbers.mode = d.zero == LPGEMM_ZERO_PER_GROUP ? zero_per_group
                 : d.zero == LPGEMM_ZERO_MINIMUM ? zero_minimum
                                                 : zero_fixed;
  numbers.has_shift = numbers.mode != zero_fixed || numbers.fixed_shift != 0.0f;
}

/* For `wide`, which makes values of e4m3 (e4m3_decoder). */
static inline void set_wide_decoder(const lpg_call &call, decoder_args &decoder, numbers_args &numbers) {
  set_decoder(call, false, decoder, numbers);
  if (call.problem.plan->desc.type == LPGEMM_E4M3) numbers.factor = 1.0f;
}

/* ---- scales and zeros ---- */

/* Adds a section, if there is one, behind `offset` of the stage. */
static void add_section(const lpg_call &call, lpg_section_id id, number_role role, int row_tiles, int chunk,
                        numbers_args &numbers, int &offset) {
  const lpg_plan &plan = *call.problem.plan;
  const lpg_axis &axis = *lpg_section_axis(&plan, id);
  numbers.which[role] = -1;
  if (plan.section[id].bytes == 0) return;
  numbers.which[role] = numbers.sections;
  number_section &s = numbers.section[numbers.sections++];
  s.values = call.section[id];
  s.type = lpg_section_type(&plan.desc, id);
  s.slot_bytes = lpg_slot_bytes(s.type);
  s.row_bytes = (int)axis.padded * s.slot_bytes;
  s.groups = lpg_block_groups(&axis);
  s.block_bytes = s.groups * s.slot_bytes;
  s.blocks_each = axis.count <= 1 ? 0 : axis.k < block_k ? 1 : (int)(axis.k / block_k);
  s.bytes = lpg_chunk_bytes(&plan, id, chunk);
  s.offset = offset;
  offset += row_tiles * s.bytes;
}

/* Returns the bytes of a chunk of all. */
static int add_sections(const lpg_call &call, int row_tiles, int chunk, numbers_args &numbers) {
  int offset = 0;
  add_section(call, LPG_SECTION_SCALES, role_scale, row_tiles, chunk, numbers, offset);
  add_section(call, LPG_SECTION_SUPER_SCALES, role_super_scale, row_tiles, chunk, numbers, offset);
  add_section(call, LPG_SECTION_ZEROS, role_zero, row_tiles, chunk, numbers, offset);
  add_section(call, LPG_SECTION_SUPER_ZEROS, role_super_zero, row_tiles, chunk, numbers, offset);
  numbers.only_f16_scales =
      numbers.sections == 1 && numbers.section[0].type == LPGEMM_F16 && numbers.which[role_scale] == 0;
  const number_section &s = numbers.section[0];
  numbers.one_copy =
      numbers.sections == 1 && s.blocks_each <= 1 && s.slot_bytes >= 16 && row_tiles * chunk * s.block_bytes <= 512;
  return offset;
}

}  // namespace
}  // namespace lpg
