/* Weights and activations as bit planes in the order in which the tensor cores read them (gemm1_plan.h), and how sums
 * of products of stored codes become sums of products of values.
 *
 * A weight is s w' + a and an activation is r x' + b with integers s, r, a, b and stored codes w', x'. So a row n and a
 * row of X m have
 *
 *     sum of products = s r (sum of w' x') + (s b (sum of w') + K a b) + (r a) (sum of x')
 *
 * where s, r and b belong to the types, a to the row: its zero is in it. */
#ifndef LPG_BITSERIAL_GEMM1_IMAGES_H
#define LPG_BITSERIAL_GEMM1_IMAGES_H

#include "../kernels/operand/integer_line.h"
#include "gemm1_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the images of X, row of X work tile after row of X work tile, and the sums of each row's numbers in them. */
lpgemm_status_t lpgemm_i_gemm1_make_x_planes(const lpg_call *call, const lpg_gemm1_plan *plan, void *image,
                                             int32_t *sums);

/* Makes the images of `count` row work tiles from `first` on, and the numbers of each one's rows: 256 times what stands
 * above in the first brackets, in the second, and the scale (fp32). */
lpgemm_status_t lpgemm_i_gemm1_make_w_planes(const lpg_call *call, const lpg_gemm1_plan *plan, int32_t first,
                                             int32_t count, void *image, int32_t *scale_data);

/* Loads what they launch on the current device; the second, what the first of them launches. */
lpgemm_status_t lpgemm_i_gemm1_prepare_images(void);
lpgemm_status_t lpgemm_i_gemm1_prepare_x(void);

#ifdef __cplusplus
}
#endif

#endif
