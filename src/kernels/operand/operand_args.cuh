/* Fills kernel arguments from a call, on the host: the dequantiser's constants, and where scales and zeros lie. */
#pragma once

#include "../plan/scheduler.cuh"
#include "center.h"
#include "codebook.h"
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

static void set_codebook(const lpgemm_weight_desc_t &d, int bits, bool bf16, dequantiser_args &dequantiser,
                         scales_args &scale_data) {
  const lpg_rounded_codebook codebook = lpgemm_i_round_codebook(d.codebook, bits, bf16);
  scale_data.factor = codebook.factor;
  for (int i = 0; i < 1 << bits; i++) dequantiser.value[i] = codebook.rounded[i];
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
    set_codebook(d, bits, bf16, dequantiser, scale_data);
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
  s.granules_each = axis.count <= 1 ? 0 : (int)(axis.k / lpg_granule_k(&axis));
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
  const scale_section &s = scale_data.section[0], &z = scale_data.section[1];
  const bool is_f16 = s.type == LPGEMM_F16 && scale_data.which[role_scale] == 0;
  const bool has_codes = scale_data.which[role_zero] == 1 && z.slot_bytes == LPG_TILE_ROWS &&
                         lpg_kind(z.type) == LPGEMM_KIND_UINT && scale_data.mode == zero_per_group &&
                         scale_data.step == 1.0f && scale_data.offset == 0.0f;
  scale_data.form = is_f16 && scale_data.sections == 1                ? form_f16
                    : is_f16 && scale_data.sections == 2 && has_codes ? form_f16_zeros
                                                                      : form_any;
  scale_data.one_copy = scale_data.sections == 1 && s.granules_each <= 1 && s.slot_bytes >= 16 &&
                        row_tiles * chunk * s.block_bytes <= 512;
  return offset;
}

}  // namespace
}  // namespace lpg
