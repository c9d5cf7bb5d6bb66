/* From the arrangements of checkpoint files to lpgemm_pack_weights(): GPTQ, AWQ, and GGUF's Q4_0 and Q4_K, all 4 bits.
 * Each becomes one code a byte in [n][k] and dense arrays of scales and zeros; scales stay where they are if they are
 * dense already. Here random bytes stand for the file, and every weight is compared with its format's own formula. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "lpgemm.h"

enum { N = 64, K = 512, GROUP = 128, GROUPS = K / GROUP, BLOCK = 32, SUPER = 256 };

static uint32_t file[N * K]; /* enough for each of them */
static uint16_t scales[GROUPS * N];

/* What lpgemm_pack_weights() gets. */
static uint8_t codes[N * K], zeros[N * K / BLOCK], small[N * K / BLOCK];
static uint16_t large[N * K / BLOCK], minima[N * K / SUPER];

static void check(lpgemm_status_t status) {
  if (status == LPGEMM_SUCCESS) return;
  fprintf(stderr, "%s\n", lpgemm_last_error());
  exit(1);
}

static double half(uint16_t h) {
  double magnitude = h & 0x7c00 ? ldexp((h & 0x3ff) | 0x400, (h >> 10 & 31) - 25) : ldexp(h & 0x3ff, -24);
  return h & 0x8000 ? -magnitude : magnitude;
}

/* An fp16 number between 2^-7 and 2^-3. */
static uint16_t scale(void) { return (uint16_t)(0x2000 + rand() % 0x1000); }

/* ---- GPTQ: words of 8 codes along K; zeros, packed along N, are one less than they count (checkpoint_format "gptq";
 * "gptq_v2" has them as they are). Columns in another order (g_idx) are the caller's: reorder X. ---- */

static void unpack_gptq(const uint32_t *qweight, const uint32_t *qzeros) {
  for (int n = 0; n < N; n++) {
    for (int k = 0; k < K; k++) codes[n * K + k] = qweight[k / 8 * N + n] >> 4 * (k % 8) & 15;
    for (int g = 0; g < GROUPS; g++) zeros[g * N + n] = (uint8_t)((qzeros[g * N / 8 + n / 8] >> 4 * (n % 8) & 15) + 1);
  }
}

static double gptq(int n, int k) {
  int code = (int)(file[k / 8 * N + n] >> k % 8 * 4) & 15,
      zero = (int)(file[N * K / 8 + k / GROUP * N / 8 + n / 8] >> n % 8 * 4) & 15;
  return (code - (zero + 1)) * half(scales[k / GROUP * N + n]);
}

/* ---- AWQ ("gemm"): words of 8 codes along N, in the order 0 2 4 6 1 3 5 7; zeros likewise ---- */

static const int awq_place[8] = {0, 4, 1, 5, 2, 6, 3, 7}; /* of column n % 8 in its word */

static void unpack_awq(const uint32_t *qweight, const uint32_t *qzeros) {
  for (int n = 0; n < N; n++) {
    const int shift = 4 * awq_place[n % 8];
    for (int k = 0; k < K; k++) codes[n * K + k] = qweight[k * N / 8 + n / 8] >> shift & 15;
    for (int g = 0; g < GROUPS; g++) zeros[g * N + n] = qzeros[g * N / 8 + n / 8] >> shift & 15;
  }
}

static double awq(int n, int k) {
  static const int column[8] = {0, 2, 4, 6, 1, 3, 5, 7};
  int place = 0;
  while (column[place] != n % 8) place++;
  int code = (int)(file[k * N / 8 + n / 8] >> 4 * place) & 15,
      zero = (int)(file[N * K / 8 + k / GROUP * N / 8 + n / 8] >> 4 * place) & 15;
  return (code - zero) * half(scales[k / GROUP * N + n]);
}

/* ---- Q4_0: blocks of 32 columns, an fp16 scale and 16 bytes; byte i has the columns i and i + 16 ---- */

typedef struct q4_0 {
  uint16_t d;
  uint8_t qs[BLOCK / 2];
} q4_0;

static void unpack_q4_0(const q4_0 *blocks) {
  for (int i = 0; i < N * K; i++) {
    const q4_0 *b = &blocks[i / BLOCK];
    codes[i] = b->qs[i % 16] >> (i % BLOCK < 16 ? 0 : 4) & 15;
    large[i / BLOCK] = b->d;
  }
}

static double value_q4_0(int n, int k) {
  const q4_0 *b = (const q4_0 *)(const void *)file + n * K / BLOCK + k / BLOCK;
  int i = k % BLOCK, code = i < 16 ? b->qs[i] & 15 : b->qs[i - 16] >> 4;
  return (code - 8) * half(b->d);
}

/* ---- Q4_K: blocks of 256 columns; 8 groups of 32 with scale and minimum of 6 bits each, which two fp16 numbers scale;
 * the minimum is subtracted, so its fp16 number is negated here ---- */

typedef struct q4_k {
  uint16_t d, dmin;
  uint8_t scales[12], qs[SUPER / 2];
} q4_k;

