/* Images: bit planes of W and X in the order of the stages in shared memory (gemm1_plan.h); and how sums of products of
 * stored codes become sums of products of values.
 *
 * A weight is s w' + a and an element of X is r x' + b with integers s, r, a, b and stored codes w', x'. So for row n
 * of W and row m of X
 *
 *     sum of products = s r (sum of w' x') + (s b (sum of w') + K a b) + (r a) (sum of x')
 *
 * where s, r and b belong to the types and a, which has the zero in it, to the row of W. */
#ifndef LPG_BITSERIAL_GEMM1_IMAGES_H
#define LPG_BITSERIAL_GEMM1_IMAGES_H

#include "../kernels/operand/integer_line.h"
#include "gemm1_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the images of X, one tile of 128 rows after the other, and for each row the sum of its stored codes. */
lpgemm_status_t lpgemm_i_gemm1_make_x_planes(const lpg_call *call, const lpg_gemm1_plan *plan, void *image,
                                             int32_t *sums);

/* Makes the images of `count` tiles of 256 rows of W, from tile `first` on, and for each tile LPG_GEMM1_SCALES times
 * 256 values: the first bracket above, the second bracket, and the scale (fp32), of every row. */
lpgemm_status_t lpgemm_i_gemm1_make_w_planes(const lpg_call *call, const lpg_gemm1_plan *plan, int32_t first,
                                             int32_t count, void *image, int32_t *scale_data);

/* Loads the kernels that these launch on the current device; prepare_images calls prepare_x. */
lpgemm_status_t lpgemm_i_gemm1_prepare_images(void);
lpgemm_status_t lpgemm_i_gemm1_prepare_x(void);

#ifdef __cplusplus
}
#endif

#endif
