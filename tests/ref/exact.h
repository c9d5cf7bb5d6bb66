/* Exact real arithmetic for tests: a fixed-point number with 512 bits on either side of the point, wide enough for
 * products of any three fp32 numbers and for their sums. Rounded once, at the end. */
#ifndef TEST_EXACT_H
#define TEST_EXACT_H

#include <stdint.h>

enum { EXACT_LIMBS = 32, EXACT_POINT = 512 };

typedef struct exact {
  int negative;
  uint32_t limb[EXACT_LIMBS]; /* lowest first; bit i stands for 2^(i - 512) */
} exact;

exact exact_of(float finite);
exact exact_add(exact a, exact b);
exact exact_times(exact a, float finite);

/* About as much, for messages. */
double exact_double(exact a);

/* Rounded to nearest even in an IEEE format: the code's bits. */
uint32_t exact_round(exact a, int exponent_bits, int mantissa_bits);

#endif
