/* How gemm scales weights. */
#ifndef LPG_KERNELS_GEMM_MODE_H
#define LPG_KERNELS_GEMM_MODE_H

#include "../operand/x_copy.h"
#include "gemm_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lpg_gemm_scaling {
  int on_rows;     /* one scale a row, on its sums */
  int exponent;    /* else the largest scale of a row is brought near 2^exponent */
  int field_power; /* lpg_gemm_field_power(), where scales take it: lpg_gemm_keeps_fields() */
  lpg_gemm_scales mode;
} lpg_gemm_scaling;

/* scale_span: of the weights' content, as in lpg_problem. */
lpg_gemm_scaling lpgemm_i_gemm_scaling(const lpg_packed *weights, lpgemm_dtype_t activations, uint32_t scale_span);

/* LPG_GEMM_TILES. */
extern const lpg_gemm_tile lpgemm_i_gemm_tiles[LPG_GEMM_TILE_COUNT];

/* NULL, or why scales and zeros are not for it. */
const char *lpgemm_i_gemm_scales_refuse(const lpg_problem *problem);

/* Digits that scales give away so that products with integer zeros of groups are exact in fp32. */
int lpgemm_i_gemm_lost_digits(const lpg_packed *weights);

/* Prepares scales and zeros, and the factors that take rows' sums back from them. */
lpgemm_status_t lpgemm_i_cuda_gemm_prepare(const lpg_call *call, float *factors, void *prepared);
lpgemm_status_t lpgemm_i_cuda_load_gemm_prepare(void);

/* Whether rows' factors take the global scale too: with scales of few exponents the product is in fp32's range. Else
 * the sums meet one after the other. */
static inline int lpg_gemm_factors_take(const lpgemm_weight_desc_t *d) {
  const lpgemm_dtype_t scale = d->scale_type;
  const int few = (scale == 0 || scale == LPGEMM_F16 || scale == LPGEMM_E4M3) && d->super_scale_type == 0;
  const double global = fabs((double)d->global_scale);
  return global == 1.0 || (few && global > 0x1p-32 && global < 0x1p32);
}

/* Bytes of the workspace that a call has in any case: a copy of X, and what is made of the weights. */
static inline size_t lpg_gemm_scratch_bytes(const lpg_problem *problem, lpg_gemm_scales mode) {
  const size_t bytes = lpg_x_copy_bytes(problem, 2) + (size_t)lpg_gemm_made_bytes(problem->weights, mode);
  return (bytes + 15) / 16 * 16;
}

#ifdef __cplusplus
}
#endif

#endif
