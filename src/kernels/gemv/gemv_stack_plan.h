/* What the token form and the segment form refuse alike, and have in common: gemv with stacks of experts, 8 rows of X
 * of an expert at a time. */
#ifndef LPG_KERNELS_GEMV_STACK_PLAN_H
#define LPG_KERNELS_GEMV_STACK_PLAN_H

#include "gemv_plan.h"

enum { LPG_STACK_COLUMNS = 8 }; /* rows of X that are multiplied at once */

/* Groups of 16 columns are a way of fp4. */
LPG_FN int lpg_stack_has_steps(int bits, int steps) { return steps != 1 || bits == 4; }

/* NULL, or why there is no kernel for such weights and X. */
const char *lpgemm_i_gemv_stack_refuses(const lpg_problem *problem);

/* What units longer than K's and rows' would cost: groups shorter than 128 k take more of a warp's time. */
double lpgemm_i_gemv_stack_slower(const lpg_packed *weights);

#endif
