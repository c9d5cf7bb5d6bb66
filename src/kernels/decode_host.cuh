/* The decode kernels from the host: arguments, plan, launch. */
#pragma once

#include "../cuda/cuda.h"
#include "decode.cuh"
#include "decode_limits.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- the decoder's constants ---- */

/* Integers: d = stored - center, value = step * stored + offset. A fixed zero takes the nearest center. */
static void set_integers(const lpgemm_weight_desc_t &d, int bits, decoder_args &decoder, numbers_args &numbers) {
  const float step = (float)lpg_integer_step(d.type), offset = (float)lpg_integer_offset(d.type);
  const float zero = d.zero == LPGEMM_ZERO_CONSTANT ? d.zero_constant : 0.0f;
  numbers.step = numbers.factor = step;
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

/* For fp16 the largest value becomes one in [2^14, 2^15), so that the others have all their digits; bf16 has room. */
static void set_codebook(const float *value, int entries, bool bf16, decoder_args &decoder, numbers_args &numbers) {
  float most = 0.0f;
  for (int i = 0; i < entries; i++) most = fmaxf(most, fabsf(value[i]));
  const int top = bf16 ? 0 : 15;
  int exponent = 0;
  if (most > 0.0f) frexpf(most, &exponent);
  for (int i = 0; i < entries; i++) {
    const double scaled = ldexp((double)value[i], top - exponent);
    decoder.value[i] = bf16 ? lpg_f64_to_bf16(scaled) : lpg_f64_to_f16(scaled);
  }
  numbers.factor = ldexpf(1.0f, exponent - top);
}

static void set_decoder(const lpg_call &call, decoder_args &decoder, numbers_args &numbers) {
  const lpgemm_weight_desc_t &d = call.problem.plan->desc;
  const int bits = call.problem.plan->bits;
  numbers.factor = numbers.step = 1.0f;
  if (lpg_is_integer_kind(d.type)) {
    set_integers(d, bits, decoder, numbers);
  } else if (lpg_kind(d.type) == LPGEMM_KIND_FLOAT) {
    decoder.exponent_bits = lpg_exponent_bits(d.type);
    decoder.mantissa_bits = lpg_low_field(d.type);
    decoder.nan_code = d.type == LPGEMM_E4M3;
    decoder.nan_exponent = d.type == LPGEMM_E5M2;
  } else if (bits == 1) {
    set_line(d.codebook, decoder, numbers);
  } else {
    set_codebook(d.codebook, 1 << bits, call.problem.x_type == LPGEMM_BF16, decoder, numbers);
  }
  numbers.mode = d.zero == LPGEMM_ZERO_PER_GROUP ? zero_per_group
                 : d.zero == LPGEMM_ZERO_MINIMUM ? zero_minimum
                                                 : zero_fixed;
  numbers.has_shift = numbers.mode != zero_fixed || numbers.fixed_shift != 0.0f;
}

/* ---- scales and zeros ---- */

/* Adds a section, if there is one, behind `offset` of the stage. */
static void add_section(const lpg_call &call, lpg_section_id id, number_role role, int row_tiles, numbers_args &numbers,
                        int &offset) {
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
  s.groups = lpg_decode_groups(&axis);
  s.block_bytes = s.groups * s.slot_bytes;
  s.blocks_each = axis.count <= 1 ? 0 : axis.k < block_k ? 1 : (int)(axis.k / block_k);
  s.bytes = lpg_decode_section_bytes(&plan, id);
  s.offset = offset;
  offset += row_tiles * s.bytes;
}

static void add_sections(const lpg_call &call, int row_tiles, numbers_args &numbers, int &offset) {
  add_section(call, LPG_SECTION_SCALES, role_scale, row_tiles, numbers, offset);
  add_section(call, LPG_SECTION_SUPER_SCALES, role_super_scale, row_tiles, numbers, offset);
  add_section(call, LPG_SECTION_ZEROS, role_zero, row_tiles, numbers, offset);
  add_section(call, LPG_SECTION_SUPER_ZEROS, role_super_zero, row_tiles, numbers, offset);
  numbers.only_f16_scales =
      numbers.sections == 1 && numbers.section[0].type == LPGEMM_F16 && numbers.which[role_scale] == 0;
  numbers.one_copy = numbers.sections == 1 && numbers.section[0].blocks_each == 1 &&
                     row_tiles * numbers.section[0].block_bytes <= 512 && numbers.section[0].slot_bytes >= 16;
}

/* ---- running ---- */

template <class T>
static lpgemm_status_t run_decode(const lpg_call *call) {
  const lpg_plan &plan = *call->problem.plan;
  decode_args a = {};
  int offset = T::row_tiles * T::block_bytes;
  set_decoder(*call, a.decoder, a.numbers);
  add_sections(*call, T::row_tiles, a.numbers, offset);
  a.codes = call->section[LPG_SECTION_CODES];
  a.row_bytes = plan.k_tiles * lpg_tile_bytes(plan.bits);
  a.whole_blocks = (int32_t)(a.row_bytes / T::block_bytes);
  a.row_tiles = (int32_t)plan.row_tiles;
  a.n = (int32_t)plan.desc.n;
  a.m = (int32_t)call->problem.m;
  a.k = plan.desc.k;
  a.ldx = call->ldx;
  a.x = (const uint16_t *)call->x;
  a.epilogue = make_epilogue(*call);
  const lpg_decode_kind kind =
      lpg_decode_kind_of(&plan, T::Columns, T::Clusters, a.numbers.has_shift, a.numbers.mode != zero_fixed);
  LPG_CHECK(lpg_decode_make_plan(&kind, &plan, a.m, call->device, T::Clusters, &a.plan), LPGEMM_INTERNAL_ERROR,
            "a kernel was chosen that has no plan for k = %lld on %s", (long long)a.k, call->device->name);
  return launch_cluster((const void *)decode_kernel<T>, dim3((unsigned)(a.plan.slices * a.plan.groups)), a.plan.slices,
                        threads, (size_t)a.plan.shared_bytes, call->stream, a);
}

/* The instance for the weights' groups. */
template <class X, template <class, int> class Decoder, int Bits, int Columns, bool Clusters>
static lpgemm_status_t run_decode_any(const lpg_call *call) {
  switch (lpg_decode_granule(call->problem.plan)) {
    case 1: return run_decode<decode_traits<X, Decoder, Bits, Columns, 1, Clusters>>(call);
    case 2: return run_decode<decode_traits<X, Decoder, Bits, Columns, 2, Clusters>>(call);
    default: return run_decode<decode_traits<X, Decoder, Bits, Columns, 8, Clusters>>(call);
  }
}

template <class X, template <class, int> class Decoder, int Bits, int Columns, bool Clusters>
static lpgemm_status_t prepare_decode() {
  int device, bytes;
  LPG_CUDA(cudaGetDevice(&device));
  LPG_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  const auto allow = [&](const void *kernel) { return allow_shared(kernel, (size_t)bytes); };
  LPG_TRY(allow((const void *)decode_kernel<decode_traits<X, Decoder, Bits, Columns, 1, Clusters>>));
  LPG_TRY(allow((const void *)decode_kernel<decode_traits<X, Decoder, Bits, Columns, 2, Clusters>>));
  return allow((const void *)decode_kernel<decode_traits<X, Decoder, Bits, Columns, 8, Clusters>>);
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_DECODE(symbol, x, decoder, bits, columns, clusters)                                    \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) {                                        \
    return lpg::run_decode_any<lpg::x##_x, lpg::decoder##_decoder, bits, columns, clusters>(call); \
  }                                                                                                \
  extern "C" lpgemm_status_t symbol##_prepare(void) {                                              \
    return lpg::prepare_decode<lpg::x##_x, lpg::decoder##_decoder, bits, columns, clusters>();     \
  }                                                                                                \
  extern "C" const char *symbol##_refuses(const lpg_problem *problem, const lpg_device *device) {  \
    return lpgemm_i_decode_refuses(problem, device, columns, clusters);                            \
  }
