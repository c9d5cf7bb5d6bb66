/* gemm8: what weights become in gemm8_units.cuh: 8-bit operands of the int8 or e4m3 tensor cores.
 *
 * Each class makes one register, four bytes of 16 k of a row, in the order of lpg_bit_planes_weight_bytes(). The
 * weight of a byte that is 1 is gemm8_bytes_args::unit. */
#pragma once

#include "../operand/bit_planes.h"
#include "gemm8_frame.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct i8_products {
  using accumulator = int;
  static constexpr bool by_e4m3 = false;
  template <bool Adds>
  using product = wgmma_i8_in<Adds>;
};

struct e4m3_products {
  using accumulator = float;
  static constexpr bool by_e4m3 = true;
  template <bool Adds>
  using product = wgmma_e4m3_in<Adds>;
};

/* Codes as bytes; the bits above the codes are undefined. */
template <int Bits>
__device__ inline uint32_t low_bits(const uint32_t *word, int step) {
  if constexpr (lpg_is_pow2_width(Bits)) return word[step * Bits / 8 * 2] >> step * Bits % 8;
  return lpg_bit_planes_weight_bytes(Bits, word, 2, step);
}

/* Codes as bytes with the top bit set. and_or() takes one constant of the instruction; the others are in registers. */
template <int Bits>
__device__ inline uint32_t codes_with_top_bit(const uint32_t *word, int step) {
  return and_or(low_bits<Bits>(word, step), ((1u << Bits) - 1) * 0x01010101u, 0x80808080u);
}

/* Code less the middle of the codes, times 2^(8 - Bits), as int8. */
template <int Bits_>
struct centered_i8 : i8_products {
  static_assert(lpg_gemm8_has_centered(Bits_), "codes of 4 or 8 bits");
  static constexpr int Bits = Bits_;
  static constexpr bool zeros = false;

  __device__ static uint32_t bytes(const uint32_t *word, int step, uint32_t, const gemm8_bytes_args &) {
    const uint32_t low = word[step * Bits / 8 * 2], codes = Bits == 4 && step % 2 == 0 ? low << 4 : low;
    return and_xor(codes, Bits == 4 ? 0xf0f0f0f0u : ~0u, 0x80808080u);
  }
};

/* Code of at most 7 bits less a zero from 0 to 128, as int8. With the top bits set no byte borrows from the next. */
template <int Bits_>
struct less_zero_i8 : i8_products {
  static constexpr int Bits = Bits_;
  static constexpr bool zeros = true;

  __device__ static uint32_t bytes(const uint32_t *word, int step, uint32_t zero, const gemm8_bytes_args &) {
    return (codes_with_top_bit<Bits>(word, step) - zero) ^ 0x80808080u;
  }
};

/* Code of at most 4 bits less a zero from 0 to 16, times 2^-9, as e4m3: the bits of an integer from 0 to 16 are,
 * read as e4m3, that many times 2^-9; the top bit is the sign. */
template <int Bits_>
struct less_zero_e4m3 : e4m3_products {
  static_assert(Bits_ <= 4, "less a zero they would not be exact");
  static constexpr int Bits = Bits_;
  static constexpr bool zeros = true;

  __device__ static uint32_t bytes(const uint32_t *word, int step, uint32_t zero, const gemm8_bytes_args &) {
    const uint32_t codes = codes_with_top_bit<Bits>(word, step), top = 0x80808080u;
    return __vabsdiffu4(codes, zero | top) | (~(codes - zero) & top);
  }
};

/* The same for codes of 4 bits whose zero is in the middle. */
struct centered_e4m3 : e4m3_products {
  static constexpr int Bits = 4;
  static constexpr bool zeros = false;

  __device__ static uint32_t bytes(const uint32_t *word, int step, uint32_t, const gemm8_bytes_args &) {
    const uint32_t two = word[step / 2 * 2], low = step % 2 ? two >> 4 : two, top = step % 2 ? two : two << 4;
    return __vabsdiffu4(low & 0x0f0f0f0fu, 0x08080808u) | (~top & 0x80808080u);
  }
};

/* Floats whose exponent and mantissa fit in e4m3, times a power of two: their bits move to e4m3's fields. */
template <int Bits_>
struct float_e4m3 : e4m3_products {
  static constexpr int Bits = Bits_;
  static constexpr bool zeros = false;

  __device__ static uint32_t bytes(const uint32_t *word, int step, uint32_t, const gemm8_bytes_args &a) {
    const uint32_t codes = Bits == 6 ? low_bits<6>(word, step) : word[step * Bits / 8 * 2];
    if (Bits == 8) return codes;
    const bool is_high = Bits == 4 && step % 2; /* the high half of each byte */
    const uint32_t rest = is_high ? codes >> (4 - a.float_up) : codes << a.float_up;
    return and_or(rest, a.float_mask, (is_high ? codes : codes << (8 - Bits)) & 0x80808080u);
  }
};

}  // namespace
}  // namespace lpg
