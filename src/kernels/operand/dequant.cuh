/* Dequantisers: turn pairs of codes in a lane's packed words into pairs of fp16 or bf16 values, in registers.
 *
 * Integers: the code is masked out where it lies and gets the exponent of 2^mantissa, so that it is the value
 * 2^mantissa + code * 2^place. One fma takes the power, the place and the centre away, exactly. Floats: sign, exponent
 * and mantissa are moved to X's fields. Then the exponent is off by the difference of the biases: with fp16 the factor
 * goes on the sums (tensor cores take fp16's subnormal numbers exactly), with bf16 it is multiplied in, or left to the
 * scales (field_dequantiser). Codebooks: a table of pairs in shared memory, one copy for each lane, so that lanes never
 * meet in a bank.
 *
 * The result is d; the weight is factor * d + rest. Factor and rest are set by the host (operand_args.cuh) and applied
 * to the sums. All of it runs on the host too: tests take every code of every type through it. */
#pragma once

#include "../../layouts/unit.h"
#include "../prim/logic.cuh"
#include "x_type.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* What sets a dequantiser up; passed by value in a kernel's arguments. */
struct dequantiser_args {
  float center;                     /* integers: d = stored - center */
  int exponent_bits, mantissa_bits; /* floats */
  int nan_code, nan_exponent;       /* e4m3: all ones is NaN; e5m2: the top exponent is infinity or NaN */
  uint16_t value[16];               /* codebooks: fp16 or bf16 values */
};

/* ---- integers ---- */

/* Where the code of a pair meets the exponent: its word is shifted right by `pre` (the same for many pairs), then the
 * code begins at bit `place` and lies within the mantissa. */
struct magic_place {
  int pre, place;
};

template <class X, int Bits>
LPG_FN magic_place magic_place_of(int shift) {
  constexpr int first = Bits == 6 ? 4 : Bits == 7 ? 2 : 0, fields = X::mantissa / Bits > 0 ? X::mantissa / Bits : 1;
  magic_place m = LPG_ZERO;
  if (X::mantissa == 10) {
    m.pre = shift + Bits <= 10 ? 0 : 8;
  } else {
    m.pre = (shift - first) / Bits < fields && shift + Bits <= X::mantissa
                ? 0
                : first + (shift - first) / Bits / fields * fields * Bits;
  }
  m.place = shift - m.pre;
  return m;
}

template <class X, int Bits>
struct integer_dequantiser {
  static constexpr int table_bytes = 0;
  static constexpr bool centered = true, has_nan = false,
                        splits_top = Bits > X::mantissa; /* 8 bits do not fit bf16's mantissa */
  struct rows {                                          /* constants of a row of the tile, in both halves of a word */
    uint32_t bias[X::mantissa];
  };

  uint32_t magic; /* 2^mantissa in both halves: its mantissa bits are free for a code */

  __host__ __device__ integer_dequantiser(const dequantiser_args &, const uint8_t *, int)
      : magic(in_register(power_pair<X>(X::mantissa))) {}
  __host__ __device__ static void fill_table(const dequantiser_args &, uint8_t *, int, int) {}

  /* Whether the code of any pair begins at bit `place`. */
  LPG_FN bool uses(int place) {
    bool used = !lpg_is_pow2_width(Bits) && place == 0; /* spliced pairs */
    for (int pair = 0; pair < lpg_unit_codes(Bits) / 2; pair++) {
      const lpg_field f = lpg_field_of(Bits, pair);
      if (f.word >= 0 && magic_place_of<X, Bits>(f.shift).place == place) used = true;
    }
    return used;
  }

  /* center: the same value in both halves. */
  __host__ __device__ static void set_center(rows &r, uint32_t center) {
    if constexpr (splits_top) {
      r.bias[0] = X::subtract(center, power_pair<X>(7));
    } else {
#pragma unroll
      for (int place = 0; place < X::mantissa; place++) {
        if (uses(place)) r.bias[place] = X::subtract(power_pair<X>(X::mantissa - place) | both(0x8000), center);
      }
    }
  }

  /* -2^mantissa - center in both halves, from the bits of the number 2^23 + center. */
  LPG_FN uint32_t bias_of(uint32_t center) {
    return center * 0x10001u - 0x4b000000u + (power_pair<X>(X::mantissa) | both(0x8000));
  }

  /* set_center() from that. What the others differ by is exact: 2^mantissa - 2^(mantissa - place). */
  __host__ __device__ static void set_bias(rows &r, uint32_t bias) {
    static_assert(!splits_top, "it has another bias");
#pragma unroll
    for (int place = 0; place < X::mantissa; place++) {
      if (!uses(place)) continue;
      const uint32_t less = (1u << X::mantissa) - (2u << (X::mantissa - place)); /* of the mantissa of 2^mantissa */
      const uint32_t step = place == 0 ? 0 : power_pair<X>(X::mantissa - 1) | both(less & ((1u << X::mantissa) - 1));
      r.bias[place] = place == 0 ? bias : X::subtract(bias, step | both(0x8000));
    }
  }

