/* model FILE TYPE fp32|blocks LAYERS WIDTH INNER WORDS EXPERTS: a Llama with random weights as a GGUF file, without a
 * tokenizer. Its matrices are blocks of TYPE (q4_0, q4_k, ...), or in fp32 the numbers that these blocks stand for: the
 * same model without any rounding of activations. EXPERTS above 0: a mixture with two experts a token. */
#include <ctype.h>
#include <ggml.h>
#include <gguf.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD = 64, HEADS_OF_ONE_KV = 2, USED = 2, DIMS = 3, MOST_THREADS = 16 };

typedef struct model {
  struct gguf_context *file;
  struct ggml_context *tensors;
  enum ggml_type type;
  int as_fp32;
} model;

static void fail(const char *what) {
  fprintf(stderr, "model: %s\n", what);
  exit(1);
}

/* Nearly normal: a sum of four. */
static void draw(float *out, int64_t count, double deviation) {
  static uint64_t state = 1;
  for (int64_t i = 0; i < count; i++) {
    double sum = -2;
    for (int j = 0; j < 4; j++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      sum += (double)(state >> 11) * 0x1p-53;
    }
    out[i] = (float)(sum * 1.7320508 * deviation);
  }
}

static struct ggml_tensor *add(model *m, const char *name, enum ggml_type type, const int64_t *shape) {
  struct ggml_tensor *tensor = ggml_new_tensor(m->tensors, type, shape[2] > 1 ? 3 : shape[1] > 1 ? 2 : 1, shape);
  ggml_set_name(tensor, name);
  gguf_add_tensor(m->file, tensor);
  return tensor;
}

static void add_plain(model *m, const char *name, int64_t columns, int64_t rows, double deviation) {
  struct ggml_tensor *tensor = add(m, name, GGML_TYPE_F32, (const int64_t[DIMS]){columns, rows, 1});
  float *values = tensor->data;
  draw(values, columns * rows, deviation);
  if (rows == 1) {
    for (int64_t i = 0; i < columns; i++) values[i] += 1; /* the factors of a norm */
  }
}

/* Some rows that a thread quantises. */
typedef struct part {
  enum ggml_type type;
  const float *values;
  void *blocks;
  int64_t first, rows, columns;
} part;

static void *quantise_part(void *argument) {
  const part *p = argument;
  ggml_quantize_chunk(p->type, p->values, p->blocks, p->first * p->columns, p->rows, p->columns, NULL);
  return NULL;
}

static void quantise(enum ggml_type type, const float *values, void *blocks, int64_t rows, int64_t columns) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  const int64_t threads = cores < 1 ? 1 : cores < MOST_THREADS ? cores : MOST_THREADS;
  pthread_t started[MOST_THREADS];
  part parts[MOST_THREADS];
  for (int64_t i = 0; i < threads; i++) {
    const int64_t first = i * rows / threads;
    parts[i] = (part){type, values, blocks, first, (i + 1) * rows / threads - first, columns};
    if (pthread_create(&started[i], NULL, quantise_part, &parts[i])) fail("a thread cannot be started");
  }
  for (int64_t i = 0; i < threads; i++) pthread_join(started[i], NULL);
}

static void add_matrix(model *m, const char *name, int64_t columns, int64_t rows, int64_t experts) {
  const int64_t shape[DIMS] = {columns, rows, experts}, count = columns * rows * experts;
  struct ggml_tensor *tensor = add(m, name, m->as_fp32 ? GGML_TYPE_F32 : m->type, shape);
  float *values = malloc((size_t)count * sizeof *values);
  void *blocks = malloc(ggml_row_size(m->type, columns) * (size_t)(rows * experts));
  if (!values || !blocks) fail("memory is short");
  draw(values, count, 1 / sqrt((double)columns));
  quantise(m->type, values, blocks, rows * experts, columns);
  if (m->as_fp32) {
    ggml_get_type_traits(m->type)->to_float(blocks, tensor->data, count);
  } else {
    memcpy(tensor->data, blocks, ggml_nbytes(tensor));
  }
  free(values);
  free(blocks);
}

