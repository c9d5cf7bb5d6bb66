/* Two mixtures of experts, each with one call a layer: one like Mixtral's (4-bit integers, SwiGLU, 2 of 8 experts) and
 * one like gpt-oss's (MXFP4, biases, its gate, 4 of 16), both compared with fp64. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "lpgemm.h"

enum { TOKENS = 10, MOST_SLOTS = TOKENS * 4 };

/* A layer's sizes and kinds, and what fp64 needs of it: all weights, unpacked. */
typedef struct layer {
  const char *name;
  int experts, top_k, hidden, inter;
  lpgemm_dtype_t type, scale_type;
  int group, has_bias;
  const lpgemm_gate_t *gate;
  lpgemm_weights_t up, down;
  float *up_values, *down_values; /* [experts][n][k] */
  float *up_bias, *down_bias;     /* [experts][n] */
} layer;

static void check(lpgemm_status_t status) {
  if (status == LPGEMM_SUCCESS) return;
  fprintf(stderr, "%s\n", lpgemm_last_error());
  exit(1);
}

static void *need(size_t count, size_t bytes) {
  void *memory = calloc(count, bytes);
  if (memory) return memory;
  fprintf(stderr, "no memory\n");
  exit(1);
}

static float uniform(void) { return 2.0f * (float)rand() / (float)RAND_MAX - 1.0f; }

/* ---- packing: a stack is created, gets its experts in any order, and is finished ---- */

static lpgemm_weights_t pack_stack(lpgemm_handle_t handle, const layer *l, lpgemm_rows_t rows, int64_t n, int64_t k) {
  lpgemm_weight_desc_t desc = {.size = sizeof desc, .n = n, .k = k, .type = l->type, .group_k = l->group};
  desc.scale_type = l->scale_type;
  desc.experts = l->experts;
  desc.rows = rows;
  if (l->type == LPGEMM_UINT(4)) desc.zero = LPGEMM_ZERO_CONSTANT, desc.zero_constant = 8;
  lpgemm_weights_t weights;
  check(lpgemm_weights_create(handle, &desc, NULL, 0, &weights));
  const int64_t groups = k / l->group, scale_bytes = l->scale_type == LPGEMM_F16 ? 2 : 1;
  uint8_t *codes = need((size_t)(n * k), 1), *scales = need((size_t)(n * groups), (size_t)scale_bytes);
  for (int e = 0; e < l->experts; e++) {
    for (int64_t i = 0; i < n * k; i++) codes[i] = (uint8_t)(rand() >> 4 & 15);
    for (int64_t i = 0; i < n * groups; i++) {
      if (l->scale_type == LPGEMM_F16) {
        ((uint16_t *)(void *)scales)[i] = (uint16_t)(0x1c00 + rand() % 1024); /* 2^-8 to 2^-7 */
      } else {
        scales[i] = (uint8_t)(121 + rand() % 2); /* 2^-6, 2^-5 */
      }
    }
    lpgemm_weight_source_t source = {.size = sizeof source, .codes = codes, .codes_bytes = (size_t)(n * k)};
    source.scales = scales;
    source.scales_bytes = (size_t)(n * groups * scale_bytes);
    check(lpgemm_pack_rows(handle, weights, e, 0, n, &source)); /* all rows: gates first, then ups */
  }
  check(lpgemm_weights_finish(handle, weights));
  free(codes);
  free(scales);
  return weights;
}

static float *unpack(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t count) {
  float *values = need((size_t)count, sizeof *values);
  check(lpgemm_unpack_weights(handle, weights, LPGEMM_F32, values, 0));
  return values;
}

static float *draw(int64_t count) {
  float *values = need((size_t)count, sizeof *values);
  for (int64_t i = 0; i < count; i++) values[i] = uniform();
  return values;
}

static void make(lpgemm_handle_t handle, layer *l) {
  const int64_t up = 2 * (int64_t)l->inter * l->hidden, down = (int64_t)l->hidden * l->inter;
  l->up = pack_stack(handle, l, LPGEMM_ROWS_PAIRED, 2 * l->inter, l->hidden);
  l->down = pack_stack(handle, l, LPGEMM_ROWS_PLAIN, l->hidden, l->inter);
  l->up_values = unpack(handle, l->up, l->experts * up);
  l->down_values = unpack(handle, l->down, l->experts * down);
  if (l->has_bias) {
    l->up_bias = draw((int64_t)l->experts * 2 * l->inter);
    l->down_bias = draw((int64_t)l->experts * l->hidden);
  }
}

/* ---- the layer in fp64, for one slot ---- */

static double dot(const float *row, const double *x, int k) {
  double sum = 0;
  for (int i = 0; i < k; i++) sum += (double)row[i] * x[i];
  return sum;
}