  __host__ __device__ uint32_t decode(const rows &r, const uint32_t *unit, int pair) const {
    const lpg_field f = lpg_field_of(Bits, pair);
    if (splits_top) { /* 128 + the low 7 bits, minus 256 or 128 by the top bit */
      const uint32_t word = unit[0] >> f.shift;
      const uint32_t low = and_or(word, both(0x7f), magic), top = (word & both(0x80)) ^ power_pair<X>(8);
      return X::subtract(X::subtract(low, top), r.bias[0]);
    }
    if (f.word < 0) return X::fma(lpg_unit_pair(Bits, unit, 2, pair) | magic, power_pair<X>(0), r.bias[0]);
    const magic_place m = magic_place_of<X, Bits>(f.shift);
    const uint32_t x = and_or(unit[2 * f.word] >> m.pre, lpg_half_masks(Bits) << m.place, magic);
    return X::fma(x, power_pair<X>(-m.place), r.bias[m.place]);
  }
};

/* The same for fp16 with the scale multiplied in: a code with exponent bits 0 is a subnormal number,
 * code * 2^(place - 24). One fma makes (stored - center) * scale of it, rounded once, if center * scale is exact. The
 * scale is passed times 2^24 (LPG_SCALED_POWER): a scale of at least 2^-14 loses nothing by that, a smaller one loses
 * what its products would lose below fp16's normal numbers anyway. */
enum { LPG_SCALED_POWER = 24 };

template <int Bits>
struct scaled_dequantiser {
  using integers = integer_dequantiser<f16_x, Bits>;
  struct rows {
    uint32_t scale[f16_x::mantissa], rest;
  };

  uint32_t center; /* -2^-24 * center, in both halves */

  __host__ __device__ scaled_dequantiser(const dequantiser_args &a)
      : center(f16_x::round(-ldexpf(a.center, -LPG_SCALED_POWER))) {}

  /* scale: the same value in both halves. */
  __host__ __device__ void set_scale(rows &r, uint32_t scale) const {
#pragma unroll
    for (int place = 0; place < f16_x::mantissa; place++) {
      if (integers::uses(place)) r.scale[place] = f16_x::multiply(scale, power_pair<f16_x>(-place));
    }
    r.rest = f16_x::multiply(scale, center);
  }

  __host__ __device__ static uint32_t decode(const rows &r, const uint32_t *unit, int pair) {
    const lpg_field f = lpg_field_of(Bits, pair);
    if (f.word < 0) return f16_x::fma(lpg_unit_pair(Bits, unit, 2, pair), r.scale[0], r.rest);
    const magic_place m = magic_place_of<f16_x, Bits>(f.shift);
    return f16_x::fma(unit[2 * f.word] >> m.pre & lpg_half_masks(Bits) << m.place, r.scale[m.place], r.rest);
  }
};

/* ---- floats ---- */

template <class X, int Bits>
struct float_dequantiser {
  static constexpr int table_bytes = 0;
  static constexpr bool centered = false, has_nan = Bits == 8;
  static constexpr int most_down = X::exponent - 1; /* the longest move down from the top: that of 1 exponent bit */
  struct rows {};

  uint32_t magnitude_mask, up, down, ratio;
  /* Only 8 bits: a code that is infinite or NaN carries into the bit above its exponent when `special` is added
   * (carry_bit); it then gets ones from that bit on up. */
  uint32_t special, carry_bit, ones;

  __host__ __device__ float_dequantiser(const dequantiser_args &a, const uint8_t *, int) {
    const int low = X::mantissa - a.mantissa_bits, bias = (1 << (a.exponent_bits - 1)) - 1;
    magnitude_mask = both(((1u << (Bits - 1)) - 1u) << low);
    down = X::exponent - a.exponent_bits;
    up = 1u << (most_down - down);
    ratio = power_pair<X>(X::bias - bias);
    special = a.nan_code ? both(1u << low) : a.nan_exponent && down > 0 ? both(1u << X::mantissa) : 0;
    carry_bit = both(1u << (X::mantissa + a.exponent_bits) % 16);
    ones = (1u << down) - 1u;
  }
  __host__ __device__ static void fill_table(const dequantiser_args &, uint8_t *, int, int) {}
  __host__ __device__ static void set_center(rows &, uint32_t) {}

  struct moved {
    uint32_t signs, magnitude; /* signs: only the top bits count */
  };

