/* From a container of lpgemm-convert to a product: container FILE.lpg [NAME]. Without NAME it lists the matrices. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "lpgemm.h"

static void check(lpgemm_status_t status) {
  if (status == LPGEMM_SUCCESS) return;
  fprintf(stderr, "%s\n", lpgemm_last_error());
  exit(1);
}

/* The matrix where it lies in the mapped file. A CUDA handle takes LPGEMM_LOAD_COPY. */
static lpgemm_weights_t view(lpgemm_handle_t handle, const lpgemm_tensor_t *tensor, lpgemm_weight_desc_t *desc) {
  lpgemm_weights_t weights;
  lpgemm_weights_info_t info = {.size = sizeof info};
  check(lpgemm_deserialize(handle, tensor->data, tensor->bytes, LPGEMM_LOAD_VIEW, &weights));
  check(lpgemm_weights_info(weights, &info));
  *desc = info.desc;
  return weights;
}

static void list(lpgemm_handle_t handle, lpgemm_file_t file) {
  size_t count;
  check(lpgemm_file_counts(file, &count, NULL));
  for (size_t i = 0; i < count; i++) {
    lpgemm_tensor_t tensor;
    lpgemm_weight_desc_t desc;
    check(lpgemm_file_tensor(file, i, &tensor));
    if (tensor.type != LPGEMM_BLOB) continue;
    check(lpgemm_weights_destroy(view(handle, &tensor, &desc)));
    printf("%s: %lld x %lld of %s\n", tensor.name, (long long)desc.n, (long long)desc.k, lpgemm_dtype_name(desc.type));
  }
}

/* One row of ones times the matrix: y[n] is the sum of row n. */
static void multiply(lpgemm_handle_t handle, const lpgemm_tensor_t *tensor) {
  lpgemm_weight_desc_t desc;
  lpgemm_weights_t weights = view(handle, tensor, &desc);
  const int64_t columns = desc.x_k ? desc.x_k : desc.k; /* of X */
  float *x = malloc((size_t)columns * sizeof *x + 1), *y = malloc((size_t)desc.n * sizeof *y + 1);
  if (!x || !y) exit(1);
  for (int64_t k = 0; k < columns; k++) x[k] = 1.0f;
  check(lpgemm_matmul(handle, weights, 1, x, 0, y, 0));
  for (int64_t n = 0; n < desc.n && n < 4; n++) printf("row %lld adds up to %g\n", (long long)n, (double)y[n]);
  free(x);
  free(y);
  check(lpgemm_weights_destroy(weights));
}

int main(int argc, char **argv) {
  if (argc < 2) return fprintf(stderr, "usage: container FILE.lpg [NAME]\n"), 2;
  lpgemm_file_t file;
  lpgemm_tensor_t tensor;
  lpgemm_handle_t handle;
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .default_type = LPGEMM_F32};
  check(lpgemm_create(&handle, &config));
  check(lpgemm_file_open(argv[1], &file));
  if (argc == 2) list(handle, file);
  if (argc > 2) {
    check(lpgemm_file_find(file, argv[2], &tensor));
    if (tensor.type != LPGEMM_BLOB) return fprintf(stderr, "%s is no packed matrix\n", argv[2]), 1;
    multiply(handle, &tensor);
  }
  check(lpgemm_destroy(handle));
  check(lpgemm_file_close(file));
  return 0;
}
