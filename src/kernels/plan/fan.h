/* The token form of a layer of experts: few tokens, most experts with a row or two. No kernel sorts the slots; two
 * products find out themselves who is named.
 *
 *   fan out   a row of X a token, a row of Y a slot: what up makes of it with the slot's expert
 *   fan in    a row of X a slot, a row of Y a token: the sum over its slots of what down makes of them, by router
 *             weights, with beta * C
 *
 * Their problems say so by `fan`; m is the number of tokens. */
#ifndef LPG_KERNELS_FAN_H
#define LPG_KERNELS_FAN_H

#include "../../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  LPG_FAN_MOST_SLOTS = 256, /* a thread each while items are found */
  LPG_FAN_ITEM_BYTES = 80   /* of an item in shared memory */
};

static inline void lpg_set_fan(lpg_problem *p, lpg_fan way, int64_t tokens, int32_t top_k) {
  p->fan = way;
  p->m = tokens;
  p->top_k = top_k;
  p->slots = tokens * top_k;
}

/* Such a kernel's launch gets the first member of this. Slot s of token s / top_k is of expert[s] - first_expert, any
 * value, of the call's stacks, and counts by weight[s]; NULL: 1. */
typedef struct lpg_fan_call {
  lpg_call call;
  const int32_t *expert;
  const float *weight;
  int32_t first_expert;
} lpg_fan_call;

#ifdef __cplusplus
}
#endif

#endif
