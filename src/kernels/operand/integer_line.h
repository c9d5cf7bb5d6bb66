/* Integers as linear functions of the operand that an integer MMA takes: value = step * operand + offset, without the
 * zero. */
#ifndef LPG_KERNELS_INTEGER_LINE_H
#define LPG_KERNELS_INTEGER_LINE_H

#include "../../internal.h"

typedef struct lpg_integer_line {
  int32_t step, offset;
} lpg_integer_line;

/* Weights. bytes: the operand is a byte, else bit planes. A byte of 8-bit weights is code - 128, so that it fits
 * int8. */
static inline lpg_integer_line lpg_weight_line(lpgemm_dtype_t type, int bytes) {
  lpg_integer_line l;
  l.step = lpg_integer_step(type);
  l.offset = lpg_integer_offset(type) + (bytes && lpg_bits(type) == 8 ? 128 * l.step : 0);
  return l;
}

/* X. As bytes two's complement is the value itself, and other 8-bit codes are code - 128; as bit planes it is offset
 * binary. */
static inline lpg_integer_line lpg_x_line(lpgemm_dtype_t type, int bytes) {
  const int is_int = lpg_kind(type) == LPGEMM_KIND_INT;
  lpg_integer_line l;
  l.step = lpg_integer_step(type);
  l.offset = bytes && is_int                ? 0
             : bytes && lpg_bits(type) == 8 ? lpg_integer_offset(type) + 128 * l.step
                                            : lpg_integer_offset(type);
  return l;
}

#endif
