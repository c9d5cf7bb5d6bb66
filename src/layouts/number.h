/* Number formats: which there are, what value each code stands for, and rounding to them. For host and device. */
#ifndef LPG_LAYOUTS_NUMBER_H
#define LPG_LAYOUTS_NUMBER_H

#include <string.h>

#include "base.h"
#include "lpgemm.h"

/* Not constexpr: they copy bits between types. */
#if defined(__CUDACC__)
#define LPG_BITS_FN static __host__ __device__ inline
#else
#define LPG_BITS_FN static inline
#endif

/* ---- formats ---- */

LPG_FN int lpg_kind(lpgemm_dtype_t t) { return (int)(t >> 16); }
LPG_FN int lpg_exponent_bits(lpgemm_dtype_t t) { return (int)(t >> 8 & 0xff); }
LPG_FN int lpg_low_field(lpgemm_dtype_t t) { return (int)(t & 0xff); } /* mantissa bits, or the width of an integer */

LPG_FN int lpg_is_integer_kind(lpgemm_dtype_t t) {
  return lpg_kind(t) >= LPGEMM_KIND_UINT && lpg_kind(t) <= LPGEMM_KIND_BIPOLAR;
}

/* Bits of a number; 0 if t is no format. */
LPG_FN int lpg_bits(lpgemm_dtype_t t) {
  int e = lpg_exponent_bits(t), low = lpg_low_field(t);
  switch (lpg_kind(t)) {
    case LPGEMM_KIND_UINT: return e == 0 && ((low >= 1 && low <= 8) || low == 16) ? low : 0;
    case LPGEMM_KIND_INT: return e == 0 && ((low >= 2 && low <= 8) || low == 32) ? low : 0;
    case LPGEMM_KIND_BIPOLAR: return e == 0 && low >= 1 && low <= 8 ? low : 0;
    case LPGEMM_KIND_CODEBOOK: return e == 0 && low >= 1 && low <= 4 ? low : 0;
    case LPGEMM_KIND_FLOAT: return e >= 1 && 1 + e + low >= 3 && 1 + e + low <= 8 ? 1 + e + low : 0;
    case LPGEMM_KIND_REAL: return t == LPGEMM_F16 || t == LPGEMM_BF16 ? 16 : t == LPGEMM_F32 ? 32 : 0;
    case LPGEMM_KIND_SCALE: return t == LPGEMM_E8M0 ? 8 : 0;
    default: return 0;
  }
}

/* Bytes of a number in an array of the API, where every code takes a byte of its own. */
LPG_FN int lpg_bytes(lpgemm_dtype_t t) { return (lpg_bits(t) + 7) / 8; }

LPG_FN int lpg_is_weight_type(lpgemm_dtype_t t) {
  return lpg_kind(t) >= LPGEMM_KIND_UINT && lpg_kind(t) <= LPGEMM_KIND_FLOAT && lpg_bits(t) >= 1 && lpg_bits(t) <= 8;
}

LPG_FN int lpg_is_real(lpgemm_dtype_t t) { return t == LPGEMM_F16 || t == LPGEMM_BF16 || t == LPGEMM_F32; }

LPG_FN int lpg_is_x_type(lpgemm_dtype_t t) {
  return lpg_is_real(t) || t == LPGEMM_E4M3 || t == LPGEMM_E5M2 ||
         (lpg_is_integer_kind(t) && lpg_bits(t) >= 1 && lpg_bits(t) <= 8);
}

/* What X of 16 or 32 bits may be quantised to. */
LPG_FN int lpg_is_quantized_x(lpgemm_dtype_t t) { return lpg_is_x_type(t) && !lpg_is_real(t) && t != LPGEMM_E5M2; }

LPG_FN int lpg_is_y_type(lpgemm_dtype_t t) { return lpg_is_real(t) || t == LPGEMM_I32; }

/* ---- stored codes ----
 *
 * The packed form stores a code as it came in, but two's complement as offset binary (top bit inverted), so that
 * integers of one width share a dequantiser: value = step * stored + offset. */

LPG_FN uint32_t lpg_stored_flip(lpgemm_dtype_t t) {
  return lpg_kind(t) == LPGEMM_KIND_INT ? 1u << (lpg_bits(t) - 1) : 0u;
}
LPG_FN int lpg_integer_step(lpgemm_dtype_t t) { return lpg_kind(t) == LPGEMM_KIND_BIPOLAR ? 2 : 1; }
LPG_FN int lpg_integer_offset(lpgemm_dtype_t t) {
  return lpg_kind(t) == LPGEMM_KIND_INT       ? -(1 << (lpg_bits(t) - 1))
         : lpg_kind(t) == LPGEMM_KIND_BIPOLAR ? 1 - (1 << lpg_bits(t))
                                              : 0;
}

