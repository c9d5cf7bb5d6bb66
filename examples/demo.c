/* `make demo`: one layer in every kind of weight that the library knows. For each kind it quantises the same real
 * weights, packs them, multiplies, and compares the product in fp64 with the original weights (what the format loses)
 * and with the dequantised ones (what the arithmetic loses). */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lpgemm.h"

enum { N = 1024, K = 2048, M = 8 };

static float weight[N * K], dequantised[N * K], y[M * N];
static uint16_t x_half[M * K];
static double x[M * K], original[M * N], product[M * N];

static void check(lpgemm_status_t status) {
  if (status == LPGEMM_SUCCESS) return;
  fprintf(stderr, "%s\n", lpgemm_last_error());
  exit(1);
}

/* ---- the kinds ---- */

typedef struct kind {
  const char *name;
  lpgemm_quantize_method_t method;
  const char *codebook;
  lpgemm_weight_desc_t desc; /* without the sizes */
} kind;

#define GROUPS(g, s) .group_k = (g), .scale_type = (s)
#define ZERO(z) .zero = LPGEMM_ZERO_CONSTANT, .zero_constant = (z)
#define MINIMA(t) .zero = LPGEMM_ZERO_MINIMUM, .zero_type = (t)

static const kind kinds[] = {
    {"u1", LPGEMM_QUANTIZE_MSE, NULL, {.type = LPGEMM_UINT(1), GROUPS(64, LPGEMM_F16), ZERO(0.5f)}},
    {"u2", LPGEMM_QUANTIZE_MSE, NULL, {.type = LPGEMM_UINT(2), GROUPS(64, LPGEMM_F16), ZERO(1.5f)}},
    {"u3", LPGEMM_QUANTIZE_MSE, NULL, {.type = LPGEMM_UINT(3), GROUPS(128, LPGEMM_F16), ZERO(3.5f)}},
    {"u4, zero 8 (GPTQ)", LPGEMM_QUANTIZE_MSE, NULL, {.type = LPGEMM_UINT(4), GROUPS(128, LPGEMM_F16), ZERO(8.0f)}},
    {"u4, zero a group (AWQ)",
     LPGEMM_QUANTIZE_MINMAX,
     NULL,
     {.type = LPGEMM_UINT(4), GROUPS(128, LPGEMM_F16), .zero = LPGEMM_ZERO_PER_GROUP, .zero_type = LPGEMM_U8}},
    {"u8", LPGEMM_QUANTIZE_ABSMAX, NULL, {.type = LPGEMM_UINT(8), GROUPS(128, LPGEMM_F16), ZERO(128.0f)}},
    {"ternary (u2, zero 1)", LPGEMM_QUANTIZE_MSE, NULL, {.type = LPGEMM_UINT(2), GROUPS(0, LPGEMM_F16), ZERO(1.0f)}},
    {"i4", LPGEMM_QUANTIZE_MSE, NULL, {.type = LPGEMM_INT(4), GROUPS(32, LPGEMM_BF16)}},
    {"i8, scale a row", LPGEMM_QUANTIZE_ABSMAX, NULL, {.type = LPGEMM_INT(8), GROUPS(0, LPGEMM_F32)}},
    {"b1, bipolar", LPGEMM_QUANTIZE_MSE, NULL, {.type = LPGEMM_BIPOLAR(1), GROUPS(64, LPGEMM_F16)}},
    {"b2, bipolar", LPGEMM_QUANTIZE_MSE, NULL, {.type = LPGEMM_BIPOLAR(2), GROUPS(64, LPGEMM_F16)}},
    {"e2m1", LPGEMM_QUANTIZE_MSE, NULL, {.type = LPGEMM_FLOAT(2, 1), GROUPS(64, LPGEMM_F16)}},
    {"e3m2", LPGEMM_QUANTIZE_MSE, NULL, {.type = LPGEMM_FLOAT(3, 2), GROUPS(0, LPGEMM_F16)}},
    {"e4m3", LPGEMM_QUANTIZE_ABSMAX, NULL, {.type = LPGEMM_FLOAT(4, 3), GROUPS(0, LPGEMM_F32)}},
    {"e5m2", LPGEMM_QUANTIZE_ABSMAX, NULL, {.type = LPGEMM_FLOAT(5, 2), GROUPS(0, LPGEMM_F32)}},
    {"NF4", LPGEMM_QUANTIZE_ABSMAX, "nf4", {.type = LPGEMM_CODEBOOK(4), GROUPS(64, LPGEMM_F16)}},
    {"MXFP4", LPGEMM_QUANTIZE_MSE, NULL, {.type = LPGEMM_FLOAT(2, 1), GROUPS(32, LPGEMM_E8M0)}},
    {"NVFP4",
     LPGEMM_QUANTIZE_ABSMAX,
     NULL,
     {.type = LPGEMM_FLOAT(2, 1), GROUPS(16, LPGEMM_E4M3), .global_scale = 4.0f / (6.0f * 448.0f)}},
    {"Q4_K (two levels)",
     LPGEMM_QUANTIZE_MINMAX,
     NULL,
     {.type = LPGEMM_UINT(4),
      GROUPS(32, LPGEMM_UINT(6)),
      MINIMA(LPGEMM_UINT(6)),
      .super_k = 256,
      .super_scale_type = LPGEMM_F16,
      .super_zero_type = LPGEMM_F16}},
};

