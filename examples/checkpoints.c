/* From a checkpoint to a product: checkpoints MODEL [LAYER]. MODEL is a model folder, a .safetensors or a .gguf file.
 * Without LAYER it lists the layers and what each becomes. Without MODEL it shows the same with one GPTQ matrix of
 * random words in memory, for engines that read files themselves. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "lpgemm.h"

static void check(lpgemm_status_t status) {
  if (status == LPGEMM_SUCCESS) return;
  fprintf(stderr, "%s\n", lpgemm_last_error());
  exit(1);
}

/* What tensors become, without reading them. */
static void describe(const char *name, const lpgemm_import_t *part) {
  lpgemm_weight_desc_t desc = {.size = sizeof desc};
  size_t bytes;
  if (lpgemm_import_desc(part, 1, &desc) != LPGEMM_SUCCESS || lpgemm_packed_size(&desc, &bytes) != LPGEMM_SUCCESS) {
    printf("%-40s refused: %s\n", name, lpgemm_last_error());
    return;
  }
  printf("%-40s %lld x %lld, %s in groups of %lld with scales of %s%s: %zu bytes\n", name, (long long)desc.n,
         (long long)desc.k, lpgemm_dtype_name(desc.type), (long long)desc.group_k, lpgemm_dtype_name(desc.scale_type),
         desc.columns ? ", columns in another order" : "", bytes);
}

/* Packs the tensors and multiplies one row of ones: y[n] is the sum of row n of the weights. */
static void multiply(const lpgemm_import_t *part) {
  lpgemm_handle_t handle;
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .default_type = LPGEMM_F32};
  lpgemm_weight_desc_t desc = {.size = sizeof desc};
  lpgemm_weights_t weights;
  check(lpgemm_create(&handle, &config));
  check(lpgemm_import_desc(part, 1, &desc));
  check(lpgemm_import_weights(handle, part, 1, NULL, 0, &weights));
  float *x = malloc((size_t)desc.k * sizeof *x), *y = malloc((size_t)desc.n * sizeof *y);
  if (!x || !y) exit(1);
  for (int64_t k = 0; k < desc.k; k++) x[k] = 1.0f;
  check(lpgemm_matmul(handle, weights, 1, x, 0, y, 0));
  for (int64_t n = 0; n < desc.n && n < 4; n++) printf("row %lld adds up to %g\n", (long long)n, (double)y[n]);
  free(x);
  free(y);
  check(lpgemm_weights_destroy(weights));
  check(lpgemm_destroy(handle));
}

/* Tensors that an engine has in memory already: name, type, shape, bytes. */
static void from_memory(void) {
  enum { N = 64, K = 512, GROUP = 128, GROUPS = K / GROUP };
  static uint32_t qweight[K / 8][N], qzeros[GROUPS][N / 8];
  static uint16_t scales[GROUPS][N];
  for (int i = 0; i < K / 8 * N; i++) qweight[i / N][i % N] = (uint32_t)rand() ^ (uint32_t)rand() << 16;
  for (int i = 0; i < GROUPS * N / 8; i++) qzeros[i / (N / 8)][i % (N / 8)] = 0x77777777;
  for (int i = 0; i < GROUPS * N; i++) scales[i / N][i % N] = 0x2400; /* 1/64 */
  const lpgemm_tensor_t tensors[] = {
      {"qweight", LPGEMM_I32, 2, {K / 8, N}, qweight, sizeof qweight},
      {"qzeros", LPGEMM_I32, 2, {GROUPS, N / 8}, qzeros, sizeof qzeros},
      {"scales", LPGEMM_F16, 2, {GROUPS, N}, scales, sizeof scales},
  };
  const lpgemm_import_t part = {.size = sizeof part, .format = LPGEMM_FORMAT_GPTQ, .tensors = tensors, .count = 3};
  describe("GPTQ", &part);
  multiply(&part);
}

int main(int argc, char **argv) {
  lpgemm_file_t file;
  lpgemm_import_t part = {.size = sizeof part};
  size_t layers;
  if (argc < 2) {
    from_memory();
    return 0;
  }
  check(lpgemm_file_open(argv[1], &file));
  check(lpgemm_file_counts(file, NULL, &layers));
  for (size_t i = 0; i < layers && argc == 2; i++) {
    const char *name;
    check(lpgemm_file_layer_name(file, i, &name));
    if (lpgemm_file_layer(file, name, &part) == LPGEMM_SUCCESS) {
      describe(name, &part);
    } else {
      printf("%-40s refused: %s\n", name, lpgemm_last_error());
    }
  }
  if (argc > 2) {
    check(lpgemm_file_layer(file, argv[2], &part));
    describe(argv[2], &part);
    multiply(&part);
  }
  check(lpgemm_file_close(file));
  return 0;
}
