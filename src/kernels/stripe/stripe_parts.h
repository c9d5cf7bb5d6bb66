/* stripe: the kernels before and behind the product: sums of X, and adding up partial sums. */
#ifndef LPG_KERNELS_STRIPE_PARTS_H
#define LPG_KERNELS_STRIPE_PARTS_H

#include "stripe_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sums of the k's of each scale group of X, as the main kernel reads them. X has 16 bits. */
lpgemm_status_t lpgemm_i_cuda_stripe_sums_of_x(const lpg_call *call, const lpg_stripe_plan *plan, float *sums);

/* Adds up the parts of the work tiles that several CTAs share, in the order of K, and stores their outputs. */
lpgemm_status_t lpgemm_i_cuda_stripe_add(const lpg_call *call, const lpg_stripe_plan *plan, float factor,
                                         const float *partials);

/* Loads both on the current device. */
lpgemm_status_t lpgemm_i_cuda_prepare_stripe(void);

#ifdef __cplusplus
}
#endif

#endif
