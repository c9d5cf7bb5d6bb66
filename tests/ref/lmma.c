/* LMMA bit by bit, and a product made of it. */
#include "lmma.h"

/* The half of the table of four activations that has +a[3]; the other half is its negation. */
static void make_table(const double a[LMMA_K], double table[8]) {
  for (int e = 0; e < 8; e++) {
    table[e] = a[3];
    for (int j = 0; j < 3; j++) table[e] += e >> j & 1 ? a[j] : -a[j];
  }
}

static double look_up(const double table[8], int bits) { return bits & 8 ? table[bits & 7] : -table[~bits & 7]; }

void ref_lmma(int bits, const double a[LMMA_M][LMMA_K], const uint8_t w[LMMA_N][LMMA_K],
              const double accum[LMMA_M][LMMA_N], double o[LMMA_M][LMMA_N]) {
  for (int m = 0; m < LMMA_M; m++) {
    double table[8];
    make_table(a[m], table);
    for (int n = 0; n < LMMA_N; n++) {
      double sum = accum[m][n];
      for (int bit = 0; bit < bits; bit++) {
        int plane = 0;
        for (int j = 0; j < LMMA_K; j++) plane |= (w[n][j] >> bit & 1) << j;
        sum += (double)(1 << bit) * look_up(table, plane);
      }
      o[m][n] = sum;
    }
  }
}

/* The tile of y at row m0 and column n0. */
static void multiply_tile(int bits, int64_t m0, int64_t n0, int64_t m, int64_t n, int64_t k, const double *x,
                          const uint8_t *w, double *y) {
  double sums[LMMA_M][LMMA_N] = {{0}}, sum_x[LMMA_M] = {0};
  for (int64_t k0 = 0; k0 < k; k0 += LMMA_K) {
    double a[LMMA_M][LMMA_K] = {{0}};
    uint8_t codes[LMMA_N][LMMA_K] = {{0}};
    for (int j = 0; j < LMMA_K && k0 + j < k; j++) {
      for (int i = 0; i < LMMA_M && m0 + i < m; i++) {
        a[i][j] = x[(m0 + i) * k + k0 + j];
        sum_x[i] += a[i][j];
      }
      for (int i = 0; i < LMMA_N && n0 + i < n; i++) codes[i][j] = w[(n0 + i) * k + k0 + j];
    }
    ref_lmma(bits, (const double(*)[LMMA_K])a, (const uint8_t(*)[LMMA_K])codes, (const double(*)[LMMA_N])sums, sums);
  }
  for (int i = 0; i < LMMA_M && m0 + i < m; i++) { /* code = (signs + 2^bits - 1) / 2 */
    double left_out = (double)((1 << bits) - 1) * sum_x[i];
    for (int j = 0; j < LMMA_N && n0 + j < n; j++) y[(m0 + i) * n + n0 + j] = (sums[i][j] + left_out) / 2;
  }
}

void ref_lmma_gemm(int bits, int64_t m, int64_t n, int64_t k, const double *x, const uint8_t *w, double *y) {
  for (int64_t m0 = 0; m0 < m; m0 += LMMA_M) {
    for (int64_t n0 = 0; n0 < n; n0 += LMMA_N) multiply_tile(bits, m0, n0, m, n, k, x, w, y);
  }
}
