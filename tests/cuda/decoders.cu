/* The decoders of src/kernels/decoder.cuh on the host, as plain functions for test_decoders.c. */
#include "decoders.h"

#include "kernels/operand/operand_args.cuh"

namespace lpg {
namespace {

template <class X, template <class, int> class Decoder, int Bits>
uint32_t decode_one(const decoder_args &args, const uint32_t *unit, int pair) {
  using D = Decoder<X, Bits>;
  constexpr int table_bytes = D::table_bytes ? D::table_bytes : 1;
  static uint8_t table[table_bytes] alignas(16);
  D::fill_table(args, table, 0, 1);
  const D decoder(args, table, 7);
  typename D::rows rows = {};
  D::set_center(rows, X::round(args.center));
  return decoder.decode(rows, unit, pair);
}

template <class X, template <class, int> class Decoder>
uint32_t decode_wide(int bits, const decoder_args &args, const uint32_t *unit, int pair) {
  switch (bits) {
    case 5: return decode_one<X, Decoder, 5>(args, unit, pair);
    case 6: return decode_one<X, Decoder, 6>(args, unit, pair);
    case 7: return decode_one<X, Decoder, 7>(args, unit, pair);
    default: return decode_one<X, Decoder, 8>(args, unit, pair);
  }
}

template <int Bits>
uint32_t decode_scaled(const decoder_args &args, const uint32_t *unit, int pair, uint32_t scale) {
  const scaled_decoder<Bits> decoder(args);
  typename scaled_decoder<Bits>::rows rows = {};
  decoder.set_scale(rows, scale);
  return decoder.decode(rows, unit, pair);
}

/* wide: whether the wide kernels' own decoder of the type is asked for, if they have one. */
template <class X>
uint32_t decode_any(lpgemm_dtype_t type, int bits, bool wide, const decoder_args &args, const uint32_t *unit,
                    int pair) {
  if (lpg_kind(type) == LPGEMM_KIND_FLOAT) {
    if (wide && type == LPGEMM_E4M3) return decode_one<X, e4m3_decoder, 8>(args, unit, pair);
    if (bits == 3) return decode_one<X, float_decoder, 3>(args, unit, pair);
    if (bits == 4) return decode_one<X, float_decoder, 4>(args, unit, pair);
    return decode_wide<X, float_decoder>(bits, args, unit, pair);
  }
  if (lpg_kind(type) == LPGEMM_KIND_CODEBOOK && bits > 1) {
    if (bits == 2) return decode_one<X, codebook_decoder, 2>(args, unit, pair);
    if (bits == 3) return decode_one<X, codebook_decoder, 3>(args, unit, pair);
    return decode_one<X, codebook_decoder, 4>(args, unit, pair);
  }
  switch (bits) {
    case 1: return decode_one<X, integer_decoder, 1>(args, unit, pair);
    case 2: return decode_one<X, integer_decoder, 2>(args, unit, pair);
    case 3: return decode_one<X, integer_decoder, 3>(args, unit, pair);
    case 4: return decode_one<X, integer_decoder, 4>(args, unit, pair);
    default: return decode_wide<X, integer_decoder>(bits, args, unit, pair);
  }
}

}  // namespace
}  // namespace lpg

extern "C" void decoded_pair(const lpg_plan *plan, lpgemm_dtype_t x_type, int wide, const uint32_t *unit, int pair,
                             double value[2]) {
  lpg_call call = {};
  call.problem.plan = plan;
  call.problem.x_type = x_type;
  lpg::decoder_args decoder = {};
  lpg::numbers_args numbers = {};
  wide ? lpg::set_wide_decoder(call, decoder, numbers) : lpg::set_decoder(call, true, decoder, numbers);
  const bool bf16 = x_type == LPGEMM_BF16;
  const lpgemm_dtype_t type = plan->desc.type;
  const uint32_t two = bf16 ? lpg::decode_any<lpg::bf16_x>(type, plan->bits, wide, decoder, unit, pair)
                            : lpg::decode_any<lpg::f16_x>(type, plan->bits, wide, decoder, unit, pair);
  for (int i = 0; i < 2; i++) {
    const uint16_t half = (uint16_t)(two >> 16 * i);
    value[i] = (double)numbers.factor * lpg_load(x_type, &half, 0) + numbers.fixed_shift;
  }
}

extern "C" void scaled_pair(int bits, int center, uint16_t scale, const uint32_t *unit, int pair, uint16_t value[2]) {
  lpg::decoder_args args = {};
  args.center = (float)center;
  const uint32_t two = lpg::both(scale);
  const uint32_t d = bits == 2   ? lpg::decode_scaled<2>(args, unit, pair, two)
                     : bits == 3 ? lpg::decode_scaled<3>(args, unit, pair, two)
                     : bits == 4 ? lpg::decode_scaled<4>(args, unit, pair, two)
                                 : lpg::decode_scaled<8>(args, unit, pair, two);
  value[0] = (uint16_t)d;
  value[1] = (uint16_t)(d >> 16);
}
