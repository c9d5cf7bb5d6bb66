/* From stored codes of integers to their values. */
#ifndef LPG_KERNELS_INTEGER_LINE_H
#define LPG_KERNELS_INTEGER_LINE_H

#include "../../internal.h"

/* value = step * image's number + offset, without a zero. */
typedef struct lpg_integer_line {
  int32_t step, offset;
} lpg_integer_line;

/* Of weights as they are stored. */
static inline lpg_integer_line lpg_weight_line(lpgemm_dtype_t type, int bytes) {
  lpg_integer_line l;
  l.step = lpg_integer_step(type);
  l.offset = lpg_integer_offset(type) + (bytes && lpg_bits(type) == 8 ? 128 * l.step : 0);
  return l;
}

/* Of activations: two's complement is the number itself as a byte, offset binary as planes. */
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
