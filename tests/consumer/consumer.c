/* A C11 program against the installed library: packs 3 x 32 ternary weights and multiplies exactly. */
#include <lpgemm.h>
#include <stdint.h>
#include <stdio.h>

_Static_assert(LPGEMM_VERSION >= 100, "the header has a version");

int main(void) {
  enum { N = 3, K = 32 };
  uint8_t codes[N * K];
  float x[K], y[N];
  for (int i = 0; i < N * K; i++) codes[i] = (uint8_t)(i % 3);
  for (int i = 0; i < K; i++) x[i] = (float)i;

  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .default_type = LPGEMM_F32};
  lpgemm_weight_desc_t desc = {.size = sizeof desc, .n = N, .k = K, .type = LPGEMM_UINT(2)};
  desc.zero = LPGEMM_ZERO_CONSTANT;
  desc.zero_constant = 1.0f;
  lpgemm_weight_source_t source = {.size = sizeof source, .codes = codes, .codes_bytes = sizeof codes};
  lpgemm_handle_t handle;
  lpgemm_weights_t weights;
  if (lpgemm_create(&handle, &config) || lpgemm_pack_weights(handle, &desc, &source, NULL, 0, &weights) ||
      lpgemm_matmul(handle, weights, 1, x, 0, y, 0)) {
    fprintf(stderr, "%s\n", lpgemm_last_error());
    return 1;
  }
  int wrong = lpgemm_version() != LPGEMM_VERSION;
  for (int n = 0; n < N; n++) {
    int sum = 0;
    for (int k = 0; k < K; k++) sum += k * ((n * K + k) % 3 - 1);
    wrong |= y[n] != (float)sum;
  }
  lpgemm_weights_destroy(weights);
  lpgemm_destroy(handle);
  return wrong;
}
