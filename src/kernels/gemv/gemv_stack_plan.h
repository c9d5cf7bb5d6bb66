/* gemv with stacks of experts: what the planners of the token form and of the segment form have in common. */
#ifndef LPG_KERNELS_GEMV_STACK_PLAN_H
#define LPG_KERNELS_GEMV_STACK_PLAN_H

#include "gemv_plan.h"

enum { LPG_STACK_COLUMNS = 8 }; /* rows of X of an expert that are multiplied at once */

/* Groups of 16 columns are a way of fp4. */
LPG_FN int lpg_stack_has_steps(int bits, int steps) { return steps != 1 || bits == 4; }

/* NULL, or why there is no kernel for such weights and X. */
const char *lpgemm_i_gemv_stack_refuses(const lpg_problem *problem);

/* The launch of a plan with such a split-K, clusters and shared memory, and the time of the call. ns: of the plan. */
void lpgemm_i_gemv_stack_finish(const lpg_packed *weights, int32_t split_k, int32_t clusters, int32_t shared_bytes,
                                double ns, lpg_launch *launch);

#endif
