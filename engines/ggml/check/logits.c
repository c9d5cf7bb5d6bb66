/* logits MODEL REFERENCE: how far the logits of a model are from those of another, which is the same in fp32: the
 * squared error by the squared reference of each token, over a prompt and tokens that are decoded one by one. Prints
 * the median and the mean over tokens, and the mean when routers say what they say in the reference.
 *
 * logits MODEL REFERENCE BUFFER: on a machine with a GPU. The reference stays on the CPU, the model has all layers on
 * the GPU, and its matrices in buffers of that type (CUDA0, LPGEMM-CUDA0). */
#include <llama.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPT = 48, DECODED = 16, TOKENS = PROMPT + DECODED, ROUTED = 64 };

/* What a model gave. */
typedef struct answer {
  float *logits; /* [TOKENS][words] */
  int words;
  float routers[TOKENS][ROUTED]; /* logits of experts, of all layers */
  int routed[TOKENS];
  const struct answer *leader; /* whose routers are followed, or NULL */
  int first;                   /* the token that the batch begins with */
} answer;

static void fail(const char *what, const char *which) {
  fprintf(stderr, "logits: %s: %s\n", which, what);
  exit(1);
}

static void only_errors(enum ggml_log_level level, const char *text, void *unused) {
  (void)unused;
  if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static llama_token token_of(int i, int words) { return (llama_token)((i * 7919 + 13) % words); }

/* llama.cpp's scheduler asks which tensors are wanted, and shows each before what follows from it is computed. */
static bool see(struct ggml_tensor *t, bool ask, void *context) {
  static const char name[] = "ffn_moe_logits-";
  answer *to = context;
  const bool wanted = strncmp(t->name, name, strlen(name)) == 0;
  if (ask || !wanted) return wanted;
  const int experts = (int)t->ne[0];
  for (int64_t row = 0; row < t->ne[1]; row++) {
    const int token = to->first + (int)row, at = to->routed[token];
    float *router = (float *)((char *)t->data + (size_t)row * t->nb[1]);
    if (at + experts > ROUTED) fail("has too many experts", t->name);
    memcpy(to->routers[token] + at, router, (size_t)experts * sizeof *router);
    if (to->leader) memcpy(router, to->leader->routers[token] + at, (size_t)experts * sizeof *router);
    to->routed[token] += experts;
  }
  return true;
}

static ggml_backend_buffer_type_t buffer_type(const char *name) {
  for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
    ggml_backend_buffer_type_t type = ggml_backend_dev_buffer_type(ggml_backend_dev_get(i));
    if (strcmp(ggml_backend_buft_name(type), name) == 0) return type;
  }
  fail("no such type of buffers", name);
  return NULL;
}

/* Matrices in buffers of a type, NULL: where llama.cpp puts them. */
static void run(const char *path, answer *to, ggml_backend_buffer_type_t type, bool on_gpu) {
  struct llama_model_params params = llama_model_default_params();
  const struct llama_model_tensor_buft_override matrices[] = {
      {"\\.(attn_[qkv]|attn_output|ffn_(gate|up|down)(_exps)?)\\.weight$|^output\\.weight$", type}, {NULL, NULL}};
  if (type) params.tensor_buft_overrides = matrices;
  if (!on_gpu) params.n_gpu_layers = 0;
  struct llama_model *model = llama_model_load_from_file(path, params);
  if (!model) fail("cannot be loaded", path);
  struct llama_context_params options = llama_context_default_params();
  options.n_ctx = 2 * TOKENS;
  options.n_batch = options.n_ubatch = TOKENS;
  options.n_threads = options.n_threads_batch = 2;
  options.type_k = options.type_v = GGML_TYPE_F32; /* no rounding but that of the products */
  options.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  options.op_offload = on_gpu;
  options.cb_eval = see;
  options.cb_eval_user_data = to;
  struct llama_context *context = llama_init_from_model(model, options);
  if (!context) fail("no context", path);
  to->words = llama_vocab_n_tokens(llama_model_get_vocab(model));
  to->logits = malloc((size_t)TOKENS * (size_t)to->words * sizeof *to->logits);
  for (int at = 0; at < TOKENS;) {
    const int count = at == 0 ? PROMPT : 1;
    struct llama_batch batch = llama_batch_init(count, 0, 1);
    batch.n_tokens = count;
    for (int i = 0; i < count; i++) {
      batch.token[i] = token_of(at + i, to->words);
      batch.pos[i] = at + i;
      batch.n_seq_id[i] = 1;
      batch.seq_id[i][0] = 0;
      batch.logits[i] = 1;
    }
    to->first = at;
    if (llama_decode(context, batch) != 0) fail("decoding failed", path);
    memcpy(to->logits + (size_t)at * (size_t)to->words, llama_get_logits(context),
           (size_t)count * (size_t)to->words * sizeof *to->logits);
    llama_batch_free(batch);
    at += count;
  }
  llama_free(context);
  llama_model_free(model);
}

/* NaN comes last. */
static int in_order(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return a < b ? -1 : b < a ? 1 : isnan(a) - isnan(b);
}

/* Errors of all tokens, and their mean. */
static double compare(const answer *given, const answer *expected, double *error) {
  double sum = 0;
  for (int t = 0; t < TOKENS; t++) {
    double squares = 0, errors = 0;
    for (size_t i = (size_t)t * (size_t)given->words; i < (size_t)(t + 1) * (size_t)given->words; i++) {
      const double off = (double)given->logits[i] - (double)expected->logits[i];
      errors += off * off;
      squares += (double)expected->logits[i] * (double)expected->logits[i];
    }
    sum += error[t] = errors / squares;
  }
  return sum / TOKENS;
}

int main(int argc, char **argv) {
  if (argc != 3 && argc != 4) fail("arguments are MODEL REFERENCE, perhaps BUFFER", "usage");
  llama_log_set(only_errors, NULL);
  ggml_backend_load_all();
  const bool on_gpu = argc == 4;
  ggml_backend_buffer_type_t type = on_gpu ? buffer_type(argv[3]) : NULL;
  static answer expected, given, led = {.leader = &expected};
  run(argv[2], &expected, NULL, false);
  run(argv[1], &given, type, on_gpu);
  if (given.words != expected.words) fail("has another number of words", argv[2]);
  double error[TOKENS], error_led[TOKENS];
  const double mean = compare(&given, &expected, error);
  double mean_led = mean;
  if (expected.routed[0] > 0) {
    run(argv[1], &led, type, on_gpu);
    mean_led = compare(&led, &expected, error_led);
    free(led.logits);
  }
  qsort(error, TOKENS, sizeof *error, in_order);
  printf("%.3e %.3e %.3e\n", (error[TOKENS / 2 - 1] + error[TOKENS / 2]) / 2, mean, mean_led);
  free(given.logits);
  free(expected.logits);
  return 0;
}
