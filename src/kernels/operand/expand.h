/* Weights of any kind dequantised to the type that they are multiplied in, fp16, bf16, tf32, int8 or e4m3, in the order
 * in which the tensor cores read them: an image of work tiles, which dequant multiplies (dequant_plan.h), or of pieces,
 * by gemm's work tiles (gemm_image.cuh). Expanded they are by family dequant. tf32 has the digits of fp16 and the range
 * of fp32; it is LPGEMM_F32 here. */
#ifndef LPG_KERNELS_EXPAND_H
#define LPG_KERNELS_EXPAND_H

#include "x_copy.h"

/* Pieces are of 64 rows by 64 columns, swizzled as wgmma reads them: for each 64 rows those of all columns, of
 * which there are as many as the longest stage asks for. */
enum { LPG_IMAGE_ROWS = 64, LPG_IMAGE_K = 64, LPG_IMAGE_PIECE = LPG_IMAGE_ROWS * LPG_IMAGE_K * 2 };
LPG_FN int lpg_image_columns(int64_t k) { return (int)((k + 127) / 128 * 2); }

/* How scales meet weights when these become the type that they are multiplied in. */
typedef struct lpg_expand_scaling {
  int on_rows; /* one scale a row, or none: it goes on the row's sums, and the weights are as they are */
  /* fp16, on_rows or in_table: the weights are halves (lpg_is_halved), and the rows' sums take the 2. */
  int halved;
  /* 8 bits, and fp16 where scaled weights would be too far apart for it: the groups' scales, which go on the sums of
   * their stages, come in a table, 256 rows for every stage. */
  int in_table;
  /* Else every row is multiplied by a power of two that comes off its sums: 2^(top - exponent of its scales), or, if
   * `finds`, one that the largest weight asks for. bf16 needs none. */
  int top, finds;
} lpg_expand_scaling;

#ifdef __cplusplus
extern "C" {
#endif

lpg_expand_scaling lpgemm_i_expand_scaling(const lpg_problem *problem, lpgemm_dtype_t type);

/* NULL, or that X has too few rows to expand the weights first, where gemv takes them: refusing keeps
 * lpgemm_workspace_size() small. */
const char *lpgemm_i_expand_does_not_pay(const lpg_problem *problem);

/* NULL, or why the weights cannot be loaded to that type. */
const char *lpgemm_i_expand_refuses(const lpg_problem *problem, lpgemm_dtype_t type);

/* The type of the images, of a kernel for that type: tf32 where wgmma multiplies and fp16 cannot hold the weights. */
lpgemm_dtype_t lpgemm_i_expand_image(const lpg_problem *problem, lpgemm_dtype_t type, int wgmma);

/* Expands row work tiles first .. first + count - 1 into `image`; numbers: where scaling.finds is set, gets a factor
 * for each of their rows' sums, or the table of scaling.in_table. */
lpgemm_status_t lpgemm_i_cuda_expand(const lpg_call *call, lpgemm_dtype_t type, int32_t k_stages, int32_t first,
                                     int32_t count, void *image, float *scale_data);

/* Expands all rows into pieces, and finds the factor of each row's sums. */
lpgemm_status_t lpgemm_i_cuda_expand_pieces(const lpg_call *call, lpgemm_dtype_t type, void *image, float *factors);

/* Loads what it launches for images of that type on the current device. */
lpgemm_status_t lpgemm_i_cuda_prepare_expand(lpgemm_dtype_t type);

#ifdef __cplusplus
}
#endif

#endif
