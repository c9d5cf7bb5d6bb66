/* The dequantisers of src/kernels/dequantiser.cuh on the host, as plain functions for test_dequantisers.c. */
#include "dequantisers.h"

#include "kernels/gemm/gemm_plan.h"
#include "kernels/operand/operand_args.cuh"

namespace lpg {
namespace {

template <class Dequantiser>
constexpr bool has_bias = false;
template <class X, int Bits>
constexpr bool has_bias<integer_dequantiser<X, Bits>> = !integer_dequantiser<X, Bits>::splits_top;

/* With a center set by its bias, where there is that way, the result must be the same; else it is made a wrong one. */
template <class X, template <class, int> class Dequantiser, int Bits>
uint32_t decode_one(const dequantiser_args &args, const uint32_t *unit, int pair) {
  using D = Dequantiser<X, Bits>;
  constexpr int table_bytes = D::table_bytes ? D::table_bytes : 1;
  static uint8_t table[table_bytes] alignas(16);
  D::fill_table(args, table, 0, 1);
  const D dequantiser(args, table, 7);
  typename D::rows rows = {};
  D::set_center(rows, X::round(args.center));
  const uint32_t two = dequantiser.decode(rows, unit, pair);
  if constexpr (has_bias<D>) {
    D::set_bias(rows, D::bias_of(lpg_f32_bits(0x1p23f + args.center)));
    if (dequantiser.decode(rows, unit, pair) != two) return ~two;
  }
  return two;
}

template <class X, template <class, int> class Dequantiser>
uint32_t decode_wide(int bits, const dequantiser_args &args, const uint32_t *unit, int pair) {
  switch (bits) {
    case 5: return decode_one<X, Dequantiser, 5>(args, unit, pair);
    case 6: return decode_one<X, Dequantiser, 6>(args, unit, pair);
    case 7: return decode_one<X, Dequantiser, 7>(args, unit, pair);
    default: return decode_one<X, Dequantiser, 8>(args, unit, pair);
  }
}

template <int Bits>
uint32_t decode_scaled(const dequantiser_args &args, const uint32_t *unit, int pair, uint32_t scale) {
  const scaled_dequantiser<Bits> dequantiser(args);
  typename scaled_dequantiser<Bits>::rows rows = {};
  dequantiser.set_scale(rows, scale);
  return dequantiser.decode(rows, unit, pair);
}

/* wide: whether the wide kernels' own dequantiser of the type is asked for, if they have one. */
template <class X>
uint32_t decode_any(lpgemm_dtype_t type, int bits, bool wide, const dequantiser_args &args, const uint32_t *unit,
                    int pair) {
  if (lpg_kind(type) == LPGEMM_KIND_FLOAT) {
    if (wide && type == LPGEMM_E4M3) return decode_one<X, e4m3_dequantiser, 8>(args, unit, pair);
    if constexpr (X::exponent == 8) {
      if (wide && bits == 4) return decode_one<X, field_dequantiser, 4>(args, unit, pair);
      if (wide && bits == 6) return decode_one<X, field_dequantiser, 6>(args, unit, pair);
    }
    if constexpr (has_halved<float_dequantiser<X, 6>> && has_halved<float_dequantiser<X, 7>>) {
      const bool halved = lpg_is_halved(type, LPGEMM_F16);
      if (halved && bits == 6) return decode_one<X, halved_dequantiser, 6>(args, unit, pair);
      if (halved && bits == 7) return decode_one<X, halved_dequantiser, 7>(args, unit, pair);
    }
    if (!wide && type == LPGEMM_FLOAT(2, 1)) return decode_one<X, e2m1_dequantiser, 4>(args, unit, pair);
    if (bits == 3) return decode_one<X, float_dequantiser, 3>(args, unit, pair);
    if (bits == 4) return decode_one<X, float_dequantiser, 4>(args, unit, pair);
    return decode_wide<X, float_dequantiser>(bits, args, unit, pair);
  }
  if (lpg_kind(type) == LPGEMM_KIND_CODEBOOK && bits > 1) {
    if (bits == 2) return decode_one<X, codebook_dequantiser, 2>(args, unit, pair);
    if (bits == 3) return decode_one<X, codebook_dequantiser, 3>(args, unit, pair);
    return decode_one<X, codebook_dequantiser, 4>(args, unit, pair);
  }
  switch (bits) {
    case 1: return decode_one<X, integer_dequantiser, 1>(args, unit, pair);
    case 2: return decode_one<X, integer_dequantiser, 2>(args, unit, pair);
    case 3: return decode_one<X, integer_dequantiser, 3>(args, unit, pair);
    case 4: return decode_one<X, integer_dequantiser, 4>(args, unit, pair);
    default: return decode_wide<X, integer_dequantiser>(bits, args, unit, pair);
  }
}

}  // namespace
}  // namespace lpg

extern "C" void decoded_pair(const lpg_packed *packed, lpgemm_dtype_t x_type, int wide, const uint32_t *unit, int pair,
                             double value[2]) {
  lpg_call call = {};
  call.problem.weights = packed;
  call.problem.x_type = x_type;
  lpg::dequantiser_args dequantiser = {};
  lpg::scales_args numbers = {};
  wide ? lpg::set_gemm_dequantiser(call, dequantiser, numbers) : lpg::set_dequantiser(call, true, dequantiser, numbers);
  const bool bf16 = x_type == LPGEMM_BF16;
  const lpgemm_dtype_t type = packed->desc.type;
  const uint32_t two = bf16 ? lpg::decode_any<lpg::bf16_x>(type, packed->bits, wide, dequantiser, unit, pair)
                            : lpg::decode_any<lpg::f16_x>(type, packed->bits, wide, dequantiser, unit, pair);
  const bool in_fields = wide && bf16 && type != LPGEMM_E4M3;
  const double factor = in_fields ? ldexp(1.0, lpg_gemm_field_power(lpg_exponent_bits(type))) : numbers.factor;
  for (int i = 0; i < 2; i++) {
    const uint16_t half = (uint16_t)(two >> 16 * i);
    value[i] = factor * lpg_load(x_type, &half, 0) + numbers.fixed_shift;
  }
}

extern "C" void scaled_pair(int bits, int center, uint16_t scale, const uint32_t *unit, int pair, uint16_t value[2]) {
  lpg::dequantiser_args args = {};
  args.center = (float)center;
  const uint32_t two = lpg::both(scale);
  const uint32_t d = bits == 2   ? lpg::decode_scaled<2>(args, unit, pair, two)
                     : bits == 3 ? lpg::decode_scaled<3>(args, unit, pair, two)
                     : bits == 4 ? lpg::decode_scaled<4>(args, unit, pair, two)
                                 : lpg::decode_scaled<8>(args, unit, pair, two);
  value[0] = (uint16_t)d;
  value[1] = (uint16_t)(d >> 16);
}
