/* The reference that every kernel is tested against: the header's definitions in fp64, written from the manual alone.
 * It includes nothing from src/ and takes the same public structs as the library, with host memory in them. */
#ifndef GEMM_REF_H
#define GEMM_REF_H

#include "lpgemm.h"

/* ---- number formats ---- */

/* The value of a code (or of the bits of an fp16, bf16 or integer number); codebook may be NULL for other types. */
double ref_value(lpgemm_dtype_t type, uint32_t code, const float *codebook);

/* Bytes of an element of an array of the API. */
int64_t ref_bytes(lpgemm_dtype_t type);

/* Element i of such an array. */
double ref_load(lpgemm_dtype_t type, const void *array, int64_t i);

/* x rounded to type once, to nearest even. F16, BF16, F32. */
double ref_round(lpgemm_dtype_t type, double x);

/* Stores the nearest number of the type, any type but codebooks; integers and 8-bit floats saturate. */
void ref_store(lpgemm_dtype_t type, void *array, int64_t i, double x);

/* The relative error of rounding to F16, BF16 or F32, the smallest positive number, and the smallest magnitude that
 * rounds to infinity. */
double ref_epsilon(lpgemm_dtype_t type);
double ref_smallest(lpgemm_dtype_t type);
double ref_overflow(lpgemm_dtype_t type);

/* ---- the product ---- */

/* Columns of X. */
int64_t ref_x_k(const lpgemm_weight_desc_t *desc);

/* Row n of the weights, in fp64, columns as they are stored: ordered, if the source has an order. */
void ref_weight_row(const lpgemm_weight_desc_t *desc, const lpgemm_weight_source_t *source, int64_t n, double *w);

/* Activation function of the epilogue in fp64, with its limits at infinity. */
double ref_activate(lpgemm_activation_t activation, double v);

/* y[m][n] (dense) = what lpgemm_run() should give before its last rounding, and the bound on its distance:
 *
 *   bound = eps(Y) |y| + L ((K + 8) 2^-23 |alpha| sum |x||w| + ...)
 *
 * |w| being that of the weight itself, however much of it cancels. K stands for fp32 accumulation in any order, 8 for
 * building a weight and for the epilogue, a factor of the row among it; L = 1.13 is the steepest slope of
 * any activation (gelu's is 1.129). With quantize_x, half a step of the quantised X is added, and with codebooks and
 * fp16 or bf16 X one rounding of each weight to that type, eps(X) |alpha| sum |x||w|. int32 output is exact: y is the
 * number itself and the bound 0. args->weights, kernel and tables are not looked at. `rounded`, unless NULL: the bound
 * for kernels that round every scaled weight to fp16 or bf16, whatever its type. */
void ref_gemm(const lpgemm_weight_desc_t *desc, const lpgemm_weight_source_t *source, const lpgemm_run_args_t *args,
              double *y, double *bound, double *rounded);

#endif
