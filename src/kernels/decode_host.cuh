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
  const bool bf16 = call.problem.x_type == LPGEMM_BF16;
  if (lpg_is_integer_kind(d.type)) {
    set_integers(d, bits, decoder, numbers);
  } else if (lpg_kind(d.type) == LPGEMM_KIND_FLOAT) {
    if (!bf16) numbers.factor = ldexpf(1.0f, 16 - (1 << (lpg_exponent_bits(d.type) - 1)));
    decoder.exponent_bits = lpg_exponent_bits(d.type);
    decoder.mantissa_bits = lpg_low_field(d.type);
    decoder.nan_code = d.type == LPGEMM_E4M3;
    decoder.nan_exponent = d.type == LPGEMM_E5M2;
  } else if (bits == 1) {
    set_line(d.codebook, decoder, numbers);
  } else {
    set_codebook(d.codebook, 1 << bits, bf16, decoder, numbers);
  }
  numbers.mode = d.zero == LPGEMM_ZERO_PER_GROUP ? zero_per_group
                 : d.zero == LPGEMM_ZERO_MINIMUM ? zero_minimum
                                                 : zero_fixed;
  numbers.has_shift = numbers.mode != zero_fixed || numbers.fixed_shift != 0.0f;
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
  s.groups = lpg_decode_groups(&axis);
  s.block_bytes = s.groups * s.slot_bytes;
  s.blocks_each = axis.count <= 1 ? 0 : axis.k < block_k ? 1 : (int)(axis.k / block_k);
  s.bytes = lpg_decode_section_bytes(&plan, id, chunk);
  s.offset = offset;
  offset += row_tiles * s.bytes;
}

static void add_sections(const lpg_call &call, int row_tiles, int chunk, numbers_args &numbers) {
  int offset = 0;
  add_section(call, LPG_SECTION_SCALES, role_scale, row_tiles, chunk, numbers, offset);
  add_section(call, LPG_SECTION_SUPER_SCALES, role_super_scale, row_tiles, chunk, numbers, offset);
  add_section(call, LPG_SECTION_ZEROS, role_zero, row_tiles, chunk, numbers, offset);
  add_section(call, LPG_SECTION_SUPER_ZEROS, role_super_zero, row_tiles, chunk, numbers, offset);
  numbers.only_f16_scales =
      numbers.sections == 1 && numbers.section[0].type == LPGEMM_F16 && numbers.which[role_scale] == 0;
  const number_section &s = numbers.section[0];
  numbers.one_copy =
      numbers.sections == 1 && s.blocks_each == 1 && s.slot_bytes >= 16 && row_tiles * chunk * s.block_bytes <= 512;
}

/* ---- running ---- */

/* The plan, made once a problem. */
template <class T>
static lpgemm_status_t find_plan(const lpg_call &call, decode_args &a) {
  static_assert(sizeof a.plan <= sizeof call.memo->words, "a memo is too small for a plan");
  if (call.memo && call.memo->filled) {
    memcpy(&a.plan, call.memo->words, sizeof a.plan);
    return LPGEMM_SUCCESS;
  }
  const lpg_plan &plan = *call.problem.plan;
  const lpg_decode_kind kind = lpg_decode_kind_of(&plan, T::Columns, a.numbers.has_shift, a.numbers.mode != zero_fixed);
  LPG_CHECK(lpg_decode_make_plan(&kind, &plan, a.m, call.device, &a.plan), LPGEMM_INTERNAL_ERROR,
            "a kernel was chosen that has no plan for k = %lld on %s", (long long)a.k, call.device->name);
  if (call.memo) {
    memcpy(call.memo->words, &a.plan, sizeof a.plan);
    call.memo->filled = 1;
  }
  return LPGEMM_SUCCESS;
}

