/* Norm, rotation, attention and gate in plain C, fp32. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "block.h"

static void *allocate(size_t bytes) {
  size_t rounded = (bytes + 255) / 256 * 256;
  void *memory = aligned_alloc(256, rounded);
  if (!memory) fail("no memory for %zu bytes", bytes);
  return memset(memory, 0, rounded);
}

static void upload(void *to, const float *from, int64_t count) { memcpy(to, from, (size_t)count * sizeof *from); }
static void download(float *to, const void *from, int64_t count) { memcpy(to, from, (size_t)count * sizeof *to); }
static void set_position(const block *b, int32_t position) { *b->position = position; }

static void rms_norm(const block *b, int64_t m, const void *x, const void *gain, void *y) {
  int64_t n = b->shape.hidden;
  for (int64_t row = 0; row < m; row++) {
    const float *in = (const float *)x + row * n, *g = gain;
    float *out = (float *)y + row * n;
    double squares = 0.0;
    for (int64_t i = 0; i < n; i++) squares += (double)in[i] * in[i];
    float factor = (float)(1.0 / sqrt(squares / (double)n + 1e-5));
    for (int64_t i = 0; i < n; i++) out[i] = in[i] * factor * g[i];
  }
}

/* Number i of a head turns with number i + HEAD / 2. */
static void rotate(const float *in, float *out, int32_t position) {
  for (int i = 0; i < HEAD / 2; i++) {
    double angle = position * pow(500000.0, -2.0 * i / HEAD);
    float c = (float)cos(angle), s = (float)sin(angle), a = in[i], b = in[i + HEAD / 2];
    out[i] = a * c - b * s;
    out[i + HEAD / 2] = b * c + a * s;
  }
}

static void rope(const block *b, int64_t m) {
  int64_t heads = b->shape.heads, kv_heads = b->shape.kv_heads;
  for (int64_t row = 0; row < m; row++) {
    int32_t position = *b->position + (int32_t)row;
    float *q = (float *)b->heads_in + row * (heads + 2 * kv_heads) * HEAD, *k = q + heads * HEAD;
    float *keys = (float *)b->keys + position * kv_heads * HEAD,
          *values = (float *)b->values + position * kv_heads * HEAD;
    for (int64_t h = 0; h < heads; h++) rotate(q + h * HEAD, q + h * HEAD, position);
    for (int64_t h = 0; h < kv_heads; h++) rotate(k + h * HEAD, keys + h * HEAD, position);
    memcpy(values, k + kv_heads * HEAD, (size_t)(kv_heads * HEAD) * sizeof *values);
  }
}

/* One query by `seen` keys and values, `step` numbers from one to the next. */
static void attend(const float *q, const float *keys, const float *values, int64_t seen, int64_t step, float *score,
                   float *out) {
  float most = -INFINITY, sum = 0.0f;
  for (int64_t j = 0; j < seen; j++) {
    score[j] = 0.0f;
    for (int i = 0; i < HEAD; i++) score[j] += q[i] * keys[j * step + i];
    score[j] /= sqrtf(HEAD);
    most = fmaxf(most, score[j]);
  }
  memset(out, 0, HEAD * sizeof *out);
  for (int64_t j = 0; j < seen; j++) {
    float weight = expf(score[j] - most);
    sum += weight;
    for (int i = 0; i < HEAD; i++) out[i] += weight * values[j * step + i];
  }
  for (int i = 0; i < HEAD; i++) out[i] /= sum;
}

static void attention(const block *b, int64_t m) {
  int64_t heads = b->shape.heads, kv_heads = b->shape.kv_heads;
  float *score = get_memory((size_t)b->context * sizeof *score);
  for (int64_t row = 0; row < m; row++) {
    for (int64_t h = 0; h < heads; h++) {
      int64_t kv = h / (heads / kv_heads) * HEAD;
      attend((const float *)b->heads_in + (row * (heads + 2 * kv_heads) + h) * HEAD, (const float *)b->keys + kv,
             (const float *)b->values + kv, *b->position + row + 1, kv_heads * HEAD, score,
             (float *)b->heads_out + (row * heads + h) * HEAD);
    }
  }
  free(score);
}

static void swiglu(const block *b, int64_t m) {
  int64_t n = b->shape.ffn;
  for (int64_t row = 0; row < m; row++) {
    const float *gate = (const float *)b->gate_and_up + row * 2 * n, *up = gate + n;
    float *out = (float *)b->gated + row * n;
    for (int64_t i = 0; i < n; i++) out[i] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
  }
}

const machine machine_cpu = {
    .type = LPGEMM_F32,
    .bytes = sizeof(float),
    .allocate = allocate,
    .release = free,
    .upload = upload,
    .download = download,
    .set_position = set_position,
    .rms_norm = rms_norm,
    .rope = rope,
    .attention = attention,
    .swiglu = swiglu,
};