  /* The code at bit `shift` of each half: its sign goes to the top, exponent and mantissa to X's fields. */
  __host__ __device__ moved apart(uint32_t word, int shift) const {
    const int to_top = 16 - Bits - shift;
    const uint32_t signs = word << to_top;
    const uint32_t magnitude = to_top >= most_down ? word * (up << (to_top - most_down)) : signs >> down;
    return {signs, magnitude & magnitude_mask};
  }

  /* The code in X's fields, where its exponent has the bias that it has in the code. */
  __host__ __device__ uint32_t in_fields(uint32_t word, int shift) const {
    const moved m = apart(word, shift);
    uint32_t x = and_or(m.signs, both(0x8000), m.magnitude);
    if (Bits == 8) {
      const uint32_t carried = m.magnitude + special;
      x = X::exponent == 5 ? and_or(carried, carry_bit, x) : x | (carried & carry_bit) * ones; /* fp16: one bit more */
    }
    return x;
  }

  __host__ __device__ uint32_t move(uint32_t word, int shift) const {
    const uint32_t x = in_fields(word, shift);
    return X::exponent == 5 ? x : X::multiply(x, ratio);
  }

  __host__ __device__ uint32_t decode(const rows &, const uint32_t *unit, int pair) const {
    const lpg_field f = lpg_field_of(Bits, pair);
    return f.word < 0 ? move(lpg_unit_pair(Bits, unit, 2, pair), 0) : move(unit[2 * f.word], f.shift);
  }
};

/* The same for bf16 without the ratio: d is 2^-(128 - 2^(exponent bits - 1)) times the number. */
template <class X, int Bits>
struct field_dequantiser : float_dequantiser<X, Bits> {
  using base = float_dequantiser<X, Bits>;
  using base::base;

  __host__ __device__ uint32_t decode(const typename base::rows &, const uint32_t *unit, int pair) const {
    const lpg_field f = lpg_field_of(Bits, pair);
    return f.word < 0 ? base::in_fields(lpg_unit_pair(Bits, unit, 2, pair), 0)
                      : base::in_fields(unit[2 * f.word], f.shift);
  }
};

/* Floats whose halves fp16 holds (lpg_is_halved): d is half of the number. Where the exponent in fp16's field is 2 and
 * more, it becomes one less; below, the field and the mantissa are an integer times 2^-24, which is shifted. Either is
 * the larger of the two where it is right. The mantissa has 1 bit at most, so none is shifted out, or into the pair's
 * other number. */
template <class X, int Bits>
struct halved_dequantiser {
  static_assert(X::exponent == 5, "other types of X hold the numbers themselves");
  static constexpr int table_bytes = 0;
  static constexpr bool centered = false, has_nan = false;
  struct rows {};

  const float_dequantiser<X, Bits> fields;

  __host__ __device__ halved_dequantiser(const dequantiser_args &a, const uint8_t *table, int lane)
      : fields(a, table, lane) {}
  __host__ __device__ static void fill_table(const dequantiser_args &, uint8_t *, int, int) {}
  __host__ __device__ static void set_center(rows &, uint32_t) {}

  __host__ __device__ uint32_t decode(const rows &, const uint32_t *unit, int pair) const {
    const lpg_field f = lpg_field_of(Bits, pair);
    const auto whole =
        f.word < 0 ? fields.apart(lpg_unit_pair(Bits, unit, 2, pair), 0) : fields.apart(unit[2 * f.word], f.shift);
    const uint32_t less = both(0x10000 - (1 << X::mantissa)); /* 1 off the exponent */
    return and_or(whole.signs, both(0x8000), __viaddmax_s16x2(whole.magnitude, less, whole.magnitude >> 1));
  }
};

/* Whether types that share this dequantiser with others have a halved_dequantiser instead. */
template <class Dequantiser>
constexpr bool has_halved = false;
template <int Bits>
constexpr bool has_halved<float_dequantiser<f16_x, Bits>> = Bits == 6 || Bits == 7;

/* e2m1, whose sign and magnitude one multiplication moves: the sum of two shifted copies. Bits that fp16's copies share
 * carry into the sign of one code, -6; `less` takes 2^12 off each half against that. It makes 0 of the pair's even
 * number -0 and borrows from the odd one, which has 2^8 to spare. */
template <class X, int Bits>
struct e2m1_dequantiser {
  static_assert(Bits == 4, "e2m1 has 4 bits");
  static constexpr int table_bytes = 0;
  static constexpr bool centered = false, has_nan = false;
  static constexpr int down = X::exponent - 2;
  struct rows {};

  uint32_t less;

  __host__ __device__ e2m1_dequantiser(const dequantiser_args &, const uint8_t *, int)
      : less(X::exponent == 5 ? in_register(both(0xf000) + 0x00ff0000u) : 0) {}
  __host__ __device__ static void fill_table(const dequantiser_args &, uint8_t *, int, int) {}
  __host__ __device__ static void set_center(rows &, uint32_t) {}