template <class T>
static lpgemm_status_t run_decode(const lpg_call &call, decode_args &a) {
  const lpg_plan &plan = *call.problem.plan;
  add_sections(call, T::row_tiles, T::chunk, a.numbers);
  a.codes = call.section[LPG_SECTION_CODES];
  a.row_bytes = plan.k_tiles * lpg_tile_bytes(plan.bits);
  a.row_vectors = (int32_t)(a.row_bytes / 512);
  a.row_tiles = (int32_t)plan.row_tiles;
  a.n = (int32_t)plan.desc.n;
  a.m = (int32_t)call.problem.m;
  a.k = plan.desc.k;
  a.ldx = call.ldx;
  a.x = (const uint16_t *)call.x;
  a.epilogue = make_epilogue(call);
  LPG_TRY(find_plan<T>(call, a));
  return launch_cluster((const void *)decode_kernel<T>, dim3((unsigned)(a.plan.slices * a.plan.groups)), a.plan.slices,
                        T::threads, (size_t)a.plan.shared_bytes, call.stream, a);
}

/* The instances of a kernel: for the weights' groups, and whether sums of X count. Only what counts from zero needs
 * them: integers, and codebooks of two. Functions of a class would be symbols of the library, `static` ones are not. */
template <class X, template <class, int> class Decoder, int Bits, int Columns, int Granule>
static lpgemm_status_t run_groups(const lpg_call &call, decode_args &a) {
  constexpr bool may_shift = Decoder<X, Bits>::centered;
  return a.numbers.has_shift ? run_decode<decode_traits<X, Decoder, Bits, Columns, Granule, may_shift>>(call, a)
                             : run_decode<decode_traits<X, Decoder, Bits, Columns, Granule, false>>(call, a);
}

template <class X, template <class, int> class Decoder, int Bits, int Columns>
static lpgemm_status_t run_any(const lpg_call &call) {
  decode_args a = {};
  set_decoder(call, a.decoder, a.numbers);
  switch (lpg_decode_granule(call.problem.plan)) {
    case 1: return run_groups<X, Decoder, Bits, Columns, 1>(call, a);
    case 2: return run_groups<X, Decoder, Bits, Columns, 2>(call, a);
    default: return run_groups<X, Decoder, Bits, Columns, 8>(call, a);
  }
}

template <class X, template <class, int> class Decoder, int Bits, int Columns, int Granule>
static lpgemm_status_t prepare_groups(size_t bytes) {
  constexpr bool may_shift = Decoder<X, Bits>::centered;
  const auto shifted = decode_kernel<decode_traits<X, Decoder, Bits, Columns, Granule, may_shift>>;
  LPG_TRY(allow_shared((const void *)decode_kernel<decode_traits<X, Decoder, Bits, Columns, Granule, false>>, bytes));
  return allow_shared((const void *)shifted, bytes);
}

template <class X, template <class, int> class Decoder, int Bits, int Columns>
static lpgemm_status_t prepare_any() {
  int device, bytes;
  LPG_CUDA(cudaGetDevice(&device));
  LPG_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  LPG_TRY((prepare_groups<X, Decoder, Bits, Columns, 1>((size_t)bytes)));
  LPG_TRY((prepare_groups<X, Decoder, Bits, Columns, 2>((size_t)bytes)));
  return prepare_groups<X, Decoder, Bits, Columns, 8>((size_t)bytes);
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_DECODE(symbol, x, decoder, bits, columns)                                             \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) {                                       \
    return lpg::run_any<lpg::x##_x, lpg::decoder##_decoder, bits, columns>(*call);                \
  }                                                                                               \
  extern "C" lpgemm_status_t symbol##_prepare(void) {                                             \
    return lpg::prepare_any<lpg::x##_x, lpg::decoder##_decoder, bits, columns>();                 \
  }                                                                                               \
  extern "C" const char *symbol##_refuses(const lpg_problem *problem, const lpg_device *device) { \
    return lpgemm_i_decode_refuses(problem, device, columns);                                     \
  }
