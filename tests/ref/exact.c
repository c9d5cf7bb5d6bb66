#include "exact.h"

#include <math.h>
#include <string.h>

/* a * factor * 2^shift, factor below 2^32. Bits that fall off either end would be a mistake of the test; no product of
 * three fp32 numbers comes near. */
static exact scaled(exact a, uint32_t factor, int shift) {
  exact r = {a.negative, {0}};
  uint32_t wide[EXACT_LIMBS + 1] = {0};
  uint64_t carry = 0;
  for (int i = 0; i < EXACT_LIMBS; i++) {
    carry += (uint64_t)a.limb[i] * factor;
    wide[i] = (uint32_t)carry;
    carry >>= 32;
  }
  wide[EXACT_LIMBS] = (uint32_t)carry;
  for (int i = 0; i <= EXACT_LIMBS; i++) {
    int at = 32 * i + shift;
    int limb = at >= 0 ? at / 32 : -((31 - at) / 32), bit = at - 32 * limb;
    uint64_t moved = (uint64_t)wide[i] << bit;
    if (limb >= 0 && limb < EXACT_LIMBS) r.limb[limb] |= (uint32_t)moved;
    if (limb + 1 >= 0 && limb + 1 < EXACT_LIMBS) r.limb[limb + 1] |= (uint32_t)(moved >> 32);
  }
  return r;
}

/* |x| = mantissa * 2^exponent */
static uint32_t split(float x, int *exponent) {
  double fraction = frexp(fabs((double)x), exponent);
  *exponent -= 24;
  return (uint32_t)ldexp(fraction, 24);
}

exact exact_times(exact a, float finite) {
  int exponent;
  uint32_t mantissa = split(finite, &exponent);
  exact r = scaled(a, mantissa, exponent);
  r.negative ^= signbit(finite) != 0;
  return r;
}

exact exact_of(float finite) {
  exact one = {0, {0}};
  one.limb[EXACT_POINT / 32] = 1;
  return exact_times(one, finite);
}

static int compare(const exact *a, const exact *b) {
  for (int i = EXACT_LIMBS - 1; i >= 0; i--) {
    if (a->limb[i] != b->limb[i]) return a->limb[i] < b->limb[i] ? -1 : 1;
  }
  return 0;
}

exact exact_add(exact a, exact b) {
  if (compare(&a, &b) < 0) {
    exact swap = a;
    a = b;
    b = swap;
  }
  int64_t carry = 0, sign = a.negative == b.negative ? 1 : -1;
  for (int i = 0; i < EXACT_LIMBS; i++) {
    carry += (int64_t)a.limb[i] + sign * (int64_t)b.limb[i];
    a.limb[i] = (uint32_t)(carry & 0xffffffff);
    carry = carry < 0 ? -1 : carry >> 32;
  }
  return a;
}

static int bit_at(const exact *a, int i) { return i < 0 ? 0 : (int)(a->limb[i / 32] >> (i % 32) & 1u); }

double exact_double(exact a) {
  double sum = 0.0;
  for (int i = 0; i < EXACT_LIMBS; i++) sum += ldexp((double)a.limb[i], 32 * i - EXACT_POINT);
  return a.negative ? -sum : sum;
}

uint32_t exact_round(exact a, int exponent_bits, int mantissa_bits) {
  uint32_t sign = (uint32_t)a.negative << (exponent_bits + mantissa_bits);
  int bias = (1 << (exponent_bits - 1)) - 1, top = 32 * EXACT_LIMBS - 1;
  while (top >= 0 && a.limb[top / 32] == 0) top -= 32;
  while (top >= 0 && !bit_at(&a, top)) top--;
  if (top < 0) return sign;
  int exponent = top - EXACT_POINT;
  int normal = exponent >= 1 - bias;
  int last = (normal ? exponent : 1 - bias) - mantissa_bits + EXACT_POINT; /* place of the last bit that is kept */
  uint64_t kept = 0;
  for (int i = top; i >= last; i--) kept = kept << 1 | (unsigned)bit_at(&a, i);
  int half = bit_at(&a, last - 1), rest = 0;
  for (int i = last - 2; half && i >= 0 && !rest; i--) rest = bit_at(&a, i);
  if (half && (rest || (kept & 1))) kept++;
  /* a carry out of the mantissa moves into the exponent by itself */
  uint64_t code = normal ? kept + ((uint64_t)(exponent + bias - 1) << mantissa_bits) : kept;
  uint64_t infinity = ((UINT64_C(1) << exponent_bits) - 1) << mantissa_bits;
  return sign | (uint32_t)(code < infinity ? code : infinity);
}
