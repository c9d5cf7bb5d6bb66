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

/* How a code becomes a byte: byte = table[code], or the code itself; value = step * byte + offset. */
typedef struct lpg_dot_bytes {
  int bits; /* that a byte needs */
  int has_table;
  uint8_t table[16];
  float step, offset;
} lpg_dot_bytes;

/* Finds bytes for the values of a type; 0: there are none. Values of codebooks and floats of up to 16 codes must be
 * multiples of a power of two. */
static inline int lpg_find_bytes(const lpgemm_weight_desc_t *d, lpg_dot_bytes *b) {
  const int bits = lpg_bits(d->type), codes = 1 << bits;
  *b = (lpg_dot_bytes){.bits = bits};
  if (lpg_is_integer_kind(d->type)) {
    b->step = (float)lpg_integer_step(d->type);
    b->offset = (float)lpg_integer_offset(d->type);
    return 1;
  }
  if (codes > 16) return 0;
  float low = 0.0f, high = 0.0f;
  for (int i = 0; i < codes; i++) {
    const float v = lpg_code_value(d->type, (uint32_t)i, d->codebook);
    if (!isfinite(v)) return 0;
    low = i == 0 ? v : fminf(low, v);
    high = i == 0 ? v : fmaxf(high, v);
  }
  if (!(high - low > 0x1p-60f && high - low < 0x1p60f)) return 0;
  int exponent; /* the finest unit with which the values fit a byte */
  (void)frexpf((high - low) / 255.0f, &exponent);
  const float unit = ldexpf(1.0f, exponent);
  int most = 0;
  for (int i = 0; i < codes; i++) {
    const float v = lpg_code_value(d->type, (uint32_t)i, d->codebook) / unit, byte = v - low / unit;
    if (v != floorf(v) || byte > 255.0f || fabsf(v) > 16384.0f) return 0;
    b->table[i] = (uint8_t)byte;
    most = (int)byte > most ? (int)byte : most;
  }
  /* A power of two that divides all of them goes into the step: fewer bits are left. */
  int shift = 0, all = 0;
  for (int i = 0; i < codes; i++) all |= b->table[i];
  while (all != 0 && !(all >> shift & 1)) shift++;
  for (int i = 0; i < codes; i++) b->table[i] = (uint8_t)(b->table[i] >> shift);
  for (b->bits = 1; most >> shift >= 1 << b->bits; b->bits++) {
  }
  b->step = unit * (float)(1 << shift);
  b->offset = low;
  b->has_table = 1;
  return 1;
}

#endif