static void add_layer(model *m, int layer, int64_t width, int64_t inner, int64_t experts) {
  char name[64];
  const int64_t kv = width / HEADS_OF_ONE_KV;
#define NAMED(part) (snprintf(name, sizeof name, "blk.%d.%s.weight", layer, part), name)
  add_plain(m, NAMED("attn_norm"), width, 1, 0.1);
  add_matrix(m, NAMED("attn_q"), width, width, 1);
  add_matrix(m, NAMED("attn_k"), width, kv, 1);
  add_matrix(m, NAMED("attn_v"), width, kv, 1);
  add_matrix(m, NAMED("attn_output"), width, width, 1);
  add_plain(m, NAMED("ffn_norm"), width, 1, 0.1);
  if (experts > 0) add_plain(m, NAMED("ffn_gate_inp"), width, experts, 1);
  add_matrix(m, NAMED(experts > 0 ? "ffn_gate_exps" : "ffn_gate"), width, inner, experts > 0 ? experts : 1);
  add_matrix(m, NAMED(experts > 0 ? "ffn_up_exps" : "ffn_up"), width, inner, experts > 0 ? experts : 1);
  add_matrix(m, NAMED(experts > 0 ? "ffn_down_exps" : "ffn_down"), inner, width, experts > 0 ? experts : 1);
#undef NAMED
}

static enum ggml_type type_of(const char *wanted) {
  for (int i = 0; i < GGML_TYPE_COUNT; i++) {
    const char *name = ggml_type_name((enum ggml_type)i);
    size_t at = 0;
    while (name && name[at] && tolower((unsigned char)name[at]) == wanted[at]) at++;
    if (name && at && !name[at] && !wanted[at] && ggml_is_quantized((enum ggml_type)i)) return (enum ggml_type)i;
  }
  fail("ggml has no such block type");
  return GGML_TYPE_COUNT;
}

int main(int argc, char **argv) {
  if (argc != 9) fail("arguments are FILE TYPE fp32|blocks LAYERS WIDTH INNER WORDS EXPERTS");
  const int layers = atoi(argv[4]);
  const int64_t width = atol(argv[5]), inner = atol(argv[6]), words = atol(argv[7]), experts = atol(argv[8]);
  if (layers < 1 || width < 256 || width % 256 || inner < 256 || inner % 256 || words < 1) {
    fail("WIDTH and INNER are multiples of 256");
  }
  const size_t numbers =
      (size_t)(2 * words * width + layers * (4 * width * width + 3 * width * inner * (experts ? experts : 1)));
  model m = {.file = gguf_init_empty(), .type = type_of(argv[2]), .as_fp32 = strcmp(argv[3], "fp32") == 0};
  m.tensors = ggml_init((struct ggml_init_params){.mem_size = numbers * sizeof(float) + (64u << 20)});
  gguf_set_val_str(m.file, "general.architecture", "llama");
  gguf_set_val_u32(m.file, "llama.block_count", (uint32_t)layers);
  gguf_set_val_u32(m.file, "llama.context_length", 2048);
  gguf_set_val_u32(m.file, "llama.embedding_length", (uint32_t)width);
  gguf_set_val_u32(m.file, "llama.feed_forward_length", (uint32_t)inner);
  gguf_set_val_u32(m.file, "llama.attention.head_count", (uint32_t)(width / HEAD));
  gguf_set_val_u32(m.file, "llama.attention.head_count_kv", (uint32_t)(width / HEAD / HEADS_OF_ONE_KV));
  gguf_set_val_f32(m.file, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
  gguf_set_val_u32(m.file, "llama.vocab_size", (uint32_t)words);
  if (experts > 0) {
    gguf_set_val_u32(m.file, "llama.expert_count", (uint32_t)experts);
    gguf_set_val_u32(m.file, "llama.expert_used_count", USED);
  }
  gguf_set_val_str(m.file, "tokenizer.ggml.model", "no_vocab");
  add_plain(&m, "token_embd.weight", width, words, 1);
  for (int i = 0; i < layers; i++) add_layer(&m, i, width, inner, experts);
  add_plain(&m, "output_norm.weight", width, 1, 0.1);
  add_matrix(&m, "output.weight", width, words, 1);
  if (!gguf_write_to_file(m.file, argv[1], false)) fail("the file cannot be written");
  gguf_free(m.file);
  ggml_free(m.tensors);
  return 0;
}
