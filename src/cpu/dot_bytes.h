/* What the kernel dot (dot.c) takes: X and weights whose values are bytes. */
#ifndef LPG_CPU_DOT_BYTES_H
#define LPG_CPU_DOT_BYTES_H

#include <math.h>

#include "../layouts/packed.h"

enum { LPG_DOT_MOST_K = 1 << 20, LPG_DOT_MOST_EXACT_K = 1 << 18 }; /* so that the handle's memory holds a row of X */

/* X whose values are signed bytes as they lie; BIPOLAR of 8 bits is not, nor is UINT. */
static inline int lpg_is_bytes(lpgemm_dtype_t type) {
  const int bits = lpg_bits(type);
  switch (lpg_kind(type)) {
    case LPGEMM_KIND_INT: return bits <= 8;
    case LPGEMM_KIND_UINT:
    case LPGEMM_KIND_BIPOLAR: return bits <= 7;
    default: return 0;
  }
}

enum { LPG_DOT_DIGITS = 3 };

/* How a code becomes bytes: value = step * (byte + 256^-1 byte' + ...) + offset, where bytes are entries of tables, or
 * the one byte is the code itself. Several bytes are digits of a signed number, each plus 128. */
typedef struct lpg_dot_bytes {
  int bits; /* that a byte needs */
  int has_table, digits;
  uint8_t table[LPG_DOT_DIGITS][16];
  float step, offset;
} lpg_dot_bytes;

/* One byte each, without any loss: all values are multiples of a power of two. */
static inline int lpg_find_one_byte(const float *value, int codes, float low, float high, lpg_dot_bytes *b) {
  int exponent; /* of the finest unit with which the values fit a byte */
  if (frexpf((high - low) / 255.0f, &exponent) == 0.5f) exponent--; /* they fill it */
  const float unit = ldexpf(1.0f, exponent);
  int most = 0, all = 0, shift = 0;
  for (int i = 0; i < codes; i++) {
    const float v = value[i] / unit, byte = v - low / unit;
    if (v != floorf(v) || byte > 255.0f || fabsf(v) > 16384.0f) return 0;
    b->table[0][i] = (uint8_t)byte;
    most = (int)byte > most ? (int)byte : most;
    all |= (int)byte;
  }
  /* A power of two that divides all of them goes into the step: fewer bits are left. */
  while (all != 0 && !(all >> shift & 1)) shift++;
  for (int i = 0; i < codes; i++) b->table[0][i] = (uint8_t)(b->table[0][i] >> shift);
  for (b->bits = 1; most >> shift >= 1 << b->bits; b->bits++) {
  }
  b->step = unit * (float)(1 << shift);
  b->offset = low;
  b->digits = 1;
  return 1;
}

/* Whether all values, as multiples of a unit, lose no more than so much of themselves. */
static inline int lpg_is_near(const float *value, int codes, double unit, double loses) {
  for (int i = 0; i < codes; i++) {
    if (fabs((double)value[i] - rint((double)value[i] / unit) * unit) > loses * fabs((double)value[i])) return 0;
  }
  return 1;
}

/* Two or three digits, as few as the loss permits. The unit is an fp32 number. */
static inline int lpg_find_digits(const float *value, int codes, float largest, double loses, lpg_dot_bytes *b) {
  enum { TRIES = 64 };
  static const int most[] = {0x7f7f, 0x7f7f7f}; /* 127 in all digits */
  for (int i = 0; i < 2 * TRIES; i++) {
    const int units = most[i / TRIES] - i % TRIES;
    const float unit = largest / (float)units;
    if (!lpg_is_near(value, codes, (double)unit, loses)) continue;
    b->digits = 2 + i / TRIES;
    for (int code = 0; code < codes; code++) {
      int32_t left = (int32_t)rint((double)value[code] / (double)unit);
      for (int d = b->digits - 1; d >= 0; d--) {
        const int32_t byte = (left + 128) & 255;
        b->table[d][code] = (uint8_t)byte;
        left = (left + 128 - byte) / 256;
      }
    }
    b->bits = 8;
    b->step = unit * (b->digits == 2 ? 256.0f : 65536.0f);
    b->offset = -128.0f * b->step;
    return 1;
  }
  return 0;
}

/* What values may lose of themselves: a quarter of the bound of EXACT; half of it by FAST, since no digits of X lose a
 * quarter there. */
static inline double lpg_dot_loses(int64_t k, int is_fast) {
  return is_fast ? fmin((double)k * 0x1p-24, 0x1p-12) : fmin((double)k * 0x1p-25, 0x1p-14);
}

/* Finds bytes for the values of a type; 0: there are none. Codebooks and floats have up to 16 codes. */
static inline int lpg_find_bytes(const lpgemm_weight_desc_t *d, int is_fast, lpg_dot_bytes *b) {
  const int bits = lpg_bits(d->type), codes = 1 << bits;
  *b = (lpg_dot_bytes){.bits = bits, .digits = 1};
  if (lpg_is_integer_kind(d->type)) {
    b->step = (float)lpg_integer_step(d->type);
    b->offset = (float)lpg_integer_offset(d->type);
    return 1;
  }
  if (codes > 16) return 0;
  float value[16], low = 0.0f, high = 0.0f;
  for (int i = 0; i < codes; i++) {
    value[i] = lpg_code_value(d->type, (uint32_t)i, d->codebook);
    if (!isfinite(value[i])) return 0;
    low = i == 0 ? value[i] : fminf(low, value[i]);
    high = i == 0 ? value[i] : fmaxf(high, value[i]);
  }
  if (!(high - low > 0x1p-60f && high - low < 0x1p60f)) return 0;
  b->has_table = 1;
  if (lpg_find_one_byte(value, codes, low, high, b)) return 1;
  if (d->zero != LPGEMM_ZERO_NONE && !(d->zero == LPGEMM_ZERO_CONSTANT && d->zero_constant == 0.0f)) return 0;
  return lpg_find_digits(value, codes, fmaxf(high, -low), lpg_dot_loses(d->k, is_fast), b);
}

#endif
