/* gemv with stacks of experts: what the planners of the token form and of the segment form have in common. */
#ifndef LPG_KERNELS_GEMV_STACK_PLAN_H
#define LPG_KERNELS_GEMV_STACK_PLAN_H

#include "gemv_plan.h"

enum { LPG_STACK_COLUMNS = 8 }; /* rows of X of an expert that are multiplied at once */

/* Groups of 16 columns are a way of fp4. */
LPG_FN int lpg_stack_has_steps(int bits, int steps) { return steps != 1 || bits == 4; }

/* NULL, or why there is no kernel for such weights and X. */
const char *lpgemm_i_gemv_stack_refuses(const lpg_problem *problem);

/* How many times as long weights take as they take to be read: groups of fewer than 128 columns more, since a warp
 * scales their products more often. Layers of 1 to 128 tokens, H200, 2026-11-28. */
double lpgemm_i_gemv_stack_slower(const lpg_packed *weights);

#endif