  __host__ __device__ uint32_t decode(const rows &, const uint32_t *unit, int pair) const {
    constexpr uint32_t magnitude = both(7u << (X::mantissa - 1)), ratio = power_pair<X>(X::bias - 1);
    const lpg_field f = lpg_field_of(Bits, pair);
    const uint32_t word = unit[2 * f.word];
    if (X::exponent == 5 && f.shift == 12) return and_or(word, both(0x8000), word >> down & magnitude);
    const int pre = X::exponent == 8 && f.shift >= 8 ? 8 : 0, shift = f.shift - pre;
    const uint32_t code = word >> pre & both(15u << shift);
    const uint32_t x =
        (code * ((1u << (12 - shift)) + (1u << (12 - down - shift))) + less) & (both(0x8000) | magnitude);
    return X::exponent == 5 ? x : X::multiply(x, ratio);
  }
};

/* Whether types that share this dequantiser with others have an e2m1_dequantiser. */
template <class Dequantiser>
constexpr bool has_e2m1 = false;
template <class X>
constexpr bool has_e2m1<float_dequantiser<X, 4>> = true;

/* e4m3 by the conversion instruction (two bytes at once), for kernels of GPUs that have it. d is the value itself, NaN
 * included. */
template <class X, int Bits>
struct e4m3_dequantiser {
  static_assert(Bits == 8, "e4m3 has 8 bits");
  static constexpr int table_bytes = 0;
  static constexpr bool centered = false, has_nan = true;
  struct rows {};

  const float_dequantiser<X, Bits> fields; /* what the host uses instead */

  __host__ __device__ e4m3_dequantiser(const dequantiser_args &a, const uint8_t *table, int lane)
      : fields(a, table, lane) {}
  __host__ __device__ static void fill_table(const dequantiser_args &, uint8_t *, int, int) {}
  __host__ __device__ static void set_center(rows &, uint32_t) {}

  __host__ __device__ uint32_t decode(const rows &, const uint32_t *unit, int pair) const {
    const lpg_field f = lpg_field_of(Bits, pair);
    const uint32_t word = unit[2 * f.word];
#ifdef __CUDA_ARCH__
    const uint32_t in_pairs = __byte_perm(word, 0, 0x3120), values = e4m3_values(in_pairs, f.shift != 0);
    if (X::exponent == 5) return values;
    const float2 wide = __half22float2(f16_x::in(values));
    return X::round_two(wide.x, wide.y);
#else
    const uint32_t d = fields.move(word, f.shift);
    return X::exponent == 5 ? X::multiply(d, power_pair<X>(8)) : d;
#endif
  }
};

/* ---- codebooks ---- */

template <class X, int Bits>
struct codebook_dequantiser {
  static constexpr int entries = 1 << 2 * Bits, table_bytes = entries * 32 * 4;
  static constexpr bool centered = false, has_nan = false;
  struct rows {};

  static constexpr int down = 32 - 2 * Bits - 7; /* from the top of a word to an entry's number times 128 */
  const uint8_t *table;
  uint32_t lane_top; /* the lane's place in an entry, before it is moved down */

  __host__ __device__ codebook_dequantiser(const dequantiser_args &, const uint8_t *shared, int lane)
      : table(shared), lane_top((uint32_t)lane * 4 << down) {}

  __host__ __device__ static void fill_table(const dequantiser_args &a, uint8_t *shared, int thread, int threads) {
    for (int i = thread; i < entries * 32; i += threads) {
      const int even = i / 32 >> Bits, odd = i / 32 & ((1 << Bits) - 1);
      ((uint32_t *)shared)[i] = (uint32_t)a.value[even] | (uint32_t)a.value[odd] << 16;
    }
  }
  __host__ __device__ static void set_center(rows &, uint32_t) {}

  /* One multiplication moves both codes to the top of the word, the even one first, with the lane's place below them.
   * What it leaves farther down is moved out, so nothing is masked again: the pipe of logic and shifts is the bound. */
  __host__ __device__ uint32_t look_up(uint32_t word, int shift) const {
    const uint32_t codes = word & lpg_half_masks(Bits) << shift;
    const uint32_t top = codes * ((1u << (32 - Bits - shift)) + (1u << (16 - 2 * Bits - shift))) + lane_top;
    return *(const uint32_t *)(table + (top >> down));
  }

  __host__ __device__ uint32_t decode(const rows &, const uint32_t *unit, int pair) const {
    const lpg_field f = lpg_field_of(Bits, pair);
    if (f.word < 0) return look_up(lpg_unit_pair(Bits, unit, 2, pair), 0);
    const int pre = f.shift <= 16 - 2 * Bits ? 0 : 8;
    return look_up(unit[2 * f.word] >> pre, f.shift - pre);
  }
};

}  // namespace
}  // namespace lpg
