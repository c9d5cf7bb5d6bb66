/* Quantises one layer to 4 bits, packs it, multiplies by it, and compares with the same product in fp64. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lpgemm.h"

enum { N = 512, K = 1024, M = 4 };

static float w[N * K], x[M * K], y[M * N], dequantised[N * K];

static void check(lpgemm_status_t status) {
  if (status == LPGEMM_SUCCESS) return;
  fprintf(stderr, "%s\n", lpgemm_last_error());
  exit(1);
}

static float uniform(void) { return 2.0f * (float)rand() / (float)RAND_MAX - 1.0f; }

/* Of y = x . weight^T, in the Euclidean norm. */
static double relative_error(const float *weight) {
  double error = 0.0, norm = 0.0;
  for (int m = 0; m < M; m++) {
    for (int n = 0; n < N; n++) {
      double sum = 0.0;
      for (int k = 0; k < K; k++) sum += (double)x[m * K + k] * (double)weight[n * K + k];
      error += (y[m * N + n] - sum) * (y[m * N + n] - sum);
      norm += sum * sum;
    }
  }
  return sqrt(error / norm);
}

int main(void) {
  for (int i = 0; i < N * K; i++) w[i] = uniform();
  for (int i = 0; i < M * K; i++) x[i] = uniform();

  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .default_type = LPGEMM_F32};
  lpgemm_handle_t handle;
  check(lpgemm_create(&handle, &config));

  /* Unsigned 4-bit codes, zero 8, one fp16 scale for 128 weights: the w4a16 of most checkpoints. */
  lpgemm_weight_desc_t desc = {.size = sizeof desc, .n = N, .k = K};
  desc.type = LPGEMM_UINT(4);
  desc.group_k = 128;
  desc.scale_type = LPGEMM_F16;
  desc.zero = LPGEMM_ZERO_CONSTANT;
  desc.zero_constant = 8.0f;
  lpgemm_weights_t weights;
  check(lpgemm_quantize_weights(handle, &desc, LPGEMM_QUANTIZE_MSE, w, LPGEMM_F32, 0, NULL, 0, &weights));

  /* For every token: */
  check(lpgemm_matmul(handle, weights, M, x, 0, y, 0));

  lpgemm_weights_info_t info = {.size = sizeof info};
  check(lpgemm_weights_info(weights, &info));
  check(lpgemm_unpack_weights(handle, weights, LPGEMM_F32, dequantised, 0));
  double quantisation = relative_error(w), arithmetic = relative_error(dequantised);
  printf("%d x %d weights in %zu bytes, %.2f bits each\n", N, K, info.packed_bytes,
         8.0 * (double)info.packed_bytes / ((double)N * K));
  printf("relative error of the product: %.1e from quantisation, %.1e from arithmetic\n", quantisation, arithmetic);

  check(lpgemm_weights_destroy(weights));
  check(lpgemm_destroy(handle));
  return arithmetic < 1e-5 ? 0 : 1; /* fp32 activations: no rounding but that of fp32 sums */
}
