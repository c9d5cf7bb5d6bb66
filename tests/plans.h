/* Plans as the library makes them, on made-up GPUs. */
#ifndef PLANS_H
#define PLANS_H

#include "bitserial/gemv1_plan.h"
#include "internal.h"

extern const lpg_planner lpgemm_i_lut_gpu_planner, lpgemm_i_gemv_8_planner, lpgemm_i_gemv_16_planner,
    lpgemm_i_gemv1_planner, lpgemm_i_gemv1_i8_planner, lpgemm_i_gemm_planner, lpgemm_i_gemm8_planner,
    lpgemm_i_dequant_image_f16_planner, lpgemm_i_dequant_image_bf16_planner, lpgemm_i_dequant_f16_sm90a_planner,
    lpgemm_i_dequant_i8_sm90a_planner, lpgemm_i_dequant_e4m3_sm90a_planner, lpgemm_i_dequant_f16_sm80_planner,
    lpgemm_i_dequant_bf16_sm80_planner, lpgemm_i_dequant_i8_sm80_planner, lpgemm_i_stripe_planner;

/* X of a type and no rows yet; outputs as X where X has 16 bits, else fp16; scales far apart. */
lpg_problem plan_problem(const lpg_packed *weights, lpgemm_dtype_t x_type, int64_t m);

/* The family's own plan, of the planner's plan_bytes, or 0 if none fits. Checks what every launch has. */
int plan_of(const lpg_planner *planner, const lpg_problem *problem, const lpg_device *device, void *plan);

/* The parts of `count` things are all of them, and differ by one at most. */
void check_parts(lpg_partition s, int parts, int count);

/* Cases FAMILY/plan/0 and 1, a device each: draws problems of up to so many rows of X, checks what all plans of gemv1
 * have in common, and leaves the rest to `check`. */
void check_gemv1_plans(const char *family, const lpg_planner *planner, lpgemm_dtype_t x_type, int most_rows,
                       void (*check)(const lpg_gemv1_plan *p, const lpg_packed *weights, int64_t m));

#endif