static void add_slot(const layer *l, int e, double weight, const double *x, double *y) {
  const float *up = l->up_values + (int64_t)e * 2 * l->inter * l->hidden;
  const float *down = l->down_values + (int64_t)e * l->hidden * l->inter;
  double *h = need((size_t)l->inter, sizeof *h);
  for (int i = 0; i < l->inter; i++) {
    double g = dot(up + (int64_t)i * l->hidden, x, l->hidden);
    double u = dot(up + (int64_t)(l->inter + i) * l->hidden, x, l->hidden), alpha = 1, offset = 0;
    if (l->has_bias) g += l->up_bias[e * 2 * l->inter + i], u += l->up_bias[e * 2 * l->inter + l->inter + i];
    if (l->gate) {
      const double limit = l->gate->limit;
      g = g > limit ? limit : g;
      u = u > limit ? limit : u < -limit ? -limit : u;
      alpha = l->gate->alpha;
      offset = l->gate->up_offset;
    }
    h[i] = g / (1 + exp(-alpha * g)) * (u + offset);
  }
  for (int i = 0; i < l->hidden; i++) {
    double o = dot(down + (int64_t)i * l->inter, h, l->inter);
    if (l->has_bias) o += l->down_bias[e * l->hidden + i];
    y[i] += weight * o;
  }
  free(h);
}

/* ---- one layer ---- */

/* The error of Y in the Euclidean norm. */
static double run(lpgemm_handle_t handle, layer *l) {
  int32_t expert[MOST_SLOTS];
  float weight[MOST_SLOTS];
  make(handle, l);
  float *x = draw((int64_t)TOKENS * l->hidden), *y = need((size_t)(TOKENS * l->hidden), sizeof *y);
  for (int i = 0; i < TOKENS * l->top_k; i++) { /* a router would say */
    expert[i] = rand() % l->experts;
    weight[i] = (1.5f + uniform()) / (float)l->top_k;
  }
  expert[0] = -1; /* a slot that is left out */

  lpgemm_route_args_t route = {.size = sizeof route, .m = TOKENS, .top_k = l->top_k, .experts = l->experts};
  route.expert = expert;
  route.weight = weight;
  lpgemm_experts_args_t args = {.size = sizeof args, .up = l->up, .down = l->down, .route = &route};
  args.x = x;
  args.y = y;
  args.activation = LPGEMM_ACTIVATION_SILU;
  args.gate = l->gate;
  args.up_bias = l->up_bias;
  args.down_bias = l->down_bias;
  size_t bytes;
  check(lpgemm_experts_workspace(handle, TOKENS, &args, &bytes));
  void *workspace = aligned_alloc(256, (bytes + 255) / 256 * 256);
  check(lpgemm_set_workspace(handle, workspace, bytes));
  check(lpgemm_run_experts(handle, &args)); /* the whole layer */

  double error = 0, norm = 0;
  double *token = need((size_t)l->hidden, sizeof *token), *want = need((size_t)l->hidden, sizeof *want);
  for (int t = 0; t < TOKENS; t++) {
    for (int i = 0; i < l->hidden; i++) token[i] = (double)x[t * l->hidden + i], want[i] = 0;
    for (int s = t * l->top_k; s < (t + 1) * l->top_k; s++) {
      if (expert[s] >= 0) add_slot(l, expert[s], (double)weight[s], token, want);
    }
    for (int i = 0; i < l->hidden; i++) {
      const double off = (double)y[t * l->hidden + i] - want[i];
      error += off * off;
      norm += want[i] * want[i];
    }
  }
  printf("%s: %d of %d experts, hidden %d, inter %d, %zu bytes of workspace: error %.1e\n", l->name, l->top_k,
         l->experts, l->hidden, l->inter, bytes, sqrt(error / norm));

  check(lpgemm_set_workspace(handle, NULL, 0));
  check(lpgemm_weights_destroy(l->up));
  check(lpgemm_weights_destroy(l->down));
  void *const memory[] = {workspace, x, y, token, want, l->up_values, l->down_values, l->up_bias, l->down_bias};
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) free(memory[i]);
  return sqrt(error / norm);
}

int main(void) {
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .default_type = LPGEMM_F32};
  lpgemm_handle_t handle;
  check(lpgemm_create(&handle, &config));
  const lpgemm_gate_t gate = {.size = sizeof gate, .alpha = 1.702f, .limit = 7, .up_offset = 1};
  layer mixtral = {.name = "Mixtral", .experts = 8, .top_k = 2, .hidden = 256, .inter = 512, .type = LPGEMM_UINT(4)};
  mixtral.scale_type = LPGEMM_F16;
  mixtral.group = 128;
  layer gpt_oss = {.name = "gpt-oss", .experts = 16, .top_k = 4, .hidden = 288, .inter = 288, .has_bias = 1};
  gpt_oss.type = LPGEMM_FLOAT(2, 1);
  gpt_oss.scale_type = LPGEMM_E8M0;
  gpt_oss.group = 32;
  gpt_oss.gate = &gate;
  const double errors = run(handle, &mixtral) + run(handle, &gpt_oss);
  check(lpgemm_destroy(handle));
  return errors < 1e-5 ? 0 : 1; /* fp32 activations: no rounding but that of fp32 */
}
