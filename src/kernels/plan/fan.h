/* The token form of a layer of experts: few tokens, most experts with a row or two. No kernel sorts the slots; two
 * products find out themselves who is named.
 *
 *   fan out   a row of X a token, a row of Y a slot: what up makes of it with the slot's expert
 *   fan in    a row of X a slot, a row of Y a token: the sum over its slots of what down makes of them, by router
 *             weights, with beta * C
 *
 * Their problems have m tokens, and numbers that no other problem has: top_k less than 0, and slots less than 0 for the
 * way in. */
#ifndef LPG_KERNELS_FAN_H
#define LPG_KERNELS_FAN_H

#include "../../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum lpg_fan { LPG_FAN_NONE, LPG_FAN_OUT, LPG_FAN_IN } lpg_fan;

enum {
  LPG_FAN_COLUMNS = 8,      /* slots of an expert that are multiplied at once */
  LPG_FAN_MOST_SLOTS = 256, /* a thread each while items are found */
  LPG_FAN_ITEM_BYTES = 80   /* of an item in shared memory */
};

static inline void lpg_set_fan(lpg_problem *p, lpg_fan way, int64_t tokens, int32_t top_k) {
  p->m = tokens;
  p->top_k = -top_k;
  p->slots = way == LPG_FAN_OUT ? tokens * top_k : -tokens * top_k;
}

static inline lpg_fan lpg_fan_of(const lpg_problem *p) {
  return p->top_k >= 0 ? LPG_FAN_NONE : p->slots < 0 ? LPG_FAN_IN : LPG_FAN_OUT;
}

/* Such a kernel's launch gets the first member of this. Slot s of token s / top_k is of expert[s] - first_expert, any
 * value, of the call's stacks, and counts by weight[s]; NULL: 1. problem.top_k is -top_k. */
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
