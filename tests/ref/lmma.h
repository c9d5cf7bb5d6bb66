/* The instruction of LUT Tensor Core (section 3.3) as a function: lmma.{M}{N}{K}.{A}{W}{Accum}{O} with A, Accum and O
 * in fp64. Its weights are integers of `bits` bits read as signs, its product is looked up. */
#ifndef LMMA_H
#define LMMA_H

#include <stdint.h>

/* The shape that the paper finds best for its arrays, M2N64K4. */
enum { LMMA_M = 2, LMMA_N = 64, LMMA_K = 4 };

/* o[M][N] = accum[M][N] + sum over k of a[M][K] * (2 * w[N][K] - (2^bits - 1)), which is what the codes w mean when
 * every bit is read as -1 or +1. */
void ref_lmma(int bits, const double a[LMMA_M][LMMA_K], const uint8_t w[LMMA_N][LMMA_K],
              const double accum[LMMA_M][LMMA_N], double o[LMMA_M][LMMA_N]);

/* y[m][n] = sum over k of x[m][k] * w[n][k], unsigned codes w, all of it by that instruction: K goes on in steps of 4
 * through the accumulators, and what the signs left out is made up for with the sum of x. Tiles that stand out of the
 * matrices are filled with zeros. */
void ref_lmma_gemm(int bits, int64_t m, int64_t n, int64_t k, const double *x, const uint8_t *w, double *y);

#endif