static void unpack_q4_k(const q4_k *blocks) {
  for (int b = 0; b < N * K / SUPER; b++) {
    const uint8_t *s = blocks[b].scales;
    large[b] = blocks[b].d;
    minima[b] = blocks[b].dmin ^ 0x8000;
    for (int g = 0; g < 8; g++) { /* the first four lie whole, the others in nibbles and the spare bits of those */
      small[b * 8 + g] = g < 4 ? s[g] & 63 : (uint8_t)((s[g + 4] & 15) | s[g - 4] >> 6 << 4);
      zeros[b * 8 + g] = g < 4 ? s[g + 4] & 63 : (uint8_t)(s[g + 4] >> 4 | s[g] >> 6 << 4);
      for (int i = 0; i < BLOCK; i++)
        codes[b * SUPER + g * BLOCK + i] = blocks[b].qs[g / 2 * BLOCK + i] >> g % 2 * 4 & 15;
    }
  }
}

/* As llama.cpp walks through a block: two groups at a time. */
static double value_q4_k(int n, int k) {
  const q4_k *b = (const q4_k *)(const void *)file + n * K / SUPER + k / SUPER;
  int group = k % SUPER / 32, byte = b->qs[k % SUPER / 64 * 32 + k % 32], code = k % 64 < 32 ? byte & 15 : byte >> 4;
  int factor, minimum;
  if (group < 4) {
    factor = b->scales[group] & 63, minimum = b->scales[group + 4] & 63;
  } else {
    factor = (b->scales[group + 4] & 15) + 16 * (b->scales[group - 4] >> 6);
    minimum = (b->scales[group + 4] >> 4) + 16 * (b->scales[group] >> 6);
  }
  return half(b->d) * factor * code - half(b->dmin) * minimum;
}

/* ---- packing, and whether it is what the file says ---- */

static int show(lpgemm_handle_t handle, const char *name, const lpgemm_weight_desc_t *desc,
                const lpgemm_weight_source_t *source, double (*value)(int n, int k)) {
  static float w[N * K];
  lpgemm_weights_t weights;
  check(lpgemm_pack_weights(handle, desc, source, NULL, 0, &weights));
  check(lpgemm_unpack_weights(handle, weights, LPGEMM_F32, w, 0));
  check(lpgemm_weights_destroy(weights));
  int wrong = 0;
  for (int i = 0; i < N * K; i++) wrong += w[i] != (float)value(i / K, i % K);
  printf("%-6s %d weights, %d wrong\n", name, N * K, wrong);
  return wrong;
}

int main(void) {
  lpgemm_handle_t handle;
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU};
  check(lpgemm_create(&handle, &config));
  for (int i = 0; i < N * K; i++) file[i] = (uint32_t)rand() ^ (uint32_t)rand() << 16;
  for (int i = 0; i < GROUPS * N; i++) scales[i] = scale();
  int wrong = 0;

  lpgemm_weight_desc_t grouped = {.size = sizeof grouped, .n = N, .k = K, .type = LPGEMM_UINT(4), .group_k = GROUP};
  grouped.scale_type = LPGEMM_F16;
  grouped.zero = LPGEMM_ZERO_PER_GROUP, grouped.zero_type = LPGEMM_U8;
  lpgemm_weight_source_t source = {.size = sizeof source, .codes = codes, .codes_bytes = sizeof codes};
  source.order = LPGEMM_COLUMN_MAJOR; /* scales and zeros are [group][n] in both */
  source.scales = scales, source.scales_bytes = sizeof scales;
  source.zeros = zeros, source.zeros_bytes = sizeof zeros;
  unpack_gptq(file, file + N * K / 8);
  wrong += show(handle, "GPTQ", &grouped, &source, gptq);
  unpack_awq(file, file + N * K / 8);
  wrong += show(handle, "AWQ", &grouped, &source, awq);

  q4_0 *blocks = (q4_0 *)(void *)file;
  for (int i = 0; i < N * K / BLOCK; i++) blocks[i].d = scale();
  lpgemm_weight_desc_t plain = {.size = sizeof plain, .n = N, .k = K, .type = LPGEMM_UINT(4), .group_k = BLOCK};
  plain.scale_type = LPGEMM_F16;
  plain.zero = LPGEMM_ZERO_CONSTANT, plain.zero_constant = 8;
  source = (lpgemm_weight_source_t){.size = sizeof source, .codes = codes, .codes_bytes = sizeof codes};
  source.scales = large, source.scales_bytes = sizeof large;
  unpack_q4_0(blocks);
  wrong += show(handle, "Q4_0", &plain, &source, value_q4_0);

  q4_k *supers = (q4_k *)(void *)file;
  for (int i = 0; i < N * K / SUPER; i++) supers[i].d = scale(), supers[i].dmin = scale();
  lpgemm_weight_desc_t two_levels = {.size = sizeof two_levels, .n = N, .k = K, .type = LPGEMM_UINT(4)};
  two_levels.group_k = BLOCK, two_levels.super_k = SUPER;
  two_levels.scale_type = LPGEMM_UINT(6), two_levels.super_scale_type = LPGEMM_F16;
  two_levels.zero = LPGEMM_ZERO_MINIMUM;
  two_levels.zero_type = LPGEMM_UINT(6), two_levels.super_zero_type = LPGEMM_F16;
  source.scales = small, source.scales_bytes = sizeof small;
  source.zeros = zeros, source.zeros_bytes = sizeof zeros;
  source.super_scales = large, source.super_scales_bytes = sizeof large;
  source.super_zeros = minima, source.super_zeros_bytes = sizeof minima;
  unpack_q4_k(supers);
  wrong += show(handle, "Q4_K", &two_levels, &source, value_q4_k);

  check(lpgemm_destroy(handle));
  return wrong ? 1 : 0;
}
