/* Weights of any kind brought to X's type, as the dense kernels multiply them (dense_plan.h). */
#ifndef LPG_KERNELS_EXPAND_H
#define LPG_KERNELS_EXPAND_H

#include "dense_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How scales meet weights. */
typedef struct lpg_expand_scaling {
  int on_rows; /* one scale a row, or none: it goes on the row's sums, and the weights are as they are */
  /* Else every row is multiplied by a power of two that comes off its sums: 2^(top - exponent of its scales), or, if
   * `finds`, one that the largest weight asks for. bf16 needs none. */
  int top, finds;
} lpg_expand_scaling;

lpg_expand_scaling lpgemm_i_expand_scaling(const lpg_plan *weights, lpgemm_dtype_t x_type);

/* NULL, or why the weights cannot be brought to that type. */
const char *lpgemm_i_expand_refuses(const lpg_problem *problem);

/* Expands row items first .. first + count - 1 into `image`; found: where scaling.finds is set, gets a factor for each
 * of their rows' sums. */
lpgemm_status_t lpgemm_i_cuda_expand(const lpg_call *call, int32_t k_stages, int32_t first, int32_t count, void *image,
                                     float *found);

/* Loads what it launches for such weights on the current device. */
lpgemm_status_t lpgemm_i_cuda_prepare_expand(void);

#ifdef __cplusplus
}
#endif

#endif
