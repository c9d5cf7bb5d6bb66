/* Division by a number that the host knows before: a multiplication and a shift, where a kernel's own division is some
 * twenty instructions. */
#ifndef LPG_KERNELS_DIVISOR_H
#define LPG_KERNELS_DIVISOR_H

#include "../../internal.h"

/* n / d is n * factor >> shift, for any n below 2^31. */
typedef struct lpg_divisor {
  uint32_t factor;
  int32_t shift;
} lpg_divisor;

/* With 2^log2 >= d the factor, 2^(31 + log2) / d rounded up, is too large by less than 1, which n times is less than
 * 2^(31 + log2) / d: too little to reach the next quotient. */
static inline lpg_divisor lpg_divisor_of(int32_t d) {
  int32_t log2 = 0;
  while (((int64_t)1 << log2) < d) log2++;
  const uint64_t power = (uint64_t)1 << (31 + log2);
  const lpg_divisor divisor = {(uint32_t)((power + (uint32_t)d - 1) / (uint32_t)d), 31 + log2};
  return divisor;
}

LPG_FN int32_t lpg_quotient(int32_t n, lpg_divisor d) { return (int32_t)((uint64_t)(uint32_t)n * d.factor >> d.shift); }

#endif