/* ---- bits of fp32 and fp64 ---- */

LPG_BITS_FN uint32_t lpg_f32_bits(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

LPG_BITS_FN float lpg_bits_f32(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

LPG_BITS_FN uint64_t lpg_f64_bits(double x) {
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

LPG_BITS_FN double lpg_bits_f64(uint64_t u) {
  double x;
  memcpy(&x, &u, sizeof x);
  return x;
}

/* 2^e for e in [-126, 127]. */
LPG_BITS_FN float lpg_exp2i(int e) { return lpg_bits_f32((uint32_t)(e + 127) << 23); }

/* ---- values ---- */

/* sign, exponent, mantissa -> value; every format of up to 8 exponent and 23 mantissa bits is exact in fp32. Exponents
 * of all ones mean infinity and NaN only if `ieee`. */
LPG_BITS_FN float lpg_float_value(uint32_t code, int ebits, int mbits, int ieee) {
  uint32_t sign = code >> (ebits + mbits) & 1u;
  uint32_t e = code >> mbits & ((1u << ebits) - 1u);
  uint32_t m = code & ((1u << mbits) - 1u);
  int bias = (1 << (ebits - 1)) - 1;
  float value;
  if (ieee && e == (1u << ebits) - 1u) {
    value = lpg_bits_f32(m ? 0x7fc00000u : 0x7f800000u);
  } else if (e == 0) {
    value = bias - 1 + mbits > 126 ? (float)m * lpg_exp2i(-mbits) * lpg_exp2i(1 - bias)
                                   : (float)m * lpg_exp2i(1 - bias - mbits);
  } else {
    value = lpg_bits_f32((uint32_t)((int)e - bias + 127) << 23 | m << (23 - mbits));
  }
  return sign ? -value : value;
}

LPG_BITS_FN float lpg_f16_to_f32(uint16_t h) {
  uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;
  if (magnitude >= 0x7c00u << 13) return lpg_bits_f32(sign | magnitude | 0x7f800000u);
  if (magnitude < 0x0400u << 13) { /* subnormal: exact as an integer times 2^-24 */
    float value = (float)(h & 0x7fff) * 5.9604644775390625e-8f;
    return sign ? -value : value;
  }
  return lpg_bits_f32(sign | (magnitude + (112u << 23)));
}

LPG_BITS_FN float lpg_bf16_to_f32(uint16_t h) { return lpg_bits_f32((uint32_t)h << 16); }

LPG_BITS_FN float lpg_e8m0_to_f32(uint8_t code) {
  if (code == 255) return lpg_bits_f32(0x7fc00000u);
  return code == 0 ? lpg_bits_f32(0x00400000u) : lpg_bits_f32((uint32_t)code << 23);
}

/* The value of a weight code (or of a one-byte activation or scale code); codebook may be NULL for other types. */
LPG_BITS_FN float lpg_code_value(lpgemm_dtype_t t, uint32_t code, const float *codebook) {
  int bits = lpg_bits(t);
  switch (lpg_kind(t)) {
    case LPGEMM_KIND_UINT: return (float)code;
    case LPGEMM_KIND_INT: return (float)((int)(code ^ 1u << (bits - 1)) - (1 << (bits - 1)));
    case LPGEMM_KIND_BIPOLAR: return (float)(2 * (int)code - ((1 << bits) - 1));
    case LPGEMM_KIND_CODEBOOK: return codebook ? codebook[code] : 0.0f;
    case LPGEMM_KIND_SCALE: return lpg_e8m0_to_f32((uint8_t)code);
    default:
      if (t == LPGEMM_E4M3 && (code & 0x7fu) == 0x7fu) return lpg_bits_f32(0x7fc00000u | (code & 0x80u) << 24);
      return lpg_float_value(code, lpg_exponent_bits(t), lpg_low_field(t), t == LPGEMM_E5M2);
  }
}

/* Element i of an array of the API. INT narrower than 8 bits may come sign-extended: its upper bits are ignored. */
LPG_BITS_FN float lpg_load(lpgemm_dtype_t t, const void *array, int64_t i) {
  switch (t) {
    case LPGEMM_F32: return ((const float *)array)[i];
    case LPGEMM_F16: return lpg_f16_to_f32(((const uint16_t *)array)[i]);
    case LPGEMM_BF16: return lpg_bf16_to_f32(((const uint16_t *)array)[i]);
    case LPGEMM_U16: return (float)((const uint16_t *)array)[i];
    default: return lpg_code_value(t, ((const uint8_t *)array)[i] & ((1u << lpg_bits(t)) - 1u), NULL);
  }
}

/* ---- rounding ---- */

/* Rounds to nearest even in a format of sign, ebits, mbits with IEEE infinities; overflow gives infinity. */
LPG_BITS_FN uint32_t lpg_round_float(double x, int ebits, int mbits) {
  uint64_t u = lpg_f64_bits(x);
  uint32_t sign = (uint32_t)(u >> 63) << (ebits + mbits);
  uint32_t infinity = ((1u << ebits) - 1u) << mbits;
  int e = (int)(u >> 52 & 0x7ff) - 1023;
  uint64_t m = u & 0xfffffffffffffULL;
  if (e == 1024) return sign | infinity | (m ? 1u << (mbits - 1) : 0u);
  if (e == -1023) return sign; /* fp64 subnormals are far below every format here */
  m |= 1ULL << 52;
  int bias = (1 << (ebits - 1)) - 1;
  int shift = 52 - mbits;
  if (e < 1 - bias) shift += 1 - bias - e; /* subnormal in the target */
  if (shift > 54) return sign;
  uint64_t kept = m >> shift, rest = m & ((1ULL << shift) - 1), half = 1ULL << (shift - 1);
  kept += rest > half || (rest == half && (kept & 1));
  uint64_t code = e < 1 - bias ? kept : ((uint64_t)(e + bias) << mbits) + kept - (1ULL << mbits);
  return sign | (code >= infinity ? infinity : (uint32_t)code);
}

LPG_BITS_FN uint16_t lpg_f64_to_f16(double x) { return (uint16_t)lpg_round_float(x, 5, 10); }
LPG_BITS_FN uint16_t lpg_f64_to_bf16(double x) { return (uint16_t)lpg_round_float(x, 8, 7); }

LPG_BITS_FN uint16_t lpg_f32_to_bf16(float x) {
  uint32_t u = lpg_f32_bits(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40u);
  return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

/* Stores x, rounded once, as element i of an array of F32, F16 or BF16. */
LPG_BITS_FN void lpg_store_f64(lpgemm_dtype_t t, void *array, int64_t i, double x) {
  if (t == LPGEMM_F32) {
    ((float *)array)[i] = (float)x;
  } else {
    ((uint16_t *)array)[i] = t == LPGEMM_F16 ? lpg_f64_to_f16(x) : lpg_f64_to_bf16(x);
  }
}

/* ---- exact value of a weight ---- */

/* hi + lo, |lo| at most half a unit of hi. */
typedef struct lpg_wide {
  double hi, lo;
} lpg_wide;

LPG_BITS_FN lpg_wide lpg_wide_add(double a, double b) {
  lpg_wide s;
  s.hi = a + b;
  double bb = s.hi - a;
  s.lo = (a - (s.hi - bb)) + (b - bb);
  return s;
}

/* Times an fp32 number: both partial products are exact. */
LPG_BITS_FN lpg_wide lpg_wide_times(lpg_wide a, float b) {
  double top = (double)(float)a.hi;
  if (!(top - top == 0.0)) top = a.hi; /* beyond fp32: give up the second half */
  lpg_wide p = lpg_wide_add(top * (double)b, (a.hi - top) * (double)b);
  if (!(p.hi - p.hi == 0.0)) {
    p.hi = a.hi * (double)b;
    p.lo = 0.0;
    return p;
  }
  return lpg_wide_add(p.hi, p.lo + a.lo * (double)b);
}

LPG_BITS_FN lpg_wide lpg_wide_plus(lpg_wide a, lpg_wide b) {
  lpg_wide s = lpg_wide_add(a.hi, b.hi);
  if (!(s.hi - s.hi == 0.0)) return s; /* not finite: its rest is no number */
  return lpg_wide_add(s.hi, s.lo + a.lo + b.lo);
}

/* To odd: an fp64 that rounds to any narrower format as hi + lo would. */
LPG_BITS_FN double lpg_wide_to_odd(lpg_wide a) {
  uint64_t u = lpg_f64_bits(a.hi);
  if (a.lo == 0.0 || !(a.hi - a.hi == 0.0) || !(a.lo == a.lo)) return a.hi;
  if ((a.lo < 0.0) != (a.hi < 0.0)) u -= 1;
  return lpg_bits_f64(u | 1u);
}

#endif
