/* The stored code that weights are counted from, and what is left of their zero. */
#ifndef LPG_KERNELS_CENTER_H
#define LPG_KERNELS_CENTER_H

#include <math.h>

#include "../../internal.h"

/* weight = factor * (code - center) + rest, before scales. per_group: scale groups have zeros or minima of their own.
 */
typedef struct lpg_center {
  float code, factor, rest;
  int per_group;
} lpg_center;

/* A fixed zero takes the nearest code. A codebook of two is a line, counted from the value next to zero, so that
 * nothing cancels. */
static inline lpg_center lpg_center_of(const lpgemm_weight_desc_t *d) {
  lpg_center c = {0.0f, 1.0f, 0.0f, d->zero == LPGEMM_ZERO_PER_GROUP || d->zero == LPGEMM_ZERO_MINIMUM};
  const int bits = lpg_bits(d->type);
  if (lpg_is_integer_kind(d->type)) {
    const float offset = (float)lpg_integer_offset(d->type);
    const float zero = d->zero == LPGEMM_ZERO_CONSTANT ? d->zero_constant : 0.0f;
    c.factor = (float)lpg_integer_step(d->type);
    c.code = fminf(fmaxf(rintf((zero - offset) / c.factor), 0.0f), (float)(1 << bits));
    c.rest = c.factor * c.code + offset - zero;
  } else if (lpg_kind(d->type) == LPGEMM_KIND_CODEBOOK && bits == 1) {
    c.code = fabsf(d->codebook[0]) <= fabsf(d->codebook[1]) ? 0.0f : 1.0f;
    c.factor = d->codebook[1] - d->codebook[0];
    c.rest = d->codebook[(int)c.code];
  }
  return c;
}

/* Whether the sums of X's scale groups are needed beside the products. */
static inline int lpg_has_shift(const lpg_center *c) { return c->per_group || c->rest != 0.0f; }

#endif
