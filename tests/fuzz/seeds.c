/* Writes what the fuzzers start from: seeds BLOB_DIRECTORY TUNING_DIRECTORY. */
#include <stdio.h>
#include <stdlib.h>

#include "lpgemm.h"

enum { N = 18, K = 80 };

static const lpgemm_weight_desc_t matrices[] = {
    {.type = LPGEMM_UINT(1),
     .scale_type = LPGEMM_F16,
     .group_k = 32,
     .zero = LPGEMM_ZERO_PER_GROUP,
     .zero_type = LPGEMM_F16},
    {.type = LPGEMM_UINT(3), .scale_type = LPGEMM_BF16, .zero = LPGEMM_ZERO_CONSTANT, .zero_constant = 4.0f},
    {.type = LPGEMM_UINT(4),
     .scale_type = LPGEMM_F16,
     .group_k = 32,
     .zero = LPGEMM_ZERO_PER_GROUP,
     .zero_type = LPGEMM_U8},
    {.type = LPGEMM_UINT(5),
     .scale_type = LPGEMM_F32,
     .group_k = 48,
     .zero = LPGEMM_ZERO_MINIMUM,
     .zero_type = LPGEMM_F32},
    {.type = LPGEMM_UINT(4),
     .scale_type = LPGEMM_UINT(6),
     .super_scale_type = LPGEMM_F16,
     .group_k = 16,
     .super_k = 64,
     .zero = LPGEMM_ZERO_MINIMUM,
     .zero_type = LPGEMM_UINT(6),
     .super_zero_type = LPGEMM_F16},
    {.type = LPGEMM_INT(8), .scale_type = LPGEMM_F32},
    {.type = LPGEMM_BIPOLAR(2), .scale_type = LPGEMM_F16},
    {.type = LPGEMM_CODEBOOK(2), .scale_type = LPGEMM_F16, .codebook = {-1.0f, -0.25f, 0.25f, 1.0f}},
    {.type = LPGEMM_FLOAT(2, 1), .scale_type = LPGEMM_E8M0, .group_k = 32},
    {.type = LPGEMM_FLOAT(2, 1), .scale_type = LPGEMM_E4M3, .group_k = 16, .global_scale = 0.5f},
    {.type = LPGEMM_FLOAT(3, 3)},
};

static void check(lpgemm_status_t status) {
  if (status == LPGEMM_SUCCESS) return;
  fprintf(stderr, "seeds: %s\n", lpgemm_last_error());
  exit(1);
}

static void save(lpgemm_handle_t handle, lpgemm_weights_t weights, const char *directory, size_t number) {
  lpgemm_weights_info_t info = {.size = sizeof info};
  check(lpgemm_weights_info(weights, &info));
  char path[512];
  snprintf(path, sizeof path, "%s/%zu.blob", directory, number);
  void *bytes = malloc(info.packed_bytes);
  check(lpgemm_serialize(handle, weights, bytes, info.packed_bytes));
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(bytes, 1, info.packed_bytes, file) != info.packed_bytes || fclose(file) != 0) {
    fprintf(stderr, "seeds: cannot write %s\n", path);
    exit(1);
  }
  free(bytes);
}

/* What quantising does not make: an order of columns, factors of rows, rows that share scales. */
static lpgemm_weights_t pack_version_2(lpgemm_handle_t handle) {
  enum { GROUPS = (K + 31) / 32, X_K = K + 8 };
  static uint8_t codes[N * X_K];
  static uint16_t scales[2 * GROUPS];
  float row_scales[N];
  int32_t order[K];
  lpgemm_weight_desc_t desc = {.size = sizeof desc, .n = N, .k = K, .group_k = 32, .type = LPGEMM_UINT(4)};
  desc.scale_type = LPGEMM_F16;
  desc.columns = LPGEMM_COLUMNS_ORDERED;
  desc.x_k = X_K;
  desc.row_scales = LPGEMM_F32;
  desc.group_n = 16;
  for (int i = 0; i < N * X_K; i++) codes[i] = (uint8_t)(i % 13);
  for (int i = 0; i < 2 * GROUPS; i++) scales[i] = (uint16_t)(0x3c00 + 64 * i);
  for (int i = 0; i < N; i++) row_scales[i] = 0.5f + (float)i;
  for (int i = 0; i < K; i++) order[i] = X_K - 1 - i;
  lpgemm_weight_source_t source = {.size = sizeof source, .codes = codes, .codes_bytes = sizeof codes};
  source.scales = scales;
  source.scales_bytes = sizeof scales;
  source.row_scales = row_scales;
  source.row_scales_bytes = sizeof row_scales;
  source.column_order = order;
  source.column_order_bytes = sizeof order;
  lpgemm_weights_t weights;
  check(lpgemm_pack_weights(handle, &desc, &source, NULL, 0, &weights));
  return weights;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: seeds BLOB_DIRECTORY TUNING_DIRECTORY\n");
    return 2;
  }
  lpgemm_config_t config = {.size = sizeof config};
  config.backend = LPGEMM_BACKEND_CPU;
  config.num_threads = 1;
  lpgemm_handle_t handle;
  check(lpgemm_create(&handle, &config));

  static float w[N * K];
  for (int i = 0; i < N * K; i++) w[i] = (float)(i * 37 % 101 - 50) / 50.0f;
  int64_t rows[] = {1, 8, 32};
  lpgemm_autotune_options_t options = {.size = sizeof options};
  options.seconds = 0.5;
  for (size_t i = 0; i < sizeof matrices / sizeof matrices[0]; i++) {
    lpgemm_weight_desc_t desc = matrices[i];
    desc.size = sizeof desc;
    desc.n = N;
    desc.k = K;
    lpgemm_weights_t weights;
    check(lpgemm_quantize_weights(handle, &desc, LPGEMM_QUANTIZE_ABSMAX, w, LPGEMM_F32, 0, NULL, 0, &weights));
    save(handle, weights, argv[1], i);
    if (i % 4 == 0) check(lpgemm_autotune(handle, weights, rows, 3, &options));
    check(lpgemm_weights_destroy(weights));
  }
  lpgemm_weights_t version_2 = pack_version_2(handle);
  save(handle, version_2, argv[1], sizeof matrices / sizeof matrices[0]);
  check(lpgemm_weights_destroy(version_2));
  char path[512];
  snprintf(path, sizeof path, "%s/measured.txt", argv[2]);
  check(lpgemm_tuning_save(handle, path));
  check(lpgemm_destroy(handle));
  return 0;
}
