/* Weights and activations brought to planes of bits, or to bytes, as the tensor cores read them (planes_plan.h), and
 * what takes sums of products of stored codes to sums of products of numbers.
 *
 * A weight is s w' + a and an activation is r x' + b with integers s, r, a, b: w' and x' are what the images hold,
 * codes as they are stored or, as bytes of 8 bits, less 128. So a row n and a token m have
 *
 *     sum of products = s r (sum of w' x') + (s b (sum of w') + K a b) + (r a) (sum of x')
 *
 * where s, r and b belong to the types, a to the row: its zero is in it. */
#ifndef LPG_BITSERIAL_PLANES_IMAGES_H
#define LPG_BITSERIAL_PLANES_IMAGES_H

#include "../kernels/operand/integer_line.h"
#include "gemm1_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the images of X, token item after token item, and the sums of each row's numbers in them. */
lpgemm_status_t lpgemm_i_planes_slice_x(const lpg_call *call, const lpg_planes_plan *plan, int bytes, void *image,
                                        int32_t *sums);

/* Makes the images of `count` row items from `first` on, and the numbers of each one's rows: 256 times what stands
 * above in the first brackets, in the second, and the scale (fp32). */
lpgemm_status_t lpgemm_i_planes_slice_weights(const lpg_call *call, const lpg_planes_plan *plan, int bytes,
                                              int32_t first, int32_t count, void *image, int32_t *numbers);

/* Loads what they launch on the current device; the second, what the first of them launches. */
lpgemm_status_t lpgemm_i_planes_prepare_images(void);
lpgemm_status_t lpgemm_i_planes_prepare_x(void);

#ifdef __cplusplus
}
#endif

#endif
