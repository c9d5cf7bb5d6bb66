/* From cuBLAS to lpgemm in an engine: the call stays as it is, only A becomes packed weights.
 *
 * Names and order are cuBLAS's, column-major: C (m x n) = alpha * op(A) (m x k) . B (k x n) + beta * C. With OP_T, OP_N
 * the memory is the row-major memory of a linear layer: m outputs, n tokens, k inputs. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lpgemm.h"

enum { m = 64, n = 3, k = 256 };

static int8_t A[m * k];                       /* as a checkpoint of int8 weights holds it */
static uint16_t B[n * k], C[n * m], D[n * m]; /* fp16 */
static double exact[n * m];

static void check(lpgemm_status_t status) {
  if (status == LPGEMM_SUCCESS) return;
  fprintf(stderr, "%s\n", lpgemm_last_error());
  exit(1);
}

/* fp16 of a number that fp16 holds exactly, subnormals aside. */
static uint16_t half(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return value == 0.0f ? 0 : (uint16_t)((bits >> 16 & 0x8000) | (((bits >> 13) - (112u << 10)) & 0x7fff));
}

static double real(uint16_t h) {
  double magnitude = h & 0x7c00 ? ldexp((h & 0x3ff) | 0x400, (h >> 10 & 31) - 25) : ldexp(h & 0x3ff, -24);
  return h & 0x8000 ? -magnitude : magnitude;
}

static int pattern(int i, int range) { return i * 7919 % (2 * range + 1) - range; }

int main(void) {
  for (int i = 0; i < m * k; i++) A[i] = (int8_t)pattern(i, 127);
  for (int i = 0; i < n * k; i++) B[i] = half((float)pattern(i, 3) / 4.0f);
  for (int i = 0; i < n * m; i++) C[i] = D[i] = half((float)pattern(i, 5));
  float alpha = 0.5f, beta = -1.0f;
  for (int j = 0; j < n; j++) {
    for (int i = 0; i < m; i++) {
      double sum = 0.0;
      for (int l = 0; l < k; l++) sum += A[i * k + l] * real(B[j * k + l]);
      exact[j * m + i] = alpha * sum + beta * real(C[j * m + i]);
    }
  }

  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU};
  lpgemm_handle_t handle; /* cublasCreate(&handle); */
  check(lpgemm_create(&handle, &config));

  /* Once, when the model is loaded: */
  lpgemm_weight_desc_t desc = {.size = sizeof desc, .n = m, .k = k, .type = LPGEMM_I8};
  lpgemm_weight_source_t source = {.size = sizeof source, .codes = A, .codes_bytes = sizeof A};
  lpgemm_weights_t packed;
  check(lpgemm_pack_weights(handle, &desc, &source, NULL, 0, &packed));

  /* cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, &alpha, A, CUDA_R_16F, k, B, CUDA_R_16F, k,
   *              &beta, C, CUDA_R_16F, m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT); */
  check(lpgemm_gemm_ex(handle, LPGEMM_OP_T, LPGEMM_OP_N, m, n, k, &alpha, packed, LPGEMM_CUDA_R_16F, k, B,
                       LPGEMM_CUDA_R_16F, k, &beta, C, LPGEMM_CUDA_R_16F, m, LPGEMM_COMPUTE_32F, -1));

  /* cublasHgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, &half_alpha, A, k, B, k, &half_beta, D, m); */
  uint16_t half_alpha = half(alpha), half_beta = half(beta);
  check(lpgemm_hgemm(handle, LPGEMM_OP_T, LPGEMM_OP_N, m, n, k, &half_alpha, packed, k, B, k, &half_beta, D, m));

  double worst = 0.0;
  for (int i = 0; i < n * m; i++) {
    worst = fmax(worst, fabs(real(C[i]) - exact[i]) / fmax(fabs(exact[i]), 1.0));
    worst = fmax(worst, fabs(real(D[i]) - exact[i]) / fmax(fabs(exact[i]), 1.0));
  }
  printf("the largest relative error of gemm_ex and hgemm against fp64 is %.1e\n", worst);

  check(lpgemm_weights_destroy(packed));
  check(lpgemm_destroy(handle));
  return worst <= ldexp(1.0, -11) ? 0 : 1; /* fp16 rounds once; everything before it is exact here */
}
