/* Weights of any kind dequantised to the type that they are multiplied in, fp16, bf16, tf32, int8 or e4m3, in the order
 * in which the tensor cores read them (dequant_plan.h). tf32 has the digits of fp16 and the range of fp32; it is
 * LPGEMM_F32 here. */
#ifndef LPG_KERNELS_EXPAND_H
#define LPG_KERNELS_EXPAND_H

#include "dequant_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

lpg_expand_scaling lpgemm_i_expand_scaling(const lpg_problem *problem, lpgemm_dtype_t type);

/* NULL, or why the weights cannot be loaded to that type. */
const char *lpgemm_i_expand_refuses(const lpg_problem *problem, lpgemm_dtype_t type);

/* The type of the images, of a kernel for that type: tf32 where wgmma multiplies and fp16 cannot hold the weights. */
lpgemm_dtype_t lpgemm_i_expand_image(const lpg_problem *problem, lpgemm_dtype_t type, int wgmma);

/* Expands row work tiles first .. first + count - 1 into `image`; numbers: where scaling.finds is set, gets a factor
 * for each of their rows' sums, or the table of scaling.in_table. */
lpgemm_status_t lpgemm_i_cuda_expand(const lpg_call *call, lpgemm_dtype_t type, int32_t k_stages, int32_t first,
                                     int32_t count, void *image, float *scale_data);

/* Expands all rows into pieces (gemm_plan.h), and finds the factor of each row's sums. */
lpgemm_status_t lpgemm_i_cuda_expand_pieces(const lpg_call *call, lpgemm_dtype_t type, void *image, float *factors);

/* Loads what it launches for images of that type on the current device. */
lpgemm_status_t lpgemm_i_cuda_prepare_expand(lpgemm_dtype_t type);

#ifdef __cplusplus
}
#endif

#endif