/* ---- numbers ---- */

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double uniform(void) { return (double)rand() / (double)RAND_MAX; }

/* About normal, cut at 4 standard deviations, as weights are. */
static float normal(void) {
  double sum = -6.0;
  for (int i = 0; i < 12; i++) sum += uniform();
  return (float)fmax(-4.0, fmin(4.0, sum));
}

/* fp16 of a number that fp16 holds exactly, subnormals aside. */
static uint16_t half(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return value == 0.0f ? 0 : (uint16_t)((bits >> 16 & 0x8000) | (((bits >> 13) - (112u << 10)) & 0x7fff));
}

static void multiply(const float *w, double *out) {
  for (int m = 0; m < M; m++) {
    for (int n = 0; n < N; n++) {
      double sum = 0.0;
      for (int k = 0; k < K; k++) sum += x[m * K + k] * (double)w[n * K + k];
      out[m * N + n] = sum;
    }
  }
}

/* Of y, in the Euclidean norm. */
static double relative_error(const double *want) {
  double error = 0.0, norm = 0.0;
  for (int i = 0; i < M * N; i++) {
    error += ((double)y[i] - want[i]) * ((double)y[i] - want[i]);
    norm += want[i] * want[i];
  }
  return sqrt(error / norm);
}

/* ---- one row of the table ---- */

static double show(lpgemm_handle_t handle, const kind *kind) {
  lpgemm_weight_desc_t desc = kind->desc;
  desc.size = sizeof desc;
  desc.n = N;
  desc.k = K;
  if (kind->codebook) check(lpgemm_codebook_preset(kind->codebook, desc.codebook));
  lpgemm_weights_t weights;
  check(lpgemm_quantize_weights(handle, &desc, kind->method, weight, LPGEMM_F32, 0, NULL, 0, &weights));

  lpgemm_run_args_t args = {.size = sizeof args, .weights = weights, .m = M};
  args.x = x_half;
  args.x_type = LPGEMM_F16;
  args.y = y;
  args.y_type = LPGEMM_F32;
  double best = 1e9;
  for (int i = 0; i < 5; i++) {
    double start = seconds();
    check(lpgemm_run(handle, &args));
    best = fmin(best, seconds() - start);
  }

  lpgemm_weights_info_t info = {.size = sizeof info};
  check(lpgemm_weights_info(weights, &info));
  check(lpgemm_unpack_weights(handle, weights, LPGEMM_F32, dequantised, 0));
  multiply(dequantised, product);
  double bits = 8.0 * (double)info.packed_bytes / ((double)N * K), arithmetic = relative_error(product);
  printf("%-24s %6.2f %8.1fx %14.1e %14.1e %10.0f\n", kind->name, bits, 16.0 / bits, relative_error(original),
         arithmetic, best * 1e6);
  check(lpgemm_weights_destroy(weights));
  return arithmetic;
}

int main(void) {
  for (int i = 0; i < N * K; i++) weight[i] = normal();
  for (int i = 0; i < M * K; i++) {
    x[i] = floor(2049.0 * uniform() - 1024.0) / 1024.0;
    x_half[i] = half((float)x[i]);
  }
  multiply(weight, original);

  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU};
  lpgemm_handle_t handle;
  check(lpgemm_create(&handle, &config));
  printf("%s\n\nY[%d,%d] = X[%d,%d] . W[%d,%d]^T, X in fp16, normal weights, CPU backend\n\n", lpgemm_build_info(), M,
         N, M, K, N, K);
  printf("%-24s %6s %9s %14s %14s %10s\n", "", "bits a", "smaller", "error against", "error against", "");
  printf("%-24s %6s %9s %14s %14s %10s\n", "weights", "weight", "than fp16", "the original", "the quantised", "us");
  double worst = 0.0;
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) worst = fmax(worst, show(handle, &kinds[i]));
  printf("\nErrors are relative, against fp64. Bits a weight count everything: scales, zeros, header, padding.\n");
  check(lpgemm_destroy(handle));
  if (!(worst < 1e-3)) { /* one rounding of a scaled weight to fp16 is at most 2^-11 */
    printf("The error against the quantised weights is too large.\n");
    return 1;
  }
  return 0;
}
